"""Labels of every question that look wrong, together on History."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.app.pages import open_page, texts
from workbench.app.access import current
from workbench.app.desk.operations import perform
from workbench.app.history import label_errors
from workbench.app.history.label_errors import LabelIssues
from workbench.app.serving.jobs import Job
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
        yes = (rows[:, column] > 0) ^ (np.arange(len(rows)) == wrong)
        for label, chosen in (("yes", yes), ("no", ~yes)):
            one.items.label(np.flatnonzero(chosen).tolist(), label)
        one.refit()
    current.keep(session)
    yield session
    current.forget(session.id)


def sessions_of(session: Session) -> dict[str, Session]:
    return {one.question_name: one for one in session.questions.sessions()}


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
    shown = label_errors.tiles(mail, found.issues, "/p/{item}")[:2]
    assert {(tile["question"], tile["item"], tile["verdict"]) for tile in shown} == {
        ("fraud", 5, "wrong"),
        ("urgent", 6, "wrong"),
    }
    assert all(tile["class"] != tile["says"] for tile in shown)


def test_each_label_is_changed_in_its_own_question_and_taken_back_there(mail: Session) -> None:
    sessions = sessions_of(mail)
    before = {name: dict(one.state.labels) for name, one in sessions.items()}
    issues = looked_through(sessions).issues[:2]
    who = {"person": mail.annotator, "project": mail.id}
    sent = [
        {**who, "op": f"{n}", "kind": "relabel", "items": [one.decision.item], "class": one.said.label}
        | {"question": one.question}
        for n, one in enumerate(issues)
    ]
    assert [ack["status"] for ack in perform(mail, sent)] == ["saved", "saved"]
    for one in issues:
        assert sessions[one.question].state.labels[one.decision.item] == one.said.label
    # what is right now is in doubt no more
    assert not {one.decision.item for one in looked_through(sessions).issues} & {5, 6}
    back = [{**who, "op": f"z{n}", "kind": "undo", "target": f"{n}"} for n in (1, 0)]
    assert [ack["status"] for ack in perform(mail, back)] == ["saved", "saved"]
    assert {name: dict(one.state.labels) for name, one in sessions.items()} == before
    clear = {**who, "op": "c", "kind": "clear", "items": [6], "question": "urgent"}
    assert perform(mail, [clear])[0]["status"] == "saved"
    assert 6 not in sessions["urgent"].state.labels and 6 in sessions["fraud"].state.labels


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


def test_nothing_is_compared_before_somebody_asks_and_nothing_without_a_second_question(
    mail: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[Any, bool]] = []
    monkeypatch.setattr(
        "workbench.app.desk.mount_gallery",
        lambda who, tiles, stamp, everywhere: shown.append((tiles, everywhere)),
    )
    page = open_page("history", mail.id)
    exports = next(box for box in page.selectbox if box.key == "export-what")
    assert exports.options[:2] == ["All questions, a column each", "All questions, with predictions"]
    next(p for p in page.button_group if p.key == "review-kind").set_value("questions").run()
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
    (tiles, everywhere), n = shown[-1], len(shown)
    assert everywhere and {tile["question"] for tile in tiles[:2]} == {"fraud", "urgent"}
    # they stay where they are while somebody works on them
    mail.question("fraud").items.relabel(
        [5], "no" if mail.question("fraud").state.labels[5] == "yes" else "yes"
    )
    page.run()
    assert shown[n:] == [(tiles, True)]
    alone = Session.create("iris", classifier="logistic-regression", annotator="ann")
    current.keep(alone)
    alone.items.label(alone.pool.trainable[:2].tolist(), "setosa")
    kinds = next(p for p in open_page("history", alone.id).button_group if p.key == "review-kind")
    assert "All questions" not in kinds.options and "All" in kinds.options


def test_what_is_compared_later_comes_into_the_gallery(
    mail: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_through(sessions_of(mail))
    shown: list[set[str]] = []
    monkeypatch.setattr(
        "workbench.app.desk.mount_gallery",
        lambda who, tiles, stamp, everywhere: shown.append({tile.get("question") for tile in tiles}),
    )
    comparison = label_errors.evaluation.cross_validation

    def fails(session: Session, model: Any) -> Job:
        job = Job(session.id, "label issues", "")
        job.status = "failed"
        return job if session.question_name == "urgent" else comparison(session, model)

    with monkeypatch.context() as patch:
        patch.setattr(label_errors.evaluation, "cross_validation", fails)
        page = open_page("history", mail.id)
        next(p for p in page.button_group if p.key == "review-kind").set_value("questions").run()
        page.button(key="every-question-start").click().run()
        assert shown[-1] == {"fraud"}
    page.run()
    assert not page.exception and shown[-1] == {"fraud", "urgent"}


def test_words_where_nothing_can_be_said() -> None:
    assert (
        label_errors.verdict(LabelIssues()) == "No question has labels that a model could be compared with."
    )
    fine = LabelIssues(n_labels=30, n_questions=2)
    assert label_errors.verdict(fine) == (
        "None of 30 labels of 2 questions looks wrong to a model that did not see it."
    )
