"""Batches, grids, questions given back, several people, another model: what the desk relies on."""

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sessions.conftest import answer
from tests.sessions.fakes import FAKE
from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions import Event, Operation, Session
from workbench.store import Store, fold

Start = Callable[..., Session]


def labels_of(session: Session) -> list[Event]:
    return [e for e in session.log.events if e.kind == "label"]


def test_a_batch_is_acknowledged_once_and_not_repeated(start: Start) -> None:
    session = start()
    one, two, three = session.ask(3)
    batch = [
        Operation("o1", "label", ask=one.id, label="setosa", more={"milliseconds": 812}),
        Operation("o2", "skip", ask=two.id),
        Operation("o3", "undo", takes="o2"),
        Operation("o4", "note", item=three.item, text="blurred"),
    ]
    first = session.apply(batch)
    n = len(session.log.events)
    assert [(a.operation, a.status) for a in first] == [(f"o{i}", "saved") for i in (1, 2, 3, 4)]
    assert session.apply(batch) == first and len(session.log.events) == n
    (label,) = labels_of(session)
    assert (label.operation, label.payload["milliseconds"]) == ("o1", 812)
    assert session.state.labels == {one.item: "setosa"} and not session.state.skipped
    assert session.tell(one.id, "virginica", operation="o1") and len(session.log.events) == n
    again = Session.open(session.id, annotator="ann", store=session.store)
    assert again.apply(batch) == first


def test_each_operation_of_a_batch_is_answered_for_itself(start: Start, store: Store) -> None:
    ann = start()
    one, two = ann.ask(2)
    Session.open(ann.id, annotator="ann", store=store).items.label(one.item, "setosa")  # in another tab
    found = ann.apply(
        [
            Operation("a", "label", ask=one.id, label="virginica"),
            Operation("b", "label", ask="nope", label="virginica"),
            Operation("c", "label", ask=two.id, label="tulip"),
            Operation("d", "label", ask=two.id, label="virginica"),
            Operation("e", "undo", takes="a"),
            Operation("f", "dance"),
            Operation("g" * 65, "redo"),
            Operation("h", "redo"),
        ]
    )
    assert [a.status for a in found] == [
        "conflict",
        "refused",
        "refused",
        "saved",
        "conflict",
        "refused",
        "refused",
        "conflict",
    ]
    assert all(a.why for a in found if a.status != "saved")
    assert "no question 'nope'" in found[1].why and "no class 'tulip'" in found[2].why
    assert ann.state.labels == {one.item: "setosa", two.item: "virginica"}


def test_a_batch_is_one_transaction(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    session = start()
    asks = session.ask(3)
    before = len(session.log.events)
    from workbench.store.log import Recorder

    plain, calls = Recorder.add, []

    def failing(self: Recorder, event: Event) -> Event:
        calls.append(event)
        if len(calls) == 3:
            raise OSError("no space left on device")
        return plain(self, event)

    monkeypatch.setattr(Recorder, "add", failing)
    batch = [Operation(f"o{i}", "label", ask=a.id, label="setosa") for i, a in enumerate(asks)]
    with pytest.raises(OSError, match="no space"):
        session.apply(batch)
    assert len(session.log.events) == before and session.state.labels == {}
    assert [a.status for a in session.apply(batch)] == ["saved"] * 3
    assert session.state.n_labelled == 3


def test_an_undo_that_names_its_event_takes_one(start: Start) -> None:
    session = start()
    one, two = session.ask(2)
    session.tell(one.id, "setosa")
    session.tell(two.id, "setosa")
    last = session.log.events[-1].id
    taken = session.undo(last)
    assert taken is not None and taken.id == last and session.undo(last) is None
    assert session.state.labels == {one.item: "setosa"}


def test_a_reopened_item_comes_before_open_questions(start: Start) -> None:
    session = start()
    one, *others = session.ask(4)
    session.tell(one.id, "setosa")
    session.undo()
    for session_now in (session, Session.open(session.id, annotator="ann", store=session.store)):
        (first,) = session_now.ask()
        assert (first.item, first.role) == (one.item, "again")
    assert [a.id for a in session.ask(4)[1:]] == [a.id for a in others]


def test_questions_given_back_are_free_and_chosen_anew(start: Start, store: Store, iris: Pool) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    answer(ann, iris, 8)
    ann.refit()
    old = ann.ask(4)
    answer(bob, iris, 4)
    ann.refit()
    assert ann.queue.release([a.id for a in old[1:]] + ["nope"]) == [a.id for a in old[1:]]
    assert ann.queue.release([old[1].id]) == [] == bob.queue.release([old[0].id])
    new = ann.ask(4)
    assert new[0] == old[0] and {a.round for a in new[1:]} == {1}
    # an answer that was on its way is not lost while its item is free
    free = next((a for a in old[1:] if a.item not in {b.item for b in new}), None)
    if free is not None:
        assert ann.tell(free.id, "setosa") and ann.state.labels[free.item] == "setosa"


def test_a_question_given_back_is_not_answered_over_somebody_else(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    (given,) = ann.ask()
    ann.queue.release([given.id])
    (his,) = bob.ask()
    assert his.item == given.item
    assert not ann.tell(given.id, "setosa") and bob.tell(his.id, "virginica")


def told(session: Session, ask: str, label: str = "setosa", kind: str = "label") -> str:
    """Outcome of a key pressed at the desk."""
    (ack,) = session.apply([Operation(secrets.token_hex(4), kind, ask=ask, label=label)])
    return ack.status


def test_a_key_that_comes_late_is_one_more_vote(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    one, two = ann.ask(2)
    ann.queue.release([one.id, two.id])
    his, other = bob.ask(2)
    assert [his.item, other.item] == [one.item, two.item]
    # Ann saw the first when it was given back: her key counts, and so does the one Bob presses after it
    assert told(ann, one.id, "setosa") == told(bob, his.id, "virginica") == "saved"
    votes = ann.state.votes[one.item]
    assert {who: vote.key for who, vote in votes.items()} == {"ann": "setosa", "bob": "virginica"}
    assert ann.state.undecided == {one.item} and one.item not in ann.state.training
    # the other way round: answered by Bob, then by Ann
    assert told(bob, other.id, "virginica") == told(ann, two.id, "virginica") == "saved"
    assert ann.state.labels[two.item] == "virginica" and len(ann.state.votes[two.item]) == 2
    # each answers once, and nobody another's question
    assert told(ann, one.id, "virginica") == told(bob, two.id) == told(ann, his.id) == "conflict"
    assert ann.undo() is not None and set(ann.state.votes[two.item]) == {"bob"}
    assert Session.open(ann.id, annotator="ann", store=store).state == ann.state


def test_a_late_skip_leaves_the_label_of_somebody_else(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    one, two = ann.ask(2, lease=-1.0)
    answers = [(bob.ask(2)[k], kind) for k, kind in enumerate(("skip", "unsure"))]
    for (his, _), name in zip(answers, ("setosa", "virginica"), strict=True):
        assert told(bob, his.id, name) == "saved"
    for mine, (_, kind) in zip((one, two), answers, strict=True):
        assert told(ann, mine.id, "", kind) == "saved"
    assert ann.state.labels == {one.item: "setosa", two.item: "virginica"}
    assert not ann.state.skipped and not ann.state.unsure


def test_a_question_still_looked_at_is_taken_back_and_comes_first(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    one, two, three = ann.ask(3)
    ann.queue.release([one.id, two.id])
    his = bob.ask()[0]
    assert his.item == one.item
    assert ann.queue.reclaim([one.id, two.id, three.id, "nope"]) == [two.id]  # Bob looks at the first
    assert [a.id for a in ann.ask(2)] == [two.id, three.id]
    assert two.item not in {a.item for a in bob.ask(4)}
    n = len(ann.log.events)
    assert ann.queue.reclaim([two.id]) == [] == bob.queue.reclaim([two.id]) and len(ann.log.events) == n
    assert Session.open(ann.id, annotator="ann", store=store).state == ann.state


def test_questions_of_the_evaluation_set_are_not_given_back(start: Start, unknown: Pool) -> None:
    session = start(unknown, evaluation_share=0.9)
    asks = session.ask(6)
    drawn = [a.id for a in asks if a.role == "evaluation"]
    assert drawn and not set(session.queue.release([a.id for a in asks])) & set(drawn)


def test_questions_given_back_draw_no_more_items_for_measuring(start: Start, unknown: Pool) -> None:
    session = start(unknown, evaluation_share=0.25, early_share=0.25)
    n = 60
    for _ in range(n):
        asks = session.ask(4)
        assert session.tell(asks[0].id, "setosa")
        session.queue.release([a.id for a in asks[1:]])
    # four cards, three given back after every answer: a quarter of the questions and not of the draws
    assert 8 <= len(session.state.evaluation) <= 24
    assert session.state.places <= session.state.most_places <= n + 12
    assert Session.open(session.id, store=session.store).state == session.state


def test_what_somebody_left_unmeasured_is_asked_of_the_next(
    start: Start, unknown: Pool, store: Store
) -> None:
    ann = start(unknown, evaluation_share=0.5, early_share=0.5)
    left = [a.item for a in ann.ask(12, lease=-1.0) if a.role == "evaluation"]
    bob = Session.open(ann.id, annotator="bob", store=store)
    his = [a.item for a in bob.ask(12) if a.role == "evaluation"]
    assert left and his[: len(left)] == sorted(left)[: len(his)]


def test_skipped_items_can_be_asked_again(start: Start) -> None:
    session = start()
    one, two, three = session.ask(3)
    session.tell(one.id, Event.skip())
    session.tell(two.id, Event.unsure())
    assert session.items._event("requeue", items=[one.item, three.item]).payload["items"] == [one.item]
    asks = session.ask(2)
    assert {a.item for a in asks} == {one.item, three.item}
    assert {a.role for a in asks if a.item == one.item} == {"again"}
    assert session.items._event("requeue").payload["items"] == [two.item]
    assert session.items._do("requeue").event is None
    assert session.undo() is not None and session.state.unsure == {two.item}


def test_two_people_never_get_one_item(start: Start, iris: Pool) -> None:
    ann = start()
    bob = ann.as_annotator("bob")
    assert bob.pool is ann.pool and bob.annotator == "bob"
    seen: dict[str, list[int]] = {"ann": [], "bob": []}
    for _ in range(10):
        for session in (ann, bob):
            seen[session.annotator] += [a.item for a in session.ask(3)]
            seen[session.annotator] += answer(session, iris, 1)
        ann.refit()
    assert not set(seen["ann"]) & set(seen["bob"])
    assert {v.annotator for v in ann.state.standing.values()} == {"ann", "bob"}
    with pytest.raises(InputError, match="needs a name"):
        ann.as_annotator(" ")


def test_shared_items_are_labelled_by_as_many_people_as_was_said(start: Start, iris: Pool) -> None:
    ann = start(overlap=0.3, people=2)
    people = [ann, ann.as_annotator("bob"), ann.as_annotator("eve")]
    for _ in range(14):
        for session in people:
            answer(session, iris, 1)
    votes = ann.state.votes
    counts = np.bincount([len(v) for v in votes.values()])
    assert counts.size == 3 and counts[2] >= 5 and counts[1] > counts[2]
    seconds = [e for e in labels_of(ann) if e.payload["role"] == "overlap"]
    assert len(seconds) == counts[2]
    assert ann.state.n_labelled == len(votes) == 42 - counts[2]
    with pytest.raises(InputError, match=r"'overlap' is 2\.0: it is a share"):
        start(overlap=2.0)


def test_a_grid_is_confirmed_as_one_event(start: Start, store: Store, iris: Pool) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    with pytest.raises(InputError, match="no model yet"):
        ann.predictions.grid("setosa")
    answer(ann, iris, 12)
    ann.refit()
    asks = ann.predictions.grid("setosa", 8)
    assert len(asks) == 8 and {a.role for a in asks} == {"grid"}
    assert ann.model is not None
    p = ann.model.probabilities[[a.item for a in asks]]
    assert (p.argmax(axis=1) == 0).all() and (np.diff(p[:, 0]) >= 0).all()
    assert not {a.item for a in asks} & {
        a.item for a in (*ann.ask(3), *bob.ask(8), *bob.predictions.grid("setosa", 8))
    }
    bob.items.label(asks[0].item, "virginica")
    ids = [a.id for a in asks]
    before = len(ann.log.events)
    done = ann.queue.confirm(ids[:6], "setosa", ids[6:], operation="g1")
    assert (done.status, done.left_out) == ("saved", (asks[0].item,))
    assert ann.queue.confirm(ids[:6], "setosa", ids[6:], operation="g1").status == "saved"
    assert len(ann.log.events) == before + 1 and ann.log.events[-1].kind == "confirmed"
    labels = ann.state.labels
    assert all(labels[a.item] == "setosa" for a in asks[1:6])
    assert not {a.item for a in asks[6:]} & set(labels)
    assert {a.item for a in asks[1:6]} <= set(ann.state.training)
    assert ann.queue.confirm(ids[:2], "setosa").status == "conflict"
    assert ann.undo() is not None and not {a.item for a in asks[1:6]} & set(ann.state.labels)


@pytest.mark.parametrize(("n", "right", "offered"), [(19, 0, True), (20, 17, False), (20, 18, True)])
def test_items_of_a_class_are_confirmed_together_where_its_measured_precision_bears_it(
    start: Start,
    unknown: Pool,
    iris: Pool,
    monkeypatch: pytest.MonkeyPatch,
    n: int,
    right: int,
    offered: bool,
) -> None:
    session = start(unknown)
    answer(session, iris, 20)
    session.refit()
    model = session.model
    assert model is not None and iris.truth is not None
    mine = np.flatnonzero(model.probabilities.argmax(axis=1) == 0)[:n]
    truth = np.where(np.arange(n) < right, 0, 1)
    monkeypatch.setattr("workbench.sessions.predictions.held_out", lambda *_: (mine, truth))
    assert session.predictions.precision("setosa") == (n, right)
    assert ("setosa" in {one.name for one in session.predictions.classes()}) is offered
    told = (
        "not measured yet"
        if n < 20
        else f"Of {n} measured items that the model takes for setosa, {right} are"
    )
    assert told in session.predictions.precision("setosa").words("setosa")
    if offered:
        assert session.predictions.grid("setosa", 4)
    else:
        with pytest.raises(InputError, match=r"90\s% or more"):
            session.predictions.grid("setosa", 4)


def test_confirmed_items_are_never_measured_on(start: Start, unknown: Pool, iris: Pool) -> None:
    session = start(unknown, evaluation_share=0.5)
    answer(session, iris, 20)
    session.refit()
    asks = session.predictions.grid("setosa", 10)
    session.queue.confirm([a.id for a in asks], "setosa")
    assert asks and not {a.item for a in asks} & set(session.fits.held_out()[0].tolist())
    assert not {a.item for a in asks} & session.state.evaluation


def test_the_model_of_an_open_project_can_be_changed(start: Start, store: Store, iris: Pool) -> None:
    session = start()
    answer(session, iris, 8)
    session.refit()
    before = session.fits.model_at(0).probabilities
    assert session.change_model(policy="margin") is None and not session.stale
    event = session.change_model(policy="random", options={"sharpness": 2.0})
    assert event is not None and event.kind == "model-changed" and session.stale
    assert session.settings["policy"] == "random" and session.settings["options"] == {"sharpness": 2.0}
    assert session.refit() is not None and not session.stale
    assert session.model is not None and session.model.estimator.sharpness == 2.0
    (ask,) = session.ask()
    session.tell(ask.id, "setosa")
    assert session.log.events[-1].payload["policy"] == "random"
    again = Session.open(session.id, store=store)
    assert again.settings["policy"] == "random" and again.model is not None
    assert again.model.estimator.sharpness == 2.0
    # an earlier round is replayed with what it was made with
    assert np.allclose(again.fits.model_at(0).probabilities, before)
    for wrong, message in (
        ({"classifier": "large-margins"}, "Did you mean"),
        ({"policy": "nope"}, "no policy called"),
        ({"options": {"sharp": 1}}, "no option 'sharp'"),
        ({"classifier": "logistic-regression", "policy": "variation-ratio"}, "needs latent functions"),
    ):
        with pytest.raises(InputError, match=message):
            session.change_model(**wrong)  # type: ignore[arg-type]
    changed = session.change_model(classifier="logistic-regression", policy="margin")
    assert changed is not None and session.settings["options"] == {}
    assert session.project.settings["classifier"] == FAKE


steps = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["ask", "label", "skip", "undo", "redo", "release", "again", "repeat", "grid"]),
        st.integers(0, 3),
    ),
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps)
def test_whatever_people_do_nobody_answers_for_another(
    start: Start, iris: Pool, plan: list[tuple[str, str, int]]
) -> None:
    """Undo takes one's own last; a repeated operation changes nothing; open questions never collide."""
    ann = start()
    answer(ann, iris, 4)
    ann.refit()
    people = {"ann": ann, "bob": ann.as_annotator("bob")}
    sent: list[tuple[str, Operation]] = []
    for number, (who, what, n) in enumerate(plan):
        session = people[who]
        before = session.state
        if what == "ask":
            session.ask(n + 1)
        elif what in ("label", "skip"):
            asks = session.ask(n + 1)
            operation = Operation(f"op{number}", what, ask=asks[-1].id, label="setosa")
            assert session.apply([operation])[0].status == "saved"
            sent.append((who, operation))
        elif what == "undo":
            last = before.undoable.get(who)
            assert session.undo() == last and (last is None or last.annotator == who)
        elif what == "redo":
            assert session.redo() == before.redoable.get(who)
        elif what == "release":
            session.queue.release([a.id for a in session.ask(n + 1)][1:])
        elif what == "again":
            session.items._do("requeue")
        elif what == "grid":
            asks = session.predictions.grid("setosa", n + 1)
            if asks:
                session.queue.confirm([a.id for a in asks], "setosa")
        elif sent:
            who_sent, operation = sent[n % len(sent)]
            assert people[who_sent].apply([operation])[0].status == "saved"
            assert people[who_sent].state.n_events == before.n_events
        state = ann.state
        held = {p: {a.item for a in s._questions.waiting(state, p)} for p, s in people.items()}
        assert not held["ann"] & held["bob"]
    reopened = Session.open(ann.id, annotator="ann", store=ann.store)
    assert reopened.state == ann.state
    assert list(reopened.state.training) == list(ann.state.training)


def test_changing_the_policy_does_not_vouch_for_the_classifier(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench import registry

    session = start()
    monkeypatch.setattr(registry, "_trusted", set())
    with pytest.raises(InputError, match="names code of its own"):
        session.change_model(policy="random")
    assert not registry._trusted


def test_an_id_that_was_used_for_something_else_is_refused(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    (mine,), (yours, another) = ann.ask(), bob.ask(2)
    assert ann.apply([Operation("1", "label", ask=mine.id, label="setosa")])[0].status == "saved"
    for operation in (
        Operation("1", "label", ask=yours.id, label="virginica"),
        Operation("1", "answers", item=yours.item, answers={bob.question_name: "virginica"}),
    ):
        (refused,) = bob.apply([operation])
        assert refused.status == "refused" and "an id of its own" in refused.why
    assert bob.apply([Operation("2", "label", ask=yours.id, label="virginica")])[0].status == "saved"
    assert bob.apply([Operation("2", "label", ask=another.id, label="setosa")])[0].status == "refused"
    assert ann.state.labels == {mine.item: "setosa", yours.item: "virginica"}


def test_provenance_has_no_field_of_an_event(start: Start, store: Store) -> None:
    session = start()
    (ask,) = session.ask()
    for event in (
        Event.label("setosa", n_items=999),
        Event.label("setosa", final=True),
        Event("note", {"text": "hm", "items": [400]}),
    ):
        with pytest.raises(InputError, match="is none of provenance"):
            session.tell(ask, event)
    with pytest.raises(InputError, match="question is about item"):
        session.tell(ask, Event.label("setosa", ask.item + 1))
    with pytest.raises(InputError, match="is none of provenance"):
        session.tell(ask, {session.question_name: Event.label("setosa", final=True)})
    assert not session.state.labels and session.tell(ask, Event.label("setosa", milliseconds=5))
    assert Session.open(session.id, store=store).state.labels == {ask.item: "setosa"}


def test_a_correction_after_a_second_look_leaves_the_first_answer(start: Start) -> None:
    session = start()
    (ask,) = session.ask()
    session.tell(ask, "setosa")
    session.items.look_again(items=[ask.item])
    (again,) = session.ask()
    assert again.role == "second" and session.tell(again, "virginica")
    session.items._event("correct", item=ask.item, label="versicolor")
    vote = session.state.votes[ask.item][session.annotator]
    assert (vote.first, vote.key) == ("setosa", "versicolor")


def test_classes_of_a_file_stay_apart_whatever_they_are_called(start: Start) -> None:
    session = start()
    name = session.classes[0]
    session.classes.rename(name, "rest")
    session.items.import_labels([(1, name), (2, f"{name}#2")], "f.csv")
    labels = session.state.labels
    assert labels[1] != labels[2] and {name, f"{name}#2"} <= set(session.classes)


def test_a_class_that_an_act_brings_goes_with_its_undo(start: Start) -> None:
    session = start()
    name, other = session.classes[:2]
    session.classes.rename(name, "rest")
    one, two = session.ask(2)
    session.apply(
        [
            Operation("z", "label", ask=one.id, label=other),
            Operation("a", "label", ask=two.id, label=name, new=True),
        ]
    )
    after = session.classes, session.state.labels
    steps = [Operation("u1", "undo", takes="a"), Operation("u2", "undo", takes="z")]
    assert [done.status for done in session.apply(steps)] == ["saved", "saved"]
    assert name not in session.classes and not session.state.labels
    assert [session.redo().item, session.redo().item] == [one.item, two.item]
    assert (
        (session.classes, session.state.labels) == after == (session.classes, fold(session.log.events).labels)
    )
    session.items.import_labels([(5, "zeta"), (6, "eta")], "f")
    assert session.undo().kind == "imported"
    assert (session.classes, session.state.labels) == after


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("item", [None, 3.7, True, "3"]),
        ("items", [5, ["x"], "12"]),
        ("asks", [None, "abc", [5]]),
        ("more", [None, 5, {"seconds": float("nan")}, {"item": 999}, {"check": 7}]),
        ("text", [None, 5]),
        ("on", ["no"]),
    ],
)
def test_a_field_of_another_type_makes_no_operation(name: str, wrong: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(InputError, match=name):
            Operation("a", "flag", **{name: value})


def test_what_is_no_operation_of_a_client_leaves_the_others_as_they_are(start: Start) -> None:
    session = start()
    given = [
        Operation("1", "flag", item=3),
        Operation("2", "model", value={"classifier": "nope"}),
    ]
    assert [done.status for done in session.apply(given)] == ["saved", "refused"]
    assert list(session.state.flagged) == [3]
    with pytest.raises(InputError, match="Operation"):
        session.apply([Operation("5", "flag", item=5), "abc"])
    with pytest.raises(InputError, match="text"):
        session.items.flag(3, reason=None)
    assert list(session.state.flagged) == [3]


def test_a_grid_closes_no_question_of_somebody_else(start: Start) -> None:
    ann = start()
    bob = ann.as_annotator("bob")
    [mine], [theirs] = ann.ask(), bob.ask()
    assert ann.queue.confirm([mine.id], ann.classes[0], [theirs.id]).status == "saved"
    assert bob.tell(theirs, ann.classes[1])
