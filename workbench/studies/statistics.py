"""What a study adds up to: paired tests, ranks over data sets, labels saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.metrics import (
    MIN_SEEDS,
    LabelsSaved,
    PairedTest,
    Ranking,
    area_under_curve,
    labels_saved,
    mean_interval,
    paired_tests,
    rank_methods,
)
from workbench.sessions.rounds import MEASURES
from workbench.studies.study import StudyResult

BASELINE = "random"
HIGHER_IS_BETTER = frozenset({"macro_f1"})
TOO_FEW = "too few seeds to tell"


class Curves(NamedTuple):
    """One measure of several policies on one pool with one classifier, seed by seed.

    Attributes:
        pool: name.
        classifier: name.
        measure: one of `workbench.sessions.rounds.MEASURES`.
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


@dataclass(frozen=True)
class PolicySummary:
    """One policy on one pool with one classifier.

    Attributes:
        pool: name.
        classifier: name.
        policy: name.
        n_seeds: paired seeds.
        last: mean of the measure at the end.
        last_half: half of its 95 % interval; NaN for one seed.
        area: mean height of the curve, averaged over seeds.
        area_half: half of its 95 % interval.
        test: of the areas against the baseline; None for the baseline or without one.
        saved: labels saved against the baseline to reach its last error; None likewise.
    """

    pool: str
    classifier: str
    policy: str
    n_seeds: int
    last: float
    last_half: float
    area: float
    area_half: float
    test: PairedTest | None
    saved: LabelsSaved | None

    @property
    def verdict(self) -> str:
        """Against the baseline, in words; "" where there is nothing to say."""
        return "" if self.test is None else self.test.verdict


def curves(result: StudyResult, measure: str = "error") -> list[Curves]:
    """The curves of a study, pool by pool and classifier by classifier.

    Only seeds count that every policy has finished to the same length: the others are not paired.

    Args:
        result: of the study.
        measure: one of `MEASURES`.

    Returns:
        One entry for each pool and classifier with at least one such seed.

    Raises:
        InputError: no such measure.
    """
    if measure not in MEASURES:
        raise InputError(f"There is no measure {measure!r}. Known: {', '.join(MEASURES)}.")
    spec = result.spec
    by_run = {(one.pool, one.classifier, one.policy, one.seed): rounds for one, rounds in result.runs}
    found = []
    for pool in spec.pools:
        for classifier in spec.classifiers:
            kept: list[int] = []
            length = max(
                (
                    len(by_run.get((pool, classifier, policy, seed), ()))
                    for policy in spec.policies
                    for seed in range(spec.seeds)
                ),
                default=0,
            )
            for seed in range(spec.seeds):
                lengths = {len(by_run.get((pool, classifier, p, seed), ())) for p in spec.policies}
                if lengths == {length} and length:
                    kept.append(seed)
            if not kept:
                continue
            first = by_run[(pool, classifier, spec.policies[0], kept[0])]
            values = {
                policy: np.array(
                    [[getattr(r, measure) for r in by_run[(pool, classifier, policy, s)]] for s in kept]
                )
                for policy in spec.policies
            }
            labels = np.array([r.n_labelled for r in first])
            found.append(Curves(pool, classifier, measure, np.array(kept), labels, values))
    return found


def summarise(found: Curves, baseline: str = BASELINE) -> list[PolicySummary]:
    """Each policy's figures, and its paired test against the baseline (Holm over the policies).

    Args:
        found: the curves.
        baseline: what the others are held against; nothing is tested where it was not run.

    Returns:
        One row a policy, in order.
    """
    areas = {p: area_under_curve(found.n_labelled, v) for p, v in found.values.items()}
    tests: dict[str, PairedTest] = {}
    finite = all(np.isfinite(a).all() for a in areas.values())
    if baseline in areas and len(areas) > 1 and finite:
        better_low = found.measure not in HIGHER_IS_BETTER
        tests = {t.policy: t for t in paired_tests(areas, baseline, lower_is_better=better_low)}
    rows = []
    for policy, v in found.values.items():
        last, area = mean_interval(v[:, -1]), mean_interval(areas[policy])
        saved = None
        if policy in tests and found.measure == "error":
            target = float(found.values[baseline][:, -1].mean())
            saved = labels_saved(found.n_labelled, v, found.values[baseline], target)
        rows.append(
            PolicySummary(
                found.pool,
                found.classifier,
                policy,
                len(found.seeds),
                last[0],
                (last[2] - last[1]) / 2,
                area[0],
                (area[2] - area[1]) / 2,
                tests.get(policy),
                saved,
            )
        )
    return rows


def pairwise(found: Curves) -> list[PairedTest]:
    """Every policy's areas against every other's, corrected together (Holm).

    Args:
        found: the curves, of at least two policies.
    """
    areas = {p: area_under_curve(found.n_labelled, v) for p, v in found.values.items()}
    return paired_tests(areas, None, lower_is_better=found.measure not in HIGHER_IS_BETTER)


def rank_policies(found: Sequence[Curves]) -> Ranking:
    """Rank policies over pools (and classifiers) by their mean areas.

    Args:
        found: curves of the same policies on several pools.

    Returns:
        Mean ranks, Friedman's test, Nemenyi's critical difference.

    Raises:
        InputError: nothing to rank.
    """
    if not found:
        raise InputError("There is nothing to rank: no seed has been finished by every policy.")
    policies = list(found[0].values)
    table = np.array(
        [[float(area_under_curve(c.n_labelled, c.values[p]).mean()) for p in policies] for c in found]
    )
    return rank_methods(table, policies, lower_is_better=found[0].measure not in HIGHER_IS_BETTER)


def rank_curves(found: Sequence[Curves]) -> tuple[Ints, dict[str, Floats]]:
    """Mean rank of each policy after each round, over pools and seeds.

    Args:
        found: curves of the same policies.

    Returns:
        rounds [R], as far as every pool goes, and policy -> mean ranks [R].
    """
    from workbench.metrics import average_ranks

    policies = list(found[0].values)
    length = min(len(c.n_labelled) for c in found)
    total = np.zeros((length, len(policies)))
    for c in found:
        stacked = np.stack([c.values[p][:, :length].mean(axis=0) for p in policies], axis=1)
        total += average_ranks(stacked, lower_is_better=c.measure not in HIGHER_IS_BETTER)
    mean = total / len(found)
    return np.arange(length), {p: mean[:, i] for i, p in enumerate(policies)}


def enough(n_seeds: int) -> bool:
    """Whether there are seeds enough for a verdict."""
    return n_seeds >= MIN_SEEDS
