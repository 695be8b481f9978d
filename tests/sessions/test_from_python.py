"""Work in a notebook: its own objects in, a project that opens again, tables and files out."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.sessions.fakes import FAKE
from workbench.errors import InputError
from workbench.pools import Pool, inspect_table, load_pool
from workbench.sessions import Session, simulate
from workbench.store import Store

WORDS = ("refund", "card", "lost", "late", "parcel", "login", "password", "invoice")
N = 60


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"age": rng.integers(18, 80, N)})
    made["city"] = pd.Categorical(rng.choice(["Oslo", "Rome"], N))
    made["comment"] = [" ".join(rng.choice(WORDS, 4)) for _ in range(N)]
    made["mixed"] = [i if i % 2 else "x" for i in range(N)]
    made["seen"] = pd.date_range("2026-01-01", periods=N)
    made["label"] = np.where(made["age"] > 40, "old", "young")
    return made


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


# --- pools ----------------------------------------------------------------------------------------


def test_a_table_is_read_as_the_page_reads_its_file(tmp_path: Path) -> None:
    held = load_pool(frame(), target="label")
    frame().astype({"mixed": str, "city": str}).to_parquet(tmp_path / "t.parquet")
    report = inspect_table(tmp_path / "t.parquet", target="label")
    assert held.uses == report.columns_option
    read = load_pool(tmp_path / "t.parquet", columns=report.columns_option)
    assert held.classes == ("old", "young") and held.fingerprint == read.fingerprint
    np.testing.assert_array_equal(held.features, read.features)


@pytest.mark.parametrize("y", [list("ab") * 10, np.array(list("ab") * 10), pd.Series(list("ab") * 10)])
def test_arrays_with_their_classes(y: object) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    pool = load_pool(X, y)
    assert pool.kind == "table" and pool.classes == ("a", "b")
    assert pool.truth is not None and pool.truth.tolist() == [0, 1] * 10
    np.testing.assert_array_equal(pool.features, X)


def test_what_is_not_known_of_an_array_stays_unknown() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    for y in ([0, 1, -1, 0, 1, -1], ["0", "1", None, "0", "1", ""], [0, 1, np.nan, 0, 1, np.nan]):
        pool = load_pool(X, y)
        assert pool.truth is not None and pool.truth.tolist() == [0, 1, -1, 0, 1, -1]
    both = load_pool(X, [-1, 1] * 3)  # two classes, as they often are called
    assert both.classes == ("-1", "1") and both.truth is not None and (both.truth >= 0).all()
    assert load_pool(X).truth is None


def test_texts_pictures_and_arrays_of_pictures(tmp_path: Path) -> None:
    from PIL import Image

    texts = load_pool(list(frame()["comment"]), list(frame()["label"]))
    assert texts.kind == "text" and texts.items.show(0).text == frame()["comment"][0]
    assert load_pool(frame()["comment"]).kind == "text"
    paths = []
    rng = np.random.default_rng(0)
    for i in range(6):
        place = tmp_path / f"d{i % 2}" / f"{i}.png"
        place.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 24, 3), dtype=np.uint8)).save(place)
        paths.append(place)
    pool = load_pool(paths, ["a", "b"] * 3)
    assert pool.kind == "image" and pool.classes == ("a", "b")
    shown = pool.items.show(3).image
    assert shown is not None and shown.shape[:2] == (20, 24)
    assert load_pool([str(path) for path in paths]).kind == "image"
    assert load_pool(rng.integers(0, 255, (9, 8, 8), dtype=np.uint8), list("abc") * 3).kind == "image"


@pytest.mark.parametrize(
    ("source", "y", "options", "says"),
    [
        (5, None, {}, "No pool can be made of this .int.; give a name"),
        (np.zeros((4, 2)), ["a"], {}, "4 items and labels of shape .1.; give one label an item"),
        ([[1, "a"], [2, "b"]], None, {}, "is all numbers. Give a DataFrame"),
        ([], None, {}, "holds no items"),
        ({"a": [1, 2], "b": [1]}, None, {}, "make no table"),
        (np.full((4, 2), np.nan), None, {}, "not a finite number"),
        ("digits", [1], {}, "name the column: target="),
        ([Path("gone.png"), Path("lost.png")], None, {}, "2 of 2 files are not there"),
        (frame(), None, {"target": "lable"}, "no column 'lable'"),
        (frame(), ["x", "y"] * 30, {}, "y gives them once more"),
        (frame(), None, {"targte": "label"}, "no option 'targte'"),
    ],
)
def test_what_no_pool_can_be_made_of_is_said_with_the_way_out(
    source: object, y: object, options: dict[str, str], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        load_pool(source, y, **options)


# --- sessions -------------------------------------------------------------------------------------


def asked(session: Session, n: int) -> None:
    truth = session.pool.truth
    assert truth is not None
    for _ in range(n):
        (question,) = session.ask(1)
        assert session.tell(question, session.pool.classes[truth[question.item]])


def test_a_table_in_memory_becomes_a_project_that_opens_again_by_its_name() -> None:
    made = Session.create(frame(), target="label", name="people", classifier=FAKE, policy="margin")
    asked(made, 12)
    made.refit()
    again = Session.open("people")
    assert again.id == made.id and again.pool.fingerprint == made.pool.fingerprint
    assert again.state.labels == made.state.labels
    by_pool = Session.create(load_pool(frame(), target="label"), name="people", classifier=FAKE)
    assert Session.open(by_pool.id).pool.fingerprint == made.pool.fingerprint
    with pytest.raises(InputError, match=f"2 projects are called 'people'; give the id: .*{made.id}"):
        Session.open("people")
    with pytest.raises(InputError, match=r"no project 'poeple'\. There are: people"):
        Session.open("poeple")


def test_arrays_texts_and_pictures_become_projects_too(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    for source in (load_pool(X, list("ab") * 10), list(frame()["comment"])):
        made = Session.create(source, classes=["a", "b"], classifier=FAKE)
        assert Session.open(made.id).pool.fingerprint == made.pool.fingerprint


def test_a_file_is_guessed_as_the_page_guesses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.app.data import upload
    from workbench.app.shell import background_files

    # a page shows a bar after a moment and looks again; here nobody does
    assert background_files.read.__kwdefaults__ is not None
    monkeypatch.setitem(background_files.read.__kwdefaults__, "patience", 600.0)
    table = frame().drop(columns="label").assign(llm_label=["pos", "neg"] * (N // 2))
    table.to_csv(tmp_path / "reviews.csv", index=False)
    monkeypatch.chdir(tmp_path)
    made = Session.create("reviews.csv", classes=["pos", "neg"], classifier="large-margin")
    page = upload.first_choices(str(tmp_path / "reviews.csv"))["columns"]
    options = made.project.pool["options"]["columns"]
    assert options == page | {"llm_label": {"use": "leave out"}}  # a guess at the class is no feature
    assert [one["source"] for one in made.settings["guesses"]] == ["column:llm_label"]
    assert made.project.pool["name"] == str(tmp_path / "reviews.csv"), "found from any folder"
    without = Session.create("reviews.csv", classes=["pos", "neg"], guess=())
    assert not without.settings.get("guesses")
    assert without.project.pool["options"]["columns"]["llm_label"]["use"] == "category"


def test_labels_tables_files_and_the_model_come_out(tmp_path: Path) -> None:
    session = Session.create(
        frame(), target="label", name="people", classifier="logistic-regression", annotator="Ada"
    )
    assert session.labels.empty and list(session.labels.columns)[-4:] == ["label", "status", "person", "time"]
    with pytest.raises(InputError, match="no model to predict with yet"):
        session.items.to_pandas(predictions=True)
    with pytest.raises(InputError, match="no model to save yet"):
        session.export("model", tmp_path / "model")
    asked(session, 14)
    session.refit()
    labels = session.labels
    assert len(labels) == 14 and set(labels["person"]) == {"Ada"}
    assert labels["label"].tolist() == [frame()["label"][i] for i in labels.index]
    assert labels["comment"].tolist() == [frame()["comment"][i] for i in labels.index]
    every = session.items.to_pandas(predictions=True)
    assert len(every) == N and (every["status"] == "predicted").sum() == N - 14
    assert every["label"].notna().all() and session.items.to_pandas()["label"].notna().sum() == 14
    assert session.export("csv", tmp_path / "deep" / "labels.csv") == 14
    assert len(pd.read_csv(tmp_path / "deep" / "labels.csv")) == 14
    session.export("bundle", tmp_path / "bundle")
    with pytest.raises(InputError, match="choose another folder"):
        session.export("bundle", tmp_path / "bundle")
    with pytest.raises(InputError, match=r"There is no format 'xls'\. Known: csv"):
        session.export("xls", tmp_path / "a.xls")
    for form in ("csv", "bundle", "model", "predictor"):
        with pytest.raises(InputError, match="cannot be written"):
            session.export(form, tmp_path / "deep" / "labels.csv" / "below.csv")
    with pytest.raises(InputError, match="cannot be written: File exists"):
        session.export("model", tmp_path / "deep" / "labels.csv")
    from workbench.exchange.models import load_model

    rows = frame().head(7).drop(columns="label")
    assert session.model is not None
    session.export("model", tmp_path / "model")
    told = load_model(tmp_path / "model").predict(rows)
    codes = session.model.probabilities[:7].argmax(axis=1)
    assert told == [session.model.classes[code] for code in codes]
    assert load_model(tmp_path / "bundle").predict(rows) == told


def test_answers_that_answer_nothing_are_refused() -> None:
    session = Session.create(frame(), target="label", classifier=FAKE)
    (question,) = session.ask(1)
    for wrong in ((question.item, "old"), (question, 3), ([question], "old")):
        with pytest.raises(InputError, match="name of a class"):
            session.tell(*wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="middle"):
        session.tell(question, "middle")
    for act in (session.items.show, session.predictions.of, session.queue.twins):
        for none in (N, -1, "a", 1.5):
            with pytest.raises(InputError, match=f"There is no item {none}; the pool has {N}"):
                act(none)  # type: ignore[operator]
    items = session.items
    for about_none in (
        partial(items.flag, []),
        partial(items.note, [], "odd"),
        partial(items.label, [], "old"),
        partial(items.resolve, [], "old"),
        partial(items.relabel, [], "old"),
    ):
        with pytest.raises(InputError, match="No item is chosen"):
            about_none()


def test_a_run_takes_what_load_pool_takes() -> None:
    rounds = list(simulate("iris", classifier=FAKE, budget=2))
    assert [r.n_labelled for r in rounds] == [3, 4, 5]
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert len(list(simulate(load_pool(X, X[:, 0] > 0), classifier=FAKE, budget=1))) == 2


# --- what a notebook shows ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["digits", "iris"])
def test_a_pool_shows_its_sizes_its_classes_and_some_items(name: str) -> None:
    pool = load_pool(name)
    words, page = repr(pool), pool._repr_html_()
    assert f"{len(pool):,}" in words and f"{len(pool.classes)} classes" in words and len(words) < 300
    assert page.count("<img ") == (12 if name == "digits" else 0)
    assert ("<table>" in page) == (name == "iris")


def test_what_is_shown_runs_nothing() -> None:
    evil = "<script>alert(1)</script> text of some length"
    pool = load_pool([f"{evil} {i}" for i in range(5)], name="<b>")
    session = Session.create(pool, classes=["<i>a", "b"], classifier=FAKE, name="<script>")
    for page in (pool._repr_html_(), pool.items.show(0)._repr_html_(), session._repr_html_()):
        assert "<script>" not in page and "<i>a" not in page


def test_a_session_and_a_round_show_how_far_they_are() -> None:
    session = Session.create("iris", classifier=FAKE, name="flowers", annotator="Ada")
    assert "no model yet" in repr(session)
    assert "<svg" not in session._repr_html_()
    for _ in range(2):
        asked(session, 6)
        session.refit()
    page = session._repr_html_()
    assert "12 of 150 items labelled" in page and "<svg" in page and "setosa" in page
    one = session.rounds[-1]
    assert repr(one).startswith("<Round 1: 12 labels, error 0.") and "Brier score" in one._repr_html_()
    assert "image" not in repr(session.items.show(0)) and "petal" in repr(session.items.show(0))


# --- the top of the package -----------------------------------------------------------------------


def test_the_top_lists_its_names_and_imports_none_of_them() -> None:
    code = (
        "import sys, json\n"
        "before = set(sys.modules)\n"
        "import workbench\n"
        "listed = dir(workbench)\n"
        "print(json.dumps([sorted(set(sys.modules) - before), listed]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, names = json.loads(done.stdout)
    ours = [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names]
    assert ours == ["workbench", "workbench.errors", "workbench.reading", "workbench.registry"]
    assert {"load_pool", "make_classifier", "load_model", "simulate", "Session", "Store", "Pool"} <= set(
        names
    )


def test_the_names_at_the_top_are_those_below() -> None:
    import workbench

    assert workbench.load_pool is load_pool and workbench.Session is Session and workbench.Pool is Pool
    assert workbench.Store is Store and workbench.simulate is simulate
    assert all(getattr(workbench, name) is not None for name in workbench.__all__)
    with pytest.raises(AttributeError, match="no attribute 'pool'"):
        workbench.pool  # noqa: B018


def test_two_spellings_of_the_same_letters_are_one_name(tmp_path: Path, store: Store) -> None:
    """One key, as typed in one piece or as a letter and its accent; what was written stays."""
    from workbench.app.desk.finding import find
    from workbench.exchange.imports import import_labels
    from workbench.guesses import of_classes

    typed, composed = "the\u0301", "th\u00e9"
    path = tmp_path / "cups.csv"
    rows = [f"e\u0301{i},a cup of {typed} with the number {i} please" for i in range(20)]
    path.write_text("id,text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    session = Session.create(str(path), name="cups", classes=[typed, "other"], store=store, annotator="ann")
    with pytest.raises(InputError, match="already"):
        session.classes.add(composed)
    session.items.label(0, composed)
    assert session.state.classes == (typed, "other") and session.state.n_labelled == 1
    assert find(session.pool, composed).size == find(session.pool, typed).size == 20
    labels = f"id,label\n\u00e93,{composed}\n".encode()
    assert import_labels(labels, session.pool, "csv", session.classes) == [(3, typed)]
    assert of_classes([composed] * 20, session.classes).codes.tolist() == [0] * 20
    vectors = tmp_path / "vectors.npz"
    np.savez(vectors, ids=np.array([f"\u00e9{i}" for i in range(20)]), vectors=np.eye(20, dtype=np.float32))
    pool = load_pool(str(path), features=f"embeddings:{vectors}")
    assert len(pool) == 20 and not any("left out" in note for note in pool.notes)
