"""`workbench run` and `workbench compare`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import Floats
from workbench.cli.values import print_table
from workbench.errors import InputError
from workbench.sessions.rounds import Round
from workbench.sessions.spec import RunSpec
from workbench.studies.spec import StudySpec

if TYPE_CHECKING:
    from workbench.pools.pool import Pool
    from workbench.studies import RunResult

_SHOWN = 8
_Key = tuple[str, str, str, int]  # pool, classifier, policy, seed


def run_once(spec: RunSpec, *, out: Path | None, keep: bool, quiet: bool) -> None:
    """One run, its progress and its result."""
    from workbench.studies import run

    if out is not None and keep:
        raise InputError("Give --out FOLDER or --keep, not both.")
    pool = _load(spec)
    with _progress(spec.n_rounds, quiet) as advance:
        result = _kept(spec, pool, advance) if keep else run(spec, on_round=advance, pool=pool, out=out)
    rounds = result.rounds
    if not quiet:
        marks = np.unique(np.linspace(0, len(rounds) - 1, min(_SHOWN, len(rounds))).round().astype(int))
        rows = [(r.number, r.n_labelled, r.error, r.nll, r.brier, r.ece) for r in (rounds[i] for i in marks)]
        print_table(("round", "labels", "error", "NLL", "Brier", "ECE"), rows)
    last = rounds[-1]
    where = f"; bundle in {out}" if out is not None else f"; run {result.run_id}" if keep else ""
    print(
        f"{pool.name}, {spec.classifier}, {spec.policy}, seed {spec.seed}: "
        f"error {last.error:.4f} on {last.n_test} test items after {last.n_labelled} labels{where}"
    )


def _load(spec: RunSpec) -> Pool:
    """The pool of a run; what a file's table needs is said in the words of the command line too."""
    try:
        pool = spec.load_pool()
    except InputError as error:
        if not Path(spec.pool).expanduser().exists():
            raise
        hint = "Settings such as text=drop are given as --pool-set text=drop."
        if spec.target is None:
            hint += " The column that holds the classes is named by --target COLUMN."
        raise InputError(f"{error}\n{hint}") from error
    if not pool.has_truth:
        raise InputError(
            f"Pool {pool.name!r} has no known classes, so no oracle can answer. Name the column that holds "
            "them (--target COLUMN), or label it as a person: workbench app."
        )
    return pool


def _kept(spec: RunSpec, pool: Pool, advance: Callable[[Round], None]) -> RunResult:
    """The run in the app's database, going on with an unfinished one of the same spec."""
    from workbench.store import Store
    from workbench.studies import run

    store = Store.open()
    document = spec.to_json()
    unfinished = [
        r.id
        for r in store.runs()
        if r.spec == document
        and r.fingerprint == pool.fingerprint
        and r.status in ("interrupted", "cancelled")
    ]
    return run(spec, on_round=advance, pool=pool, store=store, run_id=unfinished[0] if unfinished else None)


def run_comparison(spec: StudySpec, *, out: Path | None, quiet: bool) -> None:
    """Every run of a study, one after the other, and what they add up to."""
    from workbench.exchange.files import csv_text, write_whole
    from workbench.studies import run

    specs = spec.runs()
    curves: dict[_Key, list[Round]] = {}
    pools: dict[tuple[str, int], Pool] = {}
    with _progress(sum(s.n_rounds for s in specs), quiet) as advance:
        for one in specs:
            key = (one.pool, one.seed)
            if key not in pools:
                # Runs with one seed share the pool; the last seed's is of no more use.
                pools = {k: p for k, p in pools.items() if k[1] == one.seed}
                pools[key] = _load(one)
            folder = None if out is None else out / "runs" / folder_name(one)
            done: list[int] = []

            def heard(r: Round, done: list[int] = done) -> None:
                done.append(r.number)
                advance(r)

            result = run(one, on_round=heard, pool=pools[key], out=folder)
            for r in result.rounds[: len(result.rounds) - len(done)]:
                advance(r)
            curves[(one.pool, one.classifier, one.policy, one.seed)] = result.rounds
    rows = [
        (*key, r.number, r.n_labelled, r.error, r.nll, r.brier, r.ece)
        for key, rounds in curves.items()
        for r in rounds
    ]
    if out is not None:
        columns = (
            "pool",
            "classifier",
            "policy",
            "seed",
            "round",
            "n_labelled",
            "error",
            "nll",
            "brier",
            "ece",
        )
        write_whole(out / "comparison.csv", csv_text(columns, rows))
    print_table(
        (
            "pool",
            "classifier",
            "policy",
            "seeds",
            "labels",
            "error",
            "95 %",
            "mean over the curve",
            "beats random",
        ),
        _summary(spec, curves),
    )
    if "random" not in spec.policies:
        print("Add --policy random to see whether asking is any better than chance.", file=sys.stderr)
    if spec.seeds < 6:
        print(f"{spec.seeds} seed(s) are too few to tell policies apart; use 6 or more.", file=sys.stderr)


def _summary(spec: StudySpec, curves: dict[_Key, list[Round]]) -> Iterator[tuple[object, ...]]:
    """One row for each policy: last error with its interval over seeds, and how often it beat random."""
    seeds = range(spec.seeds)
    for pool in spec.pools:
        for classifier in spec.classifiers:
            for policy in spec.policies:
                mine = [curves[(pool, classifier, policy, s)] for s in seeds]
                last = np.asarray([c[-1].error for c in mine])
                area = np.asarray([np.mean([r.error for r in c]) for c in mine])
                beats = "-"
                if policy != "random" and "random" in spec.policies:
                    other = np.asarray([curves[(pool, classifier, "random", s)][-1].error for s in seeds])
                    beats = f"{int((last < other).sum())} of {spec.seeds}"
                half = _half_width(last)
                yield (
                    pool,
                    classifier,
                    policy,
                    spec.seeds,
                    mine[0][-1].n_labelled,
                    float(last.mean()),
                    "-" if np.isnan(half) else f"± {half:.4f}",
                    float(area.mean()),
                    beats,
                )


def _half_width(values: Floats) -> float:
    """Half of the 95 % interval of a mean (Student)."""
    if len(values) < 2:
        return float("nan")
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def folder_name(spec: RunSpec) -> str:
    """A folder for one run of a comparison: readable, and never the same for two specs."""
    parts = (spec.pool, spec.classifier, spec.policy, f"seed{spec.seed}")
    readable = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-")[-40:] for part in parts)
    return f"{readable}-{sha256(repr(parts).encode()).hexdigest()[:6]}"


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[Round], None]]:
    """A bar on a terminal's stderr; nothing elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda r: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("loading", total=total)

        def advance(r: Round) -> None:
            bar.update(task, advance=1, description=f"{r.n_labelled} labels, error {r.error:.3f}")

        yield advance
