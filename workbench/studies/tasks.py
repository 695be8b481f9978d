"""Computations of pages in a process of their own: what the server asks for by name, and how it hears of it.

The first argument of each is a `Report` to the server. Projects are opened there, from the database.
A file that is made is written to a path of the server's, which streams it; of one that is read the server
learns what a page shows of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import Cancelled, InputError
from workbench.progress import tell, watched
from workbench.registry import trust_typed
from workbench.sessions.fit_process import opened

if TYPE_CHECKING:
    from workbench.exchange.imports import ImportPlan, PredictionPlan
    from workbench.pools.pool import Pool
    from workbench.pools.tables.report import TableReport
    from workbench.sessions import Session
    from workbench.sessions.rounds import Round
    from workbench.sessions.spec import RunSpec
    from workbench.sessions.stopping import Advised
    from workbench.studies.attacks import AttackOutcome, AttackSpec
    from workbench.studies.study import Expected, StudyResult, StudySpec

Points = list[tuple[list[int], list[float]]]
PUBLISHED_EVERY = 0.5
"""Seconds between two results so far."""
Say = Callable[[Any], bool]
"""Takes (fraction, words, the result so far or None), or None where there is nothing to say; returns whether
to stop."""


class Report:
    """Tells how far a work is, and stops it where that is wanted.

    Args:
        say: of the process that asked.
    """

    def __init__(self, say: Say) -> None:
        self.say = say
        self._told = (0.0, "")

    def __call__(self, fraction: float, message: str = "", partial: Any = None) -> None:
        """As `Job.report`.

        Raises:
            Cancelled: it is to stop.
        """
        self._told = (fraction, message)
        if self.say((fraction, message, partial)):
            raise Cancelled(message)

    def publish(self, partial: Any) -> None:
        """A result so far, while the work is as far as it said last.

        Raises:
            Cancelled: it is to stop.
        """
        self(*self._told, partial)

    def should_stop(self) -> bool:
        """Asked by work that stops at a place of its own choosing."""
        return bool(self.say(None))


def called(say: Say, named: Any, target: str, arguments: Sequence[Any]) -> Any:
    """Call a function of this module.

    Args:
        say: what its report tells.
        named: code that a person vouched for where this was asked for.
        target: its name.
        arguments: its further ones; they may hold such code, too.
    """
    trust_typed(named, *(vars(value) if is_dataclass(value) else value for value in arguments))
    return globals()[target](Report(say), *arguments)


def attacked(
    report: Report, spec: AttackSpec, database: str, project: str | None, fresh: bool
) -> AttackOutcome:
    """Attack a model of a project or of a pool.

    Args:
        report: told how far it is.
        spec: what to attack, and how.
        database: its address.
        project: whose published model is attacked; None for a pool that the spec names.
        fresh: fit a model on the project's pool for the purpose.

    Raises:
        InputError: as `attack_experiment` and `attack_model`.
    """
    from workbench.studies.attacks import attack_experiment, attack_model

    if project is None:
        return attack_experiment(spec, report)
    session = opened(database, project)
    items: Ints
    codes: Ints | None
    with session.log.snapshot():
        model, (items, codes) = session.model, session.fits.held_out()
    if fresh or model is None:
        return attack_experiment(spec, report, pool=session.pool)
    if not len(items):
        # nobody knows their classes, so what the model says of the clean image counts as right
        items, codes = np.setdiff1d(session.pool.trainable, model.items), None
    return attack_model(spec, model, items, codes, report)


def compared(
    report: Report, spec: StudySpec, database: str, study: str, project: str | None, workers: int
) -> StudyResult:
    """Run, or go on with, the runs of a comparison that is kept in the database.

    Args:
        report: told each half second of the rounds that are there since: a list of (run, round). An empty one
            comes first, as rounds of an earlier attempt are told again.
        spec: its runs.
        database: its address.
        study: its name there.
        project: it is shown with.
        workers: processes that share the runs.

    Raises:
        Cancelled: it was told to stop.
        InputError: as `run_study`; or runs that failed, when the others are finished.
    """
    from workbench.store import Store
    from workbench.studies.study import run_study

    pools: dict[tuple[int, str], Pool] = {}
    news: list[tuple[RunSpec, Round]] = []
    published = float("-inf")

    def load(run: RunSpec) -> Pool:
        # the file may have changed since another comparison, so nothing is kept beyond this one
        key = run.seed, json.dumps(run.read_with(), sort_keys=True)
        if key not in pools:
            pools.clear()
            pools[key] = run.load_pool()
        return pools[key]

    def heard(run: RunSpec, finished: Round) -> None:
        nonlocal published
        news.append((run, replace(finished, state=None)))
        if monotonic() - published > PUBLISHED_EVERY:
            published = monotonic()
            stop = report.say(list(news))
            news.clear()
            if stop:
                raise Cancelled(study)

    report.say([])
    result = run_study(
        spec,
        heard,
        report.should_stop,
        store=Store.open(database),
        project=project,
        study=study,
        workers=workers,
        load=load,
    )
    if result.status == "cancelled":
        raise Cancelled(study)
    if result.failures:
        raise InputError(result.trouble)
    return result


def expected(report: Report, spec: StudySpec, workers: int) -> Expected:
    """Expected time of the runs of a study; see `expected_time`."""
    from workbench.studies.study import expected_time

    return expected_time(spec, lambda run: run.load_pool(), report, workers=workers)


def advised_run(report: Report, spec: RunSpec, database: str, run: str) -> tuple[list[int], list[Advised]]:
    """The advice on when to stop a stored run: its labels [R], and what the rule says.

    Args:
        report: told how far it is.
        spec: of the run.
        database: its address.
        run: id there.
    """
    from workbench.sessions.stopping import STOPPING, advise, replay
    from workbench.store import Store
    from workbench.studies.runner import pool_of_run, stored_rounds

    store = Store.open(database)
    rounds = stored_rounds(store, run)
    pool, history = pool_of_run(store.runs.get(run)), []
    for entry in replay(spec, pool, rounds, lambda fraction, objective: report.should_stop()):
        history.append(entry)
        report(len(history) / len(rounds), f"round {len(history)} of {len(rounds)}")
    return [entry.n_labelled for entry in history], [advise(history, name) for name in STOPPING]


def advised_project(
    report: Report, database: str, project: str, numbers: Sequence[int]
) -> tuple[list[int], list[Advised]]:
    """The advice on when to stop a project: labels [R] of the rounds, and what the rule says.

    Args:
        report: told how far it is.
        database: its address.
        project: its id.
        numbers: of the rounds that are fitted again.
    """
    from workbench.sessions.stopping import STOPPING, advise, observe, stop_set

    session = opened(database, project)
    pool, rounds = session.pool, {record.number: record for record in session.rounds}
    watched_items = stop_set(
        len(pool), int(session.settings["seed"]), None if pool.test is None else pool.test.test
    )
    history = []
    for place, number in enumerate(numbers):
        report(place / len(numbers), f"fit {place + 1} of {len(numbers)}")
        model = session.fits.model_at(number)
        history.append(replace(observe(model, watched_items), number=place))
    return [rounds[number].n_labelled for number in numbers], [advise(history, name) for name in STOPPING]


def lesson(report: Report, function: str, arguments: Mapping[str, Any]) -> Any:
    """Values of a lesson.

    Args:
        report: told each result so far.
        function: of `workbench.studies.lessons`.
        arguments: of it.
    """
    from workbench.studies import lessons

    output = getattr(lessons, function)(**arguments, report=report)
    if not isinstance(output, Iterator):
        return output
    part = None
    for part in output:
        report.publish(part)
    return part


def crossed(
    report: Report,
    database: str,
    project: str,
    number: int,
    classifier: str,
    options: Mapping[str, Any],
) -> tuple[Ints, Ints, Floats]:
    """Predictions for a project's labelled items by models that did not see them; see `cross_validated`.

    Args:
        report: told how far it is.
        database: its address.
        project: its id.
        number: of the round whose training set is predicted.
        classifier: it was made with.
        options: of the classifier.
    """
    from workbench.sessions.insight import cross_validated
    from workbench.sessions.learner import Learner

    report(0.0, "fitting without a fifth of the labels")
    session = opened(database, project)
    model = session.model
    if model is None or model.number != number:
        model = session.fits.model_at(number)
    seed = int(session.settings["seed"])
    learner = Learner(model.pool, classifier, options, seed=seed, classes=model.classes, mean=model.mean)
    return cross_validated(model, learner)


def state_at(
    report: Report, database: str, project: str, number: int, classifier: str = ""
) -> dict[str, Array]:
    """The state of a project's model at a round, fitted again; or of another classifier on its labels.

    Args:
        report: told how far it is.
        database: its address.
        project: its id.
        number: of the round.
        classifier: registry name of the other one.
    """
    from workbench.sessions.learner import Learner

    report(0.1, "fitting on its labels")
    session = opened(database, project)
    model = session.fits.model_at(number)
    if classifier:
        seed = int(session.settings["seed"])
        learner = Learner(session.pool, classifier, seed=seed, classes=model.classes)
        model = learner.fit(model.items, model.codes, number=number)
    return model.state


def state_of_run(report: Report, spec: RunSpec, database: str, run: str, number: int) -> dict[str, Array]:
    """The state of the model of a stored run's round, fitted again; see `run_model`.

    Args:
        report: told nothing.
        spec: of the run.
        database: its address.
        run: id there.
        number: of the round.
    """
    from workbench.sessions.insight import run_model
    from workbench.store import Store
    from workbench.studies.runner import pool_of_run, stored_rounds

    store = Store.open(database)
    return run_model(spec, pool_of_run(store.runs.get(run)), stored_rounds(store, run), number).state


def random_runs(
    report: Report,
    database: str,
    project: str,
    seeds: int,
    classifier: str,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Points:
    """Errors that random questions reach from a project's first labels: (labels, errors) of each run.

    Args:
        report: told how far it is, with the runs as far as they are.
        database: its address.
        project: whose pool is labelled.
        seeds: how many runs.
        classifier: that is fitted.
        options: of it.
        settings: further arguments of `simulate`, budget among them.
    """
    from workbench.sessions.simulate import simulate

    pool, runs = opened(database, project).pool, Points()
    batch = max(4, settings["budget"] // 25)  # random questions need no fits: some 25 draw the curve
    for seed in range(seeds):
        labels: list[int] = []
        errors: list[float] = []
        runs.append((labels, errors))
        for record in simulate(
            pool, classifier, "random", options=options, batch=batch, seed=seed, **settings
        ):
            labels.append(record.n_labelled)
            errors.append(record.error)
            fraction = (seed + (record.n_labelled - labels[0]) / settings["budget"]) / seeds
            # a copy: the page may read while the next point is added
            report(fraction, "random questions", [(list(a), list(b)) for a, b in runs])
    return runs


# --- files, out -----------------------------------------------------------------------------------------


def labels_written(report: Report, place: str, database: str, project: str, format: str, what: str) -> int:
    """Write the labelled set of a project; see `workbench.exchange.write_labels`.

    Args:
        report: told how far it is.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        format: of the file.
        what: it holds.

    Returns:
        How many rows.
    """
    from workbench.exchange.labels import write_labels

    session = _opening(report, database, project)
    with watched(report):
        return _written(place, lambda out: write_labels(out, session, format, what))


def bundle_written(report: Report, place: str, database: str, project: str) -> int:
    """Write a project as one file that opens again as a project; the arguments are those of `labels_written`.

    Returns:
        How many bytes.
    """
    from workbench.exchange.projects import write_project_bundle

    return _packed(report, place, database, project, write_project_bundle)


def predictor_written(report: Report, place: str, database: str, project: str) -> int:
    """Write a project's model for NumPy alone; the arguments are those of `labels_written`.

    Returns:
        How many bytes.
    """
    from workbench.exchange.exporting import PREDICTOR, export_to

    return _packed(report, place, database, project, lambda to, session: export_to(session, PREDICTOR, to))


def stored_labels_written(report: Report, place: str, database: str, project: str) -> int:
    """Write the labels of a project whose pool is not at hand; the arguments are those of `labels_written`.

    Returns:
        How many rows.
    """
    from workbench.exchange.labels import write_labels
    from workbench.exchange.rows import StoredLabels
    from workbench.store import Store

    with watched(report):
        labels = StoredLabels.of(project, Store.open(database))
        return _written(place, lambda out: write_labels(out, labels, "csv"))


def _opening(report: Report, database: str, project: str) -> Session:
    report(0.0, "opening the project")
    return opened(database, project)


def _read(place: str, report: Report) -> bytes:
    report(0.2, "reading the file")
    return Path(place).read_bytes()


def _packed(
    report: Report, place: str, database: str, project: str, write: Callable[[Path, Session], Any]
) -> int:
    from workbench.exchange.bundles import write_zip

    session = _opening(report, database, project)
    with watched(report), TemporaryDirectory() as folder:
        write(Path(folder) / "written", session)
        tell(0.8, "packing it into one file")
        _written(place, lambda out: write_zip(out, Path(folder) / "written"))
    return Path(place).stat().st_size


def _written(place: str, write: Callable[[IO[bytes]], Any]) -> Any:
    with Path(place).open("wb") as out:
        return write(out)


# --- files, in ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looked:
    """Changes that a file of labels would bring.

    Attributes:
        plan: of the import, without the labels themselves.
        columns: of which somebody has to say which holds the labels.
    """

    plan: ImportPlan | None = None
    columns: tuple[str, ...] = ()


def labels_looked_at(
    report: Report, place: str, database: str, project: str, kind: str, column: str = "", name: str = ""
) -> Looked:
    """Look through a file of labels without taking anything in.

    Args:
        report: told how far it is.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        kind: format of the file; "" for the one that its name and what it holds tell.
        column: of the labels in a table; "" finds it.
        name: of the file.

    Raises:
        InputError: as `format_of` and `plan_of_file`.
    """
    from workbench.exchange.answers import format_of
    from workbench.exchange.imports import ColumnNeeded
    from workbench.exchange.questions import plan_of_file

    session = _opening(report, database, project)
    data = _read(place, report)
    kind = kind or format_of(name, data)
    try:
        # the labels stay here: the page shows how many they are, and they are read again when taken in
        return Looked(plan=replace(plan_of_file(data, session, kind, column), labels={}))
    except ColumnNeeded as error:
        return Looked(columns=error.columns)


def labels_taken_in(
    report: Report,
    place: str,
    database: str,
    project: str,
    annotator: str,
    kind: str,
    name: str,
    chosen: Mapping[str, Any],
    column: str = "",
) -> tuple[int, int | None]:
    """Take in the labels of a file that was looked at: all of them, or none.

    Args:
        report: told how far it is; once the labels are read it is too late to cancel.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        annotator: who takes them in.
        kind: as of `labels_looked_at`.
        name: of the file.
        chosen: about the odd rows, as `ImportPlan.chosen` takes it.
        column: as of `labels_looked_at`.

    Returns:
        How many labels, and the id of the event that an undo takes back; None where there is none.

    Raises:
        InputError: as `labels_looked_at`, or the session's.
    """
    from workbench.exchange.answers import format_of
    from workbench.exchange.imports import take_import
    from workbench.exchange.instructions import take_instructions
    from workbench.exchange.questions import plan_of_file

    session = _opening(report, database, project)
    session, data = session.as_annotator(annotator), _read(place, report)
    kind = kind or format_of(name, data)
    plan = plan_of_file(data, session, kind, column)
    plan.chosen(**chosen)  # or says why not, before anything is taken over
    report(0.7, "taking them in")
    take_instructions(session, data, kind)
    events = take_import(session, plan, name, **chosen)
    return sum(len(event.payload["labels"]) for event in events), events[-1].id if events else None


def predictions_looked_at(
    report: Report, place: str, database: str, project: str, name: str
) -> PredictionPlan:
    """Look through the predictions of another tool without taking anything in; see `plan_predictions`.

    Args:
        report: told how far it is.
        place: path of the file.
        database: its address.
        project: id of the project, or of one of its questions.
        name: of the file, as the person has it.
    """
    from workbench.exchange.imports import plan_predictions

    session = _opening(report, database, project)
    return plan_predictions(_read(place, report), name, session)


def bundle_opened(
    report: Report, place: str, database: str, pool: str | None, options: Mapping[str, Any], owner: str
) -> tuple[str, str]:
    """Make a project of the bundle of one; see `workbench.exchange.open_bundle`.

    Args:
        report: told how far it is.
        place: path of the bundle, a file or a folder.
        database: its address.
        pool: where its pool lies, where the bundle has none.
        options: of its pool.
        owner: key of the person whose project it becomes.

    Returns:
        The project's id and name.
    """
    from workbench.exchange.projects import open_bundle
    from workbench.store import Store

    with watched(report):
        tell(0.0, "reading the bundle and its pool")
        project = open_bundle(place, pool=pool, pool_options=options, store=Store.open(database), owner=owner)
    return project.id, project.name


def table_looked_at(
    report: Report, path: str, options: Mapping[str, Any] | None
) -> tuple[TableReport, dict[str, Any] | None]:
    """Content of a table under options, and the obstacles to using it.

    Args:
        report: told nothing but the beginning.
        path: of its file.
        options: how it is read; None guesses them.

    Returns:
        The report, and the options that were guessed; None where they were given.

    Raises:
        InputError: as `inspect_table`.
    """
    from workbench.pools import inspect_table

    with watched(report):
        tell(0.0, "reading the table")
        table = inspect_table(path, **(options or {}))
        return table, None if options is not None else {"columns": table.columns_option or "auto"}
