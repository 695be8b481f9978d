"""Tables of the History page: every event in words, every fit with its measures."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from workbench.app.history.decisions import who
from workbench.app.words import acts
from workbench.app.words.text import percent, plural, role_words, words_of
from workbench.classifiers import title_of as classifier_title
from workbench.policies.registry import title_of
from workbench.reading import cut
from workbench.sessions.measure import ENOUGH
from workbench.sessions.notebooks import error_words

_QUESTIONS = ("asked", "released", "picture-kept")


def event_rows(session: Any, state: Any, most: int) -> list[dict[str, Any]]:
    """The newest events that are somebody's decision or a fit, newest first.

    Args:
        session: of the project.
        state: of the project, for the names its classes have now.
        most: this many.
    """
    decided = (event for event in reversed(session.log.events) if event.kind not in _QUESTIONS)
    ids = session.pool.items.ids
    return [
        {
            # first what a phone has room for
            "What": words_of("acts").get(event.kind, {}).get("log", event.kind.replace("-", " ")),
            "Class or change": acts.phrase(session.pool, state, event, "change") or _change(event, state),
            "Item": "" if event.item is None else str(ids[event.item]),
            "Who": who(event.annotator, event.payload),
            "Why asked": role_words(event.payload.get("role", ""), "log"),
            "Time (UTC)": event.time.replace("T", " ")[:19],
            "Utility": event.payload.get("utility"),
            "Model had": event.payload.get("n_labelled") if event.kind != "round" else None,
        }
        for event in islice(decided, most)
    ]


def _change(event: Any, state: Any) -> str:
    """Change that an event made, where it takes more than a phrase."""
    payload, kind = event.payload, event.kind
    if kind == "class-added":
        return str(payload.get("name", payload["class"]))
    if kind in ("class-removed", "class-described"):
        guidance = f": {payload['guidance']}" if payload.get("guidance") else ""
        return state.class_name(str(payload["class"])) + guidance
    if kind == "wanted":
        return plural(len(payload["items"]), "item") + (f", {payload['how']}" if payload.get("how") else "")
    if kind == "model-changed":
        return f"{classifier_title(str(payload['classifier']))}, {title_of(str(payload['policy']))}"
    if kind == "question-changed":
        return str(payload["question"]) or "as it came"
    if kind == "instructions-written":
        return cut(" ".join(str(payload["text"]).split()), 120) if payload["text"] else "none any more"
    if kind == "guesses-changed":
        sources = [str(source["source"]) for source in payload["sources"] if source["on"]]
        return ", ".join(sources) or "none"
    if kind == "checks-started":
        promise = payload["promise"]
        words = f"at most {percent(promise['error'])} wrong, attempt {promise['attempt']}"
        return f"{plural(promise['size'], 'label')} frozen, {words}"
    if kind == "certified":
        return str(payload["certificate"].get("sentence", ""))
    if kind == "round":
        error = f", {error_words(payload['error'], payload['n_test'])}" if payload.get("n_test") else ""
        return f"number {payload['number']}, {plural(payload['n_labelled'], 'label')}{error}"
    return ""


def fit_rows(session: Any) -> list[dict[str, Any]]:
    """Every fit, newest first; of one that was measured on too few items no figure is told."""
    first = session.project.settings

    def told(r: Any, value: float | None) -> float | None:
        return value if r.n_test >= ENOUGH else None

    return [
        {
            "Fit": r.number,
            "Labels": r.n_labelled,
            "Items": r.n_test,
            "Error": None if told(r, r.error) is None else 100 * r.error,
            "NLL": told(r, r.nll),
            "Brier": told(r, r.brier),
            "ECE": told(r, r.ece),
            "Seconds": sum(r.seconds.values()),
            "Model": _made_with(r, first),
        }
        for r in reversed(session.rounds)
    ]


def _made_with(fit: Any, first: Any) -> str:
    """The model a fit was made with, and the policy that asked after it."""
    classifier, policy = fit.made_with
    # before they could be changed, a fit did not say
    return f"{classifier_title(classifier or first['classifier'])} · {title_of(policy or first['policy'])}"


def whole_numbers(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as a pandas table in which whole numbers stay whole where some are missing: 37, not 37.0."""
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: pd.array([row.get(name) for row in rows]) for name in names})
