"""Tables as workbooks, pandas, Arrow, statistics programs and labelling tools write them."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.trials._sound import ods, transport, xls, xlsb
from benchmarks.trials._wild_file import AB, HALF, IDS, TEXTS, N, WildFile, X, png, table_of


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


def _written(frame: Any, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    getattr(frame, f"to_{form}")(stream, **options)
    return stream.getvalue()


def of_pandas() -> list[WildFile]:
    """Files of pandas, by its defaults and its usual options."""
    import pandas as pd

    frame = table_of(id=IDS, x=X, label=AB)
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

    frame = table_of(id=IDS, x=[None, *X[1:]], n=[i % 5 for i in range(N)], label=pd.Categorical(AB))
    right: dict[str, Any] = {"ids": IDS[:2], "labels": AB[:3], "classes": ("cat", "dog")}
    case = partial(WildFile, uses={"id": "id", "x": "number", "label": "class"}, **right)
    codes = {"q": {1: "no", 2: "yes", 9: "refused"}}
    asked = table_of(x=X, q=[(1, 2, 9)[i % 3] for i in range(N)])
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
    flat = table_of(**{"annotation_id": range(N), "annotator": 1, "created_at": stamps, "id": range(N)})
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
