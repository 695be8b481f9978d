"""The large-margin GP as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import calibration as cal
from workbench.classifiers import choice as choosing
from workbench.classifiers.base import BaseBayesianClassifier
from workbench.classifiers.choice import Candidate, Choice
from workbench.classifiers.feature_scaling import f_statistics, lengths_by_f
from workbench.classifiers.geometry import Geometry, prefixed, with_points, within
from workbench.classifiers.gp import WithGPflowModel
from workbench.classifiers.latent import Latent
from workbench.classifiers.options import estimator, fitted, option
from workbench.classifiers.predictor import Predictor
from workbench.classifiers.protocols import Foretold
from workbench.engine import projection, wide_mean
from workbench.engine.fitting import Progress
from workbench.engine.kernels import KERNELS, Kernel, StationaryKernel, as_kernel, kernel_from_arrays
from workbench.engine.projection import Basis
from workbench.engine.wide_mean import enough_labels
from workbench.errors import InputError
from workbench.progress import FitCallback

N_INDUCING = 64
N_MEAN = 448
WIDE_BYTES = 250_000_000  # the wide basis looks at no more rows than fit into this
LEFT_OUT_ROWS = 100_000
CANDIDATES = (0.5, 0.7, 1.0, 1.4, 2.0)  # length scales tried, times the default
FOLDS = 5
_POINTS_BY_LABELS = ((4000, 256), (1000, 128))  # without a wide basis
_LEARNING_ROUNDS = 5
# of 0.5, 1, 1.5, 2, 2.5 and never it gave the lowest error and likelihood on 20 sets
_STANDARD_ERRORS = 1.5
# learnt features hold classes apart by nearly straight lines: a longer scale than elsewhere. On shapes of
# photos and pieces of texts 1 is a little better than 1.4 up to 100 labels, 2 a little from 200 on but worse
# at 50 to 100; choosing among the three from the labels brought nothing
_LENGTH, _LENGTH_OF_UNITS = 0.6, 1.4
# of learnt features a class with a label or two was hardly ever foretold; measured in docs/evidence
_RARE_MARGIN_OF_UNITS = 1.0

SOLVERS = ("sweeps", "natural-gradient", "adam")
STOCHASTIC = {"solver": SOLVERS[1:]}
CALIBRATIONS = ("leave-one-out", "cross-validated")
LEARNING = ("type-II", "map")
CHOOSING: dict[str, tuple[Any, ...]] = {
    "solver": SOLVERS[:1], "kernel": KERNELS, "input_scaling": (None,), "select_length_scale": (False,),
    "hyperparameters": (None,), "calibration": CALIBRATIONS[:1],
}  # fmt: skip
"""Other options and the values of theirs beside which a geometry can be chosen."""


class _KernelFit(NamedTuple):
    """A fit at one kernel, before calibration.

    Attributes:
        kernel: its kernel.
        fit: `engine.large_margin.LargeMarginFit`; rivals, margin and second are of the basis of its mean.
        wide: [B, C] the mean in its wide basis, or [0, C].
        phi: [n, B or P] features in the basis of the mean; let go once `left_out` is there.
        rows: [n] which rows of the data phi holds.
        left_out: how well it foretells rows it did not see.
        offset: [N, C] the guess's mean at the rows of the data, or None.
        terms: of a rough fit, `engine.row_space.RowTerms`: what a fit at another kernel starts from.
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
        mean: Floats = self.wide if len(self.wide) else self.fit.posterior.mean
        return mean


class _Held(NamedTuple):
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


@estimator
class LargeMarginClassifier(WithGPflowModel, BaseBayesianClassifier):
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
            features of unit length.
        select_length_scale: choose among five length scales by leave-one-out likelihood, from 200
            labels and 20 a class on; five times the cost.
        variance: of the kernel.
        rare_margin: classes with few labels are fitted with a wider margin, by this over the root of their
            labels and one (Cao et al. 2019): else they are foretold too rarely. None for 1 with learnt
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
        gpflow_model_: the same model in GPflow, on scaled features; without the guess, as `predictor_`.
        mean_weights_: [J] weights of the guesses given as `mean=`, where one was.
        mean_weighed_: labels there were when the weights were last chosen.
        left_out_: `calibration.LeftOut`: how well the fit foretells rows it did not see, and at what beta;
            not there with `calibration=None`, nor in a state.
        stopped_: whether a callback ended the fit early.
        choice_: with `choice="auto"` the last `choice.Choice`, None before the first; `str` of it is a
            sentence for people.
        choices_: all of them, in order.
    """

    has_latent: ClassVar[bool] = True
    takes_mean: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (
        "beta_", "mean_", "precision_", "root_", "wide_mean_", "stopped_",
    )  # fmt: skip
    _transient_names: ClassVar[tuple[str, ...]] = ("_gpflow_model", "_predictor", "_bases", "left_out_")
    _unpublished: ClassVar[tuple[str, ...]] = ("_gpflow_model", "_predictor", "_bases")

    choice: str | None = option(None, choices=("auto", "fixed"), optional=True)
    n_inducing: int | None = option(None, at_least=1)
    n_mean: int = option(N_MEAN, at_least=0)
    geometry: Geometry | None = None
    inducing: Any = "k-means++"
    clip: float = option(2.0, above=0.0)
    common_scale: bool = False
    input_scaling: str | None = option(None, choices=("anova-f", None))
    kernel: Any = "squared-exponential"
    length_scale_factor: float | None = option(None, above=0.0)
    select_length_scale: bool = False
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
    warm_start: bool = False
    dtype: str = "float64"

    mean_: Floats = fitted()
    precision_: Floats = fitted()
    root_: Floats = fitted()
    wide_mean_: Floats = fitted()
    beta_: float = fitted()
    kernel_: Kernel = fitted()
    geometry_: Geometry = fitted()
    left_out_: cal.LeftOut = fitted()
    stopped_: bool = fitted()
    choices_: tuple[Choice, ...] = fitted()
    _others: ClassVar[Any] = None  # of a draft: see `fit_beside`

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
            representations=not given and self._chooses(),
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
        self.__dict__["_others"] = self if leader is None else leader._value()
        try:
            return self.fit(X, codes, callback=callback, mean=mean)
        finally:
            del self.__dict__["_others"]

    def _draft(self) -> Self:
        draft = super()._draft()
        if "_others" in self.__dict__:
            others = self.__dict__["_others"]
            draft.__dict__["_others"] = draft if others is self else others
        return draft

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
        self._check_kernel()
        others = self.__dict__.pop("_others", None)
        if others is not None and others is not self:
            kernel, start = self._take_over(others, X)
            self._fit_with(kernel, start, X, codes, Progress(callback))
            return
        chosen = self._chooses() and self._warm() and bool(self.__dict__.get("choices_"))
        if chosen:
            pass  # the present geometry is the chosen one
        elif self.geometry is not None or (self._warm() and hasattr(self, "geometry_")):
            self._resolve_geometry(X, N_INDUCING)
        else:
            self.geometry_ = self.measure(X, self._seed(), self.common_scale)
        if not chosen:
            self.choices_ = ()
        report = Progress(callback)
        before = self.geometry_
        found = self._look(X, codes, report, alone=others is None) if self._chooses() else None
        if found is not None:
            kernel, start = found.kernel, found.fit.posterior
            if self._warm() and self._stands(before, kernel):
                start = self._start()  # nothing moved: go on as if there had been no look
        elif chosen:
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
        if self.select_length_scale and not report.stopped and self._enough(codes):
            best = self._select(best, scaled, codes, report)
        self._adopt(best)
        self.beta_ = self._calibrate(best, scaled, codes, report)
        self.stopped_ = report.stopped
        self._predictor = self._folded()
        report(1.0, self.objective_)

    def _adopt(self, best: _KernelFit) -> None:
        self.kernel_ = best.kernel
        self.mean_, self.precision_, self.root_ = best.fit.posterior
        self.wide_mean_ = best.wide
        self.objective_trace_ = np.asarray(best.fit.trace, dtype=np.float64)
        self.objective_ = float(self.objective_trace_[-1])
        self.n_iter_ = max(1, len(self.objective_trace_) - (self.solver == "sweeps"))

    def _chooses(self) -> bool:
        """Whether the geometry is chosen: unless told not to, or told what it would choose or judge by."""
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

    def _check_kernel(self) -> None:
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

    def _enough(self, codes: Ints) -> bool:
        return enough_labels(len(codes), len(self.classes_))

    def _carry_wide(self, scaled: Floats) -> bool:
        """Whether these rows carry a wide mean; fewer do where features are learnt ones of unit length."""
        n, C = len(scaled), len(self.classes_)
        if enough_labels(n, C) or not self.geometry_.common_scale:
            return enough_labels(n, C)
        if not enough_labels(n, C, unit_length=True):
            return False
        return self.geometry_.within_unit_ball(scaled)

    def _length(self, geometry: Geometry) -> float:
        """The length scale on a geometry, before the labels have a say."""
        factor = self.length_scale_factor
        if factor is None:
            factor = _LENGTH_OF_UNITS if _of_unit_length(geometry) else _LENGTH
        return factor * geometry.length_scale

    def _asked(self, codes: Ints, offset: Floats | None) -> Floats | None:
        """[N, C] what is added to the latents while they are fitted, and not when they are used.

        Args:
            codes: [N] true classes.
            offset: [N, C] the guess's mean, which stays; or None.
        """
        rare = self.rare_margin
        if rare is None:
            rare = _RARE_MARGIN_OF_UNITS if _of_unit_length(self.geometry_) else 0.0
        if not rare:
            return offset
        labels = np.bincount(codes, minlength=len(self.classes_))
        less = np.broadcast_to(-rare / np.sqrt(labels + 1.0), (len(codes), len(labels)))
        return less if offset is None else offset + less

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
        choices = self.__dict__.get("choices_", ())
        return choices[-1] if choices else None

    def _stands(self, before: Geometry, kernel: Kernel) -> bool:
        """Whether the present posterior is one of this kernel on these points."""
        if not hasattr(self, "mean_") or before.name != self.geometry_.name:
            return False
        old, new = self.kernel_.to_arrays(), kernel.to_arrays()
        return (
            np.array_equal(before.inducing, self.geometry_.inducing)
            and old.keys() == new.keys()
            and all(np.array_equal(old[name], new[name]) for name in old)
        )

    def _look(self, X: Floats, codes: Ints, report: Progress, alone: bool = True) -> _KernelFit | None:
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
        fits: dict[Candidate, tuple[Geometry, _KernelFit]] = {}

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
        start: Any = None,
    ) -> tuple[Geometry, _KernelFit]:
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
        kernel = candidate.kernel(
            self.kernel, self._length(geometry), float(self.variance), geometry, scaled, codes
        )
        if candidate.labelled:
            geometry = with_points(geometry, self._uncovered(kernel, geometry, scaled))
        self.geometry_ = geometry
        offset = self._offset(rows)
        from workbench.engine.large_margin_state import Posterior

        if isinstance(start, Posterior) and len(start.mean) != len(geometry.inducing):
            start = None
        fit = self._fit_at(kernel, scaled, codes, start, Progress(None), rough=True, offset=offset)
        return geometry, self._judged(fit, codes)

    def foretold(
        self, X: Array, codes: Ints, geometry: Geometry, mean: Floats | None = None,
        as_new: Array | None = None, beside: Foretold | None = None,
    ) -> Foretold:  # fmt: skip
        """How well the model would foretell labels left out on these features; it stays as it is.

        What its last choice said of the kernel holds. Features of several kinds are compared by this, on the
        same rows.

        Args:
            X: [n, D] raw features of the labelled rows.
            codes: [n] places of their classes in the option `classes`.
            geometry: of the pool in these features.
            mean: [J, n, C] guesses at them, or None.
            as_new: [n, D] features that the same items would have, had they come later, where these differ.
            beside: what was foretold of the same rows on other features: the fit starts from it.

        Returns:
            The likelihoods of the rows that a look is taken at, and the state to go on from.
        """
        draft = self._draft()
        before = self._value().__dict__ if "_fit" in self.__dict__ else {}
        draft.classes_ = np.asarray(self.classes)
        draft.n_rows_, draft.n_features_in_ = len(codes), X.shape[1]
        if mean is not None:
            draft.__dict__["_mean"] = np.asarray(mean, dtype=np.float64)
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
        found, fit = draft._fit_of(candidate, geometry, few, codes[rows], rows, start)
        if as_new is not None:
            later = found.transform(np.asarray(as_new, dtype=np.float64)[rows], self._numpy_dtype())
            fit = draft._judged_at(fit, later, codes[rows])
        assert fit.left_out is not None

        def begun() -> dict[str, Array]:
            extra = len(found.inducing) - len(geometry.select(candidate.representation).inducing)
            draft._adopt(fit)
            draft.beta_, draft.stopped_ = fit.left_out.beta, False  # type: ignore[union-attr]
            last = replace(choices[-1], candidate=candidate, n_labelled_points=extra)
            draft.choices_ = (*choices[:-1], last)
            return draft._whole_state()

        return Foretold(fit.left_out.log_likelihood, begun if choices else None, fit.terms)

    def _uncovered(self, kernel: Kernel, geometry: Geometry, scaled: Floats) -> Floats:
        """The rows that the inducing points leave most open, at most as many as may join these."""
        if len(scaled) <= choosing.LABELLED:
            return scaled
        basis = projection.cached_basis(geometry.inducing, kernel, self.dtype)
        _, residual = projection.project(scaled, basis, kernel)
        rows = np.argsort(-residual, kind="stable")[: choosing.LABELLED]
        return scaled[np.sort(rows)]

    def _fit_at(
        self, kernel: Kernel, scaled: Floats, codes: Ints, start: Any, report: Progress, learn: bool = True,
        rough: bool = False, offset: Floats | None = None,
    ) -> _KernelFit:  # fmt: skip
        """Everything but calibration, at one kernel (which is learnt on the way if asked)."""
        asked = self._asked(codes, offset)
        if learn := learn and self.hyperparameters is not None and isinstance(kernel, StationaryKernel):
            kernel, start = self._learn(kernel, scaled, codes, start, report.part(0.0, 0.5), asked)
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
        fit = self._solve(phi, residual, codes, start, tol, report.part(0.5 if learn else 0.0, 0.8), asked)
        small = _KernelFit(kernel, fit, np.zeros((0, len(self.classes_))), phi, rows, offset=offset)
        if rough:
            from workbench.engine.row_space import RowTerms

            said = phi @ fit.posterior.mean, fit.margin, fit.second, fit.rivals, codes, self.temperature
            small = small._replace(terms=RowTerms.of(*said))
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
        found = wide_mean.widen(
            phi_wide, residual[rows], codes[rows], part, self.temperature, self.wide_spread,
            report.part(0.8, 1.0).callback, None if asked is None else asked[rows],
        )  # fmt: skip
        at_wide = fit._replace(rivals=found.rivals, margin=found.margin, second=found.second)
        mean: Floats = found.mean.astype(self._numpy_dtype())
        phi_wide = phi_wide.astype(np.float32, copy=False)
        widened = self._judged(
            _KernelFit(kernel, at_wide, mean, phi_wide, rows, offset=offset, terms=small.terms), codes
        )
        assert small.left_out is not None and widened.left_out is not None
        # where classes overlap the wide mean follows the noise, and the small basis alone knows better
        worse = cal.clearly_less(small.left_out.brier, widened.left_out.brier, _STANDARD_ERRORS)
        return small if worse and not report.stopped else widened

    def _solve(
        self, phi: Floats, residual: Floats, codes: Ints, start: Any, tol: float, report: Progress,
        offset: Floats | None,
    ) -> Any:  # fmt: skip
        from workbench.engine import large_margin as engine

        data = phi, residual, codes, len(self.classes_)
        shared: dict[str, Any] = {
            "start": start, "tau": self.temperature, "callback": report.callback, "offset": offset,
        }  # fmt: skip
        if self.solver == "sweeps":
            return engine.fit(*data, rivals=self.rivals, sweeps=self.max_sweeps, tolerance=tol, **shared)
        shared |= {"batch_size": self.batch_size, "seed": self._draw}
        if self.solver == "natural-gradient":
            return engine.fit_minibatch(
                *data, rivals=self.rivals, epochs=self.epochs or 20,
                rho_start=self.learning_rate or 0.3, **shared,
            )  # fmt: skip
        from workbench.engine import large_margin_training as training

        return training.fit_adam(
            *data, rivals=self.rivals or 1, epochs=self.epochs or 1000,
            learning_rate=self.learning_rate or 5e-4, **shared,
        )  # fmt: skip

    def _learn(
        self, kernel: StationaryKernel, scaled: Floats, codes: Ints, start: Any, report: Progress,
        offset: Floats | None,
    ) -> tuple[StationaryKernel, Any]:  # fmt: skip
        """Alternate sweeps with steps in the kernel's values at fixed whitened q."""
        from workbench.engine import large_margin as engine
        from workbench.engine import large_margin_training as training

        centre = kernel
        shared: dict[str, Any] = {"tau": self.temperature, "rivals": self.rivals, "offset": offset}
        for number in range(1, _LEARNING_ROUNDS + 1):
            basis = self._basis(kernel)
            data = *projection.project(scaled, basis, kernel), codes, len(self.classes_)
            fit = engine.fit(*data, start=start, sweeps=10, tolerance=10.0 * self.tol, **shared)
            start = fit.posterior
            if report(number / _LEARNING_ROUNDS, fit.trace[-1]):
                break
            kernel = training.learn_kernel(
                scaled, basis.points, codes, start, kernel, ard=self.ard, centre=centre,
                prior_spread=0.5 if self.hyperparameters == "map" else None, **shared,
            )  # fmt: skip
        return kernel, start

    def _select(self, first: _KernelFit, scaled: Floats, codes: Ints, report: Progress) -> _KernelFit:
        """The length scale with the highest leave-one-out log-likelihood."""
        base = first.kernel
        assert isinstance(base, StationaryKernel)
        found = [self._judged(first, codes)]
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
            found.append(self._judged(fit, codes))
        return max(found, key=lambda fit: fit.left_out.log_likelihood.mean() if fit.left_out else -np.inf)

    # ------------------------------------------------------------------ calibration

    def _calibrate(self, fit: _KernelFit, scaled: Floats, codes: Ints, report: Progress) -> float:
        if self.calibration is None:
            return float(np.exp(self._prior_log_beta(fit)))
        if self.calibration == "cross-validated" and not report.stopped and len(codes) >= FOLDS:
            means = self._cross_validated(fit.kernel, scaled, codes, fit.offset)
            left_out = cal.judge(means, codes, np.arange(len(codes)), self._prior_log_beta(fit))
        else:
            left_out = self._judged(fit, codes).left_out  # type: ignore[assignment]
        self.left_out_ = left_out
        return left_out.beta

    def _judged(self, fit: _KernelFit, codes: Ints) -> _KernelFit:
        """The fit with how well it foretells a sample of rows as if they had not been there."""
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
        chosen = sampled[sample]
        if fit.offset is not None:
            means = means + fit.offset[chosen]
        return fit._replace(left_out=cal.judge(means, codes[chosen], chosen, self._prior_log_beta(fit)))

    def _judged_at(self, fit: _KernelFit, scaled: Floats, codes: Ints) -> _KernelFit:
        """The judged fit, judged anew on other features [n, D] of the same rows."""
        assert fit.left_out is not None
        rows = fit.left_out.rows
        basis = self._wide_basis(fit.kernel) if len(fit.wide) else None
        phi, _ = projection.project(scaled[rows], basis or self._basis(fit.kernel), fit.kernel)
        at = wide_mean.derivatives(fit.fit.margin, fit.fit.second, self.temperature)
        means = cal.leave_one_out(
            fit.phi, fit.mean, codes[fit.rows], fit.fit.rivals, at, rows, at=phi.astype(fit.phi.dtype)
        )
        if fit.offset is not None:
            means = means + fit.offset[rows]
        return fit._replace(left_out=cal.judge(means, codes[rows], rows, self._prior_log_beta(fit)))

    def _cross_validated(
        self, kernel: Kernel, scaled: Floats, codes: Ints, offset: Floats | None, rough: bool = False
    ) -> Floats:
        """[N, C] means of five-fold cross-validation at a kernel."""
        fold = np.random.default_rng([self._draw, 3]).permutation(len(codes)) % FOLDS
        means = np.zeros((len(codes), len(self.classes_)))
        for number in range(FOLDS):
            inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            moved = None if offset is None else offset[inside]
            part = self._fit_at(
                kernel, scaled[inside], codes[inside], None, Progress(None), learn=False, rough=rough,
                offset=moved,
            )  # fmt: skip
            wide = self._wide_basis(kernel) if len(part.wide) else None
            phi, _ = projection.project(scaled[outside], wide or self._basis(kernel), kernel)
            means[outside] = phi @ part.mean
        return means if offset is None else means + offset

    def _prior_log_beta(self, fit: _KernelFit) -> float:
        variance = float(self.variance)
        if isinstance(fit.kernel, StationaryKernel):
            variance = float(fit.kernel.variance)  # as learnt
        if not isinstance(self.kernel, str):
            variance = float(np.mean(fit.kernel.diagonal(self.geometry_.inducing)))
        return cal.prior_log_beta(variance, self.wide_spread if len(fit.wide) else 1.0)

    # ------------------------------------------------------------------ state

    def _held(self) -> _Held:
        """The bases of this fit, kept with it: who shares them need not look them up by their content."""
        found: _Held | None = self.__dict__.get("_bases")
        if found is None:
            basis, wide = self._basis(self.kernel_), self._wide_basis(self.kernel_)
            found = self.__dict__["_bases"] = _Held(self.geometry_, self.kernel_, basis, wide, {})
        return found

    def _holds(self, kernel: Kernel) -> bool:
        held: _Held | None = self.__dict__.get("_bases")
        return held is not None and held.geometry is self.geometry_ and held.kernel is kernel

    def _projected(self, scaled: Floats, basis: Basis, kernel: Kernel) -> tuple[Floats, Floats]:
        """As `projection.project`; of models that share a basis and rows, done once."""
        if not self._holds(kernel):
            return projection.project(scaled, basis, kernel)
        kept, size = self._held().rows, len(basis.points)
        known = kept.get(size)
        if known is None or not np.array_equal(known[0], scaled):
            kept[size] = known = (scaled, *projection.project(scaled, basis, kernel))
        return known[1], known[2]

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

        mine = self.__dict__.get("geometry_")
        centres = pool.inducing
        if mine is None or not np.array_equal(mine.inducing[: len(centres)], centres):
            return None
        return Posterior(self.mean_, self.precision_, self.root_)

    @property
    def predictor_(self) -> Predictor:
        """Latents in NumPy."""
        fit = self._value()
        made: Predictor | None = fit.__dict__.get("_predictor")
        if made is None:  # a state just loaded: where it only starts a fit, nobody asks
            made = fit._predictor = fit._folded()
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
        state = super()._state() | prefixed("kernel", self.kernel_.to_arrays())
        if self.choices_:
            state["choices_"] = np.asarray(choosing.to_text(self.choices_))
        return state

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        self.kernel_ = kernel_from_arrays(within("kernel", state))
        self.choices_ = choosing.from_text(str(state["choices_"])) if "choices_" in state else ()

    def _gpflow_model_of(self) -> Any:
        from workbench.engine.kernels import to_gpflow
        from workbench.engine.large_margin_model import LargeMarginGP

        basis = self._basis(self.kernel_)
        wide = self._wide_basis(self.kernel_) if len(self.wide_mean_) else None
        model = LargeMarginGP(
            to_gpflow(self.kernel_), basis.points, len(self.classes_),
            wide=None if wide is None else wide.points, tau=self.temperature, beta=self.beta_,
            jitter=basis.jitter, wide_jitter=None if wide is None else wide.jitter,
        )  # fmt: skip
        roots = np.asarray(self.root_, dtype=np.float64)
        covariance = np.matmul(roots.transpose(0, 2, 1), roots)
        model.assign(self.mean_, covariance, None if wide is None else self.wide_mean_)
        return model

    # ------------------------------------------------------------------ the guess

    def _weigh(self, kernel: Kernel, scaled: Floats, codes: Ints) -> None:
        """Choose the weights of the guesses, if it is time to.

        By the likelihood of labels left out, each weight with its own temperature and fits (math.md, 13).
        """
        centre = cal.prior_log_beta(float(self.variance))

        def judge(rows: Any, weights: Floats) -> cal.LeftOut:
            few = codes[rows]
            means = self._cross_validated(kernel, scaled[rows], few, self._offset(rows, weights), rough=True)
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


def _of_unit_length(geometry: Geometry) -> bool:
    """Whether a pool's features are learnt ones of unit length."""
    return bool(geometry.common_scale and geometry.within_unit_ball(geometry.inducing))
