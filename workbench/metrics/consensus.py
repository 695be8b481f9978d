"""Consensus of several people: a confusion matrix a person, and a classifier beside them.

Dawid & Skene (1979) with priors, so that three labels say little: a person's rows are drawn to their own
accuracy, that to everybody's. A classifier's probabilities, of before anybody answered, stand beside the
people's answers with a weight of their own, as in CROWDLAB (Goh, Tkachenko & Mueller 2022).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError

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
    q = _spread(i, v, np.ones((len(i), 1)), n, C)
    q = (q + 1e-2) / (q + 1e-2).sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        before = q
        confusions, accuracies = _people((of_people @ q[i]).reshape(P, C, C).transpose(0, 2, 1))
        shares = (q.sum(axis=0) + SHARE_WEIGHT) / (n + C * SHARE_WEIGHT)
        q, weight = _joined(of_items @ np.log(confusions)[j, :, v], shares, model)
        if np.abs(q - before).max() < _CHANGE:
            break
    return Consensus(q, confusions, accuracies, shares, weight)


def majority(items: Array, codes: Array, n_classes: int) -> Floats:
    """[n, C] the share of each item's answers that name each class; items from 0 without gaps."""
    i, v = np.asarray(items, dtype=np.int64), np.asarray(codes, dtype=np.int64)
    votes = _spread(i, v, np.ones((len(i), 1)), int(i.max()) + 1, n_classes)
    vote_shares: Floats = votes / votes.sum(axis=1, keepdims=True)
    return vote_shares


def without_person(found: Consensus, item: int, person: int, code: int) -> Floats:
    """[C] the consensus of an item without what one person answered."""
    logs = np.log(np.maximum(found.probabilities[item], 1e-300)) - np.log(found.confusions[person, :, code])
    q = np.exp(logs - logs.max())
    posterior: Floats = q / q.sum()
    return posterior


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


def everybody(found: Consensus) -> Floats:
    """[C, C] the confusion of somebody of whom nothing is known: the mean of those known."""
    mean: Floats = found.confusions.mean(axis=0)
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


def _spread(i: Ints, v: Ints, w: Floats, n: int, C: int) -> Floats:
    out = np.zeros((n, C))
    np.add.at(out, (i, v), w[:, 0])
    return out


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
