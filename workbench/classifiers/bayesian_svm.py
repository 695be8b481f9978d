"""Bayesian support vector machines: sparse, full GP, linear, and ECM for comparison.

Wenzel et al. 2017, "Bayesian nonlinear support vector machines for big data". The models are
binary; with more classes each class has one against the rest.
"""

from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.argmax import argmax_probabilities
from workbench.classifiers.gp import ClosedFormClassifier, Data, KernelClassifier, block_of
from workbench.classifiers.latent import Latent
from workbench.classifiers.options import estimator, fitted, option
from workbench.classifiers.predictor import Folded, Predictor, both_sides
from workbench.engine.fitting import Hyper, Progress
from workbench.engine.full_svm import full_gp
from workbench.engine.kernels import Kernel, LinearKernel
from workbench.engine.projection import Basis, make_basis
from workbench.progress import FitCallback

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


@cache
def _likelihood_of(n_functions: int) -> Any:
    from workbench.engine.likelihoods import BayesianSVM

    return BayesianSVM(n_functions)


@estimator
class _SVMClassifier(ClosedFormClassifier):
    """Base of the sparse machines: the likelihood, its signs and its probabilities."""

    learning_rate: float | str = "adaptive"
    # kernels learnt from the labels look surer of rows left out than new rows are (docs/math.md, 8)
    _most_power: ClassVar[float] = 2.0

    def _likelihood(self, n_functions: int | None = None) -> Any:
        return _likelihood_of(n_functions or 1)  # columns do not interact: one trace for any number

    def _targets(self, codes: Ints) -> Floats:
        return signs_of(codes, len(self.classes_))

    def _n_functions(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _probabilities_of(self, mean: Floats, variance: Floats, rough: bool = False) -> Floats:
        return svm_probabilities(Latent(mean, variance), self._n_functions() == 1)


@estimator
class BayesianSVMClassifier(_SVMClassifier, KernelClassifier):
    """Bayesian SVM with inducing points; one-vs-rest by itself for more than two classes.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
        n_inducing: P; None is 64, 128 from 1,000 labels. A `geometry` decides where one is given.
        geometry: of the pool; None measures one on X.
        inducing: "k-means++" or "random", where the geometry is measured on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`
            (used as it is: leave `length_scale_factor` and `variance` out).
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
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
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

    n_inducing: int | None = option(None, at_least=1)
    inducing: str = option("k-means++", choices=("k-means++", "random"))
    ard: bool = False


@estimator
class LinearBayesianSVMClassifier(_SVMClassifier):
    """The Bayesian SVM on the features themselves: f = w'x + b; cost grows with D^2, not N^2.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
        geometry: of the pool, for its scaling; None measures one on X.
        variance: prior variance of each weight and of the intercept, for scaled features.
        hyperparameters: "fixed", or "learned": the variance by type-II maximum likelihood.
        batch_size: rows a step of stochastic variational inference; None, or N and more, sweeps
            over all of them.
        learning_rate: of stochastic steps: "adaptive" (the paper's), "decaying", or a number.
        epochs: of stochastic steps.
        max_sweeps: of full sweeps.
        tol: full sweeps end after two gains in a row below this share of the objective.
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of minibatches.

    Attributes:
        classes_, objective_, objective_trace_, n_iter_, geometry_, variance_, predictor_: as in
            `BayesianSVMClassifier`.
        coef_: [1 or C, D] posterior mean weights, for scaled features.
        intercept_: [1 or C].
    """

    # rows that so few weights were fitted to look easy left out, too: its probabilities are never sharpened
    _most_power: ClassVar[float] = 1.0
    variance: float = option(1.0, above=0.0)

    def _measure(self, X: Floats, n: int) -> Any:
        return self._resolve_geometry(X, 1)

    def _option_hyper(self, geometry: Any) -> Hyper:
        return Hyper(1.0, float(self.variance), geometry.inducing)

    def _make_kernel(self, length: Any, variance: float) -> Kernel:
        return LinearKernel(variance)

    def _basis(self, hyper: Hyper) -> Basis:
        # At the origin and the unit vectors the Cholesky factor is known and phi = sqrt(v) (1, x).
        D = len(self.geometry_.shift)
        points = np.concatenate([np.zeros((1, D)), np.eye(D)])
        factor = np.eye(D + 1)
        factor[:, 0] = 1.0
        factor *= np.sqrt(hyper.variance)
        return Basis(points, factor, solve_triangular(factor, np.eye(D + 1), lower=True).T, 0.0)

    def _pack(self, hyper: Hyper) -> Floats:
        return np.log([hyper.variance])

    def _unpack(self, theta: Floats, like: Hyper) -> Hyper:
        return like._replace(variance=float(np.exp(theta[0])))

    def _kernel_gradient(self, data: Data, hyper: Hyper, state: Any, theta: Floats) -> Floats:
        from workbench.engine.natural_steps import compiled, moments

        # f scales with sqrt(v): d/d log v = sum g F / 2 - sum theta V / 2
        block = block_of(self, data, hyper)
        sites = compiled(self._likelihood(), block.phi.dtype.name).sites(block, state)
        F, V = (part.numpy() for part in moments(block, state))  # an exact projection has no residual
        slope, curvature = (part.numpy() for part in sites[:2])
        return np.array([0.5 * float((slope * F).sum() - (curvature * V).sum())])

    @property
    def coef_(self) -> Floats:
        """[1 or C, D] posterior mean weights, for scaled features."""
        return np.sqrt(self.variance_) * np.asarray(self.mean_[1:]).T

    @property
    def intercept_(self) -> Floats:
        """[1 or C] posterior mean intercepts."""
        return np.sqrt(self.variance_) * np.asarray(self.mean_[0])


@estimator
class BatchBayesianSVMClassifier(KernelClassifier):
    """The Bayesian SVM without inducing points: O(N^3) a sweep, for small data.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
        geometry: of the pool, for its scaling and median distance; None measures one on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`.
        length_scale_factor: times the pool's median distance.
        variance: of the kernel.
        max_sweeps: at most this many.
        tol: ends after two gains in a row below this share of the objective.
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
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

    _state_names: ClassVar[tuple[str, ...]] = ("points_", "r_", "weights_", "length_scale_")
    _point_estimate: ClassVar[bool] = False
    _growth: ClassVar[float] = 2.0
    _most_power: ClassVar[float] = _SVMClassifier._most_power

    max_sweeps: int = option(200, at_least=1)
    tol: float = option(1e-4, at_least=0.0)

    points_: Floats = fitted()
    r_: Floats = fitted()
    weights_: Floats = fitted()

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        self._check()
        signs = signs_of(codes, len(self.classes_))
        start = self._previous_r(X, signs) if self._warm() and hasattr(self, "r_") else None
        geometry = self._resolve_geometry(X, 1)
        self.points_ = geometry.transform(X)
        self.length_scale_ = self.length_scale_factor * geometry.length_scale
        K = self._covariance()
        n_problems, report = signs.shape[1], Progress(callback)
        fits = [
            full_gp(
                K,
                signs[:, c],
                point_estimate=self._point_estimate,
                growth=self._growth,
                r=None if start is None else start[:, c],
                sweeps=self.max_sweeps,
                tol=self.tol,
                callback=report.part(c / n_problems, (c + 1) / n_problems).callback,
            )
            for c in range(n_problems)
        ]
        self.r_ = np.stack([fit.posterior.r for fit in fits], axis=1)
        self.weights_ = np.stack([fit.posterior.weights for fit in fits], axis=1)
        length = max(len(fit.trace) for fit in fits)
        self.objective_trace_ = np.sum(
            [np.pad(fit.trace, (0, length - len(fit.trace)), mode="edge") for fit in fits], axis=0
        )
        self.objective_ = float(sum(fit.objective for fit in fits))
        self.n_iter_ = max(fit.n_iter for fit in fits)
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

    def _kernel_at(self) -> Kernel:
        return self._make_kernel(self.length_scale_, self.variance)

    def _covariance(self) -> Floats:
        # the jitter of the sparse models, so that inducing points at the data give this model
        factor = make_basis(self.points_, self._kernel_at()).factor
        return factor @ factor.T

    def _fold(self) -> None:
        K = self._covariance()
        kernel = self._kernel_at()
        n = len(K)
        factors = [
            solve_triangular(cholesky(K + np.diag(r), lower=True), np.eye(n), lower=True).T for r in self.r_.T
        ]
        g = self.geometry_
        self.predictor_ = Predictor(
            shift=g.shift,
            scale=g.scale,
            clip=g.clip,
            kernel=kernel,
            points=self.points_,
            mean_weights=self.weights_,
            mean_offset=np.zeros(len(factors)),
            folded=Folded(
                np.concatenate(factors, axis=1),
                np.full(len(factors), n),
                np.zeros((n, 0)),
                np.zeros(len(factors), dtype=np.int64),
            ),
            whitener=make_basis(self.points_, kernel).whitener,
            binary=len(factors) == 1,
            dtype=self._numpy_dtype(),
        )

    def _probabilities(self, X: Floats) -> Floats:
        return svm_probabilities(self._latent(X), self.r_.shape[1] == 1)

    def _left_out(self, X: Floats, codes: Ints, rows: Ints) -> Floats:
        """By the regression that the last sweep is: targets K w + r w, noise r (docs/math.md, 8)."""
        w, r = self.weights_, self.r_
        factors = np.split(self.predictor_.folded.factors, r.shape[1], axis=1)
        precision = np.stack([(factor**2).sum(axis=1) for factor in factors], axis=1)
        mean = self._covariance() @ w + (r - 1.0 / precision) * w
        latent = mean[rows], (1.0 / precision - r)[rows]
        binary = r.shape[1] == 1
        return svm_probabilities(Latent(*(both_sides(*latent) if binary else latent)), binary)

    def _gpflow_model_of(self) -> Any:
        from workbench.engine.gpflow_models import as_svgp

        # inducing points at the data: v = L^-1 f, with K = L L'
        basis = make_basis(self.points_, self._kernel_at())
        L, K = basis.factor, self._covariance()
        mean = L.T @ self.weights_
        roots = [solve_triangular(cholesky(K + np.diag(r), lower=True), L, lower=True) for r in self.r_.T]
        q_sqrt = np.stack([np.linalg.cholesky(np.eye(len(K)) - A.T @ A) for A in roots])
        return as_svgp(
            _likelihood_of(len(roots)), self._kernel_at(), basis, mean, q_sqrt, n_rows=self.n_rows_
        )


@estimator
class ECMSVMClassifier(BatchBayesianSVMClassifier):
    """Expectation conditional maximisation for the Bayesian SVM (Henao et al. 2014): the competitor.

    The same sweeps with point estimates of f inside the expectations, at the published step size;
    its objective is the SVM's log posterior. Options and attributes as in
    `BatchBayesianSVMClassifier`.
    """

    _point_estimate: ClassVar[bool] = True
    _growth: ClassVar[float] = 1.0
