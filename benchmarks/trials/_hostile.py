"""Files that were damaged at random, and files made to hurt whoever reads them."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import zipfile
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from openpyxl import Workbook

from benchmarks.trials._sound import Reading, image_file, npz, ods, swapped, transport, xls, xlsb, zipped

MARK = "Zz"  # what long texts in the files are made of
NUMBERS = (b"-1", b"0", b"1e999", b"-1e308", b"nan", b"9" * 5000, b"2147483648", b"18446744073709551616")
PIECES = (
    *NUMBERS,
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b",",
    b";",
    b"{}",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"null",
    b"true",
    (MARK * 2000).encode(),
    b"os:system",
    b"=cmd()",
    b"../../etc/passwd",
)


def mutated(data: bytes, rng: np.random.Generator, depth: int = 0) -> bytes:
    """A file with one to four things wrong with it; packed files are damaged inside as well."""
    if depth == 0 and rng.random() < 0.5:
        inside = _inside(data, rng)
        if inside is not None:
            return inside
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(out) + 1))
        end = min(len(out), at + int(rng.integers(1, 64)))
        what = int(rng.integers(0, 9))
        if what == 0 and out:
            out[min(at, len(out) - 1)] ^= 1 << int(rng.integers(0, 8))
        elif what == 1:
            del out[at:end]
        elif what == 2:
            del out[at:]
        elif what == 3:
            out[at:at] = PIECES[int(rng.integers(0, len(PIECES)))]
        elif what == 4:
            out[at:end] = PIECES[int(rng.integers(0, len(PIECES)))]
        elif what == 5:
            width = int(rng.choice([2, 4, 8]))
            value = int(rng.choice([0, 1, -1, 2**15, 2**31 - 1, 2**31, 2**40, 2**62], shuffle=False))
            out[at : at + width] = (value % 2 ** (8 * width)).to_bytes(
                width, "little" if rng.random() < 0.5 else "big"
            )
        elif what == 6:
            out[at:at] = out[at:end] * int(rng.integers(1, 200))
        elif what == 7:
            other = int(rng.integers(0, len(out) + 1))
            out[at:end] = out[other : other + end - at]
        else:
            out += rng.bytes(int(rng.integers(1, 100)))
    return bytes(out)


def _inside(data: bytes, rng: np.random.Generator) -> bytes | None:
    """The same with a damaged member, packed again so that the damage is met by the reader behind."""
    if data[:2] == b"\x1f\x8b":
        return gzip.compress(mutated(gzip.decompress(data), rng, 1))
    if data[:3] == b"BZh":
        return bz2.compress(mutated(bz2.decompress(data), rng, 1))
    if data[:2] != b"PK":
        return None
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist()}
        stored = archive.infolist()[0].compress_type == zipfile.ZIP_STORED
    chosen = sorted(files)[int(rng.integers(0, len(files)))]
    what = rng.random()
    if what < 0.1:
        del files[chosen]
    elif what < 0.2:
        files[sorted(files)[0]] = files[chosen]
    else:
        files[chosen] = mutated(files[chosen], rng, 1)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for path, member in files.items():
            archive.writestr(path, member)
    return stream.getvalue()


def hostile() -> Iterator[Reading]:
    """Files made to cost time and memory, the worst that were thought of."""
    yield from _pictures()
    yield from _tables()
    yield from _of_statistics_programs()
    yield from _spreadsheets()
    yield from _arrays()
    yield from _parquets()
    yield from _label_files()


def _pool(name: str, data: bytes, **options: Any) -> Reading:
    from workbench.pools import load_pool

    return Reading(name, data, partial(load_pool, file_name=name, **options))


def _pictures() -> Iterator[Reading]:
    def blank(side: int, n: int, mode: str = "") -> bytes:
        picture = image_file(np.zeros((side, side, 3) if mode else (side, side), np.uint8), "PNG")
        return zipped({f"{i}.png": picture for i in range(n)})

    yield _pool("two-blanks.zip", blank(4900, 2))
    yield _pool("blanks.zip", blank(1200, 8))
    yield _pool("small-blanks.zip", blank(700, 60, "RGB"))
    yield _pool("many-blanks.zip", blank(32, 20_000))


def _tables() -> Iterator[Reading]:
    from workbench.pools import inspect_table

    yield _pool("index.svm", b"1 2000000:1\n-1 1:1\n1 2:1\n")
    yield _pool("huge-index.svm", b"1 2147483647:1\n-1 1:1\n1 2:1\n")
    yield _pool("digits.svm", b"1 " + b"9" * 5000 + b":1\n-1 1:1\n1 2:1\n")
    yield _pool("wide.svm", b"1 99999:1\n-1 1:1\n" * 200)
    yield _pool("repeated.csv", b",".join([b"name"] * 20_000) + b"\n" + b",".join([b"1"] * 20_000) + b"\n")
    wide = b",".join(b"c%d" % i for i in range(60_000))
    yield _pool("columns.csv", wide + b"\n" + (b",".join([b"1"] * 60_000) + b"\n") * 3)
    wide = b",".join(b"c%d" % i for i in range(10_000))
    yield _pool("ten-thousand.csv", wide + b"\n" + (b",".join([b"1.5"] * 10_000) + b"\n") * 20)
    yield _pool("ones.csv", b"a,b\n" + b"1,2\n" * 40_000_000)
    yield _pool("cells.csv", b"a,b,c,d\n" + b"1.5,2.5,3.5,-4.25\n" * 3_700_000)
    yield _pool("texts.csv", b"a,b\n" + b"".join(b"text%d,%d\n" % (i, i) for i in range(3_000_000)))
    yield Reading(
        "inspected.csv",
        b"a,b\n" + b"x%d,2\n" * 3_000_000,
        partial(inspect_table, file_name="t.csv", target="a"),
    )
    yield _pool("ragged.csv", b"a,b\n1,2\n" + b"ab\n" * 2_700_000)
    yield _pool("late-ragged.csv", b"a,b\n" + b"1,2\n" * 5_000_000 + b"1\n")
    yield _pool("newlines.csv", b'a,b\n"' + b"\n" * 100_000_000 + b'",1\n')
    yield _pool("quote.csv", b'a,b\n1,2\n"' + b"x" * 150_000_000)
    yield _pool("long-name.csv", (MARK * 5_000_000).encode() + b",b\n1,\n2,3\n")
    yield _pool("words.csv", _words(30_000_000), text_column="t", missing="drop")
    yield _pool("sentences.csv", _words(9_000_000), text_column="t", missing="drop")
    yield _pool("one-word.csv", b"t,u\n" + b"a b " * 6_000_000 + b",1\na b,2\n", text_column="t")
    yield _pool("columns.json", b'{"a": {' + b'"1": 2, ' * 7_000_000 + b'"0": 1}}')
    odd = ", ".join(f'"c{i}": {{"{i}": 1}}' for i in range(50_000))
    yield _pool("diagonal.json", f"{{{odd}}}".encode())
    yield _pool("lists.json", b"[" + b"[1]," * 12_000_000 + b"[1]]")
    yield _pool("bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 200_000_000, 1))


def _of_statistics_programs() -> Iterator[Reading]:
    import pandas as pd

    stream = io.BytesIO()
    pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]}).to_stata(stream, write_index=False, version=114)
    for n in (2**31 - 1, 200_000_000):  # rows that its head says it holds
        yield _pool("rows.dta", stream.getvalue()[:6] + n.to_bytes(4, "little") + stream.getvalue()[10:])
    yield _pool("zeros.dta.gz", gzip.compress(stream.getvalue() + b"\0" * 300_000_000, 1))
    yield _pool("spaces.xpt", transport(pd.DataFrame({"a": [1.5], "b": ["x"]})) + b" " * 300_000_000)
    head = b"@relation t\n" + b"".join(b"@attribute a%d numeric\n" % i for i in range(20)) + b"@data\n"
    yield _pool("sparse.arff", head + b"{}\n" * 20_000_000)
    yield _pool("rows.arff", head + b"{0 1}\n{0 2}\n" * 249_000)
    yield _pool("quotes.arff", head + b"'" * 60_000_000)
    yield _pool("attributes.arff", b"@attribute a numeric\n" * 2_000_000 + b"@data\n1\n")
    yield _pool("open.arff", b"@attribute '" + b"\\" * 60_000_000 + b"\n@data\n1\n")
    yield _pool("values.arff", b"@attribute a {" + b"x," * 20_000_000 + b"}\n@data\nx\n")


def _spreadsheets() -> Iterator[Reading]:
    rows = [["a", "b"], [1.5, "x"], [2.5, "y"]]
    old = xls(rows)
    at = old.rindex(struct.pack("<2H", 0x204, 3 + 8))
    yield _pool("far.xls", old[: at + 4] + struct.pack("<2H", 65_535, 65_535) + old[at + 8 :])
    for row in (1_048_575, 2**31):
        with zipfile.ZipFile(io.BytesIO(xlsb(rows))) as packed:
            parts = {name: packed.read(name) for name in packed.namelist()}
        sheet = "xl/worksheets/sheet1.bin"
        cell = struct.pack("<2I", 1, 0) + struct.pack("<I", 1) + "y".encode("utf-16-le")
        last = struct.pack("<I", 2) + b"\0" * 13
        far = parts[sheet].replace(last, struct.pack("<I", row) + b"\0" * 13)
        far = far.replace(cell, struct.pack("<I", 16_383) + cell[4:])
        yield _pool("far.xlsb", zipped(parts | {sheet: far}))
        yield _pool(
            "far-dimension.xlsb",
            zipped(parts | {sheet: far[:3] + struct.pack("<4I", 0, row, 0, 16_383) + far[19:]}),
        )
    for many in ("1048576", "99999999999", "-1", "x"):
        line = (
            f'<table:table-row table:number-rows-repeated="{many}"><table:table-cell '
            f'table:number-columns-repeated="16384">{{}}</table:table-cell></table:table-row>'
        )
        for inside in ("", "<text:p>x</text:p>"):
            far = (
                line.format(inside)
                + "<table:table-row><table:table-cell><text:p>y</text:p></table:table-cell></table:table-row>"
            )
            yield _pool("repeated.ods", ods(("a", rows), trailing=far))
    yield _pool("long.ods", ods(("a", [["a", "b"], *[["x" * 30_000, 1.5]] * 10_000])))
    yield _pool("deep.ods", ods(("a", rows), trailing="<text:p>" * 200_000))
    yield _pool("noise.xls", old[:2048] + np.random.default_rng(0).bytes(1_000_000))
    stream = io.BytesIO()
    book = Workbook()
    book.active["XFD1048576"] = book.active["A1"] = "x"
    book.save(stream)
    yield _pool("excel.xls", stream.getvalue())


def _arrays() -> Iterator[Reading]:
    yield _pool("bomb.npz", npz(X=np.zeros((20_000, 2_400), np.uint8), y=np.arange(20_000) % 3))
    yield _pool("longest.npz", npz(X=np.zeros((19_000_000, 1), np.uint8), y=np.arange(19_000_000) % 3))
    yield _pool("labels.npz", npz(X=np.zeros((2_000_000, 2)), y=np.full(2_000_000, "a" * 300)))
    yield _pool("ids.npz", npz(X=np.zeros((400_000, 2)), ids=np.arange(400_000).astype("U60")))
    yield _pool("wide.npz", npz(X=np.zeros((2, 5_000_000))))
    yield _pool("images.npz", npz(X=np.zeros((100, 1000, 900), np.uint8)))
    yield _pool("float-images.npz", npz(X=np.zeros((40, 1000, 900))))
    for shape in (
        "(3000000000000, 4)",
        "(99999999999999999999, 1)",
        "(-1, 4)",
        "(2, 0)",
        "(9223372036854775807, 0)",
    ):
        yield _pool("header.npy", _headed(shape))
    yield _pool("nothing.npy", _headed("(9000000000000,)", "|V0"))
    yield _pool("deep.npy", _headed("(" * 2000))
    idx = b"\x00\x00\x08\x03" + b"\xff\xff\xff\xff" * 3
    yield _pool("huge-idx3-ubyte", idx)
    yield _pool("huge-idx3-ubyte.gz", gzip.compress(idx + b"\0" * 10_000_000))


def _parquets() -> Iterator[Reading]:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    def parquet(table: Any) -> bytes:
        stream = io.BytesIO()
        pq.write_table(table, stream, compression="zstd")
        return stream.getvalue()

    long = pa.array(["x" * 1_000_000]).dictionary_encode().dictionary
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), long)
    yield _pool("dictionary.parquet", parquet(pa.table({"a": column, "b": np.arange(100_000)})))
    yield _pool("zeros.parquet", parquet(pa.table({f"c{i}": np.zeros(3_700_000) for i in range(4)})))
    yield _pool("columns.parquet", parquet(pa.table({f"c{i}": [1.0, 2.0] for i in range(30_000)})))
    same = pa.StructArray.from_arrays(
        [pa.array([b"x" * 300_000] * 3_000), pa.array(["a.png"] * 3_000)], ["bytes", "path"]
    )
    yield _pool("pictures.parquet", parquet(pa.table({"image": same, "b": np.arange(3_000)})))
    stream = io.BytesIO()
    feather.write_feather(pa.table({"a": np.zeros(100_000_000)}), stream, compression="zstd")
    yield _pool("zeros.feather", stream.getvalue())
    yield _pool("binary.parquet", parquet(pa.table({"a": [b"\xff\xfe", b"\x00\x80"], "b": [1, 2]})))


def _label_files() -> Iterator[Reading]:
    from workbench.exchange.imports import import_labels
    from workbench.pools import load_pool

    iris = load_pool("iris")
    for name, format, data in (
        ("deep.jsonl", "jsonl", b'{"id": "0", "label": ' + b"[" * 1_000_000),
        ("lines.jsonl", "jsonl", b"{}\n" * 60_000_000),
        ("deep.json", "coco", b"[" * 10_000_000),
        ("lists.json", "label-studio", b"[" + b"[]," * 11_000_000 + b"[]]"),
        ("too-many-lists.json", "label-studio", b"[" + b"[]," * 60_000_000 + b"[]]"),
        ("digits.json", "coco", b'{"images": ' + b"9" * 100_000 + b"}"),
        ("labels.csv", "csv", b"id,label\n" + b"1,a\n" * 45_000_000),
        ("labels.npz", "npz", npz(y=np.zeros(90_000_000, np.int8), id=np.zeros(90_000_000, np.int8))),
        ("names.npz", "npz", npz(y=np.zeros(9), id=np.arange(9), classes=np.full(10_000, "a" * 20_000))),
    ):
        yield Reading(name, data, partial(swapped, import_labels, iris, format))


def _words(size: int) -> bytes:
    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, size, dtype=np.uint8)
    letters[::7] = 32
    letters[::700] = 10
    return b"t,u\n" + letters.tobytes().replace(b"\n", b",1\n") + b",2\n"


def _headed(shape: str, dtype: str = "<f8") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64
