"""Networks as classifiers: a large-margin GP on a network's features, and the plain softmax network."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.arrays import Array, Cache, Floats, Ints, digest
from workbench.classifiers import calibration as cal
from workbench.classifiers.base import BaseBayesianClassifier
from workbench.classifiers.geometry import Geometry, in_order, prefixed, within
from workbench.classifiers.large_margin import LargeMarginClassifier
from workbench.classifiers.latent import Latent
from workbench.classifiers.options import estimator, fitted, option
from workbench.engine.fitting import Progress, minibatches
from workbench.errors import InputError
from workbench.progress import FitCallback
from workbench.reading import cut

if TYPE_CHECKING:
    from workbench.pools.features.network import NetworkFeatureMap
    from workbench.pools.pool import Pool

REFITS = ("head", "whole")
HELD_OUT = 1000  # rows at most that training leaves out, to set the temperature on
HELD_OUT_SHARE = 0.05
JOINT_FROM = 10  # labels a class from which training network and head together pays
HALVES_FROM = 4  # labels from which two fits on halves say how sure to be
HELD_OUT_FROM = 2000  # labels from which rows are left out instead
LAST_RATE = 0.05  # learning rates fall linearly to this share of what they began with


@estimator
class _NetworkClassifier(BaseBayesianClassifier):
    """Base of both networks: weights, input, features in chunks and the state."""

    network: str = "auto"
    input_shape: Any = None
    geometry: Geometry | None = None
    batch_size: int = option(128, at_least=1)
    learning_rate: float = option(1e-3, above=0.0)
    min_steps: int = option(300, at_least=1)
    calibration: str | None = option("held-out", choices=("held-out", None))

    _state_names: ClassVar[tuple[str, ...]] = ("network_", "input_shape_", "shift_", "scale_")

    network_: str = fitted()
    input_shape_: tuple[int, ...] = fitted()
    weights_: tuple[Array, ...] = fitted()
    shift_: Floats = fitted()
    scale_: Floats = fitted()

    # ------------------------------------------------------------------ for everyone

    def network_features(self, X: Any) -> Floats:
        """The network's features.

        Args:
            X: [N, D] rows as in `fit`.

        Returns:
            [N, d] float32, each row of mean 0 and variance 1.

        Raises:
            InputError: no network was trained, for lack of labels.
        """
        fit = self._value()
        X = fit._checked(X)
        if fit._trivial():
            raise InputError(f"{type(self).__name__} has no network yet: it needs labels of two classes.")
        return fit._features(X).astype(np.float32)

    def feature_map(self, pool: Pool) -> NetworkFeatureMap:
        """The network as a feature map that runs and models save and replay; it needs no TensorFlow.

        Args:
            pool: of images like those the network was trained on, with pixels as features.

        Raises:
            InputError: no network, no images, images of another shape, or layers that cannot be replayed.
        """
        from workbench.engine import networks as engine
        from workbench.pools.features.network import NetworkFeatureMap, pixels_of

        pixels = pixels_of(pool)
        if self._trivial():
            raise InputError(f"{type(self).__name__} has no network yet: it needs labels of two classes.")
        if self.input_shape_ != (*pixels.shape, 1)[:3]:
            raise InputError(
                f"The network reads {list(self.input_shape_)} and the images of pool {pool.name!r} are "
                f"{list(pixels.shape)}."
            )
        layers = engine.described(self.network_, self.input_shape_, self.weights_)
        return NetworkFeatureMap(pixels, self.shift_, self.scale_, layers)

    # ------------------------------------------------------------------ for subclasses

    def _numpy_dtype(self) -> type[np.float32] | type[np.float64]:
        return np.float32

    def _prepare(self, X: Floats) -> None:
        """Resolve network, input shape and scaling."""
        self.input_shape_ = shape_of(self.input_shape, X.shape[1])
        network = self.network
        if network == "auto":
            network = "mlp" if len(self.input_shape_) == 1 else "small"
        self.network_ = network
        geometry = self._given_geometry(X)
        if len(self.input_shape_) == 1 and geometry is None:
            geometry = Geometry.of(X, 1, 0)
        shift: Floats = np.full(X.shape[1], X.mean(dtype=np.float64))  # pixels: one scale for all
        scale: Floats = np.full(X.shape[1], float(X.std(dtype=np.float64)) or 1.0)
        if geometry is not None and len(self.input_shape_) == 1:
            shift, scale = geometry.shift, geometry.scale
        self.shift_, self.scale_ = shift.astype(np.float32), scale.astype(np.float32)

    def _schedule(self, n: int, epochs: float, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Minibatches [T, B] and falling learning rates [T], as shares of the first."""
        size = min(int(self.batch_size), n)
        steps = max(round(epochs * n / size), int(self.min_steps)) if epochs > 0 else 0
        rows = minibatches(n, size, steps, rng)
        return rows, np.linspace(1.0, LAST_RATE, steps)

    def _softmax_network(self, X: Floats, codes: Ints, epochs: float, report: Progress) -> Any:
        """Train the network with a softmax layer from the start."""
        from workbench.engine import network_training
        from workbench.engine import networks as engine

        seed = self._seed()
        rng = np.random.default_rng([seed, 0x50F7])
        weights = engine.initial_weights(self.network_, self.input_shape_, seed)
        d, C = engine.n_features(self.network_, self.input_shape_), len(self.classes_)
        layer = rng.normal(scale=d**-0.5, size=(d, C)).astype(np.float32), np.zeros(C, np.float32)
        rows, rates = self._schedule(len(X), epochs, rng)
        return network_training.train_softmax(
            self.network_,
            self.input_shape_,
            (*weights, *layer),
            self.shift_,
            self.scale_,
            X,
            codes,
            rows,
            self.learning_rate * rates,
            lambda steps, loss: report(steps / len(rows), -loss * len(X)),
        )

    def _beta(self, X: Floats, codes: Ints, centre: float, report: Progress) -> float:
        """The temperature from halves of the labels, each as a fit on the other sees it.

        Args:
            X: [N, D] rows of the fit.
            codes: [N] their classes; of fewer than four, and of a fit that is stopped, the prior decides.
            centre: of the prior on log beta.
            report: of the whole fit, whose second half this is.
        """
        n, C = len(codes), len(self.classes_)
        order = np.lexsort((np.random.default_rng(self._draw).random(n), codes))
        scores = np.zeros((n, C))  # alike: they say nothing
        for part in range(2):
            if self._share(n) < 1.0 and not report.stopped:
                half, rest = order[part::2], order[1 - part :: 2]
                fit = self._draft()
                fit.classes, fit.calibration = range(C), None
                here = report.part(0.5 + part / 4, 0.75 + part / 4).callback
                scores[half] = fit._fitted_to(X[rest], codes[rest], here, None, None)._scores(X[half])
        if report.stopped:  # a network that is trained in part says nothing of the whole one
            scores[:] = 0.0
        return float(cal.judge_table(scores, codes, np.arange(n), centre).beta)

    def _share(self, n: int) -> float:
        """Share of the fit that trains the network; in the rest two fits on halves set the temperature."""
        return 0.5 if self.calibration == "held-out" and n >= HALVES_FROM else 1.0

    def _features(self, X: Array) -> Floats:
        from workbench.engine import network_training

        parts = (self.network_, self.input_shape_, self.weights_, self.shift_, self.scale_)
        key = self.network_, self.input_shape_, digest(*self.weights_, self.shift_, self.scale_, X)
        return _FEATURES.ask(key, lambda: network_training.features_of(*parts, X)).astype(np.float64)

    def _state(self) -> dict[str, Array]:
        return prefixed("network", self.weights_) | super()._state()

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        self.weights_ = in_order("network", state)
        self.network_ = saved_network(self.network, state["network_"])
        self.input_shape_ = tuple(state["input_shape_"].tolist())


@estimator
class SoftmaxNetClassifier(_NetworkClassifier):
    """A network with a softmax layer, trained by Adam on the cross-entropy, for comparison.

    Args:
        network: "auto" (two dense layers for tables, "small" for images), a name in
            `workbench.engine.networks.NETWORKS`, or "package.module:function" of your own.
        input_shape: (height, width) or (height, width, channels) of the images whose pixels the
            columns are; None for rows of numbers.
        classes: class labels, if known before the data.
        geometry: of the pool; its scaling is used for tables.
        epochs: passes over the data.
        batch_size: rows in a step.
        learning_rate: Adam's, falling linearly to a twentieth.
        min_steps: steps at least, however few the labels.
        calibration: "held-out" multiplies the last layer by one temperature, which changes no class: from
            four labels on it is chosen by two more fits, each on half of the labels, on the other half: with
            few labels three times the work, with many twice. None leaves the layer as training made it.
        random_state: seed.
    """

    _state_names: ClassVar[tuple[str, ...]] = (*_NetworkClassifier._state_names, "kernel_", "bias_")

    epochs: float = option(20, above=0)

    kernel_: Floats = fitted()
    bias_: Floats = fitted()

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        self._prepare(X)
        report = Progress(callback)
        training = report.part(0.0, self._share(len(X)))
        network = self._softmax_network(X, codes, self.epochs, training)
        self.weights_, (self.kernel_, self.bias_) = network.variables[:-2], network.variables[-2:]
        self.objective_trace_ = -len(X) * network.trace
        self.objective_ = float(self.objective_trace_[-1])
        self.n_iter_ = network.steps
        if self.calibration:
            beta = self._beta(X, codes, cal.prior_log_beta(10.0), report)  # 1.5, as for margins
            self.kernel_, self.bias_ = beta * self.kernel_, beta * self.bias_

    def decision_function(self, X: Any) -> Floats:
        """[N, C] logits of X [N, D]; one column for two classes, as scikit-learn has it."""
        fit = self._value()
        X = fit._checked(X)
        logits = fit._scores(X) if not fit._trivial() else np.zeros((len(X), len(fit.classes_)))
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def _scores(self, X: Floats) -> Floats:
        return self._features(X) @ self.kernel_ + self.bias_

    def _probabilities(self, X: Floats) -> Floats:
        return cal.softmax(self._scores(X))


@estimator
class LargeMarginNetClassifier(_NetworkClassifier):
    """LMGP-DNN (Wistuba & Rawat 2018, 2019): network and large-margin GP on its features, trained together.

    Softmax training first, k-means inducing points in feature space, closed-form sweeps of the
    head, then Adam on the large-margin objective over network, inducing points and q together,
    and sweeps again to finish (docs/math.md, 10).

    Args:
        network: as in `SoftmaxNetClassifier`.
        input_shape: as in `SoftmaxNetClassifier`.
        classes: class labels, if known before the data.
        geometry: of the pool: its scaling, for tables, and with few labels its centres, which the
            inducing points are chosen from beside the labelled rows.
        n_inducing: P.
        length_scale_factor: times the median distance of features.
        variance: of the kernel.
        temperature: over rivals.
        pretrain_epochs: with a softmax layer.
        joint_epochs: of network and head together; 0, and fewer than 10 labels a class, leave the
            network as softmax training made it.
        batch_size: rows in a step.
        learning_rate: of the network.
        head_learning_rate: of inducing points and q.
        min_steps: of either training at least, however few the labels.
        warm_start: with it, `fit` keeps the network and refits the head alone, which takes
            milliseconds, until labels have grown by `retrain_growth`.
        refit: "head", or "whole" to train the network anew at every fit although `warm_start` is set.
        retrain_growth: with `warm_start`, the whole is trained anew once there are this many times
            the labels it was last trained on; None never does.
        calibration: of the temperature of `predict_proba`: "held-out" is by two more fits as in
            `SoftmaxNetClassifier`, but from 2,000 labels on by rows that training leaves out (one in
            twenty, up to 1,000; the head then sees those too); "leave-one-out" is the head's own; or None.
        random_state: seed.
    """

    has_latent: ClassVar[bool] = True
    _state_names: ClassVar[tuple[str, ...]] = (*_NetworkClassifier._state_names, "trained_rows_", "beta_")

    n_inducing: int = option(64, at_least=1)
    length_scale_factor: float = option(1.0, above=0.0)
    variance: float = option(10.0, above=0.0)
    temperature: float = option(0.1, above=0.0)
    pretrain_epochs: float = option(12, at_least=0)
    joint_epochs: float = option(8, at_least=0)
    head_learning_rate: float = option(1e-2, above=0.0)
    warm_start: bool = False
    refit: str = option("head", choices=REFITS, when={"warm_start": (True,)})
    retrain_growth: float | None = option(2.0, above=0.0, optional=True, when={"warm_start": (True,)})
    calibration: str | None = option("held-out", choices=("held-out", "leave-one-out", None))

    head_: LargeMarginClassifier = fitted()
    trained_rows_: int = fitted()
    beta_: float = fitted()

    # ------------------------------------------------------------------ fitting

    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        kept = self._warm() and hasattr(self, "weights_") and self.refit == "head"
        if kept and (self.retrain_growth is None or len(codes) < self.retrain_growth * self.trained_rows_):
            self._fit_head(X, codes, callback)
        else:
            self._fit_whole(X, codes, callback)
        self.objective_ = float(self.objective_trace_[-1])

    def _fit_head(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        """Closed-form sweeps on the features as they are."""
        if not np.array_equal(self._previous_classes, self.classes_):
            self.head_ = self._new_head(self.head_.geometry_)
        # a copy: the fit may not end
        self.head_ = copy(self.head_).fit(self._features(X), codes, callback)
        if self.calibration != "held-out":  # what the network never saw sets it, once
            self.beta_ = self.head_.beta_
        self.objective_trace_ = self.head_.objective_trace_
        self.n_iter_ = self.head_.n_iter_

    def _fit_whole(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None:
        from workbench.engine import network_training

        self._prepare(X)
        rng = np.random.default_rng([self._seed(), 0x101])
        train, held_out = self._held_out(len(X), rng)
        halves = self.calibration == "held-out" and not len(held_out)
        progress = Progress(callback)
        report = progress.part(0.0, self._share(len(X)) if halves else 1.0)
        inputs, labels = X[train], codes[train]
        n = len(train)
        epochs = self.joint_epochs if n >= JOINT_FROM * len(self.classes_) else 0
        rows, shares = self._schedule(n, epochs, rng)
        first = len(self._schedule(n, self.pretrain_epochs, rng)[0])
        total = max(first + len(rows), 1)
        started = self._softmax_network(inputs, labels, self.pretrain_epochs, report.part(0.0, first / total))
        self.weights_ = started.variables[:-2]
        features = self._features(inputs)
        self.head_ = self._new_head(self._feature_geometry(features))
        self.head_.fit(features, labels)
        if len(rows) and not started.stopped:
            kernel = (self.variance, self.length_scale_factor * self.head_.geometry_.length_scale)
            root = self.head_.root_
            start = network_training.Head.of(
                self.head_.geometry_.inducing, self.head_.mean_, np.matmul(root.transpose(0, 2, 1), root)
            )
            self.weights_, head, joint = network_training.train_joint(
                self.network_,
                self.input_shape_,
                self.weights_,
                start,
                kernel,
                self.shift_,
                self.scale_,
                inputs,
                labels,
                rows,
                np.stack([self.learning_rate * shares, self.head_learning_rate * shares], axis=1),
                tau=self.temperature,
                report=lambda steps, loss: report((first + steps) / total, -loss * n),
            )
            self._place(head)
            self.head_.fit(self._features(inputs), labels)
            self.objective_trace_ = np.asarray(-n * joint.trace)
            self.n_iter_ = started.steps + joint.steps
        else:
            self.objective_trace_ = self.head_.objective_trace_
            self.n_iter_ = started.steps
        self.trained_rows_ = len(codes)
        centre = cal.prior_log_beta(self.variance)
        self.beta_ = self._beta(X, codes, centre, progress) if halves else self.head_.beta_
        if len(held_out):
            self.beta_ = cal.fit_beta(self._scores(X[held_out]), codes[held_out], centre)
            self.head_.fit(self._features(X), codes)
        self.objective_trace_ = np.append(self.objective_trace_, self.head_.objective_)

    def _held_out(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Rows to train on and rows to set the temperature on."""
        if self.calibration != "held-out" or n < HELD_OUT_FROM:
            return np.arange(n), np.arange(0)
        order = rng.permutation(n)
        size = min(HELD_OUT, round(HELD_OUT_SHARE * n))
        return np.sort(order[size:]), np.sort(order[:size])

    def _feature_geometry(self, features: Floats) -> Geometry:
        """Inducing points among the features: of the labelled rows, and of the pool's centres."""
        candidates: Array = features
        if self.geometry is not None:
            g = self.geometry
            centres = np.concatenate([g.inducing, g.mean_inducing]) * g.scale + g.shift
            candidates = np.concatenate([features, self._features(centres.astype(np.float32))])
        measured = Geometry.of(candidates, self.n_inducing, self._seed(), common_scale=True)
        zeros, ones = np.zeros(features.shape[1]), np.ones(features.shape[1])
        # undo the common scale: features are of length sqrt(d) by LayerNorm and stay as they are
        span = measured.scale[0]
        points = measured.inducing * span + measured.shift
        return Geometry(zeros, ones, points, np.empty((0, len(zeros))), measured.length_scale * span, np.inf)

    def _new_head(self, geometry: Geometry) -> LargeMarginClassifier:
        return LargeMarginClassifier(
            classes=np.arange(len(self.classes_)),
            geometry=geometry,
            choice="fixed",
            n_mean=0,
            warm_start=True,
            calibration=None if self.calibration is None else "leave-one-out",
            length_scale_factor=self.length_scale_factor,
            variance=self.variance,
            temperature=self.temperature,
            random_state=0,
        )

    def _place(self, head: Any) -> None:
        """Put the posterior that joint training ended with into the head."""
        covariance = head.covariance
        precision = np.linalg.inv(covariance)
        root = np.linalg.inv(np.linalg.cholesky(0.5 * (precision + precision.transpose(0, 2, 1))))
        state = self.head_.get_state() | {
            "geometry.inducing": head.points,
            "mean_": head.mean,
            "precision_": precision,
            "root_": root,
        }
        geometry = self.head_.geometry_._replace(inducing=head.points)
        self.head_ = self._new_head(geometry).set_state(state)

    # ------------------------------------------------------------------ predicting

    @property
    def gpflow_model_(self) -> Any:
        """The head as a GPflow model; its inputs are the network's features (`network_features`)."""
        return self._value().head_.gpflow_model_

    def _probabilities(self, X: Floats) -> Floats:
        return cal.softmax(self._scores(X), self.beta_)

    def _scores(self, X: Floats) -> Floats:
        return self._latent(X).mean

    def _latent(self, X: Floats) -> Latent:
        return self.head_.predict_latent(self._features(X))

    def _state(self) -> dict[str, Array]:
        return super()._state() | prefixed("head", self.head_.get_state())

    def _set_state(self, state: Mapping[str, Array]) -> None:
        super()._set_state(state)
        head = within("head", state)
        self.head_ = self._new_head(Geometry.from_arrays(within("geometry", head))).set_state(head)


def shape_of(sizes: Any, n_columns: int) -> tuple[int, ...]:
    """The shape of what a network reads.

    Args:
        sizes: (height, width) or (height, width, channels) of images; None for rows of numbers.
        n_columns: of the rows.

    Raises:
        InputError: the columns are not the pixels of such an image.
    """
    if sizes is None:
        return (n_columns,)
    shape = tuple(int(size) for size in np.atleast_1d(sizes))
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) not in (1, 3) or min(shape) < 1 or int(np.prod(shape)) != n_columns:
        raise InputError(
            f"input_shape must be (height, width[, channels]) with {n_columns} numbers in all; "
            f"got {sizes!r}. A network wants raw pixels, not PCA components."
        )
    return shape


def saved_network(option: str, saved: Any) -> str:
    """The network that a state was fitted with: the option itself, or a name to look up in the registry.

    Args:
        option: the estimator's, as it was typed.
        saved: the state's text, which by itself names no code.

    Raises:
        InputError: the state names code that the option does not.
    """
    name = str(np.asarray(saved))
    if ":" in name and name != option:
        raise InputError(
            f"The saved arrays name code of their own, {cut(name)}, and their option network is {option!r}: "
            "they are damaged, or somebody changed them."
        )
    return option if name == option else name


_FEATURES = Cache[Floats](1 << 24, np.size)  # float32 numbers, 64 MB: rounds score one pool with one network
