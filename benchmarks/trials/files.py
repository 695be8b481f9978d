"""Damaged and hostile files over every reader: tables, arrays, images, texts, label imports, feature maps.

A reader may answer with a pool or with one sentence for people (InputError). Everything else counts as
failed: another exception, a message that repeats the file, features that are not finite, more than ten
seconds or a gigabyte; and anything unpickled, imported because the file said so, started, connected to
or written, which an audit hook watches.
"""

from __future__ import annotations

import bz2
import ctypes
import gc
import gzip
import io
import json
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.trials import Row

MOST_SECONDS = 10.0
MOST_BYTES = 1 << 30
_LARGE = 500 << 20
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


# Sound files ------------------------------------------------------------------------------------------


def _npz(compressed: bool = True, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _image(array: Any, kind: str) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return stream.getvalue()


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
    return {
        "t.csv": text,
        "t.tsv": frame.to_csv(index=False, sep="\t").encode(),
        "t.csv.gz": gzip.compress(text),
        "t.parquet": stream.getvalue(),
    }


@cache
def sound() -> tuple[Reading, ...]:
    """Every reader with a sound file."""
    from workbench.exchange import import_labels
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
        "numeric_text": "missing",
        "ragged": "drop",
    }
    for name, data in _tables().items():
        add(
            name,
            data,
            free,
            free | {"missing": "drop", "text": "drop"},
            {"text_column": "note", "target": "y"},
        )
        found.append(Reading(name, data, partial(inspect_table, file_name=name, target="y")))
    named = {"classes": ["p", "q", "r"], "ids": [f"i{i}" for i in range(30)], "feature_names": list("abcd")}
    add("t.npz", _npz(X=X, y=y, **named), {}, {"missing": "impute"})
    add("stored.npz", _npz(False, X=X, y=y.astype(float)), {"missing": "drop"})
    add("split.npz", _npz(x_train=X, y_train=y, x_test=X, y_test=y))
    add(
        "images.npz",
        _npz(images=grey, labels=np.array(["u", "v"] * 6)),
        {},
        {"features": "pca", "n_components": 3},
    )
    jpegs = [_image(image, "JPEG") for image in colour]
    ends = np.cumsum([0, *map(len, jpegs)])
    octets = np.frombuffer(b"".join(jpegs), np.uint8)
    add("jpeg.npz", _npz(jpeg_train=octets, offset_train=ends, y_train=np.arange(12) % 2))
    add("t.npy", _npy(X), {"missing": "impute"})
    svm = "".join(f"{1 - 2 * (i % 2)} 1:{row[0]:.3f} 4:{row[3]:.3f}\n" for i, row in enumerate(X)).encode()
    add("t.svm", svm)
    add("t.svm.bz2", bz2.compress(svm))
    idx = b"\x00\x00\x08\x03" + np.array(grey.shape, ">u4").tobytes() + grey.tobytes()
    add("a-idx3-ubyte", idx)
    add("a-idx3-ubyte.gz", gzip.compress(idx))
    kinds = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
    pictures = {
        f"{'cat' if i % 2 else 'dog'}/{i}.{kind.lower()}": _image(colour[i], kind)
        for i, kind in enumerate(kinds)
    }
    add("t.zip", _zip(pictures), {"mode": "colour"}, {"resize": 4, "mode": "grey", "corrupt": "drop"})

    iris = load_pool("iris")
    for format, data in _labels().items():
        found.append(Reading(f"labels.{format}", data, partial(_swapped, import_labels, iris, format)))
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


def _swapped(function: Callable[..., Any], pool: Any, format: str, data: bytes) -> Any:
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
        "npz": _npz(y=np.arange(20) % 3, classes=np.array(names), id=np.array([str(i) for i in range(20)])),
        "label-studio": json.dumps(tasks).encode(),
        "coco": json.dumps(coco).encode(),
    }


def _maps() -> dict[str, dict[str, Any]]:
    from workbench.pools import NetworkFeatureMap, load_pool
    from workbench.pools.features.network import Layer
    from workbench.pools.features.pixels import ImageFeatureMap

    tables = _tables()
    rng = np.random.default_rng(0)
    images = _npz(images=rng.integers(0, 256, (12, 6, 5), dtype=np.uint8))
    dense = Layer("dense", rng.normal(size=(30, 4)).astype("f4"), np.zeros(4, "f4"))
    network = NetworkFeatureMap(
        ImageFeatureMap((6, 5)), np.zeros(30, "f4"), np.ones(30, "f4"), (Layer("flat"), dense)
    )
    pools = {
        "numbers": load_pool("iris"),
        "table": load_pool(tables["t.csv"], file_name="t.csv", target="y", text="one-hot"),
        "text": load_pool(tables["t.csv"], file_name="t.csv", target="y", text_column="note"),
        "image": load_pool(images, file_name="a.npz", features="pca", n_components=3),
    }
    return {kind: pool.feature_map.to_json() for kind, pool in pools.items()} | {"network": network.to_json()}


# Damage -----------------------------------------------------------------------------------------------


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
    import pyarrow as pa
    import pyarrow.parquet as pq

    from workbench.exchange import import_labels
    from workbench.pools import inspect_table, load_pool

    def pool(name: str, data: bytes, **options: Any) -> Reading:
        return Reading(name, data, partial(load_pool, file_name=name, **options))

    def blank(side: int, n: int, mode: str = "") -> bytes:
        picture = _image(np.zeros((side, side, 3) if mode else (side, side), np.uint8), "PNG")
        return _zip({f"{i}.png": picture for i in range(n)})

    def parquet(table: Any) -> bytes:
        stream = io.BytesIO()
        pq.write_table(table, stream, compression="zstd")
        return stream.getvalue()

    yield pool("two-blanks.zip", blank(4900, 2))
    yield pool("blanks.zip", blank(1200, 8))
    yield pool("small-blanks.zip", blank(700, 60, "RGB"))
    yield pool("many-blanks.zip", blank(32, 20_000))
    yield pool("pca.zip", blank(1000, 30), features="pca", n_components=5)
    yield pool("index.svm", b"1 2000000:1\n-1 1:1\n1 2:1\n")
    yield pool("huge-index.svm", b"1 2147483647:1\n-1 1:1\n1 2:1\n")
    yield pool("digits.svm", b"1 " + b"9" * 5000 + b":1\n-1 1:1\n1 2:1\n")
    yield pool("wide.svm", b"1 99999:1\n-1 1:1\n" * 200)
    yield pool("repeated.csv", b",".join([b"name"] * 20_000) + b"\n" + b",".join([b"1"] * 20_000) + b"\n")
    wide = b",".join(b"c%d" % i for i in range(60_000))
    yield pool("columns.csv", wide + b"\n" + (b",".join([b"1"] * 60_000) + b"\n") * 3)
    wide = b",".join(b"c%d" % i for i in range(10_000))
    yield pool("ten-thousand.csv", wide + b"\n" + (b",".join([b"1.5"] * 10_000) + b"\n") * 20)
    yield pool("ones.csv", b"a,b\n" + b"1,2\n" * 40_000_000)
    yield pool("cells.csv", b"a,b,c,d\n" + b"1.5,2.5,3.5,-4.25\n" * 3_700_000)
    yield pool("texts.csv", b"a,b\n" + b"".join(b"text%d,%d\n" % (i, i) for i in range(3_000_000)))
    yield Reading(
        "inspected.csv",
        b"a,b\n" + b"x%d,2\n" * 3_000_000,
        partial(inspect_table, file_name="t.csv", target="a"),
    )
    yield pool("ragged.csv", b"a,b\n1,2\n" + b"1\n" * 40_000_000)
    yield pool("late-ragged.csv", b"a,b\n" + b"1,2\n" * 5_000_000 + b"1\n")
    yield pool("newlines.csv", b'a,b\n"' + b"\n" * 100_000_000 + b'",1\n')
    yield pool("quote.csv", b'a,b\n1,2\n"' + b"x" * 150_000_000)
    yield pool("long-name.csv", (MARK * 5_000_000).encode() + b",b\n1,\n2,3\n")
    yield pool("words.csv", _words(30_000_000), text_column="t", missing="drop")
    yield pool("sentences.csv", _words(9_000_000), text_column="t", missing="drop")
    yield pool("one-word.csv", b"t,u\n" + b"a b " * 6_000_000 + b",1\na b,2\n", text_column="t")
    yield pool("bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 200_000_000, 1))
    yield pool("bomb.npz", _npz(X=np.zeros((20_000, 2_400), np.uint8), y=np.arange(20_000) % 3))
    yield pool("longest.npz", _npz(X=np.zeros((19_000_000, 1), np.uint8), y=np.arange(19_000_000) % 3))
    yield pool("labels.npz", _npz(X=np.zeros((2_000_000, 2)), y=np.full(2_000_000, "a" * 300)))
    yield pool("ids.npz", _npz(X=np.zeros((400_000, 2)), ids=np.arange(400_000).astype("U60")))
    yield pool("wide.npz", _npz(X=np.zeros((2, 5_000_000))))
    yield pool("images.npz", _npz(X=np.zeros((100, 1000, 900), np.uint8)))
    yield pool("float-images.npz", _npz(X=np.zeros((40, 1000, 900))))
    for shape in (
        "(3000000000000, 4)",
        "(99999999999999999999, 1)",
        "(-1, 4)",
        "(2, 0)",
        "(9223372036854775807, 0)",
    ):
        yield pool("header.npy", _headed(shape))
    yield pool("nothing.npy", _headed("(9000000000000,)", "|V0"))
    yield pool("deep.npy", _headed("(" * 2000))
    idx = b"\x00\x00\x08\x03" + b"\xff\xff\xff\xff" * 3
    yield pool("huge-idx3-ubyte", idx)
    yield pool("huge-idx3-ubyte.gz", gzip.compress(idx + b"\0" * 10_000_000))
    long = pa.array(["x" * 1_000_000]).dictionary_encode().dictionary
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), long)
    yield pool("dictionary.parquet", parquet(pa.table({"a": column, "b": np.arange(100_000)})))
    yield pool("zeros.parquet", parquet(pa.table({f"c{i}": np.zeros(3_700_000) for i in range(4)})))
    yield pool("columns.parquet", parquet(pa.table({f"c{i}": [1.0, 2.0] for i in range(30_000)})))
    yield pool("binary.parquet", parquet(pa.table({"a": [b"\xff\xfe", b"\x00\x80"], "b": [1, 2]})))

    iris = load_pool("iris")
    for name, format, data in (
        ("deep.jsonl", "jsonl", b'{"id": "0", "label": ' + b"[" * 1_000_000),
        ("lines.jsonl", "jsonl", b"{}\n" * 60_000_000),
        ("deep.json", "coco", b"[" * 10_000_000),
        ("lists.json", "label-studio", b"[" + b"[]," * 11_000_000 + b"[]]"),
        ("too-many-lists.json", "label-studio", b"[" + b"[]," * 60_000_000 + b"[]]"),
        ("digits.json", "coco", b'{"images": ' + b"9" * 100_000 + b"}"),
        ("labels.csv", "csv", b"id,label\n" + b"1,a\n" * 45_000_000),
        ("labels.npz", "npz", _npz(y=np.zeros(90_000_000, np.int8), id=np.zeros(90_000_000, np.int8))),
        ("names.npz", "npz", _npz(y=np.zeros(9), id=np.arange(9), classes=np.full(10_000, "a" * 20_000))),
    ):
        yield Reading(name, data, partial(_swapped, import_labels, iris, format))


def _words(size: int) -> bytes:
    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, size, dtype=np.uint8)
    letters[::7] = 32
    letters[::700] = 10
    return b"t,u\n" + letters.tobytes().replace(b"\n", b",1\n") + b",2\n"


def _headed(shape: str, dtype: str = "<f8") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64


# Watching ---------------------------------------------------------------------------------------------

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
_WRITES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
)
_CODE = ("pickle.find_class", "ctypes.dlopen")
_NET = ("socket.connect", "socket.bind", "urllib.Request")


class Watch:
    """What Python's audit hook saw while it was switched on; a hook stays for the life of the process."""

    def __init__(self) -> None:
        self.on = False
        self.events: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            mode, flags = args[1], args[2]
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (mode is None and int(flags or 0) & 3):
                self.events.append(f"wrote {args[0]}")
        elif event == "import":
            top = str(args[0]).partition(".")[0]
            if top not in sys.modules and top not in sys.stdlib_module_names:
                self.events.append(f"imported {args[0]}")
        elif event in _STARTS or event in _WRITES or event in _CODE or event in _NET:
            self.events.append(f"{event} {str(args)[:100]}")


@cache
def watch() -> Watch:
    """The one hook of this process."""
    return Watch()


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) << 10
    return 0


def _give_back() -> None:
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Outcome(NamedTuple):
    """What came of one file.

    Attributes:
        wrong: what went wrong, or "".
        seconds: it took.
        bytes: of memory above what the process held before, at most.
        said: the message, where it was refused.
    """

    wrong: str
    seconds: float
    bytes: int
    said: str = ""


def attempt(reading: Reading, data: bytes, *, limits: bool = True) -> Outcome:
    """Read one file and judge what comes of it.

    Args:
        reading: which reader.
        data: the file.
        limits: whether time and memory count.
    """
    from workbench.errors import InputError

    hook, wrong, said = watch(), "", ""
    if limits and _memory("VmRSS") > _LARGE:
        _give_back()  # what an earlier file left with the allocators would hide what this one takes
    measured = limits and _reset_peak()
    before = _memory("VmRSS") if measured else 0
    hook.events.clear()
    began = time.process_time()  # the processor's seconds: what else the machine does is no fault of a file
    hook.on = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = reading.read(data)
        features = getattr(result, "features", None)
        if features is not None and not np.isfinite(np.asarray(features)).all():
            wrong = "features that are not finite"
    except InputError as error:
        said = str(error)
    except BaseException as error:
        wrong = f"{type(error).__name__}: {str(error)[:200]}"
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        hook.on = False
    seconds = time.process_time() - began
    result = None
    used = max(0, _memory("VmHWM") - before) if measured else 0
    if hook.events:
        wrong = "; ".join(hook.events[:3])
    elif said.count(MARK) > 100 or len(said) > 1100 or "\n" in said.strip():
        wrong = f"a message that repeats the file: {said[:100]!r} ..."
    elif limits and seconds > MOST_SECONDS:
        wrong = f"{seconds:.1f} s"
    elif limits and used > MOST_BYTES:
        wrong = f"{used / 2**20:,.0f} MB"
    return Outcome(wrong, seconds, used, said)


def run(count: int = 10_000, seed: int = 0) -> Row:
    """Mutate sound files `count` times, one reader after the other, and try the hostile ones.

    Args:
        count: mutated files.
        seed: of the damage.
    """
    readings = sound()
    failures: list[str] = []
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")
    n_refused = 0
    for reading in readings:  # what a reader imports on first use is no fault of a file
        outcome = attempt(reading, reading.data, limits=False)
        watch().events.clear()
        if outcome.said or (outcome.wrong and "imported" not in outcome.wrong):
            failures.append(f"sound {reading.name}: {outcome.wrong or outcome.said}")

    def files() -> Iterator[tuple[Reading, bytes, str]]:
        for i in range(count):
            reading = readings[i % len(readings)]
            yield reading, mutated(reading.data, np.random.default_rng([seed, i])), f"mutation {seed}, {i}"
        for reading in hostile():
            yield reading, reading.data, "hostile"

    tried = 0
    for reading, data, which in files():
        tried += 1
        outcome = attempt(reading, data)
        n_refused += bool(outcome.said)
        slowest = max(slowest, (outcome.seconds, reading.name))
        largest = max(largest, (outcome.bytes, reading.name))
        if outcome.wrong:
            failures.append(f"{reading.name} ({which}): {outcome.wrong}")
    return Row.of(
        "damaged and hostile files, every reader",
        tried,
        failures,
        f"slowest {slowest[1]}, largest {largest[1]}",
        counts={"refused with a sentence": n_refused},
        most={"s the slowest": slowest[0], "MB the most": largest[0] / 2**20},
    )
