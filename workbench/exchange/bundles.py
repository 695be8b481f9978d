"""A run or a project as a folder that explains itself.

run.json (spec and fingerprint), rounds.csv, events.csv, model/, timings.csv, environment.json. Every
file but the last two depends on the spec alone: the same seed gives the same bytes on one machine at
one thread count, also when the run was killed and resumed.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import workbench
from workbench.arrays import Array
from workbench.csv_writing import csv_text, plain_cell
from workbench.documents import runs as documents
from workbench.documents.checking import checked
from workbench.errors import InputError
from workbench.exchange.archives import packed, put
from workbench.exchange.manifests import (
    ADVICE,
    Sealed,
    json_text,
    read_json,
    read_sealed,
    sealed,
    write_files,
)
from workbench.exchange.models import kept_of_pool, save_model
from workbench.members import FolderMembers
from workbench.pools.formats.npy_files import arrays_to_bytes, bytes_to_arrays
from workbench.pools.instructions import FILE, PICTURES
from workbench.pools.pool import Pool
from workbench.reading import cut, parse_json, reading
from workbench.sessions.instruction_texts import picked_now
from workbench.sessions.rounds import METRICS, Round
from workbench.sessions.simulate import Checkpoint
from workbench.sessions.smoothing import Smoothing, seen_of
from workbench.sessions.spec import RunSpec
from workbench.sessions.taxonomy import code_book
from workbench.store.events import Event, now
from workbench.store.fold import EventFold
from workbench.store.processes import Lease, is_alive, this_process
from workbench.store.project_state import ProjectState
from workbench.versions import LIBRARIES, THREADS, version_of
from workbench.writing import alone_in, sweep, sync_folder, write_whole

FORMAT = 4
_PARTIAL = ".partial"
MODEL = ("model/spec.json", "model/params.npz", "model/features.json")
_TABLES = ("rounds.csv", "events.csv")
CODE_BOOK = "codebook.csv"
_PARTS = (
    *("model", "pool", *_TABLES, CODE_BOOK, FILE, PICTURES, "timings.csv", "environment.json"),
    *("events.jsonl", "rounds.jsonl", "project.json", "items.npz", "state.npz"),
)


@dataclass(frozen=True)
class RunBundle:
    """A bundle read back.

    Attributes:
        spec: of the run.
        fingerprint: of the pool it ran on.
        rounds: its rounds, as far as rounds.csv and events.csv tell; the last with its posterior, unless
            the model is damaged.
        folder: where it lies.
        damage: names of the model's files that are missing or not what was written.
    """

    spec: RunSpec
    fingerprint: str
    rounds: list[Round]
    folder: Path
    damage: tuple[str, ...] = ()


class BundleFolder:
    """A folder that a run writes its rounds to as they finish, and its bundle in the end.

    Args:
        folder: of the bundle.
        spec: of the run.
        pool: it runs on.

    Raises:
        InputError: the folder holds another run, or other files.
    """

    def __init__(self, folder: Path | str, spec: RunSpec, pool: Pool) -> None:
        self.folder = Path(folder)
        self.spec = spec
        self.pool = pool
        self._partial = self.folder / _PARTIAL
        self._head = {"spec": spec.to_json(), "fingerprint": pool.fingerprint}
        self._lease: Lease | None = None
        self._check()

    @property
    def finished(self) -> bool:
        """True if the whole bundle is there; what a kill left beside it is dropped."""
        if not (self.folder / "run.json").is_file():
            return False
        # run.json is written last, so a kill while the rest was dropped costs nothing
        shutil.rmtree(self._partial, ignore_errors=True)
        return True

    @staticmethod
    def rounds_kept(folder: Path | str) -> list[Round]:
        """The rounds of an unfinished run in a folder, in order; none where there is no such run.

        Args:
            folder: of the bundle; nothing in it is changed.
        """
        path = Path(folder) / _PARTIAL / "rounds.jsonl"
        if not path.is_file():
            return []
        with reading(str(path), advice=ADVICE):
            data = FolderMembers(path.parent).read(path.name)
            # A kill can leave half a line at the end; that round is simply done again.
            content = data[: data.rfind(b"\n") + 1]
            lines = [parse_json(line, f"{path}", finite=True) for line in content.split(b"\n") if line]
            for line in lines:
                checked(documents.RoundRecord, line, f"{path}: it is not a saved round: it", ADVICE)
            return [Round.from_json(line) for line in lines]

    def progress(self) -> Checkpoint | None:
        """The progress of an interrupted run, or None where nothing was finished yet."""
        rounds = self.rounds_kept(self.folder)
        if not rounds:
            return None
        with reading(f"What is kept of the run in {self.folder}", advice=ADVICE):
            # a kill can leave the state of a round whose line was not written
            numbers = [n for n in self._states() if n <= rounds[-1].number]
            if not numbers:
                raise InputError(f"The unfinished run in {self.folder} has lost its posterior. {ADVICE}")
            data = FolderMembers(self._partial).read(f"state-{max(numbers)}.npz")
            return Checkpoint(rounds, bytes_to_arrays(data), max(numbers))

    def _owner(self) -> str:
        """Another program that is at work in the folder, or ""."""
        owner = self._partial / "owner"
        present = FolderMembers(self._partial).text("owner", 1_000) if owner.is_file() else ""
        return (
            present
            if present and present != this_process() and is_alive(present, owner.stat().st_mtime)
            else ""
        )

    def begin(self) -> None:
        """Make the folder ready for rounds."""
        owner = self._partial / "owner"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with alone_in(self.folder):  # two that begin at once would both find nobody
                self._partial.mkdir(exist_ok=True)
                if program := self._owner():
                    raise InputError(f"Another program is at work on the run in {self.folder} ({program}).")
                write_whole(owner, this_process())
            self._lease = Lease(lambda: os.utime(owner))  # it must not make the file of one that has let go
            sweep(self.folder)
            write_whole(self._partial / "head.json", json_text(self._head))
            self._drop_half_line(self._partial / "rounds.jsonl")
        except OSError as error:
            self._let_go()
            raise InputError(f"The folder {self.folder} cannot be written: {error.strerror}.") from error

    def _let_go(self) -> None:
        if self._lease is not None:
            self._lease.end()
            self._lease = None

    def add(self, finished: Round) -> None:
        """Keep a finished round, with its posterior if it has one; durable before it returns."""
        if finished.state is not None:
            write_whole(self._partial / f"state-{finished.number}.npz", arrays_to_bytes(finished.state))
        # The line is what makes the round count: the state it needs is there before it.
        with (self._partial / "rounds.jsonl").open("ab") as file:
            file.write(json.dumps(finished.to_json(), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if finished.state is not None:
            for number in self._states():
                if number != finished.number:
                    (self._partial / f"state-{number}.npz").unlink(missing_ok=True)

    def release(self) -> None:
        """Let another process go on with the run; where no round was finished, nothing stays of it."""
        self._let_go()
        (self._partial / "owner").unlink(missing_ok=True)
        if not self.rounds_kept(self.folder):
            shutil.rmtree(self._partial, ignore_errors=True)
            with suppress(OSError):  # it held other things
                self.folder.rmdir()

    def finish(self, rounds: Sequence[Round], state: Mapping[str, Array]) -> None:
        """Write the bundle and drop what was kept for resuming."""
        self._let_go()
        write_run_bundle(self.folder, self.spec, self.pool, rounds, state)
        shutil.rmtree(self._partial, ignore_errors=True)
        sync_folder(self.folder)

    def _states(self) -> list[int]:
        """Numbers of the rounds whose posterior is there."""
        return [int(p.stem.removeprefix("state-")) for p in self._partial.glob("state-*.npz")]

    @staticmethod
    def _drop_half_line(path: Path) -> None:
        if path.is_file():
            data = path.read_bytes()
            if not data.endswith(b"\n"):
                write_whole(path, data[: data.rfind(b"\n") + 1])

    def _check(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; --out takes a folder.")
        head = self._partial / "head.json"
        present: Any = None
        if head.is_file() and (self.rounds_kept(self.folder) or self._owner()):
            present = read_json(head)
        elif (self.folder / "run.json").is_file():
            document = read_json(self.folder / "run.json")
            bundle = checked(documents.RunBundle, document, f"{self.folder / 'run.json'}", ADVICE)
            present = {"spec": bundle.spec, "fingerprint": bundle.pool.fingerprint}
        elif self.folder.is_dir() and any(self.folder.iterdir()) and not self._partial.is_dir():
            raise InputError(f"The folder {self.folder} holds other files; choose an empty or a new one.")
        if present is None or present == self._head:
            return
        if not isinstance(present, dict):
            raise InputError(f"{head} is damaged: it is no run's. {ADVICE}")
        if present.get("spec") == self._head["spec"]:
            raise InputError(
                f"The run in {self.folder} was made on another version of pool {self.spec.pool!r}, which has "
                "changed since. Choose another folder, or bring the pool back as it was."
            )
        raise InputError(
            f"The folder {self.folder} holds another run ({_differences(present, self._head)}). "
            "Choose another folder."
        )


def _differences(present: Mapping[str, Any], head: Mapping[str, Any]) -> str:
    old_spec, new_spec = present.get("spec"), head["spec"]
    if not isinstance(old_spec, dict):
        return "of another form"
    parts = [
        f"{k} {cut(old_spec.get(k))}, not {cut(new_spec[k])}"
        for k in new_spec
        if old_spec.get(k) != new_spec[k]
    ]
    return "; ".join(parts[:3]) or "of another form"


def write_run_bundle(
    folder: Path | str, spec: RunSpec, pool: Pool, rounds: Sequence[Round], state: Mapping[str, Array]
) -> None:
    """Write the bundle of a finished run.

    Args:
        folder: made where it is not there.
        spec: of the run.
        pool: it ran on.
        rounds: in order from 0.
        state: the posterior of the last.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    save_model(
        place / "model",
        state,
        classifier=spec.classifier,
        options=spec.options,
        classes=pool.classes,
        n_labelled=rounds[-1].n_labelled,
        **kept_of_pool(
            pool,
            {"sources": [{"source": source} for source in spec.guess]},
            pool.classes,
            seen_of(pool, state),
        ),
    )
    write_files(place, measures_of(rounds) | {"events.csv": _run_events(pool, rounds)})
    document = {
        "format": FORMAT,
        "kind": "run",
        "spec": spec.to_json(),
        "pool": pool_document(pool) | _sampled(spec, pool, rounds),
        "n_rounds": len(rounds),
        "n_labelled": rounds[-1].n_labelled,
        "neighbours": Smoothing.of_state(state).strength,
    }
    # timings and the environment are another run's business: the same seed gives the same run.json
    write_whole(place / "run.json", json_text(sealed(document, place, (*_TABLES, *MODEL))))


def may_be_written(folder: Path | str) -> bool:
    """True if a bundle may be exported to a folder: a new or empty one, or a half-written export.

    Args:
        folder: run.json is written last, so one without it, with nothing else's files, was cut short.
    """
    place = Path(folder)
    if not place.exists():
        return True
    if not place.is_dir():
        return False
    return all(
        p.name in _PARTS or (p.name.startswith(".") and p.name.endswith(".new")) for p in place.iterdir()
    )


def read_bundle(folder: Path | str, *, trust_code: bool = False) -> RunBundle:
    """Read a run's bundle back.

    Args:
        folder: of the bundle.
        trust_code: let its spec name code that is neither registered nor installed.

    Raises:
        InputError: no finished run there.
    """
    place = Path(folder)
    bundle = _run_held(place)
    document, broken = bundle.document, bundle.damaged()
    unusable = [name for name in broken if name in _TABLES]
    if unusable:
        raise InputError(
            f"The bundle in {place} is damaged: {', '.join(unusable)} is not what was written. {ADVICE}"
        )
    with reading(f"The bundle in {place} is damaged: it", advice=ADVICE):
        spec = RunSpec.from_json(document["spec"], where=f"The bundle in {place}", trust_code=trust_code)
        rounds = _read_rounds(bundle)
        if len(rounds) != document["n_rounds"] or rounds[-1].n_labelled != document["n_labelled"]:
            raise InputError(
                f"The bundle in {place} is damaged: rounds.csv ends at round {len(rounds) - 1:,} of "
                f"{cut(document['n_rounds'])}. {ADVICE}"
            )
        if not any(name in MODEL for name in broken):
            state = bytes_to_arrays(bundle.read("model/params.npz"))
            rounds[-1] = replace(rounds[-1], state=state)
        return RunBundle(spec, str(document["pool"]["fingerprint"]), rounds, place, broken)


def _run_held(place: Path) -> Sealed:
    """The document of a run's bundle, with the files that it lists."""
    bundle = _bundle_in(place)
    if bundle.document.get("kind") != "run":
        project = bundle.document.get("kind") == "project"
        more = " It is a project's: workbench open opens it." if project else ""
        raise InputError(f"{place} does not hold the bundle of a run.{more}")
    checked(documents.RunBundle, bundle.document, f"{bundle.what}: run.json", ADVICE)
    return bundle


def _bundle_in(place: Path) -> Sealed:
    return read_sealed(FolderMembers(place), "run.json", f"The bundle in {place}", FORMAT)


def _table(bundle: Sealed, name: str) -> csv.DictReader[str]:
    """A table of a bundle, as it was written."""
    return csv.DictReader(io.StringIO(bundle.read(name).decode("utf-8"), newline=""))


def _read_rounds(bundle: Sealed) -> list[Round]:
    """The rounds that rounds.csv and events.csv tell of; what they lack raises whatever it raises."""
    import numpy as np

    document = bundle.document
    position = {name: code for code, name in enumerate(document["pool"]["classes"])}
    n_items = int(document["pool"]["n_items"])
    queries: dict[int, list[tuple[int, int, float]]] = {}
    first: list[tuple[int, int]] = []
    for row in _table(bundle, "events.csv"):
        code = position[plain_cell(row["class"])]
        if not 0 <= int(row["item"]) < n_items:
            raise InputError(f"{bundle.what} is damaged: there is no item {cut(row['item'])}. {ADVICE}")
        if row["role"] == "initial":
            first.append((int(row["item"]), code))
        else:
            entry = (int(row["item"]), code, float(row["utility"] or "nan"))
            queries.setdefault(int(row["round"]), []).append(entry)
    rounds = []
    for number, row in enumerate(_table(bundle, "rounds.csv")):
        if int(row["round"]) != number:
            raise InputError(f"{bundle.what} is damaged: rounds.csv lacks round {number}. {ADVICE}")
        answers = queries.get(number, [])
        rounds.append(
            Round(
                number=number,
                n_labelled=int(row["n_labelled"]),
                n_test=int(document["pool"].get("n_measured", document["pool"]["n_test"])),
                program=sys.intern(row["program"]),
                **{name: float(row[name] or "nan") for name in METRICS},  # type: ignore[arg-type]
                queried=np.asarray([a[0] for a in answers], dtype=np.int64),
                labels=np.asarray([a[1] for a in answers], dtype=np.int64),
                utilities=np.asarray([a[2] for a in answers], dtype=np.float64),
                initial=np.asarray([i for i, _ in first] if number == 0 else [], dtype=np.int64),
                initial_labels=np.asarray([c for _, c in first] if number == 0 else [], dtype=np.int64),
            )
        )
    return rounds


def labelled_items(folder: Path | str) -> tuple[str, list[int]]:
    """Rows that a run's bundle has labels of.

    Args:
        folder: of the bundle.

    Returns:
        The name or file of its pool, and the items, ascending; "" and none where there is no run's bundle.

    Raises:
        InputError: it is damaged.
    """
    place = Path(folder)
    if not (place / "run.json").is_file():
        return "", []
    bundle = _bundle_in(place)
    if bundle.document.get("kind") != "run":
        return "", []
    with reading(f"{bundle.what} is damaged: it", advice=ADVICE):
        items = {int(row["item"]) for row in _table(bundle, "events.csv") if row["kind"] == "label"}
        return str(bundle.document["spec"]["pool"]), sorted(items)


def write_zip(out: IO[bytes], folder: Path | str) -> None:
    """Write a folder as one ZIP file, a block at a time; the same files give the same bytes.

    Args:
        out: an open file.
        folder: whose files go in, with those of its folders.
    """
    members = FolderMembers(folder)
    with packed(out) as archive:
        for name in members.sizes:
            with members.opened(name) as file:
                put(archive, name, file)


def code_book_csv(state: ProjectState, ids: Sequence[Any]) -> str:
    """The classes as people see them, with their codes, guidance and the examples that people picked.

    Args:
        state: of the project.
        ids: [N] of the items.
    """
    picked = picked_now(state)
    rows = [
        {**row, "examples": " | ".join(str(ids[item]) for item in picked.get(key, ()))}
        for row in code_book(state)
        for key in (state.keys[row["code"]],)
    ]
    columns = list(rows[0]) if rows else ["class"]
    return csv_text(columns, ([row[name] for name in columns] for row in rows))


def project_events_csv(state: ProjectState, events: Sequence[Event], ids: Sequence[Any]) -> str:
    """Every event of a project, as people read them.

    Args:
        state: what the events add up to; it names the classes.
        events: all of them, oldest first.
        ids: [N] of the items.
    """
    active = EventFold(events).standing
    rows = []
    for event in events:
        item = event.item
        key = event.payload.get("class")
        # pictures lie in files of their own
        hidden = ("item", "class", *(("data",) if event.kind == "picture-kept" else ()))
        more = {k: v for k, v in event.payload.items() if k not in hidden}
        rows.append(
            (
                event.id,
                event.time,
                event.annotator,
                event.kind,
                item,
                None if item is None else str(ids[item]),
                None if key is None else state.class_name(str(key)),
                None if key is None else str(key),
                "yes" if event.id in active else "undone",
                json.dumps(more, sort_keys=True, ensure_ascii=False),
            )
        )
    columns = ("event", "time", "annotator", "kind", "item", "id", "class", "class_key", "stands", "details")
    return csv_text(columns, rows)


def measures_of(rounds: Sequence[Round]) -> dict[str, str]:
    """Name -> content of the files about fits, of a run and of a project: figures, wall seconds, machine."""
    parts = ("fit", "score", "query")
    figures = [(r.number, r.n_labelled, *(getattr(r, m) for m in METRICS), r.program) for r in rounds]
    seconds = [(r.number, *(round(r.seconds.get(part, float("nan")), 6) for part in parts)) for r in rounds]
    environment: dict[str, Any] = {
        "written": now(),
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "threads": {name: os.environ.get(name) for name in THREADS},
        "libraries": {"workbench-labels": workbench.__version__}
        | {name: version_of(name) for name in LIBRARIES},
    }
    return {
        "rounds.csv": csv_text(("round", "n_labelled", *METRICS, "program"), figures),
        "timings.csv": csv_text(("round", *parts), seconds),
        "environment.json": json_text(environment),
    }


def _run_events(pool: Pool, rounds: Sequence[Round]) -> str:
    rows: list[tuple[Any, ...]] = []
    ids = pool.items.ids

    def tell(number: int, item: int, code: int, role: str, utility: float | None) -> None:
        rows.append((len(rows), number, "label", item, str(ids[item]), pool.classes[code], role, utility))

    for r in rounds:
        for item, code in zip(r.initial.tolist(), r.initial_labels.tolist(), strict=True):
            tell(r.number, item, code, "initial", None)
        for item, code, utility in zip(
            r.queried.tolist(), r.labels.tolist(), r.utilities.tolist(), strict=True
        ):
            tell(r.number, item, code, "uniform" if item in r.uniform else "policy", utility)
    return csv_text(("event", "round", "kind", "item", "id", "class", "role", "utility"), rows)


def _sampled(spec: RunSpec, pool: Pool, rounds: Sequence[Round]) -> dict[str, int]:
    """Number of the test items a run was measured on, where it was a sample of them."""
    large = pool.test is not None and bool(spec.measured) and pool.test.test.size > spec.measured
    return {"n_measured": rounds[-1].n_test} if large else {}


def pool_document(pool: Pool) -> dict[str, Any]:
    """Pool of a bundle, as it describes it."""
    return {
        "name": pool.name,
        "fingerprint": pool.fingerprint,
        "n_items": len(pool),
        "n_features": pool.n_features,
        "n_test": 0 if pool.test is None else int(pool.test.test.size),
        "classes": list(pool.classes),
    }
