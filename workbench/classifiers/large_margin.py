"""The large-margin GP as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import calibration as cal
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor
from workbench.engine import projection, wide_mean
from workbench.engine.projection import Basis
from workbench.errors import InputError

N_INDUCING = 64
N_MEAN = 448
LABELS_A_CLASS = 10  # from here on the mean gets its wide basis


class LargeMarginClassifier(BaseBayesianClassifier):
    """Large-margin GP (multi-class Bayesian SVM) with closed-form sweeps."""

    has_latent: ClassVar[bool] = True
    _transient_names: ClassVar[tuple[str, ...]] = ("_gpflow_model",)
    _state_names: ClassVar[tuple[str, ...]] = ("beta_", "mean_", "precision_", "root_", "wide_mean_")

    def __init__(
        self,
        *,
        classes: Any = None,
        n_inducing: int | None = None,
        n_mean: int = N_MEAN,
        geometry: Geometry | None = None,
        warm_start: bool = False,
        dtype: str = "float64",
        calibration: str | None = "leave-one-out",
        kernel: Any = "squared-exponential",
        length_scale_factor: float = 0.6,
        variance: float = 10.0,
        temperature: float = 0.1,
        rivals: int | None = None,
        max_sweeps: int = 60,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.n_inducing = n_inducing
        self.n_mean = n_mean
        self.geometry = geometry
        self.warm_start = warm_start
        self.dtype = dtype
        self.calibration = calibration
        self.kernel = kernel
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.temperature = temperature
        self.rivals = rivals
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        from workbench.engine import large_margin as engine

        n, C = len(codes), len(self.classes_)
        geometry = self._resolve_geometry(X, self.n_inducing or N_INDUCING, n_mean=self.n_mean)
        self.kernel_ = self._make_kernel(geometry)
        basis, wide = self._bases()
        scaled = geometry.transform(X, self._numpy_dtype())
        use_wide = wide is not None and n >= LABELS_A_CLASS * C
        if use_wide:
            PhiB, _ = projection.project(scaled, wide, self.kernel_)
            Phi = np.ascontiguousarray(PhiB[:, : len(basis.points)])
            kt = self.kernel_.diagonal(scaled) - np.einsum("np,np->n", Phi, Phi)
            kt = np.maximum(kt, 0)
        else:
            Phi, kt = projection.project(scaled, basis, self.kernel_)
        start = self._start(Phi.shape[1])
        fit = engine.fit(
            Phi, kt, codes, C, start=start, tau=self.temperature, rivals=self.rivals,
            sweeps=self.max_sweeps, tolerance=self.tol, callback=callback,
        )  # fmt: skip
        self.mean_, self.precision_, self.root_ = fit.posterior
        self.objective_trace_ = fit.trace
        self.objective_ = float(fit.trace[-1])
        self.n_iter_ = len(fit.trace) - 1
        d, a = fit.margin, fit.second
        bends = wide_mean.bends(d, a, self.temperature)
        M = self.mean_
        self.wide_mean_ = np.zeros((0, C))
        if use_wide:
            k = wide_mean.by_class(bends.curvature, bends.own_curvature, fit.rivals, codes, C)
            s = wide_mean.spread_of(d, a)
            begin = np.concatenate([M, np.zeros((len(wide.points) - len(M), C))])
            M, d = wide_mean.fit_mean(PhiB, codes, fit.rivals, s, begin, self.root_, k, self.temperature)
            self.wide_mean_ = M
            bends = wide_mean.bends(d, d * d + s, self.temperature)
            Phi = PhiB
        if self.calibration == "leave-one-out":
            sample = np.sort(np.random.default_rng(0).choice(n, min(n, cal.SAMPLE), replace=False))
            F = cal.leave_one_out(Phi, Phi @ M, codes, fit.rivals, bends, sample)
            self.beta_ = cal.fit_beta(F, codes[sample], cal.prior_log_beta(self.variance))
        else:
            self.beta_ = float(np.exp(cal.prior_log_beta(self.variance)))
        self._make_predictor()

    def _make_kernel(self, geometry: Geometry) -> Any:
        return projection.StationaryKernel(
            self.kernel, self.length_scale_factor * geometry.length_scale, self.variance
        )

    def _bases(self) -> tuple[Basis, Basis | None]:
        g = self.geometry_
        basis = projection.kept_basis(g.inducing, self.kernel_, self.dtype)
        if len(g.mean_inducing) == 0 or self.n_mean == 0:
            return basis, None
        return basis, projection.kept_basis(
            np.concatenate([g.inducing, g.mean_inducing]), self.kernel_, self.dtype
        )

    def _start(self, n_inducing: int) -> Any:
        from workbench.engine.large_margin import Posterior

        if not self._warm() or not hasattr(self, "mean_"):
            return None
        return Posterior(self.mean_, self.precision_, self.root_)

    def _make_predictor(self) -> None:
        basis, wide = self._bases()
        S = np.matmul(self.root_.transpose(0, 2, 1), self.root_)
        use_wide = len(self.wide_mean_) > 0
        self.predictor_ = Predictor.from_posterior(
            self.geometry_, self.kernel_, basis, self.wide_mean_ if use_wide else self.mean_, S,
            mean_basis=wide if use_wide else None, dtype=self.dtype,
        )  # fmt: skip

    def _probabilities(self, X: Floats) -> Floats:
        return cal.softmax(self.predictor_.mean(X), self.beta_)

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)
