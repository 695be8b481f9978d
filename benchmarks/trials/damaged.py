"""Models, bundles, studies and feature maps that were cut, flipped, edited or made by a stranger.

Each is either read as it stands or refused in one sentence; nothing in it is imported, started, unpickled
or written, and none takes ten seconds. Half of the edits bring fitting checksums, as a stranger would.
"""

from __future__ import annotations

import io
import json
import pickle
import shutil
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._watch import watched
from workbench.errors import InputError
from workbench.exchange.bundles import BundleFolder, labelled_items, read_bundle
from workbench.exchange.manifests import json_text, read_json, sealed
from workbench.exchange.models import load_model
from workbench.pools import feature_map_from_json, load_pool
from workbench.sessions import RunSpec
from workbench.studies import StudySpec, load_study, read_study, run_study
from workbench.studies import run as simulate_into

CLASSIFIERS = ("logistic-regression", "large-margin", "bayesian-svm")
SLOW = 10.0
_DIGITS = "five thousand digits"
_HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    _DIGITS,
    1e308,
    "",
    "\x00",
    "x" * 100_000,
    "subprocess:Popen",
    "os:system",
    "evilmod:C",
    "../../../etc/passwd",
    [],
    {},
    [[[[]]]],
    {"a": {"b": None}},
    ["subprocess:Popen"],
    "nan",
)


class _Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('unpickled')",))


def make(place: Path) -> None:
    """Make what will be damaged: a bundle a classifier, a study, feature maps."""
    for name in CLASSIFIERS:
        simulate_into(RunSpec("iris", classifier=name, policy="margin", budget=3), out=place / name)
    run_study(
        StudySpec("s", ("iris",), (CLASSIFIERS[0],), ("margin", "random"), 1, budget=2), out=place / "study"
    )
    (place / "study.toml").write_text(
        'pool = "iris"\npolicies = ["margin", "random"]\nseeds = 1\n[options]\nC = 2.0\n'
    )
    (place / "maps").mkdir()
    table = b"size,colour,kind\n1.5,red,cat\n2.5,blue,dog\n3.5,red,dog\n4.5,blue,cat\n"
    words = (
        "card fee late",
        "loan rate high",
        "card lost abroad",
        "loan paid early",
        "fee too high",
        "rate of a loan",
    )
    texts = "q,y\n" + "".join(f"{text},{'ab'[i % 2]}\n" for i, text in enumerate(words))
    pools = {
        "numbers": load_pool("iris"),
        "image": load_pool("digits"),
        "table": load_pool(table, file_name="t.csv", target="kind", text="one-hot"),
        "text": load_pool(texts.encode(), file_name="q.csv", text_column="q", target="y"),
    }
    for name, pool in pools.items():
        (place / "maps" / f"{name}.json").write_text(json_text(pool.feature_map.to_json()))


def run(count: int = 2000, seed: int = 0) -> Row:
    """Damage `count` files and read them."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        whole.mkdir()
        make(whole)
        readers = _readers(whole)
        for name, (_, read) in readers.items():  # what is sound is read, and every module is there then
            shutil.copytree(whole, broken)
            try:
                read(broken)
            except InputError as error:
                raise AssertionError(f"{name}: a sound file is refused: {error}") from error
            shutil.rmtree(broken)
        failures: list[str] = []
        refused, slowest = 0, 0.0
        names = list(readers)
        for number in range(count):
            name = names[number % len(names)]
            files, read = readers[name]
            shutil.copytree(whole, broken)
            path = broken / files[int(rng.integers(len(files)))]
            what = damage(path, rng)
            if rng.random() < 0.5:
                _reseal(path)
            began = time.perf_counter()
            said = "read"
            with watched() as noted, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    read(broken)
                except InputError as error:
                    said, refused = str(error), refused + 1
                    if "\n" in said or len(said) > 1500:
                        noted.append(f"a message of {len(said)} characters: {said[:200]!r}")
                except BaseException as error:
                    noted.append(f"{type(error).__name__}: {str(error)[:200]}")
            took = time.perf_counter() - began
            slowest = max(slowest, took)
            if took > SLOW:
                noted.append(f"{took:.0f} s")
            where = path.relative_to(broken)
            shutil.rmtree(broken)
            failures += [f"{number} {name}, {where}, {what}: {note}" for note in noted]
    failed = len({line.partition(" ")[0] for line in failures})
    return Row(
        "damaged models, bundles, studies, feature maps",
        count,
        failed,
        failures=tuple(failures[:40]),
        counts={"refused": refused, "read": count - refused - failed},
        most={"s the slowest": slowest},
    )


def damage(path: Path, rng: np.random.Generator) -> str:
    """Change a file for the worse; says how."""
    data = path.read_bytes()
    ways: list[Callable[[bytes, np.random.Generator], tuple[bytes, str]]] = [_cut, _flip, _fill]
    ways += {
        ".json": [_edit_json] * 4,
        ".csv": [_edit_csv] * 3,
        ".npz": [_edit_npz] * 3,
        ".toml": [_edit_toml] * 4,
    }[path.suffix]
    if rng.random() < 0.03:
        path.unlink()
        return "gone"
    changed, what = ways[int(rng.integers(len(ways)))](data, rng)
    path.write_bytes(changed)
    return what


def _cut(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    at = int(rng.integers(len(data)))
    return data[:at], f"cut at {at}"


def _flip(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    changed = bytearray(data)
    places = rng.integers(len(data), size=int(rng.integers(1, 20)))
    for at in places:
        changed[int(at)] ^= int(rng.integers(1, 256))
    return bytes(changed), f"{len(places)} bytes changed"


def _fill(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    stuff = [b"", b"\x00" * 1000, b"[" * 100_000, b"PK\x03\x04", b"\xff\xfe" * 50, pickle.dumps(_Bomb())]
    which = int(rng.integers(len(stuff)))
    return stuff[which], f"filling {which}"


def _edit_json(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    document = json.loads(data)
    holders = list(_holders(document))
    holder = holders[int(rng.integers(len(holders)))]
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    key = keys[int(rng.integers(len(keys)))]
    if rng.random() < 0.25:
        del holder[key]
        what = f"{key!r} deleted"
    else:
        value = _HOSTILE[int(rng.integers(len(_HOSTILE)))]
        holder[key] = value
        what = f"{key!r} = {str(value)[:40]!r}"
    # more digits than Python writes or reads by itself
    return json.dumps(document).replace(f'"{_DIGITS}"', "9" * 5000).encode(), what


def _holders(value: Any) -> Any:
    if isinstance(value, dict | list) and value:
        yield value
        for part in value.values() if isinstance(value, dict) else value[:20]:
            yield from _holders(part)


def _edit_csv(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    lines = data.decode().splitlines()
    row = int(rng.integers(len(lines)))
    if rng.random() < 0.3:
        del lines[row]
        return ("\n".join(lines) + "\n").encode(), f"line {row} deleted"
    cells = lines[row].split(",")
    column = int(rng.integers(len(cells)))
    value = _HOSTILE[int(rng.integers(len(_HOSTILE)))]
    cells[column] = str(value)
    lines[row] = ",".join(cells)
    return ("\n".join(lines) + "\n").encode(), f"line {row} cell {column} = {str(value)[:40]!r}"


def _edit_toml(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    lines = data.decode().splitlines()
    row = int(rng.integers(len(lines)))
    value = (
        '"subprocess:Popen"',
        '["evilmod:C"]',
        "-1",
        "1e400",
        "[[[]]]",
        "{}",
        '""',
        "true",
        "nan",
        "'x'",
        "9" * 5000,
    )
    which = value[int(rng.integers(len(value)))]
    lines[row] = f"{lines[row].partition('=')[0]}= {which}"
    return "\n".join(lines).encode(), f"{lines[row][:60]!r}"


def _edit_npz(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    with np.load(io.BytesIO(data)) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    name = list(arrays)[int(rng.integers(len(arrays)))]
    old = arrays[name]
    kinds = {
        "object": lambda: np.array([_Bomb()], dtype=object),
        "empty": lambda: np.zeros(0),
        "flat": lambda: old.reshape(-1)[:1],
        "NaN": lambda: np.full(old.shape, np.nan),
        "texts": lambda: np.full(old.shape, "evilmod:C"),
        "complex": lambda: np.full(old.shape, 1j),
        "deeper": lambda: old[None],
        "huge": lambda: old,
        "gone": lambda: old,
        "renamed": lambda: old,
    }
    kind = list(kinds)[int(rng.integers(len(kinds)))]
    arrays[name] = kinds[kind]()
    if kind == "gone":
        del arrays[name]
    if kind == "renamed":
        arrays["../" + name] = arrays.pop(name)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, value in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(value), allow_pickle=True)
            content = member.getvalue()
            if kind == "huge" and key == name:
                head = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 100), }"
                head = head.ljust(117) + "\n"
                content = (
                    b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + b"\x00" * 800
                )
            archive.writestr(f"{key}.npy", content)
    return buffer.getvalue(), f"{name} {kind}"


def _reseal(path: Path) -> None:
    """Make the checksums fit again, up to run.json, where the documents are still documents."""
    for folder, name in (
        (path.parent, "spec.json"),
        (path.parent, "run.json"),
        (path.parent.parent, "run.json"),
    ):
        document = folder / name
        try:
            content = json.loads(document.read_bytes())
            names = [n for n in content.pop("files") if (folder / n).is_file()]
            content.pop("sha256", None)
            document.write_text(json_text(sealed(content, folder, names)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue


def _readers(whole: Path) -> dict[str, tuple[list[str], Callable[[Path], Any]]]:
    """Files to damage, and their readers."""
    rows = np.asarray(load_pool("iris").features[:7])
    found: dict[str, tuple[list[str], Callable[[Path], Any]]] = {}

    def model(name: str) -> Callable[[Path], Any]:
        return lambda place: load_model(place / name).predict(rows)

    def bundle(name: str) -> Callable[[Path], Any]:
        spec = RunSpec("iris", classifier=name, policy="margin", budget=3)
        pool = spec.load_pool()

        def read(place: Path) -> None:
            labelled_items(place / name)
            BundleFolder(place / name, spec, pool)
            read_bundle(place / name)

        return read

    for name in CLASSIFIERS:
        parts = [p.relative_to(whole).as_posix() for p in sorted((whole / name / "model").iterdir())]
        found[f"model {name}"] = (parts, model(name))
        tables = [f"{name}/{n}" for n in ("run.json", "rounds.csv", "events.csv", "model/params.npz")]
        found[f"bundle {name}"] = (tables, bundle(name))
    parts = [p.relative_to(whole).as_posix() for p in sorted((whole / "study").rglob("*")) if p.is_file()]
    parts = [p for p in parts if Path(p).name in ("study.json", "run.json", "rounds.csv", "events.csv")]
    found["study folder"] = (parts, lambda place: read_study(place / "study"))
    found["study file"] = (["study.toml"], lambda place: load_study(place / "study.toml"))
    for path in sorted((whole / "maps").iterdir()):
        name = path.relative_to(whole).as_posix()
        found[f"feature map {path.stem}"] = ([name], _map_reader(name))
    return found


def _map_reader(name: str) -> Callable[[Path], Any]:
    def read(place: Path) -> Any:
        return feature_map_from_json(read_json(place / name)).columns

    return read
