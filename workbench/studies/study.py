"""Studies: runs over pools, classifiers, policies and seeds, kept round by round, resumable."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workbench.csv_writing import csv_text
from workbench.documents.checking import Names, Word, checked_settings, plain
from workbench.documents.runs import RunSettings
from workbench.errors import Cancelled, InputError
from workbench.exchange.bundles import read_bundle
from workbench.exchange.manifests import json_text
from workbench.members import FolderMembers
from workbench.pools.formats.files import File
from workbench.pools.pool import Pool
from workbench.progress import OnProgress
from workbench.reading import cut, reading
from workbench.registry import from_file, typed
from workbench.sessions.fitted_model import check_policy
from workbench.sessions.rounds import METRICS, Round
from workbench.sessions.simulate import simulate_spec
from workbench.sessions.spec import RunSpec, check_guess, with_choice
from workbench.studies.runner import (
    Failure,
    Sink,
    carry_out,
    named,
    open_sink,
    pool_of,
    stored_rounds,
    stream_runs,
    stream_runs_here,
    without_state,
)
from workbench.work import LOCAL, check_workers
from workbench.writing import write_whole

if TYPE_CHECKING:
    from workbench.store.store import Store

OnRound = Callable[[RunSpec, Round], None]
_MEND = "Put it back from a copy, or remove the run's folder and start again."
_LARGEST = 1_000_000
"""Most bytes of a document that says what a study is: a few lines, usually."""
COLUMNS = ("pool", "classifier", "policy", "seed", "round", "n_labelled")


@dataclass(frozen=True)
class StudyResult:
    """Result of a study.

    Attributes:
        spec: of the study.
        runs: spec and rounds of each run that has any, in the order of `spec.runs()`.
        status: "finished", "cancelled" when told to stop, or "failed" where a run could not go on: the others
            are finished, and the same call tries it again.
        failures: spec of each run that failed, and why.
    """

    spec: StudySpec
    runs: Sequence[tuple[RunSpec, list[Round]]]
    status: Literal["finished", "cancelled", "failed"]
    failures: Sequence[tuple[RunSpec, str]] = ()

    @property
    def trouble(self) -> str:
        """A sentence for each kind of failure: its first run by name, and how many there are; "" without."""
        kinds: dict[tuple[str, str], list[RunSpec]] = {}
        for run, why in self.failures:
            kinds.setdefault((run.classifier, why), []).append(run)
        return "\n".join(
            f"{len(runs)} of {len(self.spec.runs())} runs failed, such as {named(runs[0])}: {why}"
            for (_, why), runs in kinds.items()
        )

    def of(self, policy: str) -> dict[int, list[Round]]:
        """Seed -> rounds of a policy's runs, where the study has one pool and one classifier."""
        return {run.seed: rounds for run, rounds in self.runs if run.policy == policy and rounds}

    def rows(self) -> list[tuple[Any, ...]]:
        """One row a round: pool, classifier, policy, seed, round, labels, then `METRICS`."""
        return [
            (
                spec.pool,
                spec.classifier,
                spec.policy,
                spec.seed,
                r.number,
                r.n_labelled,
                *(getattr(r, name) for name in METRICS),
            )
            for spec, rounds in self.runs
            for r in rounds
        ]


def made_with(*results: StudyResult) -> str:
    """Versions of the program that the rounds of studies were made with, in a sentence; "" without a round.

    Args:
        results: of studies that stand side by side.
    """
    programs = sorted({r.program for result in results for _, rounds in result.runs for r in rounds})
    if not programs:
        return ""
    several = ": runs of different versions are no fair pairs" * (len(programs) > 1)
    return f"Made with Workbench {' and '.join(programs)}{several}."


def run_study(
    spec: StudySpec,
    on_round: OnRound | None = None,
    should_stop: Callable[[], bool] | None = None,
    *,
    out: Path | str | None = None,
    store: Store | None = None,
    project: str | None = None,
    study: str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    load: Callable[[RunSpec], Pool] = pool_of,
) -> StudyResult:
    """Run, or go on with, every run of a study.

    Kept in a folder (`out`: a bundle a run, study.json, comparison.csv), in the database (`store`), or
    nowhere. Each round is durable before `on_round` hears of it; the same call goes on after a kill,
    and what it writes is the same bytes with any number of workers.

    Args:
        spec: of the study.
        on_round: called in this thread with every round, those of an earlier attempt included.
        should_stop: asked between rounds and during fits; True ends the study as "cancelled".
        out: folder of the study.
        store: the database; runs are found again by their spec and `study`.
        project: the project the runs belong to, in `store`.
        study: its name in `store`; the spec's unless given.
        workers: processes with one thread each; 1 runs in this thread.
        scheduler: address of a Dask scheduler whose workers run it instead.
        load: opens the pool of a run, where this process needs it.

    Returns:
        The result; a run that fails leaves the others standing.

    Raises:
        InputError: what cannot be run, a folder that holds another study, runs on a pool that has changed, or
            not one run that could be made.
    """
    check_workers(workers)
    if out is not None and store is not None:
        raise InputError("A study is kept in a folder or in the database, not in both.")
    for classifier in spec.classifiers:
        for policy in spec.policies:
            check_policy(policy, classifier)
    planned = spec.runs()
    place = None if out is None else Path(out)
    if place is not None:
        _claim_folder(place, spec)
    study = study or spec.name or None
    earlier = _stored(store, study)

    def folder(run: RunSpec) -> Path | None:
        return None if place is None else place / "runs" / folder_name(run)

    def where(run: RunSpec) -> dict[str, Any]:
        if store is None:
            return {"out": folder(run)}
        return {
            "store": store,
            "run_id": earlier.get(_key(run.to_json())),
            "project": project,
            "study": study,
        }

    tell = on_round or (lambda run, finished: None)
    all_rounds, todo = _so_far(planned, folder, store, earlier, tell, _Data(load))
    status: Literal["finished", "cancelled", "failed"] = "finished"
    failed: dict[int, Failure] = {}
    try:
        if todo:
            failed = carry_out(
                todo,
                lambda run: _needed(open_sink(run, load(run), **where(run))),
                lambda jobs: (
                    stream_runs_here(jobs, load, should_stop=should_stop)
                    if workers == 1 and scheduler is None
                    else stream_runs(
                        jobs, min(workers, len(todo)), scheduler or LOCAL, should_stop=should_stop
                    )
                ),
                all_rounds,
                tell,
                tell,
            )
            status = "failed" if failed else "finished"
    except Cancelled:
        status = "cancelled"
    runs = [(planned[i], all_rounds[i]) for i in sorted(all_rounds) if all_rounds[i]]
    result = StudyResult(spec, runs, status, [(planned[i], failed[i].message) for i in sorted(failed)])
    if status == "failed" and not runs:
        raise InputError(result.trouble)
    if place is not None and status != "cancelled":
        write_whole(place / "comparison.csv", csv_text((*COLUMNS, *METRICS), result.rows()))
    return result


def _so_far(
    planned: Sequence[RunSpec],
    folder: Callable[[RunSpec], Path | None],
    store: Store | None,
    earlier: dict[str, str],
    tell: OnRound,
    data: _Data,
) -> tuple[dict[int, list[Round]], list[tuple[int, RunSpec]]]:
    """Rounds of the runs that an earlier attempt finished, which are told, and the runs that are left."""
    all_rounds: dict[int, list[Round]] = {}
    todo = []
    for index, run in enumerate(planned):
        rounds = _finished(run, folder(run), store, earlier, data)
        if rounds is None:
            todo.append((index, run))
            continue
        if (bundle := folder(run)) is not None:
            shutil.rmtree(bundle / ".partial", ignore_errors=True)
        all_rounds[index] = rounds
        for r in rounds:
            tell(run, r)
    return all_rounds, todo


def _needed(sink: Sink | None) -> Sink:
    # a run that is finished was read before, unless another program has just finished it
    if sink is None:
        raise InputError("A run of this study has just been finished by another program. Start again.")
    return sink


class _Data:
    """The data that a study's runs must be of, pool by pool.

    Args:
        load: opens the pool of a run; None takes the first run's data for the study's.
    """

    def __init__(self, load: Callable[[RunSpec], Pool] | None = None) -> None:
        self._load = load
        self._fingerprints: dict[str, str] = {}

    def check(self, run: RunSpec, fingerprint: str) -> None:
        """Refuse a run of other data: it is no pair of the others.

        Args:
            run: the run.
            fingerprint: of the pool it ran on.

        Raises:
            InputError: the pool has changed.
        """
        if run.pool not in self._fingerprints:
            pool = None if self._load is None else self._load(run)
            self._fingerprints[run.pool] = fingerprint if pool is None else pool.fingerprint
        if self._fingerprints[run.pool] != fingerprint:
            raise InputError(
                f"Pool {run.pool!r} has changed since the run of {run.policy} with seed {run.seed} was "
                "made, so its runs cannot be compared with new ones. Put the old file back, or start again "
                "in another folder or under another name."
            )


def _finished(
    run: RunSpec, folder: Path | None, store: Store | None, earlier: dict[str, str], data: _Data
) -> list[Round] | None:
    """The rounds of a run that is finished already, or None."""
    if folder is not None and (folder / "run.json").is_file():
        with reading(f"The run in {folder}", advice=_MEND):
            bundle = read_bundle(folder)
        if bundle.spec != run:
            raise InputError(f"The folder {folder} holds another run. Choose another folder.")
        data.check(run, bundle.fingerprint)
        return [without_state(r) for r in bundle.rounds]
    if store is not None:
        run_id = earlier.get(_key(run.to_json()))
        record = None if run_id is None else store.runs.get(run_id)
        if record is not None and record.status == "finished":
            data.check(run, record.fingerprint)
            return stored_rounds(store, record.id)
    return None


def _stored(store: Store | None, study: str | None) -> dict[str, str]:
    """Spec -> id of the runs of a study that are in the database and not running."""
    if store is None or study is None:
        return {}
    return {_key(r.spec): r.id for r in store.runs.all(study=study) if r.status != "running"}


def _key(document: Any) -> str:
    return json_text(document)


def _claim_folder(place: Path, spec: StudySpec) -> None:
    """Make the folder of a study, or check that it is this study's."""
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; --out takes a folder.")
    document = spec.to_json()
    head = place / "study.json"
    if head.is_file():
        present = _read_document(head)
        if not isinstance(present, dict):
            raise InputError(f"{head} is not a study's. Choose another folder.")
        # more seeds, policies, classifiers or pools only add runs, and runs know what they are
        grows = {"name", "pools", "classifiers", "policies", "seeds"}
        # without a large-margin model there was no choice of a geometry that could differ
        chose = "large-margin" in (present.get("classifiers") or ())
        options = {} if chose or "choice" in (present.get("options") or {}) else {"choice"}
        request = document | {"options": {k: v for k, v in document["options"].items() if k not in options}}
        differ = [k for k in document if k not in grows and present.get(k) != request[k]]
        if differ:
            raise InputError(
                f"The folder {place} holds another study ({differ[0]} {cut(present.get(differ[0]))}, not "
                f"{cut(document[differ[0]])}). Choose another folder."
            )
    elif place.is_dir() and any(p.name != "runs" for p in place.iterdir()):
        raise InputError(f"The folder {place} holds other files; choose an empty or a new one.")
    try:
        (place / "runs").mkdir(parents=True, exist_ok=True)
        write_whole(head, json_text(document))
    except OSError as error:
        raise InputError(f"The folder {place} cannot be written: {error.strerror}.") from error


def folder_name(spec: RunSpec) -> str:
    """A folder for one run of a study: readable, and never the same for two specs."""
    parts = (spec.pool, spec.classifier, spec.policy, f"seed{spec.seed}")
    readable = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-")[-40:] for part in parts)
    return f"{readable}-{sha256(repr(parts).encode()).hexdigest()[:6]}"


def study_from(
    document: Any,
    name: str = "study",
    *,
    where: str = "The study",
) -> StudySpec:
    """A study from a JSON or TOML document; code it names is refused on use.

    Args:
        document: fields of `StudySpec`; "pool", "classifier" and "policy" may stand for lists of one.
        name: where the document has none.
        where: what held the document, for messages.

    Returns:
        The study.

    Raises:
        InputError: fields there are not, or values of another kind.
    """
    if not isinstance(document, dict):
        raise InputError("A study is a table of settings.")
    settings = dict(document)
    for singular, plural in (("pool", "pools"), ("classifier", "classifiers"), ("policy", "policies")):
        if singular in settings and plural in settings:
            raise InputError(f"A study names {singular} or {plural}, not both.")
        if singular in settings:
            settings[plural] = settings.pop(singular)
        if isinstance(settings.get(plural), str):
            settings[plural] = [settings[plural]]
    settings = checked_settings(StudySpec, settings, where, "cannot be used")
    return StudySpec(**{"name": name, **from_file(settings, where)})


def load_study(path: Path | str) -> StudySpec:
    """A study from a TOML file.

    Such as::

        pools = ["digits", "wine"]
        policies = ["variation-ratio", "margin", "random"]
        seeds = 10
        budget = 60
        [options]
        n_inducing = 64

    Args:
        path: of the file.

    Returns:
        The study; named after the file unless it says.

    Raises:
        InputError: no such file, not TOML, or settings there are not.
    """
    place = Path(path).expanduser()
    with reading(f"The path {cut(str(place), 120)}"):
        file = File.of(place) if place.is_file() or not place.exists() else None
        if file is None or file.size() > _LARGEST:
            raise InputError(f"{place} is no study's: that is a file of a few lines.")
    with reading(file.name, "TOML"):
        document = tomllib.loads(file.content(_LARGEST).decode("utf-8"))
    return study_from(document, place.stem, where=f"The study {place}")


def _read_document(path: Path) -> Any:
    """Description of a study in its folder."""
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if not path.is_file() or path.stat().st_size > _LARGEST:
        raise InputError(f"{path} is no study's: that is a file of a few lines.")
    with reading(str(path), "JSON"):
        return json.loads(FolderMembers(path.parent).read(path.name, _LARGEST))


def read_study(folder: Path | str) -> StudyResult:
    """The runs of a study's folder that are finished.

    Args:
        folder: as given to `run_study`.

    Returns:
        The result; "cancelled" where runs are missing.

    Raises:
        InputError: no study there, a damaged one, or runs of one pool on different data.
    """
    place = Path(folder)
    spec = study_from(_read_document(place / "study.json"), where=f"The study in {place}")
    planned, data = spec.runs(), _Data()
    results = [(run, _finished(run, place / "runs" / folder_name(run), None, {}, data)) for run in planned]
    runs = [(run, rounds) for run, rounds in results if rounds is not None]
    return StudyResult(spec, runs, "finished" if len(runs) == len(planned) else "cancelled")


# a round of the study moves the model less than a leap of the probe, and the machine may be busier than now
FASTEST, SLOWEST = 0.4, 1.5


class Expected(NamedTuple):
    """Wall time of a study.

    Attributes:
        low: seconds, if rounds are as much quicker than those measured as warm starts can make them.
        high: seconds, with a busier machine than now.
        rounds: how many were measured.
    """

    low: float
    high: float
    rounds: int


def expected_time(
    spec: StudySpec,
    load: Callable[[RunSpec], Pool],
    report: OnProgress,
    *,
    workers: int = 1,
    clock: Callable[[], float] = perf_counter,
) -> Expected:
    """Run each policy in leaps to its last label, and reckon from the time of its rounds.

    Args:
        spec: of the study.
        load: gives the pool of a run.
        report: called with (fraction, what is being done); may raise `Cancelled`.
        workers: processes that share the runs.
        clock: seconds.

    Returns:
        A range: the rounds measured lie further apart than the study's.
    """
    first = [run for run in spec.runs() if run.seed == 0]
    total, measured = 0.0, 0
    for place, run in enumerate(first):
        report(place / len(first), f"timing {run.policy}")
        pool = load(run)
        leap = max(run.batch, -(-run.budget // 2))
        times, began = [], clock()
        for _ in simulate_spec(replace(run, batch=leap), pool):
            moment = clock()
            times.append(moment - began)
            began = moment
            report((place + min(len(times), 3) / 3) / len(first), f"timing {run.policy}")
        # what the first costs beyond the others is paid once: libraries, compiling
        rest = times[1:] or times
        total += sum(rest) / len(rest) * run.n_rounds * spec.seeds
        measured += len(rest)
    return Expected(FASTEST * total / workers, SLOWEST * total / workers, measured)


MAX_RUNS = 100_000


@dataclass(frozen=True)
class StudySpec(RunSettings):
    """A table of runs that differ in pool, classifier, policy and seed, and in nothing else.

    Runs with one seed are paired: same split, same initial labels, same geometry.

    Attributes:
        name: of the study.
        pools: names or files.
        classifiers: registry names or "package.module:Class".
        policies: registry names or "package.module:function".
        seeds: 0, 1, ..., seeds - 1.
        options: of every classifier; "choice" of the large-margin model alone.
    """

    name: Word
    pools: Names = ("digits",)
    classifiers: Names = ("large-margin",)
    policies: Names = ("variation-ratio", "random")
    seeds: Annotated[int, Field(ge=1)] = 10

    def __post_init__(self) -> None:
        vars(self).update(plain(vars(self)))
        checked_settings(StudySpec, vars(self), "The comparison", "cannot be made")
        for axis, values in (
            ("pool", self.pools),
            ("classifier", self.classifiers),
            ("policy", self.policies),
        ):
            if not values:
                raise InputError(f"A comparison needs at least one {axis}.")
            if len(set(values)) != len(values):
                raise InputError(f"A {axis} is named twice: {', '.join(values)}.")
        runs = self.seeds * len(self.pools) * len(self.classifiers) * len(self.policies)
        if runs > MAX_RUNS:
            raise InputError(f"A comparison has at most {MAX_RUNS:,} runs; got {min(runs, 10**18):,}.")
        if "large-margin" in self.classifiers:
            vars(self).update(options=with_choice("large-margin", self.options))
        check_guess(self.guess, self.initial)
        names = ("classifiers", "policies", "selector", "options")
        vars(self).update({name: typed(getattr(self, name)) for name in names}, guess=tuple(self.guess))
        self.runs()

    def runs(self) -> list[RunSpec]:
        """Every run, seeds outermost: after any time the policies have the same seeds done."""
        return [
            RunSpec(
                pool=pool,
                classifier=classifier,
                policy=policy,
                seed=seed,
                **self.shared | {"options": self._options(classifier)},
            )
            for seed in range(self.seeds)
            for pool in self.pools
            for classifier in self.classifiers
            for policy in self.policies
        ]

    def _options(self, classifier: str) -> dict[str, Any]:
        """Those of one classifier."""
        chooses = classifier == "large-margin" or "large-margin" not in self.classifiers
        return {k: v for k, v in self.options.items() if chooses or k != "choice"}
