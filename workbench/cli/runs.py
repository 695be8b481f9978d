"""`workbench run`, `compare` and `reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Exit, Option

from workbench.cli.operands import (
    Guess,
    PoolSet,
    Quiet,
    Seed,
    Set,
    Target,
    TrustCode,
    Workers,
    feature_sets,
    given,
    parse_settings,
    print_table,
    say_notes,
    typed,
    with_options,
    without_guesses,
)
from workbench.documents.runs import RunSettings
from workbench.errors import InputError
from workbench.progress import OnProgress, TimeLeft, watched
from workbench.shares import in_percent

if TYPE_CHECKING:
    from workbench.metrics import LabelsSaved
    from workbench.pools.pool import Pool
    from workbench.sessions.rounds import Round
    from workbench.sessions.spec import RunSpec
    from workbench.studies import RunResult
    from workbench.studies.statistics import Curves
    from workbench.studies.study import StudySpec

_SHOWN = 8


@with_options(RunSettings)
def run(
    pool: Annotated[str, Option(help="A name (see `workbench pools`) or a file.")] = "digits",
    target: Target = None,
    pool_set: PoolSet = None,
    classifier: Annotated[str, Option(help="A name or package.module:Class.")] = "large-margin",
    classifier_set: Set = None,
    policy: Annotated[str, Option(help="A name or package.module:function.")] = "margin",
    guess: Guess = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Write the bundle here; the same command goes on after a kill."),
    ] = None,
    keep: Annotated[bool, Option("--keep", help="Keep the run in the app's database.")] = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Label a pool with its own truth as the oracle, and print how the error falls."""
    from workbench.pools.loading import is_table
    from workbench.sessions.spec import RunSpec

    options = parse_settings(classifier_set)
    of_pool = without_guesses(pool, parse_settings(pool_set, "--pool-set"), guess)
    typed(classifier, policy, settings["selector"], options, feature_sets(of_pool))
    if is_table(pool):  # a run is a measurement: what a table leaves open is refused, not guessed
        of_pool = {"strict": True} | of_pool
    spec = RunSpec(
        pool=pool,
        target=target,
        pool_options=of_pool,
        classifier=classifier,
        options=options,
        policy=policy,
        seed=seed,
        guess=tuple(guess or ()),
        **settings,
    )
    run_once(spec, out=out, keep=keep, quiet=quiet)


def run_once(spec: RunSpec, *, out: Path | None, keep: bool, quiet: bool) -> None:
    """One run, its progress and its result."""
    import numpy as np

    from workbench.exchange.models import load_model
    from workbench.sessions.measure import ENOUGH
    from workbench.sessions.notebooks import error_words
    from workbench.studies import run

    if out is not None and keep:
        raise InputError("Give --out FOLDER or --keep, not both.")
    pool = _load(spec, type(spec).load_pool, quiet=quiet)
    with _progress(spec.n_rounds, quiet) as progress:
        if keep:
            result = _kept(spec, pool, progress)
        else:
            result = run(spec, on_round=progress.round, pool=pool, out=out, on_fit=progress.fit)
    rounds = result.rounds
    if not quiet:
        marks = np.unique(np.linspace(0, len(rounds) - 1, min(_SHOWN, len(rounds))).round().astype(int))
        few = rounds[-1].n_test < ENOUGH
        rows = [
            (r.number, r.n_labelled, *(np.nan if few else m for m in (r.error, r.nll, r.brier, r.ece)))
            for r in (rounds[i] for i in marks)
        ]
        print_table(("round", "labels", "error", "NLL", "Brier", "ECE"), rows)
    last = rounds[-1]
    if out is not None and (note := load_model(out).note):
        print(note, file=sys.stderr)
    where = f"; bundle in {out}" if out is not None else f"; run {result.run_id}" if keep else ""
    print(
        f"{pool.name}, {spec.classifier}, {spec.policy}, seed {spec.seed}: "
        f"{error_words(last.error, last.n_test, 4, 'test item')} after {last.n_labelled} labels{where}"
    )


def _load(spec: RunSpec, load: Callable[[RunSpec], Pool], *, quiet: bool = False) -> Pool:
    """The pool of a run; what a file's table needs is said in the words of the command line too.

    Features that are learnt tell how far they are; ended by Ctrl-C, the same command goes on with them.
    """
    try:
        with steps(quiet) as report, watched(report):
            pool = load(spec)
    except InputError as error:
        if not Path(spec.pool).expanduser().exists():
            raise
        hint = "Settings such as text=drop are given as --pool-set text=drop."
        if "strict=False" in str(error):
            hint = "Each is given as --pool-set 'NAME=VALUE'; --pool-set strict=false takes every guess."
        if spec.target is None:
            hint += " The column that holds the classes is named by --target COLUMN."
        raise InputError(f"{error}\n{hint}") from error
    if not pool.has_truth:
        raise InputError(
            f"Pool {pool.name!r} has no known classes, so no oracle can answer. Name the column that holds "
            "them (--target COLUMN), or label it as a person: workbench app."
        )
    if not quiet:
        say_notes(pool)
        if spec.budget > len(pool.trainable):
            print(f"Only {len(pool.trainable):,} items of {pool.name} can be asked about.", file=sys.stderr)
    return pool


def _kept(spec: RunSpec, pool: Pool, progress: _Progress) -> RunResult:
    """The run in the app's database, going on with an unfinished one of the same spec."""
    from workbench.store import Store
    from workbench.studies import run

    store = Store.open()
    document = spec.to_json()
    unfinished = [
        r.id
        for r in store.runs.all()
        if r.spec == document
        and r.fingerprint == pool.fingerprint
        and r.status in ("interrupted", "cancelled")
    ]
    return run(
        spec,
        on_round=progress.round,
        pool=pool,
        store=store,
        run_id=unfinished[0] if unfinished else None,
        on_fit=progress.fit,
    )


@with_options(RunSettings)
def compare(
    context: typer.Context,
    pool: Annotated[list[str] | None, Option(help="A name or a file; may be given again.")] = None,
    project: Annotated[
        str | None, Option(help="A project in place of a pool: its answers are the known classes.")
    ] = None,
    question: Annotated[str | None, Option(help="Of that project; the first unless given.")] = None,
    target: Target = None,
    pool_set: PoolSet = None,
    classifier: Annotated[list[str] | None, Option(help="May be given again.")] = None,
    classifier_set: Set = None,
    policy: Annotated[list[str] | None, Option(help="May be given again.")] = None,
    guess: Guess = None,
    seeds: Annotated[int, Option(help="How many: 0, 1, ...")] = 10,
    study: Annotated[
        Path | None, Option(metavar="FILE", help="A TOML file with these settings instead.")
    ] = None,
    workers: Workers = 1,
    scheduler: Annotated[str | None, Option(help="Address of a Dask scheduler whose workers run it.")] = None,
    out: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="One bundle a run, comparison.csv, summary.csv; goes on after a kill."),
    ] = None,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    **settings: Any,
) -> None:
    """Run several policies on the same splits and first labels, seed by seed."""
    from workbench.pools.loading import is_table
    from workbench.studies import StudySpec, load_study

    options = parse_settings(classifier_set)
    of_pool = parse_settings(pool_set, "--pool-set")
    if project is not None or question is not None:
        pool, of_pool = answers_of(
            project, question, [*(pool or ()), *of_pool, *([target] if target else [])]
        )
    for source in pool or () if project is None else ():
        of_pool = without_guesses(source, of_pool, guess)
        of_pool = {"strict": True} | of_pool if is_table(source) else of_pool
    typed(classifier, policy, settings["selector"], options, feature_sets(of_pool), trust_code=trust_code)
    if study is not None:
        free = ("--study", "--workers", "--scheduler", "--out", "--quiet", "--trust-code")
        more = [option for option in given(context) if option not in free]
        if more:
            raise InputError(f"--study has all settings; leave out {more[0]}.")
        spec = load_study(study)
    else:
        spec = StudySpec(
            name="" if out is None else out.name,
            pools=tuple(pool or ["digits"]),
            classifiers=tuple(classifier or ["large-margin"]),
            policies=tuple(policy or ["variation-ratio", "random"]),
            seeds=seeds,
            options=options,
            target=target,
            pool_options=of_pool,
            guess=tuple(guess or ()),
            **settings,
        )
    run_comparison(spec, out=out, quiet=quiet, workers=workers, scheduler=scheduler)


def answers_of(
    project: str | None, question: str | None, others: Sequence[str]
) -> tuple[list[str], dict[str, Any]]:
    """The pool of a comparison whose known classes are the answers to a question.

    Args:
        project: its name or id.
        question: its name; the first unless given.
        others: what else was said of a pool.

    Returns:
        The pool's name and options, as a study has them.

    Raises:
        InputError: no project, another pool beside it, or too few answers.
    """
    from workbench.sessions.spec import answered_pool, answered_source
    from workbench.store import Store

    if project is None:
        raise InputError("--question is of a project: name it by --project.")
    if others:
        raise InputError(f"A project's answers are the pool; leave out {others[0]}.")
    store = Store.open()
    name, options = answered_source(store.named(project, question).id, store)
    answered_pool(name, options, store)
    return [name], options


def run_comparison(
    spec: StudySpec, *, out: Path | None, quiet: bool, workers: int = 1, scheduler: str | None = None
) -> None:
    """Every run of a study, and what they add up to."""
    import numpy as np

    from workbench.csv_writing import csv_text
    from workbench.sessions.spec import answered_title, is_answered
    from workbench.studies import run_study
    from workbench.studies.runner import pool_of
    from workbench.studies.statistics import (
        FEWEST_POOLS,
        curves,
        enough,
        headline,
        rank_policies,
    )
    from workbench.studies.study import made_with
    from workbench.writing import write_whole

    # what is wrong with a pool is better said before a thousand rounds than after
    for run_spec in spec.runs()[: len(spec.pools) * len(spec.classifiers) * len(spec.policies)]:
        if run_spec.policy == spec.policies[0] and run_spec.classifier == spec.classifiers[0]:
            _load(run_spec, pool_of, quiet=quiet)
    with _progress(sum(s.n_rounds for s in spec.runs()), quiet) as progress:
        result = run_study(
            spec,
            lambda run_spec, r: progress.round(r),
            out=out,
            workers=workers,
            scheduler=scheduler,
        )
    groups = curves(result)
    titles = {name: answered_title(name) if is_answered(name) else name for name in spec.pools}
    columns, rows = _summary(groups, titles)
    if out is not None:  # before it is printed: where that fails, the file is there
        write_whole(out / "summary.csv", csv_text(columns, rows))
    print_table(columns, rows)
    for group in groups:
        sentence = headline(group)
        if sentence:
            # not among the columns, which other programs read
            print(f"{titles[group.pool]}, {group.classifier}: {sentence}", file=sys.stderr)
    n_pools = len({group.pool for group in groups})
    if n_pools > 1 and len(spec.policies) > 1:
        ranking = rank_policies(groups)
        order = np.argsort(ranking.mean_ranks)
        ranks = ", ".join(f"{ranking.names[i]} {ranking.mean_ranks[i]:.2f}" for i in order)
        test = f"; Friedman p = {ranking.p:.2g}" if np.isfinite(ranking.p) else ""
        test += f"; critical difference {ranking.critical_difference:.2f}"
        few = f"; a test wants {FEWEST_POOLS} pools or more"
        print(f"Mean ranks over {n_pools} pools: {ranks}{test if n_pools >= FEWEST_POOLS else few}")
    if "random" not in spec.policies:
        print("Add --policy random to see whether asking is any better than chance.", file=sys.stderr)
    if not enough(spec.seeds):
        print(f"{spec.seeds} seed(s) are too few to tell policies apart; use 6 or more.", file=sys.stderr)
    print(made_with(result), file=sys.stderr)
    if result.failures:
        print(f"{result.trouble}\nThe same command tries them again.", file=sys.stderr)
        raise Exit(1)


def _summary(
    groups: Sequence[Curves], titles: Mapping[str, str]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The table of a comparison: its columns, and a row a policy of each pool and classifier."""
    import numpy as np

    from workbench.studies.statistics import enough, summarise

    rows = []
    for group in groups:
        for s in summarise(group):
            # the lower curve as a whole: one lucky last round is no win
            t, saved = s.test, s.saved
            rows.append(
                (
                    titles[s.pool],
                    s.classifier,
                    s.policy,
                    s.last.n,
                    int(group.n_labelled[-1]),
                    s.last.value,
                    # as the pictures: of two runs an interval says nothing
                    "-" if s.last.n < 3 or np.isnan(s.last.low) else f"± {s.last.value - s.last.low:.4f}",
                    s.area.value,
                    "-" if t is None or not enough(t.n) else f"{t.p_holm:.2g}",
                    s.outcome or "-",
                    "-" if saved is None or not saved.n_arrived else _labels_saved(saved),
                    "-" if t is None else f"{s.won} of {t.n}",
                )
            )
    columns = (
        "pool",
        "classifier",
        "policy",
        "seeds",
        "labels",
        "error",
        "95 %",
        "mean over the curve",
        "p (Holm)",
        "verdict",
        "labels saved",
        "beats random",
    )
    return columns, rows


def _labels_saved(saved: LabelsSaved) -> str:
    """A lower bound, and seeds on which the policy did not get there, are said."""
    on = f" on {saved.n_arrived}" if saved.n_arrived < saved.n else ""
    bound = {"": "", "at least": ">= ", "at most": "<= ", "about": "~ "}[saved.bound]
    return f"{bound}{saved.mean:.0f}{on}"


def reproduce(
    name: Annotated[str | None, Argument(help="Of the table or figure (see --list).")] = None,
    list_all: Annotated[bool, Option("--list", help="List the names.")] = False,
    quick: Annotated[bool, Option("--quick", help="Fewer sets, rows and seeds: minutes.")] = False,
    max_rows: Annotated[int | None, Option(help="At most this many rows of a data set.")] = None,
    max_seeds: Annotated[int | None, Option(help="At most this many seeds.")] = None,
    workers: Workers = 1,
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Reports and finished parts; goes on after a kill.")
    ] = Path("reproduction"),
    quiet: Quiet = False,
) -> None:
    """Run a table or figure of the papers again and say what came out."""
    from workbench.papers.reproduce import reproduce as run_again

    if list_all:
        list_experiments()
        return
    if name is None:
        raise InputError("Name an experiment; `workbench reproduce --list` shows them.")
    with steps(quiet) as advance:
        report, path = run_again(
            name,
            out,
            quick=quick,
            max_rows=max_rows,
            max_seeds=max_seeds,
            workers=workers,
            progress=advance,
        )
    if not quiet:
        capped = bool(report.caps)
        print_table(
            ("claim", "paper", "ours", "verdict"),
            [(f.claim, f.paper, f.ours, f.verdict(capped)) for f in report.findings],
        )
        for cap in report.caps:
            print(f"Not run in full: {cap}.", file=sys.stderr)
    print(f"{name}: {report.verdict}; report in {path}")


def list_experiments() -> None:
    """The experiments there are."""
    from workbench.papers.reproduce import EXPERIMENTS

    rows = [(e.name, e.paper, e.title, e.quick, e.full) for e in EXPERIMENTS.values()]
    print_table(("name", "paper", "what", "--quick", "in full"), rows)


@contextmanager
def steps(quiet: bool) -> Iterator[OnProgress]:
    """A bar of fractions on a terminal's stderr; nothing elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda fraction, message: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda fraction, message: bar.update(task, completed=fraction, description=message[:100])


class _Progress:
    """Progress of a run: its rounds in a bar, and the time of a fit that takes long.

    Args:
        report: moves the bar and changes the words beside it, or None where there is no terminal: then a fit
            that takes long is told in lines, the first as soon as that is known and one for each quarter.
        total: rounds.
    """

    def __init__(self, report: OnProgress | None = None, total: int = 1) -> None:
        self._report, self._total, self._n_rounds = report, total, 0
        self._words = "loading"
        self._timing, self._quarter = TimeLeft(), -1
        self._show("loading the model's libraries")

    def round(self, finished: Round) -> None:
        """A round has ended."""
        from workbench.sessions.notebooks import error_words

        self._words = f"{finished.n_labelled} labels, {error_words(finished.error, finished.n_test)}"
        self._n_rounds += 1
        self._show(self._words)

    def fit(self, fraction: float) -> None:
        """A fit is so far; 0 when it begins."""
        if fraction <= 0.0:
            self._timing, self._quarter = TimeLeft(), -1
            return
        words = self._timing.words(fraction)
        if not words:
            return
        self._show(f"{self._words}; this fit: {in_percent(fraction, 0)}, {words}")
        if self._report is None and int(4 * fraction) > self._quarter:
            self._quarter = int(4 * fraction)
            print(
                f"This fit takes long: {in_percent(fraction, 0)} done, {words}. Ctrl-C stops it.",
                file=sys.stderr,
            )

    def _show(self, words: str) -> None:
        if self._report is not None:
            self._report(self._n_rounds / self._total, words)


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[_Progress]:
    """A bar on a terminal's stderr; elsewhere only what takes long is told."""
    from rich.console import Console

    with steps(quiet) as report:
        yield _Progress(report if quiet or Console(stderr=True).is_terminal else None, total)
