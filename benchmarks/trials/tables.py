"""Tables and folders of images that other programs wrote, read by all our ways and by those programs.

Each trial writes one random table (ids, numbers, whole numbers, truth values, categories, odd texts, dates,
labels, some of them missing) with pandas, pyarrow, openpyxl or the standard library, or images with Pillow,
plain or in the layout of Hugging Face's datasets. Cells, ids, labels and splits are compared with what was
written: as `read_rows` gives them, as the pool shows them, and as that program reads them back; features of
the pool with those of `read_rows` and of a stream.
"""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.trials import Row
from workbench.pools import load_pool, read_rows
from workbench.pools.loading import open_source

TEXTS = (
    "plain words",
    "a,b;c",
    'said "yes"',
    "two\nlines",
    "  spaced",
    "caf\u00e9",
    "\u4e2d\u6587",
    "tab\there",
    "=1+1",
    "'quoted'",
    "1,234",
    "12/01/2020",
    "007",
    "line\u2028end",
    "\U0001f600",
    "a|b",
    "e\u0301",
)
CLASSES = (("a", "b"), ("cat", "dog", "bird"), ("0", "1"), ("None", "nan", "x"), ("3", "10", "2"))
USES = {
    "id": "id",
    "x": "number",
    "k": "number",
    "flag": "category",
    "c": "category",
    "t": "leave out",
    "when": "date",
    "label": "class",
}
Truth = dict[str, list[Any]]


def truth_of(rng: np.random.Generator) -> Truth:
    """Columns of a random table; None is an empty cell."""
    n = int(rng.integers(12, 40))
    names = CLASSES[rng.integers(len(CLASSES))]
    classes = [names[i % len(names)] for i in rng.permutation(n)]
    some = float(rng.choice([0.0, 0.15]))

    def thinned(values: list[Any]) -> list[Any]:
        return [None if rng.random() < some and i > 1 else value for i, value in enumerate(values)]

    scale = 10.0 ** rng.integers(-6, 9)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 2000, n), unit="D")
    return {
        "id": [f"{i:0{int(rng.integers(1, 5))}d}-{rng.integers(10**6)}" for i in range(n)],
        "x": thinned([round(float(v), 15) for v in rng.normal(size=n) * scale]),
        "k": thinned([int(v) for v in rng.integers(-(10 ** rng.integers(1, 15)), 10**9, n)]),
        "flag": thinned([bool(v) for v in rng.integers(0, 2, n)]),
        "c": thinned([f"kind {v}" for v in rng.integers(0, 4, n)]),
        "t": thinned([TEXTS[v] for v in rng.integers(0, len(TEXTS), n)]),
        "when": [day.strftime("%Y-%m-%d") for day in days],
        "label": thinned(classes) if len(set(classes[:2])) > 1 else classes,
    }


def frame_of(truth: Truth) -> Any:
    """The table as pandas holds it."""
    columns: dict[str, Any] = {name: pd.Series(values, dtype="object") for name, values in truth.items()}
    columns["x"] = columns["x"].astype("float64")
    columns["k"] = columns["k"].astype("Int64")
    columns["flag"] = columns["flag"].astype("boolean")
    return pd.DataFrame(columns)


# Writers: (truth, rng, folder) -> path, options of reading, how that program reads it back -----------------

Written = tuple[Path, dict[str, Any], Callable[[], Any] | None]


def by_pandas_csv(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """CSV of pandas: delimiters, decimal commas, encodings, line ends, quoting."""
    comma = bool(rng.integers(2))
    sep = str(rng.choice([";", "\t"] if comma else [",", ";", "\t", "|"]))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    given: dict[str, Any] = {"sep": sep, "decimal": "," if comma else ".", "encoding": encoding}
    path = place / "a.csv"
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    frame_of(truth).to_csv(
        path, index=False, lineterminator=str(rng.choice(["\n", "\r\n"])), quoting=quoting, **given
    )
    options = {} if encoding == "utf-8" else {"encoding": encoding}

    def back() -> Any:
        return pd.read_csv(path, dtype="str", keep_default_na=False, **given)

    # delimiters are found, or said where a text could be taken for another table
    return path, options | {"delimiter": sep}, back


def by_csv_writer(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """CSV of Python's own module."""
    path = place / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, dialect=str(rng.choice(["excel", "unix"])))
        writer.writerow(truth)
        writer.writerows(zip(*truth.values(), strict=True))

    def back() -> Any:
        with path.open(newline="", encoding="utf-8") as file:
            return pd.DataFrame(list(csv.DictReader(file)))

    return path, {"delimiter": ","}, back


def by_pyarrow(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """Parquet of pyarrow: types, codings, row groups, one file or parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"x": pa.float64(), "k": pa.int64(), "flag": pa.bool_()}
    table = pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in truth.items()})
    if rng.integers(2):
        at = table.column_names.index("c")
        table = table.set_column(at, "c", table.column("c").dictionary_encode())
    if rng.integers(2):
        at = table.column_names.index("label")
        table = table.set_column(at, "label", table.column("label").cast(pa.binary()))
    size = int(rng.integers(3, 50))
    if rng.integers(2):
        pq.write_table(
            table, place / "a.parquet", row_group_size=size, compression=str(rng.choice(["snappy", "zstd"]))
        )
        return place / "a.parquet", {}, lambda: pq.read_table(place / "a.parquet").to_pandas()
    parts = place / "parts"
    parts.mkdir()
    half = table.num_rows // 2
    for i, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, parts / f"part-{i}.parquet", row_group_size=size)
    return parts, {}, None


def by_pandas_parquet(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """Parquet of pandas, with its own metadata and sometimes an index."""
    frame = frame_of(truth)
    if rng.integers(2):
        frame = frame.set_index("id")
    frame.to_parquet(place / "a.parquet")
    return place / "a.parquet", {}, None


def by_openpyxl(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """Excel of openpyxl, whole or row by row."""
    import openpyxl

    book = openpyxl.Workbook(write_only=bool(rng.integers(2)))
    sheet = book.create_sheet("data") if book.write_only else book.active
    sheet.append(list(truth))
    for row in zip(*truth.values(), strict=True):
        sheet.append(["'" + v if isinstance(v, str) and v.startswith("=") else v for v in row])
    book.save(place / "a.xlsx")
    return place / "a.xlsx", {}, None


def by_pandas_json(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """JSON lines or a list of objects, of pandas or of Python."""
    if rng.integers(2):
        path = place / "a.jsonl"
        frame_of(truth).to_json(
            path, orient="records", lines=True, double_precision=15, force_ascii=bool(rng.integers(2))
        )
        return path, {}, None
    path = place / "a.json"
    rows = [dict(zip(truth, row, strict=True)) for row in zip(*truth.values(), strict=True)]
    path.write_text(json.dumps(rows, indent=int(rng.integers(3)) or None), encoding="utf-8")
    return path, {}, None


def by_datasets(truth: Truth, rng: np.random.Generator, place: Path) -> Written:
    """A folder as datasets writes it to the hub: Parquet by split, with what its columns are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = sorted({label for label in truth["label"] if label is not None})
    codes = [-1 if label is None else names.index(label) for label in truth["label"]]
    kinds = {"x": pa.float64(), "k": pa.int64(), "flag": pa.bool_()}
    columns = {name: pa.array(values, kinds.get(name, pa.string())) for name, values in truth.items()}
    table = pa.table(columns | {"label": pa.array(codes, pa.int64())})
    about = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
    table = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    half = int(rng.integers(3, table.num_rows - 3))
    (place / "set" / "data").mkdir(parents=True)
    for split, part in (("train", table.slice(0, half)), ("test", table.slice(half))):
        pq.write_table(part, place / "set" / "data" / f"{split}-00000-of-00001.parquet")
    return place / "set", {}, None


WRITERS = (
    by_pandas_csv,
    by_csv_writer,
    by_pyarrow,
    by_pandas_parquet,
    by_openpyxl,
    by_pandas_json,
    by_datasets,
)


# What is compared ------------------------------------------------------------------------------------------


def plain(name: str, cell: Any, decimal: str = ".") -> Any:
    """A cell as it is compared, whatever its reader makes of it."""
    if cell is None or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell)) or cell == "":
        return None
    if name in ("x", "k"):
        value = float(str(cell).replace(",", ".") if decimal == "," else cell)
        return value
    if name == "flag":
        return {"true": True, "false": False, "1": True, "0": False}[str(cell).removesuffix(".0").lower()]
    if isinstance(cell, bytes):
        cell = cell.decode()
    text = str(cell).replace("\r\n", "\n")
    text = text[:10] if name == "when" else text
    return (
        text.removesuffix(".0") if name == "label" else text.removeprefix("'") if text[:2] == "'=" else text
    )


def same(one: Any, other: Any) -> bool:
    """True if two cells are equal; numbers to the twelve digits that every program writes."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def differences(truth: Truth, written: Written, decimal: str) -> list[str]:
    """Differences between what is read and what was written, in words."""
    path, options, back = written
    found = []
    n = len(truth["id"])
    wanted = {name: [plain(name, cell) for cell in cells] for name, cells in truth.items()}

    def compare(what: str, name: str, cells: Any) -> None:
        got = [plain(name, cell, decimal) for cell in cells]
        if len(got) != n or not all(map(same, got, wanted[name])):
            row = next((i for i in range(min(n, len(got))) if not same(got[i], wanted[name][i])), -1)
            seen = (got[row], wanted[name][row]) if row >= 0 else (len(got), n)
            found.append(f"{what}: {name}, row {row}: {seen[0]!r} for {seen[1]!r}")

    reading = {key: value for key, value in options.items() if key in ("encoding", "delimiter")}
    sources = [("read_rows", read_rows(path, **reading))] + ([("itself", back())] if back else [])
    for what, frame in sources:
        for name in truth:
            compare(what, name, frame[name].tolist())
    uses = {**USES, "x": {"use": "number", "decimal": decimal}} if decimal == "," else USES
    pool = load_pool(path, columns=uses, **options)
    rows = [pool.items.show(i).row or {} for i in range(len(pool))]
    if len(pool) != n:
        return [*found, f"pool: {len(pool)} items for {n}"]
    assert pool.truth is not None
    compare("pool", "id", pool.items.ids)
    compare("pool", "label", [pool.classes[code] if code >= 0 else None for code in pool.truth])
    for name in ("x", "k", "flag", "c", "t", "when"):
        compare("pool", name, [row[name] for row in rows])
    ways = {"read_rows": pool.feature_map.transform(sources[0][1])}
    if not options and path.name != "set":
        source = open_source(path, pool.feature_map)
        ways["stream"] = np.concatenate(
            [part for unit in source.units() for _, part in source.chunks(unit, 7)]
        )
    found += [f"features of {way}" for way, rows in ways.items() if not np.array_equal(rows, pool.features)]
    return found


def of_images(rng: np.random.Generator, place: Path) -> list[str]:
    """Images of Pillow, in class folders, below splits, or with metadata beside them."""
    from PIL import Image

    n, layout = int(rng.integers(6, 12)), str(rng.choice(["folders", "splits", "metadata", "table"]))
    ending = str(rng.choice(["png", "bmp", "tiff", "webp"]))
    made: dict[str, tuple[Any, str]] = {}
    grey = bool(rng.integers(2))
    rows: dict[str, list[tuple[str, str]]] = {}
    for i in range(n):
        kind, split = ("cat", "dog")[i % 2], ("train", "test")[(i // 2) % 2]
        folders = {"folders": kind, "splits": f"{split}/{kind}", "metadata": split, "table": f"x/{kind}"}
        name = f"{folders[layout]}/{rng.integers(3) if layout == 'table' else ''}{i}.{ending}"
        pixels = rng.integers(0, 256, (16, 16) if grey else (16, 16, 3), dtype=np.uint8)
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / name, lossless=True)
        shown = np.repeat(pixels[..., None], 3, axis=2) if grey and ending == "webp" else pixels
        made[name] = (shown, kind)
        rows.setdefault(split, []).append((name, kind))
    if layout == "metadata":
        for split, named in rows.items():
            lines = [{"file_name": Path(name).name, "label": kind} for name, kind in named]
            pd.DataFrame(lines).to_csv(place / split / "metadata.csv", index=False)
    options: dict[str, Any] = {"features": "pixels"}
    source = place
    if layout == "table":
        source = place / "table.csv"
        pd.DataFrame([{"file": name, "label": kind} for name, (_, kind) in made.items()]).to_csv(
            source, index=False
        )
        options |= {"columns": {"file": "picture", "label": "class"}}
    elif layout == "metadata":
        options = {}
    pool = load_pool(source, **options)
    found = []
    if sorted(pool.items.ids) != sorted(made):
        found.append(f"{layout}: ids {list(pool.items.ids)[:3]}")
        return found
    for i, name in enumerate(pool.items.ids):
        image, kind = made[name]
        assert pool.truth is not None
        if (
            not np.array_equal(np.asarray(pool.items.show(i).image), image)
            or pool.classes[pool.truth[i]] != kind
        ):
            found.append(f"{layout}: {name}")
    if (
        layout == "splits"
        and pool.test is not None
        and {pool.items.ids[i].split("/")[0] for i in pool.test.test} != {"test"}
    ):
        found.append("splits: the test set")
    if layout in ("folders", "splits") and not np.array_equal(
        pool.feature_map.transform(read_rows(source)), pool.features
    ):
        found.append(f"{layout}: features of read_rows")
    return found


def run(count: int = 400, seed: int = 0) -> Row:
    """Write and read random tables and folders.

    Args:
        count: how many.
        seed: of what they hold.
    """
    failures, met = [], dict.fromkeys((*(writer.__name__[3:] for writer in WRITERS), "images"), 0)
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        which = i % (len(WRITERS) + 1)
        with tempfile.TemporaryDirectory() as place:
            try:
                if which == len(WRITERS):
                    what, found = "images", of_images(rng, Path(place))
                else:
                    what, truth = WRITERS[which].__name__[3:], truth_of(rng)
                    written = WRITERS[which](truth, rng, Path(place))
                    comma = what == "pandas_csv" and _comma(written[0], written[1])
                    found = differences(truth, written, "," if comma else ".")
            except Exception as error:  # a reader that refuses what another program wrote has failed too
                found = [f"{type(error).__name__}: {error}"[:300]]
        met[what] += 1
        if found:
            failures.append(f"{what} (seed {seed}, {i}): {'; '.join(found[:3])}")
    counts = {what.replace("_", " "): n for what, n in met.items()}
    return Row.of(
        "tables and folders of images of other programs, read by all ways", count, failures, counts=counts
    )


def _comma(path: Path, options: dict[str, Any]) -> bool:
    """True if a CSV has decimal commas: no number of it has a point."""
    text = path.read_bytes().decode(options.get("encoding", "utf-8"))
    rows = csv.DictReader(io.StringIO(text), delimiter=options["delimiter"])
    return any("," in row["x"] for row in rows)
