"""Small files of other kinds than text, as other programs write them, each with its right items.

Workbooks, Parquet, Arrow, JSON of whole tables, zips and folders of pictures: right cells, ids, classes,
uses and pixels; a column is lost only with a note that names it, and what is refused at first names an
option that then opens it.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sound import npz, ods, transport, xls, xlsb
from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.formats import format_of
from workbench.pools.formats.files import File
from workbench.pools.tables.uses import is_named_id

N = 24
X = [round(0.5 + 1.25 * (i % 7), 2) for i in range(N)]
AB = [("cat", "dog")[i % 2] for i in range(N)]
HALF = [label if i < 10 else None for i, label in enumerate(AB)]
IDS = [f"i{i:02d}" for i in range(N)]
TEXTS = [f"the message number {i} about {('trains', 'boats', 'planes')[i % 3]} and more" for i in range(N)]


@dataclass(frozen=True)
class WildFile:
    """One file or folder and what is right about it.

    Attributes:
        name: of the file or folder.
        data: of the file; of a folder path -> bytes.
        n: items.
        kind: of the pool.
        ids: the first ones.
        labels: classes of the first items, None where one has none.
        classes: all of them.
        uses: column -> what it is used for.
        cells: column -> its first cells as they are read; None is an empty one.
        pixels: item -> its shape and its first pixel.
        notes: words that some note has to hold.
        refused: words of the message that the file gets without `options`; "" where it opens at once.
        options: with which it opens.
    """

    name: str
    data: bytes | Mapping[str, bytes]
    n: int = N
    kind: str = "table"
    ids: Sequence[str] = ()
    labels: Sequence[str | None] = ()
    classes: Sequence[str] = ()
    uses: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    pixels: Mapping[int, tuple[tuple[int, ...], Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    refused: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """Faults of how it is read, a line each."""
        with TemporaryDirectory() as place:
            source: Any = self.data
            if not isinstance(source, bytes):
                source = Path(place) / self.name
                for path, data in self.data.items():  # type: ignore[union-attr]
                    (source / path).parent.mkdir(parents=True, exist_ok=True)
                    (source / path).write_bytes(data)
            try:
                return self._faults(source)
            except InputError as error:
                return [f"refused: {error}"]

    def _faults(self, source: Any) -> list[str]:
        name = self.name if isinstance(source, bytes) else None
        usual: dict[str, Any] = {"features": "shapes"} if self.kind == "image" else {}
        if format_of(File.of(source, name)).reader.inspect is not None:
            usual = {"columns": "auto"}
        found: list[str] = []
        if self.refused:
            try:
                load_pool(source, file_name=name, **usual)
                found.append("it opens at once")
            except InputError as error:
                found += [] if self.refused in str(error) else [f"refused with {error}"]
        pool = load_pool(source, file_name=name, **{**usual, **self.options})
        labels = [pool.classes[c] if c >= 0 else None for c in (pool.truth if pool.truth is not None else ())]
        for what, there, right in (
            ("items", len(pool), self.n),
            ("kind", pool.kind, self.kind),
            ("ids", list(pool.items.ids[: len(self.ids)]), list(self.ids)),
            ("labels", labels[: len(self.labels)], list(self.labels)),
            *([("classes", list(pool.classes), list(self.classes))] if self.classes else []),
        ):
            found += [] if there == right else [f"{what}: {there}, not {right}"]
        said = " ".join(pool.notes)
        found += [f"no note of {words!r}: {said}" for words in self.notes if words not in said]
        for item, (shape, first) in self.pixels.items():
            image = np.asarray(pool.items.show(item).image)
            if image.shape != shape or image[0, 0].tolist() != first:
                found.append(f"picture {item} is {image.shape} {image[0, 0].tolist()}, not {shape} {first}")
        return found + (self._of_columns(source, name) if self.uses or self.cells else [])

    def _of_columns(self, source: Any, name: str | None) -> list[str]:
        report = inspect_table(source, file_name=name, **{"columns": "auto", **self.options})
        uses = {column.name: column.use.use for column in report.columns if column.use is not None}
        found = [f"{c} is {uses.get(c)}, not {use}" for c, use in self.uses.items() if uses.get(c) != use]
        reading = {k: v for k, v in self.options.items() if k in ("sheet", "header", "decimal", "split")}
        rows = read_rows(source, file_name=name, **reading) if self.cells else None
        for column, cells in self.cells.items():
            there = [_plain(cell) for cell in rows[column].iloc[: len(cells)]] if column in rows else []
            found += [] if there == list(cells) else [f"{column} holds {there}, not {list(cells)}"]
        lost = [name for name, use in uses.items() if use == "leave out" and not is_named_id(name)]
        said = " ".join(problem.message for problem in report.problems)
        return found + [f"{column} is lost without a word" for column in lost if repr(column) not in said]


def _plain(cell: Any) -> Any:
    if str(cell) in ("None", "nan", "NaT", "<NA>", ""):
        return None
    return cell.isoformat() if hasattr(cell, "isoformat") else getattr(cell, "item", lambda: cell)()


# Workbooks --------------------------------------------------------------------------------------------


def _book(*sheets: tuple[str, Sequence[Sequence[Any]]], hidden: Sequence[str] = ()) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
        if title in hidden:
            sheet.sheet_state = "hidden"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _rows(**columns: Sequence[Any]) -> list[list[Any]]:
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def workbooks() -> list[WildFile]:
    """Files of Excel and openpyxl."""
    from datetime import date, datetime, timedelta

    plain = _rows(id=IDS, x=X, label=AB)
    days = [datetime(2024, 1, 1) + timedelta(days=i) for i in range(N)]
    right: dict[str, Any] = {"ids": IDS[:2], "labels": AB[:3], "classes": ("cat", "dog")}
    uses = {"id": "id", "x": "number", "label": "class"}
    case = partial(WildFile, uses=uses, **right)
    blank = [[None] * 4]
    moved = [[None, *row] for row in plain]
    return [
        case("plain.xlsx", _book(("Sheet1", plain)), cells={"x": X[:3]}),
        case("plain.xls", xls(plain), cells={"x": X[:3]}),
        case("plain.xlsb", xlsb(plain), cells={"x": X[:3]}),
        case("two.ods", ods(("Data", plain), ("Notes", [["a"], ["b"]])), notes=("'Notes'",)),
        case("title.ods", ods(("Sheet1", [["Sales of 2024"], *blank, *plain])), cells={"x": X[:3]}),
        case("two.xlsx", _book(("Data", plain), ("Notes", [["a"], ["b"]])), notes=("'Notes'",)),
        case("hidden.xlsx", _book(("Lists", [["cat"], ["dog"]]), ("Data", plain), hidden=("Lists",))),
        case("second.xlsx", _book(("Cover", [["My report"]]), ("Data", plain)), options={"sheet": "Data"}),
        case("rows-above.xlsx", _book(("Sheet1", [*blank, *blank, *plain]))),
        case("column-before.xlsx", _book(("Sheet1", moved)), cells={"x": X[:3]}),
        case("title.xlsx", _book(("Sheet1", [["Sales of 2024"], *plain])), cells={"x": X[:3]}),
        case("gaps.xlsx", _book(("Sheet1", [*plain[:5], *blank, *plain[5:]])), cells={"x": X[:3]}),
        case("texts.xlsx", _book(("S", _rows(id=IDS, x=[str(x) for x in X], label=AB)))),
        case("spaces.xlsx", _book(("S", _rows(id=IDS, x=X, label=[f"{label} " for label in AB])))),
        WildFile(
            "dates.xlsx",
            _book(("S", _rows(when=days, day=[d.date() for d in days], x=X, label=AB))),
            uses={"when": "date", "day": "date", "label": "class"},
            cells={"when": [f"2024-01-0{i}T00:00:00" for i in (1, 2)]},
        ),
        WildFile(
            "zip-codes.xlsx",
            _book(("S", _rows(zip=[f"0{i % 5}131" for i in range(N)], x=X, label=AB))),
            uses={"zip": "category"},
            cells={"zip": ["00131", "01131"]},
        ),
        WildFile(
            "flags.xlsx",
            _book(("S", _rows(flag=[bool(i % 3) for i in range(N)], x=X, label=AB))),
            uses={"flag": "number"},
        ),
        WildFile(
            "errors.xlsx",
            _book(("S", _rows(x=[*X[:-2], "#N/A", "#DIV/0!"], z=X, label=AB))),
            uses={"x": "number", "label": "class"},
        ),
        WildFile(
            "half.xlsx",
            _book(("S", _rows(text=TEXTS, label=HALF))),
            kind="text",
            labels=["cat", "dog"],
            uses={"text": "text", "label": "class"},
        ),
        WildFile(
            "names.xlsx",
            _book(("S", _rows(**{"Größe (cm)": X, "Ort": ["Köln", "Bonn", "Ulm"] * 8, "Klasse": AB}))),
            uses={"Größe (cm)": "number", "Ort": "category"},
            cells={"Ort": ["Köln", "Bonn"]},
        ),
        WildFile(
            "no-label.xlsx",
            _book(("S", _rows(id=list(range(1, N + 1)), comment=TEXTS))),
            kind="text",
            ids=["1", "2"],
            uses={"id": "id", "comment": "text"},
        ),
        WildFile(
            "days.xlsx",
            _book(("S", _rows(**{"Date": [date(2023, 5, i + 1) for i in range(N)], "x": X}))),
            uses={"Date": "date"},
        ),
    ]


# Tables of libraries ----------------------------------------------------------------------------------


def _frame(**columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


def _written(frame: Any, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    getattr(frame, f"to_{form}")(stream, **options)
    return stream.getvalue()


def of_pandas() -> list[WildFile]:
    """Files of pandas, by its defaults and its usual options."""
    import pandas as pd

    frame = _frame(id=IDS, x=X, label=AB)
    right: dict[str, Any] = {"ids": IDS[:2], "labels": AB[:3], "classes": ("cat", "dog")}
    case = partial(WildFile, uses={"id": "id", "x": "number", "label": "class"}, **right)
    named, bare = frame.set_index("id"), frame.drop(columns="id")
    category = bare.assign(label=pd.Categorical(AB))
    json_forms = {form: frame.to_json(orient=form).encode() for form in ("records", "columns", "split")}
    return [
        case("index.csv", frame.to_csv().encode()),
        case("semicolon.csv", frame.to_csv(sep=";", decimal=",", index=False).encode()),
        case("all-quoted.csv", frame.to_csv(quoting=1, index=False).encode()),
        case("bom.csv", frame.to_csv(index=False, encoding="utf-8-sig").encode("utf-8-sig")),
        case("packed.csv.gz", gzip.compress(frame.to_csv(index=False).encode())),
        case("excel.xlsx", _written(frame, "excel", index=False)),
        case("excel-index.xlsx", _written(frame, "excel")),
        case("plain.parquet", _written(frame, "parquet")),
        case("named-index.parquet", _written(named, "parquet")),
        case("plain.feather", _written(frame, "feather")),
        *(case(f"{form}.json", data) for form, data in json_forms.items()),
        case("table.json", frame.to_json(orient="table", index=False).encode()),
        WildFile("values.json", frame.to_json(orient="values").encode(), uses={"x2": "number"}, ids=IDS[:2]),
        case("index.json", named.to_json(orient="index").encode()),
        case("lines.jsonl", frame.to_json(orient="records", lines=True).encode()),
        WildFile("category.parquet", _written(category, "parquet"), uses={"label": "class"}, labels=AB[:3]),
        WildFile(
            "nullable.parquet",
            _written(
                bare.assign(
                    n=pd.array([None, *range(N - 1)], dtype="Int64"),
                    flag=pd.array([None, True, False] * 8, dtype="boolean"),
                    when=pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin"),
                ),
                "parquet",
            ),
            uses={"label": "class", "when": "date"},
            cells={"n": [None, 0, 1], "flag": [None, 1, 0]},
        ),
    ]


def of_statistics_programs() -> list[WildFile]:
    """Files of Weka, Stata and SAS."""
    import pandas as pd

    frame = _frame(id=IDS, x=[None, *X[1:]], n=[i % 5 for i in range(N)], label=pd.Categorical(AB))
    right: dict[str, Any] = {"ids": IDS[:2], "labels": AB[:3], "classes": ("cat", "dog")}
    case = partial(WildFile, uses={"id": "id", "x": "number", "label": "class"}, **right)
    codes = {"q": {1: "no", 2: "yes", 9: "refused"}}
    asked = _frame(x=X, q=[(1, 2, 9)[i % 3] for i in range(N)])
    head = "% of a set\n@RELATION 'a set'\n\n@attribute id string\n@ATTRIBUTE x REAL\n"
    head += "@attribute 'in codes' {1,2,3}\n@attribute label {cat, dog}\n@DATA\n"
    rows = [f"{IDS[i]},{X[i] if i else '?'},{i % 3 + 1},{AB[i]}" for i in range(N)]
    quoted = head.replace("{1,2,3}", "{'it\\'s 1', two}")
    quote = "'it\\'s 1'"
    odd = [f"{IDS[i]}, {X[i]}, {('two', quote)[i % 2]}, {AB[i]}" for i in range(N)]
    sparse = [f"{{1 {X[i]}, 2 {i % 3 + 1}{', 3 dog' * (i % 2)}}}" for i in range(N)]
    weka = case(
        "dense.arff",
        f"{head}{chr(10).join(rows)}\n".encode(),
        cells={"x": [None, X[1]], "in codes": ["1", "2"]},
    )
    kind = {"in codes": "category", **weka.uses}
    return [
        replace(weka, uses=kind),
        case("quoted.arff", f"{quoted}{chr(10).join(odd)}".encode(), cells={"in codes": ["two", "it's 1"]}),
        WildFile("sparse.arff", f"{head}{chr(10).join(sparse)}".encode(), labels=AB[:3]),
        case("plain.dta", _written(frame, "stata", write_index=False), cells={"x": [None, X[1]]}),
        case("packed.dta.gz", gzip.compress(_written(frame, "stata", write_index=False))),
        WildFile(
            "labelled.dta",
            _written(asked, "stata", write_index=False, value_labels=codes),
            uses={"q": "category"},
            cells={"q": ["no", "yes", "refused"]},
            notes=("'q'",),
        ),
        case("old.dta", _written(frame, "stata", write_index=False, version=117)),
        case("transport.xpt", transport(frame), cells={"x": [None, X[1]]}),
    ]


def _arrow(columns: Mapping[str, Any], names: Sequence[str] = ()) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, stream = pa.table(dict(columns)), io.BytesIO()
    if names:
        about = {"info": {"features": {"label": {"_type": "ClassLabel", "names": list(names)}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    pq.write_table(table, stream)
    return stream.getvalue()


def of_arrow() -> list[WildFile]:
    """Types of Parquet that pandas does not write, and files as Hugging Face has them."""
    import pyarrow as pa
    from pyarrow import feather

    codes = [0, 1] * (N // 2)
    pictures = [png(np.full((16, 20), 9 * i, np.uint8)) for i in range(N)]
    held = [{"bytes": data, "path": f"{i}.png"} for i, data in enumerate(pictures)]
    decimals = pa.array([None, *range(1, N)], pa.decimal128(10, 2))
    lists = {"embedding": [[0.5, 1.5]] * N, "tags": [["a"]] * N, "meta": [{"a": 1}] * N}
    texts = {"text": TEXTS, "label": codes}
    image: dict[str, Any] = {"kind": "image", "labels": ["cat", "dog"], "pixels": {2: ((16, 20), 18)}}
    stream = io.BytesIO()
    feather.write_feather(pa.table({"x": X, "label": pa.array(AB).dictionary_encode()}), stream)
    return [
        WildFile(
            "types.parquet",
            _arrow(
                {
                    "price": decimals,
                    "day": pa.array([19_000 + i for i in range(N)], pa.date32()),
                    "colour": pa.array(["red", "blue", "green"] * 8).dictionary_encode(),
                    "big": pa.array([2**60 + i for i in range(N)]),
                    "small": pa.array(X, pa.float32()),
                    "label": pa.array(AB, pa.large_string()),
                }
            ),
            uses={"price": "number", "day": "date", "colour": "category", "label": "class"},
            cells={"price": [None, 1.0, 2.0], "big": [2**60, 2**60 + 1]},
        ),
        WildFile(
            "lists.parquet",
            _arrow({**texts, **lists}, ("cat", "dog")),
            kind="text",
            labels=["cat", "dog"],
            notes=("'embedding', 'tags', 'meta'",),
        ),
        WildFile("picture.parquet", _arrow({"image": held, "label": codes}, ("cat", "dog")), **image),
        WildFile("bytes.parquet", _arrow({"image": pictures, "label": AB}), **image),
        WildFile("dictionary.feather", stream.getvalue(), uses={"label": "class"}, labels=AB[:3]),
        WildFile(
            "hub",
            {"plain_text/train-0.parquet": _arrow(texts, ("neg", "pos")), "README.md": b"# Card"},
            kind="text",
            classes=("neg", "pos"),
        ),
        WildFile(
            "splits",
            {f"{name}.parquet": _arrow({"x": X[:12], "label": AB[:12]}) for name in ("test", "train")},
            uses={"label": "class"},
            notes=("train, test",),
        ),
        WildFile(
            "hive",
            {f"label={name}/0.parquet": _arrow({"x": X[:12]}) for name in ("neg", "pos")},
            uses={"label": "class"},
            classes=("neg", "pos"),
        ),
    ]


def of_r() -> list[WildFile]:
    """Files of R."""
    rows = [(f'"{i + 1}"', f'"{IDS[i]}"', X[i], f'"{AB[i]}"') for i in range(N)]
    halves = [(*row[:3], row[3] if i < 10 else "NA") for i, row in enumerate(rows)]
    head = ('""', '"id"', '"x"', '"label"')

    def text(lines: Sequence[Sequence[Any]], mark: str, names: Sequence[str] = head) -> bytes:
        return "".join(mark.join(map(str, line)) + "\n" for line in (names, *lines)).encode()

    case = partial(WildFile, ids=IDS[:2], uses={"id": "id", "x": "number", "label": "class"})
    commas = [(*row[:2], str(row[2]).replace(".", ","), row[3]) for row in rows]
    return [
        case("write-csv.csv", text(rows, ","), labels=AB[:3]),
        case("no-names.csv", text([row[1:] for row in rows], ",", head[1:]), labels=AB[:3]),
        case("half.csv", text(halves, ","), labels=HALF, classes=("cat", "dog")),
        case("write-csv2.csv", text(commas, ";"), labels=AB[:3]),
        case("tabs.tsv", text([row[1:] for row in rows], "\t", head[1:]), labels=AB[:3]),
    ]


def of_labelling_tools() -> list[WildFile]:
    """Files of labelling tools and programs of language models."""

    def tasks(labels: Sequence[str | None]) -> bytes:
        made = [{"id": 100 + i, "data": {"text": text}} for i, text in enumerate(TEXTS)]
        for task, label in zip(made, labels, strict=True):
            task["annotations"] = [_chose(label)] if label else []
        return json.dumps(made).encode()

    small = [
        {"text": text, "id": i, "sentiment": AB[i], "annotator": 1, "annotation_id": i, "lead_time": 1.5 + i}
        for i, text in enumerate(TEXTS)
    ]
    stamps = [f"2026-01-{i + 1:02d}T10:00:00.000000Z" for i in range(N)]
    flat = _frame(**{"annotation_id": range(N), "annotator": 1, "created_at": stamps, "id": range(N)})
    flat = flat.assign(lead_time=X, choice=AB, text=TEXTS, updated_at=stamps)
    text: dict[str, Any] = {"kind": "text", "labels": AB[:2], "classes": ("cat", "dog")}
    keyed = {key: {"text": words, "label": label} for key, words, label in zip(IDS, TEXTS, AB, strict=True)}
    whole = {"data": [{"text": words, "label": label} for words, label in zip(TEXTS, AB, strict=True)]}
    return [
        WildFile("tasks.json", tasks(AB), ids=["100", "101"], **text),
        WildFile("tasks-half.json", tasks(HALF), **{**text, "labels": HALF}),
        WildFile(
            "json-min.json",
            json.dumps(small).encode(),
            kind="text",
            uses={"text": "text"},
            ids=["0", "1"],
            labels=AB[:2],
            notes=("'lead_time'",),
        ),
        WildFile(
            "studio.csv",
            flat.to_csv(index=False).encode(),
            kind="text",
            uses={"text": "text", "lead_time": "leave out", "created_at": "leave out"},
            ids=["0", "1"],
            labels=AB[:2],
            notes=("'updated_at'",),
        ),
        WildFile("keyed.json", json.dumps(keyed).encode(), ids=IDS[:2], **text),
        WildFile("wrapped.json", json.dumps({"version": "1", **whole}).encode(), **text),
        WildFile("columns.json", json.dumps({"text": TEXTS, "label": AB}).encode(), **text),
        *_nested(text),
    ]


def _nested(text: Mapping[str, Any]) -> list[WildFile]:
    """Rows in an object, or in objects of their own."""
    rows = [{"text": words, "label": label} for words, label in zip(TEXTS, AB, strict=True)]
    pairs = [[row["text"], row["label"]] for row in rows]
    several = [
        {"id": i, "data": {"text": row["text"], "meta": {"a": 1}}, "annotations": [_chose(*picked)]}
        for i, row in enumerate(rows)
        for picked in [("cat", "dog") if i == 5 else (row["label"],)]
    ]
    french = json.dumps([{**row, "text": f"{row['text']} à Köln"} for row in rows], ensure_ascii=False)
    return [
        WildFile("intents.json", json.dumps({"intents": rows, "synonyms": [{"a": 1}]}).encode(), **text),
        WildFile("rasa.json", json.dumps({"nlu": {"examples": rows}}).encode(), **text),
        WildFile(
            "clinc.json",
            json.dumps({"train": pairs[:20], "test": pairs[20:]}).encode(),
            kind="text",
            uses={"x1": "text"},
            notes=("'train', 'test'",),
        ),
        WildFile("latin.json", french.encode("latin-1"), **text),
        WildFile("utf16.json", french.encode("utf-16"), **text),
        WildFile(
            "several.json",
            json.dumps(several).encode(),
            notes=("have no label: 5", "'meta'"),
            **{**text, "labels": [*AB[:5], None]},
        ),
    ]


def _chose(*labels: str | None) -> dict[str, Any]:
    choice = {"type": "choices", "from_name": "sentiment", "value": {"choices": list(labels)}}
    return {"result": [choice], "lead_time": 2.5}


# Pictures ---------------------------------------------------------------------------------------------


def png(values: Any, kind: str = "PNG", mode: str | None = None, **options: Any) -> bytes:
    """A file of a picture."""
    from PIL import Image

    stream = io.BytesIO()
    image = Image.fromarray(np.asarray(values))
    (image if mode is None else image.convert(mode)).save(stream, kind, **options)
    return stream.getvalue()


def _packed(members: Mapping[str, bytes], flag: int | None = None, encoding: str = "utf-8") -> bytes:
    """A zip whose names have these bytes, with or without the flag that says UTF-8."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number, data in enumerate(members.values()):
            archive.writestr(f"{number:04d}", data)
    if flag is None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return stream.getvalue()
    return _renamed(stream.getvalue(), [name.encode(encoding) for name in members], flag)


def _renamed(data: bytes, names: Sequence[bytes], flag: int) -> bytes:
    """A zip of members called 0000, 0001, ... with other names, in its directory and before each member."""
    local, at = [], 0
    for name in names:
        head = bytearray(data[at : at + 30])
        (size,), (length,) = struct.unpack_from("<I", head, 18), struct.unpack_from("<H", head, 26)
        body = data[at + 30 + length : at + 30 + length + size]
        struct.pack_into("<H", head, 6, flag)
        struct.pack_into("<H", head, 26, len(name))
        local.append(bytes(head) + name + body)
        at += 30 + length + size
    directory, start = [], 0
    for name, member in zip(names, local, strict=True):
        entry = bytearray(data[at : at + 46])
        struct.pack_into("<H", entry, 8, flag)
        struct.pack_into("<H", entry, 28, len(name))
        struct.pack_into("<I", entry, 42, start)
        directory.append(bytes(entry) + name)
        start, at = start + len(member), at + 50
    whole = b"".join(local)
    listed = b"".join(directory)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(names), len(names), len(listed), len(whole), 0)
    return whole + listed + end


def _grey(i: int) -> Any:
    return (np.arange(16 * 20).reshape(16, 20) % 97 + 5 * i).astype(np.uint8)


def zips() -> list[WildFile]:
    """Zips and folders of pictures as systems pack them."""
    shots = {f"{label}/{i}.png": png(_grey(i)) for i, label in enumerate(AB)}
    umlauts = {f"{('Bär', 'Möwe')[i % 2]}/{i}.png": png(_grey(i)) for i in range(N)}
    mac = {f"photos/{path}": data for path, data in umlauts.items()}
    forks = {f"__MACOSX/photos/{path.replace('/', '/._')}": b"\0\5\x16\7fork" for path in umlauts}
    junk = {"photos/.DS_Store": b"\0\0\0\1Bud1", "photos/Thumbs.db": b"\xd0\xcf", "photos/desktop.ini": b"["}
    backs = {path.replace("/", "\\"): data for path, data in shots.items()}
    german: dict[str, Any] = {"kind": "image", "classes": ("Bär", "Möwe"), "pixels": {0: ((16, 20), 0)}}
    plain: dict[str, Any] = {"kind": "image", "classes": ("cat", "dog"), "pixels": {0: ((16, 20), 0)}}
    splits = {f"{('train', 'test')[i % 3 == 2]}/{AB[i]}/{i}.png": png(_grey(i)) for i in range(N)}
    capitals = {f"{label}/IMG_{i}.JPG": png(_grey(i), "JPEG") for i, label in enumerate(AB)}
    decomposed = {path.replace("ä", "a\u0308"): data for path, data in umlauts.items()}
    return [
        WildFile("python.zip", _packed(shots), ids=["cat/0.png"], **plain),
        WildFile("finder.zip", _packed({**mac, **forks, **junk}, 0), **german),
        WildFile("ditto.zip", _packed({**mac, **forks}, 0x800), **german),
        WildFile("seven-zip.zip", _packed(umlauts, 0x800), ids=["Bär/0.png"], **german),
        WildFile("explorer.zip", _packed(umlauts, 0, "cp437"), **german),
        WildFile("backslashes.zip", _packed(backs, 0), ids=["cat/0.png"], **plain),
        WildFile("spaces.zip", _packed({f"my photos/{k}": v for k, v in shots.items()}), **plain),
        WildFile("capitals.zip", _packed(capitals), kind="image", classes=("cat", "dog")),
        WildFile("decomposed.zip", _packed(decomposed, 0x800), kind="image", labels=["Ba\u0308r"]),
        WildFile(
            "with-readme.zip", _packed({**shots, "README.txt": b"photos"}), notes=("README.txt",), **plain
        ),
        WildFile("kaggle.zip", _packed(splits), kind="image", classes=("cat", "dog")),
        WildFile(
            "archive.zip",
            _packed({"archive/train.csv": _frame(id=IDS, x=X, label=AB).to_csv(index=False).encode()}),
            ids=IDS[:2],
            uses={"id": "id", "label": "class"},
        ),
        WildFile("classes", {**shots, ".DS_Store": b"\0"}, **plain),
        WildFile("unsorted", {path.replace("/", "-"): data for path, data in shots.items()}, kind="image"),
        WildFile(
            "isic",
            {
                "metadata.csv": b"isic_id,age,diagnosis\n"
                + b"".join(b"ISIC_%04d,%d,%s\n" % (i, 30 + i, AB[i].encode()) for i in range(N)),
                **{f"ISIC_{i:04d}.jpg": png(np.full((16, 20), 5 * i, np.uint8), "JPEG") for i in range(N)},
            },
            kind="image",
            uses={"isic_id": "picture"},
            pixels={2: ((16, 20), 10)},
        ),
        WildFile(
            "table-beside",
            {
                "metadata.csv": b"file_name,label\n"
                + b"".join(b"%d.png,%s\n" % (i, AB[i].encode()) for i in range(N)),
                **{f"{i}.png": png(_grey(i)) for i in range(N)},
            },
            labels=AB[:3],
            **plain,
        ),
    ]


def _rotated() -> bytes:
    from PIL import Image

    image = Image.fromarray(np.repeat(np.repeat(np.array([[200, 0], [0, 0], [0, 0]], np.uint8), 8, 0), 8, 1))
    about = Image.Exif()
    about[0x0112] = 6  # the camera was turned: the top of the scene is on the right
    stream = io.BytesIO()
    image.save(stream, "PNG", exif=about)
    return stream.getvalue()


def pictures() -> list[WildFile]:
    """Pictures of all modes and depths, by their shape and their first pixel."""
    from PIL import Image

    step = (np.arange(16 * 20).reshape(16, 20) % 60 + 40).astype(np.uint8)
    colour = np.stack([step, step // 2, 255 - step], axis=-1)
    clear = np.dstack([colour, np.full(step.shape, 0, np.uint8)])
    deep = step.astype(np.uint16)
    palette = Image.fromarray(colour).quantize(16)
    pages = [Image.fromarray(step + k) for k in range(3)]
    streams = {name: io.BytesIO() for name in ("palette", "pages", "frames", "tiff", "clear")}
    palette.save(streams["palette"], "PNG")
    palette.save(streams["clear"], "PNG", transparency=int(np.asarray(palette)[0, 0]))
    pages[0].save(streams["pages"], "TIFF", save_all=True, append_images=pages[1:])
    pages[0].save(streams["frames"], "GIF", save_all=True, append_images=pages[1:])
    Image.fromarray(step).save(streams["tiff"], "TIFF", compression="tiff_lzw")
    first = palette.convert("RGB").getpixel((0, 0))
    assert isinstance(first, tuple)
    shape, white = (16, 20), [255, 255, 255]
    of: dict[str, tuple[bytes, tuple[int, ...], Any]] = {
        "grey.png": (png(step), shape, 40),
        "colour.png": (png(colour), (16, 20, 3), [40, 20, 215]),
        "clear.png": (png(clear), (16, 20, 3), white),
        "grey-alpha.png": (_with_alpha(step), shape, 40),
        "palette.png": (streams["palette"].getvalue(), (16, 20, 3), list(first)),
        "palette-clear.png": (streams["clear"].getvalue(), (16, 20, 3), white),
        "bits.png": (png((step > 50) * np.uint8(255), "PNG", "1"), shape, 0),
        "eight-in-sixteen.png": (png(deep), shape, 40),
        "twelve.tif": (png(deep * 40), shape, 100),
        "sixteen.tif": (png(deep * 600, "TIFF"), shape, 93),
        "sixteen.pgm": (png(deep * 600, "PPM"), shape, 93),
        "fraction.tif": (png((step / 100).astype(np.float32), "TIFF"), shape, 102),
        "lzw.tif": (streams["tiff"].getvalue(), shape, 40),
        "pages.tif": (streams["pages"].getvalue(), shape, 40),
        "frames.gif": (streams["frames"].getvalue(), (16, 20, 3), [40, 40, 40]),
        "plain.bmp": (png(colour, "BMP"), (16, 20, 3), [40, 20, 215]),
        "lossless.webp": (png(colour, "WEBP", lossless=True), (16, 20, 3), [40, 20, 215]),
        "plain.ppm": (png(colour, "PPM"), (16, 20, 3), [40, 20, 215]),
        "turned.png": (_rotated(), (16, 24), 0),
    }
    found = []
    for name, (data, size, pixel) in of.items():
        stem, _, ending = name.partition(".")
        folder = {f"{i}.{ending}": data for i in range(2)}
        found.append(WildFile(f"{stem}-{ending}", folder, n=2, kind="image", pixels={1: (size, pixel)}))
    # JPEGs: their pixels are near, not equal, so a picture of one colour
    for name, mode, value in (
        ("grey", "L", 90),
        ("colour", "RGB", [90, 90, 90]),
        ("cmyk", "CMYK", [90, 90, 90]),
    ):
        data = png(np.full((16, 24), 90, np.uint8), "JPEG", mode, quality=100)
        folder = {f"{i}.jpg": data for i in range(2)}
        size = (16, 24) if mode == "L" else (16, 24, 3)
        found.append(WildFile(f"{name}-jpg", folder, n=2, kind="image", pixels={0: (size, value)}))
    return found


def _with_alpha(step: Any) -> bytes:
    from PIL import Image

    image = Image.fromarray(step)
    image.putalpha(Image.new("L", image.size, 255))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def arrays() -> list[WildFile]:
    """Files of arrays as teaching libraries and old sets have them."""
    rng = np.random.default_rng(0)
    images, table = rng.integers(0, 256, (N, 14, 14), dtype=np.uint8), rng.normal(size=(N, 3))
    codes = np.arange(N) % 2
    idx = b"\0\0\x08\x03" + struct.pack(">3I", *images.shape) + images.tobytes()
    named = np.array(["cat", "dog"])
    svm = "".join(f"{2 * c - 1} 1:{row[0]:.3f} 3:{row[2]:.3f}\n" for c, row in zip(codes, table, strict=True))
    case = partial(WildFile, kind="image", pixels={1: ((14, 14), int(images[1, 0, 0]))}, options={})
    split = {"x_train": images[:18], "y_train": codes[:18], "x_test": images[18:], "y_test": codes[18:]}
    return [
        case("keras.npz", npz(**split), classes=("0", "1")),
        case("medmnist.npz", npz(images=images, labels=codes), classes=("0", "1")),
        case("named.npz", npz(X=images, y=codes, classes=named), labels=["cat", "dog"]),
        case("train-images-idx3-ubyte.gz", gzip.compress(idx)),
        WildFile("ids.npz", npz(X=table, y=named[codes], ids=np.array(IDS)), ids=IDS[:2], labels=AB[:2]),
        WildFile("a9a.svm", svm.encode(), classes=("-1", "1")),
    ]


PARTS: tuple[Callable[[], list[WildFile]], ...] = (
    *(workbooks, of_pandas, of_arrow, of_statistics_programs, of_r, of_labelling_tools),
    *(zips, pictures, arrays),
)


def files() -> list[WildFile]:
    """All files."""
    return [file for part in PARTS for file in part()]


def run(count: int = 1_000, seed: int = 0) -> Row:
    """Every file, `count` of them at most."""
    some = files()[:count]
    wrong = [f"{file.name}: {fault}" for file in some for fault in file.faults()]
    return Row.of("files of other kinds as other programs write them", len(some), wrong)
