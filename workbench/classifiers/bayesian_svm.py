"""Bayesian support vector machines: sparse, full GP, linear, and ECM for comparison.

Wenzel et al. 2017, "Bayesian nonlinear support vector machines for big data". The models are
binary; with more classes each class has one against the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.argmax import argmax_probabilities
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.conjugate import ConjugateClassifier
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Folded, Predictor
from workbench.engine.full_svm import FullGP, full_gp
from workbench.engine.kernels import GPflowKernel, Kernel, LinearKernel, StationaryKernel
from workbench.engine.projection import Basis, make_basis
from workbench.errors import InputError

LINK_NOISE = 2.0
"""Noise variance of each latent in a one-vs-rest argmax: two functions f and -f then give the
binary model's Phi(f)."""


def svm_probabilities(latent: Latent, binary: bool) -> Floats:
    """Class probabilities of Bayesian SVM latents.

    Args:
        latent: mean and variance [N, C]; binary ones as (-f/2, f/2), (v/2, v/2).
        binary: a single f stands behind both columns.

    Returns:
        [N, C]: Phi(E f / sqrt(1 + var f)) (equation 13 with its square root), or for one-vs-rest
        the probability that each class's noisy latent is the largest.
    """
    if binary:
        f = 2.0 * latent.mean[:, 1].astype(np.float64)
        z = f / np.sqrt(1.0 + 2.0 * latent.variance[:, 1].astype(np.float64))
        return np.stack([ndtr(-z), ndtr(z)], axis=1)
    return argmax_probabilities(latent.mean, latent.variance.astype(np.float64) + LINK_NOISE)


def signs_of(codes: Array, n_classes: int) -> Floats:
    """Targets of the one-vs-rest problems.

    Args:
        codes: [N] in 0..C-1.
        n_classes: C.

    Returns:
        [N, 1] (class 1 against class 0) for two classes, else [N, C]; -1 or +1.
    """
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


class BayesianSVMClassifier(ConjugateClassifier):
    """Bayesian SVM with inducing points; one-vs-rest by itself for more than two classes.

    Args:
        classes: labels known up front, in the order of the columns; None takes those of y.
        n_inducing: P; None is 64, 128 from 1,000 labels. A `geometry` decides where one is given.
        geometry: of the pool; None measures one on X.
        inducing: "k-means++" or "random", where the geometry is measured on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`
            (which then ignores `length_scale_factor` and `variance`).
        length_scale_factor: times the pool's median distance. (The paper's theta is sqrt(2) times
            a length scale.)
        variance: of the kernel.
        hyperparameters: "fixed", or "learned" by type-II maximum likelihood (the paper's 4.3).
        ard: learn one length scale per feature.
        batch_size: rows a step of stochastic variational inference (the paper's algorithm 1, with
            the factor N/|S| it lacks); None, or N and more, sweeps over all of them.
        learning_rate: of stochastic steps: "adaptive" (the paper's), "decaying", or a number.
        epochs: of stochastic steps.
        max_sweeps: of full sweeps.
        tol: full sweeps end after two gains in a row below this share of the objective.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of the geometry measured on X, and of minibatches.

    Attributes:
        classes_: [C] labels.
        objective_: lower bound on the log pseudo-evidence, summed over one-vs-rest problems.
        objective_trace_: [T] after each sweep, or epoch.
        n_iter_: sweeps or epochs.
        geometry_: scaling and inducing points.
        mean_: [P, 1 or C] whitened posterior means.
        root_: [1 or C, P, P] inverse Cholesky factors of the whitened posterior precisions.
        length_scale_, variance_: of the kernel.
        kernel_trace_: [T, ...] length scale(s) and variance visited while they were learned.
        predictor_: NumPy-only latent marginals.
    """

    def __init__(
        self,
        *,
        classes: Any = None,
        n_inducing: int | None = None,
        geometry: Geometry | None = None,
        inducing: str = "k-means++",
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        variance: float = 10.0,
        hyperparameters: str = "fixed",
        ard: bool = False,
        batch_size: int | None = None,
        learning_rate: float | str = "adaptive",
        epochs: int = 20,
        max_sweeps: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.n_inducing = n_inducing
        self.geometry = geometry
        self.inducing = inducing
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.hyperparameters = hyperparameters
        self.ard = ard
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    def _local(self) -> Any:
        from workbench.engine.bayesian_svm import hinge

        return hinge

    def _targets(self, codes: Ints) -> Floats:
        return signs_of(codes, len(self.classes_))

    def _n_functions(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _gpflow_likelihood(self) -> Any:
        from workbench.engine.conjugate_likelihoods import Hinge

        return Hinge(self._n_functions())

    def _probabilities(self, X: Floats) -> Floats:
        return svm_probabilities(self._latent(X), self._binary())


class LinearBayesianSVMClassifier(BayesianSVMClassifier):
    """The Bayesian SVM on the features themselves: f = w'x + b; cost grows with D^2, not N^2.

    Args:
        classes: labels known up front, in the order of the columns; None takes those of y.
        geometry: of the pool, for its scaling; None measures one on X.
        variance: prior variance of each weight and of the intercept, for scaled features.
        hyperparameters: "fixed", or "learned": the variance by type-II maximum likelihood.
        batch_size: rows a step of stochastic variational inference; None, or N and more, sweeps
            over all of them.
        learning_rate: of stochastic steps: "adaptive" (the paper's), "decaying", or a number.
        epochs: of stochastic steps.
        max_sweeps: of full sweeps.
        tol: full sweeps end after two gains in a row below this share of the objective.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of minibatches.

    Attributes:
        classes_, objective_, objective_trace_, n_iter_, geometry_, variance_, predictor_: as in
            `BayesianSVMClassifier`.
        coef_: [1 or C, D] posterior mean weights, for scaled features.
        intercept_: [1 or C].
    """

    n_inducing = 1
    inducing = "k-means++"
    kernel = "linear"
    length_scale_factor = 1.0
    ard = False

    def __init__(
        self,
        *,
        classes: Any = None,
        geometry: Geometry | None = None,
        variance: float = 1.0,
        hyperparameters: str = "fixed",
        batch_size: int | None = None,
        learning_rate: float | str = "adaptive",
        epochs: int = 20,
        max_sweeps: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.geometry = geometry
        self.variance = variance
        self.hyperparameters = hyperparameters
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    def _make_kernel(self, length: Any, variance: float) -> Kernel:
        return LinearKernel(variance)

    def _basis(self, kernel: Kernel) -> Basis:
        assert isinstance(kernel, LinearKernel)
        # At the origin and the unit vectors the Cholesky factor is known and phi = sqrt(v) (1, x).
        D = len(self.geometry_.shift)
        points = np.concatenate([np.zeros((1, D)), np.eye(D)])
        factor = np.eye(D + 1)
        factor[:, 0] = 1.0
        factor *= np.sqrt(kernel.variance)
        return Basis(points, factor, solve_triangular(factor, np.eye(D + 1), lower=True).T, 0.0)

    def _starting_kernel(self, geometry: Geometry) -> tuple[Any, float]:
        _, variance = super()._starting_kernel(geometry)
        return 1.0, variance

    def _pack(self, length: Any, variance: float, n_features: int) -> Floats:
        return np.log([variance])

    def _unpack(self, theta: Floats) -> tuple[Any, float]:
        return 1.0, float(np.exp(theta[0]))

    def _kernel_gradient(self, scaled: Floats, block: Any, posterior: Any, theta: Floats) -> Floats:
        from workbench.engine import conjugate

        # f scales with sqrt(v): d/d log v = sum g F / 2 - sum theta V / 2
        slope, curvature, _ = conjugate.compiled(self._local(), block.phi.dtype.name).slopes(
            *block, *posterior[:3]
        )
        F = block.phi @ posterior.mean
        V = np.stack([((block.phi @ R.T) ** 2).sum(axis=1) for R in posterior.root], axis=1)
        return np.array([0.5 * float((slope * F).numpy().sum() - (curvature * V).numpy().sum())])

    def _gpflow_kernel(self, kernel: Kernel) -> Kernel:
        import gpflow

        assert isinstance(kernel, LinearKernel)
        return GPflowKernel(gpflow.kernels.Linear(kernel.variance) + gpflow.kernels.Constant(kernel.variance))

    @property
    def coef_(self) -> Floats:
        """[1 or C, D] posterior mean weights, for scaled features."""
        return np.sqrt(self.variance_) * np.asarray(self.mean_[1:]).T

    @property
    def intercept_(self) -> Floats:
        """[1 or C] posterior mean intercepts."""
        return np.sqrt(self.variance_) * np.asarray(self.mean_[0])


class BatchBayesianSVMClassifier(BaseBayesianClassifier):
    """The Bayesian SVM without inducing points: O(N^3) a sweep, for small data.

    Args:
        classes: labels known up front, in the order of the columns; None takes those of y.
        geometry: of the pool, for its scaling and median distance; None measures one on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`.
        length_scale_factor: times the pool's median distance.
        variance: of the kernel.
        max_sweeps: at most this many.
        tol: ends after two gains in a row below this share of the objective.
        warm_start: `fit` starts from what the present posterior says of the new rows.
        dtype: of predictions; the fit is in float64.
        random_state: of the geometry measured on X.

    Attributes:
        classes_: [C] labels.
        objective_: lower bound on the log pseudo-evidence, summed over one-vs-rest problems.
        objective_trace_: [T] of the slowest problem's length, each problem's last value held.
        n_iter_: sweeps of the slowest problem.
        r_: [N, 1 or C] expected 1 / E[1 / lambda].
        predictor_: NumPy-only latent marginals.
    """

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = ("points_", "r_", "weights_", "length_scale_")
    _point_estimate: ClassVar[bool] = False
    _growth: ClassVar[float] = 2.0

    points_: Floats
    r_: Floats
    weights_: Floats
    length_scale_: float
    predictor_: Predictor

    def __init__(
        self,
        *,
        classes: Any = None,
        geometry: Geometry | None = None,
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        variance: float = 10.0,
        max_sweeps: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.geometry = geometry
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        for name in ("length_scale_factor", "variance", "max_sweeps"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name)}.")
        signs = signs_of(codes, len(self.classes_))
        start = self._previous_r(X, signs) if self._warm() and hasattr(self, "r_") else None
        geometry = self._resolve_geometry(X, 1)
        self.points_ = geometry.transform(X)
        self.length_scale_ = self.length_scale_factor * geometry.length_scale
        K = self._covariance()
        fits: list[FullGP] = []
        n_problems = signs.shape[1]
        for c in range(n_problems):
            report = None if callback is None else _part_of(callback, c, n_problems, fits)
            fits.append(
                full_gp(
                    K, signs[:, c], point_estimate=self._point_estimate, growth=self._growth,
                    r=None if start is None else start[:, c], sweeps=self.max_sweeps, tol=self.tol,
                    callback=report,
                )
            )  # fmt: skip
        self.r_ = np.stack([fit.r for fit in fits], axis=1)
        self.weights_ = np.stack([fit.weights for fit in fits], axis=1)
        length = max(len(fit.trace) for fit in fits)
        self.objective_trace_ = np.sum(
            [np.pad(fit.trace, (0, length - len(fit.trace)), mode="edge") for fit in fits], axis=0
        )
        self.objective_ = float(sum(fit.objective for fit in fits))
        self.n_iter_ = max(fit.steps for fit in fits)
        self._fold()

    def _previous_r(self, X: Floats, signs: Floats) -> Floats | None:
        """[N, 1 or C] sqrt(E[(1 - y f)^2]) under the present posterior; None if classes changed."""
        if np.asarray(self._previous_classes).tolist() != self.classes_.tolist():
            return None
        mean, variance = self.predictor_(X)
        if signs.shape[1] == 1:
            mean, variance = 2.0 * mean[:, 1:], 2.0 * variance[:, 1:]
        spread = 0.0 if self._point_estimate else variance
        return np.sqrt(np.maximum((1.0 - signs * mean) ** 2 + spread, 1e-6)).astype(np.float64)

    def _make_kernel(self) -> Kernel:
        if isinstance(self.kernel, str):
            return StationaryKernel(self.kernel, self.length_scale_, self.variance)
        return GPflowKernel(self.kernel)

    def _covariance(self) -> Floats:
        # the jitter of the sparse models, so that inducing points at the data give this model
        factor = make_basis(self.points_, self._make_kernel()).factor
        return factor @ factor.T

    def _fold(self) -> None:
        K = self._covariance()
        kernel = self._make_kernel()
        n = len(K)
        factors = [
            solve_triangular(cholesky(K + np.diag(r), lower=True), np.eye(n), lower=True).T for r in self.r_.T
        ]
        g = self.geometry_
        self.predictor_ = Predictor(
            shift=g.shift, scale=g.scale, clip=g.clip, kernel=kernel, points=self.points_,
            mean_weights=self.weights_, mean_offset=np.zeros(len(factors)),
            folded=Folded(
                np.concatenate(factors, axis=1), np.full(len(factors), n),
                np.zeros((n, 0)), np.zeros(len(factors), dtype=np.int64),
            ),
            whitener=make_basis(self.points_, kernel).whitener, binary=len(factors) == 1,
            dtype=self._numpy_dtype(),
        )  # fmt: skip

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)

    def _probabilities(self, X: Floats) -> Floats:
        return svm_probabilities(self._latent(X), self.r_.shape[1] == 1)

    def _set_state(self, state: Mapping[str, Array]) -> None:
        missing = [name for name in self._state_names if name not in state]
        if missing:
            raise InputError(f"This is not a saved {type(self).__name__}: it lacks {', '.join(missing)}.")
        super()._set_state(state)
        self._fold()


class ECMSVMClassifier(BatchBayesianSVMClassifier):
    """Expectation conditional maximisation for the Bayesian SVM (Henao et al. 2014): the competitor.

    The same sweeps with point estimates of f inside the expectations, at the published step size;
    its objective is the SVM's log posterior. Options and attributes as in
    `BatchBayesianSVMClassifier`.
    """

    _point_estimate: ClassVar[bool] = True
    _growth: ClassVar[float] = 1.0


def _part_of(callback: Callback, index: int, count: int, done: list[FullGP]) -> Callback:
    """A callback for one of several problems: fractions of the whole, objectives added up."""

    def report(fraction: float, objective: float) -> bool | None:
        return callback((index + fraction) / count, objective + sum(fit.objective for fit in done))

    return report
