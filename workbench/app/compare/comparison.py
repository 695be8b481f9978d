"""Comparisons of policies: started as a job, kept in the database round by round, found again by id."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from workbench.app.access import login, sharing
from workbench.app.serving import background
from workbench.app.serving.caching import cached
from workbench.app.serving.jobs import Job, manager
from workbench.app.serving.stamps import stamp
from workbench.app.words.text import duration
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.figures.curves import Curve, Saving
    from workbench.metrics import Ranking
    from workbench.pools.pool import Pool
    from workbench.sessions import FittedModel
    from workbench.sessions.stopping import Advised
    from workbench.store import RunRecord, StudyRecord
    from workbench.studies import StudyResult, StudySpec
    from workbench.studies.estimate import Expected
    from workbench.studies.statistics import Curves

PARAMETER = "comparison"
BASELINE = "random"
MEASURES = {
    "error": ("Test error", True),
    "nll": ("Negative log-likelihood, nats", False),
    "brier": ("Brier score, 0 to 2", False),
    "ece": ("Expected calibration error", True),
    "balanced_error": ("Balanced test error", True),
    "macro_f1": ("Macro F1, 0 to 1", False),
}
KIND = "comparison"
ADVICE = "stopping-advice"
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
        """How many of its runs are finished."""
        return sum(r.status == "finished" for r in self.records)

    @property
    def title(self) -> str:
        """For people."""
        return f"{', '.join(self.spec.policies)} on {title_of_pool(self.spec.pools[0])}"


def title_of_pool(name: str) -> str:
    """What people call the pool of a comparison."""
    from workbench.pools import POOLS
    from workbench.sessions.answered import answered_title, is_answered

    if is_answered(name):
        return answered_title(name)
    return POOLS[name].title if name in POOLS else name.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True)
class Source:
    """A pool that a comparison can be made on.

    Attributes:
        title: for people.
        pool: a name or path that `load_pool` knows.
        options: of `load_pool`.
        kind: of the pool, or None before it is opened.
        n_classes: how many classes it has.
        n_asked: items that can be asked about after the first labels, of which a run has one a class.
        guesses: what a run can begin with: "names" of texts, and columns that are guesses of the project.
    """

    title: str
    pool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    n_classes: int = 0
    n_asked: int = 0
    guesses: tuple[str, ...] = ()

    def opened(self) -> Source:
        """With what only the pool itself knows; read once.

        Raises:
            InputError: it cannot be opened, or no class of an item is known.
        """
        if self.kind is not None:
            return self

        def look() -> Source:
            from workbench.guesses import names_say_something, names_speak
            from workbench.sessions.answered import answered_pool, is_answered

            load = answered_pool if is_answered(self.pool) else _loaded
            pool = load(self.pool, self.options)
            if not pool.has_truth:
                raise InputError(
                    f"The classes of {self.title} are not known, so nothing can answer for a person. "
                    "Choose a pool with a column of classes."
                )
            assert pool.truth is not None
            n_classes, known = len(pool.classes), int((pool.truth >= 0).sum())
            guesses = [source for source in self.guesses if source != "names"]
            telling = sum(names_say_something(pool.classes)) >= 2
            if names_speak(pool) and (telling or pool.kind != "text"):
                guesses.insert(0, "names")
            return replace(
                self, kind=pool.kind, n_classes=n_classes, n_asked=asked_of(known, n_classes),
                guesses=tuple(guesses),
            )  # fmt: skip

        return cached(
            (
                "comparison-source",
                self.pool,
                stamp(self.pool, self.options),
                repr(sorted(self.options.items())),
            ),
            look,
        )


def _loaded(name: str, options: Mapping[str, Any]) -> Pool:
    from workbench.pools import load_pool

    return load_pool(name, **options)


def asked_of(n_items: int, n_classes: int) -> int:
    """How many items can be asked about: a fifth is for testing, and one a class is given."""
    return max(1, int(0.8 * n_items) - n_classes)


def sources(project: str | None = None) -> dict[str, Source]:
    """Every pool a person has, by key; an uploaded file belongs to a project.

    That of the open project is first; then bundled ones, known sets on this machine, all projects'.

    Args:
        project: id of the open one.
    """
    from workbench.pools import POOLS, present_sets
    from workbench.store import Store

    found = {
        e.name: Source(e.title, e.name, {}, e.kind, e.n_classes, asked_of(e.n_items, e.n_classes))
        for e in POOLS.values()
    }
    asked = {} if project is None else answered_questions(project)
    own: dict[str, Source] = {}
    for record in sharing.visible(Store.open().projects()):
        name, options = str(record.pool["name"]), dict(record.pool.get("options", {}))
        if name in POOLS and not options:
            key, source = name, found[name]
        else:
            known = record.settings.get("guesses") or ()
            columns = [str(one["source"]) for one in known if str(one["source"]).startswith("column")]
            key = f"project:{record.id}"
            source = Source(f"{record.name} (your project)", name, options, guesses=tuple(columns))
        if record.id == project and not (asked and record.settings.get("test") is None):
            found = {key: source, **{k: v for k, v in found.items() if k != key}}
        elif (name, options) not in [(one.pool, one.options) for one in own.values()]:
            own.setdefault(key, source)
    for e in present_sets():
        kind = "image" if e.group == "images" else "table"
        words = f"{e.name.replace('_', ' ')} ({e.group})"
        found.setdefault(
            e.full_name, Source(words, e.full_name, {}, kind, e.n_classes, asked_of(e.n_items, e.n_classes))
        )
    if asked:  # after what the open project's pool knows by itself
        first = {k: v for k, v in list(found.items())[:1] if k == f"project:{project}"}
        found = {**first, **asked, **{k: v for k, v in found.items() if k not in first}}
    return {**found, **{key: source for key, source in own.items() if key not in found}}


def answered_questions(project: str) -> dict[str, Source]:
    """The questions of a project that enough items are answered of, by key: their answers are the classes.

    The one that the pages show is the first.

    Args:
        project: id of one of its questions.
    """
    from workbench.sessions.answered import FEWEST, answered_source
    from workbench.store import Store

    store, found = Store.open(), {}
    for one in sorted(store.questions(project), key=lambda one: one.id != project):
        n = store.n_labelled(one)
        if n >= FEWEST and one.settings.get("test") is None:
            name, options = answered_source(one.id, store)
            words = f"{one.name}: {one.question} ({n:,} answers so far)"
            found[name] = Source(words, name, options, guesses=("names",))
    return found


def guess_title(source: str) -> str:
    """A guess's name for people: "names" and "column:llm_label" as one reads them."""
    if source == "names":
        return "Class names"
    return source.partition(":")[2].partition(":")[0]


def is_without(one: Comparison, other: Comparison) -> bool:
    """Whether the other is the first's runs without the guess that they begin with."""
    return bool(one.spec.guess) and replace(one.spec, guess=()) == other.spec


def start_with(
    spec: StudySpec, guesses: Sequence[str], project: str | None = None, *, workers: int = 1
) -> str:
    """Start a comparison that begins with guesses, and the same runs without them; as `start` without any.

    Args:
        spec: its runs, which begin with no guess.
        guesses: sources, as in `workbench.guesses.guess_of`.
        project: as in `start`.
        workers: as in `start`.

    Returns:
        The id of the one with the guesses.
    """
    if not guesses:
        return start(spec, project, workers=workers)
    start(spec, project, workers=workers)
    return start(replace(spec, guess=tuple(guesses)), project, workers=workers)


def start(spec: StudySpec, project: str | None = None, *, workers: int = 1) -> str:
    """Start a comparison.

    Args:
        spec: its runs; one pool and one classifier.
        project: it is shown with.
        workers: processes; 1 runs beside the pages.

    Returns:
        Its id.

    Raises:
        InputError: what cannot be run is said before anything is.
    """
    from workbench.registry import trust_typed
    from workbench.sessions.policy import check_policy
    from workbench.store import Store
    from workbench.studies.study import study_document

    for policy in spec.policies:
        check_policy(policy, spec.classifiers[0])
    trust_typed(spec.classifiers, spec.policies, spec.options)

    person = login.of_page() if login.required() else None
    study = Store.open().save_study(
        secrets.token_hex(4),
        study_document(spec),
        workers=workers,
        project=project,
        owner=None if person is None else person.key,
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
        The job, whose result is `studies.estimate.Expected`; None where there is none.
    """
    from workbench.studies.study import study_document

    owner = f"{stamp(spec.pools[0], spec.pool_options)}-{study_document(spec)}-{workers}"
    present = manager().get(owner, EXPECTED)
    if not begin or (present is not None and (present.active or present.status == "done")):
        return present

    def work(job: Job) -> Expected:
        found: Expected = background.compute(job, "expected", spec, workers, where=background.long_work)
        return found

    return manager().submit(owner, EXPECTED, work, title="Timing a few rounds", lane="study")


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
    found = next((c for c in all_of() if c.id == token), None)
    if found is None:
        raise InputError(f"There is no comparison {token!r}. It may have been deleted with its runs.")
    return found


def all_of() -> list[Comparison]:
    """Every comparison stored that whoever sits here may see, newest first.

    Without a log-in that is all. With one, a project's are seen by those who may open it; the others, also
    those of a project that was deleted, by whoever started them. One that was started without a project and
    without a log-in, as on the command line, is everybody's.
    """
    from workbench.store import Store
    from workbench.studies.study import study_from

    store, made = Store.open(), []
    projects = store.projects()
    present, visible = {p.id for p in projects}, {p.id for p in sharing.visible(projects)}
    person = login.of_page() if login.required() else None

    def shown(study: StudyRecord) -> bool:
        if not login.required() or study.project in visible:
            return True
        if person is None or study.project in present:
            return False
        return study.owner == person.key or (study.project is None and study.owner is None)

    runs: dict[str | None, list[RunRecord]] = {}
    for record in store.runs():
        runs.setdefault(record.study, []).append(record)
    for study in store.studies():
        if not shown(study):
            continue
        try:
            spec = study_from(study.spec)
        except InputError:
            continue  # of another version, with settings that are not known here
        records = tuple(runs.get(study.id, ()))
        made.append(Comparison(study.id, spec, study.created, records, study.project, study.workers))
    return made


def results(comparison: Comparison) -> StudyResult:
    """What is known so far, from the database; runs that are finished are read once."""
    from workbench.sessions import Round
    from workbench.store import Store
    from workbench.studies import StudyResult

    store = Store.open()
    records = {(r.spec["policy"], r.spec["seed"]): r for r in comparison.records}

    def read(record: RunRecord) -> list[Round]:
        return [Round.from_json(one.record) for one in store.rounds(record.id)]

    runs = []
    for one in comparison.spec.runs():
        record = records.get((one.policy, one.seed))
        if record is None:
            continue
        finished = record.status == "finished"
        rounds = cached((record.id, "rounds"), partial(read, record)) if finished else read(record)
        if rounds:
            runs.append((one, rounds))
    whole = comparison.n_finished == len(comparison.spec.runs())
    return StudyResult(comparison.spec, runs, "finished" if whole else "cancelled")


def curves(found: StudyResult | None, policies: Sequence[str], measure: str) -> list[Curve]:
    """Curves for `figures.curves.learning_curve`, the baseline marked; runs count as far as they are."""
    from workbench.figures.curves import summarise
    from workbench.policies.registry import title_of

    made = []
    for policy in policies:
        runs = [] if found is None else list(found.of(policy).values())
        pairs = [([r.n_labelled for r in rounds], [getattr(r, measure) for r in rounds]) for rounds in runs]
        made.append(summarise(title_of(policy), pairs, baseline=policy == BASELINE))
    return made


def paired_curves(found: StudyResult, measure: str) -> Curves | None:
    """The whole runs of a comparison, paired by seed; None before one seed is whole."""
    from workbench.studies.statistics import curves

    return next(iter(curves(found, measure)), None)


def saving(found: StudyResult) -> Saving | None:
    """Labels that the best policy saves, to be drawn: the numbers of the sentence and the table.

    Nothing is drawn where the interval holds 0, or where most seeds did not get to random's last error.
    """
    from workbench.figures.curves import Saving
    from workbench.studies.statistics import leader

    paired = paired_curves(found, "error")
    best = None if paired is None else leader(paired)
    saved = None if best is None else best.saved
    if saved is None or not saved.mostly_arrived or not saved.low > 0:
        return None
    words = f"{saved.bound} {saved.mean:.0f} labels saved".lstrip()
    return Saving(saved.target, saved.labels, saved.labels + saved.mean, words)


def meaning(found: StudyResult) -> str:
    """What a comparison means for somebody who is to label: a sentence, "" before a seed is whole."""
    from workbench.policies.registry import title_of
    from workbench.studies.statistics import leader

    paired = paired_curves(found, "error")
    best = None if paired is None else leader(paired)
    if best is None or paired is None:
        return ""
    name = title_of(best.policy)
    if best.verdict == "better":
        return f"On items like these let {name} choose what you are asked: the same error costs fewer labels."
    if best.verdict == "worse":
        return "On items like these ask at random: choosing cost labels."
    if best.verdict == "too few seeds to tell":
        return "Run it with more seeds before you decide: so few cannot tell the policies apart."
    return "No gain was shown here. Asking at random will do, and it keeps the labels a fair sample."


def ranking(several: Sequence[StudyResult], measure: str) -> tuple[Ranking, int] | None:
    """Mean ranks of the policies that several comparisons share, a comparison a row.

    Args:
        several: results, of different pools or models.
        measure: of `MEASURES`.

    Returns:
        The ranking and the number of comparisons behind it; None with fewer than two comparisons
        that have whole runs, or fewer than two policies in all of them.
    """
    from workbench.studies.statistics import rank_policies

    found = [c for c in (paired_curves(one, measure) for one in several) if c is not None]
    try:
        return (rank_policies(found), len(found)) if len(found) > 1 else None
    except InputError:
        return None  # policies that are not shared, or a measure without a value


def rows_csv(several: Sequence[StudyResult]) -> str:
    """Every round of every run as CSV: pool, classifier, policy, seed, round, labels, measures."""
    from workbench.exchange.files import csv_text
    from workbench.studies.study import COLUMNS

    return csv_text((*COLUMNS, *MEASURES), [row for one in several for row in one.rows()])


def round_model(comparison: Comparison, policy: str, seed: int, number: int) -> FittedModel:
    """The model of one round of one run, as it was or fitted again on the labels it had.

    Raises:
        InputError: the run has no such round.
    """
    from workbench.sessions import Round, RunSpec
    from workbench.sessions.insight import run_model
    from workbench.store import Store

    record = _record(comparison, policy, seed)

    def make() -> FittedModel:
        spec = RunSpec.from_json(record.spec)
        rounds = [Round.from_json(r.record) for r in Store.open().rounds(record.id)]
        if background.uses_processes() and any(one.number == number for one in rounds):
            given = spec, Store.open().url, record.id, number
            state = background.compute(Job(record.id, "round", "A model of a round"), "state_of_run", *given)
            rounds = [replace(one, state=state) if one.number == number else one for one in rounds]
        return run_model(spec, spec.load_pool(), rounds, number)

    return cached((record.id, "round", number), make)


def advice(comparison: Comparison, policy: str, seed: int) -> Job:
    """What the stopping rules say of one run, worked out by a job that fits its rounds again.

    Args:
        comparison: it belongs to.
        policy: of the run.
        seed: of the run.

    Returns:
        The job, or the one that has done it; its result is (labels [R], what each rule advises).

    Raises:
        InputError: there is no such run.
    """
    record = _record(comparison, policy, seed)
    owner = f"{record.id}-{record.n_rounds}"
    present = manager().get(owner, ADVICE)
    if present is not None and present.status != "cancelled":
        return present

    def work(job: Job) -> tuple[list[int], list[Advised]]:
        from workbench.sessions import RunSpec
        from workbench.store import Store

        spec = RunSpec.from_json(record.spec)
        found: tuple[list[int], list[Advised]] = background.compute(
            job, "advised_run", spec, Store.open().url, record.id
        )
        return found

    return manager().submit(owner, ADVICE, work, title="Stopping advice")


def _record(comparison: Comparison, policy: str, seed: int) -> RunRecord:
    for record in comparison.records:
        if record.spec["policy"] == policy and record.spec["seed"] == seed:
            return record
    raise InputError(f"There is no run of {policy} with seed {seed} yet.")


def _submit(token: str, spec: StudySpec, project: str | None, workers: int) -> Job:
    def work(job: Job) -> StudyResult:
        from workbench.sessions import Round, RunSpec
        from workbench.store import Store
        from workbench.studies import StudyResult

        planned = spec.runs()
        total = sum(one.n_rounds for one in planned)
        found: dict[tuple[str, int], tuple[RunSpec, list[Round]]] = {}
        done = ended = 0
        speed = _Speed(total)

        def hear(news: list[tuple[RunSpec, Round]]) -> None:
            nonlocal done, ended, speed
            if not news:
                done, ended, speed = 0, 0, _Speed(total)
                found.clear()
                return
            for one, finished in news:
                found.setdefault((one.policy, one.seed), (one, []))[1].append(finished)
                done += 1
                ended += not finished.queried.size
            # copies: the page reads while the next round is added
            runs = [(one, list(rounds)) for one, rounds in found.values()]
            words = f"{ended} of {len(planned)} runs finished{speed(monotonic(), done)}"
            job.report(done / total, words, partial=StudyResult(spec, runs, "cancelled"))

        job.report(0.0, "starting")
        made: StudyResult = background.compute(
            job,
            "compared",
            spec,
            Store.open().url,
            token,
            project,
            workers,
            where=background.long_work,
            hear=hear,
        )
        return made

    # here, before the work imports it: Plotly stumbles over a pandas that another thread is importing
    import pandas  # noqa: F401

    return manager().submit(token, KIND, work, title="Comparison", lane="study")


class _Speed:
    """Rounds a second over the last half minute, and the time that is left at that rate."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._marks: deque[tuple[float, int]] = deque()

    def __call__(self, moment: float, done: int) -> str:
        self._marks.append((moment, done))
        while moment - self._marks[0][0] > 30:
            self._marks.popleft()
        begun, before = self._marks[0]
        if moment - begun < 1 or done == before:
            return ""
        rate = (done - before) / (moment - begun)
        left = (self._total - done) / rate
        return f" · {rate:.1f} rounds a second · about {duration(left)} left"
