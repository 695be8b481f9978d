"""Stretching features by what the labels say of them (a length scale for each)."""

import numpy as np

from workbench.arrays import Floats, Ints

PSEUDO_ROWS = 5.0  # of no effect: they pull F to 1 while there are few labels


def f_statistics(scaled: Floats, codes: Ints) -> Floats:
    """[D] the F statistic of each feature: variance between classes over variance within.

    Args:
        scaled: [N, D] features.
        codes: [N] classes; at least two occur.
    """
    between, within, n_groups = _sums_of_squares(scaled, codes)
    spare = max(len(codes) - n_groups, 1)
    # one member a class leaves no variance within: a floor keeps the statistic finite
    floor = 1e-3 * (between + within) / spare + 1e-300
    return (between / (n_groups - 1)) / (within / spare + floor)


def shrunk_f_statistics(scaled: Floats, codes: Ints) -> Floats:
    """[D] F statistics drawn to 1 by five pseudo-rows of no effect (docs/math.md, 11).

    Args:
        scaled: [N, D] features.
        codes: [N] classes; at least two occur.
    """
    between, within, n_groups = _sums_of_squares(scaled, codes)
    no_effect = PSEUDO_ROWS * (between + within) / (len(codes) - 1)
    above = (between + no_effect) / (n_groups - 1 + PSEUDO_ROWS)
    below = (within + no_effect) / (len(codes) - n_groups + PSEUDO_ROWS)
    # a column that does not vary among the labels says nothing
    return np.divide(above, below, out=np.ones_like(above), where=below > 0)


def _sums_of_squares(scaled: Floats, codes: Ints) -> tuple[Floats, Floats, int]:
    """[D] between and [D] within the classes that occur, and how many those are."""
    groups = np.unique(codes)
    overall = scaled.mean(axis=0)
    between, within = np.zeros(scaled.shape[1]), np.zeros(scaled.shape[1])
    for code in groups:
        rows = scaled[codes == code]
        between += len(rows) * (rows.mean(axis=0) - overall) ** 2
        within += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    return between, within, len(groups)


def lengths_by_f(length: float, F: Floats, centres: Floats, power: float = 0.25) -> Floats:
    """[D] length scales that stretch feature d by F_d^power and keep distances `length` on the whole.

    Args:
        length: length scale without stretching.
        F: [D] statistics.
        centres: [P, D] of the pool, whose median distance is kept.
        power: of the statistic.
    """
    stretch = np.maximum(F, 1e-4 * max(float(F.max()), 1e-300)) ** power
    return length * (_median_gap(centres * stretch) / _median_gap(centres)) / stretch


def _median_gap(points: Floats) -> float:
    from scipy.spatial.distance import pdist

    gaps = pdist(points)
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if gaps.size else 1.0
