"""Every document that comes in, changed in every way a stranger may, with checksums that fit again.

Bundles of projects and of runs, saved models, unfinished runs, studies, histories: for each document so many
mutations. Each is read, and what was read is used (a project is opened, folded, exported; a model predicts);
it is either used as it stands or refused in one sentence. An audit hook watches `open`: no file outside of
the folder is read, whatever the document names, and none of those of the machine that it is told of.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driving import own_home
from benchmarks.trials import Row
from benchmarks.trials._watch import watched
from benchmarks.trials.damaged import damage
from workbench.errors import InputError
from workbench.exchange.bundles import BundleFolder, labelled_items, read_bundle
from workbench.exchange.labels import export_labels
from workbench.exchange.manifests import json_text, sealed
from workbench.exchange.models import load_model
from workbench.exchange.projects import open_bundle, wanted_by, write_project_bundle
from workbench.pools import load_pool
from workbench.sessions import ArrayOracle, RunSpec, Session
from workbench.store import Store
from workbench.studies import StudySpec, read_study, run_study
from workbench.studies import run as simulate

SLOW = 20.0
_LONG = 10**400
_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2**31,
        2**63,
        _LONG,
        0.5,
        1e308,
        float("nan"),
        float("inf"),
        float("-inf"),
    ),
    *(
        "",
        " ",
        "\0",
        "\ud800",
        "x" * 100_000,
        "nan",
        "None",
        "0",
        "2020-01-01",
        "os:system",
        [],
        {},
        [[]],
        [None],
    ),
    *({"a": 1}, [1, "a"], [-1], [2**40], [[0, "a"]], ["a", 0.5], {"use": "picture"}, [["a", float("nan")]]),
)


def names_of(outside: Path) -> tuple[str, ...]:
    """Names of the machine that a document may hold."""
    return (
        *(
            str(outside / "rows.csv"),
            "../outside/rows.csv",
            "../../outside/rows.csv",
            "pool/../../outside/rows.csv",
        ),
        *(
            "/dev/zero",
            "/etc/passwd",
            "~/.bashrc",
            "pool/own.csv",
            "pool/none.csv",
            "pool",
            ".",
            "pool/link.csv",
        ),
        *(f"embeddings:{outside / 'v.npy'}", "embeddings:../outside/v.npy", f"libsvm:{outside / 'rows.csv'}"),
        *(str(outside / "net.onnx"), str(outside / "net.json"), "pmlb:../../x", "images:mnist", "openml:1"),
    )


def make(place: Path) -> None:
    """Documents to change, each in a folder of its own."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3)).round(3)
    text = "".join(f"r{i},{','.join(map(str, row))},{'xyz'[i % 3]}\n" for i, row in enumerate(rows))
    own = place.parent / "own.csv"
    own.write_text("id,a,b,c,class\n" + text)
    store = Store.open(place.parent / "made.sqlite")
    session = Session.create(
        str(own),
        pool_options={"target": "class"},
        store=store,
        classifier="logistic-regression",
        annotator="ann",
    )
    for _ in range(3):
        for ask in session.ask():
            session.tell(ask, ArrayOracle(session.pool)(ask.item))
        session.refit()
    bob = session.as_annotator("bob")
    items = session.pool.trainable[-6:].tolist()
    session.items.label(items[0], session.classes[0])
    bob.items.label(items[0], session.classes[1])
    session.undo()
    session.redo()
    session.items.note(items[1], "a note")
    session.items.flag(items[2], reason="odd")
    session.classes.rename(session.classes[0], "first")
    session.classes.describe("first", guidance="the first")
    session.items.import_labels([(items[3], session.classes[1]), (items[4], "first")], "a file")
    session.classes.add("later")
    session.classes.merge("later", "first")
    bob.ask()
    write_project_bundle(place / "project", session)
    store.close()
    spec = RunSpec("iris", classifier="logistic-regression", policy="margin", budget=3)
    simulate(spec, out=place / "run")
    study = StudySpec("s", ("iris",), ("logistic-regression",), ("margin", "random"), 1, budget=1)
    run_study(study, out=place / "study")
    half = BundleFolder(place / "half", spec, spec.load_pool())
    half.begin()
    for finished in simulate(spec).rounds[:2]:
        half.add(finished)


def run_of(document: str, place: Path) -> Callable[[], Any]:
    """Reader and use of the whole that a document belongs to."""
    kind = document.partition("/")[0]
    return {"project": _project, "run": _run, "study": _study, "half": _half}[kind](place)


def _project(place: Path) -> Callable[[], Any]:
    def use() -> None:
        from workbench.exchange.projects import is_project_bundle

        is_project_bundle(place / "project")
        wanted_by(place / "project")
        store = Store.open(place.parent / "there.sqlite")
        try:
            made = open_bundle(place / "project", store=store)
            session = Session.open(made.id, store=store, annotator="ann")
            session.undo()
            export_labels(session, "csv", "everything")
            export_labels(session, "jsonl", "history")
            _ = session.rounds, session.log.events  # of a bundle without any there are none
            if session.model is not None:
                session.model.probabilities.sum()
        finally:
            store.close()

    return use


def _run(place: Path) -> Callable[[], Any]:
    rows = np.asarray(load_pool("iris").features[:7])

    def use() -> None:
        refused: list[InputError] = []
        for read in (
            lambda: labelled_items(place / "run"),
            lambda: read_bundle(place / "run").rounds[-1].error,
            lambda: load_model(place / "run").predict(rows),
        ):
            try:
                read()
            except InputError as error:
                refused.append(error)
        if refused:
            raise refused[0]

    return use


def _study(place: Path) -> Callable[[], Any]:
    return lambda: read_study(place / "study").rows()


def _half(place: Path) -> Callable[[], Any]:
    spec = RunSpec("iris", classifier="logistic-regression", policy="margin", budget=3)

    def use() -> None:
        kept = BundleFolder(place / "half", spec, spec.load_pool())
        found = kept.progress()
        assert found is None or found.rounds

    return use


def documents(whole: Path) -> list[str]:
    """Every document that is changed."""
    found = [p.relative_to(whole).as_posix() for p in sorted(whole.rglob("*")) if p.is_file()]
    # what nobody reads back, and what tells the same of another run
    apart = ("timings.csv", "environment.json", "codebook.csv", "own.csv", "owner")
    found = [name for name in found if Path(name).name not in apart]
    first = min((n for n in found if n.startswith("study/runs/")), default="").split("/")[:3]
    found = [n for n in found if not n.startswith("study/runs/") or n.split("/")[:3] == first]
    unread = ("project/rounds.csv", "project/events.csv", "project/model/")
    return [name for name in found if not name.startswith((*unread, "study/comparison"))]


def run(count: int = 1_000, seed: int = 0, names: tuple[str, ...] = ()) -> Row:
    """Change every document `count` times; `names` leaves the others out."""
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    refused = tried = read_outside = 0
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder, own_home(Path(folder) / "home"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        whole.mkdir()
        outside = Path(folder) / "outside"
        outside.mkdir()
        (outside / "rows.csv").write_text("id,a,b,c,class\n" + "".join(f"r{i},1,2,3,x\n" for i in range(40)))
        np.save(outside / "v.npy", np.eye(40, 3))
        for name in ("net.onnx", "net.json"):
            (outside / name).write_text("{}")
        logging.disable(logging.CRITICAL)  # rounds that cannot be restored are said there, and that is all
        try:
            make(whole)
            every = [name for name in documents(whole) if not names or name in names]
            for name in every:  # what is sound is used
                shutil.copytree(whole, broken)
                run_of(name, broken)()
                shutil.rmtree(broken)
            uses = {name: run_of(name, broken) for name in every}
            for name in every:
                for number in range(count):
                    shutil.copytree(whole / name.partition("/")[0], broken / name.partition("/")[0])
                    what = change(broken / name, rng, names_of(outside))
                    if rng.random() < 0.9:
                        reseal(broken / name, broken)
                    began = time.perf_counter()
                    tried += 1
                    with watched((str(outside), "/dev/zero", "/etc/passwd"), may_write=True) as noted:
                        try:
                            uses[name]()
                        except InputError as error:
                            refused += 1
                            if "\n" in str(error) or len(str(error)) > 1500:
                                noted.append(
                                    f"a message of {len(str(error))} characters: {str(error)[:80]!r}"
                                )
                        except BaseException as error:
                            noted.append(f"{type(error).__name__}: {str(error)[:200]}")
                    took = time.perf_counter() - began
                    slowest = max(slowest, took)
                    if took > SLOW:
                        noted.append(f"{took:.0f} s")
                    read_outside += sum(note.startswith("reads") for note in noted)
                    shutil.rmtree(broken)
                    if noted:
                        failures.append(f"{name} {number}, {what}: {'; '.join(noted)[:400]}")
        finally:
            logging.disable(logging.NOTSET)
    counts = {
        "refused": refused,
        "used": tried - refused - len(failures),
        "documents": len(every),
        "files read outside": read_outside,
    }
    return Row.of(
        "mutations of every document that comes in",
        tried,
        failures,
        counts=counts,
        most={"s the slowest": slowest},
    )


def change(path: Path, rng: np.random.Generator, names: tuple[str, ...]) -> str:
    """Change one document; says how."""
    if path.suffix in (".json", ".jsonl") and rng.random() < 0.85:
        lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
        at = int(rng.integers(len(lines)))
        lines[at], what = _edit(lines[at], rng, names)
        if path.suffix == ".jsonl" and rng.random() < 0.1:
            which = int(rng.integers(3))
            lines = [lines[:at], lines + lines[at : at + 1], lines[::-1]][which]
            what = f"lines {('cut', 'twice', 'turned round')[which]}"
        path.write_bytes(b"\n".join(lines) + b"\n")
        return what
    if path.suffix == ".jsonl":
        data = bytearray(path.read_bytes())
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data[: int(rng.integers(1, len(data)))] if rng.random() < 0.3 else data))
        return "bytes"
    return damage(path, rng)


def _edit(data: bytes, rng: np.random.Generator, names: tuple[str, ...]) -> tuple[bytes, str]:
    """Another value somewhere in a JSON document, a field less or one more."""
    document = json.loads(data)
    holders = list(_holders(document))
    holder = holders[int(rng.integers(len(holders)))]
    keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    kind = rng.random()
    key = keys[int(rng.integers(len(keys)))]
    value = _ODD[int(rng.integers(len(_ODD)))] if kind < 0.6 else names[int(rng.integers(len(names)))]
    if kind < 0.1:
        del holder[key]
        return _written(document), f"{key!r} deleted"
    if isinstance(holder, dict) and 0.1 < kind < 0.2:
        options = ("folder", "features", "labels", "fetch", "name", "file", "note", "../x", "target")
        key = options[int(rng.integers(len(options)))]
        value = names[int(rng.integers(len(names)))]
    holder[key] = value
    return _written(document), f"{key!r} = {str(value)[:40]!r}"


def _written(document: Any) -> bytes:
    return json.dumps(document).encode()


def _holders(value: Any) -> Any:
    if isinstance(value, dict | list) and value:
        yield value
        for part in value.values() if isinstance(value, dict) else value[:10]:
            yield from _holders(part)


def reseal(path: Path, top: Path) -> None:
    """Make the checksums fit again, from a document up to those that list it."""
    for folder in (path.parent, *path.parent.parents):
        for head in ("spec.json", "run.json"):
            place = folder / head
            try:
                content = json.loads(place.read_bytes())
                listed = content.pop("files")
                content.pop("sha256", None)
                names = [name for name in listed if (folder / name).is_file() and ".." not in name]
                place.write_text(json_text(sealed(content, folder, names)))
            except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
                continue
        if folder == top:
            return
