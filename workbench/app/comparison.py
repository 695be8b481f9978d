"""Comparisons of policies: started as a job, kept in the database round by round, found again by id."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.jobs import Job, manager
from workbench.app.seeing import cached
from workbench.errors import Cancelled, InputError

if TYPE_CHECKING:
    from workbench.metrics import LabelsSaved, PairedTest, Ranking
    from workbench.pools.pool import Pool
    from workbench.sessions import Model
    from workbench.sessions.stopping import Advised
    from workbench.store import RunRecord, Store
    from workbench.studies import StudySpec

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
PUBLISHED_EVERY = 0.5  # seconds

# policy -> seed -> measure -> values; "n_labelled" is among the measures
Results = dict[str, dict[int, dict[str, list[float]]]]


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
        return f"{', '.join(self.spec.policies)} on {self.spec.pools[0]}"


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
    from workbench.sessions.model import check_policy

    for policy in spec.policies:
        check_policy(policy, spec.classifiers[0])
    from workbench.store import Store
    from workbench.studies.study import study_document

    study = Store.open().save_study(
        secrets.token_hex(4), study_document(spec), workers=workers, project=project
    )
    _submit(study.id, spec, project, workers)
    return study.id


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
    """Every comparison stored, newest first."""
    from workbench.store import Store
    from workbench.studies.study import study_from

    store, made = Store.open(), []
    runs: dict[str | None, list[RunRecord]] = {}
    for record in store.runs():
        runs.setdefault(record.study, []).append(record)
    for study in store.studies():
        try:
            spec = study_from(study.spec)
        except InputError:
            continue  # of another version, with settings that are not known here
        records = tuple(runs.get(study.id, ()))
        made.append(Comparison(study.id, spec, study.created, records, study.project, study.workers))
    return made


def results(comparison: Comparison) -> Results:
    """What is known so far, from the database.

    Runs that are finished are read once.
    """
    from workbench.store import Store

    store = Store.open()
    found: Results = {}
    for record in comparison.records:
        seed, policy = int(record.spec["seed"]), str(record.spec["policy"])
        values = (
            cached((record.id, "rounds"), lambda r=record: _values(store, r.id))  # type: ignore[misc]
            if record.status == "finished"
            else _values(store, record.id)
        )
        found.setdefault(policy, {})[seed] = values
    return found


def curves(found: Results, policies: Sequence[str], measure: str) -> list[Any]:
    """Curves for `figures.curves.learning_curve`, the baseline marked."""
    from workbench.figures.curves import summarise
    from workbench.policies import POLICIES

    made = []
    for policy in policies:
        runs = [(v["n_labelled"], v[measure]) for _, v in sorted(found.get(policy, {}).items())]
        title = POLICIES[policy].title if policy in POLICIES else policy
        made.append(summarise(title, runs, baseline=policy == BASELINE))
    return made


def lower_is_better(measure: str) -> bool:
    """Whether a lower value of a measure is the better one."""
    from workbench.studies.statistics import HIGHER_IS_BETTER

    return measure not in HIGHER_IS_BETTER


def table(found: Results, policies: Sequence[str], measure: str) -> list[dict[str, Any]]:
    """One row a policy: the measure at the end and on average over the curve, seeds won, labels saved.

    Seeds are paired: only those count whose run has as many rounds as the longest of all. Labels are
    saved to reach the baseline's mean error at the end.
    """
    longest = max((len(v[measure]) for runs in found.values() for v in runs.values()), default=0)
    ends: dict[str, dict[int, float]] = {}
    means: dict[str, dict[int, float]] = {}
    for policy in policies:
        whole = {s: v for s, v in found.get(policy, {}).items() if len(v[measure]) == longest and longest}
        ends[policy] = {s: v[measure][-1] for s, v in whole.items()}
        means[policy] = {s: float(np.mean(v[measure])) for s, v in whole.items()}
    tests = {t.policy: t for t in _tests(means, policies, measure, BASELINE)}
    sign = 1 if lower_is_better(measure) else -1
    rows = []
    for policy in policies:
        if not ends[policy]:
            continue
        pairs = [
            (means[policy][s], means[BASELINE][s]) for s in means[policy] if s in means.get(BASELINE, {})
        ]
        test = tests.get(policy)
        rows.append(
            {
                "policy": policy,
                "end": float(np.mean(list(ends[policy].values()))),
                "average": float(np.mean(list(means[policy].values()))),
                "won": sum(sign * ours < sign * theirs for ours, theirs in pairs)
                if policy != BASELINE
                else None,
                "pairs": len(pairs),
                "seeds": len(ends[policy]),
                "p": None if test is None else test.p_holm,
                "verdict": "" if test is None else test.verdict,
                "saved": _saved(found, policy, sorted(ends[policy].keys() & ends.get(BASELINE, {}).keys()))
                if measure == "error" and policy != BASELINE
                else None,
            }
        )
    return rows


def between(found: Results, policies: Sequence[str], measure: str) -> list[PairedTest]:
    """Tests of the policies against each other, the baseline left out, corrected together (Holm).

    Returns:
        One a pair; none with fewer than two such policies, or no seed that all have finished.
    """
    chosen = [p for p in policies if p != BASELINE]
    longest = max((len(v[measure]) for runs in found.values() for v in runs.values()), default=0)
    means = {
        p: {s: float(np.mean(v[measure])) for s, v in found.get(p, {}).items() if len(v[measure]) == longest}
        for p in chosen
    }
    return _tests(means, chosen, measure, None)


def _saved(found: Results, policy: str, seeds: Sequence[int]) -> LabelsSaved | None:
    from workbench.metrics import labels_saved

    if not seeds:
        return None
    ours, theirs = ([found[p][s]["error"] for s in seeds] for p in (policy, BASELINE))
    target = float(np.mean([errors[-1] for errors in theirs]))
    return labels_saved(found[policy][seeds[0]]["n_labelled"], ours, theirs, target)


def _tests(
    means: dict[str, dict[int, float]], policies: Sequence[str], measure: str, baseline: str | None
) -> list[PairedTest]:
    """Wilcoxon's tests of the means over the curve, on the seeds all have finished."""
    from workbench.metrics import paired_tests

    if baseline not in (None, *policies) or len(policies) < 2:
        return []
    shared = sorted(set.intersection(*(set(means[p]) for p in policies)))
    values = {p: [means[p][s] for s in shared] for p in policies}
    if not shared or not all(np.isfinite(v).all() for v in values.values()):
        return []
    return paired_tests(values, baseline, lower_is_better=lower_is_better(measure))


def ranking(several: Sequence[tuple[Comparison, Results]], measure: str) -> tuple[Ranking, int] | None:
    """Mean ranks of the policies that several comparisons share, a comparison a row.

    Args:
        several: comparisons with their results, of different pools or models.
        measure: of `MEASURES`.

    Returns:
        The ranking and the number of comparisons behind it; None with fewer than two comparisons
        that have whole runs, or fewer than two policies in all of them.
    """
    from workbench.metrics import rank_methods

    tables = [
        {r["policy"]: r["average"] for r in table(found, one.spec.policies, measure)}
        for one, found in several
    ]
    tables = [t for t in tables if t and all(np.isfinite(v) for v in t.values())]
    if len(tables) < 2:
        return None
    shared = [p for p in tables[0] if all(p in t for t in tables)]
    if len(shared) < 2:
        return None
    rows = [[t[p] for p in shared] for t in tables]
    return rank_methods(rows, shared, lower_is_better=lower_is_better(measure)), len(tables)


def rows_csv(several: Sequence[tuple[Comparison, Results]]) -> str:
    """Every round of every run as CSV: pool, model, policy, seed, round, labels, measures."""
    from workbench.exchange.files import csv_text

    rows = [
        (
            one.spec.pools[0],
            one.spec.classifiers[0],
            policy,
            seed,
            number,
            int(values["n_labelled"][number]),
            *(values[m][number] for m in MEASURES),
        )
        for one, found in several
        for policy, runs in found.items()
        for seed, values in sorted(runs.items())
        for number in range(len(values["n_labelled"]))
    ]
    return csv_text(("pool", "classifier", "policy", "seed", "round", "n_labelled", *MEASURES), rows)


def round_model(comparison: Comparison, policy: str, seed: int, number: int) -> Model:
    """The model of one round of one run, as it was or fitted again on the labels it had.

    Raises:
        InputError: the run has no such round.
    """
    from workbench.sessions import Round, RunSpec
    from workbench.sessions.insight import run_model
    from workbench.store import Store

    record = _record(comparison, policy, seed)

    def make() -> Model:
        spec = RunSpec.from_json(record.spec)
        rounds = [Round.from_json(r.record) for r in Store.open().rounds(record.id)]
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
        from workbench.sessions import Round, RunSpec
        from workbench.sessions.stopping import STOPPING, advise, replay
        from workbench.store import Store

        spec = RunSpec.from_json(record.spec)
        rounds = [Round.from_json(r.record) for r in Store.open().rounds(record.id)]
        seen = []
        for one in replay(spec, spec.load_pool(), rounds, lambda fraction, objective: job.should_stop()):
            seen.append(one)
            job.report(len(seen) / len(rounds), f"round {len(seen)} of {len(rounds)}")
        budget = {"labels": rounds[0].n_labelled + spec.budget}
        rules = [advise(seen, name, **(budget if name == "budget" else {})) for name in STOPPING]
        return [one.n_labelled for one in seen], rules

    return manager().submit(owner, ADVICE, work, title="Stopping advice")


def _record(comparison: Comparison, policy: str, seed: int) -> RunRecord:
    for record in comparison.records:
        if record.spec["policy"] == policy and record.spec["seed"] == seed:
            return record
    raise InputError(f"There is no run of {policy} with seed {seed} yet.")


def _values(store: Store, run_id: str) -> dict[str, list[float]]:
    records = [r.record for r in store.rounds(run_id)]
    names = ("n_labelled", *MEASURES)
    return {n: [float("nan") if r.get(n) is None else float(r[n]) for r in records] for n in names}


def _submit(token: str, spec: StudySpec, project: str | None, workers: int) -> Job:
    def work(job: Job) -> Results:
        from workbench.sessions import Round, RunSpec, Store
        from workbench.studies import run_study

        planned = spec.runs()
        total = sum(one.n_rounds for one in planned)
        found: Results = {}
        pools: dict[int, Pool] = {}
        done = ended = 0
        told = float("-inf")

        def load(one: RunSpec) -> Pool:
            # the file may have changed since another comparison, so nothing is kept beyond this one
            if one.seed not in pools:
                pools.clear()
                pools[one.seed] = one.load_pool()
            return pools[one.seed]

        def heard(one: RunSpec, finished: Round) -> None:
            nonlocal done, ended, told
            names = ("n_labelled", *MEASURES)
            values = found.setdefault(one.policy, {}).setdefault(one.seed, {n: [] for n in names})
            for name in names:
                values[name].append(float(getattr(finished, name)))
            done += 1
            ended += not finished.queried.size
            if monotonic() - told > PUBLISHED_EVERY:
                told = monotonic()
                # copies: the page reads while the next round is added
                shown = {
                    p: {s: {m: list(x) for m, x in v.items()} for s, v in r.items()} for p, r in found.items()
                }
                job.report(done / total, f"{ended} of {len(planned)} runs finished", partial=shown)

        job.report(0.0, "starting")
        result = run_study(
            spec,
            heard,
            job.should_stop,
            store=Store.open(),
            project=project,
            study=token,
            workers=workers,
            load=load,
        )
        if result.status == "cancelled":
            raise Cancelled(job.title)
        return found

    # here, before the work imports it: Plotly stumbles over a pandas that another thread is importing
    import pandas  # noqa: F401

    return manager().submit(token, KIND, work, title="Comparison", lane="study")
