"""One schema for each document that comes in: a field of another kind is named, and nothing is stored."""

from typing import Any

import pytest

from benchmarks.trials import bundles
from tests.events import EVENTS
from workbench.documents.checking import checked
from workbench.documents.projects import PAYLOADS, Reference, check_event
from workbench.errors import InputError
from workbench.store.events import KINDS, Event


def test_there_is_a_schema_for_every_kind_of_event() -> None:
    assert set(PAYLOADS) == set(KINDS) == {event.kind for event in EVENTS}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_what_the_program_records_fits(event: Event) -> None:
    check_event(event.kind, dict(event.payload), "It")


@pytest.mark.parametrize(
    ("kind", "payload", "says"),
    [
        ("label", {"item": -1, "class": "a"}, "'item' is -1"),
        ("label", {"item": "7", "class": "a"}, "'item' is '7'"),
        ("label", {"item": True, "class": "a"}, "'item' is True"),
        ("label", {"item": 10**400, "class": "a"}, "'item' is 1000"),
        ("label", {"item": 1}, "'class': field required"),
        ("label", {"item": 1, "class": "a", "seconds": float("nan")}, "'seconds' is nan"),
        ("imported", {"labels": [["a", 1]]}, "no item with the key of a class"),
        ("asked", {"asks": [{"id": "x"}], "expires": 1.0}, r"'asks\.0\.item': field required"),
        ("model-changed", {"classifier": "x", "options": {"a": float("inf")}, "policy": "y"}, "not finite"),
        ("none", {}, "no event of kind 'none'"),
    ],
)
def test_what_does_not_fit_is_named(kind: str, payload: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_event(kind, payload, "It")


def test_a_document_that_is_nested_too_deeply_is_one_sentence() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(InputError, match="nested too deeply"):
        checked(Reference, {"name": "a", "options": deep}, "It")


@pytest.mark.slow  # a mutation of each; the schemas above, test_doors.py and test_trust.py name the kinds
def test_some_mutations_of_every_document() -> None:
    """The trial of docs/reliability.md, shortened."""
    row = bundles.run(1, seed=3)
    assert row.tried > 20 and row.failed == 0 and row.counts["files read outside"] == 0, row.failures


@pytest.mark.slow
def test_more_mutations_of_every_document() -> None:
    """Shapes of damage that two of each document do not meet."""
    row = bundles.run(12, seed=4)
    assert row.failed == 0 and row.counts["files read outside"] == 0, row.failures
