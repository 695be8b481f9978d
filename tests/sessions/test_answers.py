"""Answers to several questions of an item: one act, whole or refused, and told again as before."""

import threading

import pytest

from tests.sessions.several import TOPIC, begun
from workbench.errors import InputError
from workbench.sessions import Event, Operation
from workbench.sessions.answering import Answers
from workbench.sessions.project import OpenProject
from workbench.store import EventFold, Store
from workbench.store.log import Recorder


def test_one_answer_that_comes_too_late_leaves_the_others_as_they_are(store):
    session = begun(store)
    ask = session.queue.items()[0]
    session.question("fraud").items.label(ask.item, "no")
    assert not session.tell(ask, {"topic": "refund", "fraud": True})
    assert session.state.labels[ask.item] == "refund"
    assert session.question("fraud").state.labels[ask.item] == "no"
    assert session.tell(ask, {"fraud": False})  # what stands already


def test_an_answer_by_the_id_of_one_question_takes_the_others_along(store):
    session = begun(store)
    ask = session.ask()[0]
    assert session.tell(ask.id, {"topic": "other", "fraud": None}, operation="a1")
    assert session.tell(ask.id, {"topic": "other", "fraud": None}, operation="a1")
    assert ask.item in session.question("fraud").state.unsure


def test_what_is_about_the_item_stands_with_every_question(store):
    session = begun(store)
    fraud = session.question("fraud")
    session.items.flag(4)
    assert 4 in fraud.state.flagged
    session.items.note(4, "twice")
    assert [note.text for note in fraud.state.notes[4]] == ["twice"]
    session.undo()
    assert 4 not in fraud.state.notes and 4 in fraud.state.flagged
    ask = session.queue.items()[0]
    assert session.tell(ask, Event.skip())
    assert ask.item in session.state.skipped and ask.item in fraud.state.skipped


def test_what_python_says_of_several_questions_is_one_act_and_no_operation_of_a_client(store):
    session = begun(store)
    session.tell(session.queue.items()[0], {"topic": "refund", "fraud": True})
    [act] = {one.log.events[-1].act for one in session.questions.sessions()}
    assert act and not session.state.operations
    assert session.apply([Operation(act, "flag", item=3)])[0].status == "refused"


def test_an_item_that_is_measured_on_is_set_aside_in_all_questions(store):
    session = begun(store, early_share=0.9, evaluation_share=0.9)
    asks = session.queue.items(12)
    ask = next(one for one in asks if {ask.role for ask in one.asks.values()} == {"evaluation"})
    session.apply([Operation("1", "answers", item=ask.item, text="skip")])
    assert all(ask.item in one.state.skipped for one in session.questions.sessions())


def test_the_desks_operations_are_told_to_every_question(store):
    session = begun(store)
    fraud = session.question("fraud")
    [ask] = session.ask()
    done = session.apply(
        [
            Operation("1", "flag", item=ask.item),
            Operation("2", "skip", ask=ask.id),
            Operation("3", "answers", item=9, answers={"topic": "refund", "fraud": "no"}),
            Operation("4", "answers", item=9, answers={"topic": "other"}),
            Operation("5", "answers", item=8, answers={"tone": "bad"}),
        ]
    )
    assert [ack.status for ack in done] == ["saved", "saved", "saved", "conflict", "refused"]
    assert ask.item in fraud.state.skipped and ask.item in fraud.state.flagged
    assert (session.state.codes[9], fraud.state.codes[9]) == (0, 1)
    session.apply([Operation("6", "undo", takes="3")])
    assert 9 not in session.state.codes and 9 not in fraud.state.codes
    session.apply([Operation("7", "undo", takes="2")])
    assert ask.item not in fraud.state.skipped


def test_second_opinions_and_second_looks_are_taken_in_a_row(store):
    session = begun(store, overlap=1.0, people=2)
    said = {"topic": "refund", "fraud": "no"}
    item = session.queue.items()[0].item
    session.apply([Operation("a", "answers", item=item, answers=said)])
    bob = session.as_annotator("bob")
    assert bob.queue.items()[0].item == item
    assert bob.apply([Operation("b", "answers", item=item, answers=said)])[0].status == "saved"
    assert all(set(one.state.votes[item]) == {"ann", "bob"} for one in session.questions.sessions())
    session.items.look_again(items=[item])
    assert session.queue.items()[0].item == item
    [ack] = session.apply([Operation("c", "answers", item=item, answers={"topic": "other"})])
    vote = session.state.votes[item]["ann"]
    assert ack.status == "saved" and (vote.first, vote.key) == ("refund", "other")


def test_of_a_row_what_is_open_is_stored_and_the_rest_named(store):
    session = begun(store)
    item = session.queue.items()[0].item
    session.question("fraud").as_annotator("bob").items.label(item, "no")
    row = Operation("a", "answers", item=item, answers={"topic": "refund", "fraud": "yes"})
    [ack] = session.apply([row])
    assert ack.status == "saved" and "'fraud'" in ack.why
    assert session.state.labels[item] == "refund"
    assert list(session.question("fraud").state.votes[item]) == ["bob"]


def test_what_is_refused_or_too_late_throws_no_fold_away(store):
    """To fold a log of many labels anew takes a second, in which everybody waits."""
    session = begun(store)
    ask = session.queue.items()[0].asks["topic"]
    session.as_annotator("bob").items.label(ask.item, "refund")
    ids = [one.id for one in session.questions.sessions()]
    folds = [session._project.log.fold(id_) for id_ in ids]
    late = Operation("a", "label", ask=ask.id, label="other", seen=False)
    none = Operation("b", "choose", items=[ask.item], label="none")
    row = Operation("c", "answers", item=ask.item, answers={"topic": "other", "fraud": "none"})
    acks = session.apply([late, none, row])
    assert [ack.status for ack in acks] == ["conflict", "refused", "refused"]
    assert all(session._project.log.fold(id_) is fold for id_, fold in zip(ids, folds, strict=True))


def test_a_class_named_as_another_one_began_is_told_apart_in_a_row(store):
    session = begun(store)
    session.classes.rename("refund", "money back")
    session.classes.add("refund")
    row = Operation("1", "answers", item=3, answers={"topic": "money back", "fraud": "no"})
    again = Operation("2", "answers", item=3, answers={"topic": "money back"})
    [done, stands] = session.apply([row, again])
    assert (done.status, stands.status, stands.why) == ("saved", "saved", "")
    assert session.state.labels == {3: "money back"}


def test_of_a_row_that_fails_half_way_nothing_stays_in_a_question_put_aside_either(store, monkeypatch):
    session = begun(store, questions=(TOPIC, "fraud", "spam"))
    session.questions.archive("spam")
    [ask] = session.queue.items(1)
    answer = Answers.answer

    def fails_of_the_topic(self, *given, **more):
        if self._project.id == session.id:
            raise InputError("Not this one.")
        return answer(self, *given, **more)

    monkeypatch.setattr(Answers, "answer", fails_of_the_topic)
    with pytest.raises(InputError, match="Not this one"):
        session.tell(ask, {"spam": True, "topic": "refund"})
    assert session.question("spam").state.n_labelled == 0
    monkeypatch.undo()
    assert session.tell(ask, {"spam": True, "topic": "refund"})
    assert session.question("spam").state.labels == {ask.item: "yes"}


@pytest.mark.parametrize("first", [[TOPIC], [TOPIC, "fraud"]], ids=["one", "two"])
def test_a_question_added_while_a_block_waits_for_its_turn_stops_nobody(store, first, monkeypatch):
    session = begun(store, first)
    begin = store.recording

    def begin_after_another_was_added(*known):
        monkeypatch.undo()
        adding = threading.Thread(target=session.as_annotator("lead").questions.add, args=("late",))
        adding.start()
        adding.join()
        return begin(*known)

    monkeypatch.setattr(store, "recording", begin_after_another_was_added)
    asks = session.log.together(lambda: session.queue.items(1))
    assert set(asks[0].asks) >= {"topic"}
    assert session.questions[-1] == "late" and "late" in session.queue.items(1)[0].asks


def test_what_ended_counts_where_a_block_over_questions_raises(store):
    session = begun(store)

    def work():
        session.items.flag(3)
        raise KeyError

    with pytest.raises(KeyError):
        session.log.together(work)
    assert all(3 in one.state.flagged for one in session.questions.sessions())


def test_of_a_block_that_raises_it_is_told_that_what_ended_was_not_stored(store, monkeypatch):
    session = begun(store)

    def flush(_self):
        raise OSError("disk")

    def work():
        session.items.flag(3)
        raise KeyError

    monkeypatch.setattr(Recorder, "flush", flush)
    with pytest.raises(OSError, match="disk"):
        session.log.together(work)
    monkeypatch.undo()
    assert not any(one.state.flagged for one in session.questions.sessions())


def test_an_answer_is_about_the_item_of_its_question_and_is_amended_to_an_answer(store: Store) -> None:
    session = begun(store)
    one, two = session.queue.items(2)
    asks = [two.asks["topic"].id]
    row = Operation("a", "answers", item=one.item, asks=asks, answers={"topic": "refund", "fraud": "yes"})
    (refused,) = session.apply([row])
    assert refused.status == "refused" and f"about item {two.item}" in refused.why
    assert session.tell(one, {"topic": "refund", "fraud": True})
    (refused,) = session.apply([Operation("b", "amend", item=one.item, answers={"topic": Event.skip()})])
    assert refused.status == "refused" and session.state.labels == {one.item: "refund"}


def test_an_id_is_of_one_operation_of_the_project(store):
    session = begun(store)
    fraud = session.question("fraud")

    def act(of, kind, key="item-4", **more):
        return of.apply([Operation(key, kind, **more)])[0]

    assert act(session, "choose", items=(4,), label="refund").status == "saved"
    refused = act(fraud, "choose", items=(4,), label="no")
    assert refused.status == "refused" and "an id of its own" in refused.why and not fraud.state.labels
    assert act(session, "choose", items=(4,), label="refund").status == "saved"
    assert (
        act(session, "flag", "f", item=4, on=True).status == act(fraud, "flag", "f", item=4).status == "saved"
    )
    assert session.undo() is not None and session.undo() is not None and not session.state.labels


def test_a_wish_for_every_question_is_one_event_and_gives_back_what_waits(store):
    session = begun(store)
    session.queue.items(2)
    n = len(store.news(session.id).events)
    for _ in range(2):  # sent again it is not done again
        assert session.apply([Operation("w", "want", items=[40], every=True)])[0].status == "saved"
    events = store.news(session.id).events[n:]
    assert [(event.kind, event.question) for event in events] == [("released", None), ("wanted", None)]
    [ask] = session.queue.items()
    assert ask.item == 40 and {one.role for one in ask.asks.values()} == {"chosen"}
    assert not session.questions.add("late").state.wanted  # which nobody wished anything of
    session.undo()
    assert not any(of.state.wanted for of in session.questions.sessions())


def test_a_row_that_is_sent_again_is_told_as_before(store):
    session = begun(store)
    session.items.label(5, "refund")
    row = Operation("a", "answers", item=5, answers={"topic": "other", "fraud": "no"})
    [first], [again] = session.apply([row]), session.apply([row])
    assert first == again and (first.status, "'topic'" in first.why) == ("saved", True)
    session.questions.archive("fraud")
    assert session.apply([row]) == [first]
    assert (
        session.apply([Operation("a", "answers", item=6, answers={"topic": "other"})])[0].status == "refused"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda session: session.tell(
            session.queue.items()[0], {"fraud": "yes", session.questions.ids[1]: "no"}
        ),
        lambda session: session.items.import_labels([5], "f"),
        lambda session: session.items.import_labels([(1.5, "refund")], "f"),
        lambda session: session.items.import_labels([(1, "refund", "", "", False, 0)], "f"),
        lambda session: session.items._do("requeue", items=5),
        lambda session: session.items._do("requeue", items=["3"]),
    ],
    ids=["twice", "no pair", "no item", "too long", "no items", "a text"],
)
def test_what_has_another_shape_is_refused_by_a_sentence(store, wrong):
    session = begun(store)
    n = len(store.news(session.id).events)
    with pytest.raises(InputError):
        wrong(session)
    assert {event.kind for event in store.news(session.id).events[n:]} <= {"asked"}


def test_whoever_is_interrupted_while_events_are_folded_finds_the_log_as_it_is(store, monkeypatch):
    session = begun(store, [TOPIC, "fraud", "spam"])
    session.items.note(3, "first")
    push = EventFold._push
    calls = iter((False, True))

    def interrupted(self, event):
        if next(calls, False):
            raise KeyboardInterrupt
        push(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(EventFold, "_push", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.items.note(3, "second")
    session.items.note(3, "third")
    for of in session.questions.sessions():
        assert [note.text for note in of.state.notes[3]] == ["first", "third"]


def test_what_fails_after_the_commit_hangs_nobody(store, monkeypatch):
    session = begun(store)
    publish = OpenProject._publish

    def fails(self):
        monkeypatch.undo()
        raise RuntimeError("no memory")

    monkeypatch.setattr(OpenProject, "_publish", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        session.items.flag(3)
    assert OpenProject._publish is publish and 3 in session.state.flagged
    session.items.flag(4)
    assert session.question("fraud").state.flagged.keys() == {3, 4}
