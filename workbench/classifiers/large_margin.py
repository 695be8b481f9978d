"""The large-margin GP as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import calibration as cal
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine import projection, wide_mean
from workbench.engine.kernels import KERNELS, GPflowKernel, Kernel, StationaryKernel, kernel_from_arrays
from workbench.engine.projection import Basis
from workbench.errors import InputError

N_INDUCING = 64
N_MEAN = 448
# from here on the mean gets its wide basis, and a length scale may be chosen
LABELS_A_CLASS = 20
LABELS = 200
WIDE_BYTES = 250_000_000  # the wide basis looks at no more rows than fit into this
LEFT_OUT_ROWS = 100_000
CANDIDATES = (0.5, 0.7, 1.0, 1.4, 2.0)  # length scales tried, times the default
_POINTS_BY_LABELS = ((4000, 256), (1000, 128))  # without a wide basis
_LEARNING_ROUNDS = 5
# standard errors; of .5, 1, 1.5, 2, 2.5 and never it gave the lowest error and likelihood on 20 sets
_CLEARLY = 1.5

SOLVERS = ("sweeps", "natural-gradient", "adam")
CALIBRATIONS = ("leave-one-out", "cross-validated")
LEARNING = ("type-II", "map")


class _Fitted(NamedTuple):
    """One fit at one kernel, before calibration."""

    kernel: Kernel
    fit: Any  # engine.Fit
    wide: Floats  # [B, C], or [0, C]
    Phi: Floats  # [n, B or P], of the basis that carries the mean; let go once `left_out` is there
    mean: Floats  # its coefficients
    margin: Floats
    second: Floats
    rows: Ints | None  # which rows Phi holds, None for all
    left_out: tuple[Floats, Ints] | None = None  # means of rows as if they had not been there, codes
    nll: float = float("inf")  # of those, at their best temperature
    brier: Floats = np.zeros(0)  # of each of them


class LargeMarginClassifier(BaseBayesianClassifier):
    """Multi-class Bayesian SVM: a large-margin GP fitted in closed form (papers 000, 003).

    Covariances, variances and rivals live on P inducing points; from 200 labels and 20 a class on
    the mean has a wide basis of `n_mean` more centres, which brings it near the accuracy of an RBF
    SVM at little cost. Class probabilities are softmax(beta * mean) with one beta from leave-one-out means.

    Args:
        classes: all classes there can be, in the order of the columns; from y unless given.
        n_inducing: P; None for 64, or for a number by the labels when `n_mean` is 0 (64, 128 from
            1,000 labels, 256 from 4,000).
        n_mean: further centres for the mean alone; 0 for none. They are left out where the
            leave-one-out Brier score is clearly better without: where classes overlap.
        geometry: scaling and centres of the pool; measured on X unless given.
        inducing: "k-means++", "random" (a subset of the rows), or an array [P, D] of raw features.
            Only for a geometry that is measured here.
        clip: z-scores are cut at +-clip. Only for a geometry that is measured here.
        common_scale: one scale for all features (pixels). Only for a geometry measured here.
        input_scaling: "anova-f" stretches feature d by F_d^(1/4), the F statistic of the labels:
            good with few labels, bad for pixels; None for none.
        kernel: "squared-exponential", "matern52", "matern32", "exponential", or a GPflow kernel on
            scaled features, which is then used as it is.
        length_scale_factor: length scale over the pool's median distance.
        select_length_scale: choose among five length scales by leave-one-out likelihood, from 200
            labels and 20 a class on; five times the cost.
        variance: of the kernel.
        hyperparameters: None; "type-II" or "map" learn length scale and variance from the
            objective. With few inducing points this usually makes predictions worse.
        ard: learn one length scale for each feature.
        temperature: tau, over rivals.
        rivals: k rivals a row; None for all while the data are small, else 3; 1 is the papers'
            hard objective.
        wide_spread: the uncertainty the wide mean is fitted with, as a share of the small basis's.
            The wide basis leaves less open, and with less the margin is sharper, nearer an SVM's:
            measured on 16 sets, error and likelihood gain from 1 down to about .01.
        solver: "sweeps"; "natural-gradient" in minibatches, for streams; "adam" as the papers.
        max_sweeps: at most this many sweeps.
        tol: sweeps end when they are expected to gain less than this share of the objective.
        batch_size: of the other two solvers.
        epochs: of the other two solvers; 20 and 1000 unless given.
        learning_rate: first step size of natural gradients (.3), or Adam's (5e-4).
        calibration: "leave-one-out", "cross-validated" (five more fits), or None for a fixed beta.
        warm_start: `fit` starts from the present posterior.
        dtype: "float64" or "float32".
        random_state: of k-means, batches and samples.

    Attributes:
        classes_: [C].
        beta_: inverse temperature of the class probabilities.
        objective_, objective_trace_, n_iter_: the tempered objective G; it never falls.
        kernel_: the kernel in use, on scaled features.
        geometry_: the scaling and centres in use.
        predictor_: latents in NumPy.
        gpflow_model_: the same model in GPflow, on scaled features.
        stopped_: whether a callback ended the fit early.
    """

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (
        "beta_", "mean_", "precision_", "root_", "wide_mean_", "stopped_",
    )  # fmt: skip

    _transient_names: ClassVar[tuple[str, ...]] = ("_gpflow_model", "_predictor")

    mean_: Floats
    precision_: Floats
    root_: Floats
    wide_mean_: Floats
    beta_: float
    kernel_: Kernel
    geometry_: Geometry

    def __init__(
        self,
        *,
        classes: Any = None,
        n_inducing: int | None = None,
        n_mean: int = N_MEAN,
        geometry: Geometry | None = None,
        inducing: Any = "k-means++",
        clip: float = 2.0,
        common_scale: bool = False,
        input_scaling: str | None = None,
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        select_length_scale: bool = False,
        variance: float = 10.0,
        hyperparameters: str | None = None,
        ard: bool = False,
        temperature: float = 0.1,
        rivals: int | None = None,
        wide_spread: float = 0.03,
        solver: str = "sweeps",
        max_sweeps: int = 60,
        tol: float = 1e-4,
        batch_size: int = 256,
        epochs: int | None = None,
        learning_rate: float | None = None,
        calibration: str | None = "leave-one-out",
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.n_inducing = n_inducing
        self.n_mean = n_mean
        self.geometry = geometry
        self.inducing = inducing
        self.clip = clip
        self.common_scale = common_scale
        self.input_scaling = input_scaling
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.select_length_scale = select_length_scale
        self.variance = variance
        self.hyperparameters = hyperparameters
        self.ard = ard
        self.temperature = temperature
        self.rivals = rivals
        self.wide_spread = wide_spread
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.calibration = calibration
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state

    # ------------------------------------------------------------------ geometry

    def measure(self, features: Array, seed: int, common_scale: bool = False) -> Geometry:
        """The geometry this model wants of a pool.

        Args:
            features: [N, D] raw features of the pool.
            seed: same seed and rows, same geometry.
            common_scale: one scale for all features (pixels).
        """
        n = len(features)
        points = self.n_inducing
        if points is None:
            points = N_INDUCING
            if self.n_mean == 0:
                points = next((p for rows, p in _POINTS_BY_LABELS if n >= rows), N_INDUCING)
        given = not isinstance(self.inducing, str)
        geometry = Geometry.of(
            features, points, seed, n_mean=self.n_mean, common_scale=common_scale, clip=self.clip,
            method="k-means++" if given else self.inducing,
        )  # fmt: skip
        if not given:
            return geometry
        wanted = np.asarray(self.inducing, dtype=np.float64)
        if wanted.ndim != 2 or wanted.shape[1] != features.shape[1] or not np.isfinite(wanted).all():
            raise InputError(
                f"inducing must be 'k-means++', 'random' or a finite array [P, {features.shape[1]}]; "
                f"got shape {wanted.shape}."
            )
        return geometry._replace(inducing=np.unique(geometry.transform(wanted), axis=0))

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        self._check_options()
        given = self.geometry is not None
        if given or (self._warm() and hasattr(self, "geometry_")):
            self._resolve_geometry(X, N_INDUCING)
        else:
            self.geometry_ = self.measure(X, self._seed(), self.common_scale)
        scaled = self.geometry_.transform(X, self._numpy_dtype())
        report = _Progress(callback)
        start = self._start()
        best = self._fit_at(self._first_kernel(scaled, codes), scaled, codes, start, report.part(0.0, 0.8))
        if self.select_length_scale and not report.stopped and self._enough(codes):
            best = self._select(best, scaled, codes, report)
        self.kernel_ = best.kernel
        self.mean_, self.precision_, self.root_ = best.fit.posterior
        self.wide_mean_ = best.wide
        self.objective_trace_ = np.asarray(best.fit.trace, dtype=np.float64)
        self.objective_ = float(self.objective_trace_[-1])
        self.n_iter_ = max(1, len(self.objective_trace_) - (self.solver == "sweeps"))
        self.beta_ = self._calibrate(best, scaled, codes, report)
        self.stopped_ = report.stopped
        self._predictor = self._folded()
        report(1.0, self.objective_)

    def _check_options(self) -> None:
        _one_of("solver", self.solver, SOLVERS)
        _one_of("calibration", self.calibration, (*CALIBRATIONS, None))
        _one_of("hyperparameters", self.hyperparameters, (*LEARNING, None))
        _one_of("input_scaling", self.input_scaling, ("anova-f", None))
        if isinstance(self.inducing, str):
            _one_of("inducing", self.inducing, ("k-means++", "random"))
        for name in ("length_scale_factor", "variance", "temperature", "wide_spread", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name)!r}.")
        for name in ("n_inducing", "rivals", "epochs", "max_sweeps", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1; got {value!r}.")
        if not isinstance(self.kernel, str):
            clash = [name for name in ("select_length_scale", "hyperparameters", "input_scaling", "ard")
                     if getattr(self, name)]  # fmt: skip
            if clash:
                raise InputError(
                    f"A GPflow kernel object is used as it is; {clash[0]} needs a kernel by name: "
                    f"{', '.join(KERNELS)}."
                )
        if self.ard and self.hyperparameters is None:
            raise InputError("ard=True learns length scales: set hyperparameters to 'type-II' or 'map'.")

    def _enough(self, codes: Ints) -> bool:
        return len(codes) >= max(LABELS, LABELS_A_CLASS * len(self.classes_))

    def _first_kernel(self, scaled: Floats, codes: Ints) -> Kernel:
        if not isinstance(self.kernel, str):
            return GPflowKernel(self.kernel)
        length: Any = self.length_scale_factor * self.geometry_.length_scale
        if self.input_scaling == "anova-f" and len(np.unique(codes)) > 1 and len(codes) > 2:
            length = _anova_lengths(length, scaled, codes, self.geometry_.inducing)
        return StationaryKernel(self.kernel, length, float(self.variance))

    def _fit_at(self, kernel: Kernel, scaled: Floats, codes: Ints, start: Any, report: _Part) -> _Fitted:
        """Everything but calibration, at one kernel (which is learnt on the way if asked)."""
        C = len(self.classes_)
        learn = self.hyperparameters is not None and isinstance(kernel, StationaryKernel)
        if learn:
            assert isinstance(kernel, StationaryKernel)
            kernel, start = self._learn(kernel, scaled, codes, start, report.part(0.0, 0.5))
        basis, wide = self._basis(kernel), self._wide_basis(kernel) if self._enough(codes) else None
        tol = self.tol if wide is None else 50.0 * self.tol  # the wide mean takes over from there
        whole = projection.project(scaled, wide, kernel)[0] if wide and _fits(scaled, wide) else None
        if whole is None:
            Phi, kt = projection.project(scaled, basis, kernel)
        else:
            Phi = np.ascontiguousarray(whole[:, : len(basis.points)])
            kt = np.maximum(kernel.diagonal(scaled) - np.einsum("np,np->n", Phi, Phi), 0.0)
        fit = self._solve(Phi, kt, codes, start, tol, report.part(0.5 if learn else 0.0, 0.8))
        found = _Fitted(kernel, fit, np.zeros((0, C)), Phi, fit.posterior.mean, fit.margin, fit.second, None)
        if wide is None or report.stopped:
            return found
        small = self._judged(found, codes)
        rows, everything = None, codes
        if whole is None:
            del Phi, found  # let the small basis's features go before the wide ones come
            small = small._replace(Phi=np.zeros((0, 0)))
            limit = max(1, WIDE_BYTES // (len(wide.points) * scaled.itemsize))
            rows = np.sort(np.random.default_rng([self._draw, 1]).choice(len(codes), limit, replace=False))
            whole, kt, codes = projection.project(scaled[rows], wide, kernel)[0], kt[rows], codes[rows]
        widened = self._widen(kernel, fit, whole, kt, codes, rows, report.part(0.8, 1.0))
        widened = self._judged(widened, everything)
        # where classes overlap the wide mean follows the noise, and the small basis alone knows better
        return small if _clearly_less(small.brier, widened.brier) and not report.stopped else widened

    def _widen(
        self,
        kernel: Kernel,
        fit: Any,
        Phi: Floats,
        kt: Floats,
        codes: Ints,
        rows: Ints | None,
        report: _Part,
    ) -> _Fitted:
        """The mean in its wide basis, from the small one's, against every rival."""
        C = len(self.classes_)
        # float32 is enough for steps that stop at a thousandth, and takes half the time
        Phi, kt = Phi.astype(np.float32, copy=False), kt.astype(np.float32, copy=False)
        small, roots = (part.astype(np.float32) for part in (fit.posterior.mean, fit.posterior.root))
        rivals, d, a = (part if rows is None else part[rows] for part in (fit.rivals, fit.margin, fit.second))
        d, a = d.astype(np.float32), a.astype(np.float32)
        if rivals.shape[1] == C - 1:
            s = wide_mean.spread_of(d, a)
            spread = wide_mean.by_class(s, np.ones(len(codes)), rivals, codes, C)
        else:
            V = wide_mean.variances(Phi[:, : len(small)], roots)
            own = np.take_along_axis(V, codes[:, None], axis=1)
            spread = V + own + 2.0 * kt[:, None]
        spread = np.maximum(spread * np.float32(self.wide_spread), 1e-6).astype(np.float32)
        rivals = wide_mean.others(codes, C)
        F = Phi[:, : len(small)] @ small
        d = 1.0 + F - np.take_along_axis(F, codes[:, None], axis=1)
        at, s = (np.take_along_axis(part, rivals, axis=1) for part in (d, spread))
        bends = wide_mean.bends(at, at * at + s, self.temperature)
        k = wide_mean.by_class(bends.curvature, bends.own_curvature, rivals, codes, C)
        start = np.zeros((Phi.shape[1], C), dtype=Phi.dtype)
        start[: len(small)] = small
        M, d = wide_mean.fit_mean(
            Phi, codes, spread, start, roots, k, self.temperature, report=report.callback
        )
        d = np.take_along_axis(d, rivals, axis=1)
        M = M.astype(self._numpy_dtype())
        return _Fitted(kernel, fit._replace(rivals=rivals), M, Phi, M, d, d * d + s, rows)

    def _solve(self, Phi: Floats, kt: Floats, codes: Ints, start: Any, tol: float, report: _Part) -> Any:
        from workbench.engine import large_margin as engine

        C = len(self.classes_)
        call = report.callback
        if self.solver == "sweeps":
            return engine.fit(
                Phi, kt, codes, C, start=start, tau=self.temperature, rivals=self.rivals,
                sweeps=self.max_sweeps, tolerance=tol, callback=call,
            )  # fmt: skip
        if self.solver == "natural-gradient":
            return engine.fit_minibatch(
                Phi, kt, codes, C, start=start, tau=self.temperature, rivals=self.rivals,
                batch_size=self.batch_size, epochs=self.epochs or 20, seed=self._draw,
                rho_start=self.learning_rate or 0.3, callback=call,
            )  # fmt: skip
        from workbench.engine import large_margin_training as training

        return training.fit_adam(
            Phi, kt, codes, C, start=start, tau=self.temperature, rivals=self.rivals or 1,
            learning_rate=self.learning_rate or 5e-4, batch_size=self.batch_size,
            epochs=self.epochs or 1000, seed=self._draw, callback=call,
        )  # fmt: skip

    def _learn(
        self, kernel: StationaryKernel, scaled: Floats, codes: Ints, start: Any, report: _Part
    ) -> tuple[StationaryKernel, Any]:
        """Alternate sweeps with steps in the kernel's values at fixed whitened q."""
        from workbench.engine import large_margin as engine
        from workbench.engine import large_margin_training as training

        centre = kernel
        for number in range(_LEARNING_ROUNDS):
            basis = self._basis(kernel)
            Phi, kt = projection.project(scaled, basis, kernel)
            fit = engine.fit(
                Phi, kt, codes, len(self.classes_), start=start, tau=self.temperature,
                rivals=self.rivals, sweeps=10, tolerance=10.0 * self.tol,
            )  # fmt: skip
            start = fit.posterior
            if report.callback is not None and report.callback(
                (number + 1) / _LEARNING_ROUNDS, fit.trace[-1]
            ):
                break
            kernel = training.learn_kernel(
                scaled, basis.points, codes, start, kernel, ard=self.ard, centre=centre,
                prior_spread=0.5 if self.hyperparameters == "map" else None,
                tau=self.temperature, rivals=self.rivals,
            )  # fmt: skip
        return kernel, start

    def _select(self, first: _Fitted, scaled: Floats, codes: Ints, report: _Progress) -> _Fitted:
        """The length scale with the lowest leave-one-out negative log-likelihood."""
        assert isinstance(first.kernel, StationaryKernel)
        base = first.kernel
        best = self._judged(first, codes)
        for number, factor in enumerate(CANDIDATES):
            if factor == 1.0:
                continue
            kernel = StationaryKernel(base.name, np.asarray(base.length_scale)[()] * factor, base.variance)
            low = 0.8 + 0.15 * number / len(CANDIDATES)
            found = self._fit_at(kernel, scaled, codes, first.fit.posterior, report.part(low, low + 0.03))
            if report.stopped:
                break
            found = self._judged(found, codes)
            if found.nll < best.nll:
                best = found
        return best

    # ------------------------------------------------------------------ calibration

    def _calibrate(self, fitted: _Fitted, scaled: Floats, codes: Ints, report: _Progress) -> float:
        centre = self._prior_log_beta(fitted)
        if self.calibration is None:
            return float(np.exp(centre))
        if self.calibration == "cross-validated" and not report.stopped and len(codes) >= 5:
            F, kept = self._held_out(fitted, scaled, codes), codes
        else:
            F, kept = self._left_out(fitted, codes)
        return cal.fit_beta(F, kept, centre)

    def _left_out(self, fitted: _Fitted, codes: Ints) -> tuple[Floats, Ints]:
        """Means of a sample of rows as if they had not been there, and their codes."""
        if fitted.left_out is not None:
            return fitted.left_out
        codes = codes if fitted.rows is None else codes[fitted.rows]
        rng = np.random.default_rng([self._draw, 2])
        n = len(codes)
        rows: Any = slice(None)
        if n > LEFT_OUT_ROWS:  # a part of the rows, each counting for several, tells the curvature
            rows = np.sort(rng.choice(n, LEFT_OUT_ROWS, replace=False))
        Phi, kept, rivals = fitted.Phi[rows], codes[rows], fitted.fit.rivals[rows]
        sample = np.sort(rng.choice(len(kept), min(len(kept), cal.SAMPLE), replace=False))
        bends = wide_mean.bends(fitted.margin[rows], fitted.second[rows], self.temperature)
        F = cal.leave_one_out(Phi, fitted.mean, kept, rivals, bends, sample, weight=n / len(kept))
        return F, kept[sample]

    def _judged(self, fitted: _Fitted, codes: Ints) -> _Fitted:
        """The fit with how well it foretells rows that it did not see."""
        if fitted.left_out is not None:
            return fitted
        F, kept = self._left_out(fitted, codes)
        p = cal.softmax(F, cal.fit_beta(F, kept, self._prior_log_beta(fitted)))
        own = p[np.arange(len(kept)), kept]
        return fitted._replace(
            left_out=(F, kept),
            nll=float(-np.log(np.maximum(own, 1e-12)).mean()),
            brier=(p * p).sum(axis=1) - 2.0 * own + 1.0,
        )

    def _held_out(self, fitted: _Fitted, scaled: Floats, codes: Ints) -> Floats:
        """[N, C] means of five-fold cross-validation at the fitted kernel."""
        fold = np.random.default_rng([self._draw, 3]).permutation(len(codes)) % 5
        F = np.zeros((len(codes), len(self.classes_)))
        silent = _Progress(None).part(0.0, 1.0)
        learning, self.hyperparameters = self.hyperparameters, None
        try:
            for number in range(5):
                inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
                part = self._fit_at(fitted.kernel, scaled[inside], codes[inside], None, silent)
                wide = self._wide_basis(fitted.kernel) if len(part.wide) else None
                used = wide or self._basis(fitted.kernel)
                F[outside] = projection.project(scaled[outside], used, fitted.kernel)[0] @ part.mean
        finally:
            self.hyperparameters = learning
        return F

    def _prior_log_beta(self, fitted: _Fitted) -> float:
        kernel = fitted.kernel
        variance = float(self.variance)
        if isinstance(kernel, GPflowKernel):
            variance = float(np.mean(kernel.diagonal(self.geometry_.inducing)))
        return cal.prior_log_beta(variance, self.wide_spread if len(fitted.wide) else 1.0)

    # ------------------------------------------------------------------ state

    @property
    def _draw(self) -> int:
        """Seed of everything drawn in a fit; a constant where none was given, so fits repeat."""
        state = self.random_state
        return int(state) if isinstance(state, (int, np.integer)) else 0

    def _basis(self, kernel: Kernel) -> Basis:
        return projection.cached_basis(self.geometry_.inducing, kernel, self.dtype)

    def _wide_basis(self, kernel: Kernel) -> Basis | None:
        """The mean's own points, the small basis's first; None where it is to have none."""
        g = self.geometry_
        if self.n_mean == 0 or len(g.mean_inducing) == 0:
            return None
        points = np.concatenate([g.inducing, g.mean_inducing[: self.n_mean]])
        return projection.cached_basis(points, kernel, self.dtype)

    def _start(self) -> Any:
        """The present posterior, its classes matched by label, or None for a cold start."""
        if not self._warm() or not hasattr(self, "mean_"):
            return None
        from workbench.engine.large_margin import Posterior, prior

        P = len(self.geometry_.inducing)
        if len(self.mean_) != P:
            return None
        before = np.asarray(self._previous_classes)
        if np.array_equal(before, self.classes_):
            return Posterior(self.mean_, self.precision_, self.root_)
        column = {label: c for c, label in enumerate(before.tolist())}
        start = prior(P, len(self.classes_), self._numpy_dtype())
        for c, label in enumerate(np.asarray(self.classes_).tolist()):
            if label in column:
                old = column[label]
                start.mean[:, c] = self.mean_[:, old]
                start.precision[c], start.root[c] = self.precision_[old], self.root_[old]
        return start

    @property
    def predictor_(self) -> Predictor:
        """Latents in NumPy."""
        made: Predictor | None = self.__dict__.get("_predictor")
        if made is None:  # a state just loaded: where it only starts a fit, nobody asks
            made = self._predictor = self._folded()
        return made

    def _folded(self) -> Predictor:
        basis = self._basis(self.kernel_)
        widened = len(self.wide_mean_) > 0
        return Predictor.from_posterior(
            self.geometry_, self.kernel_, basis, self.wide_mean_ if widened else self.mean_,
            None, roots=np.asarray(self.root_),
            mean_basis=self._wide_basis(self.kernel_) if widened else None, dtype=self._numpy_dtype(),
        )  # fmt: skip

    def _state(self) -> dict[str, Array]:
        kernel = {f"kernel.{key}": value for key, value in self.kernel_.to_arrays().items()}
        return super()._state() | kernel

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        self.kernel_ = kernel_from_arrays(
            {key.removeprefix("kernel."): value for key, value in state.items() if key.startswith("kernel.")}
        )

    @property
    def gpflow_model_(self) -> Any:
        """The fitted model as `workbench.engine.large_margin_model.LargeMarginGP`.

        Its inputs are scaled features, `geometry_.transform(X)`.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "mean_")
        model = self.__dict__.get("_gpflow_model")
        if model is None:
            from workbench.engine.kernels import to_gpflow
            from workbench.engine.large_margin_model import LargeMarginGP

            basis = self._basis(self.kernel_)
            wide = self._wide_basis(self.kernel_) if len(self.wide_mean_) else None
            widened = wide is not None
            model = LargeMarginGP(
                to_gpflow(self.kernel_), basis.points, len(self.classes_),
                wide=wide.points if widened and wide is not None else None,
                tau=self.temperature, beta=self.beta_, jitter=basis.jitter,
                wide_jitter=wide.jitter if widened and wide is not None else None,
            )  # fmt: skip
            roots = np.asarray(self.root_, dtype=np.float64)
            covariance = np.matmul(roots.transpose(0, 2, 1), roots)
            model.assign(self.mean_, covariance, self.wide_mean_ if widened else None)
            self._gpflow_model = model
        return model

    # ------------------------------------------------------------------ predicting

    def _probabilities(self, X: Floats) -> Floats:
        return cal.softmax(self.predictor_.mean(X), self.beta_)

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)


class _Progress:
    """Maps the callbacks of the parts of a fit onto one, and remembers whether it said stop."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self.stopped = False

    def __call__(self, fraction: float, objective: float) -> bool:
        if self._callback is not None and self._callback(fraction, objective) and fraction < 1.0:
            self.stopped = True
        return self.stopped

    def part(self, low: float, high: float) -> _Part:
        return _Part(self, low, high)


class _Part:
    """A share [low, high] of the progress."""

    def __init__(self, whole: _Progress, low: float, high: float) -> None:
        self._whole, self._low, self._high = whole, low, high

    @property
    def stopped(self) -> bool:
        return self._whole.stopped

    @property
    def callback(self) -> Callable[[float, float], bool] | None:
        if self._whole._callback is None:
            return None
        return lambda fraction, objective: self._whole(
            self._low + fraction * (self._high - self._low), objective
        )

    def part(self, low: float, high: float) -> _Part:
        width = self._high - self._low
        return _Part(self._whole, self._low + low * width, self._low + high * width)


def _clearly_less(a: Floats, b: Floats) -> bool:
    """Whether the mean of a is below that of b by more than its error allows; paired for equal lengths."""
    if len(a) == len(b):
        error = float(np.std(a - b)) / np.sqrt(len(a))
    else:
        error = float(np.sqrt(a.var() / len(a) + b.var() / len(b)))
    return float(b.mean() - a.mean()) > _CLEARLY * error


def _fits(scaled: Floats, basis: Basis) -> bool:
    return len(scaled) * len(basis.points) * scaled.itemsize <= WIDE_BYTES


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}.")


def _anova_lengths(length: float, scaled: Floats, codes: Ints, centres: Floats) -> Floats:
    """[D] length scales that stretch feature d by F_d^(1/4), keeping them `length` on the whole."""
    groups = np.unique(codes)
    overall = scaled.mean(axis=0)
    between, within = np.zeros(scaled.shape[1]), np.zeros(scaled.shape[1])
    for code in groups:
        rows = scaled[codes == code]
        between += len(rows) * (rows.mean(axis=0) - overall) ** 2
        within += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    spare = max(len(codes) - len(groups), 1)
    # one member a class leaves no variance within: a floor keeps the statistic finite
    floor = 1e-3 * (between + within) / spare + 1e-300
    F = (between / (len(groups) - 1)) / (within / spare + floor)
    stretch = np.maximum(F, 1e-4 * max(float(F.max()), 1e-300)) ** 0.25
    plain, stretched = _median_gap(centres), _median_gap(centres * stretch)
    return length * (stretched / plain) / stretch


def _median_gap(points: Floats) -> float:
    from scipy.spatial.distance import pdist

    gaps = pdist(points)
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if gaps.size else 1.0
