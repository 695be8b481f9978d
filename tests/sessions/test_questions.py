"""Several questions over one pool: each its own answers and model, an item looked at once."""

import threading

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.sessions import Event, Operation, Session
from workbench.sessions.answering import Answers
from workbench.sessions.operations import SKIPPED
from workbench.sessions.project import OpenProject
from workbench.sessions.questions import Question
from workbench.store import EventFold, Store
from workbench.store.log import Recorder

TOPIC = ("topic", ["refund", "delivery", "other"])


@pytest.fixture
def store(tmp_path):
    made = Store.open(tmp_path / "w.sqlite")
    yield made
    made.close()


def points(n=60):
    return np.random.default_rng(0).normal(size=(n, 2))


def begun(store, questions=(TOPIC, "fraud"), **more):
    given = {"name": "mail", "classifier": "logistic-regression", "policy": "margin", "early_share": 0.0}
    shares = {"evaluation_share": 0.0, "uniform_share": 0.0}
    return Session.create(
        points(), questions=questions, store=store, annotator="ann", **given | shares | more
    )


def test_each_question_has_its_classes_and_its_own_answers(store):
    session = begun(store)
    fraud = session.question("fraud")
    assert session.questions == ("topic", "fraud")
    assert session.classes == ("refund", "delivery", "other")
    assert (fraud.classes, fraud.project.kind) == (("yes", "no"), "yes / no")
    fraud.items.label(3, "yes")
    assert session.state.n_labelled == 0
    assert Session.open("mail", question="fraud", store=store).state.codes == {3: 0}
    assert Session.open(fraud.id, store=store).question_name == "fraud"
    assert Session.open("mail", store=store).question_name == "topic"


def test_an_item_is_asked_about_once_with_all_its_open_questions(store):
    session = begun(store)
    asks = session.queue.items(3)
    assert [set(ask.asks) for ask in asks] == [{"topic", "fraud"}] * 3
    assert len({ask.item for ask in asks}) == 3
    assert [ask.item for ask in session.queue.items(3)] == [ask.item for ask in asks]
    n = len(session.log.events)
    session.queue.items(3)
    assert len(session.log.events) == n
    session.question("fraud").items.label(asks[0].item, "no")
    assert list(session.queue.items(3)[0].asks) == ["topic"]


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


def test_a_question_added_when_500_items_are_labelled_has_every_item_open(store):
    session = Session.create(
        points(520),
        questions=[TOPIC],
        store=store,
        annotator="ann",
        classifier="logistic-regression",
        policy="margin",
        evaluation_share=0.0,
        early_share=0.0,
        uniform_share=0.0,
    )
    session.items.label(range(500), "refund")
    tone = session.questions.add(("tone", ["calm", "angry"]))
    assert tone.queue.n_left == 520 and session.queue.n_left == 20
    assert session.questions == ("topic", "tone") and session.state.n_labelled == 500
    asks = session.queue.items(30)
    assert {frozenset(ask.asks) for ask in asks} == {frozenset({"tone"}), frozenset({"topic", "tone"})}
    assert session.tell(next(ask for ask in asks if len(ask.asks) == 1), {"tone": "calm"})
    assert (session.state.n_labelled, tone.state.n_labelled) == (500, 1)


def test_a_question_put_aside_is_asked_no_more_and_keeps_its_answers(store):
    session = begun(store)
    session.question("fraud").items.label(2, "yes")
    with pytest.raises(InputError, match="another column 'id'"):
        session.questions.rename("fraud", "id")
    session.questions.rename("fraud", "scam")
    session.questions.archive("scam")
    assert session.questions == ("topic",)
    assert set(session.queue.items()[0].asks) == {"topic"}
    assert session.question("scam").state.n_labelled == 1
    session.questions.archive("scam", on=False)
    assert session.questions == ("topic", "scam")
    (refused,) = session.apply([Operation("again", "amend", item=5, answers={"scam": "no"})])
    assert refused.why == "There is no answer of yours to 'scam' about this item."  # as it is called now
    with pytest.raises(InputError, match="last question"):
        for name in session.questions:
            session.questions.archive(name)


def test_each_question_is_fitted_by_itself(store):
    session = begun(store)
    X = session.pool.features
    for ask in session.queue.items(20):
        topic = "refund" if X[ask.item, 0] > 0 else "delivery"
        session.tell(ask, {"topic": topic, "fraud": bool(X[ask.item, 1] > 0)})
    made = session.questions.refit()
    assert set(made) == {"topic", "fraud"}
    p = session.question("fraud").model.probabilities
    right = (p[:, 0] > 0.5) == (X[:, 1] > 0)
    assert right.mean() > 0.8
    after = session.queue.items(5)
    assert all(set(ask.asks) == {"topic", "fraud"} for ask in after)
    # what is asked first is what one of the two models is least sure of
    sure = [max(1 - one.model.probabilities_of(after[0].item).max() for one in session.questions.sessions())]
    assert sure[0] > 0.3


def test_items_are_drawn_to_measure_every_question(store):
    session = begun(store, early_share=0.5, evaluation_share=0.5)
    for ask in session.queue.items(40):
        session.tell(ask, {"topic": "refund", "fraud": False})
    topic, fraud = session.state.evaluation, session.question("fraud").state.evaluation
    assert 8 < len(topic) < 32 and 8 < len(fraud) < 32


@pytest.mark.parametrize(
    ("questions", "says"),
    [
        ([TOPIC, TOPIC], "Two questions are called"),
        ([TOPIC, ("tone", [])], "has no classes"),
        ([TOPIC, ("tone", "calm")], "a list of names"),
        ([TOPIC, ""], "needs a name"),
        ([TOPIC, "tags"], "Files call another column 'tags'"),
        ([Question("fraud", ["maybe"], "yes / no")], "has no classes of its own"),
        ([Question("fraud", ["a"], "many")], "A question is"),
        ([TOPIC, 3], "A question is a name"),
        ("fraud", "a list"),
        ([f"q{i}" for i in range(301)], "at most 300"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(store, questions, says):
    with pytest.raises(InputError, match=says):
        begun(store, questions)
    assert store.projects() == []


def test_names_there_are_not_are_refused_before_anything_is_written(store):
    session = begun(store)
    ask = session.queue.items()[0]
    for answers, says in (
        ({"topic": "refund", "tone": "calm"}, "There is no question 'tone'"),
        ({"topic": "refund", "fraud": "maybe"}, "There is no class"),
        ({"topic": True}, "has classes"),
        ({}, "No question is answered"),
    ):
        with pytest.raises(InputError, match=says):
            session.tell(ask, answers)
    with pytest.raises(InputError, match="several questions"):
        session.tell(ask, "refund")
    assert session.state.n_labelled == 0


def test_two_hundred_switches(store):
    session = begun(store, [f"tag {i}" for i in range(200)])
    ask = session.queue.items()[0]
    assert len(ask.asks) == 200
    assert session.tell(ask, {name: name.endswith("7") for name in ask.asks})
    assert sum(one.state.codes[ask.item] == 0 for one in session.questions.sessions()) == 20


def test_what_the_pool_knows_answers_the_first_question_alone(store):
    with pytest.raises(InputError, match="knows the answers"):
        Session.create("iris", questions=["large"], store=store)
    session = Session.create("iris", questions=[("species", []), "large"], store=store, annotator="ann")
    assert session.pool.test is not None and len(session.classes) == 3
    assert session.question("large").pool.truth is None
    assert len(session.question("large").pool.trainable) == 150


SWITCHES = [f"over {i}" for i in range(6)]


def switched(store, questions=SWITCHES, upto=30, **more):
    """A project whose switches ask whether sums of two columns are positive, answered and fitted."""
    X = np.random.default_rng(1).normal(size=(80, 6))
    session = Session.create(
        X,
        questions=questions,
        store=store,
        name="many",
        annotator="ann",
        policy="margin",
        guess=(),
        evaluation_share=0.0,
        early_share=0.0,
        uniform_share=0.0,
        twins=False,
        **more,
    )
    answer(session, X, range(upto))
    return session, X


def answer(session, X, items):
    for item in items:
        for i, one in enumerate(session.questions.sessions()):
            one.items.label(item, "yes" if X[item, i] + X[item, (i + 1) % 6] > 0 else "no")
    session.questions.refit()


def test_many_switches_see_the_pool_as_one_of_them_chose(store):
    session, X = switched(store)
    models = [one.model for one in session.questions.sessions()]
    first = models[0].estimator
    assert len({id(model.latents) for model in models}) == 1
    for model in models[1:]:
        assert model.smoothing == models[0].smoothing and model.estimator.choices_ == first.choices_
        assert np.array_equal(model.estimator.geometry_.inducing, first.geometry_.inducing)
        assert model.estimator.kernel_.to_arrays().keys() == first.kernel_.to_arrays().keys()
    assert first.choice_.candidate.stretch == 0.0
    for i, model in enumerate(models):
        right = (model.probabilities.argmax(axis=1) == 0) == (X[:, i] + X[:, (i + 1) % 6] > 0)
        assert right[30:].mean() > 0.7
        assert np.allclose(model.probabilities, model.predict_proba(np.arange(80)), atol=1e-4)


def test_the_choice_is_made_again_once_and_survives_a_restart(store):
    session, X = switched(store)
    before = session.model.estimator.choice_.labels
    answer(session, X, range(30, 60))
    labels = [one.model.estimator.choice_.labels for one in session.questions.sessions()]
    assert before == 30 and labels == [60] * 6
    again = Session.open("many", store=store)
    for one, other in zip(session.questions.sessions(), again.questions.sessions(), strict=True):
        assert np.allclose(one.model.probabilities, other.model.probabilities, atol=1e-6)
    answer(again, X, range(60, 62))
    assert [one.model.estimator.choice_.labels for one in again.questions.sessions()] == [60] * 6


def test_few_switches_choose_for_themselves_as_one_alone_does(store, tmp_path):
    session, _ = switched(store, SWITCHES[:3])
    other = Store.open(tmp_path / "alone.sqlite")
    alone, _ = switched(other, SWITCHES[:1])
    assert np.array_equal(session.model.probabilities, alone.model.probabilities)
    assert session.question(SWITCHES[1]).model.latents is not session.model.latents
    other.close()


def test_columns_of_a_table_are_questions_and_their_cells_answers(store, tmp_path):
    rows = ["text,tone,fraud,tags,place"]
    rows += [
        f"order {i} of {'lamps' if i % 2 else 'chairs'},{'' if i % 3 else 'calm' if i % 2 else 'angry'},"
        f"{'' if i % 4 else 'Yes' if i % 8 else 'no'},"
        f"{'late;dear' if i == 1 else 'late' if i == 2 else ''},n{i}"
        for i in range(250)
    ]
    path = tmp_path / "mail.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = {"store": store, "annotator": "ann", "classifier": "logistic-regression", "policy": "margin"}
    session = Session.create(
        path, questions=["column:tone", "column:fraud", "column:tags", "urgent"], **given
    )
    assert session.questions == ("tone", "fraud", "late", "dear", "urgent")
    assert set(session.classes) == {"angry", "calm"} and session.state.n_labelled == 84
    assert session.state.labels[3] == "calm"
    fraud, late, dear = (session.question(name) for name in ("fraud", "late", "dear"))
    assert fraud.state.labels[4] == "yes" and fraud.state.labels[8] == "no" and fraud.state.n_labelled == 63
    assert late.state.labels == {1: "yes", 2: "yes"} and dear.state.labels == {1: "yes", 2: "no"}
    used = session.pool.uses
    assert {used[name]["use"] for name in ("tone", "fraud", "tags")} == {"leave out"}
    assert "urgent" in session.queue.items()[0].asks
    again = Session.open(session.id, store=store)
    assert again.question("dear").state.labels == dear.state.labels
    for column, says in (("place", "250 different values"), ("nothing", "no column")):
        with pytest.raises(InputError, match=says):
            Session.create(path, questions=[f"column:{column}"], **given)
    with pytest.raises(InputError, match="Two questions"):
        Session.create(path, questions=["column:tone", "tone"], **given)
    assert len(store.projects()) == 1


def test_a_column_beside_the_classes_of_the_table_is_a_second_question(store, tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{3 * i},{i * i % 11},{'abc'[i % 3]},{'' if i % 2 else 1}" for i in range(90)]
    path.write_text("x,y,kind,seen\n" + "\n".join(rows) + "\n", encoding="utf-8")
    session = Session.create(
        path,
        target="kind",
        questions=[("kind", []), "column:seen"],
        store=store,
        annotator="ann",
        classifier="logistic-regression",
        policy="margin",
    )
    assert session.classes == ("a", "b", "c") and session.pool.test is not None
    assert set(session.question("seen").state.labels.values()) == {"yes"}
    assert session.question("seen").state.n_labelled == 45
    assert session.pool.feature_map.columns == ("x", "y")


def test_a_draw_to_measure_on_is_kept_while_another_question_s_draw_is_looked_at(store):
    """Half of one question is answered already, so the two draw different items at the same places."""
    session = begun(store, early_share=0.5, evaluation_share=0.5)
    fraud = session.question("fraud")
    fraud.items.import_labels([(item, "yes" if item % 3 else "no") for item in range(30)], "a column")
    drawn = 0
    while asks := session.queue.items(1):
        open_ = set(asks[0].asks)
        drawn += "fraud" in open_
        session.tell(asks[0], {"topic": "refund"} if open_ == {"topic"} else dict.fromkeys(open_))
    topic, measured = session.state.evaluation, fraud.state.evaluation
    assert drawn == 30 and len(measured) >= 10
    places = [ask for ask in fraud.state.asks.values() if ask.details.get("counted", True)]
    assert fraud.state.places == len(places) < len(fraud.state.asks)
    assert topic != measured


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


def test_an_undo_takes_what_another_program_did_in_a_question_that_this_one_has_not_listed(store, tmp_path):
    theirs = begun(store)
    beside = Store.open(tmp_path / "w.sqlite")
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
