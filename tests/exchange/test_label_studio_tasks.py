"""Tasks of a Label Studio that never saw ours: matched by what they show, or refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from workbench.errors import InputError
from workbench.exchange import import_labels
from workbench.exchange.questions import read_answers
from workbench.pools import load_pool
from workbench.pools.items import TextItems
from workbench.pools.pool import Pool
from workbench.sessions import Session


def tasks(*shown: tuple[dict[str, Any], str], first: int = 1) -> bytes:
    """As `Export > JSON` writes them: numbered from 1 in an order of their own."""
    made = [
        {
            "id": n,
            "data": data,
            "annotations": [{"result": [{"type": "choices", "value": {"choices": [said]}}]}],
        }
        for n, (data, said) in enumerate(shown, start=first)
    ]
    return json.dumps(made).encode()


def annotation(choice: str, **about: Any) -> dict[str, Any]:
    result = [{"type": "choices", "from_name": "topic", "value": {"choices": [choice]}}]
    return {"result": result if choice else [], **about}


def by(person: Any, second: int) -> dict[str, Any]:
    return {"completed_by": person, "created_at": f"2026-11-25T15:14:{second:02}.4Z", "lead_time": 2.5}


DECIDED = {
    "agreement": ([annotation("a"), annotation(""), annotation("a", **by(1, 1))], "a"),
    "ground truth": ([annotation("a", ground_truth=True), annotation("b")], "a"),
    "newest of one": ([annotation("a", **by(1, 2)), annotation("b", **by(1, 1))], "a"),
    "newest by mail": ([annotation("a", **by({"id": 1}, 2)), annotation("b", **by({"id": 1}, 1))], "a"),
    "cancelled": ([annotation("a"), annotation("b", was_cancelled=True)], "a"),
    "majority": ([annotation("a"), annotation("b"), annotation("a")], None),
    "two people": ([annotation("a", **by(1, 1)), annotation("b", **by(2, 2))], None),
    "two truths": ([annotation("a", ground_truth=True), annotation("b", ground_truth=True)], None),
    "imported": ([annotation("a", ground_truth=True, lead_time=None), annotation("b", **by(2, 2))], None),
    "no times": ([annotation("a", completed_by=1), annotation("b", completed_by=1)], None),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("made", "label"), DECIDED.values(), ids=DECIDED)
def test_of_several_annotations_no_order_decides(
    letters: Pool, start: Callable[..., Session], made: list[Any], label: str | None, backwards: bool
) -> None:
    made = made[::-1] if backwards else made
    entries = [
        {"id": 40 + i, "data": {"text": f"letter number {i} of the lot"}, "annotations": annotations}
        for i, annotations in enumerate([*([annotation("ab"[i % 2])] for i in range(4)), made])
    ]
    data = json.dumps(entries).encode()
    pool = load_pool(data, file_name="tasks.json")
    told = any("Annotations differ" in note and "44" in note for note in pool.notes)
    assert (pool.truth[4] == -1, told) == (label is None, label is None)
    session = start()
    session.add_question(("topic", ["a", "b"]))
    rows = [{**entry, "data": {"item": entry["id"] - 40}} for entry in entries]
    answers = json.dumps(rows).encode()
    if label is not None:
        assert import_labels(data, letters, "label-studio")[4] == (4, label)
        assert read_answers(answers, session, "label-studio").labels["topic"][4] == (4, label)
        return
    with pytest.raises(InputError, match=r"Task 44 .*annotations that differ"):
        import_labels(data, letters, "label-studio")
    with pytest.raises(InputError, match=r"Task 44 .*annotations that differ"):
        read_answers(answers, session, "label-studio")


@pytest.fixture
def letters() -> Pool:
    texts = [f"letter number {i} of the lot" for i in range(148)] + ["twice", "twice"]
    iris = load_pool("iris")
    return replace(iris, kind="text", items=TextItems(iris.items.ids, texts))


def test_texts_are_found_wherever_their_task_stands(letters: Pool) -> None:
    data = tasks(*(({"text": f" letter number {i} of the lot"}, "ab"[i % 2]) for i in (7, 3, 12)))
    assert import_labels(data, letters, "label-studio") == [(7, "b"), (3, "b"), (12, "a")]


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ({"text": "twice"}, r"Task 2 of the file .* neither id nor item, and 2 items of pool .* as id"),
        ({"text": "nobody's"}, "no item of the pool is the same by its text"),
        ({}, "no item of the pool is"),
    ],
)
def test_what_is_not_one_item_is_refused(letters: Pool, shown: dict[str, Any], message: str) -> None:
    good = ({"text": "letter number 1 of the lot"}, "a")
    with pytest.raises(InputError, match=message):
        import_labels(tasks(good, (shown, "b")), letters, "label-studio")


def test_rows_are_found_by_all_their_columns() -> None:
    iris = load_pool("iris")
    rows = [dict(iris.items.show(i).row or {}) for i in range(len(iris))]
    alone = next(i for i, row in enumerate(rows) if rows.count(row) == 1)
    data = tasks(({**rows[alone], "more": 1}, "setosa"), first=90)
    assert import_labels(data, iris, "label-studio") == [(alone, "setosa")]
    with pytest.raises(InputError, match="the same by its row"):
        import_labels(tasks(({"sepal length (cm)": 5.1}, "setosa")), iris, "label-studio")


def test_pictures_are_found_by_their_files_names() -> None:
    digits = load_pool("digits")
    named = replace(
        digits, items=replace(digits.items, ids=[f"folder/p {i}.png" for i in range(len(digits))])
    )
    data = tasks(
        ({"image": "/data/upload/3/0a1b2c3d-p 5.png"}, "5"),
        ({"image": "/data/local-files/?d=folder/p%2011.png"}, "1"),
        ({"image": "s3://bucket/p 2.png"}, "2"),
    )
    assert import_labels(data, named, "label-studio") == [(5, "5"), (11, "1"), (2, "2")]


def test_ones_own_export_taken_in_again_changes_nothing(start: Callable[..., Session]) -> None:
    from tests.sessions.conftest import answer
    from workbench.exchange import export_labels

    session = start()
    answer(session, load_pool("iris"), 16)
    session.refit()
    tied = next(iter(session.state.training))
    bob = session.as_annotator("bob")
    bob.label_item(tied, next(name for name in session.classes if name != session.state.labels[tied]))
    session.refit()
    labels = import_labels(export_labels(session, "csv"), session.pool, "csv", session.classes)
    votes, n = dict(session.state.votes), len(session.events)
    assert session.state.undecided == {tied}
    assert dict(labels) == dict(session.state.decided) and len(labels) == 15
    for person in (session, bob):
        assert person.import_labels(labels, "own.csv") is None
        assert len(session.events) == n and dict(session.state.votes) == votes and not session.stale
    # what differs is taken in, and only that
    (item, was), *rest = labels
    other = next(name for name in session.classes if name != was)
    event = session.import_labels([(item, other), *rest], "corrected.csv")
    assert event is not None and [i for i, _ in event.payload["labels"]] == [item]
    assert session.state.labels[item] == other
