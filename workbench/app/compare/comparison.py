"""Comparisons of policies: started as a job, kept in the database round by round, found again by id."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.app.access import login, sharing
from workbench.app.compare.comparison_sources import title_of_pool
from workbench.app.serving import jobs
from workbench.app.serving.caching import computed, stamp
from workbench.app.serving.jobs import DAY, Countdown, Job, manager
from workbench.errors import InputError
from workbench.registry import trust_typed
from workbench.store import RunRecord, Store, StudyRecord

if TYPE_CHECKING:
    from workbench.figures.curves import Curve, Saving
    from workbench.metrics import Ranking
    from workbench.sessions import FittedModel, Round
    from workbench.studies import StudyResult, StudySpec
    from workbench.studies.statistics import Curves, Outcome

PARAMETER = "comparison"
KIND = "comparison"
EXPECTED = "expected-time"


@dataclass(frozen=True)
class Comparison:
    """One comparison.

    Attributes:
        id: in the address.
        spec: its runs.
        created: UTC, ISO 8601; "" before its first run.
        records: its runs as stored.
        project: it is shown with.
        workers: processes it was started with.
    """

    id: str
    spec: StudySpec
    created: str
    records: tuple[RunRecord, ...]
    project: str | None = None
    workers: int = 1

    @property
    def n_finished(self) -> int:
        """Number of its runs that are finished."""
        return sum(r.status == "finished" for r in self.records)

    @property
    def title(self) -> str:
        """For people."""
        return f"{', '.join(self.spec.policies)} on {title_of_pool(self.spec.pools[0])}"


def is_without(comparison: Comparison, other: Comparison) -> bool:
    """True if the other is the first's runs without the guess that they begin with."""
    return bool(comparison.spec.guess) and replace(comparison.spec, guess=()) == other.spec


def start(
    spec: StudySpec, project: str | None = None, *, workers: int = 1, guesses: Sequence[str] = ()
) -> str:
    """Start a comparison; of one that begins with guesses the same runs without them as well.

    Args:
        spec: its runs, which begin with no guess; one pool and one classifier.
        project: it is shown with.
        workers: processes; 1 runs beside the pages.
        guesses: sources, as in `workbench.guesses.guess_of`.

    Returns:
        Its id.

    Raises:
        InputError: what cannot be run is said before anything is.
    """
    from workbench.sessions.fitted_model import check_policy

    for policy in spec.policies:
        check_policy(policy, spec.classifiers[0])
    trust_typed(spec.classifiers, spec.policies, spec.options)
    if guesses:
        start(spec, project, workers=workers)
        spec = replace(spec, guess=tuple(guesses))
    study = Store.open().runs.save_study(
        secrets.token_hex(4),
        spec.to_json(),
        workers=workers,
        project=project,
        owner=login.key_of_page() or None,
    )
    _submit(study.id, spec, project, workers)
    return study.id


def expected(spec: StudySpec, workers: int, *, begin: bool) -> Job | None:
    """The job that measures how long runs would take, by a few rounds of each policy.

    Args:
        spec: of the runs.
        workers: processes they would be started with.
        begin: whether to start it; else only one that is there is found.

    Returns:
        The job, whose result is `studies.study.Expected`; None where there is none.
    """
    owner = f"{stamp(spec.pools[0], spec.pool_options)}-{spec.to_json()}-{workers}"
    present = manager().get(owner, EXPECTED)
    if not begin or (present is not None and (present.active or present.status == "done")):
        return present

    return manager().submit(
        owner,
        EXPECTED,
        lambda job: jobs.compute(job, "expected", spec, workers, where=jobs.long_work),
        title="Timing a few rounds",
        lane="study",
        limit=DAY,
    )


def resume(comparison: Comparison) -> Job:
    """Go on with what an interrupted or cancelled comparison has left."""
    return _submit(comparison.id, comparison.spec, comparison.project, comparison.workers)


def job_of(token: str) -> Job | None:
    """The comparison's job in this process, if any."""
    return manager().get(token, KIND)


def find(token: str) -> Comparison:
    """A comparison by its id.

    Raises:
        InputError: there is none.
    """
    comparison = next((c for c in all_of() if c.id == token), None)
    if comparison is None:
        raise InputError(f"There is no comparison {token!r}. It may have been deleted with its runs.")
    return comparison


def all_of() -> list[Comparison]:
    """Every comparison stored that whoever sits here may see, newest first.

    Without a log-in that is all. With one, a project's are seen by those who may open it; the others, also
    those of a project that was deleted, by whoever started them. One that was started without a project and
    without a log-in, as on the command line, is everybody's.
    """
    from workbench.studies.study import study_from

    store, comparisons = Store.open(), []
    projects = store.projects()
    present, visible = {p.id for p in projects}, {p.id for p in sharing.visible(projects)}
    own_key = login.key_of_page()

    def shown(study: StudyRecord) -> bool:
        if not login.required() or study.project in visible:
            return True
        if not own_key or study.project in present:
            return False
        return study.owner == own_key or (study.project is None and study.owner is None)

    runs: dict[str | None, list[RunRecord]] = {}
    for record in store.runs.all():
        runs.setdefault(record.study, []).append(record)
    for study in store.runs.studies():
        if not shown(study):
            continue
        try:
            spec = study_from(study.spec)
        except InputError:
            continue  # of another version, with settings that are not known here
        records = tuple(runs.get(study.id, ()))
        comparisons.append(Comparison(study.id, spec, study.created, records, study.project, study.workers))
    return comparisons


def round_model(comparison: Comparison, policy: str, seed: int, number: int) -> FittedModel:
    """The model of one round of one run, as it was or fitted again on the labels it had.

    Raises:
        InputError: the run has no such round, or its pool has changed since.
    """
    return computed(_round_model, _record(comparison, policy, seed), number)


def rounds_of(record: RunRecord) -> list[Round]:
    """The rounds of a run, as far as it is."""
    from workbench.sessions import Round

    return [Round.from_json(row.record) for row in Store.open().rounds.all(record.id)]


def _round_model(record: RunRecord, number: int) -> FittedModel:
    from workbench.sessions import RunSpec
    from workbench.sessions.insight import run_model
    from workbench.studies.runner import pool_of_run

    spec, rounds = RunSpec.from_json(record.spec), rounds_of(record)
    if jobs.uses_processes() and any(round_.number == number for round_ in rounds):
        arguments = spec, Store.open().url, record.id, number
        state = jobs.compute(Job(record.id, "round", "A model of a round"), "state_of_run", *arguments)
        rounds = [replace(round_, state=state) if round_.number == number else round_ for round_ in rounds]
    return run_model(spec, pool_of_run(record), rounds, number)


def advice(comparison: Comparison, policy: str, seed: int) -> Job:
    """Verdicts of the stopping rule on one run, worked out by a job that fits its rounds again.

    Args:
        comparison: it belongs to.
        policy: of the run.
        seed: of the run.

    Returns:
        The job, or the one that has done it; its result is (labels [R], what each rule advises). One that was
        cancelled stays until it is let go of.

    Raises:
        InputError: there is no such run.
    """
    from workbench.sessions import RunSpec

    record = _record(comparison, policy, seed)
    inputs = "advised_run", RunSpec.from_json(record.spec), Store.open().url, record.id
    return manager().compute(
        record.id,
        record.n_rounds,
        lambda job: jobs.compute(job, *inputs),
        title="Stopping advice",
        lane="short",
        limit=DAY,
    )


def _record(comparison: Comparison, policy: str, seed: int) -> RunRecord:
    for record in comparison.records:
        if record.spec["policy"] == policy and record.spec["seed"] == seed:
            return record
    raise InputError(f"There is no run of {policy} with seed {seed} yet.")


def _submit(token: str, spec: StudySpec, project: str | None, workers: int) -> Job:
    def work(job: Job) -> Any:
        from workbench.sessions import RunSpec
        from workbench.studies import StudyResult

        planned = spec.runs()
        total = sum(run.n_rounds for run in planned)
        histories: dict[tuple[str, int], tuple[RunSpec, list[Round]]] = {}
        done = ended = 0
        countdown = Countdown(job)

        def hear(news: list[tuple[RunSpec, Round]]) -> None:
            nonlocal done, ended
            if not news:
                done = ended = 0
                histories.clear()
                return
            for run, finished in news:
                histories.setdefault((run.policy, run.seed), (run, []))[1].append(finished)
                done += 1
                ended += not finished.queried.size
            # copies: the page reads while the next round is added
            runs = [(run, list(rounds)) for run, rounds in histories.values()]
            words = f"{ended} of {len(planned)} runs finished"
            countdown(done / total, words, StudyResult(spec, runs, "cancelled"))

        job.report(0.0, "starting")
        return jobs.compute(
            job,
            "compared",
            spec,
            Store.open().url,
            token,
            project,
            workers,
            where=jobs.long_work,
            hear=hear,
        )

    # here, before the work imports it: Plotly stumbles over a pandas that another thread is importing
    import pandas  # noqa: F401

    return manager().submit(token, KIND, work, title="Comparison", lane="study", limit=30 * DAY)


BASELINE = "random"
MEASURES = {
    "error": ("Test error", True),
    "nll": ("Negative log-likelihood, nats", False),
    "brier": ("Brier score, 0 to 2", False),
    "ece": ("Expected calibration error", True),
    "balanced_error": ("Balanced test error", True),
    "macro_f1": ("Macro F1, 0 to 1", False),
}


def results(comparison: Comparison) -> StudyResult:
    """Results so far, from the database; runs that are finished are read once."""
    from workbench.studies import StudyResult

    records = {(r.spec["policy"], r.spec["seed"]): r for r in comparison.records}
    runs = []
    for run in comparison.spec.runs():
        record = records.get((run.policy, run.seed))
        if record is None:
            continue
        rounds = computed(rounds_of, record) if record.status == "finished" else rounds_of(record)
        if rounds:
            runs.append((run, rounds))
    is_complete = comparison.n_finished == len(comparison.spec.runs())
    return StudyResult(comparison.spec, runs, "finished" if is_complete else "cancelled")


def curves(result: StudyResult | None, policies: Sequence[str], measure: str) -> list[Curve]:
    """Curves for `figures.curves.learning_curve`, the baseline marked; runs count as far as they are."""
    from workbench.figures.curves import summarise
    from workbench.policies.registry import title_of

    lines = []
    for policy in policies:
        runs = [] if result is None else list(result.of(policy).values())
        pairs = [([r.n_labelled for r in rounds], [getattr(r, measure) for r in rounds]) for rounds in runs]
        lines.append(summarise(title_of(policy), pairs, baseline=policy == BASELINE))
    return lines


def paired_curves(result: StudyResult, measure: str) -> Curves | None:
    """The whole runs of a comparison, paired by seed; None before one seed is whole."""
    from workbench.studies.statistics import curves

    return next(iter(curves(result, measure)), None)


def saving(result: StudyResult) -> Saving | None:
    """Labels that the best policy saves, to be drawn: the numbers of the sentence and the table.

    Nothing is drawn where no labels were shown to be saved (`PolicySummary.outcome`).
    """
    from workbench.figures.curves import Saving
    from workbench.studies.statistics import leader

    paired = paired_curves(result, "error")
    best = None if paired is None else leader(paired)
    saved = None if best is None else best.saved
    if best is None or saved is None or best.outcome != "saves labels":
        return None
    words = f"{saved.bound} {saved.mean:.0f} labels saved".lstrip()
    return Saving(saved.target, saved.labels, saved.labels + saved.mean, words)


def meaning(result: StudyResult) -> str:
    """Meaning of a comparison for somebody who is to label: a sentence, "" before a seed is whole."""
    from workbench.policies.registry import title_of
    from workbench.studies.statistics import leader

    paired = paired_curves(result, "error")
    best = None if paired is None else leader(paired)
    if best is None or paired is None:
        return ""
    name = title_of(best.policy)
    words: dict[Outcome, str] = {
        "": "",
        "better": f"{name} is better over the curve.",
        "saves labels": f"On items like these let {name} choose what you are asked: "
        "the same error costs fewer labels.",
        "ahead on the way": f"{name} is ahead while there are few labels. "
        "That it saves labels in the end was not shown.",
        "worse": "On items like these ask at random: choosing was worse.",
        "no difference shown": "No gain was shown here. "
        "Asking at random will do, and it keeps the labels a fair sample.",
        "too few seeds to tell": "Run it with more seeds before you decide: "
        "so few cannot tell the policies apart.",
    }
    return words[best.outcome]


def ranking(several: Sequence[StudyResult], measure: str) -> tuple[Ranking, int] | None:
    """Mean ranks of the policies that several comparisons share, a pool a row.

    Args:
        several: results; those of one pool with several models are averaged.
        measure: of `MEASURES`.

    Returns:
        The ranking and the number of pools behind it; None with fewer than two pools that have whole runs,
        or fewer than two policies in all of them.
    """
    from workbench.studies.statistics import rank_policies

    all_curves = [c for c in (paired_curves(study, measure) for study in several) if c is not None]
    n_pools = len({c.pool for c in all_curves})
    try:
        return (rank_policies(all_curves), n_pools) if n_pools > 1 else None
    except InputError:
        return None  # policies that are not shared, or a measure without a value


def rows_csv(several: Sequence[StudyResult]) -> str:
    """Every round of every run as CSV: pool, classifier, policy, seed, round, labels, measures."""
    from workbench.csv_writing import csv_text
    from workbench.studies.study import COLUMNS

    return csv_text((*COLUMNS, *MEASURES), [row for study in several for row in study.rows()])
