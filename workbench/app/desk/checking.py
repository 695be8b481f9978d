"""The desk in check mode: which cards it holds, and what the panel beside them shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import Ask, Session
    from workbench.sessions.finish_state import FinishState

MODE = "check"
WHY = "Drawn at random to check a label that was frozen."
_POINTS = 160  # of the curve that are sent


def next_cards(session: Session, now: FinishState | None, n: int, on: bool) -> list[Ask]:
    """The checks a browser holds: none where nothing is left to find out.

    Args:
        session: of the person.
        now: what the checks say.
        n: how many.
        on: whether the person goes on although it is decided.
    """
    if not n or now is None or now.phase == "void" or (now.phase != "checking" and not on):
        return []
    try:
        return session.checks.ask(n)
    except InputError:  # merged, or started anew, in between
        return []


def figures(now: FinishState | None) -> dict[str, Any]:
    """Content of the panel, as JSON."""
    if now is None:
        return {"phase": "none"}
    curve = list(enumerate(now.curve))
    step = max(1, len(curve) // _POINTS)
    wrong = now.evidence.within(now.size).nonzero()[0] + 1
    return {
        "phase": now.phase,
        "checks": now.checks,
        "wrong": now.wrong,
        "to_go": "" if now.to_go is None else now.to_go_words,
        "ahead": None if now.to_go is None else now.to_go[0],
        "size": now.size,
        "error": now.promise.error,
        "words": now.promise.words(f"the {now.size:,} labels", now.bound if now.checks else None),
        "second_looks": now.second_looks.made,
        "disagreed": now.second_looks.disagreed,
        "curve": [[t, round(p, 5)] for t, p in (*curve[:-1:step], curve[-1])],
        "wrongs": wrong.tolist(),
        "later": now.evidence.later,
        "unchecked": now.frozen.size - now.evidence.checks - now.evidence.later,
    }
