"""A sound file of every kind a reader takes, and how it is read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache, partial
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np


class Reading(NamedTuple):
    """One way a file is read.

    Attributes:
        name: of the file.
        data: a sound one.
        read: what reads it.
    """

    name: str
    data: bytes
    read: Callable[[bytes], Any]


def npz(compressed: bool = True, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def image_file(array: Any, kind: str) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return stream.getvalue()


def transport(frame: Any) -> bytes:
    """A transport file of SAS: records of 80 bytes, texts of 40, and numbers of IBM's mainframes."""

    def head(words: str, tail: str = "0" * 30) -> bytes:
        return f"HEADER RECORD*******{words:<8}HEADER RECORD!!!!!!!{tail}".ljust(80).encode()

    def cell(value: Any) -> bytes:
        if isinstance(value, str):
            return value.encode().ljust(40)
        if value != value:
            return b".".ljust(8, b"\0")
        sign, value, power = 128 * (value < 0), abs(value), 64
        while value >= 1:
            value, power = value / 16, power + 1
        return bytes([sign + power]) + int(value * 2**56).to_bytes(7, "big")

    def padded(data: bytes) -> bytes:
        return data + b" " * (-len(data) % 80)

    rows = [[cell(value) for value in row] for row in frame.astype(object).itertuples(index=False)]
    day, names, at = b"01JAN24:00:00:00", b"", 0
    for n, (name, first) in enumerate(zip(frame.columns, rows[0], strict=True), start=1):
        kind, length = 1 + (len(first) > 8), len(first)
        names += struct.pack(">4h8s40s8s", kind, 0, length, n, name.ljust(8).encode(), b" " * 40, b" " * 8)
        names += struct.pack(">3h2s8s2hl52x", 0, 0, 0, b"", b" " * 8, 0, 0, at)
        at += length
    of, member = (
        "".join(part.ljust(8) for part in ("SAS", *parts, "9.4", "X64", "", "", "")).encode() + day
        for parts in (("SAS", "SASLIB"), ("T", "SASDATA"))
    )
    return b"".join(
        (
            *(head("LIBRARY "), of, padded(day), head("MEMBER  ", "0" * 17 + "1600000000140")),
            *(head("DSCRPTR "), member, padded(day), head("NAMESTR ", f"{len(rows[0]):010d}" + "0" * 20)),
            *(padded(names), head("OBS     "), padded(b"".join(b"".join(row) for row in rows))),
        )
    )


def ods(*sheets: tuple[str, Sequence[Sequence[Any]]], trailing: str = "") -> bytes:
    """An OpenDocument spreadsheet, with the rows without end that LibreOffice writes below."""

    def cell(value: Any) -> str:
        if value is None:
            return "<table:table-cell/>"
        kind, text = "string", escape(str(value))
        about = ""
        if value == "#N/A":
            about = ' office:string-value="" calcext:value-type="error"'
        elif isinstance(value, bool):
            kind, about = "boolean", f' office:boolean-value="{text.lower()}"'
        elif isinstance(value, int | float):
            kind, about = "float", f' office:value="{text}"'
        elif isinstance(value, date):
            kind, about = "date", f' office:date-value="{value.isoformat()}"'
        return (
            f'<table:table-cell office:value-type="{kind}"{about}><text:p>{text}</text:p></table:table-cell>'
        )

    end = (
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>'
    )
    tables = "".join(
        f'<table:table table:name="{escape(title)}">'
        + "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
        + f"{trailing}{end}</table:table>"
        for title, rows in sheets
    )
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text", "calcext")
    )
    content = (
        f'<?xml version="1.0"?><office:document-content{names}><office:body><office:spreadsheet>{tables}'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>'
    )
    return zipped(
        {
            "mimetype": kind.encode(),
            "META-INF/manifest.xml": manifest.encode(),
            "content.xml": content.encode(),
        }
    )


def xls(rows: Sequence[Sequence[Any]]) -> bytes:
    """A workbook of Excel 97 with one sheet: records in a stream, in a file of sectors."""

    def record(kind: int, *parts: bytes) -> bytes:
        return struct.pack("<2H", kind, len(b"".join(parts))) + b"".join(parts)

    def cell(row: int, column: int, value: Any) -> bytes:
        at = struct.pack("<3H", row, column, isinstance(value, date))
        if value is None:
            return b""
        if value == "#N/A":
            return record(0x205, at, bytes([42, 1]))
        if isinstance(value, bool):
            return record(0x205, at, bytes([value, 0]))
        if isinstance(value, date):
            value = (value - date(1899, 12, 30)).days
        if isinstance(value, int | float):
            return record(0x203, at, struct.pack("<d", value))
        return record(0x204, at, struct.pack("<HB", len(value), 1), value.encode("utf-16-le"))

    def begin(kind: int) -> bytes:
        return record(0x809, struct.pack("<4H2I", 0x600, kind, 0, 0, 0, 0))

    formats = b"".join(record(0xE0, struct.pack("<2H", 0, format), b"\0" * 16) for format in (0, 14))
    head, end = begin(5) + formats, record(0x0A)
    at = len(head) + len(record(0x85, b"\0" * 13)) + len(end)
    sheet = begin(0x10) + b"".join(
        cell(i, j, value) for i, row in enumerate(rows) for j, value in enumerate(row)
    )
    stream = head + record(0x85, struct.pack("<I4B", at, 0, 0, 5, 0), b"Sheet") + end + sheet + end
    stream = stream.ljust(max(4096, -(-len(stream) // 512) * 512), b"\0")
    n = len(stream) // 512
    chain = [0xFFFFFFFD, 0xFFFFFFFE, *range(3, n + 2), 0xFFFFFFFE]
    allocation = struct.pack(f"<{len(chain)}I", *chain).ljust(512, b"\xff")

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        text = (name + "\0").encode("utf-16-le") if name else b""
        tree = struct.pack("<2B3I", kind, 1, 0xFFFFFFFF, 0xFFFFFFFF, child)
        return (
            text.ljust(64, b"\0")
            + struct.pack("<H", len(text))
            + tree
            + b"\0" * 36
            + struct.pack("<IQ", start, size)
        )

    nothing = 0xFFFFFFFF
    directory = entry("Root Entry", 5, 1, 0xFFFFFFFE, 0) + entry("Workbook", 2, nothing, 2, len(stream))
    directory += entry("", 0, nothing, 0, 0) * 2
    about = struct.pack("<16s5H6x", b"", 0x3E, 3, 0xFFFE, 9, 6)
    sizes = struct.pack("<9I", 0, 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + about + sizes + struct.pack("<I", 0)
    return header.ljust(512, b"\xff") + allocation + directory + stream


def xlsb(rows: Sequence[Sequence[Any]]) -> bytes:
    """A binary workbook of Excel with one sheet."""

    def record(kind: int, data: bytes = b"") -> bytes:
        sign = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        size, length = b"", len(data)
        while length > 127:
            size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
        return sign + size + bytes([length]) + data

    def text(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode("utf-16-le")

    def cell(column: int, value: Any) -> bytes:
        at = struct.pack("<2I", column, 0)
        if value is None:
            return b""
        if isinstance(value, bool):
            return record(4, at + bytes([value]))
        return (
            record(6, at + text(value))
            if isinstance(value, str)
            else record(5, at + struct.pack("<d", value))
        )

    lines = b"".join(
        record(0, struct.pack("<I", i) + b"\0" * 13) + b"".join(cell(j, value) for j, value in enumerate(row))
        for i, row in enumerate(rows)
    )
    size = struct.pack("<4I", 0, len(rows) - 1, 0, len(rows[0]) - 1)
    sheet = record(0x81) + record(0x94, size) + record(0x91) + lines + record(0x92) + record(0x82)
    bundle = record(0x9C, struct.pack("<2I", 0, 1) + text("rId1") + text("Sheet"))
    book = record(0x83) + record(0x8F) + bundle + record(0x90) + record(0x84)
    base = "http://schemas.openxmlformats.org/package/2006"
    link = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    links = (
        f'<Relationships xmlns="{base}/relationships"><Relationship Id="rId1" Type="{link}" '
        'Target="worksheets/sheet1.bin"/></Relationships>'
    )
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{base}/content-types"/>'.encode(),
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": links.encode(),
            "xl/worksheets/sheet1.bin": sheet,
        }
    )


def _tables() -> dict[str, bytes]:
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)).round(4), columns=list("abc"))
    frame["colour"] = rng.choice(["red", "blue"], 40)
    frame["note"] = [f"sentence {i % 7} of words {i % 5}" for i in range(40)]
    frame["y"] = rng.choice(["cat", "dog"], 40)
    frame.insert(0, "id", [f"i{i}" for i in range(40)])
    text = frame.to_csv(index=False).encode()
    stream = io.BytesIO()
    frame.to_parquet(stream, row_group_size=15)
    rows = json.loads(frame.to_json(orient="records"))
    feather = io.BytesIO()
    frame.to_feather(feather)
    stata, book = io.BytesIO(), io.BytesIO()
    frame.to_stata(stata, write_index=False)
    frame.to_excel(book, index=False)
    attributes = [f"@attribute {n} {'numeric' if n in 'abc' else 'string'}" for n in frame.columns]
    head = "\n".join(["@relation t", *attributes, "@data", ""])
    arff = head + frame.to_csv(index=False, header=False)
    hub = {"data/train-00000-of-00001.parquet": stream.getvalue(), "README.md": b"rows"}
    cells = [list(frame.columns), *frame.astype(object).to_numpy().tolist()]
    return {
        "t.xlsx": book.getvalue(),
        "t.xls": xls(cells),
        "t.xlsb": xlsb(cells),
        "t.ods": ods(("t", cells)),
        "t.feather": feather.getvalue(),
        "t.dta": stata.getvalue(),
        "t.xpt": transport(frame),
        "t.arff": arff.encode(),
        "t.jsonl": "\n".join(map(json.dumps, rows)).encode(),
        "t.json": json.dumps(rows).encode(),
        "hub.zip": zipped(hub),
        "t.csv": text,
        "t.tsv": frame.to_csv(index=False, sep="\t").encode(),
        "t.csv.gz": gzip.compress(text),
        "t.parquet": stream.getvalue(),
    }


_WHOLE = ("t.jsonl", "t.json", "hub.zip")
"""Tables that are read with their columns' uses guessed, besides the free way."""


@cache
def sound() -> tuple[Reading, ...]:
    """Every reader with a sound file."""
    import pandas as pd

    from workbench.exchange.imports import import_labels
    from workbench.pools import feature_map_from_json, inspect_table, load_pool, read_rows
    from workbench.reading import parse_json

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    grey = rng.integers(0, 256, (12, 6, 5), dtype=np.uint8)
    colour = rng.integers(0, 256, (12, 6, 5, 3), dtype=np.uint8)
    found: list[Reading] = []

    def add(name: str, data: bytes, *options: dict[str, Any]) -> None:
        found.extend(
            Reading(name, data, partial(load_pool, file_name=name, **given)) for given in options or ({},)
        )
        found.append(Reading(name, data, partial(read_rows, file_name=name)))

    free = {
        "target": "y",
        "text": "one-hot",
        "missing": "impute",
        "ragged": "drop",
    }
    for name, data in _tables().items():
        uses = (free | {"missing": "drop", "text": "drop"}, {"text_column": "note", "target": "y"})
        add(name, data, free, *(({"columns": "auto"},) if name in _WHOLE else uses))
        found.append(Reading(name, data, partial(inspect_table, file_name=name, target="y")))
    named = {"classes": ["p", "q", "r"], "ids": [f"i{i}" for i in range(30)], "feature_names": list("abcd")}
    add("t.npz", npz(X=X, y=y, **named), {}, {"missing": "impute"})
    add("stored.npz", npz(False, X=X, y=y.astype(float)), {"missing": "drop"})
    add("split.npz", npz(x_train=X, y_train=y, x_test=X, y_test=y))
    add(
        "images.npz",
        npz(images=grey, labels=np.array(["u", "v"] * 6)),
        {},
        {"features": "pixels"},
    )
    jpegs = [image_file(image, "JPEG") for image in colour]
    ends = np.cumsum([0, *map(len, jpegs)])
    octets = np.frombuffer(b"".join(jpegs), np.uint8)
    add("jpeg.npz", npz(jpeg_train=octets, offset_train=ends, y_train=np.arange(12) % 2))
    add("t.npy", _npy(X), {"missing": "impute"})
    svm = "".join(f"{1 - 2 * (i % 2)} 1:{row[0]:.3f} 4:{row[3]:.3f}\n" for i, row in enumerate(X)).encode()
    add("t.svm", svm)
    add("t.txt", "".join(f"sentence {i % 7} of words {i % 5}\n" for i in range(40)).encode())
    add("t.svm.bz2", bz2.compress(svm))
    idx = b"\x00\x00\x08\x03" + np.array(grey.shape, ">u4").tobytes() + grey.tobytes()
    add("a-idx3-ubyte", idx)
    add("a-idx3-ubyte.gz", gzip.compress(idx))
    kinds = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
    pictures = {
        f"{'cat' if i % 2 else 'dog'}/{i}.{kind.lower()}": image_file(colour[i], kind)
        for i, kind in enumerate(kinds)
    }
    add("t.zip", zipped(pictures), {"mode": "colour"}, {"resize": 4, "mode": "grey", "corrupt": "drop"})

    framed = pd.DataFrame({"image": [{"bytes": data, "path": path} for path, data in pictures.items()]})
    add("pictures.parquet", framed.assign(label=list("abababa")).to_parquet(), {})
    iris = load_pool("iris")
    for format, data in _labels().items():
        found.append(Reading(f"labels.{format}", data, partial(swapped, import_labels, iris, format)))
    for kind, document in _maps().items():
        data = json.dumps(document).encode()
        found.append(
            Reading(
                f"{kind}.json",
                data,
                lambda given: feature_map_from_json(parse_json(given, "The map")).columns,
            )
        )
    return tuple(found)


def swapped(function: Callable[..., Any], pool: Any, format: str, data: bytes) -> Any:
    return function(data, pool, format)


def _labels() -> dict[str, bytes]:
    import pandas as pd

    names = ["setosa", "virginica", "versicolor"]
    rows = [{"id": str(i), "item": i, "label": names[i % 3]} for i in range(20)]
    stream = io.BytesIO()
    pd.DataFrame(rows).to_parquet(stream)
    tasks = [
        {
            "id": i,
            "data": {"id": str(i)},
            "annotations": [{"result": [{"type": "choices", "value": {"choices": [names[i % 3]]}}]}],
        }
        for i in range(10)
    ]
    coco = {
        "images": [{"id": i, "file_name": str(i)} for i in range(10)],
        "categories": [{"id": i, "name": name} for i, name in enumerate(names)],
        "annotations": [{"id": i, "image_id": i, "category_id": i % 3} for i in range(10)],
    }
    return {
        "csv": pd.DataFrame(rows).to_csv(index=False).encode(),
        "parquet": stream.getvalue(),
        "jsonl": "\n".join(map(json.dumps, rows)).encode(),
        "npz": npz(y=np.arange(20) % 3, classes=np.array(names), id=np.array([str(i) for i in range(20)])),
        "label-studio": json.dumps(tasks).encode(),
        "coco": json.dumps(coco).encode(),
    }


def _maps() -> dict[str, dict[str, Any]]:
    from workbench.pools import load_pool
    from workbench.pools.features.network import Layer, NetworkFeatureMap
    from workbench.pools.features.numbers import ImageFeatureMap

    tables = _tables()
    rng = np.random.default_rng(0)
    images = npz(images=rng.integers(0, 256, (12, 6, 5), dtype=np.uint8))
    dense = Layer("dense", rng.normal(size=(30, 4)).astype("f4"), np.zeros(4, "f4"))
    network = NetworkFeatureMap(
        ImageFeatureMap((6, 5)), np.zeros(30, "f4"), np.ones(30, "f4"), (Layer("flat"), dense)
    )
    pools = {
        "numbers": load_pool("iris"),
        "table": load_pool(tables["t.csv"], file_name="t.csv", target="y", text="one-hot"),
        "text": load_pool(tables["t.csv"], file_name="t.csv", target="y", text_column="note"),
        "image": load_pool(images, file_name="a.npz", features="pixels"),
    }
    return {kind: pool.feature_map.to_json() for kind, pool in pools.items()} | {"network": network.to_json()}
