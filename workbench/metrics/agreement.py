"""Agreement of people beyond chance, and their consensus.

Cohen's kappa is of two people, Krippendorff's alpha of any number. The consensus is that of Dawid & Skene
(1979) with priors, so that three labels say little: a person's rows are drawn to their own accuracy, that to
everybody's. A classifier's probabilities, of before anybody answered, stand beside the people's answers with
a weight of their own, as in CROWDLAB (Goh, Tkachenko & Mueller 2022).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.metrics.calibration import Interval, share_interval
from workbench.metrics.checks import check_predictions

ENOUGH = 10
"""Items from which on an agreement beyond chance is told."""
_FEW = 5  # items that differ from the rest, below which drawing items again tells too little


class Agreement(NamedTuple):
    """Agreement of two people or more.

    Attributes:
        observed: share of pairs of ratings of one item that are the same.
        expected: what chance alone would give, from how often each class is named.
        kappa: (observed - expected) / (1 - expected), which is alpha for more than two people: 1 is full
            agreement, 0 what chance gives; NaN where everybody named one and the same class, so that chance
            agrees as well.
        n_items: items it was computed on.
        n_ratings: ratings of them, all together.
    """

    observed: float
    expected: float
    kappa: float
    n_items: int
    n_ratings: int


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> Agreement:
    """Agreement of two people about the same items (Cohen 1960).

    Args:
        first: [n] class codes that one gave.
        second: [n] class codes that the other gave.

    Raises:
        InputError: no items, lengths that differ, or codes that are none.
    """
    a, b, n_classes = check_predictions(first, np.ravel(second))
    shares = [np.bincount(codes, minlength=n_classes) / len(a) for codes in (a, b)]
    return _agreement(float(np.mean(a == b)), float(shares[0] @ shares[1]), len(a), 2 * len(a))


def krippendorff_alpha(counts: ArrayLike) -> Agreement:
    """Agreement of any number of people about classes, each item rated by some of them.

    Krippendorff's alpha for nominal data (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"):
    every pair of ratings of one item counts, whoever gave them, a rating of an item with m ratings in m - 1
    pairs. Chance is that of drawing two of all these ratings without putting the first back.

    Args:
        counts: [n, C] how many people gave item i class j; items with fewer than two ratings say nothing,
            are left out.

    Raises:
        InputError: not such a table, or no item with two ratings.
    """
    rows = _rated(counts)
    ratings = rows.sum(axis=1)
    n = float(ratings.sum())
    observed = float(((rows * (rows - 1)).sum(axis=1) / (ratings - 1)).sum() / n)
    class_counts = rows.sum(axis=0)
    expected = float((class_counts * (class_counts - 1)).sum() / (n * (n - 1)))
    return _agreement(observed, expected, len(rows), int(n))


def alpha_interval(counts: ArrayLike, *, draws: int = 1000, seed: int = 0) -> Interval:
    """95 % interval of Krippendorff's alpha: percentiles over items drawn again with replacement.

    Where fewer than five items are not unanimous, or fewer than five have two ratings alike, the draws say
    too little of that end: it is then no nearer than by Wilson's interval of the share of such items.

    Args:
        counts: [n, C] as `krippendorff_alpha` takes them.
        draws: how many resamples.
        seed: of the draws.

    Returns:
        Alpha, its ends and the items behind it; NaN where all ratings are of one class.

    Raises:
        InputError: as `krippendorff_alpha`.
    """
    _, by_chance, alpha, items, _ = krippendorff_alpha(counts)
    rows = _rated(counts)
    weights = np.random.default_rng(seed).multinomial(items, np.full(items, 1 / items), draws)
    observed, expected = _shares_alike(rows, weights)
    varied = expected < 1.0 - 1e-12
    if not varied.any():
        return Interval(alpha, float("nan"), float("nan"), items)
    alphas = (observed[varied] - expected[varied]) / (1.0 - expected[varied])
    low, high = (float(end) for end in np.percentile(alphas, [2.5, 97.5]))
    most = rows.max(axis=1)
    unanimous, alike = int((most == rows.sum(axis=1)).sum()), int((most >= 2).sum())
    if items - unanimous < _FEW:
        low = min(low, _alpha_where(rows, share_interval(unanimous, items).low))
    if alike < _FEW:
        high = max(high, (share_interval(alike, items).high - by_chance) / (1.0 - by_chance))
    return Interval(alpha, low, high, items)


def _rated(counts: ArrayLike) -> Floats:
    """[n, C] ratings of the items that two people or more rated; raises as `krippendorff_alpha`."""
    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iu" or (table.size and table.min() < 0):
        raise InputError("Agreement needs a table of counts, [items, classes], of whole numbers from 0.")
    rows = table[table.sum(axis=1) >= 2].astype(np.float64)
    if not len(rows):
        raise InputError("Agreement needs an item that two people labelled.")
    return rows


def _shares_alike(rows: Floats, weights: Array) -> tuple[Floats, Floats]:
    """Shares of pairs that are alike, as observed and by chance, where items count as often as weights say.

    Args:
        rows: [n, C] ratings of each item, two or more.
        weights: [..., n] how often each item counts.

    Returns:
        [...] each.
    """
    ratings = rows.sum(axis=1)
    same = (rows * (rows - 1)).sum(axis=1) / (ratings - 1)
    n, class_counts = weights @ ratings, weights @ rows
    return weights @ same / n, (class_counts * (class_counts - 1)).sum(axis=-1) / (n * (n - 1))


def _alpha_where(table: Floats, share: float) -> float:
    """Krippendorff's alpha, were this share of the items unanimous and the others as those that are not.

    Args:
        table: [n, C] ratings of each item, two or more.
        share: from 0 to 1.
    """
    is_unanimous = table.max(axis=1) == table.sum(axis=1)
    if is_unanimous.all():  # none differs: one that names the two commonest classes
        another = np.zeros((1, table.shape[1]))
        another[0, np.argsort(-table.sum(axis=0), kind="stable")[:2]] = 1.0
        table, is_unanimous = np.concatenate([table, another]), np.append(is_unanimous, False)
    parts = np.where(
        is_unanimous, share / max(int(is_unanimous.sum()), 1), (1.0 - share) / (~is_unanimous).sum()
    )
    observed, expected = _shares_alike(table, parts * len(table))
    return float((observed - expected) / (1.0 - expected)) if expected < 1.0 - 1e-12 else 1.0


def _agreement(observed: float, expected: float, n: int, m: int) -> Agreement:
    beyond = 1.0 - expected
    kappa = (observed - expected) / beyond if beyond > 1e-12 else float("nan")
    return Agreement(observed, expected, kappa, n, m)


ROUNDS = 50
ACCURACY, ACCURACY_WEIGHT = 0.8, 10.0  # of everybody, before there are answers
PERSON_WEIGHT = 8.0  # answers that a person's accuracy is drawn to everybody's by
ROW_WEIGHT = 10.0  # answers that a row of a confusion matrix is drawn to the person's accuracy by
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the classifier, tried
SHARE_WEIGHT = 3.0  # answers of each class that the shares of classes begin with
_FLOOR = 1e-3  # of a classifier's probability: a sure mistake must not silence people
_CHANGE = 1e-4


class Consensus(NamedTuple):
    """Consensus of several people.

    Attributes:
        probabilities: [n, C] of each item's class.
        confusions: [P, C, C] of each person: of an item of class c, the chance of answering v.
        accuracies: [P] of each person, whatever the class.
        shares: [C] of the classes.
        weight: of the classifier, from 0 to 1.
    """

    probabilities: Floats
    confusions: Floats
    accuracies: Floats
    shares: Floats
    weight: float

    @property
    def codes(self) -> Ints:
        """[n] the likeliest class of each item."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def certainties(self) -> Floats:
        """[n] the chance that it is the right one."""
        chances: Floats = self.probabilities.max(axis=1)
        return chances


def consensus(
    items: Array, people: Array, codes: Array, n_classes: int, probabilities: Array | None = None
) -> Consensus:
    """The consensus of ratings by expectation and maximisation.

    Args:
        items: [R] the item of each rating, from 0 without gaps.
        people: [R] the person, from 0.
        codes: [R] the class that the person gave.
        n_classes: C.
        probabilities: [n, C] of a classifier that did not see these answers; a row of NaN where there is
            none.

    Raises:
        InputError: no ratings, lengths that differ, or codes that are none.
    """
    i, j, v = (np.asarray(a, dtype=np.int64) for a in (items, people, codes))
    if not len(i) or not len(i) == len(j) == len(v):
        raise InputError("A consensus needs ratings: an item, a person and a class each.")
    if min(i.min(), j.min(), v.min()) < 0 or v.max() >= n_classes:
        raise InputError(f"Classes must be numbers from 0 to {n_classes - 1}, items and people from 0.")
    n, P, C = int(i.max()) + 1, int(j.max()) + 1, int(n_classes)
    if probabilities is not None and np.shape(probabilities) != (n, C):
        raise InputError(f"Probabilities must be [{n}, {C}]; got {list(np.shape(probabilities))}.")
    from scipy import sparse

    R = len(i)
    ones, places = np.ones(R), np.arange(R)
    of_items = sparse.csr_matrix((ones, (i, places)), shape=(n, R))
    of_people = sparse.csr_matrix((ones, (j * C + v, places)), shape=(P * C, R))
    model = _logs(probabilities, n, C)
    q: Floats = np.zeros((n, C))
    np.add.at(q, (i, v), 1.0)
    q = (q + 1e-2) / (q + 1e-2).sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        before = q
        confusions, accuracies = _people((of_people @ q[i]).reshape(P, C, C).transpose(0, 2, 1))
        shares = (q.sum(axis=0) + SHARE_WEIGHT) / (n + C * SHARE_WEIGHT)
        q, weight = _joined(of_items @ np.log(confusions)[j, :, v], shares, model)
        if np.abs(q - before).max() < _CHANGE:
            break
    return Consensus(q, confusions, accuracies, shares, weight)


def without_person(posterior: Consensus, item: int, person: int, code: int) -> Floats:
    """[C] the consensus of an item without what one person answered."""
    evidence = np.log(posterior.confusions[person, :, code])
    logs = np.log(np.maximum(posterior.probabilities[item], 1e-300)) - evidence
    q = np.exp(logs - logs.max())
    remainder: Floats = q / q.sum()
    return remainder


def worth_asking(probabilities: Floats, confusion: Floats) -> Floats:
    """[n] how much likelier the consensus is right after one more answer, on average.

    E_v[max_c q_c(v)] - max_c q_c over what the person may answer: the gain in accuracy that ActiveLab's
    question (new item or second opinion?) weighs (Goh & Mueller 2023).

    Args:
        probabilities: [n, C] now.
        confusion: [C, C] of the person to be asked, or of everybody.
    """
    after = (probabilities[:, :, None] * confusion[None]).max(axis=1).sum(axis=1)
    gain: Floats = np.maximum(after - probabilities.max(axis=1), 0.0)
    return gain


def everybody(posterior: Consensus) -> Floats:
    """[C, C] the confusion of somebody of whom nothing is known: the mean of those known."""
    mean: Floats = posterior.confusions.mean(axis=0)
    return mean


def _logs(probabilities: Array | None, n: int, C: int) -> Floats:
    """[n, C] logs of a classifier's probabilities; zeros where it says nothing."""
    if probabilities is None:
        return np.zeros((n, C))
    p = np.asarray(probabilities, dtype=np.float64)
    silent = np.asarray(~np.isfinite(p).all(axis=1))
    p = np.where(silent[:, None], 1.0, np.maximum(p, _FLOOR))
    logs: Floats = np.log(p / p.sum(axis=1, keepdims=True))
    logs[silent] = 0.0
    return logs


def _people(counts: Floats) -> tuple[Floats, Floats]:
    """Confusions [P, C, C] and accuracies [P] of how often each answered v of items of class c [P, C, C]."""
    P, C, _ = counts.shape
    right, n = np.einsum("pcc->p", counts), counts.sum(axis=(1, 2))
    overall = (right.sum() + ACCURACY_WEIGHT * ACCURACY) / (n.sum() + ACCURACY_WEIGHT)
    accuracies = (right + PERSON_WEIGHT * overall) / (n + PERSON_WEIGHT)
    prior = np.empty((P, C, C))
    prior[:] = ((1.0 - accuracies) / max(C - 1, 1))[:, None, None]
    prior[:, np.arange(C), np.arange(C)] = accuracies[:, None]
    confusions = (counts + ROW_WEIGHT * prior) / (counts.sum(axis=2, keepdims=True) + ROW_WEIGHT)
    return np.maximum(confusions, 1e-6), accuracies


def _joined(evidence: Floats, shares: Floats, model: Floats) -> tuple[Floats, float]:
    """[n, C] posteriors of people and classifier, and the weight under which the answers are likeliest."""
    best: tuple[float, Floats, float] | None = None
    for weight in WEIGHTS if model.any() else (0.0,):
        prior = weight * model + (1.0 - weight) * np.log(shares)
        prior -= _log_sum(prior)
        joint = prior + evidence
        total = _log_sum(joint)
        if best is None or float(total.sum()) > best[0]:
            best = float(total.sum()), np.exp(joint - total), weight
    assert best is not None
    return best[1], best[2]


def _log_sum(a: Floats) -> Floats:
    top = a.max(axis=1, keepdims=True)
    total: Floats = top + np.log(np.exp(a - top).sum(axis=1, keepdims=True))
    return total
