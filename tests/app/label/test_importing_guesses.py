"""Predictions of another tool: the dialog says first what they would do."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.pages import open_page, texts
from tests.cli.calls import call
from tests.exchange.test_language_model import Fake, reply
from workbench.app.access import current
from workbench.app.serving.jobs import manager
from workbench.exchange.imports import plan_predictions
from workbench.sessions import Session

FILE = b"id,prediction\na,low\nb,HIGH\nc,hihg\nd,other\nx9,low\n"


@pytest.fixture
def session(home: Path, tmp_path: Path) -> Session:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    made = Session.create(str(path), pool_options={"id_column": "id"}, classes=["low", "high"], name="six")
    current.keep(made)
    return made


def opened(session: Session) -> AppTest:
    test = open_page("label", session.id)
    test.button(key="guesses").click().run()
    test.file_uploader(key="guess-file-0").set_value(("llm.csv", FILE, "text/csv")).run()
    assert not test.exception
    return test


def test_a_plan_says_what_is_matched_and_which_names_are_no_class(session: Session) -> None:
    plan = plan_predictions(FILE, "llm.csv", session)
    assert (plan.matched, plan.unknown, plan.n_items) == (2, ("x9",), 6)
    assert plan.classes == {"hihg": 1, "other": 1} and plan.alike == {"hihg": "high"}
    assert plan.words() == (
        "2 of 6 items matched, 2 of 2 classes not here: hihg, other, 1 row of unknown items, left out"
    )


def test_predictions_come_in_only_after_somebody_saw_what_they_would_do(session: Session) -> None:
    test = opened(session)
    said = texts(test).replace("\\", "")
    assert "It would say: 2 of 6 items matched, 2 of 2 classes not here: hihg, other" in said
    assert not session.settings.get("guesses"), "nothing was taken in yet"
    assert test.selectbox(key="guess-class-0-hihg").value == "high", "a slip is offered the class it is of"
    test.selectbox(key="guess-class-1-other").set_value("low").run()
    test.button(key="guess-take").click().run()
    assert not test.exception
    [source] = session.settings["guesses"]
    assert source["source"] == "file:llm.csv" and source["mapping"] == {"hihg": "high", "other": "low"}
    [report] = session.guesses.report()
    assert report.n_known == 4


def test_predictions_that_are_left_change_nothing(session: Session) -> None:
    test = opened(session)
    test.button(key="guess-leave").click().run()
    assert not session.settings.get("guesses") and "It would say" not in texts(test)


def test_the_command_line_says_it_too(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "llm.csv"
    file.write_bytes(FILE)
    assert call("guess", session.id, "--from", file, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "2 of 6 items matched" in shown and "--class hihg=high" in shown
    assert not Session.open(session.id).settings.get("guesses")
    assert (
        call("guess", session.id, "--from", file, "--class", "other=low", "--class", "t-shirts 2=none") == 0
    )
    [source] = Session.open(session.id).settings["guesses"]
    assert source["mapping"] == {"other": "low", "t-shirts 2": "none"}


def test_a_language_model_is_asked_only_when_somebody_presses(session: Session) -> None:
    fake = Fake()
    fake.answer = lambda body: (200, reply("high"))
    source = f"llm:tiny@{fake.server.address}"
    test = open_page("label", session.id)
    # without a model nothing can be measured, however many labels are kept for it
    before = [element.value for element in (*test.markdown, *test.sidebar.caption)]
    assert {"**Error: known after the first fit.**", "Error: known after the first fit."} <= {*before}
    test.button(key="guesses").click().run()
    test.text_input(key="guess-llm-source").set_value("llm:tiny").run()
    assert "A language model is named llm:MODEL@ADDRESS" in texts(test).replace("\\", "")
    test.text_input(key="guess-llm-source").set_value(source).run()
    assert not test.exception and not fake.requests
    assert "6 requests" in texts(test) and fake.server.address in texts(test).replace("\\", "")
    test.button(key="guess-llm-ask").click().run()
    job = manager().get(session.id, "language-model")
    assert job is not None and job.wait(600) and job.status == "done", job and job.error
    assert len(fake.requests) == 6 and [one["source"] for one in session.settings["guesses"]] == [source]
    test.run()
    assert not test.exception
    assert any("Language model tiny@" in switch.label.replace("\\", "") for switch in test.toggle)
    fake.http.shutdown()
    fake.http.server_close()
