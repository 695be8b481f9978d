"""Labels of every question that look wrong, in one table of History."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.app.test_pages import open_page, texts
from workbench.app.access import current
from workbench.app.history import label_errors
from workbench.app.history.label_errors import LabelIssues
from workbench.app.serving.jobs import Job
from workbench.errors import InputError
from workbench.sessions import Session


@pytest.fixture
def mail(home: Path, tmp_path: Path) -> Iterator[Session]:
    """Two switches and a question of classes that a line tells apart, a wrong label in each switch."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2)) * 3
    rows = rows[np.abs(rows).min(axis=1) > 1.5][:60]
    # far from the line: a model is sure of them
    rows[5], rows[6] = (9.0, -3.0), (3.0, -9.0)
    table = tmp_path / "mail.csv"
    table.write_text("a,b\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in rows))
    session = Session.create(
        str(table),
        questions=["fraud", "urgent", ("topic", ["refund", "delivery"])],
        classifier="logistic-regression",
        policy="margin",
        annotator="ann",
        evaluation_share=0.0,
        name=f"mail {tmp_path.name}",
    )
    for column, (name, wrong) in enumerate((("fraud", 5), ("urgent", 6))):
        one = session.question(name)
        for item in range(len(rows)):
            one.label_item(item, "yes" if (rows[item, column] > 0) ^ (item == wrong) else "no")
        one.refit()
    current.keep(session)
    yield session
    current.forget(session.id)


def sessions_of(session: Session) -> dict[str, Session]:
    return {one.question_name: one for one in session.asked()}


def looked_through(sessions: dict[str, Session]) -> LabelIssues:
    models = {name: one.model for name, one in sessions.items()}
    while (found := label_errors.find_issues(sessions, models)).job is not None:
        assert found.job.wait(600), "one question after the other"
    return found


def test_the_wrong_labels_of_all_questions_come_first_and_the_rest_is_named(mail: Session) -> None:
    sessions = sessions_of(mail)
    found = looked_through(sessions)
    assert {(one.question, one.decision.item) for one in found.issues[:2]} == {("fraud", 5), ("urgent", 6)}
    assert all(one.said.wrong for one in found.issues[:2])
    assert found.left == {"topic": "no model yet"}
    assert (found.n_questions, found.n_labels) == (2, 120)
    assert label_errors.verdict(found).startswith("Of 120 labels of 2 questions models that did not see them")
    assert f"of which {found.n_wrong} look wrong: about" in label_errors.verdict(found)
    shown = label_errors.rows(mail.pool, found.issues)[:2]
    assert {(row["Question"], row["Item"], row["Verdict"]) for row in shown} == {
        ("fraud", "5", "looks wrong"),
        ("urgent", "6", "looks wrong"),
    }
    assert all(row["Label"] != row["Model says"] for row in shown)


def test_each_label_is_changed_in_its_own_question_and_all_of_it_taken_back(mail: Session) -> None:
    sessions = sessions_of(mail)
    before = {name: dict(one.state.labels) for name, one in sessions.items()}
    chosen = looked_through(sessions).issues[:2]
    words, acts = label_errors.model_is_right(sessions, chosen)
    assert words == "2 labels of 2 questions changed to what the model says."
    for one in chosen:
        assert sessions[one.question].state.labels[one.decision.item] == one.said.label
    # what is right now is in doubt no more, and no row of the others has moved
    assert not {one.decision.item for one in looked_through(sessions).issues} & {5, 6}
    assert label_errors.take_back(sessions, acts) == "Taken back."
    assert {name: dict(one.state.labels) for name, one in sessions.items()} == before
    with pytest.raises(InputError, match="selected"):
        label_errors.model_is_right(sessions, [])


def test_what_somebody_else_has_changed_meanwhile_is_not_taken_back(mail: Session) -> None:
    sessions = sessions_of(mail)
    chosen = looked_through(sessions).issues[:2]
    of_fraud = next(one for one in chosen if one.question == "fraud")
    sessions["fraud"].relabel([of_fraud.decision.item], of_fraud.said.label)
    before = dict(sessions["fraud"].state.labels)
    _, acts = label_errors.model_is_right(sessions, chosen)
    assert [question for question, _ in acts] == ["urgent"]
    assert label_errors.take_back(sessions, acts) == "Taken back."
    assert dict(sessions["fraud"].state.labels) == before


def test_cancel_ends_all_of_it_and_it_can_be_tried_again(
    mail: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = sessions_of(mail)
    models = {name: one.model for name, one in sessions.items()}
    asked: list[str] = []

    def cancelled(session: Session, model: object) -> Job:
        asked.append(session.question_name)
        job = Job(session.id, "label issues", "")
        job.status = "cancelled"
        return job

    with monkeypatch.context() as patch:
        patch.setattr(label_errors.evaluation, "cross_validation", cancelled)
        found = label_errors.find_issues(sessions, models)
    assert asked == ["fraud"] and len(found.ended) == 1 and found.job is None
    assert set(found.left) == {"fraud", "urgent", "topic"} and not found.issues
    assert looked_through(sessions).n_questions == 2


def test_what_came_after_a_change_in_its_question_stays(mail: Session) -> None:
    sessions = sessions_of(mail)
    _, acts = label_errors.model_is_right(sessions, looked_through(sessions).issues[:2])
    sessions["fraud"].relabel([0], "no" if sessions["fraud"].state.labels[0] == "yes" else "yes")
    assert label_errors.take_back(sessions, acts).startswith("1 change not taken back")
    assert [sessions[name].state.labels[item] for name, item in (("fraud", 5), ("urgent", 6))] == [
        "yes",
        "yes",
    ]


def test_nothing_is_compared_before_somebody_asks_and_nothing_without_a_second_question(
    mail: Session,
) -> None:
    page = open_page("history", mail.id)
    assert "All questions" in [tab.label for tab in page.tabs]
    page.session_state["history-tabs"] = "All questions"
    page.run()
    page.button(key="every-question-start").click().run()
    for _ in range(20):
        found = label_errors.find_issues(
            sessions_of(mail), {n: one.model for n, one in sessions_of(mail).items()}
        )
        if found.job is None:
            break
        assert found.job.wait(600)
        page.run()
    page.run()
    assert not page.exception
    assert "Of 120 labels of 2 questions" in texts(page)
    alone = Session.create("iris", classifier="logistic-regression", annotator="ann")
    current.keep(alone)
    assert "All questions" not in [tab.label for tab in open_page("history", alone.id).tabs]


def test_words_where_nothing_can_be_said() -> None:
    assert (
        label_errors.verdict(LabelIssues()) == "No question has labels that a model could be compared with."
    )
    fine = LabelIssues(n_labels=30, n_questions=2)
    assert label_errors.verdict(fine) == (
        "None of 30 labels of 2 questions looks wrong to a model that did not see it."
    )
