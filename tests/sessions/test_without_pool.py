"""Labels are not hostage to the pool's file."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from workbench import cli
from workbench.errors import InputError
from workbench.exchange.labels import COLUMNS, export_labels
from workbench.exchange.rows import StoredLabels, label_table
from workbench.sessions import Session
from workbench.sessions.opening import relocate
from workbench.store import Store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine" / "rows.csv"
    path.parent.mkdir()
    rng = np.random.default_rng(0)
    lines = [f"r{i},{rng.normal(6 * (i % 2)):.3f},{rng.normal():.3f}" for i in range(40)]
    path.write_text("id,a,b\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def session(store: Store, file: Path) -> Session:
    made = Session.create(
        str(file),
        name="mine",
        pool_options={"id_column": "id"},
        classes=["even", "odd"],
        annotator="ann",
        store=store,
        policy="margin",
        classifier="logistic-regression",
    )
    for _ in range(6):
        (ask,) = made.ask()
        made.tell(ask.id, ("even", "odd")[ask.item % 2])
    made.items.note(ask.item, "sure")
    return made


def test_labels_are_exported_without_the_pool(session: Session, store: Store, file: Path) -> None:
    with_pool = label_table(session)
    file.unlink()
    with pytest.raises(InputError):
        Session.open(session.id, store=store)
    stored = StoredLabels.of(session.id, store)
    rows = label_table(stored)
    assert rows == [{name: row[name] for name in ("id", *COLUMNS)} for row in with_pool]
    assert {row["source"] for row in rows} <= {"cold-start", "policy", "evaluation", "uniform", "map"}
    assert {row["id"] for row in rows} <= {f"r{i}" for i in range(40)}
    assert [r["label"] for r in csv.DictReader(export_labels(stored).decode().splitlines())] == [
        r["label"] for r in rows
    ]
    for form in ("parquet", "jsonl", "label-studio", "huggingface"):
        assert export_labels(stored, form)
    for form in ("npz", "coco", "folders"):
        with pytest.raises(InputError, match=r"pool is not at hand\. Use csv"):
            export_labels(stored, form)


def test_a_project_is_pointed_at_the_new_place_of_its_file(
    session: Session, store: Store, file: Path, tmp_path: Path
) -> None:
    before = session.state
    moved = tmp_path / "elsewhere.csv"
    shutil.move(file, moved)
    with pytest.raises(InputError, match="There is no file"):
        relocate(session.id, tmp_path / "nope.csv", store=store)
    other = tmp_path / "other.csv"
    other.write_text(moved.read_text().replace("r3,", "r3,9"))
    with pytest.raises(InputError, match="not the one this project was made from"):
        relocate(session.id, other, store=store)
    assert store.project(session.id).pool["name"] == str(file)
    relocate(session.id, moved, store=store)
    again = Session.open(session.id, store=store)
    assert again.state == before and len(again.pool) == 40
    # the folder will do, where the file is still called as it was
    folder = tmp_path / "new home"
    folder.mkdir()
    shutil.move(moved, folder)
    assert relocate(session.id, folder, store=store).pool["name"] == str(folder / moved.name)


def test_the_command_line_exports_and_relocates(
    session: Session,
    store: Store,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", store.url)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    expected = [row["id"] for row in label_table(session)]
    moved = tmp_path / "elsewhere.csv"
    shutil.move(file, moved)
    code, out, err = run("export", "mine", "--format", "jsonl")
    assert code == 0, err
    assert [json.loads(line)["id"] for line in out.splitlines()] == expected
    assert f"workbench relocate {session.id}" in err
    code, _, err = run("guess", "mine")
    assert code == 2 and str(file) in err and f"workbench relocate {session.id}" in err
    code, *_ = run("export", "mine", "--format", "bundle", "--out", tmp_path / "b")
    assert code == 2 and not (tmp_path / "b").exists()
    code, out, _ = run("relocate", "mine", moved)
    assert code == 0 and str(moved) in out
    assert len(Session.open(session.id, store=store).pool) == 40
    _, out, _ = run("projects")
    assert "mine" in out and "\t6\t" in out
    code, *_ = run("backup", tmp_path / "copy.sqlite")
    assert code == 0 and (tmp_path / "copy.sqlite").is_file()
    assert run("restore", tmp_path / "copy.sqlite")[0] == 2
    code, out, _ = run("restore", tmp_path / "copy.sqlite", "--replace")
    assert code == 0 and "before" in out
