"""What the sparse Bayesian SVM and logistic-softmax classifiers share: fitting, state, GPflow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import GPflowKernel, Kernel, StationaryKernel
from workbench.engine.projection import Basis, cached_basis, project, relative_jitter
from workbench.errors import InputError

_POSTERIOR = ("mean_", "root_", "prior_mean_", "precision_", "linear_", "cross_", "totals_")
_HYPER_ROWS = 4000  # rows at a time, and in all for a step between minibatches
_HYPER_STEPS = 30
_HYPER_REACH = np.log(30.0)  # learned values stay within this factor of the options' ones


class ConjugateClassifier(BaseBayesianClassifier):
    """Base of classifiers on `workbench.engine.conjugate`; see its subclasses for the options."""

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (*_POSTERIOR, "length_scale_", "variance_")

    n_inducing: int | None
    geometry: Geometry | None
    inducing: str
    kernel: Any
    length_scale_factor: float
    variance: float
    hyperparameters: str
    ard: bool
    batch_size: int | None
    learning_rate: float | str
    epochs: int
    max_sweeps: int
    tol: float
    dtype: str
    mean_: Floats
    root_: Floats
    prior_mean_: Floats
    length_scale_: Any
    variance_: float
    kernel_trace_: Floats
    predictor_: Predictor

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _local(self) -> Any:
        """The likelihood's local step."""

    @abstractmethod
    def _targets(self, codes: Ints) -> Floats:
        """[N, functions] what the local step compares f with."""

    @abstractmethod
    def _gpflow_likelihood(self) -> Any: ...

    def _prior_of_mean(self) -> tuple[float, float | None]:
        """Centre and variance of the latents' prior mean; variance None keeps it fixed."""
        return 0.0, None

    def _n_functions(self) -> int:
        return len(self.classes_)

    def _class_batch(self) -> int:
        return self._n_functions()

    def _binary(self) -> bool:
        return self._n_functions() == 1

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        self._check_options()
        from workbench.engine.runtime import prepare

        prepare()
        from workbench.engine import conjugate

        n = len(codes)
        geometry = self._resolve_geometry(X, self.n_inducing or default_inducing(n), method=self.inducing)
        length, variance = self._starting_kernel(geometry)
        scaled = geometry.transform(X, self._numpy_dtype())
        targets = self._targets(codes)
        prior = conjugate.Prior(*self._prior_of_mean())
        posterior = self._starting_posterior(
            len(self._basis(self._make_kernel(length, variance)).points), prior
        )
        rng = np.random.default_rng([self._seed(), 0xC0])
        if self.hyperparameters == "learned":
            fit, length, variance = self._learn(
                scaled, targets, posterior, prior, length, variance, rng, callback
            )
        else:
            rows = self._rows(scaled, targets, length, variance, rng)
            fit = self._optimise(rows, n, posterior, prior, rng, callback)
        for name, value in zip(_POSTERIOR, fit.posterior, strict=True):
            setattr(self, name, value)
        self.length_scale_, self.variance_ = length, variance
        self.objective_, self.objective_trace_, self.n_iter_ = fit.objective, fit.trace, max(1, fit.steps)
        self._fold()

    def _optimise(
        self,
        rows: Any,
        n: int,
        posterior: Any,
        prior: Any,
        rng: np.random.Generator,
        callback: Callback | None,
        *,
        sweeps: int | None = None,
        tol: float | None = None,
        epochs: int | None = None,
    ) -> Any:
        from workbench.engine import conjugate

        whole = self.batch_size is None or self.batch_size >= n
        if whole and self._class_batch() >= self._n_functions():
            return conjugate.full_batch(
                self._local(), rows, posterior, prior, sweeps=sweeps or self.max_sweeps,
                tol=self.tol if tol is None else tol, callback=callback,
            )  # fmt: skip
        schedule = None
        if self.learning_rate == "decaying":
            schedule = conjugate.Schedule()
        elif self.learning_rate != "adaptive":
            schedule = conjugate.Schedule(float(self.learning_rate), 0.0, 1.0, 0.0)
        return conjugate.stochastic(
            self._local(), rows, n, posterior, prior, epochs=epochs or self.epochs,
            batch_size=self.batch_size or n, class_batch=self._class_batch(), schedule=schedule, rng=rng,
            callback=callback,
        )  # fmt: skip

    def _learn(
        self,
        scaled: Floats,
        targets: Floats,
        posterior: Any,
        prior: Any,
        length: Any,
        variance: float,
        rng: np.random.Generator,
        callback: Callback | None,
    ) -> tuple[Any, Any, float]:
        """Type-II maximum likelihood.

        With full sweeps: L-BFGS on the objective with q at its best, which has the gradient of the
        objective at that q. With minibatches: an epoch, then a step of Adam, in turn (the papers').
        """
        from workbench.engine.conjugate import Fit

        theta = self._pack(length, variance, scaled.shape[1])
        centre = self._pack(*self._option_kernel(self.geometry_), scaled.shape[1])
        low, high = centre - _HYPER_REACH, centre + _HYPER_REACH
        search = _Search(self, scaled, targets, posterior, prior, rng, callback)
        try:
            if self.batch_size is None:
                from scipy.optimize import minimize

                minimize(
                    search.loss, np.clip(theta, low, high), jac=True, method="L-BFGS-B",
                    bounds=list(zip(low, high, strict=True)),
                    options={"maxiter": _HYPER_STEPS, "maxfun": 2 * _HYPER_STEPS, "ftol": 1e-5, "gtol": 1e-2},
                )  # fmt: skip
            else:
                _adam(search, np.clip(theta, low, high), low, high)
            stopped = False
        except _StoppedError:
            stopped = True
        value, theta, posterior = search.best
        self.kernel_trace_ = np.exp(np.stack(search.visited))
        found, variance = self._unpack(theta)
        if stopped:
            trace = np.concatenate(search.traces)
            return Fit(posterior, value, trace, search.steps, True), found, variance
        rows = self._rows(scaled, targets, found, variance, rng)
        last = None if callback is None else lambda part, value: callback(0.8 + 0.2 * part, value)
        fit = self._optimise(rows, len(scaled), posterior, prior, rng, last)
        trace = np.concatenate([*search.traces, fit.trace])
        return fit._replace(trace=trace, steps=search.steps + fit.steps), found, variance

    def _option_kernel(self, geometry: Geometry) -> tuple[Any, float]:
        """Length scale and variance as the options say."""
        return self.length_scale_factor * geometry.length_scale, float(self.variance)

    def _pack(self, length: Any, variance: float, n_features: int) -> Floats:
        """Logarithms of what is learned."""
        lengths = np.broadcast_to(length, n_features if self.ard else 1)
        return np.log(np.append(lengths, variance))

    def _unpack(self, theta: Floats) -> tuple[Any, float]:
        """Length scale (one, or [D]) and variance."""
        values = np.exp(theta)
        return (float(values[0]) if len(values) == 2 else values[:-1]), float(values[-1])

    def _kernel_gradient(self, scaled: Floats, block: Any, posterior: Any, theta: Floats) -> Floats:
        """Gradient of the rows' objective with respect to `theta`."""
        from workbench.engine.hyperparameters import kernel_gradient

        lengths, variance = kernel_gradient(
            self._local(), self.kernel, scaled, self.geometry_.inducing, block, posterior,
            theta[:-1], float(theta[-1]), relative_jitter(self._numpy_dtype()),
        )  # fmt: skip
        return np.append(lengths, variance)

    def _rows(
        self, scaled: Floats, targets: Floats, length: Any, variance: float, rng: np.random.Generator
    ) -> Any:
        from workbench.engine.conjugate import Rows

        kernel = self._make_kernel(length, variance)
        shuffle = rng if self.batch_size is not None else None
        return Rows(scaled, targets, self._basis(kernel), kernel, shuffle)

    def _starting_kernel(self, geometry: Geometry) -> tuple[Any, float]:
        """Length scale and variance to begin with: the options', or on a warm start what was learned."""
        learned = self.hyperparameters == "learned" and self._warm() and hasattr(self, "length_scale_")
        if learned and np.size(self.length_scale_) in (1, len(geometry.shift)):
            return self.length_scale_, float(self.variance_)
        return self._option_kernel(geometry)

    def _starting_posterior(self, n_inducing: int, prior: Any) -> Any:
        """The prior, or on a warm start the present posterior, its columns moved to their classes."""
        from workbench.engine import conjugate

        fresh = conjugate.start(n_inducing, self._n_functions(), prior, self._numpy_dtype())
        if not self._warm() or not hasattr(self, "mean_") or len(self.mean_) != n_inducing:
            return fresh
        before = {label: c for c, label in enumerate(np.asarray(self._previous_classes).tolist())}
        now = self.classes_.tolist()
        if self._binary() or self.mean_.shape[1] == 1:
            if not (self._binary() and list(before) == now):
                return fresh
            pairs = [(0, 0)]
        else:
            pairs = [(c, before[label]) for c, label in enumerate(now) if label in before]
        dtype = self._numpy_dtype()
        for name, new in zip(_POSTERIOR, fresh, strict=True):
            old = np.asarray(getattr(self, name), dtype=dtype)
            for c, b in pairs:
                if name in ("mean_", "totals_"):
                    new[:, c] = old[:, b]
                else:
                    new[c] = old[b]
        return fresh

    def _check_options(self) -> None:
        if self.hyperparameters not in ("fixed", "learned"):
            raise InputError(f"hyperparameters must be 'fixed' or 'learned'; got {self.hyperparameters!r}.")
        if self.hyperparameters == "learned" and not isinstance(self.kernel, str):
            raise InputError("Only named kernels can be learned; set hyperparameters='fixed'.")
        if self.ard and self.hyperparameters == "fixed":
            raise InputError("ard=True needs hyperparameters='learned'.")
        for name in ("length_scale_factor", "variance", "max_sweeps", "epochs", "n_inducing", "batch_size"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be positive; got {value}.")
        rate = self.learning_rate
        if isinstance(rate, str):
            if rate not in ("adaptive", "decaying"):
                raise InputError(f"learning_rate must be 'adaptive', 'decaying' or a number; got {rate!r}.")
        elif not 0 < rate <= 1:
            raise InputError(f"learning_rate must lie in (0, 1]; got {rate}.")

    # ------------------------------------------------------------------ predicting

    def _make_kernel(self, length: Any, variance: float) -> Kernel:
        if isinstance(self.kernel, str):
            return StationaryKernel(self.kernel, length, variance)
        return GPflowKernel(self.kernel)

    def _basis(self, kernel: Kernel) -> Basis:
        return cached_basis(self.geometry_.inducing, kernel, self._numpy_dtype())

    def _gpflow_kernel(self, kernel: Kernel) -> Kernel:
        return kernel

    def _covariance(self) -> Floats:
        root = np.asarray(self.root_, dtype=np.float64)
        return np.matmul(root.transpose(0, 2, 1), root)

    def _fold(self) -> None:
        kernel = self._make_kernel(self.length_scale_, self.variance_)
        self.predictor_ = Predictor.from_posterior(
            self.geometry_, kernel, self._basis(kernel), self.mean_, self._covariance(),
            mean_offset=self.prior_mean_, binary=self._binary(), dtype=self._numpy_dtype(),
        )  # fmt: skip

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)

    def _set_state(self, state: Mapping[str, Array]) -> None:
        missing = [name for name in self._state_names if name not in state]
        if missing:
            raise InputError(f"This is not a saved {type(self).__name__}: it lacks {', '.join(missing)}.")
        super()._set_state(state)
        self._fold()

    @property
    def gpflow_model_(self) -> Any:
        """The fitted model as a `gpflow.models.SVGP` on scaled features (`geometry_.transform(X)`).

        Its `elbo` is the objective; targets are `signs` for SVMs and integer labels [N, 1] else.
        """
        check_is_fitted(self, "mean_")
        if not hasattr(self, "_gpflow_model"):
            from workbench.engine.runtime import prepare

            prepare()
            import gpflow

            from workbench.engine import svgp

            kernel = self._make_kernel(self.length_scale_, self.variance_)
            model = svgp.gpflow_model(
                self._gpflow_likelihood(), self._gpflow_kernel(kernel), self._basis(kernel), self.mean_,
                np.linalg.cholesky(self._covariance()), self.n_rows_,
            )  # fmt: skip
            model.mean_function = gpflow.functions.Constant(np.asarray(self.prior_mean_, dtype=np.float64))
            self._gpflow_model = model
        return self._gpflow_model


class _StoppedError(Exception):
    """A callback asked to stop while hyperparameters were sought."""


class _Search:
    """The objective as a function of the kernel's logarithms, with q fitted at each."""

    def __init__(
        self,
        model: ConjugateClassifier,
        scaled: Floats,
        targets: Floats,
        posterior: Any,
        prior: Any,
        rng: np.random.Generator,
        callback: Callback | None,
    ) -> None:
        self.model, self.scaled, self.targets, self.prior = model, scaled, targets, prior
        self.rng, self.callback = rng, callback
        self.posterior = posterior
        self.traces: list[Floats] = []
        self.visited: list[Floats] = []
        self.steps = 0
        self.best: tuple[float, Floats, Any] = (-np.inf, np.zeros(0), posterior)

    def fit(self, theta: Floats) -> float:
        """Fit q at these hyperparameters, from the last q; the objective."""
        model = self.model
        rows = model._rows(self.scaled, self.targets, *model._unpack(theta), self.rng)
        fit = model._optimise(
            rows, len(self.scaled), self.posterior, self.prior, self.rng, None, sweeps=20, tol=1e-4, epochs=1
        )
        self.posterior = fit.posterior
        self.traces.append(fit.trace)
        self.visited.append(np.array(theta))
        self.steps += fit.steps
        if fit.objective > self.best[0]:
            self.best = (fit.objective, np.array(theta), fit.posterior)
        done = 0.8 * min(1.0, len(self.visited) / (2 * _HYPER_STEPS))
        if self.callback is not None and self.callback(done, self.best[0]):
            raise _StoppedError
        return float(fit.objective)

    def gradient(self, theta: Floats, some: Array | slice) -> Floats:
        """Derivative of the objective of some rows with respect to theta, at the present q."""
        from workbench.engine.conjugate import Block

        model, X = self.model, self.scaled[some]
        kernel = model._make_kernel(*model._unpack(theta))
        phi, rest = project(X, model._basis(kernel), kernel)
        block = Block(phi, rest, self.targets[some].astype(X.dtype))
        return model._kernel_gradient(X, block, self.posterior, theta)

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Minus the objective and its gradient over all rows."""
        value = self.fit(theta)
        slope = np.zeros(len(theta))
        for first in range(0, len(self.scaled), _HYPER_ROWS):
            slope -= self.gradient(theta, slice(first, first + _HYPER_ROWS))
        return -value, slope


def _adam(search: _Search, theta: Floats, low: Floats, high: Floats) -> None:
    """Epochs and steps of Adam in turn, until steps are below 1 %."""
    from workbench.engine.hyperparameters import Adam

    n = len(search.scaled)
    adam = Adam(len(theta), rate=0.2)
    quiet = 0
    for _ in range(_HYPER_STEPS):
        search.fit(theta)
        some = np.arange(n) if n <= _HYPER_ROWS else search.rng.choice(n, _HYPER_ROWS, replace=False)
        gradient = search.gradient(theta, some) * (n / len(some))
        moved = np.clip(theta + adam.step(gradient), low, high)
        quiet = quiet + 1 if np.abs(moved - theta).max() < 0.01 else 0
        theta = moved
        adam.rate *= 0.93
        if quiet == 3:
            break


def default_inducing(n: int) -> int:
    """Inducing points for n labels when nobody says: 64, and 128 from 1,000."""
    return 64 if n < 1000 else 128
