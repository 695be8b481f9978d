"""Commands about projects: new, export, import, access, backup, restore."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.cli.calls import FAST, call, refused, table
from tests.sessions.fakes import FAKE
from workbench.app.access import uploads
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.store import Store, pool_files
from workbench.store.processes import serving
from workbench.writing import workbench_home


def test_a_project_is_started_for_people_with_items_that_several_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(40)))
    options = (
        "--name",
        "Rows",
        "--class",
        "good",
        "--class",
        "bad",
        "--classifier",
        FAKE,
        "--policy",
        "margin",
    )
    shared = ("--overlap", "0.25", "--people", "3", "--all")
    assert call("new", tmp_path / "rows.csv", *options, *shared) == 0
    (record,) = Store.open().projects()
    assert capsys.readouterr().out == f"Rows: 40 items, 2 classes, project {record.id}\n"
    made = Session.open(record.id)
    assert (made.settings["overlap"], made.settings["people"]) == (0.25, 3) and made.classes == (
        "good",
        "bad",
    )
    assert made.items.twins.n_groups == 0
    assert call("new", tmp_path / "rows.csv", *options) == 0
    assert "10 items are copies or near-copies of others, in 5 groups." in capsys.readouterr().out
    assert "'--people': Input should be greater than or equal to 2" in refused(
        capsys, "new", tmp_path / "rows.csv", "--overlap", "0.5", "--people", "1"
    )
    assert "'overlap' is 'often': it is a share" in refused(
        capsys, "new", tmp_path / "rows.csv", "--overlap", "often"
    )
    assert "nothing.csv" in refused(capsys, "new", "nothing.csv")
    assert call("new", tmp_path / "rows.csv", *options, "--overlap", "worth", "--people", "4") == 0
    every = [Session.open(one.id).settings for one in Store.open().projects()]
    assert ("worth", 4) in [(settings["overlap"], settings["people"]) for settings in every]


def test_no_command_writes_over_what_it_or_a_project_is_made_from(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pool, other = tmp_path / "flowers.csv", tmp_path / "other.csv"
    pool.write_text("id,x,y\n" + "".join(f"t{i},{i % 7},{i % 5}\n" for i in range(40)))
    pool.with_name("linked.csv").symlink_to(pool)
    pool.with_name("same.csv").hardlink_to(pool)
    options = ("--class", "a", "--class", "b", "--classifier", FAKE, "--policy", "margin", "--all")
    assert call("new", pool, *options) == 0
    session = Session.open(Store.open().projects()[0].id)
    session.items.label([3, 4], "a")
    session.instructions.write("Look twice.", {})
    rows = pd.DataFrame(np.zeros((3, 4)), columns=list(load_pool("iris").feature_map.columns))
    rows.to_csv("rows.csv", index=False)
    fast_run = tmp_path / "run"
    assert call("run", *FAST, "--budget", "5", "--out", fast_run, "-q") == 0
    before = pool.read_bytes(), Path("rows.csv").read_bytes()
    database = home / "workbench.sqlite"
    capsys.readouterr()
    for replace in ((), ("--replace",)):
        for place in ("flowers.csv", "linked.csv", "same.csv", database):
            for command in (
                ("export", "flowers", "--format", "csv"),
                ("export", "flowers", "--format", "npz", "--what", "everything"),
                ("predict", "rows.csv", "--model", fast_run),
                ("score", "--pool", "iris", "--model", fast_run),
            ):
                said = refused(capsys, *command, "--out", place, *replace)
                assert "belongs to" in said and "choose another file" in said
        assert "belongs to rows.csv" in refused(
            capsys, "predict", "rows.csv", "--model", fast_run, "--out", "./rows.csv", *replace
        )
        assert "belongs to" in refused(
            capsys, "predict", "rows.csv", "--model", fast_run, "--out", fast_run / "run.json", *replace
        )
    with pytest.raises(InputError, match="belongs to"):
        session.export("csv", pool, replace=True)
    assert (pool.read_bytes(), Path("rows.csv").read_bytes()) == before
    # what is nobody's pool is written over where --replace says so
    other.write_text("mine")
    for command in (
        ("export", "flowers"),
        ("predict", "rows.csv", "--model", fast_run),
        ("score", "--pool", "iris", "--model", fast_run),
    ):
        assert "--replace" in refused(capsys, *command, "--out", other)
        assert call(*command, "--out", other, "--replace") == 0
        assert other.read_text() != "mine"
        capsys.readouterr()
    assert call("instructions", "flowers", "--out", "told") == 0
    capsys.readouterr()
    assert "--replace" in refused(capsys, "instructions", "flowers", "--out", "told")
    with pytest.raises(InputError, match="replace=True"):
        session.export("csv", other)


def test_how_a_file_of_answers_is_read_can_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(40)))
    named = ("--class", "good", "--class", "bad", "--classifier", FAKE)
    assert call("new", tmp_path / "rows.csv", "--name", "Rows", *named) == 0
    book = tmp_path / "book.xlsx"
    with pd.ExcelWriter(book) as sheets:
        pd.DataFrame({"note": ["nothing"]}).to_excel(sheets, sheet_name="About", index=False)
        for name, column in (("Labels", "label"), ("Guesses", "prediction")):
            frame = pd.DataFrame({"id": [3, 4, 5], column: ["good", "bad", "good"]})
            frame.to_excel(sheets, sheet_name=name, index=False)
    assert call("import", "Rows", book, "--read", "sheet=Labels") == 0
    assert "3 labels read" in capsys.readouterr().out
    assert call("guess", "Rows", "--from", book, "--read", "sheet=Guesses", "--dry-run") == 0
    assert "3" in capsys.readouterr().out
    assert "no sheet 'Label'" in refused(capsys, "import", "Rows", book, "--read", "sheet=Label")


def test_export_and_import(tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path) -> None:
    session = Session.create("iris", name="flowers", classifier=FAKE, policy="margin", annotator="ann")
    items = session.pool.trainable[:4].tolist()
    for item, name in zip(items, ("setosa", "virginica", "setosa", "versicolor"), strict=True):
        session.items.label(item, name)
    assert call("export", "flowers") == 0
    text = capsys.readouterr().out
    assert [r["label"] for r in table(text)] == ["setosa", "virginica", "setosa", "versicolor"]
    for format in ("parquet", "jsonl", "npz", "label-studio", "huggingface"):
        assert call("export", session.id, "--format", format, "--out", tmp_path / "deep" / f"x.{format}") == 0
        assert (tmp_path / "deep" / f"x.{format}").stat().st_size > 0
    assert call("export", session.id, "--format", "bundle", "--out", tmp_path / "bundle") == 0
    assert json.loads((tmp_path / "bundle" / "run.json").read_text())["name"] == "flowers"
    capsys.readouterr()
    assert "--out" in refused(capsys, "export", session.id, "--format", "npz")
    assert "no format 'xml'" in refused(capsys, "export", session.id, "--format", "xml")
    assert "is there already" in refused(
        capsys, "export", session.id, "--format", "bundle", "--out", tmp_path
    )

    other = Session.create("iris", name="again", classifier=FAKE, policy="margin", annotator="ann")
    (tmp_path / "labels.csv").write_text(text)
    assert call("import", "again", tmp_path / "labels.csv") == 0
    assert "4 labels read, 4 items newly labelled, 4 in all" in capsys.readouterr().out
    assert other.state.labels == session.state.labels
    (tmp_path / "labels.csv").write_text("id,label\n99999,x\n")
    assert "has no item 99999" in refused(capsys, "import", "again", tmp_path / "labels.csv")
    (tmp_path / "labels.dat").write_text("id,label\n")
    assert "--format" in refused(capsys, "import", "again", tmp_path / "labels.dat")
    Session.create("iris", name="again", classifier=FAKE, policy="margin", annotator="ann")
    assert "2 projects are called 'again'; give the id" in refused(capsys, "export", "again")
    Store.open().close()


def test_predictions_after_an_import_are_of_a_fit_on_its_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id,x\n" + "".join(f"r{i},{i % 9}\n" for i in range(40)))
    (tmp_path / "labels.csv").write_text("id,label\nr1,low\nr2,low\nr7,high\nr8,high\n")
    shared = ("--class", "low", "--class", "high", "--classifier", FAKE, "--all", "--name", "Rows")
    assert call("new", tmp_path / "rows.csv", *shared) == 0
    wanted = ("export", "Rows", "--what", "predictions", "--out", tmp_path / "out.csv")
    capsys.readouterr()
    assert "two classes" in refused(capsys, *wanted)
    assert call("import", "Rows", tmp_path / "labels.csv") == 0
    assert call(*wanted) == 0
    assert [row["status"] for row in table((tmp_path / "out.csv").read_text())].count("predicted") > 20


def test_a_project_is_deleted_once_that_is_confirmed_and_no_app_serves_it(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    kept, gone = (Session.create("iris", name=name, classifier=FAKE) for name in ("Kept", "Gone"))
    gone.items.label(3, "setosa")
    assert "--yes" in refused(capsys, "delete", "Gone")
    with serving():
        assert "The app is running" in refused(capsys, "delete", "Gone", "--yes")
    assert len(Store.open().projects()) == 2
    assert call("delete", "Gone", "--yes") == 0
    assert capsys.readouterr().out == "Gone: deleted, with 1 labels\n"
    assert [project.id for project in Store.open().projects()] == [kept.id]
    (entry,) = Store.open().audit.entries(project=gone.id)
    assert (entry.what, entry.called) == ("deleted", "Gone")
    (workbench_home() / "servers" / "7").write_text("elsewhere:7:1")  # of a server that was killed long ago
    os.utime(workbench_home() / "servers" / "7", (0, 0))
    assert call("delete", "Kept", "--yes") == 0


def test_a_pool_that_changed_is_named_and_its_labels_are_exported_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.csv"
    rows = [f"{i},{i * i}" for i in range(30)]
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    session = Session.create(
        str(path), name="mine", classifier=FAKE, policy="margin", classes=["x", "y"], annotator="ann"
    )
    session.items.label(3, "x")
    rows.append("77,78")
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    assert call("export", "mine") == 0
    assert len(table(capsys.readouterr().out)) == 1
    rows[5] = "5,99"
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    assert call("export", "mine") == 0
    labels, message = capsys.readouterr()
    assert [row["label"] for row in table(labels)] == ["x"]
    assert "is not the one this project was made from" in message and "1 changed (5)" in message
    assert session.state.labels == {3: "x"}
    Store.open().close()


def test_access_shows_and_changes_whose_a_project_is(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    store = Store.open()
    session = Session.create("iris", name="petals", classifier=FAKE, policy="margin", annotator="ann")
    assert call("access", "petals") == 0
    assert capsys.readouterr().out == f"petals ({session.id}): open, of nobody\n"
    assert "belongs to nobody" in refused(capsys, "access", "petals", "private")
    assert "Nobody called 'Ann' has logged in; there are: nobody yet" in refused(
        capsys, "access", "petals", "--owner", "Ann"
    )
    store.people.known_as("id 1", "Ann")
    store.people.known_as("id 2", "Bob")
    assert call("access", "petals", "private", "--owner", "Ann") == 0
    assert "private, of Ann\n" in capsys.readouterr().out
    assert call("access", session.id, "--with", "Bob") == 0
    assert "shared, of Ann, with Bob\n" in capsys.readouterr().out
    found = store.summary(session.id)
    assert found is not None and (found.owner, found.members) == ("id 1", ("id 2",))
    assert "private, shared or open" in refused(capsys, "access", "petals", "secret")
    store.close()


def test_a_backup_holds_what_was_uploaded_and_projects_find_it_in_another_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = uploads.keep("mine.csv", b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(40)))
    session = Session.create(str(path), name="kept", classes=["x", "y"], classifier=FAKE, policy="margin")
    session.items.label(int(session.pool.trainable[0]), "x")
    (path.parent / "tmphalf").write_bytes(b"a,b\n")
    monkeypatch.setattr(pool_files, "PIECE", 7)  # so that a file lies in several rows
    assert call("backup", tmp_path / "copy.sqlite") == 0
    assert "and 1 uploaded file(s)" in capsys.readouterr().out
    Store.open().close()
    home.rename(tmp_path / "gone")
    new = tmp_path / "elsewhere"
    monkeypatch.setenv("WORKBENCH_HOME", str(new))
    assert call("restore", tmp_path / "copy.sqlite") == 0
    again = Session.open(session.id)
    assert again.state.n_labelled == 1 and str(again.project.pool["name"]).startswith(str(new))
    assert [p.name for p in new.glob("uploads/*/*")] == ["mine.csv"]
    assert (new / "uploads").stat().st_mode & 0o077 == 0
    names = sqlite3.connect(new / "workbench.sqlite").execute("SELECT name FROM sqlite_master").fetchall()
    assert not [name for (name,) in names if "pool_files" in name]
    Store.open().close()


@pytest.mark.parametrize(
    ("column", "value"),
    [("data", b"other"), ("data", None), ("name", "../../evil"), ("folder", "/tmp"), ("name", "..")],
)
def test_a_file_in_a_damaged_copy_is_written_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path, column: str, value: Any
) -> None:
    uploads.keep("mine.csv", b"a,b\n1,2\n")
    assert call("backup", tmp_path / "copy.sqlite") == 0
    capsys.readouterr()
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        copy.execute(f"UPDATE pool_files SET {column} = ?", (value,))
        copy.commit()
    shutil.rmtree(home / "uploads")
    assert "a pool's file in it is not what was put there" in refused(
        capsys, "restore", tmp_path / "copy.sqlite"
    )
    assert not (home / "uploads").exists()
    Store.open().close()


def test_a_copy_of_which_any_page_is_damaged_is_refused(tmp_path: Path, home: Path) -> None:
    """Also a page that nothing reads on the way: it may hold labels."""
    uploads.keep("mine.csv", b"a,b\n1,2\n")
    session = Session.create("iris", name="kept", classifier=FAKE, policy="margin", annotator="ann")
    session.items.label(int(session.pool.trainable[0]), "setosa")
    copy = tmp_path / "copy.sqlite"
    with closing(Store.open()) as store:
        store.backup(copy)
    octets = copy.read_bytes()
    with closing(Store.open(tmp_path / "other.sqlite")) as other:
        for start in range(4096, len(octets), 4096):
            copy.write_bytes(octets[:start] + bytes(4096) + octets[start + 4096 :])
            with pytest.raises(InputError, match="no copy of a database"):
                other.restore(copy)


def test_backup_and_restore_bring_projects_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.create("iris", name="kept", classifier=FAKE, policy="margin", annotator="ann")
    session.items.label(int(session.pool.trainable[0]), "setosa")
    assert call("backup", tmp_path / "copy.sqlite") == 0
    assert str(tmp_path / "copy.sqlite") in capsys.readouterr().out
    assert "is there already" in refused(capsys, "backup", tmp_path / "copy.sqlite")
    Store.open().close()
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "elsewhere"))
    assert call("restore", tmp_path / "copy.sqlite") == 0
    assert "Restored" in capsys.readouterr().out
    assert Session.open(session.id).state.n_labelled == 1
    assert "--replace" in refused(capsys, "restore", tmp_path / "copy.sqlite")
    assert call("restore", tmp_path / "copy.sqlite", "--replace") == 0
    assert "What was there before" in capsys.readouterr().out
    Store.open().close()


def test_a_network_is_given_pixels_and_another_model_shapes(tmp_path: Path, home: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(16):
        octets = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(octets).save(photos / f"{number}.png")
    seen = {}
    for classifier in ("large-margin-net", "large-margin"):
        assert call("new", photos, "--name", classifier, "--classifier", classifier, "--class", "a") == 0
        (record,) = [r for r in Store.open().projects() if r.name == classifier]
        seen[classifier] = Session.open(record.id).pool
    assert seen["large-margin-net"].features.shape == (16, 16 * 16 * 3)
    assert type(seen["large-margin"].feature_map) is not type(seen["large-margin-net"].feature_map)
    assert seen["large-margin"].features.shape[1] < 16 * 16 * 3


def test_a_table_of_votes_opens_as_its_items_with_those_votes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mechanical Turk writes a row for each answer, and how long it took."""
    things = [f"{kind} of group {group}" for kind in ("ad", "book", "film") for group in "ABC"]
    texts = [f"the {thing} was {how}" for thing in things for how in ("fine", "bad")]
    rows = [
        f"H{i},W{w},{20 + i * w},{text},{'neg' if 'bad' in text or (i, w) == (0, 2) else 'pos'}"
        for i, text in enumerate(texts)
        for w in range(3)
    ]
    rows.insert(0, f"H0,,1,{texts[0]},")  # nobody took it
    rows.append(f"H1,W0,9,{texts[1]},pos")  # of a person's answers the last counts
    rows.append(f"H2,,9,{texts[2]},neg")  # of somebody whom the table does not name
    path = tmp_path / "turk.csv"
    path.write_text("\n".join(["HITId,WorkerId,Seconds,Input.text,Answer", *rows]) + "\n")
    with_votes = "item=HITId,person=WorkerId,class=Answer"
    asked = refused(capsys, "run", "--pool", path, "--target", "Answer", "--budget", 3)
    assert f"--votes {with_votes}" in asked and "(Each row is an item)" in asked
    assert call("new", path, "--votes", with_votes, "--policy", "margin", "--classifier", FAKE) == 0
    said = capsys.readouterr()
    assert "54 answers of 3 persons" in said.out
    assert "'Seconds'" in said.err and "1 answers without a 'WorkerId'" in said.err
    (project,) = Store.open().projects()
    session = Session.open(project.id)
    assert list(session.pool.items.ids) == [f"H{i}" for i in range(18)]
    assert [session.pool.items.show(i).text for i in range(18)] == texts and set(session.classes) == {
        "neg",
        "pos",
    }
    names = {name for i in range(18) for name in session.pool.items.show(i).row or {}}
    assert not names & {"WorkerId", "Seconds", "Answer"}, "the first person's answer is nobody else's to see"
    of_first = {vote.annotator: vote.by_themselves for vote in session.state.votes[0].values()}
    assert sorted(of_first.values()) == ["neg", "pos", "pos"] and len(of_first) == 3
    assert {vote.key for vote in session.state.votes[1].values()} == {"neg", "pos"}
    assert "--votes takes item=COLUMN" in refused(capsys, "new", path, "--votes", "item=HITId")
    # how the table is read, and the uses of its columns, are what somebody says
    other = tmp_path / "other.csv"
    other.write_text(path.read_text().replace(",", "|") + f"|W1|3|{texts[0]}|pos\n")
    named = ("--name", "Other", "--votes", with_votes.replace(",", ", "), "--classifier", FAKE)
    uses = 'columns={"HITId": {"use": "id", "empty": "drop"}}'
    assert call("new", other, *named, "--pool-set", "delimiter=|", "--pool-set", uses) == 0
    assert "54 answers of 3 persons" in capsys.readouterr().out
    other.write_text("task,worker,label\n" + "".join(f"t{i // 3},w{i % 3},a\n" for i in range(9)))
    assert "nothing to learn from" in refused(
        capsys, "new", other, "--votes", "item=task,person=worker,class=label"
    )


def test_new_tells_what_it_guessed_run_names_what_settles_it_and_import_asks_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    path, way = tmp_path / "leaving.csv", 'columns={"Churn": {"use": "class"}}'
    rows = "".join(f"{i % 7}.5,{('Yes', 'No')[i % 2]},{i * i % 11}.25\n" for i in range(40))
    path.write_text(f"tenure,Churn,charges\n{rows}")
    model = ("--classifier", FAKE, "--policy", "margin")
    assert call("new", path, "--name", "Leaving", *model) == 0
    assert "Is 'Churn' ('Yes', 'No') the class?" in capsys.readouterr().err
    assert f"{way} ('Churn' is the class)" in refused(capsys, "run", "--pool", path, *model, "--budget", "3")
    assert call("run", "--pool", path, *model, "--budget", "3", "--pool-set", way) == 0
    labels = tmp_path / "labels.csv"
    for rows, words in (
        ("0,gone\n1,stays\n", ""),
        ("0,stays\n", "gone now, stays in the file"),
        ("2,so so\n", "so so"),
    ):
        labels.write_text(f"item,label\n{rows}")
        capsys.readouterr()
        if words:  # a label that changes, a class that is new
            assert call("import", "Leaving", labels) == 2
            asked = capsys.readouterr()
            assert words in asked.out and "--yes" in asked.err
        assert call("import", "Leaving", labels, "--yes") == 0
