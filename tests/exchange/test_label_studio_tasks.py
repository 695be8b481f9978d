"""Tasks of a Label Studio that never saw ours: matched by what they show, or refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from workbench.errors import InputError
from workbench.exchange import import_labels
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
