"""Several questions over one pool: each its own answers and model, an item looked at once."""

import pytest

from tests.sessions.several import TOPIC, begun, points
from workbench.errors import InputError
from workbench.sessions import Operation, Session
from workbench.sessions.questions import Question


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


def test_what_the_pool_knows_answers_the_first_question_alone(store):
    with pytest.raises(InputError, match="knows the answers"):
        Session.create("iris", questions=["large"], store=store)
    session = Session.create("iris", questions=[("species", []), "large"], store=store, annotator="ann")
    assert session.pool.test is not None and len(session.classes) == 3
    assert session.question("large").pool.truth is None
    assert len(session.question("large").pool.trainable) == 150


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
