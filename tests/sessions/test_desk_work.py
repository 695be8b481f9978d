"""Acts of a person besides answering: correcting, review, wishes, second looks, classes."""

from collections.abc import Callable

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.sessions import Operation, Session
from workbench.sessions.taxonomy import code_book

Start = Callable[..., Session]


def answered(session: Session, n: int, name: str = "setosa") -> list[int]:
    items = []
    for ask in session.ask(n):
        session.tell(ask.id, name)
        items.append(ask.item)
    return items


def test_an_earlier_answer_is_corrected_in_its_own_role(start: Start) -> None:
    ann = start()
    one, two = answered(ann, 2)
    role = ann.state.standing[one].role
    (done,) = ann.apply([Operation("c1", "correct", item=one, label="virginica")])
    assert done.status == "saved" and ann.state.labels == {one: "virginica", two: "setosa"}
    event = ann.log.events[-1]
    assert (event.payload["role"], event.payload["was"], event.payload["corrected"]) == (role, "setosa", True)
    ann.items._event("correct", item=two, label="")
    assert two in ann.state.unsure
    ann.items._event("correct", item=two, label="versicolor")
    ann.undo()
    assert two in ann.state.unsure
    with pytest.raises(InputError, match="no answer of yours"):
        ann.as_annotator("bob").items._event("correct", item=one, label="setosa")


def test_many_are_relabelled_and_cleared_as_one_and_a_review_decides(start: Start) -> None:
    ann = start()
    bob = ann.as_annotator("bob")
    items = answered(ann, 3)
    for item in items[:2]:
        bob.items.label(item, "virginica")
    assert ann.state.undecided == set(items[:2]) and set(ann.state.training) <= {items[2]}
    assert bob.apply([Operation("r", "relabel", items=items, label="versicolor")])[0].status == "saved"
    assert set(ann.state.labels.values()) == {"versicolor"} and not ann.state.undecided
    bob.undo()
    assert ann.state.undecided == set(items[:2]) and ann.state.labels[items[2]] == "setosa"
    bob.items.clear(items)
    assert not ann.state.labels
    bob.undo()
    assert len(ann.state.labels) == 3
    assert ann.items.label(items, "setosa") is not None and ann.undo() is not None
    assert ann.state.undecided == set(items[:2])
    with pytest.raises(InputError, match="Nothing is decided"):
        ann.items.clear([int(np.setdiff1d(ann.pool.trainable, items)[0])])


def test_wanted_items_are_asked_next_of_who_wants_them_and_recorded_so(start: Start) -> None:
    ann = start()
    first = ann.ask(4)
    free = np.setdiff1d(ann.pool.trainable, [a.item for a in first])[[5, 3, 9]].tolist()
    ann.items.want(free, "search: tail")
    asks = ann.ask(3)
    assert [a.item for a in asks if a.role == "chosen"] == free or {a.role for a in asks} == {
        "chosen",
        "evaluation",
    }
    assert ann.as_annotator("bob").ask(1)[0].role != "chosen"
    chosen = next(a for a in asks if a.role == "chosen")
    ann.tell(chosen.id, "setosa")
    assert ann.log.events[-1].payload["policy"] == "chosen by person"
    with pytest.raises(InputError, match="None of these items can be asked"):
        ann.items.want([chosen.item])


def test_a_second_look_asks_blind_and_keeps_both_answers(start: Start) -> None:
    ann = start()
    items = answered(ann, 4)
    ann.items.look_again(2)
    asks = [a for a in ann.ask(4) if a.role == "second"]
    assert len(asks) == 2 and {a.item for a in asks} <= set(items)
    assert not [a for a in ann.as_annotator("bob").ask(4) if a.role == "second"]
    assert ann.tell(asks[0].id, "virginica") and ann.tell(asks[1].id, "setosa")
    votes = [ann.state.standing[a.item] for a in asks]
    assert [(v.first, v.key) for v in votes] == [("setosa", "virginica"), ("setosa", "setosa")]
    assert not [a for a in ann.ask(4) if a.role == "second"]
    ann.items.look_again(9)  # only those that were not looked at twice
    assert {a.item for a in ann.ask(9) if a.role == "second"} == set(items) - {a.item for a in asks}
    with pytest.raises(InputError, match="labelled none"):
        ann.as_annotator("bob").items.look_again(3)


def test_classes_are_described_ordered_and_removed(start: Start) -> None:
    ann = start()
    ann.classes.add("weed")
    ann.classes.describe("weed", guidance=" No   flower\nat all ", shortcut="W", colour="#2A9D5C")
    ann.classes.order(["weed", "virginica"])
    book = code_book(ann.state)
    assert [row["class"] for row in book] == ["weed", "virginica", "setosa", "versicolor"]
    assert book[0]["guidance"] == "No flower at all" and (book[0]["code"], book[0]["shortcut"]) == (3, "w")
    for wrong in ({"colour": "red"}, {"shortcut": "!"}, {"guidance": "x" * 400}):
        with pytest.raises(InputError):
            ann.classes.describe("setosa", **wrong)
    with pytest.raises(InputError, match="that of class 'weed'"):
        ann.classes.describe("setosa", shortcut="w")
    item = answered(ann, 1, "weed")[0]
    with pytest.raises(InputError, match="1 label names class 'weed'"):
        ann.classes.remove("weed")
    ann.undo()
    ann.classes.remove("weed")
    assert "weed" not in ann.classes and item not in ann.state.labels
    with pytest.raises(InputError, match="pool's own column knows"):
        ann.classes.remove("setosa")


def test_two_people_rename_one_class_at_once(start: Start) -> None:
    ann = start()
    bob = ann.as_annotator("bob")
    ann.classes.rename("setosa", "bristly")
    with pytest.raises(InputError, match="called 'bristly' now: it was renamed meanwhile"):
        bob.classes.rename("setosa", "smooth")
    assert "bristly" in ann.classes
    long = ("<b>x</b>/\N{HIBISCUS}" * 40)[:300]
    bob.classes.rename("bristly", long)
    assert answered(bob, 1, long) and list(bob.state.labels.values()) == [long]
    with pytest.raises(InputError, match="at most 300"):
        bob.classes.rename(long, long + "x")
