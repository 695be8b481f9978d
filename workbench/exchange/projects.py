"""A person's project as a folder that opens again as a project, also on another machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.documents.checking import checked
from workbench.documents.projects import EventLine, Project, ProjectBundle, QuestionBeside, check_event
from workbench.documents.runs import StoredRound
from workbench.errors import InputError
from workbench.exchange.archives import packed, put
from workbench.exchange.bundles import (
    CODE_BOOK,
    FORMAT,
    MODEL,
    code_book_csv,
    measures_of,
    pool_document,
    project_events_csv,
)
from workbench.exchange.instructions import instruction_files
from workbench.exchange.manifests import (
    ADVICE,
    MAX_DOCUMENT,
    Sealed,
    json_text,
    read_sealed,
    sealed,
    write_files,
)
from workbench.exchange.models import save_model_of
from workbench.exchange.rows import label_table
from workbench.members import FolderMembers, Members, ZipMembers
from workbench.pools import compare_fingerprints
from workbench.pools.formats.files import IMAGE_ENDINGS, File
from workbench.pools.formats.npy_files import arrays_to_bytes, bytes_to_arrays
from workbench.pools.images.photos import PhotoItems
from workbench.pools.loading import is_named
from workbench.pools.named_features import YES, files_in, with_files
from workbench.pools.pool import Pool
from workbench.pools.tables.pictures import Pictures
from workbench.reading import cut, parse_json, reading
from workbench.sessions.checks import frozen_items
from workbench.sessions.fitted_model import check_policy
from workbench.sessions.learner import Learner
from workbench.sessions.reopening import load_as_saved
from workbench.sessions.rounds import Round
from workbench.store import Event, ProjectRecord, RoundRecord, Store, WholeProject, fold
from workbench.store.events import OF_ITEMS
from workbench.store.pool_files import keep_upload
from workbench.writing import sweep, write_whole

if TYPE_CHECKING:
    from workbench.sessions.fitted_model import FittedModel
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
_POOL = "pool"


def write_project_bundle(folder: Path | str, session: Session) -> None:
    """Write a project with all its history: settings, events, fits, the last model, and its pool's file.

    Files of more than `MAX_POOL` bytes stay where they are.

    Args:
        folder: made where it is not there.
        session: of the project.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    sweep(place)
    session = session.questions.first
    project, model = _as_of_now(session)
    record = project.record
    events = [event for event in project.events if event.question is not None or event.counts_in(0)]
    state, rounds = fold(events), [Round.from_json(r.record) for r in project.rounds]
    names: list[str] = []
    if model is not None:
        save_model_of(session, place / "model", model)
        names += MODEL
    # for people and for `workbench predict`
    ids = [str(key) for key in session.pool.items.ids]
    tables = {"events.csv": project_events_csv(state, events, ids), CODE_BOOK: code_book_csv(state, ids)}
    names += write_files(place, {**measures_of(rounds), **tables, **instruction_files(state)})
    # for opening it again
    for number, history in enumerate((project, *project.others)):
        names += write_files(place, _history_files(_folder(number), history))
    # inside a bundle every path is a member's name; what does not travel keeps the place it had
    reference, inside = _with_pool(place, session)
    about = {
        "name": record.name,
        "pool": reference,
        "feature_map": dict(record.feature_map),
        **_question_document(project),
        "questions": [_question_document(question) for question in project.others],
    }
    arrays = {"fingerprints": record.fingerprints, "ids": np.asarray(ids, dtype=np.str_)}
    names += write_files(place, {_ITEMS: arrays_to_bytes(arrays), _PROJECT: json_text(about)})
    settings = {k: v for k, v in {**record.settings, **state.model}.items() if k != "test"}
    document = {
        "format": FORMAT,
        "kind": "project",
        "name": record.name,
        "settings": settings,
        "pool": pool_document(session.pool) | {"reference": reference},
        "classes": list(state.classes),
        "n_rounds": len(rounds),
        "n_labelled": state.n_labelled,
        "n_events": len(events),
    }
    write_whole(place / "run.json", json_text(sealed(document, place, names + inside)))


def _folder(number: int) -> str:
    """The folder of a question's history; that of the first one is the bundle's own."""
    return f"questions/{number}/" if number else ""


def _question_document(question: WholeProject) -> dict[str, Any]:
    """A question of a project as `QuestionBeside` reads it."""
    record = question.record
    return {
        "question": record.question,
        "kind": record.kind,
        "aside": record.aside,
        "created": record.created,
        "settings": dict(record.settings),
        "state_of": None if question.state is None else question.state[0],
    }


def _history_files(folder: str, project: WholeProject) -> dict[str, bytes | str]:
    """Name -> content of the files about the events and fits of one question."""
    lines = (_line({"number": r.number, "record": r.record}) for r in project.rounds)
    files: dict[str, bytes | str] = {
        f"{folder}{_EVENTS}": "".join(_line(_event_json(event)) for event in project.events),
        f"{folder}{_ROUNDS}": "".join(lines),
    }
    return (
        files if project.state is None else files | {f"{folder}{_STATE}": arrays_to_bytes(project.state[1])}
    )


def _as_of_now(session: Session) -> tuple[WholeProject, FittedModel | None]:
    """All of a project as of one moment, and the model of its last fit then; None where it has none."""
    while True:
        project, model = session.store.whole_project(session.id), session.model
        fit_number = -1 if project.state is None else project.state[0]
        if model is None or model.number == fit_number:
            return project, model
        if model.number < fit_number:
            return project, None  # the last fit cannot be read
        # a fit ended in between


def is_project_bundle(source: Path | str | bytes) -> bool:
    """True if a folder or a zip holds the bundle of a project."""
    return _bundle_head(source) is not None


@dataclass(frozen=True)
class Wanted:
    """Needs of a project's bundle: what it cannot bring and a person must give.

    Attributes:
        pool: the place its pool had, where the pool is neither in the bundle nor on every machine; else "".
        files: the places that pictures, vectors and other files beside it had.
        fetch: whether its pictures are at web addresses, which need a yes.
    """

    pool: str = ""
    files: tuple[str, ...] = ()
    fetch: bool = False


def wanted_by(source: Path | str | bytes) -> Wanted:
    """Needs to open a project's bundle; the arguments of `open_bundle` take them."""
    about = (_bundle_head(source) or {}).get("pool")
    reference = about.get("reference") if isinstance(about, dict) else None
    if not isinstance(reference, dict):
        return Wanted()
    name, options = str(reference.get("name", "")), reference.get("options")
    options = options if isinstance(options, dict) else {}
    return Wanted(
        "" if _is_inside(name) or _on_every_machine(name) else name,
        tuple(path for path in files_in(options) if not _travels(path)),
        any(options.get(yes) for yes in YES),
    )


def _is_inside(name: str) -> bool:
    """True if a name in a bundle is one of a file in it: pool/NAME, and nothing else."""
    parts = name.split("/")
    return len(parts) == 2 and parts[0] == _POOL and parts[1] not in ("", ".", "..")


def _travels(path: str) -> bool:
    """True if a file beside a pool comes with the bundle; networks others made may read files themselves."""
    return _is_inside(path) and not path.lower().endswith(".onnx")


def _on_every_machine(name: str) -> bool:
    """True if a name in a bundle is one of a set that comes with the program or lies in a data folder.

    A set of OpenML may have to be downloaded: only a person who names it says so.
    """
    if Path(name).is_absolute() or "/" in name or "\\" in name or name.startswith(("libsvm:", "openml:")):
        return False
    try:
        return is_named(name)
    except InputError:
        return False


def _bundle_head(source: Path | str | bytes) -> dict[str, Any] | None:
    """Description of a project's bundle; None where there is no such bundle."""
    try:
        with _members(source) as members:
            document = parse_json(members.read("run.json", MAX_DOCUMENT), "run.json")
    except InputError:
        return None
    return document if isinstance(document, dict) and document.get("kind") == "project" else None


def open_bundle(
    source: Path | str | bytes,
    *,
    pool: Path | str | None = None,
    pool_options: Mapping[str, Any] | None = None,
    name: str | None = None,
    store: Store | None = None,
    owner: str = "",
) -> ProjectRecord:
    """Make a project of the bundle of one: the same events, fits and settings under a new id.

    Nothing in a bundle is a path: its pool and the files beside it are members of the bundle, sets that come
    with the program, or what the person who opens it names.

    Args:
        source: the folder, or a zip of it.
        pool: where its pool's file or folder lies here, or the name of a known set; None takes the one in the
            bundle, or one that comes with the program.
        pool_options: options of `load_pool` in the place of the bundle's: where pictures (`folder`) or
            vectors (`features`) lie here, or `fetch`, a yes to pictures at web addresses.
        name: of the project; None keeps the bundle's.
        store: the default database unless given.
        owner: key of the person it belongs to.

    Returns:
        The project as it is stored now.

    Raises:
        InputError: no project's bundle, a damaged one, or a pool that is not there or is another.
    """
    store = store or Store.open()
    label = "The bundle" if isinstance(source, bytes) else f"The bundle in {Path(source).name}"
    with _members(source) as members:
        bundle = read_sealed(members, "run.json", label, FORMAT)
        return _opened(bundle, pool, dict(pool_options or {}), name, store, owner)


@contextmanager
def _members(source: Path | str | bytes) -> Iterator[Members]:
    """The files of a bundle: a folder, or a zip, in which they may lie in a folder of their own."""
    file = File(source, "The bundle") if isinstance(source, bytes) else File.of(source)
    if file.is_folder:
        yield FolderMembers(file.path, file.name)
        return
    with file.zipped("a zip of a bundle") as archive:
        members = ZipMembers(archive, file.name)
        heads = [name for name in members.sizes if PurePosixPath(name).name == "run.json"]
        if not heads:
            raise InputError(f"{file.name} does not hold the bundle of a project.")
        if sum(members.sizes.values()) > MAX_BUNDLE:
            raise InputError(f"{file.name} unpacks to more than {MAX_BUNDLE >> 30} GB.")
        yield members.below(min(heads, key=len).rpartition("/")[0])


def _opened(
    bundle: Sealed,
    pool: Path | str | None,
    pool_options: dict[str, Any],
    name: str | None,
    store: Store,
    owner: str,
) -> ProjectRecord:
    if bundle.document.get("kind") != "project":
        raise InputError(f"{bundle.what} is not that of a project.")
    checked(ProjectBundle, bundle.document, f"{bundle.what}: run.json", ADVICE)
    bundle.check()
    with reading(bundle.what, advice=ADVICE):
        about = bundle.json(_PROJECT)
        header = checked(Project, about, f"{bundle.what}: {_PROJECT}", ADVICE)
        arrays = bytes_to_arrays(bundle.read(_ITEMS))
        record = ProjectRecord(
            "",
            str(name or header.name)[:200],
            {"name": header.pool.name, "options": dict(header.pool.options)},
            {},
            header.created,
            fingerprints=_array(arrays, "fingerprints", "u"),
            feature_map=dict(header.feature_map),
        )
        documents = (about, *about.get("questions", ()))
        first, *others = [
            _history_of(bundle, _folder(number), record, question, documents[number]["settings"])
            for number, question in enumerate((header, *header.questions))
        ]
        ids = [str(key) for key in _array(arrays, "ids", "U")]
        if len(ids) != len(record.fingerprints):
            raise InputError(f"{bundle.what} is damaged: {_ITEMS} holds other ids than items. {ADVICE}")
    for history in (first, *others):
        fits = [r.record for r in history.rounds]
        _check_items(list(history.events), fits, len(record.fingerprints), bundle.what)
    reference = _pool_of(bundle, record.pool, pool, pool_options)
    with reading(bundle.what, advice=ADVICE):
        loaded = load_as_saved(reference, record.feature_map)
    compare_fingerprints(record.fingerprints, loaded.fingerprints, name=Path(reference["name"]).name)
    first_record = replace(first.record, pool=reference)
    project = replace(first, record=first_record, item_ids=tuple(ids), others=tuple(others))
    with reading(bundle.what, advice=ADVICE):
        _rehearse(project, loaded)
        return store.restore_project(project, owner)


def _history_of(
    bundle: Sealed, folder: str, record: ProjectRecord, question: QuestionBeside, settings: Mapping[str, Any]
) -> WholeProject:
    """One question of a bundle with its events and fits; `record` is the project's."""
    fields = {name: getattr(question, name) for name in ("created", "question", "kind", "aside")}
    own_record, state_of = replace(record, settings=dict(settings), **fields), question.state_of
    events = _events(bundle, f"{folder}{_EVENTS}")
    state = None if state_of is None else (state_of, bytes_to_arrays(bundle.read(f"{folder}{_STATE}")))
    rounds = []
    for entry in _lines(bundle, f"{folder}{_ROUNDS}"):
        at = f"{bundle.what}: {folder}{_ROUNDS}, round {cut(entry.get('number'))}"
        number = checked(StoredRound, entry, at, ADVICE).number
        Round.from_json(entry["record"])
        rounds.append(RoundRecord(number, entry["record"]))
    return WholeProject(own_record, tuple(events), tuple(rounds), state)


def _rehearse(project: WholeProject, pool: Pool) -> None:
    """Open the project in a database of its own, so that what cannot be opened is never stored."""
    from workbench.sessions import Session

    with TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "rehearsal.sqlite")
        try:
            record = store.restore_project(project)
            first = Session.open(record.id, store=store, pool=pool)
            for session in (first.question(question.id) for question in first.questions.every):
                names = [str(session.settings[name]) for name in ("classifier", "policy")]
                if not any(":" in name for name in names):  # code of somebody's own may not be here
                    check_policy(names[1], names[0])
                    options, seed = dict(session.settings["options"]), int(session.settings["seed"])
                    Learner(session.pool, names[0], options, seed=seed, classes=session.classes)
                if session.model is not None:
                    session.model.probabilities_of(0)
                label_table(session)
        finally:
            store.close()


def _array(arrays: Mapping[str, Array], name: str, kind: str) -> Array:
    """A row of an NPZ, of the kind it must be."""
    array = arrays[name]
    if array.ndim != 1 or array.dtype.kind != kind:
        raise InputError(f"{name} holds {array.dtype} of shape {list(array.shape)}")
    return array.astype(np.uint64) if kind == "u" else array


def _pool_of(
    bundle: Sealed, reference: Mapping[str, Any], pool: Path | str | None, overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Source of the project's pool on this machine: name and options."""
    options = {k: v for k, v in reference["options"].items() if k not in (*YES, *overrides)}
    places: dict[str, str] = {}
    for path in files_in(options):
        if not _travels(path):
            raise InputError(
                f"The project's pool had files beside it, {cut(path)}, which are not in the bundle. Say "
                "where they lie here: workbench open BUNDLE --pool-set folder=PLACE (of pictures) or "
                "--pool-set features=embeddings:FILE."
            )
        places[path] = str(_kept(bundle, path))
    source = {"options": {**with_files(options, places), **overrides}}
    name = str(reference["name"])
    if pool is not None:
        local_path = Path(pool).expanduser()
        if not local_path.exists() and is_named(str(pool)):
            return source | {"name": str(pool)}
        if not local_path.exists():
            raise InputError(f"There is no file {cut(str(pool))}.")
        return source | {"name": str(local_path.resolve())}
    if _is_inside(name):
        return source | {"name": str(_kept(bundle, name))}
    if _on_every_machine(name):
        return source | {"name": name}
    raise InputError(
        f"The project's pool was {cut(name)}, which is not in the bundle. Say where it lies here "
        "(workbench open BUNDLE --pool FILE)."
    )


def _kept(bundle: Sealed, name: str) -> Path:
    """A file out of a bundle, kept where uploads are."""
    with reading(f"{bundle.what}: {cut(name)}"):
        return keep_upload(PurePosixPath(name).name, bundle.read(name, MAX_POOL))


def _with_pool(place: Path, session: Session) -> tuple[dict[str, Any], list[str]]:
    """Put the pool's file and what lies beside it into the bundle.

    Returns:
        The project's pool with the members' names in the place of paths, and these names. What is too large
        keeps the place it had.
    """
    name = str(session.project.pool["name"])
    options = dict(session.project.pool.get("options") or {})
    members: dict[str, str] = {}  # path -> member

    def place_of(path: str, plain: str) -> Path:
        (place / _POOL).mkdir(exist_ok=True)
        # two of one name do not meet
        is_taken = any(member == f"{_POOL}/{plain}" for member in members.values())
        members[path] = f"{_POOL}/{len(members)}-{plain}" if is_taken else f"{_POOL}/{plain}"
        return place / members[path]

    for path in (*([name] if "/" in name or "\\" in name else []), *files_in(options)):
        location = Path(path).expanduser()
        if location.is_file() and location.stat().st_size <= MAX_POOL and not path.lower().endswith(".onnx"):
            shutil.copyfile(location, place_of(path, location.name))
        elif location.is_dir() and path == options.get("folder"):
            _pack_pictures(FolderMembers(location), None, place_of, path)
    items = session.pool.items
    photos = items.photos if isinstance(items, PhotoItems) else None
    source = None if photos is None else photos.folder
    if photos is not None and isinstance(source, Pictures) and source.beside and name in members:
        options["folder"] = "beside the table"
        paths = [source.paths[cell] for cell in photos.paths if cell in source.paths]
        if not _pack_pictures(FolderMembers(source.beside), paths, place_of, options["folder"]):
            del options["folder"]
    return {"name": members.get(name, name), "options": with_files(options, members)}, list(members.values())


def _pack_pictures(
    members: FolderMembers, selection: Sequence[str] | None, place_of: Callable[[str, str], Path], path: str
) -> bool:
    """Put pictures of a folder into the bundle as one zip, where they are not too large together."""
    names = (
        [n for n in members.sizes if n.lower().endswith(IMAGE_ENDINGS)] if selection is None else selection
    )
    names = sorted(set(names))
    if sum(members.size(name) for name in names) > MAX_POOL:
        return False
    with place_of(path, "pictures.zip").open("wb") as file, packed(file) as archive:
        for name in names:
            put(archive, name, members.read(name), squeeze=False)
    return True


def _check_items(events: list[Event], rounds: Sequence[Mapping[str, Any]], n: int, label: str) -> None:
    """Refuse events and fits about items that the pool does not have."""
    for record in rounds:
        item_lists = [record.get(name, ()) for name in ("queried", "initial", "uniform", "queue")]
        if record.get("n_items", 0) > n or any(item >= n for items in item_lists for item in items):
            raise InputError(f"{label} is damaged: a fit names an item there is not. {ADVICE}")
    for event in events:
        frozen = frozen_items(event.payload).tolist() if event.kind == "checks-started" else ()
        if event.n_items > n or not all(0 <= item < n for item in frozen):
            raise InputError(f"{label} is damaged: an event names an item there is not. {ADVICE}")


def _event_json(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind,
        "payload": dict(event.payload),
        "annotator": event.annotator,
        "time": event.time,
        **({"of_items": True} if event.question is None else {}),
    }


def _events(bundle: Sealed, name: str) -> list[Event]:
    """The events of a question, each of the shape that its kind has."""
    events = []
    for number, document in enumerate(_lines(bundle, name), start=1):
        at = f"{bundle.what}: {name}, line {number:,}"
        line = checked(EventLine, document, at, ADVICE)
        check_event(line.kind, line.payload, at, ADVICE)
        if line.of_items and line.kind not in OF_ITEMS:
            raise InputError(f"{at} is damaged: {line.kind} is of a question. {ADVICE}")
        of = None if line.of_items else ""
        events.append(Event(line.kind, line.payload, line.annotator, line.time, line.id, of))
    return events


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True) + "\n"


def _lines(bundle: Sealed, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(bundle.read(name).split(b"\n"), start=1):
        if line.strip():
            document = parse_json(line, f"{bundle.what}: {name}, line {number:,}", advice=ADVICE, finite=True)
            if not isinstance(document, dict):
                raise InputError(
                    f"{bundle.what} is damaged: line {number:,} of {name} is {cut(document)}. {ADVICE}"
                )
            yield document
