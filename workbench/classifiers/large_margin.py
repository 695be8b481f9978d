"""The large-margin GP as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import calibration as cal
from workbench.classifiers import choice as choosing
from workbench.classifiers.base import FitInputs, same_value
from workbench.classifiers.choice import Candidate, Choice, f_statistics, lengths_by_f
from workbench.classifiers.geometry import Geometry, default_inducing, prefixed, with_points, within
from workbench.classifiers.guess_weights import FOLDS
from workbench.classifiers.large_margin_fits import (
    CALIBRATIONS,
    SOLVERS,
    KernelFit,
    LargeMarginFits,
    of_unit_length,
)
from workbench.classifiers.latent import Latent
from workbench.classifiers.options import check_options, estimator, fitted, option
from workbench.classifiers.predictor import Predictor
from workbench.classifiers.protocols import LeaveOneOutScores
from workbench.engine import projection
from workbench.engine.fitting import Progress
from workbench.engine.kernels import (
    KERNELS,
    Kernel,
    StationaryKernel,
    as_kernel,
    kernel_from_arrays,
    to_gpflow,
)
from workbench.engine.wide_mean import enough_labels
from workbench.errors import InputError
from workbench.progress import FitCallback

N_INDUCING = 64
# learnt features hold classes apart by nearly straight lines: a longer scale than elsewhere. On shapes of
# photos and pieces of texts 1 is a little better than 1.4 up to 100 labels, 2 a little from 200 on but worse
# at 50 to 100; choosing among the three from the labels brought nothing. Beside a guess, which tells of whole
# classes, 0.6 is better (docs/results.md)
_LENGTH, _LENGTH_OF_UNITS = 0.6, 1.4

CHOOSING: dict[str, tuple[Any, ...]] = {
    "solver": SOLVERS[:1],
    "kernel": KERNELS,
    "input_scaling": (None,),
    "select_length_scale": (False,),
    "hyperparameters": (None,),
    "calibration": CALIBRATIONS[:1],
}
"""Other options and the values of theirs beside which a geometry can be chosen."""


@estimator
class LargeMarginClassifier(LargeMarginFits):
    """Multi-class Bayesian SVM: a large-margin GP fitted in closed form (Wistuba & Rawat 2018, 2019).

    Covariances, variances and rivals live on P inducing points; from 200 labels and 20 a class on
    (100 and 2 for learnt features of unit length) the mean has a wide basis of `n_mean` more centres,
    which brings it near the accuracy of an RBF SVM at little cost. Class probabilities are
    softmax(beta * mean) with one beta from leave-one-out means.

    Args:
        classes: all classes there can be, sorted in the columns; from y unless given.
        choice: "auto": every ten labels, from two a class on, the model chooses how columns are written
            (numbers, categories, ranks), how features are stretched, its smoothness, a linear part, an
            intercept and whether labelled items join the inducing points, by the leave-one-out
            likelihood; "fixed": none of it. None is "auto" unless another option says the kernel, or leaves
            nothing to choose. Warm starts keep the choice.
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
        length_scale_factor: length scale over the pool's median distance; None for 0.6, and 1.4 for learnt
            features of unit length without a guess.
        select_length_scale: choose among five length scales by leave-one-out likelihood, from 200
            labels and 20 a class on; five times the cost.
        variance: of the kernel.
        rare_margin: classes with few labels are fitted with a wider margin, by this over the root of their
            labels and one (Cao et al. 2019): else they are predicted too rarely. None for 1 with learnt
            features of unit length, and 0 with others.
        hyperparameters: None; "type-II" or "map" learn length scale and variance from the
            objective. With few inducing points this usually makes predictions worse.
        ard: learn one length scale for each feature.
        temperature: tau, over rivals.
        rivals: k rivals a row; None for all while the data are small, else 3; 1 is the papers'
            hard objective.
        wide_spread: the uncertainty the wide mean is fitted with, as a share of the small basis's.
            The wide basis leaves less open, and with less the margin is sharper, nearer an SVM's:
            measured on 16 sets, error and likelihood gain from 1 down to about 0.01.
        solver: "sweeps"; "natural-gradient" in minibatches, for streams; "adam" as the papers.
        max_sweeps: at most this many sweeps.
        tol: sweeps end when they are expected to gain less than this share of the objective.
        batch_size: of the other two solvers.
        epochs: of the other two solvers; 20 and 1000 unless given.
        learning_rate: first step size of natural gradients (0.3), or Adam's (5e-4).
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
        gpflow_model_: the same model in GPflow, on scaled features; without the guess, as `predictor_`; a
            wide mean is its mean function. Its objective has no rare margin.
        mean_weights_: [J] weights of the guesses given as `mean=`, where one was.
        mean_weighed_: labels there were when the weights were last chosen.
        left_out_: `calibration.LeftOut`: how well the fit predicts rows it did not see, and at what beta;
            not there with `calibration=None`, nor in a state.
        stopped_: whether a callback ended the fit early.
        choice_: with `choice="auto"` the last `choice.Choice`, None before the first; `str` of it is a
            sentence for people.
        choices_: all of them, in order.
    """

    has_latent: ClassVar[bool] = True
    takes_mean: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (
        "beta_",
        "mean_",
        "precision_",
        "root_",
        "wide_mean_",
        "stopped_",
    )
    _transient_names: ClassVar[tuple[str, ...]] = ("_gpflow_model", "_predictor", "_bases", "left_out_")

    choice: str | None = option(None, choices=("auto", "fixed"), optional=True)
    n_inducing: int | None = option(None, at_least=1)
    geometry: Geometry | None = None
    inducing: Any = "k-means++"
    clip: float = option(2.0, above=0.0)
    common_scale: bool = False
    input_scaling: str | None = option(None, choices=("anova-f", None))
    length_scale_factor: float | None = option(None, above=0.0)
    select_length_scale: bool = False
    warm_start: bool = False

    mean_: Floats = fitted()
    precision_: Floats = fitted()
    root_: Floats = fitted()
    wide_mean_: Floats = fitted()
    beta_: float = fitted()
    stopped_: bool = fitted()
    choices_: tuple[Choice, ...] = fitted()

    # ------------------------------------------------------------------ geometry

    def measure(self, features: Array, seed: int, common_scale: bool = False) -> Geometry:
        """The geometry this model wants of a pool.

        Args:
            features: [N, D] raw features of the pool.
            seed: same seed and rows, same geometry.
            common_scale: one scale for all features (pixels).
        """
        points = self.n_inducing
        if points is None:
            points = N_INDUCING if self.n_mean else default_inducing(len(features))
        is_array = not isinstance(self.inducing, str)
        geometry = Geometry.of(
            features,
            points,
            seed,
            n_mean=self.n_mean,
            common_scale=common_scale,
            clip=self.clip,
            method="k-means++" if is_array else self.inducing,
            representations=not is_array and self._chooses(),
        )
        if not is_array:
            return geometry
        inducing = np.asarray(self.inducing, dtype=np.float64)
        if inducing.ndim != 2 or inducing.shape[1] != features.shape[1] or not np.isfinite(inducing).all():
            raise InputError(
                f"inducing must be 'k-means++', 'random' or a finite array [P, {features.shape[1]}]; "
                f"got shape {inducing.shape}."
            )
        return geometry._replace(inducing=np.unique(geometry.transform(inducing), axis=0))

    # ------------------------------------------------------------------ fitting

    def fit_beside(
        self,
        X: Array,
        codes: Ints,
        leader: LargeMarginClassifier | None,
        callback: FitCallback | None = None,
        mean: Floats | None = None,
    ) -> Self:
        """Fit as one of several models of the same features that share a geometry and a kernel.

        Args:
            X: [n, D] raw features.
            codes: [n] labels.
            leader: fitted; its geometry and kernel are taken as they are. None: this one chooses for all, so
                nothing is stretched by its own labels.
            callback: as in `fit`.
            mean: as in `fit`.
        """
        check_options(self)
        draft = self._draft()
        draft._inputs = FitInputs(leader=draft if leader is None else leader._value())
        self._publish(draft._fitted_to(X, codes, callback, mean, self.__dict__.get("_fit")))
        return self

    def _take_over(self, leader: LargeMarginClassifier, X: Floats) -> tuple[Kernel, Any]:
        """The leader's geometry and kernel, and the posterior to start from."""
        before = self.__dict__.get("geometry_")
        if leader.n_features_in_ != X.shape[1]:
            raise InputError(
                f"The shared geometry is for {leader.n_features_in_} features, not {X.shape[1]}."
            )
        self.geometry_, self.choices_ = leader.geometry_, leader.choices_
        self.__dict__["_bases"] = leader._held()
        stands = self._warm() and before is not None and self._stands(before, leader.kernel_)
        return leader.kernel_, self._start() if stands else None

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        self._check()
        leader = self._inputs.leader
        if leader is not None and leader is not self:
            kernel, start = self._take_over(leader, X)
            self._fit_with(kernel, start, X, codes, Progress(callback))
            return
        has_choice = self._chooses() and self._warm() and bool(self.__dict__.get("choices_"))
        if has_choice:
            pass  # the present geometry is the chosen one
        elif self.geometry is not None or (self._warm() and hasattr(self, "geometry_")):
            self._resolve_geometry(X, N_INDUCING)
        else:
            self.geometry_ = self.measure(X, self._seed(), self.common_scale)
            self.measured_rows_ = len(X)
        if not has_choice:
            self.choices_ = ()
        report = Progress(callback)
        before = self.geometry_
        look = self._look(X, codes, report, alone=leader is None) if self._chooses() else None
        if look is not None:
            kernel, start = look.kernel, look.fit.posterior
            if self._warm() and self._stands(before, kernel):
                start = self._start()  # nothing moved: go on as if there had been no look
        elif has_choice:
            kernel, start = self.kernel_, self._start()
        else:
            scaled = self.geometry_.transform(X, self._numpy_dtype())
            kernel, start = self._first_kernel(scaled, codes), self._start()
        self._fit_with(kernel, start, X, codes, report)

    def _fit_with(self, kernel: Kernel, start: Any, X: Floats, codes: Ints, report: Progress) -> None:
        """Everything after the choice of a geometry."""
        scaled = self.geometry_.transform(X, self._numpy_dtype())
        self._weigh(kernel, scaled, codes)
        best = self._fit_at(
            kernel, scaled, codes, start, report.part(0.0, 0.8), offset=self._offset(slice(None))
        )
        enough = enough_labels(len(codes), len(self.classes_))
        if self.select_length_scale and not report.stopped and enough:
            best = self._select(best, scaled, codes, report)
        self._adopt(best)
        self.beta_ = self._calibrate(best, scaled, codes, report)
        self.stopped_ = report.stopped
        self._predictor = self._folded()
        report(1.0, self.objective_)

    def _adopt(self, best: KernelFit) -> None:
        self.kernel_ = best.kernel
        self.mean_, self.precision_, self.root_ = best.fit.posterior
        self.wide_mean_ = best.wide
        self.objective_trace_ = np.asarray(best.fit.trace, dtype=np.float64)
        self.objective_ = float(self.objective_trace_[-1])
        self.n_iter_ = max(1, len(self.objective_trace_) - (self.solver == "sweeps"))

    def _chooses(self) -> bool:
        """True if the geometry is chosen: unless told not to, or told what it would choose or judge by."""
        clash = next((name for name, may in CHOOSING.items() if getattr(self, name) not in may), None)
        if self.choice == "auto" and clash is not None:
            values = " or ".join(map(repr, CHOOSING[clash]))
            raise InputError(
                f"choice='auto' does nothing with {clash}={getattr(self, clash)!r}: it is for {clash} "
                f"{values}. Leave it out, or set {clash}."
            )
        if self.choice is None:
            return clash is None and self.kernel == KERNELS[0]
        return self.choice == "auto"

    def _check(self) -> None:
        rate = self.learning_rate
        if self.solver == "natural-gradient" and rate is not None and not rate <= 1:
            raise InputError(f"learning_rate of natural gradients must lie in (0, 1]; got {rate}.")
        if isinstance(self.inducing, str) and self.inducing not in ("k-means++", "random"):
            raise InputError(f"inducing must be one of 'k-means++', 'random'; got {self.inducing!r}.")
        needing = ("select_length_scale", "hyperparameters", "input_scaling", "ard")
        clash = [name for name in needing if getattr(self, name)]
        if clash and not isinstance(self.kernel, str):
            raise InputError(
                f"A GPflow kernel object is used as it is; {clash[0]} needs a kernel by name: "
                f"{', '.join(KERNELS)}."
            )

    def _length(self, geometry: Geometry) -> float:
        """The length scale on a geometry, before the labels have a say."""
        factor = self.length_scale_factor
        if factor is None:
            is_smooth = of_unit_length(geometry) and self._inputs.sources is None
            factor = _LENGTH_OF_UNITS if is_smooth else _LENGTH
        return factor * geometry.length_scale

    def _first_kernel(self, scaled: Floats, codes: Ints) -> Kernel:
        if not isinstance(self.kernel, str):
            return as_kernel(self.kernel)
        length: Any = self._length(self.geometry_)
        if self.input_scaling == "anova-f" and len(np.unique(codes)) > 1 and len(codes) > 2:
            length = lengths_by_f(length, f_statistics(scaled, codes), self.geometry_.inducing)
        return StationaryKernel(self.kernel, length, float(self.variance))

    @property
    def choice_(self) -> Choice | None:
        """The last choice of a geometry."""
        choices = self._value().__dict__.get("choices_", ())
        return choices[-1] if choices else None

    def _stands(self, before: Geometry, kernel: Kernel) -> bool:
        """True if the present posterior is one of this kernel on these points."""
        if not hasattr(self, "mean_") or before.name != self.geometry_.name:
            return False
        is_same = np.array_equal(before.inducing, self.geometry_.inducing)
        return is_same and same_value(self.kernel_.to_arrays(), kernel.to_arrays())

    def _look(self, X: Floats, codes: Ints, report: Progress, alone: bool = True) -> KernelFit | None:
        """Choose the geometry, if it is time to; sets `geometry_` and gives the fit to start from."""
        last = self.choice_
        n = len(codes)
        before = last.labels if last else 0
        if len(np.unique(codes)) < 2 or not choosing.due(n, len(self.classes_), before, choosing.ONE_FACTOR):
            return None
        rows = self._looked_at(n)
        few, few_codes = X[rows], codes[rows]
        pool = self.geometry_
        if last is not None and last.n_labelled_points:
            pool = pool._replace(inducing=pool.inducing[: -last.n_labelled_points])
        fits: dict[Candidate, tuple[Geometry, KernelFit]] = {}

        # neighbouring candidates differ little: what the rows said last, or the present fit
        start: Any = self._start()

        def judge(candidate: Candidate) -> cal.LeftOut:
            nonlocal start
            geometry, fit = self._fit_of(candidate, pool, few, few_codes, rows, start)
            assert fit.left_out is not None
            fits[candidate] = geometry, fit
            start = fit.terms
            return fit.left_out

        try:
            factors = choosing.turn(choosing.steps(pool, alone), n, len(self.choices_))
            present = last.candidate if last else Candidate()
            choice = choosing.look(present if alone else replace(present, stretch=0.0), factors, judge, n)
            if choice.candidate.stretch and n <= choosing.STRETCH_JUDGED:
                plain = replace(choice.candidate, stretch=0.0)
                try:
                    without = -judge(plain).log_likelihood
                    losses = self._losses_apart(
                        choice.candidate, *fits[choice.candidate], few, few_codes, rows
                    )
                except (InputError, ValueError, ArithmeticError, np.linalg.LinAlgError):
                    without = losses = np.full(1, choice.loss)  # it was fitted once, and stays
                if choosing.clearly_better(without, losses):
                    loss = float(without.mean())
                    choice = replace(choice, candidate=plain, loss=loss)
                else:
                    choice = replace(choice, loss=float(losses.mean()), plain_loss=None)
            self.geometry_, best = fits[choice.candidate]
        except BaseException:
            self.geometry_ = pool
            raise
        extra = len(self.geometry_.inducing) - len(pool.select(choice.candidate.representation).inducing)
        self.choices_ = (*self.choices_, replace(choice, n_labelled_points=extra))
        return best

    def _looked_at(self, n: int) -> Any:
        """Places of the rows that a look is taken at, among n."""
        if n <= choosing.ROWS:
            return slice(None)
        return np.sort(np.random.default_rng([self._draw, 4]).choice(n, choosing.ROWS, replace=False))

    def _fit_of(
        self,
        candidate: Candidate,
        pool: Geometry,
        scaled_from: Floats,
        codes: Ints,
        rows: Any,
        start: Any,
    ) -> tuple[Geometry, KernelFit]:
        """A candidate's geometry, set as the present one, and its judged fit.

        Args:
            candidate: of the choice.
            pool: the geometry without labelled points.
            scaled_from: [n, D] raw features of the rows looked at.
            codes: [n] their classes.
            rows: their places among all rows.
            start: what the rows said in another fit, or a posterior; one of other points is not used.
        """
        geometry = pool.select(candidate.representation)
        scaled = geometry.transform(scaled_from, self._numpy_dtype())
        kernel = self._kernel_of(candidate, geometry, scaled, codes)
        if candidate.labelled:
            geometry = with_points(geometry, self._uncovered(kernel, geometry, scaled))
        self.geometry_ = geometry
        offset = self._offset(rows)
        from workbench.engine.large_margin_state import Posterior

        if isinstance(start, Posterior) and len(start.mean) != len(geometry.inducing):
            start = None
        fit = self._fit_at(kernel, scaled, codes, start, Progress(None), rough=True, offset=offset)
        return geometry, self._judged(fit, codes)

    def _kernel_of(self, candidate: Candidate, geometry: Geometry, scaled: Floats, codes: Ints) -> Kernel:
        length = self._length(geometry)
        return candidate.kernel(self.kernel, length, float(self.variance), geometry, scaled, codes)

    def _losses_apart(
        self, candidate: Candidate, geometry: Geometry, fit: KernelFit, X: Floats, codes: Ints, rows: Any
    ) -> Floats:
        """Losses [n] of a stretched candidate on labels that did not stretch it, fold by fold.

        Args:
            candidate: of the choice.
            geometry: of its fit.
            fit: to all of these rows.
            X: [n, D] raw features.
            codes: [n] classes.
            rows: their places among all rows.
        """
        self.geometry_ = geometry
        scaled = geometry.transform(X, self._numpy_dtype())

        def kernel_of(inside: Ints) -> Kernel:
            return self._kernel_of(candidate, geometry, scaled[inside], codes[inside])

        means = self._cross_validated(
            kernel_of, scaled, codes, self._offset(rows), rough=True, folds=choosing.STRETCH_FOLDS
        )
        return -cal.judge(means, codes, np.arange(len(codes)), self._prior_log_beta(fit)).log_likelihood

    def leave_one_out(
        self,
        X: Array,
        codes: Ints,
        geometry: Geometry,
        mean: Floats | None = None,
        as_new: Array | None = None,
        beside: LeaveOneOutScores | None = None,
    ) -> LeaveOneOutScores:
        """Score of the model for labels left out on these features; it stays as it is.

        What its last choice said of the kernel holds. Features of several kinds are compared by this, on the
        same rows.

        Args:
            X: [n, D] raw features of the labelled rows.
            codes: [n] places of their classes in the option `classes`.
            geometry: of the pool in these features.
            mean: [J, n, C] guesses at them, or None.
            as_new: [n, D] features that the same items would have, had they come later, where these differ.
            beside: what was predicted of the same rows on other features: the fit starts from it.

        Returns:
            The likelihoods of the rows that a look is taken at, and the state to go on from.
        """
        draft = self._draft()
        before = self._value().__dict__ if "_fit" in self.__dict__ else {}
        draft.classes_ = np.asarray(self.classes)
        draft.n_rows_, draft.n_features_in_ = len(codes), X.shape[1]
        if mean is not None:
            draft._inputs = FitInputs(np.asarray(mean, dtype=np.float64))
            for name in ("mean_weights_", "mean_weighed_"):
                if name in before:
                    setattr(draft, name, before[name])
        choices: tuple[Choice, ...] = before.get("choices_", ())
        candidate = choices[-1].candidate if choices else Candidate()
        if candidate.representation not in geometry.names:
            candidate = replace(candidate, representation=geometry.name)
        rows = draft._looked_at(len(codes))
        few = np.asarray(X, dtype=np.float64)[rows]
        start = beside.carried if beside is not None else self._value()._at(geometry) if choices else None
        fit_geometry, fit = draft._fit_of(candidate, geometry, few, codes[rows], rows, start)
        if as_new is not None:
            later = fit_geometry.transform(np.asarray(as_new, dtype=np.float64)[rows], self._numpy_dtype())
            fit = draft._judged_at(fit, later, codes[rows])
        assert fit.left_out is not None

        def begun() -> dict[str, Array]:
            extra = len(fit_geometry.inducing) - len(geometry.select(candidate.representation).inducing)
            draft._adopt(fit)
            draft.beta_, draft.stopped_ = fit.left_out.beta, False  # type: ignore[union-attr]
            last = replace(choices[-1], candidate=candidate, n_labelled_points=extra)
            draft.choices_ = (*choices[:-1], last)
            return draft._whole_state()

        return LeaveOneOutScores(fit.left_out.log_likelihood, begun if choices else None, fit.terms)

    def _uncovered(self, kernel: Kernel, geometry: Geometry, scaled: Floats) -> Floats:
        """The rows that the inducing points leave most open, at most as many as may join these."""
        if len(scaled) <= choosing.LABELLED:
            return scaled
        basis = projection.cached_basis(geometry.inducing, kernel, self.dtype)
        _, residual = projection.project(scaled, basis, kernel)
        rows = np.argsort(-residual, kind="stable")[: choosing.LABELLED]
        return scaled[np.sort(rows)]

    # ------------------------------------------------------------------ state

    def _start(self) -> Any:
        """The present posterior, its classes matched by label, or None for a cold start."""
        if not self._warm() or not hasattr(self, "mean_") or len(self.mean_) != len(self.geometry_.inducing):
            return None
        from workbench.engine.large_margin_state import Posterior

        start = Posterior(self.mean_, self.precision_, self.root_)
        before, after = np.asarray(self._previous_classes).tolist(), self.classes_.tolist()
        return start if before == after else start.rearranged(before, after)

    def _at(self, pool: Geometry) -> Any:
        """The posterior of this fit, where it is one of these centres."""
        from workbench.engine.large_margin_state import Posterior

        geometry = self.__dict__.get("geometry_")
        centres = pool.inducing
        if geometry is None or not np.array_equal(geometry.inducing[: len(centres)], centres):
            return None
        return Posterior(self.mean_, self.precision_, self.root_)

    @property
    def predictor_(self) -> Predictor:
        """Latents in NumPy."""
        fit = self._value()
        predictor: Predictor | None = fit.__dict__.get("_predictor")
        if predictor is None:  # a state just loaded: where it only starts a fit, nobody asks
            predictor = fit._predictor = fit._folded()
        return predictor

    def _folded(self) -> Predictor:
        basis = self._basis(self.kernel_)
        widened = len(self.wide_mean_) > 0
        return Predictor.from_posterior(
            self.geometry_,
            self.kernel_,
            basis,
            self.wide_mean_ if widened else self.mean_,
            None,
            roots=np.asarray(self.root_),
            mean_basis=self._wide_basis(self.kernel_) if widened else None,
            dtype=self._numpy_dtype(),
        )

    def _state(self) -> dict[str, Array]:
        state = super()._state() | prefixed("kernel", self.kernel_.to_arrays())
        if self.choices_:
            state["choices_"] = np.asarray(choosing.to_text(self.choices_))
        return state

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        self.kernel_ = kernel_from_arrays(within("kernel", state))
        self.choices_ = choosing.from_text(str(state["choices_"])) if "choices_" in state else ()

    def _gpflow_model_of(self) -> Any:
        """Q as GPflow's model; a wide mean is its mean function."""
        from workbench.engine.gaussian import q_sqrt_of
        from workbench.engine.gpflow_models import FunctionMean, as_svgp
        from workbench.engine.likelihoods import LargeMargin

        mean, mean_function = self.mean_, 0.0
        wide = self._wide_basis(self.kernel_)
        if wide is not None and len(self.wide_mean_):
            kernel, points, weights = to_gpflow(self.kernel_), wide.points, wide.whitener @ self.wide_mean_
            mean = np.zeros_like(mean)
            mean_function = FunctionMean(lambda X: kernel(X, points) @ weights)
        return as_svgp(
            LargeMargin(len(self.classes_), self.temperature, self.beta_),
            self.kernel_,
            self._basis(self.kernel_),
            mean,
            q_sqrt_of(np.asarray(self.root_, dtype=np.float64)),
            mean_function=mean_function,
            n_rows=self.n_rows_,
        )

    # ------------------------------------------------------------------ the guess

    def _weigh(self, kernel: Kernel, scaled: Floats, codes: Ints) -> None:
        """Choose the weights of the guesses, if it is time to.

        By the likelihood of labels left out, each weight with its own temperature and fits (math.md, 13).
        """
        inside = scaled[: len(scaled) - len(scaled) // FOLDS]  # as many rows as a fold's fit has
        wide = self._carry_wide(inside) and self._wide_basis(kernel) is not None
        centre = cal.prior_log_beta(float(self.variance), self.wide_spread if wide else 1.0)

        def judge(rows: Any, weights: Floats) -> cal.LeftOut:
            few = codes[rows]
            means = self._cross_validated(
                lambda fold: kernel, scaled[rows], few, self._offset(rows, weights), rough=True
            )
            return cal.judge(means, few, np.arange(len(few)), centre)

        self._choose_weights(len(codes), centre, judge)

    def _prior_beta(self) -> float:
        return float(np.exp(cal.prior_log_beta(float(self.variance))))

    # ------------------------------------------------------------------ predicting

    def _probabilities(self, X: Floats) -> Floats:
        return cal.softmax(self.predictor_.mean(X), self.beta_)

    def _probabilities_with(self, X: Floats, mean: Floats) -> Floats:
        return cal.softmax(self.predictor_.mean(X) + mean, self.beta_)

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)
