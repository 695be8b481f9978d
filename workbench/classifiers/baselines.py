"""scikit-learn's classifiers behind the contract of the others, for comparison."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

from workbench.arrays import Array, Floats, Ints, column_moments
from workbench.classifiers import calibration as cal
from workbench.classifiers.base import BaseBayesianClassifier
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.guess_weights import judged_by_folds
from workbench.classifiers.options import estimator, fitted, option
from workbench.classifiers.representation import Representation
from workbench.errors import InputError
from workbench.progress import FitCallback

FOLDS = 5
ROUGH = 30  # iterations of a fit that only judges a weight
MAX_LAPLACE_ROWS = 6000  # an N x N matrix per class, factored in every Newton step


@estimator
class Baseline(BaseBayesianClassifier):
    """Scaling, classes without labels, and a state of (X, y) that is fitted again, exactly.

    A class without labels gets 1 / (N + C), the rule of succession; the others share the rest.
    A subclass implements `_fit_present(scaled, codes)` for at least two classes present, in
    0..K-1, and `_predict_present(scaled)` -> [N, K].
    """

    _state_names: ClassVar[tuple[str, ...]] = ("X_", "codes_", "seed_")

    geometry: Geometry | None = None

    X_: Floats = fitted()
    codes_: Ints = fitted()
    seed_: int = fitted()

    @abstractmethod
    def _fit_present(self, scaled: Floats, codes: Ints) -> None: ...

    @abstractmethod
    def _predict_present(self, scaled: Floats) -> Floats: ...

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        geometry = self._given_geometry(X)
        if geometry is not None:
            self.geometry_ = geometry
        self.seed_ = self._seed()
        self._fit_rows(np.array(X, dtype=np.float64), codes)
        if callback is not None:
            # scikit-learn fits in one go; this says that it is done
            callback(1.0, float(getattr(self, "objective_", 0.0)))

    def _fit_rows(self, X: Floats, codes: Ints) -> None:
        from workbench.engine.runtime import prepare

        prepare()  # one thread for linear algebra, as for every other model
        self.X_, self.codes_ = X, np.asarray(codes, dtype=np.int64)
        self.present_, present_codes = np.unique(self.codes_, return_inverse=True)
        self._scale_of(X)
        if len(self.present_) > 1:
            self._fit_present(self._scaled(X), present_codes.reshape(-1))

    def _scale_of(self, X: Floats) -> None:
        if not hasattr(self, "geometry_"):
            self._shift, self._scale = column_moments(X)
            constant = self._scale <= 1e-10 * np.maximum(np.abs(self._shift), 1e-300)
            self._scale = np.where(constant, 1.0, self._scale)

    def _scaled(self, X: Floats) -> Floats:
        if hasattr(self, "geometry_"):
            return self.geometry_.transform(X)
        return (X - self._shift) / self._scale

    def _probabilities(self, X: Floats) -> Floats:
        is_one = len(self.present_) < 2
        return self._beside_others(np.ones((len(X), 1)) if is_one else self._predict_present(self._scaled(X)))

    def _beside_others(self, p: Floats) -> Floats:
        """[n, C] probabilities [n, K] of classes with labels beside those that have none."""
        n, C = len(self.codes_), len(self.classes_)
        out = np.full((len(p), C), 1.0 / (n + C))
        share = 1.0 - (C - len(self.present_)) / (n + C)
        out[:, self.present_] = share * p / p.sum(axis=1, keepdims=True)
        return out

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        self._fit_rows(self.X_, self.codes_)


@estimator
class CalibratedSVMClassifier(Baseline):
    """RBF support vector machine with probabilities by cross-validated Platt scaling.

    There are as many folds as the rarest class with labels has members, at most five. A class with
    a single label cannot be in both parts of a split (calibrated all the same, every item gets the
    same probabilities): then probabilities are the softmax of the decision values.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
        C: penalty.
        gamma: of the kernel exp(-gamma |x - x'|^2), or "scale" or "auto" as in `sklearn.svm.SVC`.
        geometry: of the pool, for its scaling; None standardises by X.
        random_state: of the folds.

    Attributes:
        classes_: [C] labels.
        present_: codes of the classes that have labels.
        svm_: the fitted scikit-learn estimator.
        calibrated_: whether there were labels enough to calibrate.
    """

    C: float = option(5.0, above=0.0)
    gamma: Any = "scale"

    def _fit_present(self, scaled: Floats, codes: Ints) -> None:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.model_selection import StratifiedKFold
        from sklearn.svm import SVC

        svc = SVC(C=self.C, gamma=self.gamma)
        least = int(np.bincount(codes).min())
        self.calibrated_ = least >= 2
        if self.calibrated_:
            folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=self.seed_ % 2**32)
            svc = CalibratedClassifierCV(svc, method="sigmoid", cv=folds, ensemble=False)
        self.svm_ = svc.fit(scaled, codes)

    def _predict_present(self, scaled: Floats) -> Floats:
        if self.calibrated_:
            p: Floats = self.svm_.predict_proba(scaled)
            return np.maximum(p, 1e-15)
        decision = self.svm_.decision_function(scaled)
        if decision.ndim == 1:
            decision = np.stack([-decision, decision], axis=1)
        return cal.softmax(decision)


class LinearScores(NamedTuple):
    """A logistic regression: share * softmax(W z + b) over K classes, `least` for every other one.

    Attributes:
        coefficients: [K, D'] W.
        intercept: [K] b.
        present: [K] codes of the classes.
        share: of the K classes together.
        least: of each other class.
        shift, scale, clip: z = clip((x - shift) / scale).
        representation: of the columns before that, or None.
    """

    coefficients: Floats
    intercept: Floats
    present: Ints
    share: float
    least: float
    shift: Floats
    scale: Floats
    clip: float
    representation: Representation | None


@estimator
class LogisticRegressionClassifier(Baseline):
    """Multinomial logistic regression on standardised features.

    With a guess its scores are an offset of the linear predictor, every class takes part, whether it
    has labels or not, and intercepts are penalised as the coefficients are.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
        C: inverse strength of the squared penalty.
        max_iter: of L-BFGS.
        geometry: of the pool, for its scaling; None standardises by X.
        random_state: of nothing here; part of every classifier's options.

    Attributes:
        classes_: [C] labels.
        present_: codes of the classes that have labels.
        objective_: log-likelihood of the labels minus the penalty.
        n_iter_: of L-BFGS.
    """

    takes_mean: ClassVar[bool] = True
    _guess_scale: ClassVar[float] = 2.0

    C: float = option(1.0, above=0.0)
    max_iter: int = option(1000, at_least=1)

    guided_: Floats = fitted()
    offset_: Floats = fitted()

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        if self._inputs.sources is not None:
            rows = np.array(X, dtype=np.float64)
            geometry = self._given_geometry(rows)
            if geometry is not None:
                self.geometry_ = geometry
            self._scale_of(rows)
            self._choose_weights(len(codes), 0.0, partial(self._judge, self._scaled(rows), codes))
            self.offset_ = np.asarray(self._offset())
        super()._fit_codes(X, codes, callback)

    def _fit_rows(self, X: Floats, codes: Ints) -> None:
        super()._fit_rows(X, codes)
        if "offset_" in self.__dict__:
            scaled = self._scaled(X)
            self.guided_, self.objective_, self.n_iter_ = _with_offset(
                scaled, self.codes_, self.offset_, self.C, self.max_iter
            )

    def _judge(self, scaled: Floats, codes: Ints, rows: Any, weights: Floats) -> cal.LeftOut:
        """Scores of the held-out labels under fits to four fifths of some rows."""
        offset = self._offset(rows, weights)
        assert offset is not None
        return judged_by_folds(
            codes[rows],
            len(self.classes_),
            self._draw,
            lambda inside, outside: _softmax(
                scaled[rows][outside],
                _with_offset(scaled[rows][inside], codes[rows][inside], offset[inside], self.C, ROUGH)[0],
                offset[outside],
            ),
        )

    def _probabilities(self, X: Floats) -> Floats:
        if "offset_" in self.__dict__:
            return self._probabilities_with(X, np.zeros((len(X), len(self.classes_))))
        return super()._probabilities(X)

    def _probabilities_with(self, X: Floats, mean: Floats) -> Floats:
        return _softmax(self._scaled(X), self.guided_, mean)

    def _state(self) -> dict[str, Array]:
        return super()._state() | ({"offset_": self.offset_} if "offset_" in self.__dict__ else {})

    def _set_state(self, state: Mapping[str, Array]) -> None:
        self._take(("offset_",), state)
        super()._set_state(state)

    @property
    def linear_(self) -> LinearScores:
        """The fit as plain arrays."""
        fit, C = self._value(), len(self.classes_)
        if hasattr(fit, "geometry_"):
            g = fit.geometry_
            scaling: tuple[Any, ...] = (g.shift, g.scale, g.clip, g.representation)
        else:
            scaling = (fit._shift, fit._scale, np.inf, None)
        if "offset_" in fit.__dict__:
            return LinearScores(fit.guided_[:-1].T, fit.guided_[-1], np.arange(C), 1.0, 0.0, *scaling)
        least = 1.0 / (len(fit.codes_) + C)
        share = 1.0 - (C - len(fit.present_)) * least
        if len(fit.present_) < 2:
            coefficients, intercept = np.zeros((len(fit.present_), fit.X_.shape[1])), np.zeros(1)
        else:
            coefficients, intercept = fit.regression_.coef_, fit.regression_.intercept_
            if len(coefficients) == 1:  # of two classes one score, for the second
                coefficients, intercept = np.vstack([0.0 * coefficients, coefficients]), np.r_[0.0, intercept]
        return LinearScores(coefficients, intercept, fit.present_, share, least, *scaling)

    def _fit_present(self, scaled: Floats, codes: Ints) -> None:
        from sklearn.linear_model import LogisticRegression

        self.regression_ = LogisticRegression(C=self.C, max_iter=self.max_iter).fit(scaled, codes)
        log_p = self.regression_.predict_log_proba(scaled)[np.arange(len(codes)), codes]
        self.objective_ = float(log_p.sum() - 0.5 * np.sum(self.regression_.coef_**2) / self.C)
        self.n_iter_ = int(self.regression_.n_iter_.max())

    def _predict_present(self, scaled: Floats) -> Floats:
        return np.maximum(self.regression_.predict_proba(scaled), 1e-15)


def _softmax(scaled: Floats, coefficients: Floats, offset: Floats) -> Floats:
    """[n, C] probabilities of a linear predictor [D + 1, C], intercepts last, beside an offset."""
    return cal.softmax(scaled @ coefficients[:-1] + coefficients[-1] + offset)


def _with_offset(
    scaled: Floats, codes: Ints, offset: Floats, penalty: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Coefficients [D + 1, C], intercepts last, of logistic regression beside an offset [n, C].

    L-BFGS on sum_n -log softmax(x_n W + b + o_n)_y + (|W|^2 + |b|^2) / (2 penalty).

    Returns:
        Coefficients, the objective (its negative is what is minimised), iterations.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    rows, (n, D), C = np.arange(len(codes)), scaled.shape, offset.shape[1]
    X = np.hstack([scaled, np.ones((n, 1))])

    def loss(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(D + 1, C)
        log_p = log_softmax(X @ W + offset, axis=1)
        slope = np.exp(log_p)
        slope[rows, codes] -= 1.0
        value = -log_p[rows, codes].sum() + 0.5 * (W * W).sum() / penalty
        return float(value), (X.T @ slope + W / penalty).ravel()

    optimum = minimize(
        loss, np.zeros((D + 1) * C), jac=True, method="L-BFGS-B", options={"maxiter": max_iter}
    )
    return optimum.x.reshape(D + 1, C), -float(optimum.fun), max(1, int(optimum.nit))


@estimator
class LaplaceGPClassifier(Baseline):
    """Gaussian process classifier by the Laplace approximation, one class against the rest.

    Args:
        classes: labels known up front, sorted in the columns; None takes those of y.
        length_scale_factor: times the median distance of the pool (the geometry's, or X's).
        variance: of the squared exponential.
        hyperparameters: "fixed", or "learned" (type-II likelihood by L-BFGS: many cubic fits).
        calibration: "leave-one-out" takes probabilities to a power by labels left out; None leaves them.
        geometry: of the pool, for its scaling and distances; None measures X.
        random_state: of the rows the median is taken from.

    Attributes:
        classes_: [C] labels.
        present_: codes of the classes that have labels.
        objective_: log marginal likelihood, the mean over classes as scikit-learn reports it.
    """

    length_scale_factor: float = option(0.6, above=0.0)
    variance: float = option(10.0, above=0.0)
    hyperparameters: str = option("fixed", choices=("fixed", "learned"))
    calibration: str | None = option("leave-one-out", choices=("leave-one-out",), optional=True)

    def _fit_present(self, scaled: Floats, codes: Ints) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessClassifier
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        if len(codes) > MAX_LAPLACE_ROWS:
            raise InputError(
                f"The Laplace GP costs N^3 and takes at most {MAX_LAPLACE_ROWS} labels; got {len(codes)}. "
                "Use svgp-softmax or large-margin."
            )
        geometry = getattr(self, "geometry_", None) or Geometry.of(scaled, 1, self.seed_, clip=np.inf)
        kernel = ConstantKernel(self.variance) * RBF(self.length_scale_factor * geometry.length_scale)
        learned = self.hyperparameters == "learned"
        model = GaussianProcessClassifier(kernel, optimizer="fmin_l_bfgs_b" if learned else None)
        with catch_warnings():
            # a length scale at its bound: the likelihood asks for a constant, which is an answer
            simplefilter("ignore", ConvergenceWarning)
            self.gp_ = model.fit(scaled, codes)
        self.objective_ = float(self.gp_.log_marginal_likelihood_value_)

    def _left_out(self, X: Floats, codes: Ints, rows: Ints) -> Floats | None:
        """By each row's site, taken out of the posterior of each class (docs/math.md, 8)."""
        from scipy.linalg import solve_triangular
        from scipy.special import expit

        if len(self.present_) < 2:
            return None
        one = self.gp_.base_estimator_
        columns = []
        for fit in getattr(one, "estimators_", [one]):
            K, slope = fit.kernel_(fit.X_train_), fit.y_train_ - fit.pi_
            half = solve_triangular(fit.L_, fit.W_sr_[:, None] * K, lower=True)
            v = np.diag(K) - (half**2).sum(axis=0)
            v = v / np.maximum(1.0 - fit.W_sr_**2 * v, 0.1)
            columns.append(expit((K @ slope - v * slope) / np.sqrt(1.0 + np.pi / 8.0 * v)))
        p = np.stack(columns if len(columns) > 1 else [1.0 - columns[0], *columns], axis=1)
        out = np.zeros((len(rows), len(self.classes_)))
        out[:, self.present_] = p[rows] / p[rows].sum(axis=1, keepdims=True)
        return out

    def _sharpened(self, p: Floats) -> Floats:
        return self._beside_others(cal.powered(p[:, self.present_], self.power_))

    def _predict_present(self, scaled: Floats) -> Floats:
        return np.maximum(self.gp_.predict_proba(scaled), 1e-15)
