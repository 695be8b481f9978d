"""Do probabilities mean what they say? (docs/math.md, 8)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.metrics.checks import check_level, check_scores


@dataclass(frozen=True, eq=False)
class ReliabilityTable:
    """One row a bin of confidence; bin b of B holds confidences in ((b-1)/B, b/B].

    Attributes:
        lower: [B] left ends (excluded).
        upper: [B] right ends (included).
        right: [B] hits: items predicted rightly, or of the class.
        wrong: [B] the other items.
        confidence: [B] mean confidence, NaN for an empty bin.
        mean_confidence: over all items.
    """

    lower: Floats
    upper: Floats
    right: Ints
    wrong: Ints
    confidence: Floats
    mean_confidence: float

    @property
    def count(self) -> Ints:
        """[B] items in the bin."""
        return self.right + self.wrong

    @property
    def accuracy(self) -> Floats:
        """[B] share of hits, NaN for an empty bin."""
        return self.right / np.where(self.count > 0, self.count, np.nan)

    @property
    def band(self) -> tuple[Floats, Floats]:
        """Ends [B] of Wilson's 95 % intervals of the accuracies, NaN for an empty bin."""
        low, high = np.full((2, len(self.count)), np.nan)
        for b in np.flatnonzero(self.count):
            _, low[b], high[b], _ = share_interval(int(self.right[b]), int(self.count[b]))
        return low, high

    @property
    def gap(self) -> Floats:
        """[B] |accuracy - confidence|, 0 for an empty bin."""
        return np.nan_to_num(np.abs(self.accuracy - self.confidence), nan=0.0)

    @property
    def error(self) -> float:
        """Mean gap over all items."""
        return float(np.sum(self.count * self.gap) / self.count.sum())

    @property
    def mean_accuracy(self) -> float:
        """Share of hits over all items."""
        return float(self.right.sum() / self.count.sum())

    @property
    def over_confidence(self) -> float:
        """Mean confidence minus accuracy; above 0 the model promises too much."""
        return self.mean_confidence - self.mean_accuracy


def reliability_table(
    y: ArrayLike,
    probabilities: ArrayLike,
    n_bins: int = 10,
    *,
    class_code: int | None = None,
    equal_mass: bool = False,
) -> ReliabilityTable:
    """Accuracy against confidence in bins.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].
        n_bins: B.
        class_code: None bins the largest probability against "the prediction was right"; a class
            bins that class's probability against "it was this class".
        equal_mass: bins hold about the same number of items each, and their edges are confidences met; there
            may be fewer bins, since equal confidences stay together. Else they are of equal width.

    Returns:
        The table; what a reliability diagram and a histogram of confidence draw.

    Raises:
        InputError: nothing to measure on, fewer than one bin, or no such class.
    """
    edges = _equal_width_edges(n_bins)
    confidence, hit = _confidence_and_hits(y, probabilities, class_code)
    if equal_mass:
        inner = np.quantile(confidence, edges[1:-1], method="inverted_cdf")
        edges = np.concatenate([[0.0], np.unique(inner[inner < confidence.max()]), [1.0]])
    return _table(confidence, hit, edges)


def expected_calibration_error(y: ArrayLike, probabilities: ArrayLike, n_bins: int = 15) -> float:
    """ECE: the mean over items of |accuracy - confidence| of their bin.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].
        n_bins: B, bins of equal width.

    Returns:
        A number in [0, 1]. Biased upward: 2,000 perfectly calibrated items show about 0.026, so
        differences below 0.02 mean nothing.

    Raises:
        InputError: as `reliability_table`.
    """
    return reliability_table(y, probabilities, n_bins).error


def classwise_calibration_error(y: ArrayLike, probabilities: ArrayLike, n_bins: int = 15) -> float:
    """Mean over classes k of the ECE of the probability of k against "it was k".

    Args:
        y: [N] true class codes.
        probabilities: [N, C].
        n_bins: B, bins of equal width.

    Returns:
        A number in [0, 1]. With many classes most probabilities are near 0 and it gets small.

    Raises:
        InputError: as `reliability_table`.
    """
    codes, p = check_scores(y, probabilities)
    edges = _equal_width_edges(n_bins)
    return float(np.mean([_table(p[:, k], codes == k, edges).error for k in range(p.shape[1])]))


class BrierParts(NamedTuple):
    """Murphy's parts of the Brier score of the predicted class ("was it right?").

    The score is reliability - resolution + uncertainty + remainder.

    Attributes:
        brier: mean (confidence - hit)^2.
        reliability: how far the bins' accuracies lie from their confidences; 0 is calibrated.
        resolution: how far the bins' accuracies lie from the mean accuracy; large is good.
        uncertainty: accuracy (1 - accuracy); what there is to explain.
        remainder: what the spread of confidences inside the bins leaves over; 0 when there is none.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    remainder: float


def brier_parts(
    y: ArrayLike, probabilities: ArrayLike, n_bins: int = 15, *, class_code: int | None = None
) -> BrierParts:
    """Murphy's decomposition of the Brier score over bins of confidence.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].
        n_bins: B, bins of equal width.
        class_code: as in `reliability_table`.

    Returns:
        The parts. The score here is that of one event (range 0 to 1), not the sum over classes.

    Raises:
        InputError: as `reliability_table`.
    """
    confidence, hit = _confidence_and_hits(y, probabilities, class_code)
    table = _table(confidence, hit, _equal_width_edges(n_bins))
    share = table.count / table.count.sum()
    accuracy = float(hit.mean())
    brier = float(np.mean((confidence - hit) ** 2))
    reliability = float(np.sum(share * table.gap**2))
    resolution = float(np.sum(share * np.nan_to_num(table.accuracy - accuracy) ** 2))
    uncertainty = accuracy * (1.0 - accuracy)
    return BrierParts(
        brier, reliability, resolution, uncertainty, brier - (reliability - resolution + uncertainty)
    )


class Interval(NamedTuple):
    """A number with its uncertainty.

    Attributes:
        value: the number itself.
        low: lower end.
        high: upper end.
        n: items (or seeds) behind it.
    """

    value: float
    low: float
    high: float
    n: int


def calibration_interval(
    table: ReliabilityTable, *, level: float = 0.95, n_samples: int = 500, seed: int = 0
) -> Interval:
    """Calibration error of a table with an interval for the error behind the sample.

    A sample's error is above 0 for a calibrated model too, as hits and misses of a bin are chance. So errors
    are tried: bins whose accuracies lie off their confidences as in the sample, by more or by less, on the
    one side or on the other. The interval holds those under which drawn samples have an error as small, and
    as large, as the one that was seen (an inverted test by the parametric bootstrap; Davison & Hinkley 1997,
    5.4). For a calibrated model it reaches 0 in at least the share `level` of all samples. Where one bin
    holds the whole fault it is too short: it lay above the error in 11 to 13 of 100 samples (n 40 and 200).

    Args:
        table: the bins.
        level: of the interval.
        n_samples: samples drawn under each error that is tried.
        seed: of the draws.

    Returns:
        The sample's error, ends and N; the sample's error lies between the ends.

    Raises:
        InputError: a level outside (0, 1).
    """
    check_level(level)
    filled = table.count > 0
    count, mean = table.count[filled], table.confidence[filled]
    share, value = count / count.sum(), table.error
    # how accuracies may lie off the confidences: as in the sample, or all to one side
    gap = mean - table.accuracy[filled]
    shapes = [np.ones(len(mean)), -np.ones(len(mean))] + [gap, -gap] * bool(value > 0)

    def drawn(away: Floats) -> tuple[float, Floats]:
        """The error of accuracies so far off, and those of samples under it; always the same draws."""
        accuracy = np.clip(mean - away, 0.0, 1.0)
        rng = np.random.default_rng([seed, 0, 0xCA1])
        hits = rng.binomial(count, accuracy, size=(n_samples, len(count)))
        return float(share @ np.abs(mean - accuracy)), np.abs(hits / count - mean) @ share

    def end(shape: Floats, quantile: float, beyond: float | None = None) -> float:
        """The error at which a share `quantile` of samples have an error of at most the one that was seen.

        `beyond` is given where no error of this shape has; unless given, its largest.
        """
        reference = value + (
            1e-12 if quantile < 0.5 else -1e-12
        )  # samples as wrong as this one count on both sides

        def above(away: float) -> bool:
            return bool(np.quantile(drawn(away * shape)[1], quantile) > reference)

        near, far = 0.0, 1.0 / float(np.abs(shape[shape != 0]).min())  # there every accuracy is at its end
        if above(near):
            return 0.0
        if not above(far):
            return drawn(far * shape)[0] if beyond is None else beyond
        for _ in range(16):
            middle = (near + far) / 2
            near, far = (near, middle) if above(middle) else (middle, far)
        return drawn(far * shape)[0]

    low = min(end(shape, (1 + level) / 2, value) for shape in shapes)
    high = max(end(shape, (1 - level) / 2) for shape in shapes)
    return Interval(value, min(low, value), max(high, value), int(count.sum()))


@dataclass(frozen=True)
class CalibrationVerdict:
    """Confidence against what came true, over all items and bin by bin; sentences and tables read it.

    Attributes:
        direction: "calibrated" where chance can be all of the error, of the mean as well as of the bins.
        confidence: mean over the items.
        accuracy: share of hits.
        error: expected calibration error with its interval.
        bins: (confidence, share of hits, items) of the bins whose share is off by more than chance, all bins
            tried together; none where only the sum over the bins is.
    """

    direction: Literal["calibrated", "too sure", "too modest", "off both ways"]
    confidence: float
    accuracy: float
    error: Interval
    bins: tuple[tuple[float, float, int], ...]


def calibration_verdict(table: ReliabilityTable) -> CalibrationVerdict:
    """Verdict whether confidences can be taken at their word, and where not.

    A model is calibrated where the interval of its calibration error begins at 0 and its mean confidence lies
    in Wilson's interval of the share of hits. Else the bins say in which direction it is off; where none
    does by itself, the mean over the items.

    Args:
        table: the bins.

    Returns:
        The verdict with its evidence.
    """
    error = calibration_interval(table)
    confidence, accuracy = table.mean_confidence, table.mean_accuracy
    mean = share_interval(int(table.right.sum()), error.n)
    if error.low <= 0 and mean.low <= confidence <= mean.high:
        return CalibrationVerdict("calibrated", confidence, accuracy, error, ())
    off, filled = [], np.flatnonzero(table.count)
    for b in filled:
        claim, count = float(table.confidence[b]), int(table.count[b])
        chance = share_interval(int(table.right[b]), count, 1 - 0.05 / len(filled))
        if not chance.low <= claim <= chance.high:
            off.append((claim, chance.value, count))
    sure, modest = (any(sign * (claim - share) > 0 for claim, share, _ in off) for sign in (1, -1))
    direction: Literal["too sure", "too modest", "off both ways"]
    if sure and modest:
        direction = "off both ways"
    else:
        direction = "too sure" if sure or (not modest and table.over_confidence > 0) else "too modest"
    return CalibrationVerdict(direction, confidence, accuracy, error, tuple(off))


def share_interval(hits: int, n: int, level: float = 0.95) -> Interval:
    """A share with Wilson's interval (Wilson 1927), sound also for few items and shares of 0 or 1.

    Args:
        hits: how many.
        n: of how many.
        level: of the interval.

    Returns:
        The share, ends and n.

    Raises:
        InputError: hits outside 0 to n, or n = 0.
    """
    from statistics import NormalDist

    check_level(level)
    if n < 1 or not 0 <= hits <= n:
        raise InputError(f"A share needs hits between 0 and n, and n of at least 1; got {hits} of {n}.")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    low = 0.0 if hits == 0 else max(0.0, centre - half)
    high = 1.0 if hits == n else min(1.0, centre + half)
    return Interval(share, low, high, n)


def _equal_width_edges(n_bins: int) -> Floats:
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InputError(f"Calibration needs at least one bin, a whole number of them; got {n_bins}.")
    return np.arange(n_bins + 1) / n_bins


def _confidence_and_hits(
    y: ArrayLike, probabilities: ArrayLike, class_code: int | None
) -> tuple[Floats, Array]:
    codes, p = check_scores(y, probabilities)
    if class_code is None:
        guess = p.argmax(axis=1)
        return p[np.arange(codes.shape[0]), guess], guess == codes
    if not 0 <= class_code < p.shape[1]:
        raise InputError(f"There is no class with code {class_code}; codes run from 0 to {p.shape[1] - 1}.")
    return p[:, class_code], codes == class_code


def _table(confidence: Floats, hit: Array, edges: Floats) -> ReliabilityTable:
    n_bins = len(edges) - 1
    # counting the inner edges strictly below puts a confidence equal to an edge into the lower bin
    index = np.searchsorted(edges[1:-1], confidence, side="left")
    count = np.bincount(index, minlength=n_bins)
    right = np.bincount(index[hit], minlength=n_bins)
    total = np.bincount(index, weights=confidence, minlength=n_bins)
    mean = total / np.where(count > 0, count, np.nan)
    return ReliabilityTable(edges[:-1], edges[1:], right, count - right, mean, float(confidence.mean()))
