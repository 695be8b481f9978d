"""Commands about projects that ask several questions."""

from pathlib import Path

import pytest

from tests.cli.calls import call, refused, table
from tests.sessions.fakes import FAKE
from workbench.sessions import Session


def test_questions_are_made_listed_changed_answered_from_files_and_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 11}\n" for i in range(20)))
    options = ("--name", "mail", "--classifier", FAKE, "--policy", "margin")
    asked = ("--ask", "topic=refund,delivery", "--ask", "fraud")
    assert call("new", tmp_path / "rows.csv", *options, *asked) == 0
    assert call("questions", "mail", "--add", "urgent", "--rename", "fraud=scam", "--archive", "scam") == 0
    said = capsys.readouterr().out
    assert "topic" in said and "scam" in said and "archived" in said
    assert call("questions", "mail", "--take-back", "scam") == 0
    capsys.readouterr()
    (tmp_path / "labels.csv").write_text("item,topic,tags\n0,refund,scam;late\n1,delivery,urgent\n")
    assert "late" in refused(capsys, "import", "mail", tmp_path / "labels.csv")
    assert call("import", "mail", tmp_path / "labels.csv", "--dry-run") == 0
    assert "No yes / no question is called: late" in capsys.readouterr().out
    assert call("import", "mail", tmp_path / "labels.csv", "--add-questions") == 0
    (tmp_path / "changed.csv").write_text("item,topic\n0,delivery\n1,delivery\n")
    capsys.readouterr()
    assert call("import", "mail", tmp_path / "changed.csv") == 2
    told = capsys.readouterr()
    assert "mail: 1 label of the file" in told.out and "--yes" in told.err
    assert Session.open("mail", question="topic").state.labels[0] == "refund"
    assert call("export", "mail", "--question", "late") == 0
    assert [row["label"] for row in table(capsys.readouterr().out)] == ["yes", "no"]
    assert call("export", "mail", "--what", "questions") == 0
    rows = table(capsys.readouterr().out)
    assert [row["tags"] for row in rows] == ["scam;late", "urgent"]
    assert [row["topic"] for row in rows] == ["refund", "delivery"]
    assert call("export", "mail", "--what", "questions-predictions") == 0
    rows = table(capsys.readouterr().out)
    assert len(rows) == 20 and {row["topic_prediction"] for row in rows} <= {"refund", "delivery"}
    assert "no question 'tone'" in refused(capsys, "export", "mail", "--question", "tone")
    assert Session.open("mail", question="scam").state.n_labelled == 2
    assert call("projects") == 0
    assert "2, 2, 2, 2" in capsys.readouterr().out


def test_policies_are_compared_on_what_people_answered_to_one_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    from workbench.sessions.spec import answered_pool, answered_source

    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 11}\n" for i in range(60)))
    session = Session.create(
        str(tmp_path / "rows.csv"),
        name="mail",
        questions=[("topic", ["refund", "delivery"]), "fraud"],
        classifier=FAKE,
        policy="margin",
        evaluation_share=0.0,
    )
    fraud = session.question("fraud")
    compare = ("compare", "--project", "mail", "--question", "fraud", "--classifier", FAKE)
    sizes = ("--policy", "margin", "--policy", "random", "--seeds", "1", "--budget", "5", "-q")
    assert "Only 0 items" in refused(capsys, *compare, *sizes)
    for item in range(40):
        fraud.items.label(item, "yes" if item % 3 else "no")
    name, options = answered_source(fraud.id)
    for item in range(40, 50):
        fraud.items.label(item, "yes")
    pool = answered_pool(name, options)
    assert pool.classes == ("yes", "no") and (pool.truth >= 0).sum() == 40
    assert (answered_pool(name).truth >= 0).sum() == 50
    assert call(*compare, *sizes, "--out", tmp_path / "c") == 0
    assert "mail: fraud\t" in capsys.readouterr().out
    rows = table((tmp_path / "c" / "comparison.csv").read_text())
    assert {row["policy"] for row in rows} == {"margin", "random"} and len(rows) == 2 * 6
    capsys.readouterr()
    assert "leave out digits" in refused(capsys, *compare, "--pool", "digits", *sizes)
    assert "name it by --project" in refused(capsys, "compare", "--question", "fraud", *sizes)
