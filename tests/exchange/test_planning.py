"""Plan of an import: told before anything is done."""

import json
from pathlib import Path

import pytest

from workbench.cli.projects import import_project
from workbench.errors import InputError
from workbench.exchange.imports import plan_import, take_import
from workbench.sessions import Session
from workbench.store import LABEL, Store

FILE = b"id,label\na,low\nb,high\nc,lwo\nd,other\nnobody,low\n"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    made = Session.create(
        str(path), pool_options={"id_column": "id"}, classes=["low", "high"], store=Store.open()
    )
    made.items.label(0, "low")
    made.items.label(1, "low")
    return made


def test_a_plan_counts_what_is_new_what_differs_what_is_unknown(session: Session) -> None:
    events = session.state.n_events
    plan = plan_import(FILE, session, "csv")
    assert (plan.new, plan.same, dict(plan.differ)) == (2, 1, {(LABEL, 1): ("low", "high")})
    assert plan.unknown == ("nobody",) and dict(plan.classes) == {"lwo": 1, "other": 1}
    assert dict(plan.alike) == {"lwo": "low"}, "a slip of the pen is no fourth class unseen"
    assert (
        plan.words() == "2 new, 1 differ, 1 are there already, 1 of unknown items, 2 new classes: lwo, other"
    )
    assert session.state.n_events == events, "nothing was taken in"


def test_labels_are_taken_as_somebody_decided(session: Session) -> None:
    plan = plan_import(FILE, session, "csv")
    with pytest.raises(InputError, match="leave them out"):
        take_import(session, plan, "labels.csv")
    choices = {"leave_out_unknown": True, "keep_mine": True, "named": {"lwo": "low"}}
    take_import(session, plan, "labels.csv", **choices)
    assert session.state.labels == {0: "low", 1: "low", 2: "low", 3: "other"}
    assert session.classes == ("low", "high", "other")


def test_the_command_line_says_it_too(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "labels.csv"
    file.write_bytes(FILE)
    import_project(session.id, file, None, dry_run=True)
    said = capsys.readouterr().out
    assert "2 new, 1 differ" in said and "may be 'low'" in said
    with pytest.raises(InputError, match="--leave-out"):
        import_project(session.id, file, None)
    assert session.state.labels == {0: "low", 1: "low"}
    capsys.readouterr()
    with pytest.raises(InputError, match="--yes"):  # a test has no terminal
        import_project(session.id, file, None, leave_out=True)
    assert "Item b: low now, high in the file" in capsys.readouterr().out
    assert session.state.labels == {0: "low", 1: "low"}
    import_project(session.id, file, None, leave_out=True, yes=True)
    assert session.state.labels[3] == "other"


def test_items_on_which_people_of_a_file_differ_are_not_there_already(session: Session) -> None:
    def choice(person: int, name: str) -> dict[str, object]:
        result = {"from_name": "label", "type": "choices", "value": {"choices": [name]}}
        return {"completed_by": person, "lead_time": 1, "result": [result]}

    tasks = [{"id": 7, "data": {"id": "f"}, "annotations": [choice(1, "low"), choice(2, "high")]}]
    plan = plan_import(json.dumps(tasks).encode(), session, "label-studio")
    assert (plan.new, plan.same, plan.undecided) == (0, 0, 1)
    take_import(session, plan, "theirs.json")
    assert 5 in session.state.undecided
    # the same file once more changes nothing; where its people have come to agree, it does
    again = plan_import(json.dumps(tasks).encode(), session, "label-studio")
    assert (again.same, dict(again.differ)) == (1, {})
    tasks[0]["annotations"] = [choice(1, "low"), choice(2, "low")]
    plan = plan_import(json.dumps(tasks).encode(), session, "label-studio")
    assert (plan.same, dict(plan.differ)) == (0, {(LABEL, 5): ("undecided", "low")})


def test_a_column_of_labels_is_named_on_the_command_line(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("id,mood\nc,low\n")
    with pytest.raises(InputError, match="--label COLUMN"):
        import_project(session.id, file, None)
    import_project(session.id, file, None, label="mood")
    assert session.state.labels[2] == "low"
