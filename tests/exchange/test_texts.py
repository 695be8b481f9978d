"""Texts that break files: they are made valid where they come in, and every format gives them back."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.trials import exports
from tests.databases import KINDS, database, new_project
from workbench.csv_writing import NUMBER, csv_text, plain_cell, safe_cell
from workbench.errors import InputError
from workbench.exchange import labels as labels_room
from workbench.exchange.imports import import_labels
from workbench.exchange.labels import FORMATS, OF_IMAGES, FileNames, class_folders, export_labels
from workbench.exchange.predictions import read_predictions
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.exchange.rows import CARRIED_BY, SCOPES
from workbench.pools import load_pool, read_rows
from workbench.pools.pool import ImageItems
from workbench.reading import parse_json, valid_text, valid_texts
from workbench.sessions import Session
from workbench.store import Store

MARKS = ("None", "nan", "NaN", "null", "<NA>", "NaT", "NA")


@pytest.mark.parametrize("text", exports.NASTY)
def test_a_cell_stays_one_cell_and_is_no_formula(text: str) -> None:
    table = csv_text([text, "b"], [[text, 1], [f"x{text}", None]])
    rows = list(csv.reader(io.StringIO(table, newline="")))
    valid = valid_text(text)
    assert [[plain_cell(cell) for cell in row] for row in rows] == [
        [valid, "b"],
        [valid, "1"],
        [f"x{valid}", ""],
    ]
    assert not safe_cell(text).startswith(("=", "+", "-", "@", "\t", "\r")) or NUMBER.fullmatch(text)


@pytest.mark.parametrize("text", ["-1", "+49170", "-19.5", "-1,5", "-.5", "-5.", "+1e-3", "-1.5E+20"])
def test_what_is_wholly_a_number_is_no_formula(text: str) -> None:
    assert (safe_cell(text), plain_cell(text), plain_cell(f"'{text}")) == (text, text, f"'{text}")
    for form in ("{}+A1", "={}", "\t{}", "@{}", "{}\n", "-{}", "{},2.5"):
        formula = form.format(text)
        assert (safe_cell(formula), plain_cell(f"'{formula}")) == (f"'{formula}", formula)


def test_a_csv_of_ours_is_a_pool_and_a_guess_again_and_no_other_cell_is_changed(
    start: Callable[..., Session], tmp_path: Path
) -> None:
    ids = ["-5", "+49170", "@me", "=1+1", "'=2", *(f"u{i}" for i in range(35))]
    rows = [[key, f"-{i + 1},234.5" if i % 2 else f"{i}.5", f"-x{i % 3}"] for i, key in enumerate(ids)]
    cells = "".join(f'{key},"{x}",{word}\n' for key, x, word in rows)
    (tmp_path / "p.csv").write_text(f"name,x,=word\n{cells}")
    uses = {"name": "id", "x": "number", "=word": "category"}
    session = start(str(tmp_path / "p.csv"), pool_options={"columns": uses}, classes=["-1", "=a", "@b"])
    answers = dict(zip(range(6), ["-1", "=a", "@b"] * 2, strict=True))
    for item, name in answers.items():
        session.items.label(item, name)
    session.refit()
    data = export_labels(session, "csv", "predictions")
    frame = pd.read_csv(io.BytesIO(data), thousands=",")
    assert frame["x"].tolist() == session.pool.features[:, 0].tolist()
    assert set(frame["'=word"]) == {"'-x0", "'-x1", "'-x2"} and frame["id"][2] == "'@me"
    again = load_pool(data, file_name="again.csv", columns="auto")
    assert list(again.items.ids) == ids and set(again.classes) == {"-1", "=a", "@b"}
    assert set(again.items.cells["=word"]) == {"-x0", "-x1", "-x2"}
    guesses = read_predictions(data, "again.csv", session.pool)
    assert {item for item, _, _ in guesses} == set(range(6, 40))
    assert {name for _, name, _ in guesses} <= set(session.classes)
    for out in (export_labels(session, "csv"), export_labels(session, "csv", "questions")):
        assert load_pool(out, file_name="o.csv", columns={"id": "id", "x": "number"}).items.ids[4] == "'=2"
    predicted = csv_text(["row", "prediction", "confidence"], [[0, "=a", 0.5]])
    assert read_rows(predicted.encode(), file_name="p.csv")["prediction"].tolist() == ["=a"]
    other = read_rows(b"id,label,'=c\n1,'=a,'@b\n", file_name="theirs.csv")
    assert [*other.columns, *other.iloc[0]] == ["id", "label", "'=c", "1", "'=a", "'@b"]


def test_numbers_and_empty_cells() -> None:
    row = [np.float64(0.1), np.float32("nan"), np.int64(-3), True, None, float("-inf"), 1e-300]
    assert csv_text(list("abcdefg"), [row]) == "a,b,c,d,e,f,g\n0.1,,-3,True,,-inf,1e-300\n"
    assert csv_text(["a"], [[None], ["x"]]) == 'a\n""\nx\n'


@pytest.mark.parametrize(
    ("texts", "places", "n"),
    [
        (("=1+1\r=2\ud800",), ("class", "id", "cell"), 70),
        pytest.param(  # alone: each text by itself, and in the names of columns, notes and people
            ("=1+1\r=2", "\ud800", "None"), exports.PLACES, 400, marks=pytest.mark.slow
        ),
    ],
)
def test_every_format_and_place_with_some_of_the_texts(
    texts: tuple[str, ...], places: tuple[str, ...], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "NASTY", texts)
    monkeypatch.setattr(exports, "PLACES", places)
    row = exports.run(2_000, seed=0)
    assert row.tried > n and row.failed == 0, "\n".join(row.failures)


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl", "npz", "label-studio", "huggingface", "coco"])
def test_classes_called_like_nothing_come_into_a_project_without_classes(
    start: Callable[..., Session], format: str
) -> None:
    pool = replace(load_pool("digits" if format == "coco" else "iris"), truth=None, classes=())
    session = start(pool, classes=MARKS)
    items = session.pool.trainable[: len(MARKS)].tolist()
    for item, name in zip(items, MARKS, strict=True):
        session.items.label(item, name)
    other = start(pool, classes=())
    other.items.import_labels(import_labels(export_labels(session, format), pool, format), "file")
    assert other.state.labels == dict(zip(items, MARKS, strict=True))


@pytest.mark.parametrize("data", [b"id,label\n0,nan\n1,b\n", b"id,label\n0,None\n1,nan\n2,b\n"])
def test_a_mark_beside_new_classes_is_not_guessed(data: bytes) -> None:
    pool = replace(load_pool("iris"), classes=())
    with pytest.raises(InputError, match=r"Row 1 of the file has the label '(nan|None)', and no"):
        import_labels(data, pool, "csv")
    assert import_labels(data, pool, "csv", ["b"])[-1][1] == "b"


def everything(session: Session, folder: Path) -> None:
    """Every export there is of a project of rows, and its bundle."""
    for format in FORMATS:
        for what in SCOPES:
            if (
                format in OF_IMAGES
                or what in ("predictions", "finished")
                or (what == "history" and format not in CARRIED_BY)
            ):
                continue
            assert export_labels(session, format, what)
    write_project_bundle(folder, session)


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_character_and_nul_are_made_valid_where_they_come_in(kind: str, tmp_path: Path) -> None:
    odd = "half \ud800 and \0"
    with database(kind, tmp_path) as store:
        session = new_project(store, "iris", name=odd, annotator=f"ann{odd}")
        item = int(session.pool.trainable[0])
        session.items.note(item, odd)
        session.items.flag(item, reason=odd)
        session.classes.add(odd)
        session.classes.describe(session.classes[-1], guidance=odd)
        session.items.label(item, session.classes[-1])
        valid = "half \ufffd and \ufffd"
        again = Session.open(session.id, store=store)
        for one in (session, again):
            assert one.state.notes[item][-1].text == valid and one.state.flagged[item] == valid
            assert one.classes[-1] == valid and one.state.standing[item].annotator == f"ann{valid}"
        assert store.project(session.id).name == valid
        everything(again, tmp_path / "b")
        assert open_bundle(tmp_path / "b", store=store).name == valid


def test_a_project_that_holds_such_text_already_exports(tmp_path: Path, store: Store) -> None:
    session = new_project(store, "iris")
    item = int(session.pool.trainable[0])
    session.items.note(item, "MARK")
    session.items.label(item, session.classes[0])
    with sqlite3.connect(_file(store)) as raw:
        changed = raw.execute("UPDATE events SET payload = replace(payload, 'MARK', 'a\\ud800b\\u0000')")
        assert changed.rowcount
    again = Session.open(session.id, store=store)
    assert again.state.notes[item][-1].text == "a\ufffdb\ufffd"
    everything(again, tmp_path / "b")


def _file(store: Store) -> str:
    return str(store.url).removeprefix("sqlite:///")


def test_json_that_comes_in_holds_valid_texts() -> None:
    assert parse_json(b'{"a\\ud800": ["\\u0000", "\\ud83d\\ude00"]}', "It") == {
        "a\ufffd": ["\ufffd", "\U0001f600"]
    }
    assert valid_texts({"a": ("\ud800", 1, None)}) == {"a": ["\ufffd", 1, None]}
    with pytest.raises(InputError, match="NaN is no number of JSON"):
        parse_json("[NaN]", "It", finite=True)


# --- names of files -------------------------------------------------------------------------------


def test_names_of_exported_files_are_unique_whatever_the_ids_are() -> None:
    ids = [
        "a.png",
        "x/a.png",
        "A.PNG",
        "a-1",
        "a-1.png",
        "e\u0301",
        "\u00e9",
        "con",
        "nul.png",
        "",
        "..",
        "\u65e5" * 200,
    ]
    images = np.zeros((len(ids), 8, 8), np.uint8)
    pool = replace(load_pool("digits"), items=ImageItems(ids, images))
    names = FileNames(pool)
    found = [names.of(item, ".png") for item in range(len(ids))]
    assert len({name.lower() for name in found}) == len(ids) and found[0] == "a.png"
    assert max(len(name.encode()) for name in found) < 100
    assert not {name.partition(".")[0].lower() for name in found} & {"con", "nul", ""}


def test_a_class_called_unlabelled_does_not_meet_the_unlabelled() -> None:
    folders = class_folders(["unlabelled", "Unlabelled", "a", "A", "a/"])
    assert len({name.lower() for name in (*folders.values(), "unlabelled")}) == 6


@pytest.mark.parametrize("format", ["folders", "label-studio", "huggingface"])
def test_an_export_reads_each_picture_once(
    format: str, start: Callable[..., Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.pools.features.test_shapes import photos

    for name, data in photos(12).items():
        (tmp_path / "p").mkdir(exist_ok=True)
        (tmp_path / "p" / Path(name).name).write_bytes(data)
    session = start(str(tmp_path / "p"), pool_options={"features": "shapes"}, classes=["a", "b"])
    read: list[int] = []
    whole = labels_room.picture_of
    monkeypatch.setattr(
        labels_room, "picture_of", lambda pool, item: (read.append(item), whole(pool, item))[1]
    )
    assert export_labels(session, format, "everything")
    assert read == list(range(12))


def test_a_line_of_jsonl_is_one_line(start: Callable[..., Session]) -> None:
    session = start("iris")
    session.items.note(0, "a\u2028b\x85c\r\nd")
    lines = export_labels(session, "jsonl", "everything").splitlines()
    assert len(lines) == 150 and json.loads(lines[0])["note"] == "a\u2028b\x85c\r\nd"
