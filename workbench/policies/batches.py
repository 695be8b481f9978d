"""Batch selectors: k items at once that are worth asking about and unlike each other.

Each reads `belief.utilities` (NaN = not in the running) where a policy has set them, costs O(n) per
added item over a limited number of candidates, and never forms an n x n matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.policies.rowwise import bald, entropy_of, margin
from workbench.policies.variation import best_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from workbench.arrays import Floats, Ints
    from workbench.policies.belief import Belief, PolicyFn

_MOST = 50_000  # rows that selectors without utilities look at
_LANDMARKS = 64
_SEQUENCES = 512
_DRAWS = 64
# A label's noise as a share of the prior variance: 1 at the large-margin model's variance of 10.
_NOISE = 0.1


def top(belief: Belief, k: int, rng: Generator) -> Ints:
    """The k items of largest utility, ties at random."""
    return best_first(_utilities(belief, rng), k, rng)


def k_means(belief: Belief, k: int, rng: Generator) -> Ints:
    """The best item of each of k clusters of the max(50, 5k) items of largest utility.

    Distances are those of the features as the model scales them. Follows Bodo et al. 2011 and
    Zhdanov 2019 ("diverse mini-batch active learning").

    Args:
        belief: with utilities; without, those of `margin` are taken.
        k: how many.
        rng: ties and the clusters' starts.

    Returns:
        [k] indices, of falling utility.
    """
    from sklearn.cluster import KMeans

    utilities = _utilities(belief, rng)
    # in falling utility, so that the answer does not depend on the pool's order
    candidates = best_first(utilities, max(50, 5 * k), rng)
    if k == 1 or len(candidates) <= k:
        return candidates[:k]
    points = np.asarray(belief.scaled[candidates], dtype=np.float64)
    distinct = len(np.unique(points, axis=0))
    seed = int(rng.integers(2**31))
    cluster = KMeans(min(k, distinct), n_init=4, random_state=seed).fit(points).labels_
    _, best = np.unique(cluster, return_index=True)
    selection = np.sort(best)  # positions are ranks: ascending is falling utility
    if len(selection) < k:  # fewer distinct points than items wanted
        extras = np.setdiff1d(np.arange(len(candidates)), selection)[: k - len(selection)]
        selection = np.sort(np.concatenate([selection, extras]))
    return candidates[selection]


def _utilities(belief: Belief, rng: Generator, policy: PolicyFn = margin) -> Floats:
    if belief.utilities is not None:
        return belief.utilities
    values = np.full(len(belief), np.nan)
    askable = belief.askable
    values[askable] = policy(belief, rng)[askable]
    return values


def covariance(belief: Belief, k: int, rng: Generator) -> Ints:
    """Greedy by posterior covariance among the max(50, 5k) items of largest utility.

    The best item first; then, each time, the item whose latent function would still be the least
    known if the chosen ones were labelled (D-optimal design; Krause et al. 2008).

    Args:
        belief: with utilities; without, those of `margin` are taken.
        k: how many.
        rng: ties.

    Returns:
        [k] indices in the order chosen.
    """
    candidates = best_first(_utilities(belief, rng), max(50, 5 * k), rng)
    factors, residual = posterior_factors(belief, candidates)
    selection = _greedy_determinant(factors, residual, min(k, len(candidates)))
    return candidates[selection]


def determinantal(belief: Belief, k: int, rng: Generator) -> Ints:
    """Greedy most probable batch of a determinantal process: utility times unlikeness.

    The process has L_ij = q_i K_ij q_j with K the posterior correlation of the latent functions and
    q an item's utility on a scale of 0.05 to 1 (Kulesza and Taskar 2012; greedy by Chen et al. 2018).

    Args:
        belief: with utilities; without, those of `margin` are taken.
        k: how many.
        rng: ties.

    Returns:
        [k] indices in the order chosen.
    """
    utilities = _utilities(belief, rng)
    candidates = best_first(utilities, max(1000, 20 * k), rng)
    values = utilities[candidates]
    spread = values[0] - values[-1]
    quality = 0.05 + 0.95 * ((values - values[-1]) / spread if spread > 0 else np.ones(len(values)))
    factors, residual = posterior_factors(belief, candidates)
    scale = quality / np.sqrt(np.einsum("np,np->n", factors, factors) + residual)
    selection = _greedy_determinant(
        factors * scale[:, None], residual * scale**2, min(k, len(candidates)), jitter=1e-9
    )
    return candidates[selection]


def core_set(belief: Belief, k: int, rng: Generator) -> Ints:
    """Farthest first from what is labelled, in the features as the model scales them.

    Greedy k-centre (Sener and Savarese 2018); does not look at utilities. Costs O(n) per labelled and
    per added item.

    Args:
        belief: features and labels.
        k: how many.
        rng: ties, and a sample of 50,000 of larger pools.

    Returns:
        [k] indices in the order chosen.
    """
    return _farthest_first(belief, k, rng, lambda rows: np.asarray(belief.scaled[rows], dtype=np.float64))


def core_set_latent(belief: Belief, k: int, rng: Generator) -> Ints:
    """Farthest first from what is labelled, in the space of the latent means.

    Args:
        belief: with latents.
        k: how many.
        rng: ties, and a sample of 50,000 of larger pools.

    Returns:
        [k] indices in the order chosen.
    """
    latent = belief.latent
    assert latent is not None  # the registry says that latents are needed
    return _farthest_first(belief, k, rng, lambda rows: np.asarray(latent.mean[rows], dtype=np.float64))


def badge(belief: Belief, k: int, rng: Generator) -> Ints:
    """k-means++ on gradient embeddings, for Gaussian processes.

    The gradient of the log loss of the predicted class with respect to a linear head on whitened
    features phi is (p - onehot) x phi (Ash et al. 2020). Its inner products factor into those of the
    two parts, so the C * P long embedding is never formed.

    Args:
        belief: with probabilities.
        k: how many.
        rng: the draws, and a sample of 50,000 of larger pools.

    Returns:
        [k] indices in the order chosen.
    """
    rows = _sample(belief.askable, rng)
    p = np.asarray(belief.probabilities[rows], dtype=np.float64)
    residual = p.copy()
    residual[np.arange(len(p)), p.argmax(axis=1)] -= 1.0
    phi = _projection(belief, rows)
    norm = np.einsum("nc,nc->n", residual, residual) * np.einsum("np,np->n", phi, phi)
    # an order of the items' own, so that the draws do not depend on the pool's order
    order = np.argsort(-norm, kind="stable")
    rows, residual, phi, norm = rows[order], residual[order], phi[order], norm[order]
    selection = [0]
    distance = np.full(len(rows), np.inf)
    while len(selection) < min(k, len(rows)):
        j = selection[-1]
        step = norm + norm[j] - 2.0 * (residual @ residual[j]) * (phi @ phi[j])
        np.minimum(distance, np.maximum(step, 0.0), out=distance)
        distance[selection] = 0.0
        selection.append(_draw(distance, selection, rng))
    return rows[selection]


def batch_bald(belief: Belief, k: int, rng: Generator) -> Ints:
    """Greedy joint mutual information of the batch's labels and the latent functions.

    BatchBALD (Kirsch et al. 2019): I(y_1..k; f) grows item by item among the 300 of largest utility
    (that of `bald` if no policy gave any). Joint draws of the latents have the model's own marginals
    and the correlations of its inducing points; label sequences are enumerated up to 512 and drawn
    beyond.

    Args:
        belief: with latents.
        k: how many.
        rng: the draws.

    Returns:
        [k] indices in the order chosen.
    """
    from workbench.classifiers.calibration import softmax

    candidates = best_first(_utilities(belief, rng, bald), max(300, 5 * k), rng)
    latent = belief.latent
    assert latent is not None  # the registry says that latents are needed
    mean = np.asarray(latent.mean[candidates], dtype=np.float64)
    deviation = np.sqrt(np.asarray(latent.variance[candidates], dtype=np.float64))
    n, n_classes = mean.shape
    draws = _joint_draws(belief, candidates, n_classes, rng)  # [S, n, C], unit variance
    p = softmax(mean + deviation * draws, belief.temperature)
    n_draws = len(p)
    own_entropy = entropy_of(p).mean(axis=0)  # [n] mean conditional entropy
    flat = p.reshape(n_draws, n * n_classes)

    # [M, S] probability of each label sequence under each draw, and its weight if sequences are drawn
    joint: Floats = np.ones((1, n_draws))
    exact = True
    selection: list[int] = []
    spent = 0.0
    for _ in range(min(k, n)):
        together = (joint @ flat / n_draws).reshape(len(joint), n, n_classes)
        safe = np.where(together > 0, together, 1.0)
        if exact:
            entropy = -(safe * np.log(safe)).sum(axis=(0, 2))
        else:  # sequences were drawn from their own distribution: weigh by its inverse
            before = joint.mean(axis=1)[:, None, None]
            entropy = -((together / before) * np.log(safe)).sum(axis=2).mean(axis=0)
        gain = entropy - spent - own_entropy
        gain[selection] = -np.inf
        best = int(gain.argmax())
        selection.append(best)
        spent += own_entropy[best]
        joint, exact = _extend(joint, p[:, best], exact, rng)
    return candidates[np.array(selection)]


def _extend(joint: Floats, p: Floats, exact: bool, rng: Generator) -> tuple[Floats, bool]:
    """Label sequences one item longer: all of them, or as many drawn as are kept."""
    n_classes = p.shape[1]
    if exact and len(joint) * n_classes <= _SEQUENCES:
        longer = joint[:, None, :] * p.T[None, :, :]
        return longer.reshape(-1, joint.shape[1]), True
    if exact:  # from here on, draws: first of the sequences held, by their probability
        weight = joint.mean(axis=1)
        joint = joint[rng.choice(len(joint), _SEQUENCES, p=weight / weight.sum())]
    conditional = joint @ p / joint.sum(axis=1, keepdims=True)  # [M, C]
    cumulative = conditional.cumsum(axis=1)
    label = (rng.random((len(joint), 1)) * cumulative[:, -1:] > cumulative).sum(axis=1)
    return joint * p[:, np.minimum(label, n_classes - 1)].T, False


def _joint_draws(belief: Belief, rows: Ints, n_classes: int, rng: Generator) -> Floats:
    """[S, n, C] standard normal draws, correlated over items as the model's posterior is."""
    factors, residual = posterior_factors(belief, rows)
    total = np.einsum("np,np->n", factors, factors) + residual
    factors = factors / np.sqrt(total)[:, None]
    shared = np.matmul(factors, rng.standard_normal((_DRAWS, factors.shape[1], n_classes)))
    noise = rng.standard_normal(shared.shape)
    noise *= np.sqrt(residual / total)[:, None]
    return shared + noise


def posterior_factors(belief: Belief, rows: Ints, noise: float = _NOISE) -> tuple[Floats, Floats]:
    """Posterior covariance of the latents, one for all classes and up to a scale, as A A' + diag(r).

    Over whitened features, precision I + sum over labelled items of phi phi' / noise; what the
    inducing points cannot tell of an item is its own.

    Args:
        belief: features, labels, perhaps a projection.
        rows: [n] items.
        noise: of a label, as a share of the prior variance.

    Returns:
        A [n, P] and r [n].
    """
    from scipy.linalg import cholesky, solve_triangular

    labelled = belief.labelled[belief.labels >= 0]
    phi = _projection(belief, np.concatenate([rows, labelled]))
    squares = np.einsum("np,np->n", phi, phi)
    # the prior variance is not in the belief; near inducing points the features hold all of it
    prior = float(squares.max(initial=0.0)) or 1.0
    phi_rows, phi_labelled = phi[: len(rows)], phi[len(rows) :]
    precision = phi_labelled.T @ phi_labelled / (noise * prior)
    precision[np.diag_indices_from(precision)] += 1.0
    root = cholesky(precision, lower=True)
    factors: Floats = solve_triangular(root, phi_rows.T, lower=True).T
    return np.ascontiguousarray(factors), np.maximum(prior - squares[: len(rows)], 1e-6 * prior)


def _greedy_determinant(factors: Floats, residual: Floats, k: int, jitter: float | None = None) -> list[int]:
    """Items of greedily largest determinant of A A' + diag(r) beside the first.

    By partial Cholesky with pivoting, O(nP) each.
    """
    variance = np.einsum("np,np->n", factors, factors) + residual
    noise = _NOISE * float(variance.max()) if jitter is None else jitter
    columns = np.empty((k, len(factors)))
    selection = [0]
    while len(selection) < k:
        t, j = len(selection) - 1, selection[-1]
        column = factors @ factors[j]
        column[j] += residual[j]
        column -= columns[:t, j] @ columns[:t]
        column /= np.sqrt(variance[j] + noise)
        columns[t] = column
        variance -= column * column
        variance[selection] = -np.inf
        selection.append(int(variance.argmax()))
    return selection


def _farthest_first(belief: Belief, k: int, rng: Generator, points_of: Callable[[Ints], Floats]) -> Ints:
    rows = _sample(rng.permutation(belief.askable), rng)  # equal distances: at random
    points = points_of(rows)
    centres = points_of(belief.labelled[belief.labels >= 0])
    squares = np.einsum("nd,nd->n", points, points)
    nearest = np.full(len(rows), np.inf)

    def cover(centre: Floats) -> None:
        np.minimum(nearest, squares + centre @ centre - 2.0 * (points @ centre), out=nearest)

    for centre in centres:
        cover(centre)
    selection: list[int] = []
    while len(selection) < min(k, len(rows)):
        if not selection and not len(centres):  # nothing to be far from: start in the middle
            gap = points - points.mean(axis=0)
            selection.append(int(np.einsum("nd,nd->n", gap, gap).argmin()))
        else:
            selection.append(int(nearest.argmax()))
        cover(points[selection[-1]])
        nearest[selection] = -np.inf
    return rows[selection]


def _projection(belief: Belief, rows: Ints) -> Floats:
    """[n, P] features whose inner products are the model's covariances.

    The model's own, or where it has none those of a squared-exponential kernel on the scaled
    features with up to 64 landmarks (Nystrom).
    """
    if belief.inducing_projection is not None:
        return np.asarray(belief.inducing_projection(rows), dtype=np.float64)
    from scipy.linalg import cholesky, solve_triangular

    points = np.asarray(belief.scaled[rows], dtype=np.float64)
    spread = np.unique(np.linspace(0, len(points) - 1, 16 * _LANDMARKS).astype(np.int64))
    distinct = np.unique(points[spread], axis=0)  # copies would leave distances that are rounding alone
    landmarks = distinct[np.unique(np.linspace(0, len(distinct) - 1, _LANDMARKS).astype(np.int64))]
    between = _squared_distances(landmarks, landmarks)
    is_apart = between > 1e-12 * max(float((landmarks * landmarks).sum(axis=1).max(initial=0.0)), 1e-300)
    scale = float(np.median(between[is_apart])) if is_apart.any() else 1.0
    root = cholesky(np.exp(-between / scale) + 1e-6 * np.eye(len(landmarks)), lower=True)
    return solve_triangular(root, np.exp(-_squared_distances(landmarks, points) / scale), lower=True).T


def _squared_distances(A: Floats, B: Floats) -> Floats:
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * (A @ B.T)
    return np.maximum(squares, 0.0)


def _sample(rows: Ints, rng: Generator) -> Ints:
    return rows if len(rows) <= _MOST else rng.choice(rows, _MOST, replace=False)


def _draw(weights: Floats, selection: list[int], rng: Generator) -> int:
    """An index with probability proportional to its weight; any that is not taken if all are 0."""
    total = weights.cumsum()
    if total[-1] <= 0:
        free = np.ones(len(weights), dtype=bool)
        free[selection] = False
        return int(rng.choice(np.flatnonzero(free)))
    return int(np.searchsorted(total, rng.random() * total[-1], side="right"))
