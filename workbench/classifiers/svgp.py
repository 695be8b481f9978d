"""Sparse variational GP classifiers on GPflow's SVGP: softmax, robust-max, Heaviside with noise."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.argmax import argmax_probabilities
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import GPflowKernel, Kernel, StationaryKernel
from workbench.engine.projection import Basis, cached_basis, project
from workbench.engine.softmax import softmax_probabilities
from workbench.errors import InputError

LIKELIHOODS = ("softmax", "robust-max", "heaviside")
OPTIMIZERS = ("natural", "adam", "papers")
HYPERPARAMETERS = ("fixed", "learned", "learned-with-inducing")

# learning rate, epochs, batch: the papers' (000 and 003, section 5) and one that ends in seconds
_ADAM = {"adam": (0.1, 200, 2048), "papers": (5e-4, 1000, 256)}


class SVGPClassifier(BaseBayesianClassifier):
    """Sparse variational GP classifier (Hensman et al. 2015), whitened, on GPflow.

    Args:
        likelihood: "softmax"; "robust-max" (1 - epsilon for the largest latent: over-confident on
            overlapping classes); or "heaviside" on latents with unit noise (multinomial probit).
        classes: labels known up front, in the order of the columns; None takes those of y.
        n_inducing: P; None is 64, 128 from 1,000 labels, 256 from 4,000. A `geometry` decides
            instead where one is given.
        geometry: of the pool; None measures one on X.
        kernel: a name in `workbench.engine.kernels.KERNELS` or a `gpflow.kernels.Kernel`
            (which then ignores `length_scale_factor` and `variance`, and cannot be saved).
        length_scale_factor: times the pool's median distance.
        variance: of the kernel.
        optimizer: "natural" (back-tracked natural gradients, about a dozen sweeps), "adam", or
            "papers" (Adam at 5e-4, 1,000 epochs, batches of 256).
        hyperparameters: "fixed"; "learned" (length scale and variance with q, type-II
            likelihood; squared exponential only) or "learned-with-inducing".
        learning_rate: natural: first step size in (0, 1] (None is 1); Adam: its rate (None is .1, or
            the papers').
        max_iter: sweeps (natural, None is 60) or epochs (Adam). None is the optimizer's.
        batch_size: rows a step, for Adam only; None is the optimizer's
            (2,048 for "adam").
        tol: natural gradients stop after two sweeps that gain less than this share of the bound.
        n_nodes: quasi-random nodes per item for expectations of log p(y | f); None is 64 for
            softmax, 16 for heaviside. Robust-max uses none.
        epsilon: robust-max's share of wrong labels.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of the geometry measured on X, and of batches.

    Attributes:
        classes_: [C] labels.
        objective_: evidence lower bound.
        objective_trace_: [T] bounds while fitting; with learned hyperparameters under Adam,
            estimates from the last batch.
        n_iter_: sweeps or epochs.
        geometry_: scaling and the inducing points at the start.
        mean_: [P, C] whitened posterior means, GPflow's q_mu.
        root_: [C, P, P] their lower triangular square roots, GPflow's q_sqrt.
        inducing_: [P, D] inducing points, scaled units.
        length_scale_, variance_: of the kernel.
        predictor_: NumPy-only latent marginals.
    """

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = ("mean_", "root_", "inducing_", "length_scale_", "variance_")

    mean_: Floats
    root_: Floats
    inducing_: Floats
    length_scale_: float
    variance_: float
    predictor_: Predictor

    def __init__(
        self,
        likelihood: str = "softmax",
        *,
        classes: Any = None,
        n_inducing: int | None = None,
        geometry: Geometry | None = None,
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        variance: float = 10.0,
        optimizer: str = "natural",
        hyperparameters: str = "fixed",
        learning_rate: float | None = None,
        max_iter: int | None = None,
        batch_size: int | None = None,
        tol: float = 1e-4,
        n_nodes: int | None = None,
        epsilon: float = 1e-3,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.likelihood = likelihood
        self.classes = classes
        self.n_inducing = n_inducing
        self.geometry = geometry
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.optimizer = optimizer
        self.hyperparameters = hyperparameters
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.tol = tol
        self.n_nodes = n_nodes
        self.epsilon = epsilon
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        self._check_options()
        from workbench.engine.runtime import prepare

        prepare()
        from workbench.engine import svgp

        start = self._previous_posterior() if self._warm() else None
        geometry = self._resolve_geometry(X, self.n_inducing or _default_inducing(len(codes)))
        dtype = self._numpy_dtype()
        scaled = geometry.transform(X, dtype)
        length_scale = self.length_scale_factor * geometry.length_scale
        hyper = svgp.Hyper(length_scale, float(self.variance), geometry.inducing)
        C = len(self.classes_)
        if (
            start is not None
            and start.inducing.shape == hyper.inducing.shape
            and (
                self.hyperparameters != "fixed"
                or (
                    start.length_scale == hyper.length_scale
                    and start.variance == hyper.variance
                    and np.array_equal(start.inducing, hyper.inducing)
                )
            )
        ):
            hyper = svgp.Hyper(start.length_scale, start.variance, start.inducing)
            q = svgp.Variational(start.mean.astype(dtype), start.root.astype(dtype))
        else:
            q = svgp.prior(len(hyper.inducing), C, dtype)
        kernels = svgp.compiled(
            self.likelihood,
            C,
            self.n_nodes or svgp.NODES[self.likelihood],
            float(self.epsilon),
            np.dtype(dtype).name,
        )
        rng = np.random.default_rng([self._seed(), 0x5169])
        fit, hyper = self._optimise(svgp, kernels, scaled, codes, q, hyper, rng, callback)
        self.mean_, self.root_ = fit.posterior
        self.inducing_ = np.asarray(hyper.inducing, dtype=np.float64)
        self.length_scale_, self.variance_ = hyper.length_scale, hyper.variance
        self.objective_ = float(fit.objective)
        self.objective_trace_ = np.asarray(fit.trace, dtype=np.float64)
        self.n_iter_ = fit.steps
        self._fold()

    def _optimise(
        self,
        svgp: Any,
        kernels: Any,
        scaled: Floats,
        codes: Ints,
        q: Any,
        hyper: Any,
        rng: np.random.Generator,
        callback: Callback | None,
    ) -> tuple[Any, Any]:
        natural = self.optimizer == "natural"
        learned = self.hyperparameters != "fixed"
        move = self.hyperparameters == "learned-with-inducing"
        sweeps = 60 if self.max_iter is None else self.max_iter
        if natural and learned:
            return svgp.fit_type2(
                kernels, scaled, codes, q, hyper, inducing=move, rate=0.05, rounds=20, max_iter=sweeps,
                tol=self.tol, rng=rng, callback=callback,
            )  # fmt: skip
        if natural:
            first = 1.0 if self.learning_rate is None else self.learning_rate
            fit = svgp.fit_natural(
                kernels, self._data(svgp, scaled, codes, hyper), q,
                rate=first, max_iter=sweeps, tol=self.tol, callback=callback,
            )  # fmt: skip
            return fit, hyper
        rate, epochs, batch = _ADAM[self.optimizer]
        rate = rate if self.learning_rate is None else self.learning_rate
        epochs = epochs if self.max_iter is None else self.max_iter
        batch = batch if self.batch_size is None else self.batch_size
        options = dict(rate=rate, epochs=epochs, batch_size=batch, rng=rng, callback=callback)
        if not learned:
            return svgp.fit_adam(kernels, self._data(svgp, scaled, codes, hyper), q, **options), hyper
        fit, hyper = svgp.learn(kernels, scaled, codes, q, hyper, train=(True, True, True, move), **options)
        # the trace holds estimates from batches; the objective is that of all rows
        value = svgp.elbo(kernels, self._data(svgp, scaled, codes, hyper), fit.posterior)
        return fit._replace(objective=value), hyper

    def _data(self, svgp: Any, scaled: Floats, codes: Ints, hyper: Any) -> Any:
        kernel = self._make_kernel(hyper.length_scale, hyper.variance)
        basis = cached_basis(hyper.inducing, kernel, self._numpy_dtype())
        return svgp.Projected(*project(scaled, basis, kernel), codes)

    def _previous_posterior(self) -> _Start | None:
        """The present posterior with its columns in the order of the present classes."""
        if not hasattr(self, "mean_"):
            return None
        P, old = self.mean_.shape
        before = {label: c for c, label in enumerate(np.asarray(self._previous_classes).tolist())}
        if old != len(before):
            return None
        mean = np.zeros((P, len(self.classes_)))
        root = np.broadcast_to(np.eye(P), (len(self.classes_), P, P)).copy()
        for c, label in enumerate(self.classes_.tolist()):
            if label in before:
                mean[:, c], root[c] = self.mean_[:, before[label]], self.root_[before[label]]
        return _Start(mean, root, self.inducing_, self.length_scale_, self.variance_)

    def _check_options(self) -> None:
        for name, known in (
            ("likelihood", LIKELIHOODS),
            ("optimizer", OPTIMIZERS),
            ("hyperparameters", HYPERPARAMETERS),
        ):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}.")
        if self.hyperparameters != "fixed" and self.kernel != "squared-exponential":
            raise InputError("Only the squared exponential's hyperparameters can be learned; "
                             "set hyperparameters='fixed' or kernel='squared-exponential'.")  # fmt: skip
        if self.optimizer == "natural" and self.batch_size is not None:
            raise InputError("batch_size is for optimizer='adam' or 'papers'; natural sweeps use all rows.")
        if self.n_nodes is not None and (self.likelihood == "robust-max" or self.n_nodes < 2):
            raise InputError("n_nodes must be at least 2, and robust-max uses no nodes: leave it None there.")
        if not 0 < self.epsilon < 1:
            raise InputError(f"epsilon must lie between 0 and 1; got {self.epsilon}.")
        for name in ("length_scale_factor", "variance", "learning_rate", "max_iter", "batch_size"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be positive; got {value}.")

    # ------------------------------------------------------------------ predicting

    def _make_kernel(self, length_scale: float, variance: float) -> Kernel:
        if isinstance(self.kernel, str):
            return StationaryKernel(self.kernel, length_scale, variance)
        return GPflowKernel(self.kernel)

    def _basis(self) -> tuple[Kernel, Basis]:
        kernel = self._make_kernel(self.length_scale_, self.variance_)
        return kernel, cached_basis(self.inducing_, kernel, self._numpy_dtype())

    def _fold(self) -> None:
        kernel, basis = self._basis()
        covariance = self.root_ @ np.swapaxes(self.root_, 1, 2)
        self.predictor_ = Predictor.from_posterior(
            self.geometry_, kernel, basis, self.mean_, covariance, dtype=self._numpy_dtype()
        )

    @property
    def gpflow_model_(self) -> Any:
        """The fitted model as a `gpflow.models.SVGP` on scaled features (`geometry_.transform(X)`)."""
        check_is_fitted(self, "mean_")
        if not hasattr(self, "_gpflow_model"):
            from workbench.engine.runtime import prepare

            prepare()
            from workbench.engine import svgp

            kernel, basis = self._basis()
            self._gpflow_model = svgp.gpflow_model(
                svgp.make_likelihood(self.likelihood, len(self.classes_), self.n_nodes, self.epsilon),
                kernel, basis, self.mean_, self.root_, self.n_rows_,
            )  # fmt: skip
        return self._gpflow_model

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)

    def _probabilities(self, X: Floats) -> Floats:
        return likelihood_probabilities(self.likelihood, *self._latent(X), epsilon=self.epsilon)

    def _set_state(self, state: Any) -> None:
        missing = [name for name in self._state_names if name not in state]
        if missing:
            raise InputError(f"This is not a saved {type(self).__name__}: it lacks {', '.join(missing)}.")
        super()._set_state(state)
        self._fold()


class _Start:
    def __init__(self, mean: Floats, root: Floats, inducing: Floats, length_scale: float, variance: float):
        self.mean, self.root, self.inducing = mean, root, inducing
        self.length_scale, self.variance = float(length_scale), float(variance)


def likelihood_probabilities(
    likelihood: str, mean: Array, variance: Array, *, epsilon: float = 1e-3
) -> Floats:
    """Class probabilities of Gaussian latents under a likelihood; NumPy only, deterministic.

    Args:
        likelihood: "softmax", "robust-max" or "heaviside" (with unit noise).
        mean: [N, C].
        variance: [N, C], >= 0.
        epsilon: robust-max's share of wrong labels.

    Returns:
        [N, C], rows sum to 1.
    """
    if likelihood == "softmax":
        return softmax_probabilities(mean, variance)
    if likelihood == "heaviside":
        return argmax_probabilities(mean, np.asarray(variance, dtype=np.float64) + 1.0)
    p = argmax_probabilities(mean, variance)
    p = (1.0 - epsilon) * p + epsilon / (p.shape[1] - 1) * (1.0 - p)
    return p / p.sum(axis=1, keepdims=True)


def _default_inducing(n: int) -> int:
    return 64 if n < 1000 else 128 if n < 4000 else 256
