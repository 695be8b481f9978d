"""Is one better than another? Statistics over seeds and data sets (Demsar 2006 for the latter).

Values are paired: entry s of every policy comes from the same seed (same split, same first labels,
same geometry). SciPy is imported by the functions that need it.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats
from workbench.errors import InputError
from workbench.metrics.calibration import Interval
from workbench.metrics.checks import check_level

ALPHA = 0.05
"""Level of the verdicts and of the critical difference, over all pairs."""
MIN_SEEDS = 6
"""Fewest seeds for a verdict: with 5, even five wins out of five have p = 0.0625."""

_SAME = 1e-12
"""Values closer than this share of the largest are the same number. Errors are k of n items and areas are
sums of such: as fractions they are equal or differ by more than 1 / (2 n labels), far above this; as floats
equal ones differ in the sixteenth digit, which would break ties and make wins of equals."""

Verdict = Literal["better", "worse", "no difference shown", "too few seeds to tell"]


def mean_band(values: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Mean over seeds with Student's interval, round by round.

    Args:
        values: [S, R], a row a seed.
        level: of the interval.

    Returns:
        [R] means, lower ends, NaN below 2 seeds, and upper ends.

    Raises:
        InputError: no seeds, or a level outside (0, 1).
    """
    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 2 or v.shape[0] == 0:
        raise InputError(f"Values must be one row a seed, [S, R]; got shape {list(v.shape)}.")
    half = _half_width(v, level)
    mean = v.mean(axis=0)
    return mean, mean - half, mean + half


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Mean over seeds with Student's interval.

    Args:
        values: [S].
        level: of the interval.

    Returns:
        Mean, ends (NaN for a single seed) and S.

    Raises:
        InputError: no seeds, or a level outside (0, 1).
    """
    v = np.atleast_1d(np.asarray(values, dtype=np.float64))
    mean, low, high = (float(part[0]) for part in mean_band(v[:, None], level))
    return Interval(mean, low, high, len(v))


def area_under_curve(n_labelled: ArrayLike, values: ArrayLike) -> Floats:
    """Mean height of a curve over the labels spent (trapezoids over their width).

    Args:
        n_labelled: [R] labels, rising.
        values: [R] or [S, R].

    Returns:
        [] or [S]; in the unit of the values, so runs of other budgets compare.

    Raises:
        InputError: lengths that differ, or labels that do not rise.
    """
    x, v = np.asarray(n_labelled, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0 or v.shape[-1:] != x.shape:
        raise InputError(f"Need a value for each of {x.size} rounds; got shape {list(v.shape)}.")
    if x.size == 1:
        return v[..., 0]
    if not (np.diff(x) > 0).all():
        raise InputError("The numbers of labels must rise from round to round.")
    return np.asarray(np.trapezoid(v, x, axis=-1) / (x[-1] - x[0]))


def labels_to_reach(n_labelled: ArrayLike, error: ArrayLike, target: float) -> float:
    """Labels after which a curve first is at or below a target.

    Args:
        n_labelled: [R] labels, rising.
        error: [R].
        target: the error to reach.

    Returns:
        A number of labels, NaN when it is never reached.
    """
    # a target that is the mean of equal errors differs from them in the sixteenth digit
    reached = np.asarray(error, dtype=np.float64) <= target + _SAME * abs(target)
    return float(np.asarray(n_labelled)[reached.argmax()]) if reached.any() else float("nan")


class LabelsSaved(NamedTuple):
    """Labels one policy needed less than another to reach an error, over paired seeds.

    Every seed counts: a side that did not get there within its labels counts with all of them (the
    difference of the restricted means of survival analysis), so exchanged sides give the negative, and early
    luck on one seed of ten does not stand for the ten.

    Attributes:
        target: the error.
        mean: labels saved, over all seeds; NaN where neither side got there on any.
        low: lower end of Student's interval.
        high: upper end.
        n_both: seeds on which both got there.
        n_only_policy: seeds on which the policy alone did.
        n_only_baseline: seeds on which the baseline alone did.
        labels: that the policy had then, in the mean over all seeds, likewise.
        n: seeds.
    """

    target: float
    mean: float
    low: float
    high: float
    n_both: int
    n_only_policy: int
    n_only_baseline: int
    labels: float
    n: int

    @property
    def n_arrived(self) -> int:
        """Seeds on which the policy got there."""
        return self.n_both + self.n_only_policy

    @property
    def mostly_arrived(self) -> bool:
        """True if the policy got there on at least half of the seeds: else there is no saving to speak of."""
        return self.n_arrived > 0 and 2 * self.n_arrived >= self.n

    @property
    def bound(self) -> Literal["", "at least", "at most", "about"]:
        """Mean of the labels saved, were there no end: a bound where a side never arrived."""
        neither = self.n - self.n_both - self.n_only_policy - self.n_only_baseline
        if neither or (self.n_only_policy and self.n_only_baseline):
            return "about"
        if self.n_only_policy:
            return "at least"
        return "at most" if self.n_only_baseline else ""


def labels_saved(n_labelled: ArrayLike, policy: ArrayLike, baseline: ArrayLike, target: float) -> LabelsSaved:
    """Labels that a policy saves against a baseline.

    Args:
        n_labelled: [R] labels, the same for both.
        policy: [S, R] errors.
        baseline: [S, R] errors on the same seeds.
        target: the error to reach.

    Returns:
        Labels saved, and on how many seeds each got there at all.

    Raises:
        InputError: shapes that differ.
    """
    runs, base_runs = np.atleast_2d(policy), np.atleast_2d(baseline)
    if runs.shape != base_runs.shape:
        raise InputError(
            f"Both need the same seeds and rounds; got {list(runs.shape)} and {list(base_runs.shape)}."
        )
    policy_labels = np.array([labels_to_reach(n_labelled, row, target) for row in runs])
    baseline_labels = np.array([labels_to_reach(n_labelled, row, target) for row in base_runs])
    arrived, baseline_arrived = np.isfinite(policy_labels), np.isfinite(baseline_labels)
    end = np.asarray(n_labelled, dtype=np.float64)[-1]
    spent, needed = np.where(arrived, policy_labels, end), np.where(baseline_arrived, baseline_labels, end)
    mean = low = high = labels = float("nan")
    if (arrived | baseline_arrived).any():
        mean, low, high, _ = mean_interval(needed - spent)
        labels = float(spent.mean())
    n_both, n_policy, n_baseline = (
        int(which.sum())
        for which in (arrived & baseline_arrived, arrived & ~baseline_arrived, baseline_arrived & ~arrived)
    )
    return LabelsSaved(target, mean, low, high, n_both, n_policy, n_baseline, labels, len(runs))


def gaps_of(a: ArrayLike, b: ArrayLike) -> Floats:
    """Differences a - b as the fractions behind the floats have them: equal ones are equal, and a tie is 0.

    Args:
        a: [S].
        b: [S], paired with `a`.

    Returns:
        [S].

    Raises:
        InputError: lengths that differ, or an entry that is no finite number.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or not np.isfinite([first, second]).all():
        raise InputError("Pairs need a number on both sides, seed by seed.")
    scale = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    gap = first - second
    return np.asarray(np.sign(gap) * _snapped(np.abs(gap), scale))


def _snapped(values: Floats, scale: float) -> Floats:
    """Values of which those that differ by rounding alone became one; those that are nothing became 0.

    Args:
        values: [n], finite, not negative.
        scale: size of the numbers that the values were computed from.
    """
    order = np.argsort(values, kind="stable")
    ordered = np.concatenate([[0.0], values[order]])
    starts = np.concatenate([[True], np.diff(ordered) > _SAME * scale])
    groups = np.cumsum(starts) - 1
    out = np.empty_like(values)
    out[order] = ordered[starts][groups][1:]
    return out


class PairedCounts(NamedTuple):
    """Share of pairs in which one sample is lower, by the differences that the test is made of.

    Attributes:
        lower: pairs in which the first is lower.
        higher: pairs in which it is higher.
        tied: pairs that are equal.
        p: Wilcoxon's signed-rank test, two-sided.
    """

    lower: int
    higher: int
    tied: int
    p: float


def paired_counts(a: ArrayLike, b: ArrayLike) -> PairedCounts:
    """Count lower, higher and tied pairs; ties are those of `gaps_of`, as in the test beside them.

    Args:
        a: [S].
        b: [S], paired with `a`.
    """
    gap = gaps_of(a, b)
    lower, higher = int((gap < 0).sum()), int((gap > 0).sum())
    return PairedCounts(lower, higher, len(gap) - lower - higher, wilcoxon_p(a, b))


class PairedTest(NamedTuple):
    """Two policies on the same seeds.

    Attributes:
        policy: the one.
        baseline: the other.
        n: seeds.
        difference: mean of policy - baseline; below 0 the policy has the lower value.
        low: lower end of Student's interval of it.
        high: upper end.
        wins: seeds on which the policy has the lower value.
        losses: seeds on which it has the higher one.
        p: Wilcoxon's signed-rank test, two-sided.
        p_holm: the same, corrected for the number of tests made together (Holm 1979).
        verdict: "better" when p_holm is below the level and the policy's values are lower.
    """

    policy: str
    baseline: str
    n: int
    difference: float
    low: float
    high: float
    wins: int
    losses: int
    p: float
    p_holm: float
    verdict: Verdict


def paired_tests(
    values: Mapping[str, ArrayLike],
    baseline: str | None = "random",
    *,
    lower_is_better: bool = True,
) -> list[PairedTest]:
    """Compare policies on paired seeds by Wilcoxon's test with Holm's correction.

    Args:
        values: policy -> [S] (areas under the error curve, errors at the end, ...), same seeds in
            the same order.
        baseline: compare every other policy with this one; None compares all pairs.
        lower_is_better: what "better" means.

    Returns:
        One test a comparison, corrected together; "too few seeds to tell" below `MIN_SEEDS`, and where
        not even a win on every seed could pass the correction.

    Raises:
        InputError: fewer than two policies, no such baseline, or lengths that differ.
    """
    names = list(values)
    arrays = {name: np.asarray(values[name], dtype=np.float64) for name in names}
    if len(names) < 2:
        raise InputError("A comparison needs at least two policies.")
    if baseline is not None and baseline not in arrays:
        raise InputError(f"There are no values of the baseline {baseline!r}; there are {', '.join(names)}.")
    sizes = {array.shape for array in arrays.values()}
    if len(sizes) > 1 or arrays[names[0]].ndim != 1 or arrays[names[0]].size == 0:
        raise InputError("Every policy needs one value a seed, on the same seeds.")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError(f"Seed {int((~np.isfinite(array)).argmax())} of {name!r} has no value.")
    if baseline is None:
        pairs = list(combinations(names, 2))
    else:
        pairs = [(name, baseline) for name in names if name != baseline]
    counts = [paired_counts(arrays[a], arrays[b]) for a, b in pairs]
    corrected = holm([count.p for count in counts])
    out = []
    for (a, b), count, p_holm in zip(pairs, counts, corrected, strict=True):
        gap = gaps_of(arrays[a], arrays[b])
        mean, low, high, n = mean_interval(gap)
        out.append(
            PairedTest(
                a,
                b,
                n,
                mean,
                low,
                high,
                count.lower,
                count.higher,
                count.p,
                float(p_holm),
                _verdict(n, gap, float(p_holm), lower_is_better, len(pairs)),
            )
        )
    return out


def _verdict(n: int, gap: Floats, p: float, lower_is_better: bool, tests: int) -> Verdict:
    # the smallest p there can be: every seed won, times the tests that are corrected for
    if n < MIN_SEEDS or tests * 2.0 ** (1 - n) >= ALPHA:
        return "too few seeds to tell"
    if p >= ALPHA:
        return "no difference shown"
    # the sign of the rank sum decides, as it does in the test; the mean may be one outlier's
    lower = _signed_rank_sum(gap) < 0
    return "better" if lower == lower_is_better else "worse"


def _signed_rank_sum(gap: Floats) -> float:
    from scipy.stats import rankdata

    differences = gap[gap != 0]
    return float(np.sum(np.sign(differences) * rankdata(np.abs(differences))))


_EXACT = 50
"""Most pairs of which the exact distribution is taken, as in SciPy."""


def wilcoxon_p(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test; exact for small samples, also with ties.

    Args:
        a: [S].
        b: [S], paired with `a`.

    Returns:
        A p-value; 1 when no pair differs.
    """
    from scipy.stats import rankdata, wilcoxon

    gap = gaps_of(a, b)
    gap = gap[gap != 0]
    if gap.size == 0:
        return 1.0
    ranks = rankdata(np.abs(gap))
    if np.unique(ranks).size == gap.size or gap.size > _EXACT:
        return float(wilcoxon(gap).pvalue)
    # SciPy knows the exact distribution without ties only: ranks are whole once doubled, so the sums of
    # signed ranks are counted one rank at a time
    doubled = np.rint(2 * ranks).astype(np.int64)
    ways = np.ones(1)
    for rank in doubled:
        ways = np.concatenate([ways, np.zeros(rank)]) + np.concatenate([np.zeros(rank), ways])
    smaller = min(doubled[gap > 0].sum(), doubled[gap < 0].sum())
    return float(min(1.0, 2.0 * ways[: smaller + 1].sum() / ways.sum()))


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down correction for several tests.

    Args:
        p_values: [T].

    Returns:
        [T] adjusted p-values in the same order; rejecting those below alpha keeps the chance of any
        false rejection at alpha.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1.0)
    return out


class Ranking(NamedTuple):
    """Methods ranked over data sets.

    Attributes:
        names: [K] methods.
        mean_ranks: [K], 1 is best; ties share their mean rank.
        ranks: [M, K] per data set.
        statistic: Friedman's chi-square with K - 1 degrees of freedom; NaN below 3 methods.
        p: its p-value; NaN below 3 methods.
        critical_difference: mean ranks closer than this are not told apart (Nemenyi); NaN below 2 sets.
        groups: sets of methods no two of which are told apart, best first.
    """

    names: tuple[str, ...]
    mean_ranks: Floats
    ranks: Floats
    statistic: float
    p: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]


def rank_methods(values: ArrayLike, names: Sequence[str], *, lower_is_better: bool = True) -> Ranking:
    """Rank methods over data sets, with Friedman's test and Nemenyi's critical difference.

    Args:
        values: [M, K], a row a data set, a column a method.
        names: [K] of the methods.
        lower_is_better: whether the lowest value gets rank 1.

    Returns:
        The ranking.

    Raises:
        InputError: a shape that does not fit, or a missing value.
    """
    from scipy.stats import friedmanchisquare

    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 2 or v.shape[0] == 0 or v.shape[1] != len(names) or len(names) < 2:
        raise InputError(
            f"Need a row a data set and a column for each of {len(names)} methods (at least 2); "
            f"got shape {list(v.shape)}."
        )
    if not np.isfinite(v).all():
        row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(v)))
        raise InputError(f"Data set {row} has no value of {names[column]!r}; leave it out, or compute it.")
    ranks = average_ranks(v, lower_is_better=lower_is_better)
    mean = ranks.mean(axis=0)
    m, k = v.shape
    statistic = p = float("nan")
    if k >= 3 and m >= 2:
        if (ranks == ranks[:, :1]).all():  # all tied: nothing to test
            statistic, p = 0.0, 1.0
        else:
            statistic, p = (float(x) for x in friedmanchisquare(*ranks.T))
    gap = critical_difference(k, m) if m >= 2 else float("nan")
    order = np.argsort(mean, kind="stable")
    groups = tuple(tuple(str(names[i]) for i in order[a : b + 1]) for a, b in cliques(mean, gap))
    return Ranking(tuple(names), mean, ranks, statistic, p, gap, groups)


def average_ranks(values: ArrayLike, *, lower_is_better: bool = True) -> Floats:
    """Ranks within each row, ties sharing their mean rank.

    Args:
        values: [M, K].
        lower_is_better: whether the lowest value gets rank 1.

    Returns:
        [M, K] ranks from 1.
    """
    from scipy.stats import rankdata

    v = np.asarray(values, dtype=np.float64)
    if np.isfinite(v).all():
        v = np.sign(v) * _snapped(np.abs(v).ravel(), float(np.abs(v).max(initial=0.0))).reshape(v.shape)
    return np.asarray(rankdata(v if lower_is_better else -v, method="average", axis=1))


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Nemenyi's critical difference of mean ranks q sqrt(K (K + 1) / 6M) (Demsar 2006).

    Args:
        n_methods: K, at least 2.
        n_sets: M.

    Returns:
        The smallest difference that is told apart.
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1.0 - ALPHA, n_methods, np.inf)) / 2**0.5
    return q * (n_methods * (n_methods + 1) / (6.0 * n_sets)) ** 0.5


def cliques(mean_ranks: ArrayLike, critical_difference: float) -> list[tuple[int, int]]:
    """Runs of methods, sorted by mean rank, that are not told apart; none inside another.

    Args:
        mean_ranks: [K], in any order.
        critical_difference: closer means not told apart; NaN gives no runs.

    Returns:
        (first, last) positions in the sorted order, of at least two methods.
    """
    ranks = np.sort(np.asarray(mean_ranks, dtype=np.float64))
    runs: list[tuple[int, int]] = []
    if not np.isfinite(critical_difference):
        return runs
    for first in range(len(ranks)):
        last = int(np.flatnonzero(ranks - ranks[first] <= critical_difference)[-1])
        if last > first and not any(a <= first and last <= b for a, b in runs):
            runs.append((first, last))
    return runs


def _half_width(values: Floats, level: float) -> Floats:
    from scipy.stats import t

    check_level(level)
    n = values.shape[0]
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    spread = values.std(axis=0, ddof=1) / n**0.5
    return np.asarray(t.ppf((1 + level) / 2, n - 1) * spread)
