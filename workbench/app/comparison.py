"""Comparisons of policies: started as a job, kept in the database round by round, found again by id."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.jobs import Job, manager
from workbench.app.seeing import cached
from workbench.errors import Cancelled, InputError

if TYPE_CHECKING:
    from workbench.metrics import PairedTest, Ranking
    from workbench.sessions import Model
    from workbench.store import RunRecord, Store
    from workbench.studies import StudySpec

PARAMETER = "comparison"
BASELINE = "random"
MEASURES = {
    "error": ("Test error", True),
    "nll": ("Negative log-likelihood, nats", False),
    "brier": ("Brier score, 0 to 2", False),
    "ece": ("Expected calibration error", True),
}
KIND = "comparison"

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
    """

    id: str
    spec: StudySpec
    created: str
    records: tuple[RunRecord, ...]

    @property
    def n_finished(self) -> int:
        """How many of its runs are finished."""
        return sum(r.status == "finished" for r in self.records)

    @property
    def title(self) -> str:
        """For people."""
        return f"{', '.join(self.spec.policies)} on {self.spec.pools[0]}"


def start(spec: StudySpec, project: str | None = None) -> str:
    """Start a comparison.

    Args:
        spec: its runs; one pool and one classifier.
        project: it is shown with.

    Returns:
        Its id.

    Raises:
        InputError: what cannot be run is said before anything is.
    """
    from workbench.sessions.model import check_policy

    for policy in spec.policies:
        check_policy(policy, spec.classifiers[0])
    token = secrets.token_hex(4)
    _submit(token, spec, project)
    return token


def resume(comparison: Comparison) -> Job:
    """Go on with what an interrupted or cancelled comparison has left."""
    return _submit(comparison.id, comparison.spec, None)


def job_of(token: str) -> Job | None:
    """The comparison's job in this process, if any."""
    return manager().get(token, KIND)


def find(token: str) -> Comparison:
    """A comparison by its id.

    Raises:
        InputError: there is none.
    """
    found = next((c for c in all_of() if c.id == token), None)
    if found is not None:
        return found
    job = job_of(token)
    if job is None or job.about is None:
        raise InputError(f"There is no comparison {token!r}. It may have been deleted with its runs.")
    return Comparison(token, job.about, "", ())


def all_of() -> list[Comparison]:
    """Every comparison stored, newest first."""
    from workbench.store import Store
    from workbench.studies import StudySpec

    grouped: dict[str, list[RunRecord]] = {}
    for record in Store.open().runs():
        if record.study is not None and record.study.startswith("{"):
            grouped.setdefault(record.study, []).append(record)
    made = []
    for study, records in grouped.items():
        try:
            document = json.loads(study)
            fields = document["spec"]
            for name in ("pools", "classifiers", "policies"):
                fields[name] = tuple(fields[name])
            made.append(
                Comparison(
                    document["id"], StudySpec(**fields), min(r.created for r in records), tuple(records)
                )
            )
        except (ValueError, KeyError, TypeError):
            # a study that something else has named with a brace
            continue
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


def table(found: Results, policies: Sequence[str], measure: str) -> list[dict[str, Any]]:
    """One row a policy: the measure at the end and on average over the curve, and seeds won.

    Seeds are paired: only those count whose run has as many rounds as the longest of all.
    """
    longest = max((len(v[measure]) for runs in found.values() for v in runs.values()), default=0)
    ends: dict[str, dict[int, float]] = {}
    means: dict[str, dict[int, float]] = {}
    for policy in policies:
        whole = {s: v for s, v in found.get(policy, {}).items() if len(v[measure]) == longest and longest}
        ends[policy] = {s: v[measure][-1] for s, v in whole.items()}
        means[policy] = {s: float(np.mean(v[measure])) for s, v in whole.items()}
    tests = _tests(means, policies, measure)
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
                "won": sum(ours < theirs for ours, theirs in pairs) if policy != BASELINE else None,
                "pairs": len(pairs),
                "seeds": len(ends[policy]),
                "p": None if test is None else test.p_holm,
                "verdict": "" if test is None else test.verdict,
            }
        )
    return rows


def _tests(
    means: dict[str, dict[int, float]], policies: Sequence[str], measure: str
) -> dict[str, PairedTest]:
    """Wilcoxon's tests of the means over the curve against random, on the seeds all have finished."""
    from workbench.metrics import paired_tests

    if BASELINE not in policies or len(policies) < 2:
        return {}
    shared = sorted(set.intersection(*(set(means[p]) for p in policies)))
    values = {p: [means[p][s] for s in shared] for p in policies}
    if not shared or not all(np.isfinite(v).all() for v in values.values()):
        return {}
    return {t.policy: t for t in paired_tests(values, BASELINE)}


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
    return rank_methods([[t[p] for p in shared] for t in tables], shared), len(tables)


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

    record = next(
        (r for r in comparison.records if r.spec["policy"] == policy and r.spec["seed"] == seed), None
    )
    if record is None:
        raise InputError(f"There is no run of {policy} with seed {seed} yet.")

    def make() -> Model:
        spec = RunSpec.from_json(record.spec)
        rounds = [Round.from_json(r.record) for r in Store.open().rounds(record.id)]
        return run_model(spec, spec.load_pool(), rounds, number)

    return cached((record.id, "round", number), make)


def _values(store: Store, run_id: str) -> dict[str, list[float]]:
    records = [r.record for r in store.rounds(run_id)]
    names = ("n_labelled", *MEASURES)
    return {n: [float("nan") if r.get(n) is None else float(r[n]) for r in records] for n in names}


def _submit(token: str, spec: StudySpec, project: str | None) -> Job:
    name = json.dumps({"id": token, "spec": _document(spec)}, sort_keys=True)

    def work(job: Job) -> Results:
        from workbench.sessions import Store
        from workbench.sessions.rounds import Round
        from workbench.studies import run

        store = Store.open()
        earlier = {(r.spec["policy"], r.spec["seed"]): r for r in store.runs(study=name)}
        found: Results = {}
        planned = spec.runs()
        total = sum(one.n_rounds for one in planned)
        done = 0

        def publish(message: str) -> None:
            # copies: the page reads while the next round is added
            shown = {
                p: {s: {m: list(x) for m, x in v.items()} for s, v in r.items()} for p, r in found.items()
            }
            job.report(done / total, message, partial=shown)

        pools: dict[int, Any] = {}
        for number, one in enumerate(planned, start=1):
            message = f"run {number} of {len(planned)}: {one.policy}, seed {one.seed}"
            present = earlier.get((one.policy, one.seed))
            values = found.setdefault(one.policy, {}).setdefault(
                one.seed, {n: [] for n in ("n_labelled", *MEASURES)}
            )
            if present is not None:
                values.update(_values(store, present.id))
                done += len(values["n_labelled"])
            publish(message)
            if present is not None and present.status == "finished":
                done += one.n_rounds - len(values["n_labelled"])
                continue

            def finished(got: Round, values: dict[str, list[float]] = values, message: str = message) -> None:
                nonlocal done
                values["n_labelled"].append(float(got.n_labelled))
                for measure in MEASURES:
                    values[measure].append(float(getattr(got, measure)))
                done += 1
                publish(message)

            if one.seed not in pools:
                pools = {one.seed: one.load_pool()}
            kept = present.id if present is not None else None
            result = run(
                one,
                finished,
                job.should_stop,
                pool=pools[one.seed],
                store=store,
                run_id=kept,
                project=project,
                study=name,
            )
            if result.status == "cancelled":
                raise Cancelled(job.title)
            # a run may end early where the pool runs out
            done += one.n_rounds - len(values["n_labelled"])
        return found

    job = manager().submit(token, KIND, work, title="Comparison", lane="study")
    job.about = spec
    return job


def _document(spec: StudySpec) -> Mapping[str, Any]:
    document = asdict(spec)
    document["options"], document["pool_options"] = dict(spec.options), dict(spec.pool_options)
    return document
