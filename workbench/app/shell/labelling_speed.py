"""Pace of somebody's labelling, the time for the rest, and the verdict on more labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from workbench.app.words.text import percent, plural, verbatim
from workbench.progress import duration

if TYPE_CHECKING:
    from workbench.figures.curves import Curve
    from workbench.pools import Pool
    from workbench.sessions import Event, Round, Session
    from workbench.sessions.measure import Evaluation, ModelVerdict
    from workbench.store import ProjectState

PAUSE = 180.0
"""Seconds without an answer after which somebody was away."""
_LOOKED_AT = 200
_FEWEST = 8
_RARE_SHOWN = 6


def labels_an_hour(events: Sequence[Event], person: str) -> float | None:
    """Pace of a person lately, pauses left out; None for too few answers.

    What a program answered in the person's name tells no speed: only the desk gives its answers an id.

    Args:
        events: of the project, oldest first.
        person: whose answers count; a grid counts as its items.
    """
    answers: list[tuple[float, int]] = []
    for event in reversed(events):
        if event.annotator != person or event.operation is None:
            continue
        if event.kind in ("label", "skip", "unsure"):
            n = 1
        elif event.kind == "confirmed":
            n = len(event.payload["items"])
        else:
            continue
        answers.append((datetime.fromisoformat(event.time).timestamp(), n))
        if len(answers) == _LOOKED_AT:
            break
    times = np.array([moment for moment, _ in reversed(answers)])
    numbers = np.array([n for _, n in reversed(answers)])
    if len(times) < _FEWEST:
        return None
    gaps = np.diff(times)
    busy = gaps <= PAUSE
    spent, n_answered = float(gaps[busy].sum()), int(numbers[1:][busy].sum())
    return 3600.0 * n_answered / spent if n_answered >= _FEWEST - 1 and spent > 0 else None


def latest_at_each(rounds: Sequence[Round]) -> list[Round]:
    """One round for each number of labels, the last one made: after an undo a number comes twice."""
    by_number: Mapping[int, Round] = {fit.n_labelled: fit for fit in rounds}
    return [by_number[n] for n in sorted(by_number)]


def measured_rounds(rounds: Sequence[Round]) -> list[Round]:
    """Those of `latest_at_each` whose error says something: measured on 20 items or more.

    On fewer, an error of 0 % says little, and a curve that begins there climbs as if labels did harm.
    """
    from workbench.sessions.measure import ENOUGH

    return latest_at_each([fit for fit in rounds if fit.n_test >= ENOUGH])


def error_curve(name: str, rounds: Sequence[Round]) -> Curve:
    """The error of a project against its labels, as every page draws it.

    Args:
        name: for the legend.
        rounds: of `measured_rounds`.
    """
    from workbench.figures.curves import measured

    return measured(
        name, [r.n_labelled for r in rounds], [r.error for r in rounds], [r.n_test for r in rounds]
    )


def error_so_far(evaluation: Evaluation) -> str:
    """Error as far as it is known, in words for people: nothing, its interval, or both.

    Args:
        evaluation: of the session.
    """
    from workbench.sessions.measure import ENOUGH

    ends = f"{percent(evaluation.low, 0)} and {percent(evaluation.high, 0)}"
    if evaluation.enough:
        return f"{percent(evaluation.error)} of {evaluation.where}, and on all others likely between {ends}"
    # none is measured before there is a model, though items were answered for it
    so_far = f"{evaluation.n or 'none'} of the {ENOUGH} measured items that a figure needs"
    return f"likely between {ends} so far ({so_far})" if evaluation.hinted else f"not known yet ({so_far})"


def changes(events: Sequence[Event]) -> list[tuple[str, int]]:
    """Changes of classifier or policy: what was chosen, and the labels of the first fit with it."""
    from workbench.classifiers import title_of as classifier_title
    from workbench.policies.registry import title_of

    marks: list[tuple[str, int]] = []
    waiting = ""
    for event in events:
        if event.kind == "model-changed":
            classifier, policy = str(event.payload["classifier"]), str(event.payload["policy"])
            waiting = f"{classifier_title(classifier)}, {title_of(policy)}"
        elif event.kind == "round" and waiting:
            marks.append((waiting, int(event.payload["n_labelled"])))
            waiting = ""
    return marks


def advice(rounds: Sequence[Round], verdict: ModelVerdict) -> str:
    """Effect of more labels on the predictions, in a few words; "" where it cannot be said.

    The rule is that of Zhu, Wang and Hovy (2008), on the whole pool.

    Args:
        rounds: of the project.
        verdict: on its model.
    """
    from workbench.sessions.stopping import ClassificationChange

    rule = ClassificationChange()
    changed = [fit.signs["changed"] for fit in rounds if "changed" in fit.signs]
    if not changed:
        return ""
    last = changed[-rule.rounds :]
    if len(last) == rule.rounds and max(last) <= rule.share:
        return verdict.of_no_change(rule.rounds, max(last))
    words = f"the last fit changed {percent(changed[-1])} of the predictions"
    if changed[-1] > rule.share:
        return f"{words}: labels still help"
    quiet = next((i for i, share in enumerate(reversed(changed)) if share > rule.share), len(changed))
    return f"{words}; after {plural(rule.rounds - quiet, 'more fit')} like it labels change hardly anything"


def of_rare_classes(verdict: ModelVerdict) -> str:
    """Balanced error and a line a rare class, in Markdown; "" without a rare one."""
    if not verdict.rare:
        return ""
    lines = sorted(verdict.rare, key=lambda class_verdict: class_verdict.labels)
    bullets = [
        f"- **{verbatim(class_verdict.name, 60)}**: {class_verdict.line}"
        for class_verdict in lines[:_RARE_SHOWN]
    ]
    more = len(lines) - len(bullets)
    bullets += [f"- and {plural(more, 'more rare class', 'more rare classes')}"] if more else []
    balanced = verdict.balanced_error
    measured = "" if all(class_verdict.measured for class_verdict in verdict.classes) else "measured "
    head = f"Every {measured}class counted alike, the error is **{percent(balanced)}**."
    is_known = verdict.told and not math.isnan(balanced)
    return "\n".join(([head, ""] if is_known else []) + bullets)


def first_fit(session: Session) -> str:
    """Condition of the first fit, in Markdown: labels of two classes, of which one may be there."""
    state = session.state
    codes, n = sorted(state.trained_classes), len(state.training)
    if len(codes) > 1 or session.stale:
        return "The first fit is under way."
    if not codes:
        return "The first fit comes with labels of two classes."
    only = verbatim(state.classes[codes[0]], 40)
    so_far = f"The only label is {only}" if n == 1 else f"All {n:,} labels are {only}"
    if session.queue.n_left:
        return f"{so_far}; the first fit comes with one of another class."
    return (
        f"{so_far} and nothing is left to ask, so no model can be fitted: it needs labels of two classes. "
        "Correct a label on History, or start a project with more items."
    )


def progress(session: Session) -> tuple[str, str]:
    """Progress of a project and quality of its model, in a sentence; and what to do about it: Markdown."""
    state, evaluation = session.state, session.predictions.evaluation
    n, total = len(state.codes), int(session.pool.trainable.size)
    coverage = f"{n:,} of {plural(total, 'item')} labelled"
    if not n:
        return (
            f"{coverage}.",
            "Answer the first questions: the model begins to guess once it knows two classes.",
        )
    if session.model is None:
        return f"{coverage}.", first_fit(session)
    if not evaluation.enough:
        return f"{coverage}; the model's error is {error_so_far(evaluation)}.", (
            "Go on: a part of your answers is kept to measure on."
        )
    ends = f"{percent(1 - evaluation.high)} to {percent(1 - evaluation.low)}"
    # few items bear no figure, only its ends
    right = f"{percent(1 - evaluation.error)} ({ends})" if session.predictions.verdict.told else ends
    hint = advice(session.rounds, session.predictions.verdict)
    advised = verbatim(f"{hint[:1].upper()}{hint[1:]}.")
    if n >= total:
        meaning = "All is labelled: look at the labels again on History, or take them away there."
    elif session.predictions.verdict.told and hint.endswith("enough"):
        meaning = f"{advised} Finish says what the rest would be worth."
    elif hint:
        meaning = advised
    else:
        meaning = "Go on labelling, or see on Finish what the machine can label itself."
    return f"{coverage}; the model is right on {right} of what it never learnt from.", meaning


def measured(state: ProjectState) -> int:
    """Number of items of the evaluation set that an error is measured on."""
    from workbench.sessions.measure import measured_on

    return len(measured_on(state))


def shares(state: ProjectState) -> str:
    """Purpose of the labels, where not all are learnt from: "40 to learn from, 12 to measure on"."""
    parts = [f"{len(state.training):,} to learn from"]
    if state.evaluation:
        parts.append(f"{measured(state):,} to measure on")
    if state.undecided:
        parts.append(f"{len(state.undecided):,} to decide")
    return ", ".join(parts) if len(parts) > 1 else ""


def not_drawn(state: ProjectState) -> str:
    """Caution for a figure over all labels: their items were not drawn at random."""
    n_asked = sum(vote.role == "policy" for vote in state.standing.values())
    if 2 * n_asked > len(state.standing):
        return "Those items were asked because they are hard, so this looks worse than a fair sample would."
    return "Those items were not drawn at random, so a fair sample may look better or worse."


def kept_apart(pool: Pool) -> str:
    """Why fewer items can be labelled than the pool has: those of its test split are kept to measure on."""
    test = 0 if pool.test is None else int(pool.test.test.size)
    return f"Of {len(pool):,} items, {test:,} are kept to measure on." if test else ""


def left(session: Session) -> int:
    """Number of items nobody has answered: those that may be asked about and those drawn to measure on."""
    state = session.state
    return session.queue.n_left + sum(1 for item in state.evaluation if item not in state.answered)


def line(
    events: Sequence[Event], person: str, rounds: Sequence[Round], left: int, verdict: ModelVerdict
) -> str:
    """Pace, time left and advice in one quiet line; "" before anything can be said.

    Args:
        events: of the project.
        person: who labels.
        rounds: of the project.
        left: items that nobody has answered.
        verdict: on the model.
    """
    speed = labels_an_hour(events, person)
    parts = []
    if speed is not None:
        parts.append(f"{round(speed, -1 if speed >= 100 else 0):,.0f} labels an hour")
        if left:
            parts.append(f"the other {left:,} would take about {duration(3600 * left / speed)}")
    hint = advice(rounds, verdict)
    words = " · ".join([*parts, hint] if hint else parts)
    return words[:1].upper() + words[1:]
