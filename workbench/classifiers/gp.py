"""Base of the GP classifiers: kernel, predictor, state, GPflow model; and sparse ones their fits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from workbench.arrays import Array, Floats, Ints, slices
from workbench.classifiers.base import BaseBayesianClassifier
from workbench.classifiers.calibration import LeftOut
from workbench.classifiers.geometry import Geometry, default_inducing
from workbench.classifiers.guess_weights import judged_by_folds
from workbench.classifiers.latent import Latent
from workbench.classifiers.options import estimator, fitted, option
from workbench.classifiers.predictor import Predictor, both_sides
from workbench.engine.fitting import FitResult, Hyper
from workbench.engine.gaussian import State, q_sqrt_of
from workbench.engine.kernels import KERNELS, Kernel, StationaryKernel, as_kernel
from workbench.engine.projection import Basis, cached_basis, project
from workbench.errors import InputError
from workbench.progress import FitCallback

_HYPER_ROWS = 4000  # rows at a time, and in all for a step between minibatches
_HYPER_STEPS = 30
_HYPER_REACH = np.log(30.0)  # learned values stay within this factor of the options' ones


def refuse_unused(model: Any, names: tuple[str, ...], why: str) -> None:
    """Refuse options that were given but do nothing.

    Args:
        model: the estimator.
        names: options that have no effect.
        why: "with ...", for the message.

    Raises:
        InputError: names the first that is not at its default.
    """
    defaults = {field.name: field.default for field in fields(model)}
    for name in names:
        value = getattr(model, name)
        if value is not defaults[name] and value != defaults[name]:
            raise InputError(f"{name}={value!r} does nothing {why}. Leave it out.")


class WithGPflowModel:
    """Gives a fitted classifier its `gpflow_model_`, built when it is first asked for."""

    @abstractmethod
    def _gpflow_model_of(self) -> Any:
        """The fitted model as GPflow's."""

    @property
    def gpflow_model_(self) -> Any:
        """The fitted model as a `gpflow.models.SVGP`, on scaled features (`geometry_.transform(X)`)."""
        fit: Any = self._value()  # type: ignore[attr-defined]
        check_is_fitted(fit, "predictor_")
        if "_gpflow_model" not in fit.__dict__:
            from workbench.engine.runtime import prepare

            prepare()
            fit._gpflow_model = fit._gpflow_model_of()
        return fit._gpflow_model


@estimator
class GPClassifier(WithGPflowModel, BaseBayesianClassifier):
    """Base of classifiers whose latents have a GP prior; see its subclasses for the options."""

    has_latent: ClassVar[bool] = True

    geometry: Geometry | None = None
    variance: float = option(10.0, above=0.0)
    warm_start: bool = False
    dtype: str = "float64"
    calibration: str | None = option("leave-one-out", choices=("leave-one-out",), optional=True)

    length_scale_: Any = fitted()
    predictor_: Any = fitted()

    @abstractmethod
    def _make_kernel(self, length: Any, variance: float) -> Kernel:
        """The covariance function on scaled features."""

    def _check(self) -> None:
        """Refuse options that do not fit together."""

    @abstractmethod
    def _fold(self) -> None:
        """Make `predictor_` of the fitted arrays."""

    def _previous_columns(self) -> list[tuple[int, int]]:
        """(column, its column in the present state) of the classes that both know."""
        before = {label: c for c, label in enumerate(np.asarray(self._previous_classes).tolist())}
        return [(c, before[label]) for c, label in enumerate(self.classes_.tolist()) if label in before]

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        self._fold()


@estimator
class KernelClassifier(GPClassifier):
    """A GP classifier with a kernel by name, or any GPflow kernel as it is."""

    kernel: Any = "squared-exponential"
    length_scale_factor: float = option(0.6, above=0.0)

    def _check(self) -> None:
        super()._check()
        if isinstance(self.kernel, str):
            if self.kernel not in KERNELS:
                raise InputError(
                    f"kernel must be one of {', '.join(KERNELS)}, or a gpflow.kernels.Kernel; "
                    f"got {self.kernel!r}."
                )
        else:
            as_kernel(self.kernel)
            if getattr(self, "hyperparameters", "fixed") != "fixed":
                raise InputError("Only named kernels can be learned; set hyperparameters='fixed'.")
            refuse_unused(
                self, ("length_scale_factor", "variance"), "with a kernel object, which is used as it is"
            )

    def _make_kernel(self, length: Any, variance: float) -> Kernel:
        if isinstance(self.kernel, str):
            return StationaryKernel(self.kernel, length, variance)
        return as_kernel(self.kernel)


class Data(NamedTuple):
    """Inputs of a fit.

    Attributes:
        scaled: [N, D] scaled features.
        targets: [N, C] one-hot, or signs.
        offset: [N, C] the guess's mean, or None.
    """

    scaled: Floats
    targets: Floats
    offset: Floats | None = None

    def rows(self, some: Any) -> Data:
        """These rows alone."""
        return Data(*(None if part is None else part[some] for part in self))  # type: ignore[arg-type]


class Problem(NamedTuple):
    """Arguments of a solver.

    Attributes:
        data: of the fit.
        hyper: the kernel's values and the inducing points.
        state: where q begins.
        rng: of minibatches.
        callback: as in `fit`.
    """

    data: Data
    hyper: Hyper
    state: Any
    rng: np.random.Generator
    callback: FitCallback | None = None


@estimator
class SparseGPClassifier(GPClassifier):
    """Base of sparse GP classifiers on the solvers of the engine.

    A subclass says which likelihood, what its targets are, and how q is fitted at a given kernel.
    """

    _state_names: ClassVar[tuple[str, ...]] = (
        "mean_",
        "root_",
        "prior_mean_",
        "precision_",
        "linear_",
        "cross_",
        "totals_",
        "length_scale_",
        "variance_",
    )
    _posterior_names: ClassVar[tuple[str, ...]] = _state_names[:7]
    _guess_scale: ClassVar[float] = 3.0
    _most_inducing: ClassVar[int] = 128  # where nobody says how many
    _takes_mean: ClassVar[bool] = False  # a latent a class, and probabilities of latents

    hyperparameters: str = option("fixed", choices=("fixed", "learned"))

    mean_: Floats = fitted()
    root_: Floats = fitted()
    prior_mean_: Floats = fitted()
    variance_: float = fitted()
    kernel_trace_: Floats = fitted()

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _likelihood(self, n_functions: int | None = None) -> Any:
        """The likelihood; the same object for the same options, unless a number of latents is asked for."""

    @abstractmethod
    def _optimise(self, problem: Problem, brief: bool = False) -> FitResult:
        """Fit q at the given kernel; `brief` between two steps of the kernel's own."""

    def _targets(self, codes: Ints) -> Floats:
        """[N, functions] what the likelihood compares f with: one-hot."""
        return (codes[:, None] == np.arange(len(self.classes_))).astype(np.float64)

    def _prior_of_mean(self) -> tuple[float, float | None]:
        """Centre and variance of the latents' prior mean; variance None keeps it fixed."""
        return 0.0, None

    def _n_functions(self) -> int:
        return len(self.classes_)

    def _minibatched(self) -> bool:
        """True if fits between kernel steps take minibatches."""
        return False

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        self._check()
        from workbench.engine.natural_steps import MeanPrior
        from workbench.engine.runtime import prepare

        prepare()
        geometry = self._measure(X, len(codes))
        data = Data(geometry.transform(X, self._numpy_dtype()), self._targets(codes))
        self._mean_prior = MeanPrior(*self._prior_of_mean())
        hyper = self._starting_hyper(geometry)
        state = self._starting_state(len(self._basis(hyper).points))
        rng = np.random.default_rng([self._seed(), 0xC0])
        self._choose_weights(len(codes), 0.0, partial(self._judge, data, codes, hyper))
        data = data._replace(offset=self._offset())
        problem = Problem(data, hyper, state, rng, callback)
        if self.hyperparameters == "fixed":
            fit = self._optimise(problem)
        else:
            fit, hyper = self._learn(problem)
        for name, value in zip(self._posterior_names, fit.posterior, strict=True):
            setattr(self, name, value)
        self._keep(hyper)
        self.objective_, self.objective_trace_ = float(fit.objective), np.asarray(fit.trace, np.float64)
        self.n_iter_ = max(1, fit.n_iter)
        self._fold()

    def _left_out(self, X: Floats, codes: Ints, rows: Ints) -> Floats:
        """By each row's site, taken out of the posterior (docs/math.md, 8)."""
        from workbench.engine.natural_steps import compiled

        q = State(*(getattr(self, name) for name in self._posterior_names))
        scaled = self.geometry_.transform(X[rows], self._numpy_dtype())
        block = block_of(self, Data(scaled, self._targets(codes[rows]), self._offset(rows)), self._hyper())
        sites = compiled(self._likelihood(), block.phi.dtype.name).sites(block, q)
        slope, curvature = (np.asarray(part) for part in sites[:2])
        mean, v = _moments(q, block.phi, block.offset)
        left = np.maximum(1.0 - curvature * v, 0.1)
        mean, v = mean - v * slope / left, v / left + block.residual[:, None]
        if self._n_functions() == 1:
            mean, v = both_sides(mean, v)
        return self._probabilities_of(mean, v, rough=True)

    @property
    def takes_mean(self) -> bool:  # type: ignore[override]
        """A guess is weighed, and fitted with, at a kernel that stays."""
        return self._takes_mean and self.hyperparameters == "fixed"

    def _judge(self, data: Data, codes: Ints, hyper: Hyper, rows: Any, weights: Floats) -> LeftOut:
        """Scores of the held-out labels under brief fits to four fifths of some rows."""
        data = data._replace(offset=self._offset(weights=weights)).rows(rows)
        basis, kernel = self._basis(hyper), self._kernel_of(hyper)
        phi, residual = project(data.scaled, basis, kernel)
        start = State.prior(
            len(basis.points), self._n_functions(), self._mean_prior.mean, self._numpy_dtype()
        )

        def predict(inside: Ints, outside: Ints) -> Floats:
            problem = Problem(data.rows(inside), hyper, start, np.random.default_rng([self._draw, 4]))
            q: Any = self._optimise(problem, brief=True).posterior
            mean, v = _moments(q, phi[outside], data.rows(outside).offset)
            return self._probabilities_of(mean, residual[outside][:, None] + v, rough=True)

        return judged_by_folds(codes[rows], len(self.classes_), self._draw, predict)

    def _probabilities_of(self, mean: Floats, variance: Floats, rough: bool = False) -> Floats:
        """[N, C] class probabilities of Gaussian latents [N, C]; rough ones only choose something."""
        raise NotImplementedError

    def _probabilities(self, X: Floats) -> Floats:
        return self._probabilities_of(*self._latent(X))

    def _probabilities_with(self, X: Floats, mean: Floats) -> Floats:
        latent = self._latent(X)
        return self._probabilities_of(latent.mean + mean, latent.variance)

    def _measure(self, X: Floats, n: int) -> Geometry:
        """The geometry of the fit."""
        count = getattr(self, "n_inducing", None) or min(default_inducing(n), self._most_inducing)
        return self._resolve_geometry(X, count, method=getattr(self, "inducing", "k-means++"))

    def _keep(self, hyper: Hyper) -> None:
        self.length_scale_, self.variance_ = hyper.length_scale, float(hyper.variance)

    def _hyper(self) -> Hyper:
        """The fitted kernel's values and the inducing points."""
        return Hyper(self.length_scale_, self.variance_, self.geometry_.inducing)

    def _option_hyper(self, geometry: Geometry) -> Hyper:
        """The kernel's values as the options say."""
        length = getattr(self, "length_scale_factor", 1.0) * geometry.length_scale
        return Hyper(length, float(self.variance), geometry.inducing)

    def _starting_hyper(self, geometry: Geometry) -> Hyper:
        """Starting values: the options', or on a warm start what was learned."""
        begin = self._option_hyper(geometry)
        learned = self.hyperparameters != "fixed" and self._warm() and hasattr(self, "length_scale_")
        if learned and np.size(self.length_scale_) in (1, len(geometry.shift)):
            before = self._hyper()
            return before if before.inducing.shape == begin.inducing.shape else begin
        return begin

    def _starting_state(self, n_inducing: int) -> Any:
        """The prior, or on a warm start the present posterior, its columns moved to their classes."""
        dtype = self._numpy_dtype()
        fresh = State.prior(n_inducing, self._n_functions(), self._mean_prior.mean, dtype)
        if not self._warm() or not hasattr(self, "mean_") or len(self.mean_) != n_inducing:
            return fresh
        pairs = self._previous_columns()
        if self._n_functions() == 1 or self.mean_.shape[1] == 1:  # one latent stands for a pair of classes
            same = self._n_functions() == self.mean_.shape[1] == 1 and pairs == [(0, 0), (1, 1)]
            pairs = [(0, 0)] if same else []
        for name, new in zip(self._posterior_names, fresh, strict=True):
            if name == "prior_mean_" and self._mean_prior.variance is None:
                continue  # no parameter of the fit: what the options say, of the classes there are now
            old = np.asarray(getattr(self, name), dtype=dtype)
            for c, b in pairs:
                if name in ("mean_", "totals_"):
                    new[:, c] = old[:, b]
                else:
                    new[c] = old[b]
        return fresh

    # ------------------------------------------------------------------ learning the kernel

    def _learn(self, problem: Problem) -> tuple[FitResult, Hyper]:
        """Type-II maximum likelihood (docs/math.md, 2 and 3).

        With full sweeps: L-BFGS on the objective with q at its best, which has the gradient of the
        objective at that q. With minibatches: an epoch, then a step of Adam, in turn (Wenzel et al. 2017).
        """
        hyper, callback = problem.hyper, problem.callback
        theta, centre = self._pack(hyper), self._pack(self._option_hyper(self.geometry_))
        n_logs = len(centre) if not self._moves_inducing() else len(centre) - hyper.inducing.size
        reach = np.concatenate([np.full(n_logs, _HYPER_REACH), np.full(len(centre) - n_logs, np.inf)])
        search = _KernelSearch(self, problem)
        try:
            search.climb(np.clip(theta, centre - reach, centre + reach), centre - reach, centre + reach)
            stopped = False
        except _StoppedError:
            stopped = True
        self.kernel_trace_ = np.exp(np.stack(search.visited)[:, :n_logs])
        best, best_hyper = search.best, self._unpack(search.best_theta, hyper)
        traces, steps = search.traces, search.steps
        if not stopped:
            last = None if callback is None else lambda part, value: callback(0.8 + 0.2 * part, value)
            best = self._optimise(problem._replace(hyper=best_hyper, state=best.posterior, callback=last))
            traces, steps = [*traces, best.trace], steps + best.n_iter
        return best._replace(trace=np.concatenate(traces), n_iter=steps, stopped=stopped), best_hyper

    def _moves_inducing(self) -> bool:
        return False

    def _pack(self, hyper: Hyper) -> Floats:
        """Learned values as one vector: logarithms, then inducing points where they move."""
        n_features = len(self.geometry_.shift)
        lengths = np.broadcast_to(hyper.length_scale, n_features if getattr(self, "ard", False) else 1)
        logs = np.log(np.append(lengths, hyper.variance))
        return np.append(logs, hyper.inducing) if self._moves_inducing() else logs

    def _unpack(self, theta: Floats, like: Hyper) -> Hyper:
        points = like.inducing
        if self._moves_inducing():
            theta, flat = np.split(theta, [len(theta) - points.size])
            points = flat.reshape(points.shape)
        values = np.exp(theta)
        return Hyper(float(values[0]) if len(values) == 2 else values[:-1], float(values[-1]), points)

    def _kernel_gradient(self, data: Data, hyper: Hyper, state: Any, theta: Floats) -> Floats:
        """Gradient of the rows' objective with respect to `theta`."""
        from workbench.engine import gradient as engine

        size = len(theta) - (hyper.inducing.size if self._moves_inducing() else 0)
        logs = Hyper(theta[: size - 1], theta[size - 1], hyper.inducing)
        rows = engine.Rows(data.scaled, data.targets)
        slopes = engine.kernel_gradient(self._likelihood(), self.kernel, rows, logs, state)
        parts = slopes if self._moves_inducing() else slopes[:2]
        return np.concatenate([np.ravel(part) for part in parts])

    # ------------------------------------------------------------------ predicting

    def _kernel_of(self, hyper: Hyper) -> Kernel:
        return self._make_kernel(hyper.length_scale, hyper.variance)

    def _basis(self, hyper: Hyper) -> Basis:
        return cached_basis(hyper.inducing, self._kernel_of(hyper), self._numpy_dtype())

    def _covariance(self) -> Floats:
        root = np.asarray(self.root_, dtype=np.float64)
        return np.matmul(root.transpose(0, 2, 1), root)

    def _fold(self) -> None:
        hyper = self._hyper()
        self.predictor_ = Predictor.from_posterior(
            self.geometry_,
            self._kernel_of(hyper),
            self._basis(hyper),
            self.mean_,
            self._covariance(),
            mean_offset=self.prior_mean_,
            binary=self._n_functions() == 1,
            dtype=self._numpy_dtype(),
        )

    def _gpflow_model_of(self) -> Any:
        from workbench.engine.gpflow_models import as_svgp

        hyper = self._hyper()
        return as_svgp(
            self._likelihood(self._n_functions()),
            self._kernel_of(hyper),
            self._basis(hyper),
            self.mean_,
            q_sqrt_of(np.asarray(self.root_, dtype=np.float64)),
            mean_function=self.prior_mean_,
            n_rows=self.n_rows_,
        )


@estimator
class ClosedFormClassifier(SparseGPClassifier):
    """Base of sparse classifiers fitted by full sweeps or by stochastic natural gradients."""

    batch_size: int | None = option(None, at_least=1)
    learning_rate: float | str = "decaying"
    epochs: int = option(20, at_least=1)
    max_sweeps: int = option(200, at_least=1)
    tol: float = option(1e-4, at_least=0.0)

    def _class_batch(self) -> int:
        """Classes updated a step."""
        return self._n_functions()

    def _minibatched(self) -> bool:
        return self.batch_size is not None

    def _check(self) -> None:
        super()._check()
        rate = self.learning_rate
        if isinstance(rate, str):
            if rate not in ("adaptive", "decaying"):
                raise InputError(f"learning_rate must be 'adaptive', 'decaying' or a number; got {rate!r}.")
        elif not 0 < rate <= 1:
            raise InputError(f"learning_rate must lie in (0, 1]; got {rate}.")
        if self.batch_size is None and getattr(self, "class_batch", None) is None:
            refuse_unused(self, ("learning_rate", "epochs"), "in full sweeps: it is for a batch_size")
        if getattr(self, "ard", False) and self.hyperparameters == "fixed":
            raise InputError("ard=True needs hyperparameters='learned'.")

    def _optimise(self, problem: Problem, brief: bool = False) -> FitResult:
        from workbench.engine import natural_gradient as engine

        data, hyper, state, rng, callback = problem
        n, kernel = len(data.scaled), self._kernel_of(hyper)
        full_batch = self.batch_size is None or self.batch_size >= n
        sweeps = full_batch and self._class_batch() >= self._n_functions()
        shuffle = None if sweeps else rng  # a block then stands for all rows
        rows = engine.ProjectedRows(
            data.scaled, data.targets, self._basis(hyper), kernel, shuffle, data.offset
        )
        if sweeps:
            return engine.ascend(
                self._likelihood(),
                rows,
                state,
                self._mean_prior,
                callback=callback,
                sweeps=20 if brief else self.max_sweeps,
                tol=1e-4 if brief else self.tol,
            )
        schedule = None
        if self.learning_rate == "decaying":
            schedule = engine.Schedule()
        elif self.learning_rate != "adaptive":
            schedule = engine.Schedule(float(self.learning_rate), 0.0, 1.0, 0.0)
        return engine.ascend_stochastic(
            self._likelihood(),
            rows,
            n,
            state,
            self._mean_prior,
            epochs=1 if brief else self.epochs,
            batch_size=self.batch_size or n,
            class_batch=self._class_batch(),
            schedule=schedule,
            rng=rng,
            callback=callback,
        )


class _StoppedError(Exception):
    """A callback asked to stop while hyperparameters were sought."""


class _KernelSearch:
    """The objective as a function of the kernel's values, with q fitted at each."""

    def __init__(self, model: SparseGPClassifier, problem: Problem) -> None:
        self.model, self.problem = model, problem
        self.traces: list[Floats] = []
        self.visited: list[Floats] = []
        self.steps = 0
        self.best = FitResult(problem.state, -np.inf, np.zeros(0), 0)
        self.best_theta = model._pack(problem.hyper)

    def climb(self, theta: Floats, low: Floats, high: Floats) -> None:
        """Search from `theta` within bounds; `best` and `best_theta` are what it finds."""
        if self.model._minibatched():
            self._adam(theta, low, high)
            return
        from scipy.optimize import minimize

        minimize(
            self._loss,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": _HYPER_STEPS, "maxfun": 2 * _HYPER_STEPS, "ftol": 1e-5, "gtol": 1e-2},
        )

    def _fit(self, theta: Floats) -> float:
        """Fit q at these values, from the last q; the objective."""
        hyper, callback = self.model._unpack(theta, self.problem.hyper), self.problem.callback
        fit = self.model._optimise(self.problem._replace(hyper=hyper, callback=None), brief=True)
        self.problem = self.problem._replace(state=fit.posterior)
        self.traces.append(fit.trace)
        self.visited.append(np.array(theta))
        self.steps += fit.n_iter
        if fit.objective > self.best.objective:
            self.best, self.best_theta = fit, np.array(theta)
        fraction = 0.8 * min(1.0, len(self.visited) / (2 * _HYPER_STEPS))
        if callback is not None and callback(fraction, self.best.objective):
            raise _StoppedError
        return float(fit.objective)

    def _gradient(self, theta: Floats, rows: Array | slice) -> Floats:
        """Derivative of the objective of some rows with respect to theta, at the present q."""
        data, hyper, state = self.problem[:3]
        hyper = self.model._unpack(theta, hyper)
        return self.model._kernel_gradient(data.rows(rows), hyper, state, theta)

    def _loss(self, theta: Floats) -> tuple[float, Floats]:
        """Minus the objective and its gradient over all rows."""
        value = self._fit(theta)
        slope = np.zeros(len(theta))
        for rows in slices(len(self.problem.data.scaled), _HYPER_ROWS):
            slope -= self._gradient(theta, rows)
        return -value, slope

    def _adam(self, theta: Floats, low: Floats, high: Floats) -> None:
        """Epochs and steps of Adam in turn, until steps are below 1 %."""
        from workbench.engine.adam import AdamState, adam_step

        n, rate, quiet = len(self.problem.data.scaled), 0.2, 0
        state = AdamState.start([theta])
        for _ in range(_HYPER_STEPS):
            self._fit(theta)
            is_whole = n <= _HYPER_ROWS
            rows = np.arange(n) if is_whole else self.problem.rng.choice(n, _HYPER_ROWS, replace=False)
            gradient = self._gradient(theta, rows) * (n / len(rows))
            (after,), state = adam_step([theta], [-gradient], state, [rate])
            new_theta = np.clip(np.asarray(after), low, high)
            quiet = quiet + 1 if np.abs(new_theta - theta).max() < 0.01 else 0
            theta, rate = new_theta, 0.93 * rate
            if quiet == 3:
                break


def _moments(q: Any, phi: Floats, offset: Any) -> tuple[Floats, Floats]:
    """Means of latents [n, C], and variances without what the inducing points leave open."""
    spread = np.matmul(np.asarray(q.root), phi.T)  # [C, P, n]
    return phi @ q.mean + q.prior_mean + offset, (spread**2).sum(axis=1).T


def block_of(model: SparseGPClassifier, data: Data, hyper: Hyper) -> Any:
    """All rows, projected, as one `workbench.engine.natural_steps.Block` of arrays."""
    from workbench.engine.natural_steps import Block

    phi, residual = project(data.scaled, model._basis(hyper), model._kernel_of(hyper))
    return Block.of(phi, residual, data.targets, data.offset)
