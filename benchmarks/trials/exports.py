"""Exports of every format with every text that has broken one: out and back, and no cell is a formula.

Each trial is a project with one odd text in one place: the name of a class, the id of an item, a text or a
column of the items themselves, a note, a person's name. It is exported and read again, by us and for CSV by
Python's and pandas' own readers: the same labels of the same items, as many rows, the same texts.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trials import Row
from workbench.csv_writing import FORMULA, plain_cell
from workbench.errors import InputError
from workbench.exchange.answers import IMPORTS
from workbench.exchange.imports import import_labels
from workbench.exchange.labels import FORMATS, OF_IMAGES, export_labels
from workbench.exchange.projects import write_project_bundle
from workbench.exchange.rows import CARRIED_BY
from workbench.figures.export import numbers
from workbench.pools import load_pool
from workbench.pools.pool import ImageItems, Pool, RowItems
from workbench.reading import valid_text
from workbench.sessions import Session
from workbench.store import Store

NASTY = (
    *(
        "\r",
        "a\rb",
        "=1+1\r=2+2",
        "\r\n",
        "\n",
        "a\nb",
        "\t",
        "\t=1",
        "a\tb",
        "\0",
        "a\0b",
        '"',
        '""',
        'a"b',
        "'",
        "'=1",
    ),
    *(
        "''=1",
        "a,b",
        ";",
        ",",
        "=1+1",
        "+1",
        "-1",
        "@x",
        "=HYPERLINK(1)",
        "\ufeff",
        "\ufeffid",
        "\u202eabc",
        "a\u200fb",
    ),
    *(
        "\U0001f600",
        "\U0002070ex",
        "None",
        "nan",
        "null",
        "NA",
        "NaN",
        "<NA>",
        "NaT",
        "",
        " ",
        " a ",
        "\ud800",
        "a\udc00b",
    ),
    *(
        "\u2028",
        "\x85",
        "\x1b[0m",
        "\x0b",
        "\x1c",
        "<script>",
        "a/b",
        "..",
        "{}",
        "[]",
        "#",
        "\\",
        "\\N",
        "é",
        "e\u0301",
    ),
)
PLACES = ("class", "id", "cell", "column", "note", "person")
SCOPES = ("labels", "everything", "history")
_N = 6


def pool_with(place: str, text: str, images: bool) -> Pool:
    """Six items, of which the second has the odd text as its id, in its cell, or all as a column's name."""
    ids = [f"i{i}" for i in range(_N)]
    if place == "id":
        ids[1] = text
    whole = load_pool("digits" if images else "iris")
    items: Any
    if images:
        items = ImageItems(ids, np.asarray([whole.items.show(i).image for i in range(_N)]))
    else:
        cells = [f"c{i}" for i in range(_N)]
        cells[2] = text if place == "cell" else cells[2]
        name = text if place == "column" else "words"
        items = RowItems(ids, {name: np.array(cells, dtype=object), "n": np.arange(_N) / 3})
    few = whole.features[:_N]
    return replace(
        whole,
        features=few,
        items=items,
        truth=None,
        classes=(),
        fingerprints=whole.fingerprints[:_N],
        test=None,
    )


def project(store: Store, place: str, text: str, images: bool) -> Session:
    """A project with two classes, four labels and a note, and the odd text in its place."""
    pool = pool_with(place, text, images)
    person = text if place == "person" else "ann"
    session = Session.create(
        pool, store=store, classifier="logistic-regression", annotator=person, classes=["plain"]
    )
    other = text if place == "class" else "other"
    session.classes.add(other)
    other = session.classes[-1]
    for item, name in ((0, "plain"), (1, other), (2, other), (4, "plain")):
        session.items.label(item, name)
    session.items.note(1, text if place == "note" else "a note")
    return session


def run(count: int = 5_000, seed: int = 0) -> Row:
    """Export and read back every format with every text in every place, at most `count` of them."""
    every = [(place, text) for text in NASTY for place in PLACES]
    rng = np.random.default_rng(seed)
    if seed:  # other parts join several of them
        joined = ["".join(rng.choice(NASTY, size=int(rng.integers(2, 5)))) for _ in NASTY]
        every = [(place, text) for text in joined for place in PLACES]
    failures: list[str] = []
    tried = refused = 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = Store.open(Path(folder) / "w.sqlite")
        for place, text in every:
            for images in (False, True):
                if tried >= count:
                    break
                if images and place in ("cell", "column"):
                    continue
                try:
                    session = project(store, place, text, images)
                except InputError:
                    refused, tried = refused + 1, tried + 1
                    continue
                for name, check in checks(session, images, Path(folder)):
                    tried += 1
                    try:
                        check()
                    except Exception as error:
                        said = f"{type(error).__name__}: {str(error)[:200]}"
                        failures.append(f"{name}, {place} {text!r}, images {images}: {said}")
                store.delete_project(session.id)
        store.close()
    counts = {"texts": len({text for _, text in every}), "refused when they came in": refused}
    return Row.of("exports out and back", tried, failures, counts=counts)


def checks(session: Session, images: bool, folder: Path) -> list[tuple[str, Any]]:
    """Outputs of a project: each format and scope, the tables of its bundle, a figure."""
    found: list[tuple[str, Any]] = []
    for format in FORMATS:
        for what in SCOPES:
            if (format in OF_IMAGES and not images) or (what == "history" and format not in CARRIED_BY):
                continue
            found.append((f"{format} {what}", lambda f=format, w=what: _out_and_back(session, f, w)))
    found.append(("bundle", lambda: _bundle(session, folder)))
    found.append(("figure", lambda: _figure(session)))
    return found


def refuses_history(data: bytes, pool: Pool, format: str) -> None:
    """A history is read by people and programs; taken for labels it would say of each item one of many."""
    try:
        import_labels(data, pool, format)
    except InputError as error:
        assert "is a history" in str(error), error
    else:
        raise AssertionError("a history was taken for labels")


def _out_and_back(session: Session, format: str, what: str) -> None:
    data = export_labels(session, format, what)
    if format == "csv":
        _check_csv(data, session, what)
    if what == "history":
        refuses_history(data, session.pool, format)
        return
    if format in IMPORTS:
        # into a project that knows none of the classes
        back = dict(import_labels(data, session.pool, format))
        assert back == session.state.labels, f"{back} instead of {session.state.labels}"
    elif format == "folders":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            names = [name for name in packed.namelist() if name != "classes.jsonl"]
            assert len(names) == len(set(names)) == (_N if what == "everything" else 4), names
            assert not any(".." in name.split("/") or name.startswith("/") for name in names), names


def _check_csv(data: bytes, session: Session, what: str) -> None:
    import pandas as pd

    rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
    n = {"labels": 4, "everything": _N}.get(what)
    assert n is None or len(rows) == n + 1, f"{len(rows) - 1} rows instead of {n}"
    assert {len(row) for row in rows} == {len(rows[0])}, "rows of several widths"
    numbers_too = [cell for row in rows for cell in row if cell.startswith(FORMULA) and not _is_number(cell)]
    assert not numbers_too, f"a formula: {numbers_too[0]!r}"
    frame = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
    assert frame.values.tolist() == rows[1:], "pandas reads other cells"
    if what != "history":
        place = rows[0].index("id")
        ids = [plain_cell(row[place]) for row in rows[1:]]
        items = sorted(session.state.labels) if what == "labels" else range(_N)
        assert ids == [valid_text(session.pool.items.ids[item]) for item in items], "other ids"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _bundle(session: Session, folder: Path) -> None:
    from workbench.exchange.bundles import FORMAT, write_zip
    from workbench.exchange.manifests import read_sealed
    from workbench.members import FolderMembers

    with tempfile.TemporaryDirectory(dir=folder) as place:
        write_project_bundle(place, session)
        read_sealed(FolderMembers(place), "run.json", "It", FORMAT).check()
        for path in Path(place).glob("*.csv"):
            rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
            assert len({len(row) for row in rows}) == 1, f"{path.name}: rows of several widths"
            odd = [c for row in rows for c in row if c.startswith(FORMULA) and not _is_number(c)]
            assert not odd, f"{path.name}: a formula: {odd[0]!r}"
        for line in (Path(place) / "events.jsonl").read_bytes().splitlines():
            json.loads(line)
        write_zip(io.BytesIO(), place)


def _figure(session: Session) -> None:
    import plotly.graph_objects as go

    names = [*session.classes, *map(str, session.pool.items.ids)]
    fig = go.Figure([go.Scatter(x=[0, 1], y=[0.5, float("nan")], name=valid_text(name)) for name in names])
    rows = list(csv.reader(io.StringIO(numbers(fig), newline="")))
    assert len(rows) == 1 + 2 * len(names) and {len(row) for row in rows} == {5}
    assert not any(cell.startswith(FORMULA) and not _is_number(cell) for row in rows for cell in row)
