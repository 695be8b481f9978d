"""Logistic-softmax GP classifiers: variational (sparse) and Gibbs (exact, small data)."""

from functools import cache
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Floats, Ints, slices
from workbench.classifiers.calibration import softmax
from workbench.classifiers.gp import ClosedFormClassifier, KernelClassifier
from workbench.classifiers.options import estimator, fitted, option
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import Kernel, OffsetKernel
from workbench.engine.projection import make_basis
from workbench.engine.quadrature import logistic_softmax_probabilities
from workbench.errors import InputError
from workbench.progress import FitCallback

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


@cache
def _likelihood_of(bound: str, n_classes: int) -> Any:
    from workbench.engine.likelihoods import LogisticSoftmax

    return LogisticSoftmax(n_classes, bound)


@estimator
class LogisticSoftmaxClassifier(ClosedFormClassifier, KernelClassifier):
    """Sparse GP with p(y = k | f) = sigma(f_k) / sum_c sigma(f_c): closed-form updates, calibrated.

    Galy-Fajou et al. 2019, "Multi-class Gaussian process classification made conjugate".

    Args:
        bound: "joint" (tighter at the same cost), "mean-field" (the paper's: under-confident), or
            "plain" (no augmentation: the most accurate of the three, several times slower).
        classes: labels known up front, sorted in the columns; None takes those of y.
        n_inducing: P; None is 64, 128 from 1,000 labels. A `geometry` decides where one is given.
        geometry: of the pool; None measures one on X.
        inducing: "k-means++" or "random", where the geometry is measured on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`
            (used as it is: leave `length_scale_factor` and `variance` out).
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
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
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

    _takes_mean: ClassVar[bool] = True

    bound: str = option("joint", choices=BOUND_NAMES)
    n_inducing: int | None = option(None, at_least=1)
    inducing: str = option("k-means++", choices=("k-means++", "random"))
    prior_mean: float | str = "learned"
    ard: bool = False
    class_batch: int | None = option(None, at_least=1)

    def _likelihood(self, n_functions: int | None = None) -> Any:
        return _likelihood_of(self.bound, n_functions or 0)  # no bound depends on C: one trace for any

    def _prior_of_mean(self) -> tuple[float, float | None]:
        return _prior_of_mean(self.prior_mean, len(self.classes_))

    def _class_batch(self) -> int:
        return self._n_functions() if self.class_batch is None else self.class_batch

    def _check(self) -> None:
        super()._check()
        if self.bound == "plain" and (self.batch_size is not None or self.class_batch is not None):
            raise InputError(
                "bound='plain' uses all rows and classes: leave batch_size and class_batch None."
            )
        self._prior_of_mean()

    def _probabilities_of(self, mean: Floats, variance: Floats, rough: bool = False) -> Floats:
        return logistic_softmax_probabilities(mean, variance, rough=rough)


@estimator
class LogisticSoftmaxGibbsClassifier(KernelClassifier):
    """Exact samples of the logistic-softmax GP by Gibbs sampling; no inducing points, O(C N^3) a draw.

    Galy-Fajou et al. 2019, section 4.3. Look at `diagnostics_` before trusting the result.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
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
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
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

    _state_names: ClassVar[tuple[str, ...]] = (
        "samples_",
        "noise_",
        "points_",
        "length_scale_",
        "r_hat_",
        "effective_sample_size_",
        "r_hat_by_item_",
        "effective_by_item_",
    )

    prior_mean: float | str = "learned"
    n_samples: int = option(400, at_least=1)
    burn_in: int = option(100, at_least=0)
    n_chains: int = option(2, at_least=1)
    slice_moves: int = option(3, at_least=0)

    samples_: Floats = fitted()
    noise_: Floats = fitted()
    points_: Floats = fitted()
    r_hat_: float = fitted()
    effective_sample_size_: float = fitted()
    r_hat_by_item_: Floats = fitted()
    effective_by_item_: Floats = fitted()

    # ------------------------------------------------------------------ fitting

    @property
    def _centre(self) -> float:
        return _prior_of_mean(self.prior_mean, len(self.classes_))[0]

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        from workbench.engine import logistic_softmax_gibbs as gibbs

        self._check()
        C, chains = len(self.classes_), int(self.n_chains)
        warm = self._warm() and hasattr(self, "samples_")
        start = self._previous_means(X) if warm else None
        geometry = self._resolve_geometry(X, 1)
        self.points_ = geometry.transform(X)
        self.length_scale_ = self.length_scale_factor * geometry.length_scale
        basis = make_basis(self.points_, self._kernel_at())
        draws = gibbs.sample(
            basis.factor @ basis.factor.T,
            codes,
            C,
            prior_mean=self._centre,
            start=start,
            draws=-(-int(self.n_samples) // chains),
            burn_in=-(-int(self.burn_in) // (4 if warm else 1)),
            chains=chains,
            seed=self._seed(),
            slice_moves=int(self.slice_moves),
            callback=callback,
        )
        # chains side by side: the order of draws within a chain stays
        f = draws.f.reshape(-1, *draws.f.shape[2:])
        whitened = basis.whitener.T @ (f - self._centre).transpose(1, 0, 2).reshape(len(codes), -1)
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
        means = np.full((len(X), len(self.classes_)), self._centre)
        old = self.predictor_.mean(X)
        for c, before in self._previous_columns():
            means[:, c] = old[:, before]
        return means

    # ------------------------------------------------------------------ predicting

    def _kernel_at(self) -> Kernel:
        kernel = self._make_kernel(self.length_scale_, self.variance)
        spread = _prior_of_mean(self.prior_mean, len(self.classes_))[1]
        return kernel if spread is None else OffsetKernel(kernel, spread)

    def _fold(self) -> None:
        kernel = self._kernel_at()
        mean, covariance = self._moments()
        self.predictor_ = Predictor.from_posterior(
            self.geometry_,
            kernel,
            make_basis(self.points_, kernel),
            mean,
            covariance,
            mean_offset=self._centre,
            dtype=self._numpy_dtype(),
        )

    def _moments(self) -> tuple[Floats, Floats]:
        """Mean [N, C] and covariance [C, N, N] of the whitened draws."""
        mean = self.samples_.mean(axis=0)
        spread = self.samples_ - mean
        return mean, np.einsum("snc,smc->cnm", spread, spread, optimize=True) / len(spread)

    def _gpflow_model_of(self) -> Any:
        """The Gaussian of the draws' moments."""
        from workbench.engine.gpflow_models import as_svgp

        kernel, (mean, covariance) = self._kernel_at(), self._moments()
        # fewer draws than points leave directions without spread
        q_sqrt = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(mean)))
        return as_svgp(
            _likelihood_of("joint", len(self.classes_)),
            kernel,
            make_basis(self.points_, kernel),
            mean,
            q_sqrt,
            mean_function=np.full(mean.shape[1], self._centre),
            n_rows=self.n_rows_,
        )

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

    def _left_out(self, X: Floats, codes: Ints, rows: Ints) -> Floats:
        """By draws weighed with 1 / p(own label): E[p / p_y] / E[1 / p_y] (docs/math.md, 8)."""
        return self._probabilities(X[rows], codes[rows])

    def _probabilities(self, X: Floats, without: Ints | None = None) -> Floats:
        """Means over the draws; of the posterior without the rows' own labels where these are given."""
        from scipy.special import log_expit

        S, N, C = self.samples_.shape
        flat = self.samples_.transpose(1, 0, 2).reshape(N, S * C)
        prior = self.predictor_.kernel.diagonal
        out = np.empty((len(X), C))
        rows = max(1, (1 << 21) // (S * C))
        for part in slices(len(X), rows):
            phi = self.predictor_.project(X[part]).astype(np.float64)
            residual = prior(self.predictor_.scaled(X[part])).astype(np.float64)
            residual -= np.einsum("np,np->n", phi, phi)
            f = self._centre + (phi @ flat).reshape(len(phi), S, C)
            f += np.sqrt(np.maximum(residual, 0.0))[:, None, None] * self.noise_
            log_s = log_expit(f)  # sigma(f) itself is 0 for all classes of far draws
            if without is not None:
                log_s -= np.take_along_axis(log_s, without[part, None, None], axis=2)
                log_s -= log_s.max(axis=(1, 2), keepdims=True)
            out[part] = (softmax(log_s) if without is None else np.exp(log_s)).mean(axis=1)
        return out / out.sum(axis=1, keepdims=True)


def _stratified_normals(n: int, n_classes: int, seed: int) -> Floats:
    """[n, C] standard normal values, every column the same n quantiles in an order of its own.

    They stand for what the training points leave open at a new point: the same for every point, so
    that a prediction does not depend on the rows it is asked with.
    """
    from scipy.special import ndtri

    rng = np.random.default_rng([seed, 0x61BB5])
    quantiles = ndtri((np.arange(n) + 0.5) / n)
    return np.stack([rng.permutation(quantiles) for _ in range(n_classes)], axis=1)
