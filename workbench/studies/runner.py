"""The one runner: a run from its spec to its rounds, kept as they finish, resumable."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from workbench.errors import Cancelled, InputError
from workbench.exchange.bundles import BundleFolder, read_bundle
from workbench.pools.pool import Pool
from workbench.sessions.rounds import Round
from workbench.sessions.simulate import Checkpoint
from workbench.sessions.spec import RunSpec
from workbench.store.records import RunRecord
from workbench.store.store import Store
from workbench.studies.workers import Failure, RunJob, stream_runs_here

OnRound = Callable[[Round], None]
ShouldStop = Callable[[], bool]


@dataclass(frozen=True)
class RunResult:
    """Result of a run.

    Attributes:
        spec: of the run.
        rounds: all finished rounds, also those of an earlier attempt; the last one has its posterior.
        status: "finished", or "cancelled" when `should_stop` said so.
        run_id: in the store, or None where it was kept in a folder or nowhere.
    """

    spec: RunSpec
    rounds: list[Round]
    status: Literal["finished", "cancelled"]
    run_id: str | None = None


class Sink(Protocol):
    """A store of the rounds of one run: `progress`, then `add` for each new round, then `end`."""

    run_id: str | None

    def progress(self) -> Checkpoint | None:
        """The progress of an earlier attempt."""

    def add(self, finished: Round) -> None:
        """Keep a round; durable when it returns."""

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        """The run is over, or stops here."""


def run(
    spec: RunSpec,
    on_round: OnRound | None = None,
    should_stop: ShouldStop | None = None,
    *,
    pool: Pool | None = None,
    store: Store | None = None,
    run_id: str | None = None,
    project: str | None = None,
    study: str | None = None,
    out: Path | str | None = None,
    on_fit: Callable[[float], None] | None = None,
) -> RunResult:
    """Run, or go on with, one simulated run.

    Kept in a folder (`out`), in the database (`store`), or nowhere. Each round is durable before
    `on_round` hears of it. When the program dies, the run goes on where it stood: in a folder by the
    same call, in the database by the same call with its `run_id`; its rounds are the same bytes then.

    Args:
        spec: of the run.
        on_round: called with every new round, in this thread.
        should_stop: asked during fits and between rounds; True ends the run as "cancelled". A fit
            that was cut short is thrown away.
        pool: the pool of the spec with the split of its seed, where it is at hand.
        store: the database to keep the run in.
        run_id: of an earlier attempt in `store`.
        project: the project the run belongs to, in `store`.
        study: the study it belongs to, in `store`.
        out: folder of the bundle.
        on_fit: called during fits with the share of the present one that is done; 0 when it begins.

    Returns:
        The result.

    Raises:
        InputError: what cannot be run; a folder that holds another run; a run that is running.
    """
    if store is None and (run_id or project or study):
        raise InputError("run_id, project and study go with a store.")
    loaded = pool if pool is not None else spec.load_pool()
    sink = open_sink(spec, loaded, store=store, run_id=run_id, project=project, study=study, out=out)
    if sink is None:
        assert out is not None
        return RunResult(spec, read_bundle(out).rounds, "finished")
    rounds: list[Round] = []
    status, message = "interrupted", "Stopped from outside."
    try:
        progress = sink.progress()
        rounds.extend(progress.rounds if progress is not None else ())
        job = RunJob(spec, progress)
        for _, finished in stream_runs_here(
            iter([job]), lambda _: loaded, should_stop=should_stop, on_fit=on_fit
        ):
            if isinstance(finished, Failure):
                assert finished.error is not None
                raise finished.error
            if finished is not None:
                sink.add(finished)
                rounds.append(finished)
                if on_round is not None:
                    on_round(finished)
        status, message = "finished", ""
    except Cancelled:
        status, message = "cancelled", ""
    except Exception as error:
        status, message = "failed", Failure.of(error).message
        raise
    finally:
        sink.end(status, message, rounds)
    return RunResult(spec, rounds, "finished" if status == "finished" else "cancelled", sink.run_id)


def open_sink(
    spec: RunSpec,
    pool: Pool,
    *,
    store: Store | None = None,
    run_id: str | None = None,
    project: str | None = None,
    study: str | None = None,
    out: Path | str | None = None,
) -> Sink | None:
    """The store of a run's rounds: a folder, the database, or nowhere.

    Args:
        spec: of the run.
        pool: with its split.
        store: the database to keep the run in.
        run_id: of an earlier attempt in `store`.
        project: the project the run belongs to, in `store`.
        study: the study it belongs to, in `store`.
        out: folder of the bundle.

    Returns:
        The sink, or None where the folder holds the finished run already.

    Raises:
        InputError: both places at once, or a place that holds something else.
    """
    if out is not None and store is not None:
        raise InputError("A run is kept in a folder or in the database, not in both.")
    if out is not None:
        folder = BundleFolder(out, spec, pool)
        if folder.finished:
            return None
        folder.begin()
        return _FolderSink(folder)
    if store is not None:
        return _StoreSink(store, spec, pool, run_id, project, study)
    return _NoSink()


def pool_of_run(record: RunRecord) -> Pool:
    """The pool of a stored run, with its split.

    Args:
        record: of the run.

    Raises:
        InputError: the pool has changed since, so that the run cannot be looked at with it.
    """
    pool = RunSpec.from_json(record.spec).load_pool()
    _check_same_data(record, pool)
    return pool


def _check_same_data(record: RunRecord, pool: Pool) -> None:
    if record.fingerprint != pool.fingerprint:
        raise InputError(
            f"Pool {record.spec['pool']!r} has changed since run {record.id} was started. "
            "Put the old file back, or run it again."
        )


class _NoSink:
    run_id: str | None = None

    def progress(self) -> Checkpoint | None:
        return None

    def add(self, finished: Round) -> None:
        pass

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        pass


class _FolderSink:
    run_id: str | None = None

    def __init__(self, folder: BundleFolder) -> None:
        self._folder = folder
        self._resumed: Checkpoint | None = None

    def progress(self) -> Checkpoint | None:
        self._resumed = self._folder.progress()
        return self._resumed

    def add(self, finished: Round) -> None:
        self._folder.add(finished)

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        if status == "finished":
            state = rounds[-1].state
            if state is None:
                assert self._resumed is not None
                state = self._resumed.state
            self._folder.finish(rounds, state)
        else:
            self._folder.release()


class _StoreSink:
    def __init__(
        self,
        store: Store,
        spec: RunSpec,
        pool: Pool,
        run_id: str | None,
        project: str | None,
        study: str | None,
    ) -> None:
        self._store = store
        if run_id is None:
            self.run_id: str | None = store.runs.start(
                spec.to_json(), pool.fingerprint, project=project, study=study
            ).id
            return
        present = store.runs.get(run_id)
        if RunSpec.from_json(present.spec) != spec:
            raise InputError(f"Run {run_id} has another specification.")
        _check_same_data(present, pool)
        if not store.runs.claim(run_id):
            raise InputError(f"Run {run_id} is running already.")
        self.run_id = run_id

    def progress(self) -> Checkpoint | None:
        assert self.run_id is not None
        entry = self._store.rounds.state(self.run_id)
        if entry is None:
            return None
        number, state = entry
        return Checkpoint(
            [Round.from_json(r.record) for r in self._store.rounds.all(self.run_id)], state, number
        )

    def add(self, finished: Round) -> None:
        assert self.run_id is not None
        self._store.rounds.save(self.run_id, finished.number, finished.to_json(), finished.state)

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        assert self.run_id is not None
        self._store.runs.end(self.run_id, status, message)
