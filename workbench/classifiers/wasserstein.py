"""A network's mean with a GP's uncertainty, matched to the prior by the Wasserstein distance."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.geometry import in_order, prefixed
from workbench.classifiers.gp import GPClassifier
from workbench.classifiers.network_predictor import FLOOR, NetworkPredictor
from workbench.classifiers.networks import LAST_RATE, saved_network, shape_of
from workbench.classifiers.options import estimator, fitted, option
from workbench.classifiers.predictor import Predictor
from workbench.classifiers.svgp import likelihood_probabilities
from workbench.engine.fitting import Progress, minibatches
from workbench.engine.kernels import Kernel, StationaryKernel
from workbench.engine.projection import cached_basis, project
from workbench.errors import InputError
from workbench.progress import FitCallback

DISTANCES = ("exact", "printed")
TEMPERS = np.geomspace(0.05, 200.0, 49)
HELD_OUT_FROM = 15  # rows, and five a class: below, a validation split says nothing
AGAIN = 0.25  # share of the epochs spent on all rows once the temper is known
N_INDUCING = 64


@estimator
class WassersteinClassifier(GPClassifier):
    """Gaussian Wasserstein inference (Wild et al. 2022): q(f_j) = GP(network_j, r_j) near a GP prior in W2.

    Args:
        network: a name in `workbench.engine.networks.NETWORKS`, or "package.module:function" of
            your own (seeds -> Keras layers).
        input_shape: (height, width[, channels]) for networks of images; None for plain columns.
        classes: labels known up front, sorted in the columns; None takes those of y.
        n_inducing: P; None is 64. A `geometry` decides instead where one is given.
        geometry: of the pool; None measures one on X.
        length_scale_factor: times the pool's median distance.
        variance: of the prior's kernel. Variances and squared means count against it, so the
            weight in effect is weight * variance.
        prior_mean: constant mean of the prior.
        epsilon: robust-max's share of wrong labels.
        distance: "exact" (nuclear norm) or "printed" (the printed estimate by eigenvalues of a
            product that is not symmetric).
        weight: beta of the distance, against a data term summed over N rows. None is N; 1 is the
            objective as printed, under which variances collapse on overlapping classes.
        start_noise: q begins at the GP regression posterior with this noise variance.
        epochs: passes over the rows.
        min_steps: of the optimiser, however few the rows are.
        batch_size: rows a step.
        distance_rows: rows of a batch on which covariances are compared.
        learning_rate: of the network (Adam; falls linearly).
        root_learning_rate: of the covariances.
        calibration: "validation" scales the variances by one number, chosen by likelihood on
            held-out rows, before training goes on with all rows; None leaves them.
        validation_fraction: share of the rows held out for it.
        warm_start: `fit` continues from the present network and temper for half the epochs, until
            the labels have doubled since the temper was chosen.
        random_state: of the geometry measured on X, the network, the batches and the split.

    Attributes:
        classes_: [C] labels.
        objective_: minus the loss of all rows, as last estimated from batches.
        objective_trace_: [T] such estimates while fitting.
        n_iter_: steps of the optimiser.
        geometry_: scaling and inducing points.
        temper_: scalar on the variances.
        weights_: the network's arrays; `kernel_` [d, C] and `bias_` [C]: its last layer.
        root_: [C, P, P] lower triangular L_j.
        predictor_: latent marginals; NumPy only for network "mlp".
    """

    _state_names: ClassVar[tuple[str, ...]] = (
        "kernel_",
        "bias_",
        "root_",
        "temper_",
        "tempered_rows_",
        "network_",
        "input_shape_",
        "length_scale_",
        "variance_",
    )

    network: str = "mlp"
    input_shape: Any = None
    n_inducing: int | None = option(None, at_least=1)
    length_scale_factor: float = option(1.0, above=0.0)
    variance: float = option(1.0, above=0.0)
    prior_mean: float = option(0.0, above=-np.inf)
    dtype: str = option("float64", choices=("float64",))
    epsilon: float = option(0.01, above=0.0)
    distance: str = option("exact", choices=DISTANCES)
    weight: float | None = option(None, at_least=0.0)
    start_noise: float = option(1.0, above=0.0)
    epochs: float = option(30, above=0.0)
    min_steps: int = option(200, at_least=1)
    batch_size: int = option(128, at_least=1)
    distance_rows: int = option(64, at_least=1)
    learning_rate: float = option(5e-3, above=0.0)
    root_learning_rate: float = option(2e-2, above=0.0)
    calibration: str | None = option("validation", choices=("validation",), optional=True)
    validation_fraction: float = option(0.2, above=0.0, when={"calibration": ("validation",)})

    weights_: tuple[Array, ...] = fitted()
    kernel_: Floats = fitted()
    bias_: Floats = fitted()
    root_: Floats = fitted()
    temper_: float = fitted()
    tempered_rows_: int = fitted()
    network_: str = fitted()
    input_shape_: Any = fitted()
    variance_: float = fitted()

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        self._check()
        with np.errstate(over="ignore", invalid="ignore"):  # of one order whatever the order they come in
            order = np.lexsort((codes, X @ np.random.default_rng(0).random(X.shape[1])))
        X, codes = X[order], codes[order]
        from workbench.engine.runtime import prepare

        prepare()
        from workbench.engine import networks, wasserstein

        before = self._previous_state(wasserstein) if self._warm() else None
        geometry = self._resolve_geometry(X, self.n_inducing or N_INDUCING)
        self.network_ = self.network
        self.input_shape_ = np.asarray(shape_of(self.input_shape, X.shape[1]))
        self.length_scale_ = float(self.length_scale_factor * geometry.length_scale)
        self.variance_ = float(self.variance)
        scaled = geometry.transform(X)
        phi, residual = project(scaled, *self._basis_and_kernel())
        rows = wasserstein.Rows(scaled.astype(np.float32), phi, residual, codes)
        seed, C = self._seed(), len(self.classes_)
        rng = np.random.default_rng([seed, 0x3A55])
        shape = self._shape()

        def begin(data: Any) -> Any:
            weights = networks.initial_weights(self.network_, shape, seed)
            d = networks.n_features(self.network_, shape)
            return wasserstein.start(weights, d, C, data.phi, self.start_noise, seed)

        warm = before is not None and _fits(before, begin(rows)) and len(codes) < 2 * self.tempered_rows_
        if not warm:
            self.temper_, self.tempered_rows_ = 1.0, len(codes)
        validation = (
            None if warm or self.calibration is None else _held_out(codes, C, self.validation_fraction, rng)
        )
        report = Progress(callback)
        if validation is None:
            epochs = 0.5 * self.epochs if warm else self.epochs
            trained = self._train(before if warm else begin(rows), rows, epochs, 1.0, rng, report)
            traces, steps = [trained.trace], trained.n_iter
        else:
            train = np.setdiff1d(np.arange(len(codes)), validation)
            train_rows = wasserstein.Rows(*(part[train] for part in rows))
            trained = self._train(
                begin(train_rows), train_rows, self.epochs, 1.0, rng, report.part(0.0, 1.0 / (1.0 + AGAIN))
            )
            self._keep(trained.posterior)
            self.temper_ = self._choose_temper(X[validation], codes[validation])
            traces, steps = [trained.trace * (len(codes) / len(train))], trained.n_iter
            if not report.stopped:
                rest = report.part(1.0 / (1.0 + AGAIN), 1.0)
                trained = self._train(trained.posterior, rows, AGAIN * self.epochs, 0.5, rng, rest)
                traces.append(trained.trace)
                steps += trained.n_iter
        self._keep(trained.posterior)
        self.objective_ = trained.objective
        self.objective_trace_ = np.concatenate(traces)
        self.n_iter_ = steps

    def _train(
        self,
        state: Any,
        rows: Any,
        epochs: float,
        rate: float,
        rng: np.random.Generator,
        report: Any,
    ) -> Any:
        from workbench.engine import wasserstein as engine

        n = len(rows.codes)
        size = min(int(self.batch_size), n)
        least = int(np.ceil(self.min_steps * epochs / self.epochs))
        steps = max(round(epochs * n / size), least, 1)
        falling = rate * np.linspace(1.0, LAST_RATE, steps)[:, None]
        return engine.train(
            self.network_,
            self._shape(),
            state,
            rows,
            engine.Prior(float(self.prior_mean), self.length_scale_, self.variance_),
            weight=float(n if self.weight is None else self.weight),
            epsilon=float(self.epsilon),
            rows=minibatches(n, size, steps, rng),
            rates=falling * np.array([self.learning_rate, self.root_learning_rate]),
            n_sub=int(self.distance_rows),
            printed=self.distance == "printed",
            callback=report,
        )

    def _keep(self, state: Any) -> None:
        self.weights_, self.kernel_, self.bias_, self.root_ = state
        self._fold()

    def _choose_temper(self, X: Floats, codes: Ints) -> float:
        """The scalar on r with the largest likelihood of held-out rows, drawn towards 1 when they are few."""
        mean, variance = self.predictor_(X)
        variance = variance / self.temper_
        score = [
            np.log(self._robust_max(mean, t * variance)[np.arange(len(codes)), codes]).sum()
            - 0.5 * (np.log(t) / 1.5) ** 2
            for t in TEMPERS
        ]
        return float(TEMPERS[int(np.argmax(score))])

    def _previous_state(self, engine: Any) -> Any:
        """The present posterior with its columns in the order of the present classes."""
        if not hasattr(self, "root_"):
            return None
        C, (d, old) = len(self.classes_), self.kernel_.shape
        if old != len(np.asarray(self._previous_classes)) or self.network_ != str(self.network):
            return None
        kernel, bias = np.zeros((d, C)), np.zeros(C)
        root = np.tile(np.eye(self.root_.shape[1]), (C, 1, 1))
        for c, j in self._previous_columns():
            kernel[:, c], bias[c], root[c] = self.kernel_[:, j], self.bias_[j], self.root_[j]
        return engine.State(self.weights_, kernel, bias, root)

    def _check(self) -> None:
        for name in ("epsilon", "validation_fraction"):
            if not getattr(self, name) < 1:
                raise InputError(f"{name} must lie between 0 and 1; got {getattr(self, name)}.")

    # ------------------------------------------------------------------ predicting

    def _shape(self) -> tuple[int, ...]:
        return tuple(np.asarray(self.input_shape_).tolist())

    def _make_kernel(self, length: Any, variance: float) -> Kernel:
        return StationaryKernel("squared-exponential", length, variance)

    def _basis_and_kernel(self) -> tuple[Any, Kernel]:
        kernel = self._make_kernel(self.length_scale_, self.variance_)
        return cached_basis(self.geometry_.inducing, kernel), kernel

    def _fold(self) -> None:
        basis, kernel = self._basis_and_kernel()
        covariance = self.root_ @ np.swapaxes(self.root_, 1, 2)
        C, P = covariance.shape[:2]
        spread = Predictor.from_posterior(self.geometry_, kernel, basis, np.zeros((P, C)), covariance)
        layer = self.kernel_, self.bias_
        self.predictor_ = NetworkPredictor(
            spread, self.network_, self._shape(), self.weights_, *layer, self.temper_
        )

    def _robust_max(self, mean: Floats, variance: Floats) -> Floats:
        return likelihood_probabilities("robust-max", mean, np.maximum(variance, FLOOR), epsilon=self.epsilon)

    def _probabilities(self, X: Floats) -> Floats:
        return self._robust_max(*self._latent(X))

    # ------------------------------------------------------------------ state

    def _state(self) -> dict[str, Array]:
        return super()._state() | prefixed("weights_", self.weights_)

    def _set_state(self, state: Mapping[str, Array]) -> None:
        self._require(("weights_.0",), state)
        self.weights_ = in_order("weights_", state)
        name = saved_network(self.network, state.get("network_", ""))
        super()._set_state({**state, "network_": np.array(name, dtype=object)})

    def _gpflow_model_of(self) -> Any:
        """Q as GPflow's model: the network is its mean function, the temper scales its kernel."""
        import tensorflow as tf

        from workbench.engine.gpflow_models import FunctionMean, as_svgp
        from workbench.engine.likelihoods import RobustMax
        from workbench.engine.networks import forward

        shape, weights = self._shape(), [tf.constant(w) for w in self.weights_]

        def mean(scaled: Any) -> Any:
            features = forward(self.network_, shape, weights, tf.cast(scaled, tf.float32))
            return tf.cast(features, tf.float64) @ self.kernel_ + self.bias_

        kernel = self._make_kernel(self.length_scale_, self.temper_ * self.variance_)
        basis = cached_basis(self.geometry_.inducing, kernel)
        C, P = self.root_.shape[:2]
        return as_svgp(
            RobustMax(C, self.epsilon),
            kernel,
            basis,
            np.zeros((P, C)),
            self.root_,
            mean_function=FunctionMean(mean),
            n_rows=self.n_rows_,
        )


def _held_out(codes: Ints, n_classes: int, fraction: float, rng: np.random.Generator) -> Ints | None:
    """Rows for validation, leaving each class at least two; None where there are too few rows."""
    n = len(codes)
    if n < max(HELD_OUT_FROM, 5 * n_classes):
        return None
    counts = np.bincount(codes, minlength=n_classes)
    selection: list[int] = []
    for row in rng.permutation(n):
        if len(selection) >= fraction * n:
            break
        if counts[codes[row]] > 2:
            counts[codes[row]] -= 1
            selection.append(row)
    return np.sort(np.asarray(selection)) if selection else None


def _fits(state: Any, fresh: Any) -> bool:
    """True if a former state has the shapes that a fresh one would have."""
    before, after = ([np.shape(part) for part in (*each.weights, *each[1:])] for each in (state, fresh))
    return before == after
