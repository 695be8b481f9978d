"""Annotations of Label Studio's tasks: votes of the people who made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import InputError
from workbench.reading import cut, listed

ADVICE = "Mark the right one as ground truth in Label Studio, or leave the task out."


class Disagreement(InputError):
    """Annotations of one task differ, and none of them decides."""


def votes(task: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The annotations of a task that count.

    Cancelled ones do not. A person (`completed_by`) has one vote, the newest by `created_at`; annotations
    that do not say who made them, or when, all count. Where some are marked as ground truth, the others do
    not count. Label Studio marks all that it imports, so on an annotation that nobody made there
    (`lead_time` is null) the mark says nothing.

    Args:
        task: of an export as JSON.
    """
    made = [one for one in task.get("annotations") or () if not one.get("was_cancelled")]
    newest: dict[str, str] = {}
    for one in made:
        person = _person(one)
        newest[person] = max(newest.get(person, ""), str(one.get("created_at") or ""))
    current = [
        one
        for one in made
        if not (person := _person(one))
        or not one.get("created_at")
        or str(one["created_at"]) == newest[person]
    ]
    truths = [one for one in current if one.get("ground_truth") and one.get("lead_time", 0) is not None]
    return truths or current


def choice_of(task: Mapping[str, Any]) -> str | None:
    """The class of a task: the choice of the annotations that count; None where nothing was chosen.

    Args:
        task: of an export as JSON.

    Raises:
        InputError: several choices in one annotation.
        Disagreement: annotations that count chose different classes.
    """
    chosen: dict[str, None] = {}
    for annotation in votes(task):
        choices = [choice for picked in choices_of(annotation).values() for choice in picked]
        if len(choices) > 1:
            raise InputError(
                f"Task {cut(task.get('id'))} has several choices; one class an item is what we keep."
            )
        chosen |= dict.fromkeys(choices)
    if len(chosen) > 1:
        raise Disagreement(
            f"Task {cut(task.get('id'))} has annotations that differ: {listed(chosen)}. {ADVICE}"
        )
    return next(iter(chosen), None)


def choices_of(annotation: Mapping[str, Any]) -> dict[str, list[str]]:
    """What was chosen in an annotation, by the name of the choice."""
    chosen: dict[str, list[str]] = {}
    for result in annotation.get("result") or ():
        if result.get("type") == "choices":
            picked = [str(choice) for choice in result["value"]["choices"]]
            chosen.setdefault(str(result.get("from_name")), []).extend(picked)
    return chosen


def _person(annotation: Mapping[str, Any]) -> str:
    """The person who made an annotation; "" where it does not say."""
    person = annotation.get("completed_by")
    if isinstance(person, Mapping):
        person = person.get("id") or person.get("email")
    return "" if person is None else str(person)
