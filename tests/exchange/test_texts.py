"""Texts that break files: they are made valid where they come in, and every format gives them back."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.trials import exports
from tests.databases import KINDS, database, new_project
from workbench.csv_writing import csv_text, plain_cell, safe_cell
from workbench.errors import InputError
from workbench.exchange import (
    FORMATS,
    SCOPES,
    export_labels,
    import_labels,
    open_bundle,
    write_project_bundle,
)
from workbench.exchange import labels as labels_room
from workbench.exchange.history import CARRIED_BY
from workbench.exchange.labels import OF_IMAGES, FileNames, class_folders
from workbench.pools import load_pool
from workbench.pools.items import ImageItems
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
    assert not safe_cell(text).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_numbers_and_empty_cells() -> None:
    row = [np.float64(0.1), np.float32("nan"), np.int64(-3), True, None, float("-inf"), 1e-300]
    assert csv_text(list("abcdefg"), [row]) == "a,b,c,d,e,f,g\n0.1,,-3,True,,-inf,1e-300\n"
    assert csv_text(["a"], [[None], ["x"]]) == 'a\n""\nx\n'


def test_every_format_and_place_with_some_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "NASTY", ("=1+1\r=2", "\ud800", "None"))
    row = exports.run(2_000, seed=0)
    assert row.tried > 400 and row.failed == 0, "\n".join(row.failures)


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl", "npz", "label-studio", "huggingface", "coco"])
def test_classes_called_like_nothing_come_into_a_project_without_classes(
    start: Callable[..., Session], format: str
) -> None:
    pool = replace(load_pool("digits" if format == "coco" else "iris"), truth=None, classes=())
    session = start(pool, classes=MARKS)
    items = session.pool.trainable[: len(MARKS)].tolist()
    for item, name in zip(items, MARKS, strict=True):
        session.label_item(item, name)
    other = start(pool, classes=())
    other.import_labels(import_labels(export_labels(session, format), pool, format), "file")
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
        session.note(item, odd)
        session.flag(item, reason=odd)
        session.add_class(odd)
        session.describe_class(session.classes[-1], guidance=odd)
        session.label_item(item, session.classes[-1])
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
    session.note(item, "MARK")
    session.label_item(item, session.classes[0])
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
    from tests.pools.test_shapes import photos

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
    session.note(0, "a\u2028b\x85c\r\nd")
    lines = export_labels(session, "jsonl", "everything").splitlines()
    assert len(lines) == 150 and json.loads(lines[0])["note"] == "a\u2028b\x85c\r\nd"
