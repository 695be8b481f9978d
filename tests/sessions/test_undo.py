"""An act over several questions is taken back and done again whole; so is a skip."""

from tests.sessions.several import TOPIC, begun
from workbench.sessions import Event, Operation, Session
from workbench.sessions.operations import SKIPPED
from workbench.store import Store


def test_answers_to_several_questions_are_one_transaction_and_one_undo(store):
    session = begun(store)
    ask = session.queue.items()[0]
    assert session.tell(ask, {"topic": "refund", "fraud": True})
    fraud = session.question("fraud")
    assert (session.state.codes[ask.item], fraud.state.codes[ask.item]) == (0, 0)
    assert not session.tell(ask, {"topic": "other", "fraud": False})
    session.undo()
    assert ask.item not in session.state.codes and ask.item not in fraud.state.codes
    session.redo()
    assert ask.item in session.state.codes and ask.item in fraud.state.codes


def test_a_row_is_skipped_where_somebody_else_is_asked_by_now(store):
    session = begun(store, overlap=1.0, people=2)
    item = session.queue.items()[0].item
    session.apply([Operation("a", "answers", item=item, answers={"topic": "refund", "fraud": "no"})])
    session.items.look_again(items=[item])
    assert session.queue.items(lease=0.0)[0].item == item  # and is away until others are asked
    assert session.as_annotator("bob").queue.items()[0].item == item
    row, note = (
        Operation("b", "answers", item=item, text=SKIPPED),
        Operation("c", "note", item=item, text="?"),
    )
    assert [done.status for done in session.apply([row, note])] == ["saved", "saved"]
    assert item not in session.state.skipped and session.state.notes[item]
    assert session.state.votes[item]["ann"].key == "refund"


def test_an_undo_is_of_the_last_act_in_whichever_question(store):
    session = begun(store)
    fraud, item = session.question("fraud"), session.queue.items()[0].item

    def act(key, kind, **of):
        return session.apply([Operation(key, kind, **of)])[0].status

    assert act("a", "answers", item=item, answers={"topic": "refund", "fraud": "yes"}) == "saved"
    fraud.items.label(30, "no")
    assert act("u", "undo", takes="a") == "conflict"
    assert session.undo().item == 30 and fraud.state.labels == {item: "yes"}
    session.questions.archive("fraud")
    [done] = fraud.apply([Operation("u", "undo", takes="a")])
    assert done.status == "saved" == act("u", "undo", takes="a")
    assert not session.state.labels and not fraud.state.labels
    session.questions.archive("fraud", on=False)
    assert session.redo().item == item
    assert (session.state.labels, fraud.state.labels) == ({item: "refund"}, {item: "yes"})
    assert fraud.redo().item == 30 and act("r", "redo") == "conflict"
    assert session.undo().item == 30 and session.undo().item == item
    session.items.flag(5)
    assert act("r2", "redo") == "conflict" and session.redo() is None
    again = Session.open(session.id, store=store, annotator="ann")
    assert [one.state for one in again.questions.sessions()] == [
        one.state for one in session.questions.sessions()
    ]


def test_what_was_done_since_ends_a_redo_in_every_question_also_when_it_is_taken_back(store):
    session = begun(store)
    fraud, ask = session.question("fraud"), session.queue.items()[0]
    session.tell(ask, {"topic": "refund", "fraud": True})
    session.undo()
    fraud.items.label(30, "no")
    assert session.redo() is None and session.undo().item == 30
    assert session.redo().item == 30 and session.redo() is None
    assert (session.state.labels, fraud.state.labels) == ({}, {30: "no"})
    session.items.label(31, "other")
    session.undo(), session.undo()
    assert session.redo().item == 30 and session.redo().item == 31 and session.redo() is None


def test_an_undo_takes_what_another_program_did_in_a_question_that_this_one_has_not_listed(store):
    theirs = begun(store)
    beside = Store.open(store.url)
    ours = Session.open(theirs.id, store=beside, annotator="ann")
    assert ours.questions == ("topic", "fraud")
    spam, item = theirs.questions.add("spam"), theirs.queue.items()[0]
    theirs.tell(item, {"topic": "refund", "fraud": True, "spam": True})
    spam.items.label(8, "yes")
    [late] = ours.apply([Operation("u", "undo", takes="other")])
    assert late.status == "conflict" and "in 'spam' since" in late.why
    assert ours.undo().item == 8 and ours.undo().item == item.item
    assert not any(question.state.labels for question in theirs.questions.sessions())
    assert ours.redo().item == item.item and spam.state.labels == {item.item: "yes"}
    top = theirs.state.undoable["ann"].id
    assert (
        theirs.undo(theirs.log.events[0].id) is None and ours.undo(spam.state.undoable["ann"].id) is not None
    )
    assert ours.undo(top) is None and not spam.state.labels
    beside.close()


def test_a_skip_is_one_event_of_the_item_and_counts_where_it_was_open(store):
    session = begun(store, [TOPIC, "fraud", "spam"])
    session.question("fraud").items.label(5, "yes")
    n = len(store.news(session.id).events)
    session.apply([Operation("a", "answers", item=5, text=SKIPPED), Operation("b", "flag", item=5)])
    events = store.news(session.id).events[n:]
    assert [(event.kind, event.question) for event in events] == [("skip", None), ("flag", None)]
    session.questions.add("late")
    copy = Session.open(store.duplicate_project(session.id, "copy").id, store=store, annotator="ann")
    for one in (session, copy):
        assert [5 in of.state.skipped for of in one.questions.sessions()] == [True, False, True, False]
        assert all(5 in of.state.flagged for of in one.questions.sessions())
        one.undo()
        assert one.undo().kind == "skip" and one.undo().kind == "label"
        assert not any(5 in of.state.answered or 5 in of.state.flagged for of in one.questions.sessions())
        assert (one.redo().kind, one.redo().kind) == ("label", "skip")
        assert [5 in of.state.skipped for of in one.questions.sessions()] == [True, False, True, False]


def test_a_skip_of_some_questions_beside_answers_to_others_is_one_act(store):
    session = begun(store)
    fraud, ask = session.question("fraud"), session.queue.items()[0]
    assert session.tell(ask, {"topic": Event.skip(), "fraud": True})
    assert ask.item in session.state.skipped and ask.item in fraud.state.labels
    session.undo()
    assert not session.state.skipped and not fraud.state.labels


def test_a_skip_beside_others_labels_is_told_as_taken(store):
    session = begun(store, overlap=1.0, people=2)
    ask = session.queue.items()[0]
    session.tell(ask, {"topic": "refund", "fraud": True})
    bob = session.as_annotator("bob")
    again = bob.queue.items()[0]
    assert again.item == ask.item and set(again.asks) == {"topic", "fraud"}
    assert bob.tell(again, Event.skip())
    assert all(of.log.events[-1].kind == "skip" for of in session.questions.sessions())


def test_what_was_taken_back_can_be_skipped_before_it_is_asked_about_again(store):
    session = begun(store, early_share=0.9, evaluation_share=0.9)
    asks = session.queue.items(12)
    ask = next(one for one in asks if {ask.role for ask in one.asks.values()} == {"evaluation"})
    session.tell(ask, {"topic": "refund", "fraud": True})
    session.undo()
    session.apply([Operation("s", "answers", item=ask.item, text=SKIPPED)])
    assert all(ask.item in of.state.skipped for of in session.questions.sessions())


def test_the_last_act_is_taken_back_also_where_its_question_is_put_aside(store):
    session = begun(store, [TOPIC, "fraud", "spam"])
    session.items.label(4, "refund")
    fraud = session.question("fraud")
    fraud.items.label(5, "yes")
    asked = next(event for event in (session.ask(), session.log.events)[1] if event.kind == "asked")
    session.questions.archive("fraud")
    last, _ = session.log.last_acts
    assert last is not None and (last.item, last.question) == (5, fraud.id)
    # what is no act, or not the last one, takes nothing
    assert [session.undo(of=of) for of in (asked.id, last.id - 1, 9999, "x", [])] == [None] * 5
    assert session.undo(of=last.id) == last and not fraud.state.labels
    assert session.log.last_acts[0].item == 4 and session.redo() == last
    [done] = session.apply([Operation("z", "undo", takes=str(last.act))])
    assert done.status == "saved" and not fraud.state.labels and session.state.labels == {4: "refund"}
