"""Fits of the large-margin GP at one kernel and one geometry, and how well each predicts labels left out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers import calibration as cal
from workbench.classifiers.base import BaseBayesianClassifier
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.gp import WithGPflowModel
from workbench.classifiers.guess_weights import FOLDS, out_of_fold
from workbench.classifiers.options import estimator, fitted, option
from workbench.engine import projection, wide_mean
from workbench.engine.fitting import Progress
from workbench.engine.kernels import Kernel, StationaryKernel
from workbench.engine.projection import Basis
from workbench.engine.wide_mean import enough_labels

WIDE_BYTES = 250_000_000  # the wide basis looks at no more rows than fit into this
LEFT_OUT_ROWS = 100_000
CANDIDATES = (0.5, 0.7, 1.0, 1.4, 2.0)  # length scales tried, times the default
N_MEAN = 448
SOLVERS = ("sweeps", "natural-gradient", "adam")
STOCHASTIC = {"solver": SOLVERS[1:]}
CALIBRATIONS = ("leave-one-out", "cross-validated")
LEARNING = ("type-II", "map")
_LEARNING_ROUNDS = 5
# of 0.5, 1, 1.5, 2, 2.5 and never it gave the lowest error and likelihood on 20 sets
_STANDARD_ERRORS = 1.5
# of learnt features a class with a label or two was hardly ever predicted; measured (docs/results.md)
_RARE_MARGIN_OF_UNITS = 1.0


class KernelFit(NamedTuple):
    """A fit at one kernel, before calibration.

    Attributes:
        kernel: its kernel.
        fit: `engine.large_margin.LargeMarginFit`; rivals, margin and second are of the basis of its mean.
        wide: [B, C] the mean in its wide basis, or [0, C].
        phi: [n, B or P] features in the basis of the mean; let go once `left_out` is there.
        rows: [n] which rows of the data phi holds.
        left_out: how well it predicts rows it did not see.
        offset: [N, C] the guess's mean at the rows of the data, or None.
        terms: of a rough fit, `engine.large_margin_state.RowTerms`: what a fit at another kernel starts from.
    """

    kernel: Kernel
    fit: Any
    wide: Floats
    phi: Floats
    rows: Ints
    left_out: cal.LeftOut | None = None
    offset: Floats | None = None
    terms: Any = None

    @property
    def mean(self) -> Floats:
        """Coefficients of phi."""
        return self.wide if len(self.wide) else self.fit.posterior.mean


class HeldBases(NamedTuple):
    """The bases of a fit, for models that share them.

    Attributes:
        geometry: that they are of.
        kernel: that they are of.
        basis: of the covariances.
        wide: of the mean; None where it has none of its own.
        rows: number of points -> scaled rows, their features in that basis and what these leave open.
    """

    geometry: Geometry
    kernel: Kernel
    basis: Basis
    wide: Basis | None
    rows: dict[int, tuple[Floats, Floats, Floats]]


def of_unit_length(geometry: Geometry) -> bool:
    """True if a pool's features are learnt ones of unit length."""
    return bool(geometry.common_scale and geometry.within_unit_ball(geometry.inducing))


@estimator
class LargeMarginFits(WithGPflowModel, BaseBayesianClassifier):
    """Fits of `LargeMarginClassifier` at one geometry: at one kernel, judged by labels left out."""

    n_mean: int = option(N_MEAN, at_least=0)
    kernel: Any = "squared-exponential"
    variance: float = option(10.0, above=0.0)
    rare_margin: float | None = option(None, at_least=0.0)
    hyperparameters: str | None = option(None, choices=(*LEARNING, None))
    ard: bool = option(False, when={"hyperparameters": LEARNING})
    temperature: float = option(0.1, above=0.0)
    rivals: int | None = option(None, at_least=1)
    wide_spread: float = option(0.03, above=0.0)
    solver: str = option("sweeps", choices=SOLVERS)
    max_sweeps: int = option(60, at_least=1, when={"solver": SOLVERS[:1]})
    tol: float = option(1e-4, at_least=0.0, when={"solver": SOLVERS[:1]})
    batch_size: int = option(256, at_least=1, when=STOCHASTIC)
    epochs: int | None = option(None, at_least=1, when=STOCHASTIC)
    learning_rate: float | None = option(None, above=0.0, when=STOCHASTIC)
    calibration: str | None = option("leave-one-out", choices=(*CALIBRATIONS, None))
    dtype: str = "float64"

    kernel_: Kernel = fitted()
    geometry_: Geometry = fitted()
    left_out_: cal.LeftOut = fitted()

    def _carry_wide(self, scaled: Floats) -> bool:
        """True if these rows carry a wide mean; fewer do where features are learnt ones of unit length."""
        n, C = len(scaled), len(self.classes_)
        if enough_labels(n, C) or not self.geometry_.common_scale:
            return enough_labels(n, C)
        if not enough_labels(n, C, unit_length=True):
            return False
        return self.geometry_.within_unit_ball(scaled)

    def _asked(self, codes: Ints, offset: Floats | None) -> Floats | None:
        """[N, C] what is added to the latents while they are fitted, and not when they are used.

        Args:
            codes: [N] true classes.
            offset: [N, C] the guess's mean, which stays; or None.
        """
        rare = self.rare_margin
        if rare is None:
            rare = _RARE_MARGIN_OF_UNITS if of_unit_length(self.geometry_) else 0.0
        if not rare:
            return offset
        labels = np.bincount(codes, minlength=len(self.classes_))
        less = np.broadcast_to(-rare / np.sqrt(labels + 1.0), (len(codes), len(labels)))
        return less if offset is None else offset + less

    def _fit_at(
        self,
        kernel: Kernel,
        scaled: Floats,
        codes: Ints,
        start: Any,
        report: Progress,
        learn: bool = True,
        rough: bool = False,
        offset: Floats | None = None,
    ) -> KernelFit:
        """Everything but calibration, at one kernel (which is learnt on the way if asked)."""
        fit_offset = self._asked(codes, offset)
        if learn := learn and self.hyperparameters is not None and isinstance(kernel, StationaryKernel):
            kernel, start = self._learn(kernel, scaled, codes, start, report.part(0.0, 0.5), fit_offset)
        basis, wide = self._basis(kernel), self._wide_basis(kernel) if self._carry_wide(scaled) else None
        # the wide mean takes over from there, or the fit that follows
        tol = self.tol if wide is None and not rough else 50.0 * self.tol
        rows = np.arange(len(codes))
        limit = len(codes) if wide is None else WIDE_BYTES // (len(wide.points) * scaled.itemsize)
        if wide is not None and len(codes) <= limit:
            phi_wide = self._projected(scaled, wide, kernel)[0]
            phi = np.ascontiguousarray(phi_wide[:, : len(basis.points)])
            residual = np.maximum(kernel.diagonal(scaled) - np.einsum("np,np->n", phi, phi), 0.0)
        else:
            phi, residual = self._projected(scaled, basis, kernel)
        fit = self._solve(
            phi, residual, codes, start, tol, report.part(0.5 if learn else 0.0, 0.8), fit_offset
        )
        small = KernelFit(kernel, fit, np.zeros((0, len(self.classes_))), phi, rows, offset=offset)
        if rough:
            from workbench.engine.large_margin_state import RowTerms

            terms = phi @ fit.posterior.mean, fit.margin, fit.second, fit.rivals, codes, self.temperature
            small = small._replace(terms=RowTerms.of(*terms))
        if wide is None or report.stopped:
            return small
        small = self._judged(small, codes)
        if len(codes) > limit:
            del phi  # let the small basis's features go before the wide ones come
            small = small._replace(phi=np.zeros((0, 0)))
            rows = np.sort(
                np.random.default_rng([self._draw, 1]).choice(len(codes), max(1, limit), replace=False)
            )
            phi_wide = projection.project(scaled[rows], wide, kernel)[0]
        part = fit._replace(rivals=fit.rivals[rows], margin=fit.margin[rows], second=fit.second[rows])
        wide_fit = wide_mean.widen(
            phi_wide,
            residual[rows],
            codes[rows],
            part,
            self.temperature,
            self.wide_spread,
            report.part(0.8, 1.0).callback,
            None if fit_offset is None else fit_offset[rows],
        )
        at_wide = fit._replace(rivals=wide_fit.rivals, margin=wide_fit.margin, second=wide_fit.second)
        mean: Floats = wide_fit.mean.astype(self._numpy_dtype())
        phi_wide = phi_wide.astype(np.float32, copy=False)
        widened = self._judged(
            KernelFit(kernel, at_wide, mean, phi_wide, rows, offset=offset, terms=small.terms), codes
        )
        assert small.left_out is not None and widened.left_out is not None
        # where classes overlap the wide mean follows the noise, and the small basis alone knows better
        worse = cal.clearly_less(small.left_out.brier, widened.left_out.brier, _STANDARD_ERRORS)
        return small if worse and not report.stopped else widened

    def _solve(
        self,
        phi: Floats,
        residual: Floats,
        codes: Ints,
        start: Any,
        tol: float,
        report: Progress,
        offset: Floats | None,
    ) -> Any:
        from workbench.engine import large_margin as engine
        from workbench.engine.large_margin_state import Data

        data = Data.of(phi, residual, codes, len(self.classes_), offset)
        shared: dict[str, Any] = {"start": start, "tau": self.temperature, "callback": report.callback}
        if self.solver == "sweeps":
            return engine.fit(data, rivals=self.rivals, sweeps=self.max_sweeps, tolerance=tol, **shared)
        shared |= {"batch_size": self.batch_size, "seed": self._draw}
        if self.solver == "natural-gradient":
            return engine.fit_minibatch(
                data,
                rivals=self.rivals,
                epochs=self.epochs or 20,
                rho_start=self.learning_rate or 0.3,
                **shared,
            )
        from workbench.engine import large_margin_training as training

        return training.fit_adam(
            data,
            rivals=self.rivals or 1,
            epochs=self.epochs or 1000,
            learning_rate=self.learning_rate or 5e-4,
            **shared,
        )

    def _learn(
        self,
        kernel: StationaryKernel,
        scaled: Floats,
        codes: Ints,
        start: Any,
        report: Progress,
        offset: Floats | None,
    ) -> tuple[StationaryKernel, Any]:
        """Alternate sweeps with steps in the kernel's values at fixed whitened q."""
        from workbench.engine import large_margin as engine
        from workbench.engine import large_margin_training as training
        from workbench.engine.large_margin_state import Data

        centre = kernel
        shared: dict[str, Any] = {"tau": self.temperature, "rivals": self.rivals}
        for number in range(1, _LEARNING_ROUNDS + 1):
            basis = self._basis(kernel)
            projected = projection.project(scaled, basis, kernel)
            data = Data.of(*projected, codes, len(self.classes_), offset)
            fit = engine.fit(data, start=start, sweeps=10, tolerance=10.0 * self.tol, **shared)
            start = fit.posterior
            if report(number / _LEARNING_ROUNDS, fit.trace[-1]):
                break
            kernel = training.learn_kernel(
                scaled,
                basis.points,
                codes,
                start,
                kernel,
                ard=self.ard,
                centre=centre,
                offset=offset,
                prior_spread=0.5 if self.hyperparameters == "map" else None,
                **shared,
            )
        return kernel, start

    def _select(self, first: KernelFit, scaled: Floats, codes: Ints, report: Progress) -> KernelFit:
        """The length scale with the highest leave-one-out log-likelihood."""
        base = first.kernel
        assert isinstance(base, StationaryKernel)
        fits = [self._judged(first, codes)]
        for number, factor in enumerate(CANDIDATES):
            if factor == 1.0:
                continue
            kernel = StationaryKernel(base.name, np.asarray(base.length_scale)[()] * factor, base.variance)
            low = 0.8 + 0.15 * number / len(CANDIDATES)
            fit = self._fit_at(
                kernel, scaled, codes, first.fit.posterior, report.part(low, low + 0.03), offset=first.offset
            )
            if report.stopped:
                break
            fits.append(self._judged(fit, codes))
        return max(fits, key=lambda fit: fit.left_out.log_likelihood.mean() if fit.left_out else -np.inf)

    def _calibrate(self, fit: KernelFit, scaled: Floats, codes: Ints, report: Progress) -> float:
        if self.calibration is None:
            return float(np.exp(self._prior_log_beta(fit)))
        if self.calibration == "cross-validated" and not report.stopped and len(codes) >= FOLDS:
            means = self._cross_validated(lambda rows: fit.kernel, scaled, codes, fit.offset)
            left_out = cal.judge(means, codes, np.arange(len(codes)), self._prior_log_beta(fit))
        else:
            left_out = self._judged(fit, codes).left_out  # type: ignore[assignment]
        # with a guess the means hold more than the labels; pools of one scale were right as they were
        if fit.offset is None and not self.geometry_.common_scale:
            left_out = cal.judge_table(left_out.means, codes, left_out.rows, self._prior_log_beta(fit))
        self.left_out_ = left_out
        return left_out.beta

    def _judged(self, fit: KernelFit, codes: Ints) -> KernelFit:
        """The fit with how well it predicts a sample of rows as if they had not been there."""
        if fit.left_out is not None:
            return fit
        rng = np.random.default_rng([self._draw, 2])
        n = len(fit.rows)
        rows: Any = slice(None)
        if n > LEFT_OUT_ROWS:  # a part of the rows, each counting for several, tells the curvature
            rows = np.sort(rng.choice(n, LEFT_OUT_ROWS, replace=False))
        sampled = fit.rows[rows]
        sample = np.sort(rng.choice(len(sampled), min(len(sampled), cal.SAMPLE), replace=False))
        at = wide_mean.derivatives(fit.fit.margin[rows], fit.fit.second[rows], self.temperature)
        means = cal.leave_one_out(
            fit.phi[rows], fit.mean, codes[sampled], fit.fit.rivals[rows], at, sample, weight=n / len(sampled)
        )
        return self._scored(fit, means, codes, sampled[sample])

    def _judged_at(self, fit: KernelFit, scaled: Floats, codes: Ints) -> KernelFit:
        """The judged fit, judged anew on other features [n, D] of the same rows."""
        assert fit.left_out is not None
        rows = fit.left_out.rows
        phi = self._features_of(fit, scaled[rows])
        at = wide_mean.derivatives(fit.fit.margin, fit.fit.second, self.temperature)
        means = cal.leave_one_out(
            fit.phi, fit.mean, codes[fit.rows], fit.fit.rivals, at, rows, at=phi.astype(fit.phi.dtype)
        )
        return self._scored(fit, means, codes, rows)

    def _scored(self, fit: KernelFit, means: Floats, codes: Ints, rows: Ints) -> KernelFit:
        """The fit with the scores of left-out means [n, C] of some rows."""
        if fit.offset is not None:
            means = means + fit.offset[rows]
        return fit._replace(left_out=cal.judge(means, codes[rows], rows, self._prior_log_beta(fit)))

    def _features_of(self, fit: KernelFit, scaled: Floats) -> Floats:
        """Features [n, B or P] of scaled rows in the basis of the fit's mean."""
        basis = self._wide_basis(fit.kernel) if len(fit.wide) else None
        return projection.project(scaled, basis or self._basis(fit.kernel), fit.kernel)[0]

    def _cross_validated(
        self,
        kernel_of: Callable[[Ints], Kernel],
        scaled: Floats,
        codes: Ints,
        offset: Floats | None,
        *,
        rough: bool = False,
        folds: int = FOLDS,
    ) -> Floats:
        """[N, C] means of cross-validation.

        Args:
            kernel_of: the kernel for the rows of a fit.
            scaled: [N, D] features.
            codes: [N] classes.
            offset: [N, C] the guess's mean, or None.
            rough: whether the fits are.
            folds: parts of the rows.
        """

        def predict(inside: Ints, outside: Ints) -> Floats:
            fit = self._fit_at(
                kernel_of(inside),
                scaled[inside],
                codes[inside],
                None,
                Progress(None),
                learn=False,
                rough=rough,
                offset=None if offset is None else offset[inside],
            )
            return self._features_of(fit, scaled[outside]) @ fit.mean

        means = out_of_fold(len(codes), len(self.classes_), self._draw, predict, folds)
        return means if offset is None else means + offset

    def _prior_log_beta(self, fit: KernelFit) -> float:
        variance = float(self.variance)
        if self.hyperparameters is not None and isinstance(fit.kernel, StationaryKernel):
            variance = float(fit.kernel.variance)  # as learnt
        if not isinstance(self.kernel, str):
            variance = float(np.mean(fit.kernel.diagonal(self.geometry_.inducing)))
        return cal.prior_log_beta(variance, self.wide_spread if len(fit.wide) else 1.0)

    def _held(self) -> HeldBases:
        """The bases of this fit, kept with it: who shares them need not look them up by their content."""
        bases: HeldBases | None = self.__dict__.get("_bases")
        if bases is None:
            basis, wide = self._basis(self.kernel_), self._wide_basis(self.kernel_)
            bases = self.__dict__["_bases"] = HeldBases(self.geometry_, self.kernel_, basis, wide, {})
        return bases

    def _holds(self, kernel: Kernel) -> bool:
        bases: HeldBases | None = self.__dict__.get("_bases")
        return bases is not None and bases.geometry is self.geometry_ and bases.kernel is kernel

    def _projected(self, scaled: Floats, basis: Basis, kernel: Kernel) -> tuple[Floats, Floats]:
        """As `projection.project`; of models that share a basis and rows, done once."""
        if not self._holds(kernel):
            return projection.project(scaled, basis, kernel)
        cache, size = self._held().rows, len(basis.points)
        entry = cache.get(size)
        if entry is None or not np.array_equal(entry[0], scaled):
            cache[size] = entry = (scaled, *projection.project(scaled, basis, kernel))
        return entry[1], entry[2]

    def _basis(self, kernel: Kernel) -> Basis:
        if self._holds(kernel):
            return self._held().basis
        return projection.cached_basis(self.geometry_.inducing, kernel, self.dtype)

    def _wide_basis(self, kernel: Kernel) -> Basis | None:
        """The mean's own points, the small basis's first; None where it is to have none."""
        g = self.geometry_
        if self._holds(kernel):
            return self._held().wide
        if self.n_mean == 0 or len(g.mean_inducing) == 0:
            return None
        points = np.concatenate([g.inducing, g.mean_inducing[: self.n_mean]])
        return projection.cached_basis(points, kernel, self.dtype)
