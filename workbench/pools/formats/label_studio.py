"""Annotations of Label Studio: who chose which class of a task, and what choices that differ add up to."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from workbench.errors import InputError
from workbench.pools.cells import plain_text
from workbench.pools.tables.uses import is_exported
from workbench.reading import cut, listed

ADVICE = "Mark the right one as ground truth in Label Studio, or leave the item out of the file."
LABEL = "label"
"""Key of a task's class, in its data and in a table of tasks."""
MAX_PERSON = 200
_What = TypeVar("_What")


class Disagreement(InputError):
    """Annotations of one task differ, and none of them decides."""


class By(NamedTuple):
    """Origin of an annotation.

    Attributes:
        person: `completed_by`, an address, else a number; "" where it does not say.
        time: `created_at` in UTC, ISO 8601; "" where it does not say.
        final: it is marked as ground truth.
        made: a person made it in Label Studio. It imports annotations in the name of whoever imports them,
            marked as ground truth and without a `lead_time`: nobody's, where nobody differs from them.
    """

    person: str = ""
    time: str = ""
    final: bool = False
    made: bool = True


class Choice(NamedTuple):
    """A class that an annotation chose."""

    label: str
    by: By


def annotations_of(task: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], By]]:
    """The annotations of a task that count, each with its origin.

    Cancelled ones do not. Of a person's the newest does; annotations that do not say who made them, or when,
    all count.

    Args:
        task: of an export as JSON.

    Raises:
        InputError: a person's name that is too long.
    """
    pairs = [
        (annotation, _by(annotation, task.get("data")))
        for annotation in task.get("annotations") or ()
        if not annotation.get("was_cancelled")
    ]
    return newest(pairs)


def newest(pairs: Sequence[tuple[_What, By]]) -> list[tuple[_What, By]]:
    """The pairs that are each a person's newest of an item; those that do not say who or when all count."""
    times: dict[str, str] = {}
    for _, by in pairs:
        times[by.person] = max(times.get(by.person, ""), by.time)
    return [(what, by) for what, by in pairs if not by.person or not by.time or by.time == times[by.person]]


def choices_of(annotation: Mapping[str, Any]) -> dict[str, list[str]]:
    """The choices of an annotation, by their name."""
    choices: dict[str, list[str]] = {}
    for result in annotation.get("result") or ():
        if result.get("type") == "choices":
            picked = [str(choice) for choice in result["value"]["choices"]]
            choices.setdefault(str(result.get("from_name")), []).extend(picked)
    return choices


def classes_chosen(task: Mapping[str, Any]) -> list[Choice]:
    """The classes that the annotations of a task chose; those without a choice are left out.

    Args:
        task: of an export as JSON.

    Raises:
        InputError: several choices in one annotation.
    """
    class_choices = []
    for annotation, by in annotations_of(task):
        picked = [choice for choices in choices_of(annotation).values() for choice in choices]
        if len(picked) > 1:
            raise InputError(
                f"Task {cut(task.get('id'))} has several choices; one class an item is what we keep."
            )
        class_choices += [Choice(label, by) for label in picked]
    return class_choices


def decided(choices: Sequence[Choice]) -> str | None:
    """The class that choices about one item add up to: the ground truth, else what all chose, else None."""
    truths = {choice.label for choice in choices if choice.by.final}
    labels = truths or {choice.label for choice in choices}
    return labels.pop() if len(labels) == 1 else None


def votes_of(choices: Sequence[Choice], where: str) -> list[Choice]:
    """The votes that choices about one item are, one a person.

    Args:
        choices: at least one.
        where: what messages call the item and, of several questions, the one.

    Returns:
        A vote of each person. Where a ground truth decides, its vote is final; where nothing does, none is.
        The vote of nobody stands where no person chose what is decided.

    Raises:
        Disagreement: nothing decides, and the file does not say who differs.
    """
    choices = [Choice(*pair) for pair in newest(choices)]
    label = decided(choices)
    votes: dict[str, Choice] = {}
    torn: set[str] = set()
    for choice in sorted(choices, key=lambda choice: not choice.by.final):
        if label is not None and not choice.by.made:
            continue
        before = votes.setdefault(choice.by.person, choice)
        if before.label != choice.label and not (before.by.final and label is not None):
            torn.add(choice.by.person)
    if label is None:
        if torn or "" in votes:
            ways = listed(dict.fromkeys(choice.label for choice in choices))
            raise Disagreement(f"{where} has annotations that differ: {ways}. {ADVICE}")
        return [vote._replace(by=vote.by._replace(final=False)) for vote in votes.values()]
    final = any(choice.by.final for choice in choices)
    of_persons = [vote for person, vote in votes.items() if person and person not in torn]
    if any(vote.label == label and vote.by.final == final for vote in of_persons):
        return of_persons
    return [*of_persons, Choice(label, By(final=final))]


def _by(annotation: Mapping[str, Any], data: Any) -> By:
    """Origin of an annotation; the data of a task of ours says who gave the label that went there with it."""
    person, time = annotation.get("completed_by"), annotation.get("created_at")
    is_manual = annotation.get("lead_time", 0) is not None
    if not is_manual and isinstance(data, Mapping) and is_exported([*data, LABEL]):
        person, time = data["person"], data["time"]
    if isinstance(person, Mapping):
        person = person.get("email") or person.get("id")
    name = "" if person is None else str(person).strip()
    if len(name) > MAX_PERSON:
        raise InputError(
            f"An annotation is completed_by {cut(name)}; a name has at most {MAX_PERSON} letters."
        )
    return By(name, time_of(time), is_manual and bool(annotation.get("ground_truth")), is_manual)


def time_of(stamp: Any) -> str:
    """A time, of ISO 8601 or in seconds since 1970, in UTC with milliseconds; "" where it is none."""
    try:
        text = plain_text(stamp)
        is_count = text.replace(".", "", 1).isdecimal()
        time = datetime.fromtimestamp(float(text), UTC) if is_count else datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return time.isoformat(timespec="milliseconds")
