"""`workbench run`, `compare` and `reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.commands.options import (
    Batch,
    Budget,
    Fraction,
    Guess,
    Initial,
    Measured,
    PoolSet,
    Selector,
    Set,
    Target,
    TrustCode,
)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run")(run)
    app.command("compare")(compare)
    app.command("reproduce")(reproduce)


def run(
    pool: Annotated[str, typer.Option(help="A name (see `workbench pools`) or a file.")] = "digits",
    target: Target = None,
    pool_set: PoolSet = None,
    classifier: Annotated[str, typer.Option(help="A name or package.module:Class.")] = "large-margin",
    settings: Set = None,
    policy: Annotated[str, typer.Option(help="A name or package.module:function.")] = "margin",
    selector: Selector = "auto",
    initial: Initial = "one-per-class",
    guess: Guess = None,
    budget: Budget = 60,
    batch: Batch = 1,
    uniform_share: Annotated[
        float, typer.Option(help="Share of the questions drawn uniformly, whatever the policy.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    test_fraction: Fraction = 0.2,
    measured: Measured = 0,
    asked_among: Annotated[
        int,
        typer.Option(help="Choose questions among at most so many open items, others each round; 0 is all."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the bundle here; the same command goes on after a kill."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the run in the app's database.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the last line only.")] = False,
) -> None:
    """Label a pool with its own truth as the oracle, and print how the error falls."""
    from workbench.cli.runs import run_once
    from workbench.cli.values import feature_sets, parse_settings, typed, without_guesses
    from workbench.pools.loading import is_table
    from workbench.sessions.spec import RunSpec

    options = parse_settings(settings or [])
    of_pool = without_guesses(pool, parse_settings(pool_set or [], "--pool-set"), guess)
    typed(classifier, policy, selector, options, feature_sets(of_pool))
    if is_table(pool):  # a run is a measurement: what a table leaves open is refused, not guessed
        of_pool = {"strict": True} | of_pool
    spec = RunSpec(
        pool=pool,
        target=target,
        pool_options=of_pool,
        classifier=classifier,
        options=options,
        policy=policy,
        selector=selector,
        initial=initial,
        budget=budget,
        batch=batch,
        uniform_share=uniform_share,
        seed=seed,
        test_fraction=test_fraction,
        measured=measured,
        asked_among=asked_among,
        guess=tuple(guess or ()),
    )
    run_once(spec, out=out, keep=keep, quiet=quiet)


def compare(
    context: typer.Context,
    pool: Annotated[list[str] | None, typer.Option(help="A name or a file; may be given again.")] = None,
    project: Annotated[
        str | None, typer.Option(help="A project in place of a pool: its answers are the known classes.")
    ] = None,
    question: Annotated[str | None, typer.Option(help="Of that project; the first unless given.")] = None,
    target: Target = None,
    pool_set: PoolSet = None,
    classifier: Annotated[list[str] | None, typer.Option(help="May be given again.")] = None,
    settings: Set = None,
    policy: Annotated[list[str] | None, typer.Option(help="May be given again.")] = None,
    selector: Selector = "auto",
    initial: Initial = "one-per-class",
    guess: Guess = None,
    budget: Budget = 60,
    batch: Batch = 1,
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, ...")] = 10,
    test_fraction: Fraction = 0.2,
    study: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with these settings instead.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with one thread.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run it.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="One bundle a run, comparison.csv, summary.csv; goes on after a kill."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    trust_code: TrustCode = False,
) -> None:
    """Run several policies on the same splits and first labels, seed by seed."""
    from workbench.cli.runs import answers_of, run_comparison
    from workbench.cli.values import feature_sets, given, parse_settings, typed, without_guesses
    from workbench.errors import InputError
    from workbench.pools.loading import is_table
    from workbench.studies import StudySpec, load_study

    options = parse_settings(settings or [])
    of_pool = parse_settings(pool_set or [], "--pool-set")
    if project is not None or question is not None:
        pool, of_pool = answers_of(
            project, question, [*(pool or ()), *of_pool, *([target] if target else [])]
        )
    for one in pool or () if project is None else ():
        of_pool = without_guesses(one, of_pool, guess)
        of_pool = {"strict": True} | of_pool if is_table(one) else of_pool
    typed(classifier, policy, selector, options, feature_sets(of_pool), trust_code=trust_code)
    if study is not None:
        free = ("study", "workers", "scheduler", "out", "quiet", "trust_code")
        more = [n for n in given(context) if n not in free]
        if more:
            raise InputError(f"--study has all settings; leave out --{more[0].replace('_', '-')}.")
        run_comparison(load_study(study), out=out, quiet=quiet, workers=workers, scheduler=scheduler)
        return
    spec = StudySpec(
        name="" if out is None else out.name,
        pools=tuple(pool or ["digits"]),
        classifiers=tuple(classifier or ["large-margin"]),
        policies=tuple(policy or ["variation-ratio", "random"]),
        seeds=seeds,
        options=options,
        target=target,
        pool_options=of_pool,
        selector=selector,
        initial=initial,
        budget=budget,
        batch=batch,
        test_fraction=test_fraction,
        guess=tuple(guess or ()),
    )
    run_comparison(spec, out=out, quiet=quiet, workers=workers, scheduler=scheduler)


def reproduce(
    name: Annotated[str | None, typer.Argument(help="Of the table or figure (see --list).")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the names.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sets, rows and seeds: minutes.")] = False,
    max_rows: Annotated[int | None, typer.Option(help="At most this many rows of a data set.")] = None,
    max_seeds: Annotated[int | None, typer.Option(help="At most this many seeds.")] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with one thread.")] = 1,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Reports and finished parts; goes on after a kill.")
    ] = Path("reproduction"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
) -> None:
    """Run a table or figure of the papers again and say what came out."""
    from workbench.cli.runs import list_experiments, run_experiment
    from workbench.errors import InputError

    if list_all:
        list_experiments()
        return
    if name is None:
        raise InputError("Name an experiment; `workbench reproduce --list` shows them.")
    run_experiment(
        name,
        out=out,
        quick=quick,
        max_rows=max_rows,
        max_seeds=max_seeds,
        workers=workers,
        quiet=quiet,
    )
