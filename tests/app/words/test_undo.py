"""Undo is of a person's last act wherever it was done, and says exactly what it took back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.desks import desk_sync, operation, table
from workbench.app.words import acts
from workbench.documents.projects import check_event
from workbench.exchange.labels import export_labels
from workbench.exchange.rows import label_table
from workbench.sessions import Session
from workbench.store import Event


def labelled(session: Session, n: int) -> list[tuple[int, str]]:
    """Items answered at the desk, each with its operation."""
    given = []
    for _ in range(n):
        card = desk_sync(session)["queue"][0]
        one = operation("label", card, **{"class": "setosa"})
        assert desk_sync(session, one)["acks"][0]["status"] == "saved"
        given.append((card["item"], one["op"]))
    return given


def test_what_was_done_on_history_is_taken_back_at_the_desk_and_said(flowers: Session) -> None:
    (first, _), (second, op) = labelled(flowers, 2)
    assert desk_sync(flowers)["numbers"]["last"] == op
    flowers.items.clear([first])
    # the tab's own last answer is not the last act any more, and the desk can tell
    assert desk_sync(flowers)["numbers"]["last"] == ""
    late = desk_sync(flowers, operation("undo", target=op))["acks"][0]
    assert late["status"] == "conflict" and "something else since" in late["why"]
    assert first not in flowers.state.labels and second in flowers.state.labels

    ack = desk_sync(flowers, operation("undo", target=None))["acks"][0]
    name = flowers.pool.items.ids[first]
    assert ack["about"] == {
        "op": "",
        "words": f"labels of {name} removed",
        "items": [{"item": first, "kind": "label", "class": "setosa", "flag": False}],
    }
    reply = desk_sync(flowers, operation("undo", target=op))
    assert reply["acks"][0]["about"]["words"] == f"{flowers.pool.items.ids[second]} labelled setosa"
    assert reply["acks"][0]["about"]["items"][0]["kind"] == ""
    assert reply["numbers"]["put"] == op
    back = desk_sync(flowers, operation("redo", target=op))
    assert back["acks"][0]["about"]["op"] == op and second in flowers.state.labels


@pytest.mark.parametrize("what", ["flagged", "noted", "decided"])
def test_what_is_done_to_many_rows_is_one_act(flowers: Session, what: str) -> None:
    items = [item for item, _ in labelled(flowers, 3)]
    before = len(flowers.log.events)
    if what == "flagged":
        flowers.items.flag(items, True)
        assert set(flowers.state.flagged) == set(items)
    elif what == "noted":
        flowers.items.note(items, "blurred")
        assert set(flowers.state.notes) == set(items)
    else:
        flowers.items.resolve(items, "virginica")
        assert {flowers.state.labels[item] for item in items} == {"virginica"}
        assert all(flowers.state.standing[item].final for item in items)
    assert len(flowers.log.events) == before + 1
    # it leaves the program and comes back as what it is
    rows = {row["item"]: row for row in label_table(flowers)}
    assert set(rows) >= set(items)
    last = json.loads(export_labels(flowers, "jsonl", "history").splitlines()[-1])
    assert json.loads(last["details"])["items"] == items
    check_event(last["kind"], json.loads(last["details"]), "It")
    flowers.undo()
    state = flowers.state
    assert not state.flagged and not state.notes
    assert {state.labels[item] for item in items} == {"setosa"}


def test_every_act_that_can_be_undone_has_words(flowers: Session) -> None:
    from workbench.store.events import UNDOABLE

    about = {
        "class": "setosa",
        "into": "virginica",
        "name": "new",
        "item": 3,
        "items": [3, 4],
        "text": "a",
        "labels": [[3, "setosa"]],
        "classes": ["setosa"],
        "on": True,
    }
    for kind in UNDOABLE:
        words = acts.in_words(flowers, Event(kind, about))
        assert words and words != kind, kind
    assert acts.taken_back(flowers, None) == "There is nothing to take back."


def test_a_class_that_is_typed_comes_with_its_label_and_goes_with_one_undo(tmp_path: Path) -> None:
    session = table(tmp_path, [])
    card = desk_sync(session)["queue"][0]
    typed = operation("label", card, **{"class": "cat", "new": True})
    reply = desk_sync(session, typed)
    assert reply["acks"][0]["status"] == "saved" and [c["name"] for c in reply["asked"][0]["classes"]] == [
        "cat"
    ]
    assert session.state.labels == {card["item"]: "cat"}
    # a second tab that typed it too, and one that knows it
    again = desk_sync(session)["queue"][0]
    assert desk_sync(session, operation("label", again, **{"class": "cat", "new": True}))["acks"][0]["status"]
    assert session.state.classes == ("cat",) and len(session.state.labels) == 2
    session.undo()
    session.undo()
    assert session.state.labels == {} and session.state.classes == ()


@pytest.mark.parametrize("name", ["", "  ", "x" * 3000])
def test_what_is_no_name_of_a_class_is_refused(tmp_path: Path, name: str) -> None:
    session = table(tmp_path, [])
    card = desk_sync(session)["queue"][0]
    ack = desk_sync(session, operation("label", card, **{"class": name, "new": True}))["acks"][0]
    assert ack["status"] == "refused" and session.state.labels == {} and session.state.classes == ()


def test_a_new_class_never_takes_the_key_of_one_that_was_renamed(tmp_path: Path) -> None:
    session = table(tmp_path, ["cat", "dog"])
    session.classes.rename("cat", "lion")
    card = desk_sync(session)["queue"][0]
    desk_sync(session, operation("label", card, **{"class": "cat", "new": True}))
    assert session.state.classes == ("lion", "dog", "cat")
    assert session.state.labels == {card["item"]: "cat"}
    # without the word that it is new a name that there is not is refused, as ever
    other = desk_sync(session)["queue"][0]
    assert desk_sync(session, operation("label", other, **{"class": "owl"}))["acks"][0]["status"] == "refused"


def test_what_an_undo_took_is_told_in_the_words_of_its_question(tmp_path: Path) -> None:
    session = table(tmp_path, ["cat", "dog"])
    tone = session.questions.add(("tone", ["cat", "bad"]))
    tone.classes.rename("cat", "good")
    tone.items.label(0, "good")
    event, words = acts.take_back(session, tone.state.undoable[session.annotator].id)
    assert event is not None and words.endswith("labelled good.")


def test_what_is_given_beside_the_map_is_ones_own_choice_and_one_undo(flowers: Session) -> None:
    items = flowers.pool.trainable[40:43].tolist()
    sent = operation("choose", items=items, **{"class": "setosa"})
    assert desk_sync(flowers, sent)["acks"][0]["status"] == "saved"
    assert {flowers.state.labels[item] for item in items} == {"setosa"}
    assert {flowers.state.standing[item].role for item in items} == {"map"}
    assert desk_sync(flowers, operation("undo", target=sent["op"]))["acks"][0]["status"] == "saved"
    assert not flowers.state.labels
