"""Statistics of a study: paired tests, ranks over data sets, labels saved, and a sentence about them.

Every page, command and report takes these numbers from here: a policy's height is the area under its
curve over the labels spent, and tests are made of those areas, seed by seed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.metrics import (
    MIN_SEEDS,
    Interval,
    LabelsSaved,
    PairedTest,
    Ranking,
    area_under_curve,
    average_ranks,
    labels_saved,
    mean_interval,
    paired_tests,
    rank_methods,
)
from workbench.sessions.rounds import METRICS
from workbench.studies.study import StudyResult

BASELINE = "random"
Outcome = Literal[
    "saves labels", "ahead on the way", "better", "worse", "no difference shown", "too few seeds to tell", ""
]
"""A policy against the baseline: "ahead on the way" has the lower error over the curve, with no labels saved;
"better" is the better curve of another measure; "" where nothing is tested."""
FEWEST_POOLS = 5
"""Pools from which on ranks are tested."""
HIGHER_IS_BETTER = frozenset({"macro_f1"})


class Curves(NamedTuple):
    """One measure of several policies on one pool with one classifier, seed by seed.

    Attributes:
        pool: name.
        classifier: name.
        measure: one of `workbench.sessions.rounds.METRICS`.
        seeds: [S] those that every policy has finished.
        n_labelled: [R].
        values: policy -> [S, R].
    """

    pool: str
    classifier: str
    measure: str
    seeds: Ints
    n_labelled: Ints
    values: Mapping[str, Floats]

    @property
    def lower_is_better(self) -> bool:
        """True if a lower value of the measure is the better one."""
        return self.measure not in HIGHER_IS_BETTER

    def areas(self) -> dict[str, Floats]:
        """Policy -> [S] mean heights of its curves over the labels spent."""
        return {policy: area_under_curve(self.n_labelled, v) for policy, v in self.values.items()}


@dataclass(frozen=True)
class PolicySummary:
    """One policy on one pool with one classifier.

    Attributes:
        pool: name.
        classifier: name.
        policy: name.
        last: the measure at the end, its 95 % interval over paired seeds.
        area: mean height of the curve, likewise.
        won: seeds on which the area is better than the baseline's; None as `test`.
        test: of the areas against the baseline; None for the baseline or without one.
        saved: labels saved against the baseline to reach its last error; None likewise.
    """

    pool: str
    classifier: str
    policy: str
    last: Interval
    area: Interval
    won: int | None = None
    test: PairedTest | None = None
    saved: LabelsSaved | None = None

    @property
    def outcome(self) -> Outcome:
        """The test of the areas and the labels saved, together; sentences, pictures and tables read it."""
        if self.test is None:
            return ""
        if self.test.verdict != "better" or self.saved is None:
            return self.test.verdict
        return "saves labels" if self.saved.mostly_arrived and self.saved.low > 0 else "ahead on the way"


def curves(result: StudyResult, measure: str = "error") -> list[Curves]:
    """The curves of a study, pool by pool and classifier by classifier.

    Only seeds count that every policy has finished to the same length: the others are not paired.

    Args:
        result: of the study.
        measure: one of `METRICS`.

    Returns:
        One entry for each pool and classifier with at least one such seed.

    Raises:
        InputError: no such measure.
    """
    if measure not in METRICS:
        raise InputError(f"There is no measure {measure!r}. Known: {', '.join(METRICS)}.")
    spec = result.spec
    by_run = {(run.pool, run.classifier, run.policy, run.seed): rounds for run, rounds in result.runs}
    entries = []
    # a policy whose every run failed leaves the others paired
    failed = Counter((run.pool, run.classifier, run.policy) for run, _ in result.failures)
    for pool in spec.pools:
        for classifier in spec.classifiers:
            policies = [p for p in spec.policies if failed[pool, classifier, p] < spec.seeds]
            runs = [
                [by_run.get((pool, classifier, policy, seed), []) for policy in policies]
                for seed in range(spec.seeds)
            ]
            if not policies:
                continue
            length = max(len(rounds) for of_seed in runs for rounds in of_seed)
            paired = [s for s, of_seed in enumerate(runs) if {len(r) for r in of_seed} == {length}]
            if not paired or not length:
                continue
            values = {
                policy: np.array([[getattr(r, measure) for r in runs[s][place]] for s in paired])
                for place, policy in enumerate(policies)
            }
            labels = np.array([r.n_labelled for r in runs[paired[0]][0]])
            entries.append(Curves(pool, classifier, measure, np.array(paired), labels, values))
    return entries


def summarise(comparison: Curves, baseline: str = BASELINE) -> list[PolicySummary]:
    """Each policy's figures, and its paired test against the baseline (Holm over the policies).

    Args:
        comparison: the curves.
        baseline: what the others are held against; nothing is tested where it was not run.

    Returns:
        One row a policy, in order.
    """
    areas = comparison.areas()
    tests = {t.policy: t for t in _tests(comparison, areas, baseline)} if baseline in areas else {}
    rows = []
    for policy, v in comparison.values.items():
        test, saved = tests.get(policy), None
        if test is not None and comparison.measure == "error":
            errors = comparison.values[baseline]  # to reach: their mean at the end
            saved = labels_saved(comparison.n_labelled, v, errors, float(errors[:, -1].mean()))
        won = None if test is None else test.wins if comparison.lower_is_better else test.losses
        last, area = mean_interval(v[:, -1]), mean_interval(areas[policy])
        pool, classifier = comparison.pool, comparison.classifier
        rows.append(PolicySummary(pool, classifier, policy, last, area, won, test, saved))
    return rows


def pairwise(comparison: Curves, leave_out: str | None = None) -> list[PairedTest]:
    """Every policy's areas against every other's, corrected together (Holm).

    Args:
        comparison: the curves.
        leave_out: a policy that is not tested, such as the baseline.

    Returns:
        One test a pair; none with fewer than two policies.
    """
    return _tests(comparison, {p: a for p, a in comparison.areas().items() if p != leave_out}, None)


def _tests(comparison: Curves, areas: Mapping[str, Floats], baseline: str | None) -> list[PairedTest]:
    if len(areas) < 2 or not all(np.isfinite(a).all() for a in areas.values()):
        return []
    return paired_tests(areas, baseline, lower_is_better=comparison.lower_is_better)


def leader(comparison: Curves, baseline: str = BASELINE) -> PolicySummary | None:
    """The policy with the best mean over the curve, beside the baseline; None without one to hold against it.

    Args:
        comparison: the curves.
        baseline: what it is held against.
    """
    rows = [row for row in summarise(comparison, baseline) if row.test is not None]
    if not rows:
        return None
    return (min if comparison.lower_is_better else max)(rows, key=lambda row: row.area.value)


def headline(comparison: Curves, titles: Mapping[str, str] | None = None) -> str:
    """The answer of a comparison in one sentence, about the policy with the best mean over the curve.

    Args:
        comparison: the curves.
        titles: policy -> what people call it; names where there is none.

    Returns:
        Such as "Margin reaches random's last error after 48 of 70 labels: at least 22 saved; better on 9 of
        10 seeds, p = 0.004."; "" without a baseline or without a policy beside it.
    """
    best = leader(comparison, BASELINE)
    if best is None or best.test is None:
        return ""
    name = (titles or {}).get(best.policy, best.policy)
    seeds = f"better on {best.won} of {best.test.n} seed{'s' * (best.test.n != 1)}"
    if best.outcome == "too few seeds to tell":
        end = f"{seeds}: {best.outcome}."
    else:
        verdict = f", {best.outcome}" if best.outcome == "no difference shown" else ""
        p = "< 0.001" if best.test.p_holm < 0.001 else f"= {best.test.p_holm:.2g}"
        end = f"{seeds}, p {p}{verdict}."
    if comparison.measure != "error":
        return f"{name} is {seeds.replace('better', f'better than {BASELINE}')}{end[len(seeds) :]}"
    last, saved = comparison.n_labelled[-1], best.saved
    if saved is None or not saved.mostly_arrived:
        suffix = (
            ""
            if saved is None or not saved.n_arrived
            else f" on {saved.n - saved.n_arrived} of {saved.n} seeds"
        )
        return f"{name} does not reach {BASELINE}'s last error within {last} labels{suffix}; {end}"
    # the table's numbers: of all seeds, those on which a side does not get there with all of its labels
    on = f" (reached on {saved.n_arrived} of {saved.n} seeds)" if saved.n_arrived < saved.n else ""
    bound, count = f"{saved.bound} " * bool(saved.bound), round(abs(saved.mean))
    if saved.mean <= 0 and saved.bound in (
        "at least",
        "at most",
    ):  # what bounds a saving bounds a cost from the other side
        bound = {"at least": "at most ", "at most": "at least "}[saved.bound]
    words = f"{bound}{count} saved" if saved.mean > 0 else f"{bound}{count} more"
    words = words if count else "none saved"
    after = f"{saved.labels:.0f} of {last} labels{on}"
    return f"{name} reaches {BASELINE}'s last error after {after}: {words}; {end}"


def rank_policies(comparisons: Sequence[Curves]) -> Ranking:
    """Rank policies over pools by their mean areas; several classifiers of a pool are averaged, not counted.

    Args:
        comparisons: curves on several pools; the policies that all of them have are ranked.

    Returns:
        Mean ranks, Friedman's test, Nemenyi's critical difference.

    Raises:
        InputError: nothing to rank.
    """
    if not comparisons:
        raise InputError("There is nothing to rank: no seed has been finished by every policy.")
    shared = [p for p in comparisons[0].values if all(p in c.values for c in comparisons)]
    pools: dict[str, list[list[float]]] = {}
    for c in comparisons:
        areas = c.areas()
        pools.setdefault(c.pool, []).append([float(areas[p].mean()) for p in shared])
    table = [np.mean(rows, axis=0) for rows in pools.values()]
    return rank_methods(table, shared, lower_is_better=comparisons[0].lower_is_better)


def rank_curves(comparisons: Sequence[Curves]) -> tuple[Ints, dict[str, Floats]]:
    """Mean rank of each policy after each round, over pools; means over seeds are ranked.

    Args:
        comparisons: curves of the same policies. Where a pool runs out of items, its last values stand.

    Returns:
        rounds [R] of the longest, and policy -> mean ranks [R].
    """
    policies = list(comparisons[0].values)
    length = max(len(c.n_labelled) for c in comparisons)
    total = np.zeros((length, len(policies)))
    for c in comparisons:
        stacked = np.stack([c.values[p].mean(axis=0) for p in policies], axis=1)
        padded = np.concatenate([stacked, np.repeat(stacked[-1:], length - len(stacked), axis=0)])
        total += average_ranks(padded, lower_is_better=c.lower_is_better)
    return np.arange(length), dict(zip(policies, (total / len(comparisons)).T, strict=True))


def enough(n_seeds: int) -> bool:
    """True if there are seeds enough for a verdict."""
    return n_seeds >= MIN_SEEDS
