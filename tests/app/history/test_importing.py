"""An import shows first what it would do."""

import json
from pathlib import Path

from tests.app.pages import open_page, texts
from workbench.app.access import current
from workbench.exchange.instructions import take_instructions
from workbench.sessions import Session


def test_labels_come_in_only_after_the_odd_rows_were_looked_at(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    session = Session.create(str(path), pool_options={"id_column": "id"}, classes=["low", "high"])
    session.items.label(1, "low")
    current.keep(session)
    test = open_page("history", session.id)
    test.file_uploader(key="import-file").set_value(
        ("labels.csv", b"id,label\na,low\nb,high\nc,lwo\nx9,low\n", "text/csv")
    ).run()
    assert not test.exception
    said = texts(test).replace("\\", "")
    assert "It would bring: 2 new, 1 differ, 1 of unknown items, 1 new class: lwo." in said
    assert test.button(key="import").disabled, "a slip and an unknown id are open questions"
    test.selectbox(key="import-class-0-lwo").set_value("low").run()
    test.checkbox(key="import-leave-out").check().run()
    test.radio(key="import-differ").set_value("Keep what is here").run()
    assert session.state.labels == {1: "low"}
    test.button(key="import").click().run()
    assert not test.exception
    assert session.state.labels == {0: "low", 1: "low", 2: "low"} and session.classes == ("low", "high")


def test_a_column_of_labels_that_nothing_tells_is_chosen(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    session = Session.create(str(path), pool_options={"id_column": "id"}, classes=["low", "high"])
    current.keep(session)
    test = open_page("history", session.id)
    file = b"id,mine,theirs\na,low,high\nb,high,high\n"
    test.file_uploader(key="import-file").set_value(("labels.csv", file, "text/csv")).run()
    assert not test.exception and not test.error
    test.selectbox(key="import-column").set_value("theirs").run()
    test.button(key="import").click().run()
    assert not test.exception and session.state.labels == {0: "high", 1: "high"}


def test_a_file_tells_its_format_itself(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    session = Session.create(str(path), pool_options={"id_column": "id"}, classes=["low", "high"])
    current.keep(session)
    test = open_page("history", session.id)
    choice = {"type": "choices", "from_name": "label", "value": {"choices": ["high"]}}
    tasks = json.dumps([{"data": {"id": "b"}, "annotations": [{"result": [choice]}]}]).encode()
    test.file_uploader(key="import-file").set_value(("labels.bin", tasks, "")).run()
    assert "tells no format. Choose one" in texts(test).replace("\\", "")
    test.file_uploader(key="import-file").set_value(("export.json", tasks, "application/json")).run()
    assert not test.exception and not test.error and "It would bring: 1 new" in texts(test)
    test.button(key="import").click().run()
    assert not test.exception and session.state.labels == {1: "high"}


def test_instructions_come_in_with_the_labels_of_a_project_that_has_none(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text("id,x\na,1\nb,2\n", encoding="utf-8")
    session = Session.create(str(path), pool_options={"id_column": "id"}, classes=["low", "high"])
    choice = {"type": "choices", "value": {"choices": ["low"]}}
    task = {"data": {"id": "a"}, "annotations": [{"result": [choice]}]}
    project = {"project": {"expert_instruction": "<p>Look <b>twice</b>.</p>"}}
    data = json.dumps([task | project]).encode()
    assert take_instructions(session, data, "label-studio") and session.instructions.latest is not None
    assert session.instructions.latest.text == "Look **twice**."
    assert not take_instructions(session, data, "label-studio"), "those that people wrote stay"
    assert not take_instructions(session, b"[1", "label-studio")


def test_a_file_answers_all_questions_of_a_project_and_brings_further_ones(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "q.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    session = Session.create(
        str(path), pool_options={"id_column": "id"}, questions=[("topic", ["low", "high"]), "fraud"]
    )
    current.keep(session)
    test = open_page("history", session.id)
    file = b"id,topic,tags\na,low,fraud;late\nb,high,late\nx9,low,fraud\n"
    test.file_uploader(key="import-file").set_value(("answers.csv", file, "text/csv")).run()
    assert not test.exception and "topic: 2, fraud: 2, 1 of unknown items" in texts(test).replace("\\", "")
    assert test.button(key="import").disabled, "late is no question yet, and x9 no item"
    test.button(key="import-add-questions").click().run()
    assert not test.exception and session.questions == ("topic", "fraud", "late")
    test.file_uploader(key="import-file").set_value(("answers.csv", file, "text/csv")).run()
    test.checkbox(key="import-leave-out").check().run()
    test.button(key="import").click().run()
    assert not test.exception
    said = {name: session.question(name).state.labels for name in session.questions}
    assert said == {
        "topic": {0: "low", 1: "high"},
        "fraud": {0: "yes", 1: "no"},
        "late": {0: "yes", 1: "yes"},
    }
    # brought back with one cell changed: what it would change is told apart from what is the same
    changed = file.replace(b"b,high,late", b"b,low,late").replace(b"x9,low,fraud\n", b"")
    test.file_uploader(key="import-file").set_value(("back.csv", changed, "text/csv")).run()
    assert not test.exception and "1 answer of the file: another than here" in texts(test)
