"""Logistic-softmax GP classifiers: variational (sparse) and Gibbs (exact, small data)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.conjugate import ConjugateClassifier
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import GPflowKernel, Kernel, OffsetKernel, StationaryKernel
from workbench.engine.projection import make_basis
from workbench.engine.quadrature import logistic_softmax_probabilities
from workbench.errors import InputError

BOUND_NAMES = ("joint", "mean-field", "plain")
PRIOR_MEANS = ("learned", "log-classes")


def _prior_of_mean(option: float | str, n_classes: int) -> tuple[float, float | None]:
    """Centre and variance (None: fixed) of the latents' prior mean."""
    if option == "learned":
        return -float(np.log(n_classes)), 1.0
    if option == "log-classes":
        return -float(np.log(n_classes)), None
    if isinstance(option, str):
        raise InputError(
            f"prior_mean must be a number, {' or '.join(map(repr, PRIOR_MEANS))}; got {option!r}."
        )
    return float(option), None


class LogisticSoftmaxClassifier(ConjugateClassifier):
    """Sparse GP with p(y = k | f) = sigma(f_k) / sum_c sigma(f_c): closed-form updates, calibrated.

    Galy-Fajou et al. 2019, "Multi-class Gaussian process classification made conjugate".

    Args:
        bound: "joint" (tighter at the same cost), "mean-field" (the paper's: under-confident), or
            "plain" (no augmentation: the most accurate of the three, several times slower).
        classes: labels known up front, in the order of the columns; None takes those of y.
        n_inducing: P; None is 64, 128 from 1,000 labels. A `geometry` decides where one is given.
        geometry: of the pool; None measures one on X.
        inducing: "k-means++" or "random", where the geometry is measured on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`
            (which then ignores `length_scale_factor` and `variance`).
        length_scale_factor: times the pool's median distance.
        variance: of the kernel.
        prior_mean: of the latents: "learned" (one per class, around -log C), "log-classes" (-log C),
            or a number. At many classes 0 is badly under-confident.
        hyperparameters: "fixed", or "learned" by type-II maximum likelihood.
        ard: learn one length scale per feature.
        batch_size: rows a step of stochastic variational inference; None, or N and more, sweeps
            over all of them.
        class_batch: None, or classes updated a step (the paper's algorithm 2); for many classes.
        learning_rate: of stochastic steps: "decaying", "adaptive", or a number.
        epochs: of stochastic steps.
        max_sweeps: of full sweeps.
        tol: full sweeps end after two gains in a row below this share of the bound.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of the geometry measured on X, and of minibatches.

    Attributes:
        classes_: [C] labels.
        objective_: the bound at the end; with a learned prior mean, its log prior included.
        objective_trace_: [T] after each sweep, or epoch.
        n_iter_: sweeps or epochs.
        geometry_: scaling and inducing points.
        mean_: [P, C] whitened posterior means.
        root_: [C, P, P] inverse Cholesky factors of the whitened posterior precisions.
        prior_mean_: [C].
        length_scale_, variance_: of the kernel.
        kernel_trace_: [T, ...] length scale(s) and variance visited while they were learned.
        predictor_: NumPy-only latent marginals.
    """

    def __init__(
        self,
        bound: str = "joint",
        *,
        classes: Any = None,
        n_inducing: int | None = None,
        geometry: Geometry | None = None,
        inducing: str = "k-means++",
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        variance: float = 10.0,
        prior_mean: float | str = "learned",
        hyperparameters: str = "fixed",
        ard: bool = False,
        batch_size: int | None = None,
        class_batch: int | None = None,
        learning_rate: float | str = "decaying",
        epochs: int = 20,
        max_sweeps: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.bound = bound
        self.classes = classes
        self.n_inducing = n_inducing
        self.geometry = geometry
        self.inducing = inducing
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.prior_mean = prior_mean
        self.hyperparameters = hyperparameters
        self.ard = ard
        self.batch_size = batch_size
        self.class_batch = class_batch
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    def _local(self) -> Any:
        from workbench.engine.logistic_softmax import BOUNDS

        return BOUNDS[self.bound]

    def _targets(self, codes: Ints) -> Floats:
        return (codes[:, None] == np.arange(len(self.classes_))).astype(np.float64)

    def _prior_of_mean(self) -> tuple[float, float | None]:
        return _prior_of_mean(self.prior_mean, len(self.classes_))

    def _class_batch(self) -> int:
        return self._n_functions() if self.class_batch is None else self.class_batch

    def _gpflow_likelihood(self) -> Any:
        from workbench.engine.conjugate_likelihoods import LogisticSoftmax

        return LogisticSoftmax(len(self.classes_), self.bound)

    def _check_options(self) -> None:
        super()._check_options()
        if self.bound not in BOUND_NAMES:
            raise InputError(f"bound must be one of {', '.join(BOUND_NAMES)}; got {self.bound!r}.")
        if self.bound == "plain" and (self.batch_size is not None or self.class_batch is not None):
            raise InputError(
                "bound='plain' uses all rows and classes: leave batch_size and class_batch None."
            )
        if self.class_batch is not None and self.class_batch < 1:
            raise InputError(f"class_batch must be at least 1; got {self.class_batch}.")
        self._prior_of_mean()

    def _probabilities(self, X: Floats) -> Floats:
        return logistic_softmax_probabilities(*self._latent(X))


class LogisticSoftmaxGibbsClassifier(BaseBayesianClassifier):
    """Exact samples of the logistic-softmax GP by Gibbs sampling; no inducing points, O(C N^3) a draw.

    Galy-Fajou et al. 2019, section 4.3. Look at `diagnostics_` before trusting the result.

    Args:
        classes: labels known up front, in the order of the columns; None takes those of y.
        geometry: of the pool, for its scaling and median distance; None measures one on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`.
        length_scale_factor: times the pool's median distance.
        variance: of the kernel.
        prior_mean: of the latents: "learned" (integrated over, one per class around -log C),
            "log-classes" (-log C), or a number.
        n_samples: draws kept, over all chains.
        burn_in: draws dropped from each chain; a quarter of it on a warm start.
        n_chains: independent chains.
        slice_moves: rounds of elliptical slice moves after each sweep, which help chains mix; 0 is
            the paper's sampler.
        warm_start: chains start at the present posterior mean.
        dtype: of predictions; sampling is in float64.
        random_state: of everything drawn.

    Attributes:
        classes_: [C] labels.
        objective_: mean log likelihood of the draws kept.
        objective_trace_: [T] mean over chains of the log likelihood, burn-in included.
        n_iter_: draws of each chain.
        samples_: [S, N, C] draws of the whitened latents at the training points.
        diagnostics_: `workbench.engine.logistic_softmax_gibbs.Diagnostics`: split R-hat, effective
            sample sizes.
        predictor_: NumPy-only latent moments.
    """

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (
        "samples_", "noise_", "points_", "length_scale_",
        "r_hat_", "effective_sample_size_", "r_hat_by_item_", "effective_by_item_",
    )  # fmt: skip

    samples_: Floats
    noise_: Floats
    points_: Floats
    length_scale_: float
    r_hat_: float
    effective_sample_size_: float
    r_hat_by_item_: Floats
    effective_by_item_: Floats
    predictor_: Predictor

    def __init__(
        self,
        *,
        classes: Any = None,
        geometry: Geometry | None = None,
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        variance: float = 10.0,
        prior_mean: float | str = "learned",
        n_samples: int = 400,
        burn_in: int = 100,
        n_chains: int = 2,
        slice_moves: int = 3,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.geometry = geometry
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.prior_mean = prior_mean
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.slice_moves = slice_moves
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        from workbench.engine import logistic_softmax_gibbs as gibbs

        self._check_options()
        C, chains = len(self.classes_), int(self.n_chains)
        warm = self._warm() and hasattr(self, "samples_")
        start = self._previous_means(X) if warm else None
        geometry = self._resolve_geometry(X, 1)
        self.points_ = geometry.transform(X)
        self.length_scale_ = self.length_scale_factor * geometry.length_scale
        centre, _ = _prior_of_mean(self.prior_mean, C)
        basis = make_basis(self.points_, self._make_kernel())
        draws = gibbs.sample(
            basis.factor @ basis.factor.T, codes, C, prior_mean=centre, start=start,
            draws=-(-int(self.n_samples) // chains), burn_in=-(-int(self.burn_in) // (4 if warm else 1)),
            chains=chains, seed=self._seed(), slice_moves=int(self.slice_moves), callback=callback,
        )  # fmt: skip
        # chains side by side: the order of draws within a chain stays
        f = draws.f.reshape(-1, *draws.f.shape[2:])
        whitened = basis.whitener.T @ (f - centre).transpose(1, 0, 2).reshape(len(codes), -1)
        self.samples_ = np.ascontiguousarray(whitened.reshape(len(codes), len(f), C).transpose(1, 0, 2))
        self.noise_ = _stratified_normals(len(f), C, self._seed())
        self.objective_trace_ = draws.log_likelihood.mean(axis=0)
        self.objective_ = float(draws.log_likelihood[:, draws.burn_in :].mean())
        self.n_iter_ = draws.log_likelihood.shape[1]
        d = gibbs.diagnose(draws)
        self.r_hat_, self.effective_sample_size_ = d.r_hat, d.effective_sample_size
        self.r_hat_by_item_, self.effective_by_item_ = d.r_hat_by_item, d.effective_by_item
        self._fold()

    def _previous_means(self, X: Floats) -> Floats:
        """[N, C] present posterior means at X; the prior mean for classes that are new."""
        centre, _ = _prior_of_mean(self.prior_mean, len(self.classes_))
        means = np.full((len(X), len(self.classes_)), centre)
        before = {label: c for c, label in enumerate(np.asarray(self._previous_classes).tolist())}
        old = self.predictor_.mean(X)
        for c, label in enumerate(self.classes_.tolist()):
            if label in before:
                means[:, c] = old[:, before[label]]
        return means

    def _check_options(self) -> None:
        for name in ("n_samples", "n_chains", "length_scale_factor", "variance"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name)}.")
        for name in ("burn_in", "slice_moves"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must not be negative; got {getattr(self, name)}.")
        _prior_of_mean(self.prior_mean, len(self.classes_))

    # ------------------------------------------------------------------ predicting

    def _make_kernel(self) -> Kernel:
        kernel: Kernel
        if isinstance(self.kernel, str):
            kernel = StationaryKernel(self.kernel, self.length_scale_, self.variance)
        else:
            kernel = GPflowKernel(self.kernel)
        _, spread = _prior_of_mean(self.prior_mean, len(self.classes_))
        return kernel if spread is None else OffsetKernel(kernel, spread)

    def _fold(self) -> None:
        kernel = self._make_kernel()
        centre, _ = _prior_of_mean(self.prior_mean, len(self.classes_))
        mean = self.samples_.mean(axis=0)
        spread = self.samples_ - mean
        covariance = np.einsum("snc,smc->cnm", spread, spread, optimize=True) / len(spread)
        self.predictor_ = Predictor.from_posterior(
            self.geometry_, kernel, make_basis(self.points_, kernel), mean, covariance,
            mean_offset=centre, dtype=self._numpy_dtype(),
        )  # fmt: skip

    @property
    def diagnostics_(self) -> Any:
        """Split R-hat and effective sample sizes of the last fit."""
        from workbench.engine.logistic_softmax_gibbs import Diagnostics

        return Diagnostics(
            float(self.r_hat_),
            float(self.effective_sample_size_),
            self.r_hat_by_item_,
            self.effective_by_item_,
        )

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)

    def _probabilities(self, X: Floats) -> Floats:
        from scipy.special import expit

        S, N, C = self.samples_.shape
        centre, _ = _prior_of_mean(self.prior_mean, C)
        flat = self.samples_.transpose(1, 0, 2).reshape(N, S * C)
        prior = self.predictor_.kernel.diagonal
        out = np.empty((len(X), C))
        rows = max(1, (1 << 21) // (S * C))
        for first in range(0, len(X), rows):
            part = slice(first, first + rows)
            phi = self.predictor_.project(X[part]).astype(np.float64)
            rest = prior(self.predictor_.scaled(X[part])).astype(np.float64) - np.einsum("np,np->n", phi, phi)
            f = centre + (phi @ flat).reshape(len(phi), S, C)
            f += np.sqrt(np.maximum(rest, 0.0))[:, None, None] * self.noise_
            s = expit(f)
            out[part] = (s / s.sum(axis=2, keepdims=True)).mean(axis=1)
        return out / out.sum(axis=1, keepdims=True)

    def _set_state(self, state: Mapping[str, Array]) -> None:
        missing = [name for name in self._state_names if name not in state]
        if missing:
            raise InputError(f"This is not a saved {type(self).__name__}: it lacks {', '.join(missing)}.")
        super()._set_state(state)
        self._fold()


def _stratified_normals(n: int, n_classes: int, seed: int) -> Floats:
    """[n, C] standard normal values, every column the same n quantiles in an order of its own.

    They stand for what the training points leave open at a new point: the same for every point, so
    that a prediction does not depend on the rows it is asked with.
    """
    from scipy.special import ndtri

    rng = np.random.default_rng([seed, 0x61BB5])
    quantiles = ndtri((np.arange(n) + 0.5) / n)
    return np.stack([rng.permutation(quantiles) for _ in range(n_classes)], axis=1)
