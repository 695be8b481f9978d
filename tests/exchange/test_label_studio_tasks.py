"""Tasks of a Label Studio that never saw ours: matched by what they show, or refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from workbench.documents.projects import check_event
from workbench.errors import InputError
from workbench.exchange.imports import import_labels
from workbench.exchange.questions import read_answers
from workbench.exchange.rows import label_table
from workbench.pools import load_pool
from workbench.pools.pool import Pool, TextItems
from workbench.sessions import Session
from workbench.sessions.operations import Operation
from workbench.sessions.people import training_of
from workbench.store import FileVote


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


def at(second: int) -> str:
    return f"2026-11-25T15:14:{second:02}.400+00:00"


TRUTH = {"ground_truth": True}
# annotations of one task -> the class that they decide, and the votes (class, person, time, final) that they
# are; "" for neither
DECIDED: dict[str, tuple[list[Any], str, list[tuple[str, str, str, bool]]]] = {
    "agreement": ([annotation("a"), annotation(""), annotation("a")], "a", []),
    "agreement of people": (
        [annotation("a", **by(1, 1)), annotation("a", **by(2, 2)), annotation("", **by(3, 3))],
        "a",
        [("a", "1", at(1), False), ("a", "2", at(2), False)],
    ),
    "ground truth": ([annotation("a", **TRUTH), annotation("b")], "a", [("a", "", "", True)]),
    "ground truth of people": (
        [annotation("a", **TRUTH, **by(1, 1)), annotation("b", **by(2, 2)), annotation("b")],
        "a",
        [("a", "1", at(1), True), ("b", "2", at(2), False)],
    ),
    "newest of one": (
        [annotation("a", **by(1, 2)), annotation("b", **by(1, 1))],
        "a",
        [("a", "1", at(2), False)],
    ),
    "newest elsewhere": (
        [
            annotation("a", completed_by=1, created_at="2026-11-25T10:00:00-05:00"),
            annotation("b", completed_by=1, created_at="2026-11-25T14:59:59Z"),
        ],
        "a",
        [("a", "1", "2026-11-25T15:00:00.000+00:00", False)],
    ),
    "newest by mail": (
        [annotation("a", **by({"email": "eve@x.org"}, 2)), annotation("b", **by({"email": "eve@x.org"}, 1))],
        "a",
        [("a", "eve@x.org", at(2), False)],
    ),
    "cancelled": ([annotation("a"), annotation("b", was_cancelled=True)], "a", []),
    "made nowhere": ([annotation("a", **TRUTH, **by(1, 1) | {"lead_time": None})], "a", []),
    "majority": ([annotation("a"), annotation("b"), annotation("a")], "", []),
    "one without a name": ([annotation("a", **by(1, 1)), annotation("b")], "", []),
    "two people": (
        [annotation("a", **by(1, 1)), annotation("b", **by(2, 2))],
        "",
        [("a", "1", at(1), False), ("b", "2", at(2), False)],
    ),
    "majority of people": (
        [annotation("a", **by(1, 1)), annotation("b", **by(2, 2)), annotation("a", **by(3, 3))],
        "",
        [("a", "1", at(1), False), ("b", "2", at(2), False), ("a", "3", at(3), False)],
    ),
    "two truths": ([annotation("a", **TRUTH), annotation("b", **TRUTH)], "", []),
    "two truths of people": (
        [annotation("a", **TRUTH, **by(1, 1)), annotation("b", **TRUTH, **by(2, 2))],
        "",
        [("a", "1", at(1), False), ("b", "2", at(2), False)],
    ),
    "imported": (
        [annotation("a", **TRUTH, **by(1, 1) | {"lead_time": None}), annotation("b", **by(2, 2))],
        "",
        [("a", "1", at(1), False), ("b", "2", at(2), False)],
    ),
    "no times": ([annotation("a", completed_by=1), annotation("b", completed_by=1)], "", []),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("made", "label", "votes"), DECIDED.values(), ids=DECIDED)
def test_annotations_are_votes_and_no_order_decides(
    letters: Pool,
    start: Callable[..., Session],
    made: list[Any],
    label: str,
    votes: list[Any],
    backwards: bool,
) -> None:
    made = made[::-1] if backwards else made
    entries = [
        {"id": 40 + i, "data": {"text": f"letter number {i} of the lot"}, "annotations": annotations}
        for i, annotations in enumerate([*([annotation("ab"[i % 2])] for i in range(4)), made])
    ]
    data = json.dumps(entries).encode()
    pool = load_pool(data, file_name="tasks.json")
    told = any("Annotations differ" in note and "44" in note for note in pool.notes)
    assert (pool.truth[4] == -1, told) == (not label, not label)
    session = start()
    session.questions.add(("topic", ["a", "b"]))
    rows = [{**entry, "data": {"item": entry["id"] - 40}} for entry in entries]
    answers = json.dumps(rows).encode()
    if not (label or votes):
        with pytest.raises(InputError, match=r"Task 44 .*annotations that differ"):
            import_labels(data, letters, "label-studio")
        with pytest.raises(InputError, match=r"Task 44.*annotations that differ"):
            read_answers(answers, session, "label-studio")
        return
    expected = [FileVote(4, *vote) for vote in votes] or [(4, label)]
    assert sorted(import_labels(data, letters, "label-studio")[4:]) == sorted(expected)
    of_topic = read_answers(answers, session, "label-studio").labels["topic"]
    assert sorted(of_topic[4:]) == sorted(expected)
    topic = session.question("topic")
    topic.items.import_labels(of_topic, "ls.json")
    state = topic.state
    assert state.decided.get(4, "") == label and (4 in state.undecided) == (not label)
    assert (4 in state.training) == bool(label)
    assert {(v.key, v.annotator, v.final) for v in state.votes[4].values()} == {
        (key, f"file ls.json / {person}" if person else "file ls.json", final)
        for key, person, _, final in votes or [(label, "", "", False)]
    }
    assert all(
        state.votes[4][f"file ls.json / {person}"].time == time for _, person, time, _ in votes if time
    )
    assert topic.items.import_labels(of_topic, "ls.json") is None
    topic.undo()
    assert not topic.state.votes and topic.state.n_labelled == 0


def test_people_of_a_file_who_differ_wait_for_somebody_who_decides(start: Callable[..., Session]) -> None:
    session = start()
    first, second = session.pool.trainable[:2].tolist()
    a, b, _ = session.classes
    votes = [FileVote(first, a, "1", at(1)), FileVote(first, a, "2"), FileVote(first, b, "3"), (second, b)]
    event = session.as_annotator("eve").items.import_labels(votes, "ls.json")
    assert event is not None and event.annotator == "eve"
    check_event(event.kind, event.payload, "The bundle")
    for entry in (
        [first, a, "1"],
        [first, a, 1, "", False],
        [first, a, "1", "late", False],
        [first, a, "1", "", 1],
    ):
        with pytest.raises(InputError, match="The bundle"):
            check_event(event.kind, {**event.payload, "labels": [entry]}, "The bundle")
    row = next(row for row in label_table(session) if row["item"] == first)
    by_person = {"file ls.json / 1": a, "file ls.json / 2": a, "file ls.json / 3": b}
    assert (row["label"], row["status"], row["changed_from"]) == (None, "undecided", "")
    assert row["label_by_person"] == by_person
    session.as_annotator("bob").items.label(first, a)
    assert session.state.undecided == {first} and session.state.decided == {second: b}
    session.items.resolve(first, a)
    assert session.state.decided == {first: a, second: b}
    # a second file in which one of them changed their mind brings the votes of that item again
    again = [*votes[:2], FileVote(first, a, "3"), votes[3]]
    event = session.as_annotator("eve").items.import_labels(again, "ls.json")
    assert event is not None and len(event.payload["labels"]) == 3
    assert {vote.key for vote in session.state.votes[first].values()} == {a}
    assert session.as_annotator("eve").undo() == event
    assert session.as_annotator("eve").undo() is not None
    assert session.state.decided == {first: a} and len(session.state.votes[first]) == 2


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
    from workbench.exchange.labels import export_labels

    session = start()
    answer(session, load_pool("iris"), 16)
    session.refit()
    tied = next(iter(session.state.training))
    bob = session.as_annotator("bob")
    bob.items.label(tied, next(name for name in session.classes if name != session.state.labels[tied]))
    session.refit()
    labels = import_labels(export_labels(session, "csv"), session.pool, "csv", session.classes)
    votes, n = dict(session.state.votes), len(session.log.events)
    assert session.state.undecided == {tied}
    assert dict(labels) == dict(session.state.decided) and len(labels) == 15
    for person in (session, bob):
        assert person.items.import_labels(labels, "own.csv") is None
        assert len(session.log.events) == n and dict(session.state.votes) == votes and not session.stale
    # what differs is taken in, and only that
    (item, was), *rest = labels
    other = next(name for name in session.classes if name != was)
    event = session.items.import_labels([(item, other), *rest], "opinion.csv")
    assert event is not None and [i for i, _ in event.payload["labels"]] == [item]
    # it is one more opinion, of a rater of its own; beside it stands who took it in
    assert session.state.votes[item]["file opinion.csv"].key == other and event.annotator == "ann"
    assert session.state.undecided == {tied, item}
    session.undo()
    # beside two who differ it says which of them is right, also where that is who came last
    said = session.state.labels[tied]
    assert session.items.import_labels([(tied, said)], "third.csv") is not None
    assert session.state.undecided == set() and session.state.labels[tied] == said
    assert session.items.import_labels([(tied, said)], "third.csv") is None
    session.undo()
    session.items.import_labels([(item, other), *rest], "corrected.csv", corrects=True)
    assert session.state.undecided == {tied} and session.state.labels[item] == other
    row = next(row for row in label_table(session) if row["item"] == item)
    assert (row["person"], row["changed_from"]) == ("file corrected.csv", was)


@pytest.mark.parametrize("corrects", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_who_labels_an_item_after_a_file_has_the_last_word(
    start: Callable[..., Session], several: bool, corrects: bool
) -> None:
    session = start()
    if several:
        session.questions.add("urgent")
    own, new, seen, again = session.pool.trainable[:4].tolist()
    a, b, c = session.classes
    session.items.label([own, again], a)
    session.items.import_labels([(own, b), (new, b), (seen, b), (again, b)], "ls.csv", corrects=corrects)
    assert {session.state.standing[item].key for item in (own, new, seen, again)} == {b}
    before = session.state.learnable
    if several:
        operation = Operation("row", "amend", item=own, answers={session.question_name: a})
        assert session.apply([operation])[0].status == "saved"
    else:
        session.items.label(own, a)
    bob = session.as_annotator("bob")
    bob.items.label(new, c)
    session.items._event("correct", item=again, label=a)
    assert session.state.undecided == set() and session.state.learnable != before
    labels = [session.state.labels[item] for item in (own, new, seen, again)]
    assert labels == [a, c, b, a]
    learnt = training_of(session.state)
    assert [session.classes[learnt[item]] for item in (own, new, seen, again)] == labels
    session.items.label(new, a)  # two people who differ after it
    assert session.state.undecided == {new}
    session.items.import_labels(
        [(new, b)], "ls.csv", corrects=True
    )  # a file that comes once more decides anew
    assert session.state.undecided == set() and session.state.labels[new] == b
    assert session.undo() is not None and session.state.undecided == {new}
    # what people in another file say later counts as where no file had decided
    session.items.import_labels([FileVote(own, c, person) for person in ("dan", "eve", "fay")], "more.json")
    assert session.state.labels[own] == c


def test_what_stands_beside_a_text_goes_out_with_it(store: Any, tmp_path: Any) -> None:
    shown = [
        ({"letter": f"about parcel {i}", "text": "no item", "from": f"C{i}"}, "ab"[i % 2]) for i in range(6)
    ]
    file = tmp_path / "tasks.json"
    file.write_bytes(tasks(*shown))
    session = Session.create(
        str(file), pool_options={"columns": {"letter": "text", "text": "shown", "from": "shown"}}, store=store
    )
    rows = list(label_table(session, "everything"))
    assert [(row["text"], row["from"]) for row in rows] == [
        (data["letter"], data["from"]) for data, _ in shown
    ]
