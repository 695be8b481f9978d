"""Computations of pages in a process of their own: what the server asks for by name, and how it hears of it.

The first argument of each is `say`: it takes (fraction, words, the result so far or None), or None where
there is nothing to say, and returns whether to stop. Projects are opened there, from the database.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import Cancelled, InputError
from workbench.registry import trust_typed
from workbench.sessions.fit_process import opened
from workbench.studies.task_progress import Report, Say

if TYPE_CHECKING:
    from workbench.pools.pool import Pool
    from workbench.sessions.rounds import Round
    from workbench.sessions.spec import RunSpec
    from workbench.sessions.stopping import Advised
    from workbench.studies.attacks import AttackOutcome, AttackSpec
    from workbench.studies.estimate import Expected
    from workbench.studies.spec import StudySpec
    from workbench.studies.study import StudyResult

Points = list[tuple[list[int], list[float]]]
_FILES = "files."
PUBLISHED_EVERY = 0.5
"""Seconds between two results so far."""


def called(say: Say, named: Any, target: str, given: Sequence[Any]) -> Any:
    """Call a function of this module, or "files.NAME" of `workbench.studies.file_tasks`.

    Args:
        say: its first argument.
        named: code that a person vouched for where this was asked for.
        target: its name.
        given: its further arguments.
    """
    trust_typed(named)
    if target.startswith(_FILES):
        from workbench.studies import file_tasks

        return getattr(file_tasks, target.removeprefix(_FILES))(say, *given)
    return globals()[target](say, *given)


def attacked(say: Say, spec: AttackSpec, database: str, project: str | None, fresh: bool) -> AttackOutcome:
    """Attack a model of a project or of a pool.

    Args:
        say: told how far it is.
        spec: what to attack, and how.
        database: its address.
        project: whose published model is attacked; None for a pool that the spec names.
        fresh: fit a model on the project's pool for the purpose.

    Raises:
        InputError: as `attack_experiment` and `attack_model`.
    """
    from workbench.studies.attacks import attack_experiment, attack_model

    trust_typed(spec.classifier, spec.options)
    report = Report(say)
    if project is None:
        return attack_experiment(spec, report)
    session = opened(database, project)
    model = session.model
    if fresh or model is None:
        return attack_experiment(spec, report, pool=session.pool)
    items: Ints
    codes: Ints | None
    items, codes = session.held_out()
    if not len(items):
        # nobody knows their classes, so what the model says of the clean image counts as right
        items, codes = np.setdiff1d(session.pool.trainable, model.items), None
    return attack_model(spec, model, items, codes, report)


def compared(
    say: Say, spec: StudySpec, database: str, study: str, project: str | None, workers: int
) -> StudyResult:
    """Run, or go on with, the runs of a comparison that is kept in the database.

    Args:
        say: told each half second of the rounds that are there since: a list of (run, round). An empty one
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

    trust_typed(spec.classifiers, spec.policies, spec.options)
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
            stop = say(list(news))
            news.clear()
            if stop:
                raise Cancelled(study)

    say([])
    result = run_study(
        spec,
        heard,
        Report(say).should_stop,
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


def expected(say: Say, spec: StudySpec, workers: int) -> Expected:
    """Expected time of the runs of a study; see `expected_time`."""
    from workbench.studies.estimate import expected_time

    trust_typed(spec.classifiers, spec.policies, spec.options)
    return expected_time(spec, lambda run: run.load_pool(), Report(say), workers=workers)


def advised_run(say: Say, spec: RunSpec, database: str, run: str) -> tuple[list[int], list[Advised]]:
    """The advice on when to stop a stored run: its labels [R], and what the rule says.

    Args:
        say: told how far it is.
        spec: of the run.
        database: its address.
        run: id there.
    """
    from workbench.sessions.rounds import Round
    from workbench.sessions.stopping import STOPPING, advise, replay
    from workbench.store import Store
    from workbench.studies.runner import pool_of_run

    trust_typed(spec.classifier, spec.policy, spec.options)
    report = Report(say)
    store = Store.open(database)
    rounds = [Round.from_json(r.record) for r in store.rounds(run)]
    pool, history = pool_of_run(store.run(run)), []
    for entry in replay(spec, pool, rounds, lambda fraction, objective: report.should_stop()):
        history.append(entry)
        report(len(history) / len(rounds), f"round {len(history)} of {len(rounds)}")
    return [entry.n_labelled for entry in history], [advise(history, name) for name in STOPPING]


def advised_project(
    say: Say, database: str, project: str, numbers: Sequence[int]
) -> tuple[list[int], list[Advised]]:
    """The advice on when to stop a project: labels [R] of the rounds, and what the rule says.

    Args:
        say: told how far it is.
        database: its address.
        project: its id.
        numbers: of the rounds that are fitted again.
    """
    from workbench.sessions.stopping import STOPPING, advise, observe, stop_set

    report, session = Report(say), opened(database, project)
    pool, rounds = session.pool, {record.number: record for record in session.rounds}
    watched = stop_set(
        len(pool), int(session.settings["seed"]), None if pool.test is None else pool.test.test
    )
    history = []
    for place, number in enumerate(numbers):
        report(place / len(numbers), f"fit {place + 1} of {len(numbers)}")
        model = session.model_at(number)
        history.append(replace(observe(model, watched), number=place))
    return [rounds[number].n_labelled for number in numbers], [advise(history, name) for name in STOPPING]


def lesson(say: Say, function: str, given: Mapping[str, Any]) -> Any:
    """Values of a lesson.

    Args:
        say: told each result so far.
        function: of `workbench.studies.lessons`.
        given: its arguments.
    """
    from workbench.studies import lessons

    report = Report(say)
    output = getattr(lessons, function)(**given, report=report)
    if not isinstance(output, Iterator):
        return output
    part = None
    for part in output:
        report.publish(part)
    return part


def crossed(
    say: Say,
    database: str,
    project: str,
    number: int,
    classifier: str,
    options: Mapping[str, Any],
) -> tuple[Ints, Ints, Floats]:
    """Predictions for a project's labelled items by models that did not see them; see `cross_validated`.

    Args:
        say: told how far it is.
        database: its address.
        project: its id.
        number: of the round whose training set is predicted.
        classifier: it was made with.
        options: of the classifier.
    """
    from workbench.sessions.insight import cross_validated
    from workbench.sessions.learner import Learner

    trust_typed(classifier, options)
    Report(say)(0.0, "fitting without a fifth of the labels")
    session = opened(database, project)
    model = session.model
    if model is None or model.number != number:
        model = session.model_at(number)
    seed = int(session.settings["seed"])
    learner = Learner(model.pool, classifier, options, seed=seed, classes=model.classes, mean=model.mean)
    return cross_validated(model, learner)


def state_at(say: Say, database: str, project: str, number: int, classifier: str = "") -> dict[str, Array]:
    """The state of a project's model at a round, fitted again; or of another classifier on its labels.

    Args:
        say: told how far it is.
        database: its address.
        project: its id.
        number: of the round.
        classifier: registry name of the other one.
    """
    from workbench.sessions.learner import Learner

    Report(say)(0.1, "fitting on its labels")
    session = opened(database, project)
    model = session.model_at(number)
    if classifier:
        seed = int(session.settings["seed"])
        learner = Learner(session.pool, classifier, seed=seed, classes=model.classes)
        model = learner.fit(model.items, model.codes, number=number)
    return model.state


def state_of_run(say: Say, spec: RunSpec, database: str, run: str, number: int) -> dict[str, Array]:
    """The state of the model of a stored run's round, fitted again; see `run_model`.

    Args:
        say: told nothing.
        spec: of the run.
        database: its address.
        run: id there.
        number: of the round.
    """
    from workbench.sessions.insight import run_model
    from workbench.sessions.rounds import Round
    from workbench.store import Store
    from workbench.studies.runner import pool_of_run

    trust_typed(spec.classifier, spec.policy, spec.options)
    store = Store.open(database)
    rounds = [Round.from_json(r.record) for r in store.rounds(run)]
    return run_model(spec, pool_of_run(store.run(run)), rounds, number).state


def random_runs(
    say: Say,
    database: str,
    project: str,
    seeds: int,
    classifier: str,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Points:
    """Errors that random questions reach from a project's first labels: (labels, errors) of each run.

    Args:
        say: told how far it is, with the runs as far as they are.
        database: its address.
        project: whose pool is labelled.
        seeds: how many runs.
        classifier: that is fitted.
        options: of it.
        settings: further arguments of `simulate`, budget among them.
    """
    from workbench.sessions.simulate import simulate

    trust_typed(classifier, options)
    report, pool, runs = Report(say), opened(database, project).pool, Points()
    for seed in range(seeds):
        labels: list[int] = []
        errors: list[float] = []
        runs.append((labels, errors))
        for record in simulate(pool, classifier, "random", options=options, batch=2, seed=seed, **settings):
            labels.append(record.n_labelled)
            errors.append(record.error)
            fraction = (seed + (record.n_labelled - labels[0]) / settings["budget"]) / seeds
            # a copy: the page may read while the next point is added
            report(fraction, "random questions", [(list(a), list(b)) for a, b in runs])
    return runs
