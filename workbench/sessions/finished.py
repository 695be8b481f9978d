"""A finish from the first check to the last label, with an oracle in the person's place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.certificates import Certificate, Labelled
from workbench.certificates.rehearsing import MOST_ATTEMPTS, checks_to_go
from workbench.errors import InputError
from workbench.sessions.certifying import machine_part
from workbench.sessions.checks import MODEL
from workbench.sessions.finish_state import FinishState
from workbench.sessions.finishing import CONFIDENCE, ERROR
from workbench.sessions.oracle import ArrayOracle
from workbench.sessions.session import Session


@dataclass(frozen=True, eq=False)
class Finished:
    """A set that is finished.

    Attributes:
        labels: every item that can be labelled, with its source, "person" or "machine".
        certificate: of the machine's part; None where no attempt was certified, and people labelled all.
        checks: answers to draws, of all attempts.
        rest: items that were labelled because they lie beyond the certified set.
        attempts: how many.
    """

    labels: list[Labelled]
    certificate: Certificate | None
    checks: int
    rest: int
    attempts: int

    @property
    def answers(self) -> int:
        """Human answers that the finish took."""
        return self.checks + self.rest


def finish(
    session: Session,
    error: float = ERROR,
    confidence: float = CONFIDENCE,
    *,
    oracle: Callable[[int], str | None] | None = None,
    of: str = MODEL,
    attempts: int = MOST_ATTEMPTS,
    **how: Any,
) -> Finished:
    """Let the machine label what it can be certified for, and the oracle the rest.

    Labels are frozen, checked in a fixed order until they are certified, or given up; then the model learns
    from the checks, and what it says then is checked anew. Larger sets are certified as well where that is
    likely to save answers. Everything is recorded in the project, as if people had answered.

    Args:
        session: of a project; it is fitted first where labels have come.
        error: the share of wrong labels that is allowed in the machine's part.
        confidence: of all attempts together.
        oracle: item -> class name, None where it cannot tell; the pool's own truth unless given.
        of: whose labels: "model", or "column:NAME".
        attempts: at most so many; then the oracle labels everything.
        how: what else `Session.start_checks` takes: `also`, `whole`, `strata`, `per_class`.

    Returns:
        The finished set.

    Raises:
        InputError: no oracle and no truth, no model yet, or shares that are none.
    """
    answers = ArrayOracle(session.pool) if oracle is None else oracle
    if attempts < 1:
        raise InputError(f"A finish has at least one attempt; got {attempts}.")
    checks = done = 0
    now: FinishState | None = None
    for done in range(1, attempts + 1):  # noqa: B007
        if of == MODEL and session.stale:
            session.refit()
        if not _open(session):
            break
        now = session.start_checks(error, confidence, of=of, **how)
        now = _checked(session, answers, now)
        checks += now.evidence.checks
        if now.phase == "certified":
            break
    held = now is not None and now.phase == "certified"
    machine = machine_part(now, session.state) if held and now is not None else {}
    rest = _label(session, answers, [item for item in _open(session) if item not in machine])
    certificate = session.certificate() if held else None
    ids, people = session.pool.items.ids, session.state.labels
    labels = [Labelled(str(ids[item]), name, "person") for item, name in people.items()]
    labels += [Labelled(str(ids[item]), name, "machine") for item, (name, _) in machine.items()]
    return Finished(labels, certificate, checks, rest, done)


def _checked(session: Session, oracle: Callable[[int], str | None], now: FinishState) -> FinishState:
    """Answer checks until labels are certified and no larger set is worth it, or they are given up."""
    patience = 0
    while now.phase in ("checking", "certified"):
        if now.phase == "certified" and now.evidence.checks >= patience:
            more = _worth(now)
            if more is None:
                break
            patience = now.evidence.checks + more
        ask = session.next_check()
        if ask is None:
            break
        session.answer_check(ask.id, oracle(ask.item))
        found = session.finish_state()
        assert found is not None
        if found.phase == "certified" and found.size > now.size:
            patience = 0
        now = found
    return now


def _worth(now: FinishState) -> int | None:
    """Draws to spend on the next larger set; None where they would cost more than they save."""
    frozen = now.frozen
    following = next((size for size in frozen.sizes if size > now.size), None)
    if following is None:
        return None
    to_go = checks_to_go(now.evidence.within(following), following, frozen.error, frozen.confidence_here)
    if to_go is None or to_go >= following - now.size:
        return None
    return int(2 * (to_go + 1) * frozen.size / following)


def _open(session: Session) -> list[int]:
    labelled = session.state.codes
    return [item for item in session.pool.trainable.tolist() if item not in labelled]


def _label(session: Session, oracle: Callable[[int], str | None], items: list[int]) -> int:
    of_class: defaultdict[str, list[int]] = defaultdict(list)
    for item in items:
        name = oracle(item)
        if name is not None:
            of_class[name].append(item)
    for name, members in of_class.items():
        session.label_items(members, name)
    return len(items)
