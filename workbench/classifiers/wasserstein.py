"""A network's mean with a GP's uncertainty, matched to the prior by the Wasserstein distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.base import BaseBayesianClassifier, Callback
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.network_predictor import FLOOR, NetworkPredictor
from workbench.classifiers.predictor import Predictor
from workbench.classifiers.svgp import likelihood_probabilities
from workbench.engine.kernels import StationaryKernel
from workbench.engine.projection import cached_basis, project
from workbench.errors import InputError

DISTANCES = ("exact", "printed")
CALIBRATIONS = (None, "validation")
TEMPERS = np.geomspace(0.05, 200.0, 49)
HELD_OUT_FROM = 15  # rows, and five a class: below, a validation split says nothing
LAST_RATE = 0.05  # learning rates fall linearly to this share
AGAIN = 0.25  # share of the epochs spent on all rows once the temper is known
N_INDUCING = 64


class WassersteinClassifier(BaseBayesianClassifier):
    """Gaussian Wasserstein inference (notes 004): q(f_j) = GP(network_j, r_j) near a GP prior in W2.

    Args:
        network: a name in `workbench.engine.networks.NETWORKS`, or "package.module:function" of
            your own (seeds -> Keras layers).
        input_shape: (height, width[, channels]) for networks of images; None for plain columns.
        classes: labels known up front, in the order of the columns; None takes those of y.
        n_inducing: P; None is 64. A `geometry` decides instead where one is given.
        geometry: of the pool; None measures one on X.
        length_scale_factor: times the pool's median distance.
        variance: of the prior's kernel. Variances and squared means count against it, so the
            weight in effect is weight * variance.
        prior_mean: constant mean of the prior.
        epsilon: robust-max's share of wrong labels.
        distance: "exact" (nuclear norm) or "printed" (the notes' estimate by eigenvalues of a
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

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (
        "kernel_", "bias_", "root_", "temper_", "tempered_rows_", "network_", "input_shape_",
        "length_scale_", "variance_",
    )  # fmt: skip

    weights_: tuple[Array, ...]
    kernel_: Floats
    bias_: Floats
    root_: Floats
    temper_: float
    tempered_rows_: int
    network_: str
    input_shape_: Any
    length_scale_: float
    variance_: float
    predictor_: NetworkPredictor

    def __init__(
        self,
        network: str = "mlp",
        *,
        input_shape: Any = None,
        classes: Any = None,
        n_inducing: int | None = None,
        geometry: Geometry | None = None,
        length_scale_factor: float = 1.0,
        variance: float = 1.0,
        prior_mean: float = 0.0,
        epsilon: float = 0.01,
        distance: str = "exact",
        weight: float | None = None,
        start_noise: float = 1.0,
        epochs: float = 30,
        min_steps: int = 200,
        batch_size: int = 128,
        distance_rows: int = 64,
        learning_rate: float = 5e-3,
        root_learning_rate: float = 2e-2,
        calibration: str | None = "validation",
        validation_fraction: float = 0.2,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.input_shape = input_shape
        self.classes = classes
        self.n_inducing = n_inducing
        self.geometry = geometry
        self.length_scale_factor = length_scale_factor
        self.variance = variance
        self.prior_mean = prior_mean
        self.epsilon = epsilon
        self.distance = distance
        self.weight = weight
        self.start_noise = start_noise
        self.epochs = epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.distance_rows = distance_rows
        self.learning_rate = learning_rate
        self.root_learning_rate = root_learning_rate
        self.calibration = calibration
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: Callback | None) -> None:
        self._check_options()
        from workbench.engine.runtime import prepare

        prepare()
        from workbench.engine import networks, wasserstein

        before = self._previous_state(wasserstein) if self._warm() else None
        geometry = self._resolve_geometry(X, self.n_inducing or N_INDUCING)
        self.network_ = str(self.network)
        self.input_shape_ = np.asarray(_shape(self.input_shape, X.shape[1]))
        self.length_scale_ = float(self.length_scale_factor * geometry.length_scale)
        self.variance_ = float(self.variance)
        scaled = geometry.transform(X)
        phi, rest = project(scaled, *self._basis_and_kernel())
        rows = wasserstein.Rows(scaled.astype(np.float32), phi, rest, codes)
        seed, C = self._seed(), len(self.classes_)
        rng = np.random.default_rng([seed, 0x3A55])
        shape = self._shape()

        def begin(some: Any) -> Any:
            weights = networks.initial_weights(self.network_, shape, seed)
            d = networks.n_features(self.network_, shape)
            return wasserstein.start(weights, d, C, some.phi, self.start_noise, seed)

        warm = before is not None and _fits(before, begin(rows)) and len(codes) < 2 * self.tempered_rows_
        if not warm:
            self.temper_, self.tempered_rows_ = 1.0, len(codes)
        held = (
            None if warm or self.calibration is None else _held_out(codes, C, self.validation_fraction, rng)
        )
        tell = _Progress(callback, [1.0] if held is None else [1.0, AGAIN])
        if held is None:
            epochs = 0.5 * self.epochs if warm else self.epochs
            trained = self._train(wasserstein, before if warm else begin(rows), rows, epochs, 1.0, rng, tell)
            traces, steps = [trained.trace], trained.steps
        else:
            kept = np.setdiff1d(np.arange(len(codes)), held)
            some = wasserstein.Rows(*(part[kept] for part in rows))
            trained = self._train(wasserstein, begin(some), some, self.epochs, 1.0, rng, tell)
            self._keep(trained.state)
            self.temper_ = self._choose_temper(X[held], codes[held])
            traces, steps = [trained.trace], trained.steps
            if not tell.stopped:
                tell.stage += 1
                trained = self._train(wasserstein, trained.state, rows, AGAIN * self.epochs, 0.5, rng, tell)
                traces.append(trained.trace)
                steps += trained.steps
        self._keep(trained.state)
        self.objective_ = -len(codes) * float(trained.loss)
        self.objective_trace_ = -len(codes) * np.concatenate(traces)
        self.n_iter_ = steps

    def _train(
        self,
        engine: Any,
        state: Any,
        rows: Any,
        epochs: float,
        rate: float,
        rng: np.random.Generator,
        tell: Any,
    ) -> Any:
        from workbench.engine.networks import minibatches

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
            callback=tell,
        )

    def _keep(self, state: Any) -> None:
        self.weights_ = state.mean.weights
        self.kernel_, self.bias_, self.root_ = state.mean.kernel, state.mean.bias, state.root
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
        best = float(TEMPERS[int(np.argmax(score))])
        self.temper_ = best
        return best

    def _previous_state(self, engine: Any) -> Any:
        """The present posterior with its columns in the order of the present classes."""
        if not hasattr(self, "root_"):
            return None
        before = {label: c for c, label in enumerate(np.asarray(self._previous_classes).tolist())}
        C, (d, old) = len(self.classes_), self.kernel_.shape
        if old != len(before) or self.network_ != str(self.network):
            return None
        kernel, bias = np.zeros((d, C)), np.zeros(C)
        root = np.tile(np.eye(self.root_.shape[1]), (C, 1, 1))
        for c, label in enumerate(self.classes_.tolist()):
            if label in before:
                j = before[label]
                kernel[:, c], bias[c], root[c] = self.kernel_[:, j], self.bias_[j], self.root_[j]
        return engine.State(engine.Mean(self.weights_, kernel, bias), root)

    def _check_options(self) -> None:
        if self.distance not in DISTANCES:
            raise InputError(f"distance must be one of {', '.join(DISTANCES)}; got {self.distance!r}.")
        if self.calibration not in CALIBRATIONS:
            raise InputError(f"calibration must be 'validation' or None; got {self.calibration!r}.")
        for name in ("epsilon", "validation_fraction"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} must lie between 0 and 1; got {getattr(self, name)}.")
        for name in (
            "length_scale_factor", "variance", "start_noise", "epochs", "min_steps", "batch_size",
            "distance_rows", "learning_rate", "root_learning_rate",
        ):  # fmt: skip
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name)}.")
        if self.weight is not None and not self.weight >= 0:
            raise InputError(f"weight must not be negative; got {self.weight}.")

    # ------------------------------------------------------------------ predicting

    def _shape(self) -> tuple[int, ...]:
        return tuple(np.asarray(self.input_shape_).tolist())

    def _basis_and_kernel(self) -> tuple[Any, StationaryKernel]:
        kernel = StationaryKernel("squared-exponential", self.length_scale_, self.variance_)
        return cached_basis(self.geometry_.inducing, kernel), kernel

    def _fold(self) -> None:
        basis, kernel = self._basis_and_kernel()
        covariance = self.root_ @ np.swapaxes(self.root_, 1, 2)
        C, P = covariance.shape[:2]
        spread = Predictor.from_posterior(self.geometry_, kernel, basis, np.zeros((P, C)), covariance)
        self.predictor_ = NetworkPredictor(
            spread=spread,
            network=self.network_,
            input_shape=self._shape(),
            weights=self.weights_,
            kernel=self.kernel_,
            bias=self.bias_,
            temper=self.temper_,
        )

    def _latent(self, X: Floats) -> Latent:
        return self.predictor_(X)

    def _robust_max(self, mean: Floats, variance: Floats) -> Floats:
        return likelihood_probabilities("robust-max", mean, np.maximum(variance, FLOOR), epsilon=self.epsilon)

    def _probabilities(self, X: Floats) -> Floats:
        return self._robust_max(*self._latent(X))

    # ------------------------------------------------------------------ state

    def _state(self) -> dict[str, Array]:
        return super()._state() | {f"weights_.{i}": w for i, w in enumerate(self.weights_)}

    def _set_state(self, state: Mapping[str, Array]) -> None:
        missing = [name for name in (*self._state_names, "weights_.0") if name not in state]
        if missing:
            raise InputError(f"This is not a saved {type(self).__name__}: it lacks {', '.join(missing)}.")
        super()._set_state(state)
        count = sum(key.startswith("weights_.") for key in state)
        self.weights_ = tuple(np.asarray(state[f"weights_.{i}"]) for i in range(count))
        self._fold()


class _Progress:
    """One fraction over several stages of training."""

    def __init__(self, callback: Callback | None, shares: list[float]) -> None:
        self.callback = callback
        self.edges = np.concatenate([[0.0], np.cumsum(shares) / sum(shares)])
        self.stage = 0
        self.stopped = False

    def __call__(self, fraction: float, objective: float) -> bool:
        if self.callback is None:
            return False
        low, high = self.edges[self.stage : self.stage + 2]
        done = 1.0 if fraction == 1.0 and self.stage == len(self.edges) - 2 else low + (high - low) * fraction
        self.stopped = bool(self.callback(float(done), objective))
        return self.stopped


def _held_out(codes: Ints, n_classes: int, fraction: float, rng: np.random.Generator) -> Ints | None:
    """Rows for validation, leaving each class at least two; None where there are too few rows."""
    n = len(codes)
    if n < max(HELD_OUT_FROM, 5 * n_classes):
        return None
    left = np.bincount(codes, minlength=n_classes)
    chosen: list[int] = []
    for row in rng.permutation(n):
        if len(chosen) >= fraction * n:
            break
        if left[codes[row]] > 2:
            left[codes[row]] -= 1
            chosen.append(row)
    return np.sort(np.asarray(chosen)) if chosen else None


def _fits(state: Any, fresh: Any) -> bool:
    """Whether a former state has the shapes that a fresh one would have."""
    shapes = [np.shape(part) for part in (*state.mean.weights, *state.mean[1:], state.root)]
    return shapes == [np.shape(part) for part in (*fresh.mean.weights, *fresh.mean[1:], fresh.root)]


def _shape(given: Any, n_columns: int) -> tuple[int, ...]:
    if given is None:
        return (n_columns,)
    shape = tuple(int(size) for size in np.atleast_1d(given))
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) not in (1, 3) or min(shape) < 1 or int(np.prod(shape)) != n_columns:
        raise InputError(
            f"input_shape must be (height, width[, channels]) with {n_columns} numbers in all; got {given!r}."
        )
    return shape
