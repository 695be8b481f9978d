"""Exact samples of the logistic-softmax GP's posterior, for small data; NumPy and Polya-Gamma.

Paper 002, section 4.3, with its Poisson rate corrected. Given f the augmented variables are

    lambda_i ~ Exp(sum_c sigma(f_ic))
    n_ic     ~ Poisson(lambda_i sigma(-f_ic))
    omega_ic ~ PG(y_ic + n_ic, |f_ic|)

and given those f_c is Gaussian. No inducing points: O(C N^3) a draw.

Alone this mixes slowly: where every f_c is low the likelihood hardly feels a shift common to all
classes, while lambda and n tie f to where it is (wine, variance 10: 4 effective draws of 1,000).
After each sweep a few elliptical slice moves (Murray, Adams and MacKay 2010), which are exact and
have nothing to tune, change the common shift and then each f_c: 140 effective draws.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import expit, log_expit

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError, install_command
from workbench.progress import FitCallback

# A rate of 1e9 pins sigma(f) to 1e-9 already; beyond, Poisson counts leave the integers.
_LARGEST_RATE = 1e9
_TINY = 1e-300
# from here on PG(b, c) is an inverse Gaussian of mean b / 2c and shape b^2 / 4, up to exp(-c); the package
# gives 100 times the mean at PG(1, 300), and NaN from 700 on
_FAR = 50.0


class Draws(NamedTuple):
    """Samples of a Gibbs run.

    Attributes:
        f: [chains, S, N, C] latent functions at the training points, kept draws only.
        log_likelihood: [chains, T] sum_i log p(y_i | f_i) of every draw, burn-in included.
        burn_in: draws dropped from each chain.
        stopped: a callback asked to stop.
    """

    f: Floats
    log_likelihood: Floats
    burn_in: int
    stopped: bool


class Diagnostics(NamedTuple):
    """True if the chains agree.

    Attributes:
        r_hat: largest split R-hat over items, classes and the log likelihood; near 1 when the
            chains have mixed, above 1.05 they need more draws.
        effective_sample_size: the smallest of the same quantities, over all chains together.
        r_hat_by_item: [N, C].
        effective_by_item: [N, C].
    """

    r_hat: float
    effective_sample_size: float
    r_hat_by_item: Floats
    effective_by_item: Floats


def sample(
    K: Floats,
    codes: Ints,
    n_classes: int,
    *,
    prior_mean: float = 0.0,
    start: Floats | None = None,
    draws: int,
    burn_in: int,
    chains: int,
    seed: int,
    slice_moves: int = 3,
    callback: FitCallback | None = None,
) -> Draws:
    """Run the chains.

    Args:
        K: [N, N] prior covariance of each f_c at the training points, positive definite.
        codes: [N] classes in 0..C-1.
        n_classes: C.
        prior_mean: of every f_c.
        start: [N, C] where every chain begins; without it, independent draws from the prior, which
            is what R-hat wants.
        draws: kept from each chain.
        burn_in: dropped from each chain.
        chains: how many.
        seed: of all randomness; each chain has its own stream.
        slice_moves: rounds of slice moves after each sweep; 0 is the paper's sampler.
        callback: (fraction, mean log likelihood of the chains' last draws) -> True to stop; then
            what was drawn is kept, the first half dropped if the burn-in was not over.

    Returns:
        The draws.

    Raises:
        InputError: polyagamma is not installed.
    """
    _polya_gamma()
    total = burn_in + draws
    lower = cholesky(K, lower=True)
    y = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
    streams = [np.random.default_rng([seed, chain]) for chain in range(chains)]
    shape = (len(K), n_classes)
    if start is None:
        state = [prior_mean + lower @ rng.standard_normal(shape) for rng in streams]
    else:
        state = [np.array(start, dtype=np.float64) for _ in streams]
    f = np.empty((chains, total, *shape))
    log_likelihood = np.empty((chains, total))
    count, stopped = 0, False
    for t in range(total):
        for c, rng in enumerate(streams):
            state[c] = gibbs_step(state[c], y, K, lower, prior_mean, rng)
            if slice_moves:
                state[c] = shift_move(state[c], y, lower, prior_mean, rng)
            for _ in range(slice_moves):
                state[c] = class_moves(state[c], y, lower, prior_mean, rng)
            f[c, t] = state[c]
            log_likelihood[c, t] = log_probability(state[c], codes).sum()
        count = t + 1
        if callback is not None and callback(count / total, float(log_likelihood[:, t].mean())):
            stopped = count < total
            break
    dropped = burn_in if count > burn_in else count // 2
    return Draws(f[:, dropped:count], log_likelihood[:, :count], dropped, stopped)


def gibbs_step(
    f: Floats, y: Floats, K: Floats, lower: Floats, prior_mean: float, rng: np.random.Generator
) -> Floats:
    """One draw of everything: lambda and n given f, omega given both, then f.

    Args:
        f: [N, C].
        y: [N, C] one-hot.
        K: [N, N] prior covariance.
        lower: [N, N] its Cholesky factor.
        prior_mean: of f.
        rng: source of randomness.

    Returns:
        The next f [N, C].
    """
    counts, omega = augmentation(f, y, rng)
    new = np.empty_like(f)
    for c in range(f.shape[1]):
        new[:, c] = _gaussian(0.5 * (y[:, c] - counts[:, c]), omega[:, c], K, lower, prior_mean, rng)
    return new


def augmentation(f: Floats, y: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """N [N, C] and omega [N, C] given f [N, C] and one-hot y [N, C]."""
    rate = np.minimum(rng.exponential(size=len(f)) / np.maximum(expit(f).sum(axis=1), _TINY), _LARGEST_RATE)
    counts = rng.poisson(rate[:, None] * expit(-f)).astype(np.float64)
    shape = y + counts
    omega = np.zeros_like(f)
    size = np.abs(f)
    is_positive = shape > 0  # PG(0, c) is a point mass at 0, which the sampler refuses
    is_far = is_positive & (size > _FAR)
    is_near = is_positive & ~is_far
    omega[is_near] = _polya_gamma()(shape[is_near], size[is_near], random_state=rng)
    omega[is_far] = rng.wald(0.5 * shape[is_far] / size[is_far], 0.25 * shape[is_far] ** 2)
    return counts, omega


def _polya_gamma() -> Callable[..., Any]:
    """The sampler of Polya-Gamma variables, an extra."""
    try:
        from polyagamma import random_polyagamma
    except ImportError as error:
        raise InputError(
            f"The Gibbs sampler needs the package polyagamma: {install_command('polyagamma')}. "
            "logistic-softmax approximates the same model without it."
        ) from error
    return random_polyagamma


def _gaussian(
    linear: Floats, w: Floats, K: Floats, lower: Floats, prior_mean: float, rng: np.random.Generator
) -> Floats:
    """A draw from the density proportional to N(f; m0, K) exp(linear' f - f' diag(w) f / 2).

    A prior draw g plus A r, A = (diag w + K^-1)^-1, r = linear - w m0 + w^1/2 e - w g: solving
    through I + W^1/2 K W^1/2 allows w = 0.
    """
    g = lower @ rng.standard_normal(len(K))
    root = np.sqrt(w)
    r = linear - w * prior_mean + root * rng.standard_normal(len(K)) - w * g
    B = root[:, None] * K * root
    B[np.diag_indices_from(B)] += 1.0
    Kr = K @ r
    correction = root * cho_solve((cholesky(B, lower=True, overwrite_a=True), True), root * Kr)
    return prior_mean + g + Kr - K @ correction


def _slice(
    log_likelihood: Callable[[Floats], float], x: Floats, nu: Floats, rng: np.random.Generator
) -> Floats:
    """Elliptical slice sampling: from x, with nu drawn from x's zero-mean Gaussian prior."""
    level = log_likelihood(x) + np.log(rng.random())
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    while True:
        proposal: Floats = x * np.cos(angle) + nu * np.sin(angle)
        # an interval shrunk to nothing is x itself
        if log_likelihood(proposal) > level or high - low < 1e-10:
            return proposal
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = rng.uniform(low, high)


def shift_move(f: Floats, y: Floats, lower: Floats, prior_mean: float, rng: np.random.Generator) -> Floats:
    """Move the mean of f over classes, a GP with covariance K / C; differences between classes stay.

    Args:
        f: [N, C].
        y: [N, C] one-hot.
        lower: [N, N] Cholesky factor of K.
        prior_mean: of f.
        rng: source of randomness.

    Returns:
        The next f [N, C].
    """
    common = f.mean(axis=1)
    differences = f - common[:, None] + prior_mean
    own_values = (y * differences).sum(axis=1)

    def log_likelihood(x: Floats) -> float:
        s = expit(differences + x[:, None])
        return float(log_expit(own_values + x).sum() - np.log(np.maximum(s.sum(axis=1), _TINY)).sum())

    nu = lower @ rng.standard_normal(len(f)) / np.sqrt(f.shape[1])
    shift = _slice(log_likelihood, common - prior_mean, nu, rng)
    return differences + shift[:, None]


def class_moves(f: Floats, y: Floats, lower: Floats, prior_mean: float, rng: np.random.Generator) -> Floats:
    """Move each f_c given the others.

    Args:
        f: [N, C].
        y: [N, C] one-hot.
        lower: [N, N] Cholesky factor of K.
        prior_mean: of f.
        rng: source of randomness.

    Returns:
        The next f [N, C].
    """
    f = f.copy()
    s = expit(f)
    for c in range(f.shape[1]):
        rival_sum = np.delete(s, c, axis=1).sum(axis=1)
        is_own = y[:, c] > 0

        def log_likelihood(x: Floats, rival_sum: Floats = rival_sum, is_own: Array = is_own) -> float:
            g = prior_mean + x
            total = np.maximum(rival_sum + expit(g), _TINY)
            return float(log_expit(g[is_own]).sum() - np.log(total).sum())

        nu = lower @ rng.standard_normal(len(f))
        f[:, c] = prior_mean + _slice(log_likelihood, f[:, c] - prior_mean, nu, rng)
        s[:, c] = expit(f[:, c])
    return f


def log_probability(f: Floats, codes: Ints) -> Floats:
    """Log p(y | f) of the logistic-softmax.

    Args:
        f: [..., N, C].
        codes: [N].

    Returns:
        [..., N].
    """
    from scipy.special import logsumexp

    log_s = log_expit(f)
    log_own = np.take_along_axis(log_s, np.broadcast_to(codes[:, None], (*f.shape[:-1], 1)), axis=-1)[..., 0]
    return log_own - logsumexp(log_s, axis=-1)


def diagnose(draws: Draws) -> Diagnostics:
    """Split R-hat and effective sample size of every latent value and of the log likelihood.

    Args:
        draws: from `sample`.
    """
    likelihood = draws.log_likelihood[:, draws.burn_in :, None]
    r_items = split_r_hat(draws.f)
    n_items = effective_sample_size(draws.f)
    return Diagnostics(
        r_hat=float(max(r_items.max(), split_r_hat(likelihood)[0])),
        effective_sample_size=float(min(n_items.min(), effective_sample_size(likelihood)[0])),
        r_hat_by_item=r_items,
        effective_by_item=n_items,
    )


def _halves(x: Array) -> Floats:
    """[chains, S, ...] as [2 chains, S // 2, ...]."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, x.shape[1] - half :]]).astype(np.float64)


def split_r_hat(x: Array) -> Floats:
    """Potential scale reduction of half chains (Gelman et al., Bayesian Data Analysis, 3rd ed., 11.4).

    Args:
        x: [chains, S, ...] draws.

    Returns:
        [...]; NaN below four draws a chain, 1 where nothing varies.
    """
    if x.shape[1] < 4:
        return np.full(x.shape[2:], np.nan)
    parts = _halves(x)
    n = parts.shape[1]
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (n - 1) / n + between / within
    return np.sqrt(np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0)))


def effective_sample_size(x: Array) -> Floats:
    """Independent draws that would estimate the mean as well, over all chains.

    Autocorrelations of the half chains, summed in pairs until a pair's sum is negative and made
    monotone (Geyer 1992; Vehtari et al. 2021, equation 11 onwards).

    Args:
        x: [chains, S, ...] draws.

    Returns:
        [...]; NaN below four draws a chain, the number of draws where nothing varies.
    """
    if x.shape[1] < 4:
        return np.full(x.shape[2:], np.nan)
    parts = _halves(x)
    m, n = parts.shape[:2]
    centred = parts - parts.mean(axis=1, keepdims=True)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n].mean(axis=0) / n  # [n, ...]
    within = covariance[0] * n / (n - 1)
    pooled = covariance[0] + parts.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - covariance * n / (n - 1)) / pooled
    rho = np.where(pooled > 0, rho, 0.0)
    rho[0] = 1.0
    pairs = rho[: 2 * (n // 2)].reshape(n // 2, 2, *x.shape[2:]).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(positive, pairs, np.inf), axis=0)
    time = -1.0 + 2.0 * np.where(positive, monotone, 0.0).sum(axis=0)
    # antithetic chains may do better than independent draws, within reason
    return m * n / np.maximum(time, 1.0 / np.log10(max(m * n, 10)))
