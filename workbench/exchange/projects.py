"""A person's project as a folder that opens again as a project, also on another machine."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.exchange.bundles import (
    CODE_BOOK,
    FORMAT,
    code_book_csv,
    environment,
    pool_document,
    project_events_csv,
    rounds_csv,
    timings_csv,
)
from workbench.exchange.checksums import ADVICE, check_own, damaged, sealed
from workbench.exchange.files import json_text, read_json
from workbench.exchange.models import save_model
from workbench.pools import compare_fingerprints, load_pool
from workbench.pools.formats.files import File
from workbench.pools.loading import is_named
from workbench.reading import cut, reading
from workbench.sessions.rounds import Round
from workbench.store import Event, ProjectRecord, Store, workbench_home
from workbench.store.state import arrays_to_bytes, bytes_to_arrays
from workbench.writing import write_whole

if TYPE_CHECKING:
    from workbench.sessions.session import Session

MAX_POOL = 200 << 20
"""Most bytes of a pool's file that travels in its project's bundle."""
MAX_BUNDLE = 2 << 30
_EVENTS, _ROUNDS, _PROJECT, _ITEMS, _STATE = (
    "events.jsonl",
    "rounds.jsonl",
    "project.json",
    "items.npz",
    "state.npz",
)
_HISTORY = (_EVENTS, _ROUNDS, _PROJECT, _ITEMS)
_MODEL = ("model/spec.json", "model/params.npz", "model/features.json")


def write_project_bundle(folder: Path | str, session: Session, *, with_pool: bool = True) -> None:
    """Write a project with all its history: settings, events, fits, the last model, and its pool's file.

    Args:
        folder: made where it is not there.
        session: of the project.
        with_pool: put the pool's file in too, where it is one of at most `MAX_POOL` bytes.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    state, rounds, model, record = session.state, session.rounds, session.model, session.project
    if model is not None:
        save_model(
            place / "model",
            model.state,
            classifier=session.fitted_with["classifier"],
            options=session.fitted_with["options"],
            classes=model.classes,
            feature_map=session.pool.feature_map,
            n_labelled=model.n_labelled,
            pool=session.pool.name,
        )
    # for people and for `workbench predict`
    write_whole(place / "rounds.csv", rounds_csv(rounds))
    write_whole(place / "events.csv", project_events_csv(session))
    write_whole(place / CODE_BOOK, code_book_csv(state))
    write_whole(place / "timings.csv", timings_csv(rounds))
    write_whole(place / "environment.json", json_text(environment()))
    # for opening it again
    write_whole(place / _EVENTS, "".join(_line(_event_json(event)) for event in session.events))
    records = session.store.rounds(session.id)
    write_whole(place / _ROUNDS, "".join(_line({"number": r.number, "record": r.record}) for r in records))
    stored = session.store.round_state(session.id)
    if stored is not None:
        write_whole(place / _STATE, arrays_to_bytes(stored[1]))
    ids = np.asarray([str(key) for key in session.pool.items.ids], dtype=np.str_)
    write_whole(place / _ITEMS, arrays_to_bytes({"fingerprints": record.fingerprints, "ids": ids}))
    about = {
        "name": record.name,
        "created": record.created,
        "settings": dict(record.settings),
        "pool": dict(record.pool),
        "feature_map": dict(record.feature_map),
        "state_of": None if stored is None else stored[0],
    }
    write_whole(place / _PROJECT, json_text(about))
    inside = _with_pool(place, record) if with_pool else ""
    settings = {k: v for k, v in session.settings.items() if k != "test"}
    document = {
        "format": FORMAT,
        "kind": "project",
        "name": record.name,
        "settings": settings,
        "pool": pool_document(session.pool) | {"reference": dict(record.pool), "file": inside},
        "classes": list(state.classes),
        "n_rounds": len(rounds),
        "n_labelled": state.n_labelled,
        "n_events": len(session.events),
    }
    files = ["rounds.csv", "events.csv", CODE_BOOK, "timings.csv", "environment.json", *_HISTORY]
    files += [_STATE] if stored is not None else []
    files += [*_MODEL] if model is not None else []
    files += [inside] if inside else []
    write_whole(place / "run.json", json_text(sealed(document, place, files)))


def is_project_bundle(source: Path | str | bytes) -> bool:
    """Whether a folder or a zip holds the bundle of a project."""
    return _bundle_head(source) is not None


def lacks_pool(source: Path | str | bytes) -> bool:
    """Whether a project's bundle neither holds its pool nor names one that is on every machine."""
    document = _bundle_head(source) or {}
    about = document.get("pool")
    if not isinstance(about, dict) or about.get("file"):
        return not isinstance(about, dict)
    reference = about.get("reference")
    return not (isinstance(reference, dict) and _on_every_machine(str(reference.get("name", ""))))


def _on_every_machine(name: str) -> bool:
    return not (Path(name).is_absolute() or "/" in name or "\\" in name) and is_named(name)


def _bundle_head(source: Path | str | bytes) -> dict[str, Any] | None:
    """What a project's bundle says of itself; None where there is no such bundle."""
    try:
        if isinstance(source, bytes) or Path(source).is_file():
            with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as packed:
                name = _head(packed)
                if name is None or packed.getinfo(name).file_size > 64 << 20:
                    return None
                document = json.loads(packed.read(name))
        else:
            document = read_json(Path(source) / "run.json")
    except (
        OSError,
        ValueError,
        RecursionError,
        zipfile.BadZipFile,
        InputError,
        NotImplementedError,
        RuntimeError,
    ):
        return None
    return document if isinstance(document, dict) and document.get("kind") == "project" else None


def open_bundle(
    source: Path | str | bytes,
    *,
    pool: Path | str | None = None,
    name: str | None = None,
    store: Store | None = None,
    owner: str = "",
    paths: bool = True,
) -> ProjectRecord:
    """Make a project of the bundle of one: the same events, fits and settings under a new id.

    Args:
        source: the folder, or a zip of it.
        pool: where its pool's file or folder lies here; None takes the one in the bundle, one that comes with
            the program, or the place it had.
        name: of the project; None keeps the bundle's.
        store: the default database unless given.
        owner: key of the person it belongs to.
        paths: whether the bundle may name files of this machine.

    Returns:
        The project as it is stored now.

    Raises:
        InputError: no project's bundle, a damaged one, or a pool that is not there or is another.
    """
    store = store or Store.open()
    if isinstance(source, bytes) or not Path(source).expanduser().is_dir():
        with TemporaryDirectory() as folder:
            return _opened(_unpacked(source, Path(folder)), pool, name, store, owner, paths)
    return _opened(Path(source).expanduser(), pool, name, store, owner, paths)


def _opened(
    place: Path, pool: Path | str | None, name: str | None, store: Store, owner: str, paths: bool
) -> ProjectRecord:
    document = read_json(place / "run.json")
    if (
        not isinstance(document, dict)
        or document.get("format") != FORMAT
        or document.get("kind") != "project"
    ):
        raise InputError(f"{place.name} does not hold the bundle of a project.")
    check_own(document, place / "run.json")
    if not all((place / file).is_file() for file in _HISTORY):
        raise InputError(
            f"The bundle in {place.name} has no history to go on with: a version before wrote it. Import "
            f"its labels."
        )
    broken = damaged(document, place)
    if broken:
        raise InputError(f"The bundle in {place.name} is damaged: {', '.join(broken[:4])}. {ADVICE}")
    with reading(f"The bundle in {place.name}", advice=ADVICE):
        about = read_json(place / _PROJECT)
        held = bytes_to_arrays((place / _ITEMS).read_bytes())
        events = [_event(json.loads(line)) for line in _lines(place / _EVENTS)]
        number = about.get("state_of")
        state = None if number is None else bytes_to_arrays((place / _STATE).read_bytes())
        rounds = []
        for line in _lines(place / _ROUNDS):
            entry = json.loads(line)
            Round.from_json(entry["record"])
            rounds.append(
                (int(entry["number"]), entry["record"], state if entry["number"] == number else None)
            )
        reference = {"name": str(about["pool"]["name"]), "options": dict(about["pool"].get("options") or {})}
        record = ProjectRecord(
            "",
            str(name or about["name"])[:200],
            reference,
            dict(about["settings"]),
            str(about["created"])[:40],
            fingerprints=np.asarray(held["fingerprints"], dtype=np.uint64),
            feature_map=dict(about["feature_map"]),
        )
        ids = [str(key) for key in held["ids"]]
    found = _pool_of(place, document, record, pool, paths)
    loaded = load_pool(found, **record.pool["options"])
    compare_fingerprints(record.fingerprints, loaded.fingerprints, name=Path(found).name)
    _check_items(events, len(record.fingerprints), place.name)
    record = replace(record, pool={**record.pool, "name": found})
    with reading(f"The bundle in {place.name}", advice=ADVICE):
        return store.restore_project(record, events, rounds, ids, owner)


def _pool_of(
    place: Path, document: Mapping[str, Any], record: ProjectRecord, pool: Path | str | None, paths: bool
) -> str:
    """What the project's pool is loaded from on this machine."""
    name, options = str(record.pool["name"]), record.pool["options"]
    if not paths and (options.get("folder") or str(options.get("features", "")).startswith("embeddings:")):
        raise InputError(
            "This project has pictures or vectors in files beside its pool; open it on the command line."
        )
    if pool is not None:
        there = Path(pool).expanduser()
        if not there.exists():
            raise InputError(f"There is no file {cut(str(pool))}.")
        return str(there.resolve())
    inside = str(document["pool"].get("file") or "")
    if inside:
        return str(_kept(place / inside))
    if _on_every_machine(name):
        return name
    if paths and Path(name).exists():
        return name
    raise InputError(
        f"The project's pool was {cut(name)}, which is not in the bundle. Say where it lies here "
        f"(workbench open "
        "BUNDLE --pool FILE)."
    )


def _kept(file: Path) -> Path:
    """A pool's file out of a bundle, kept where uploads are."""
    data = file.read_bytes()
    folder = workbench_home() / "uploads" / sha256(data).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / file.name).is_file():
        write_whole(folder / file.name, data)
    return folder / file.name


def _with_pool(place: Path, record: ProjectRecord) -> str:
    """Put the pool's file into the bundle; "" where there is none, or it is too large."""
    name = str(record.pool["name"])
    file = Path(name)
    if not ("/" in name or "\\" in name) or not file.is_file() or file.stat().st_size > MAX_POOL:
        return ""
    (place / "pool").mkdir(exist_ok=True)
    shutil.copyfile(file, place / "pool" / file.name)
    return f"pool/{file.name}"


def _head(packed: zipfile.ZipFile) -> str | None:
    """run.json of a bundle that a zip holds, maybe in a folder of its own."""
    names = [name for name in packed.namelist() if PurePosixPath(name).name == "run.json"]
    return min(names, key=len) if names else None


def _unpacked(source: Path | str | bytes, folder: Path) -> Path:
    """A zip's bundle in a folder; nothing leaves that folder, and sizes are checked first."""
    label = "The bundle" if isinstance(source, bytes) else Path(source).name
    with reading(label, "a zip of a bundle"):
        file = File(source, label) if isinstance(source, bytes) else File.of(source)
        with file.zipped("a zip of a bundle") as packed:
            head = _head(packed)
            if head is None:
                raise InputError(f"{label} does not hold the bundle of a project.")
            if sum(info.file_size for info in packed.infolist()) > MAX_BUNDLE:
                raise InputError(f"{label} unpacks to more than {MAX_BUNDLE >> 30} GB.")
            root = PurePosixPath(head).parent
            for info in packed.infolist():
                path = PurePosixPath(info.filename)
                if info.is_dir() or not path.is_relative_to(root):
                    continue
                inner = path.relative_to(root)
                if path.is_absolute() or ".." in inner.parts or len(inner.parts) > 3:
                    raise InputError(f"{label} names a file outside of it, {cut(info.filename)}.")
                target = folder / inner
                target.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(info) as member, target.open("wb") as out:
                    shutil.copyfileobj(member, out, 1 << 20)
    return folder


def _check_items(events: list[Event], n: int, label: str) -> None:
    """Refuse events about items that the pool does not have."""
    for event in events:
        named = [event.payload.get("item"), *event.payload.get("items", ())]
        named += [pair[0] for pair in event.payload.get("labels", ())]
        if any(item is not None and not 0 <= int(item) < n for item in named):
            raise InputError(
                f"The bundle in {label} is damaged: an event names an item there is not. {ADVICE}"
            )


def _event_json(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind,
        "payload": dict(event.payload),
        "annotator": event.annotator,
        "time": event.time,
    }


def _event(document: Mapping[str, Any]) -> Event:
    payload = document["payload"]
    if not isinstance(payload, dict):
        raise InputError(f"an event holds {cut(payload)}")
    fixed = str(document["annotator"])[:200], str(document["time"])[:40], int(document["id"])
    return Event(str(document["kind"]), payload, *fixed)


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True) + "\n"


def _lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines() if line.strip()]
