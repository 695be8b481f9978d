"""The attacks: FGSM, PGD, random signs, by name and by strength.

Strengths are in units of the pixels' range [0, 1]: 0.1 moves no pixel by more than a tenth of the
way from black to white. Results lie within the strength of the image and within [0, 1].
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Array, Floats, Ints, slices
from workbench.attacks import ATTACKS, LOSSES, check_images, check_strengths, loss_of
from workbench.classifiers import protocols
from workbench.classifiers.network_predictor import FLOOR, NetworkPredictor
from workbench.classifiers.networks import LargeMarginNetClassifier, SoftmaxNetClassifier
from workbench.classifiers.predictor import Predictor
from workbench.classifiers.protocols import is_fitted, supports_latent
from workbench.engine.kernels import OffsetKernel, StationaryKernel, stationary
from workbench.errors import InputError


def cross_entropy(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """Cross-entropy of the model's own probabilities, softmax(beta mean) [n]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(codes, beta * mean)


def hinge(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """1 + the largest rival's mean - the true class's mean [n]."""
    return 1.0 + tf.reduce_max(_rivals(mean, codes), 1) - _own(mean, codes)


def objective(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """Eb + sqrt(Eb2) for the rival of largest mean [n]: the large-margin model's loss (docs/math.md, 2)."""
    rival = tf.argmax(_rivals(mean, codes), 1, output_type=tf.int32)
    d = 1.0 + _own(mean, rival) - _own(mean, codes)
    return d + tf.sqrt(d * d + _own(variance, rival) + _own(variance, codes))


def adaptive(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """Margin of the best wrong class t over all others [n].

    The smallest over j of (mu_t - mu_j) / sqrt(s_t^2 + s_j^2), docs/math.md, 10.
    """
    winner = tf.argmax(_rivals(mean, codes), 1, output_type=tf.int32)
    gap = _own(mean, winner)[:, None] - mean
    spread = tf.sqrt(_own(variance, winner)[:, None] + variance + 1e-12)
    return tf.reduce_min(tf.where(_is(mean, winner), tf.cast(float("inf"), mean.dtype), gap / spread), 1)


def _own(values: Any, codes: Any) -> Any:
    return tf.gather(values, codes, batch_dims=1)


def _is(values: Any, codes: Any) -> Any:
    return tf.one_hot(codes, tf.shape(values)[1], on_value=True, off_value=False)


def _rivals(mean: Any, codes: Any) -> Any:
    return tf.where(_is(mean, codes), tf.cast(float("-inf"), mean.dtype), mean)


_ROWS = 512  # images in one call, at most: small networks spend their time starting operations

Moments = Callable[..., tuple[Any, Any]]
"""(arrays, X [n, D]) -> latent mean [n, C] and variance [n, C], or logits and None."""


class Target(NamedTuple):
    """A model to attack.

    Attributes:
        key: which function; hashable.
        arrays: its numbers, as (nested tuples of) tensors.
        dtype: of X and of the gradient.
        rows: how many images fit in one call.
        beta: inverse temperature of its class probabilities; 1 for models without.
    """

    key: tuple[Any, ...]
    arrays: Any
    dtype: Any
    rows: int
    beta: float = 1.0

    @property
    def signature(self) -> Any:
        """Shapes of the arrays; all sizes that differ between models of this kind are open."""
        if self.key[0] == "kernel":
            return _opened(self.arrays)
        # a network's shapes belong to its kind; what follows it may have any number of classes
        weights, *rest = self.arrays
        return (tuple(tf.TensorSpec(w.shape, w.dtype) for w in weights), *map(_opened, rest))


def target_of(model: Any) -> Target:
    """The differentiable function behind a fitted classifier, at its own temperature.

    Args:
        model: a fitted classifier: a network, or any GP with a named kernel on pixels.

    Returns:
        The target.

    Raises:
        InputError: the model gives no gradients.
    """
    if not protocols.is_fitted(model):
        raise InputError("Fit the model before attacking it.")
    name = type(model).__name__
    if not protocols.has_learnt(model):
        raise InputError(f"{name} has learnt nothing yet: it needs labels of two classes to be attacked.")
    return _function_of(model, name)._replace(beta=protocols.temperature_of(model) or 1.0)


def _function_of(model: Any, name: str) -> Target:
    predictor = protocols.predictor_of(model)
    if isinstance(predictor, NetworkPredictor):
        return _network_mean(predictor, name)
    if isinstance(model, (LargeMarginNetClassifier, SoftmaxNetClassifier)):
        return _network(model)
    if isinstance(predictor, Predictor):
        key, arrays = _kernel(predictor, name)
        dtype = tf.as_dtype(predictor.dtype)
        return Target(("kernel", *key), arrays, dtype, _ROWS)
    raise InputError(
        f"{name} gives no gradients, so nobody can compute an attack on it here. Attack a large-margin "
        "GP, another GP model or a network; or compute the attack on one of these and show it to this "
        "model (transfer)."
    )


def _opened(arrays: Any) -> Any:
    return tf.nest.map_structure(lambda a: tf.TensorSpec([None] * len(a.shape), a.dtype), arrays)


def _network(model: LargeMarginNetClassifier | SoftmaxNetClassifier) -> Target:
    from workbench.engine import network_training

    place = (model.network_, model.input_shape_)
    weights = tuple(tf.convert_to_tensor(w) for w in model.weights_)
    scaling = (tf.convert_to_tensor(model.shift_), tf.convert_to_tensor(model.scale_))
    rows = network_training.chunk_rows(*place, _ROWS)
    if isinstance(model, SoftmaxNetClassifier):
        layer = tuple(tf.convert_to_tensor(part) for part in (model.kernel_, model.bias_))
        return Target(("softmax", *place), (weights, scaling, layer), tf.float32, rows)
    key, arrays = _kernel(model.head_.predictor_, type(model).__name__)
    return Target(("head", *place, *key), (weights, scaling, arrays), tf.float32, rows)


def _network_mean(predictor: NetworkPredictor, name: str) -> Target:
    from workbench.engine import network_training

    place = (predictor.network, predictor.input_shape)
    key, spread = _kernel(predictor.spread, name)
    dtype = tf.as_dtype(predictor.spread.dtype)
    weights = tuple(tf.convert_to_tensor(np.asarray(w, np.float32)) for w in predictor.weights)
    layer = (predictor.kernel, predictor.bias, np.asarray(predictor.temper))
    last = tuple(tf.convert_to_tensor(np.asarray(part, predictor.spread.dtype)) for part in layer)
    return Target(
        ("network-mean", *place, *key),
        (weights, last, spread),
        dtype,
        network_training.chunk_rows(*place, _ROWS),
    )


def _kernel(predictor: Predictor, name: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    kernel: Any = predictor.kernel
    constant = 0.0
    if isinstance(kernel, OffsetKernel):
        kernel, constant = kernel.inner, kernel.offset
    if not isinstance(kernel, StationaryKernel) or predictor.representation is not None:
        raise InputError(
            f"{name} uses a kernel or columns of its own; attacks know the named kernels on plain numbers "
            "only. A large-margin model that chose them can be fitted again with choice=fixed."
        )
    dtype = predictor.dtype
    n_latent = predictor.mean_weights.shape[1]
    factors, ranks, raises, raise_ranks = predictor.folded
    numbers = [
        predictor.shift,
        predictor.scale,
        np.asarray(predictor.clip),
        np.asarray(kernel.length_scale),
        np.asarray(kernel.variance),
        predictor.points,
        predictor.mean_weights,
        predictor.mean_offset,
        factors,
        raises,
        np.asarray(constant),
        np.asarray(kernel.slope),
    ]
    owners = [np.repeat(np.arange(n_latent), r) for r in (ranks, raise_ranks)]
    arrays = tuple(tf.convert_to_tensor(np.asarray(part, dtype=dtype)) for part in numbers)
    arrays += tuple(tf.convert_to_tensor(o.astype(np.int32)) for o in owners)
    return (kernel.name, predictor.binary, np.ndim(kernel.length_scale), kernel.slope > 0), arrays


@cache
def moments(key: tuple[Any, ...]) -> Moments:
    """The function behind a key; calls trace it into whatever graph is being built."""
    kind, *parameters = key
    if kind == "kernel":
        return lambda arrays, X: _kernel_moments(arrays, X, *parameters)
    from workbench.engine import networks as engine

    network, shape, *options = parameters

    def features(weights: Any, scaling: Any, X: Any) -> Any:
        return engine.forward(network, shape, weights, (X - scaling[0]) / scaling[1])

    if kind == "network-mean":

        def network_mean(arrays: Any, X: Any) -> tuple[Any, Any]:
            weights, (kernel, bias, temper), spread = arrays
            scaled = tf.clip_by_value((X - spread[0]) / spread[1], -spread[2], spread[2])
            f = tf.cast(engine.forward(network, shape, weights, tf.cast(scaled, tf.float32)), X.dtype)
            _, variance = _kernel_moments(spread, X, *options)
            return tf.matmul(f, kernel) + bias, temper * tf.maximum(variance, tf.cast(FLOOR, X.dtype))

        return network_mean
    if kind == "softmax":
        return lambda arrays, X: (
            tf.matmul(features(arrays[0], arrays[1], X), arrays[2][0]) + arrays[2][1],
            None,
        )

    def head(arrays: Any, X: Any) -> tuple[Any, Any]:
        f = tf.cast(features(arrays[0], arrays[1], X), arrays[2][0].dtype)
        mean, variance = _kernel_moments(arrays[2], f, *options)
        return tf.cast(mean, X.dtype), tf.cast(variance, X.dtype)

    return head


def _kernel_moments(arrays: Any, X: Any, name: str, binary: bool, _: int, sloped: bool) -> tuple[Any, Any]:
    """Differentiable form of what `Predictor` computes."""
    (
        shift,
        scale,
        clip,
        length,
        variance,
        points,
        weights,
        offset,
        factors,
        raises,
        constant,
        slope,
        owners,
        raise_owners,
    ) = arrays
    A = tf.clip_by_value((X - shift) / scale, -clip, clip) / length
    B = points / length
    K = stationary(name, A, B, variance, tf) + constant
    prior = variance + constant
    if sloped:
        K += slope * tf.matmul(A, B, transpose_b=True)
        prior += slope * tf.reduce_sum(A * A, axis=1)[:, None]
    C = tf.shape(weights)[1]
    mean = tf.matmul(K, weights) + offset
    K = K[:, : tf.shape(factors)[0]]
    v = prior - _sums(tf.matmul(K, factors), owners, C) + _sums(tf.matmul(K, raises), raise_owners, C)
    v = tf.maximum(v, 0.0)
    if binary:
        return tf.concat([-0.5 * mean, 0.5 * mean], 1), 0.5 * tf.concat([v, v], 1)
    return mean, v


def _sums(B: Any, owners: Any, C: Any) -> Any:
    return tf.transpose(tf.math.unsorted_segment_sum(tf.transpose(B * B), owners, C))


STEPS = 20
REACH = 2.5  # steps of this many times strength / steps, so that the far side can be reached


# traced functions, not TensorFlow's dispatchers: these count traces of all models together, and warn of them
@cache
def compiled_slope(key: tuple[Any, ...], signature: Any, loss: str, dtype: Any) -> Any:
    """Compile a loss and its gradient for a kind of model; cached: one trace for each (model, loss).

    Args:
        key: of the target.
        signature: of the target.
        loss: a name in `LOSSES`.
        dtype: of the images.

    Returns:
        (arrays, beta, X [n, D], codes [n]) -> loss [n] and its gradient in X [n, D].
    """
    function, moments_of = LOSSES[loss].load(), moments(key)

    # a function of its own within the loop of PGD: the library chooses its kernels (of pooling) by the order
    # of operations, which is well defined only where nothing goes round
    @tf.function(input_signature=_inputs(signature, dtype), experimental_attributes={"_noinline": True})
    def slope(arrays, beta, X, codes):  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            tape.watch(X)
            value = function(*moments_of(arrays, X), beta, codes)
        return value, tape.gradient(value, X)

    return slope.get_concrete_function()


@cache
def compiled_pgd(key: tuple[Any, ...], signature: Any, loss: str, dtype: Any) -> Any:
    """Compile projected gradient steps; arguments as `compiled_slope`.

    Returns:
        (arrays, beta, X, codes, start [n, D], strength [n], steps) -> best images, loss [n].
    """
    function, moments_of = LOSSES[loss].load(), moments(key)
    slope = compiled_slope(key, signature, loss, dtype)
    inputs = _inputs(signature, dtype)

    @tf.function(
        input_signature=[*inputs, inputs[2], tf.TensorSpec((None,), dtype), tf.TensorSpec((), tf.int32)]
    )
    def pgd(arrays, beta, X, codes, start, strength, steps):  # type: ignore[no-untyped-def]
        low = tf.maximum(X - strength[:, None], 0.0)
        high = tf.minimum(X + strength[:, None], 1.0)
        step = REACH * strength[:, None] / tf.cast(steps, X.dtype)
        iterate, best = tf.clip_by_value(start, low, high), X
        record = function(*moments_of(arrays, X), beta, codes)
        for _turn in tf.range(steps):  # type: ignore[attr-defined]
            value, gradient = slope(arrays, beta, iterate, codes)
            best = tf.where((value > record)[:, None], iterate, best)
            record = tf.maximum(record, value)
            iterate = tf.clip_by_value(iterate + step * tf.sign(gradient), low, high)
        value = function(*moments_of(arrays, iterate), beta, codes)
        return tf.where((value > record)[:, None], iterate, best), tf.maximum(record, value)

    return pgd.get_concrete_function()


def _inputs(signature: Any, dtype: Any) -> list[Any]:
    """Signature of (arrays, beta, X, codes)."""
    return [
        signature,
        tf.TensorSpec((), dtype),
        tf.TensorSpec((None, None), dtype),
        tf.TensorSpec((None,), tf.int32),
    ]


def slopes(model: Any, X: Array, codes: Ints, loss: str = "cross-entropy") -> tuple[Floats, Floats]:
    """A loss and its gradient in the pixels.

    Args:
        model: a fitted classifier that has gradients.
        X: [N, D] images in [0, 1].
        codes: [N] true classes, as codes into `classes_`.
        loss: a name in `LOSSES`.

    Returns:
        [N] and [N, D].
    """
    target = target_of(model)
    run = compiled_slope(target.key, target.signature, loss, target.dtype)
    dtype = target.dtype.as_numpy_dtype
    value, gradient = np.empty(len(X), dtype), np.empty(X.shape, dtype)
    for rows in slices(len(X), target.rows):
        v, g = run(target.arrays, dtype(target.beta), X[rows].astype(dtype), codes[rows].astype(np.int32))
        value[rows], gradient[rows] = v.numpy(), g.numpy()
    return value, gradient


def fgsm(
    model: Any, X: Floats, codes: Ints, strengths: Floats, *, loss: str, rng: np.random.Generator, steps: int
) -> Iterator[Floats]:
    """FGSM: one gradient serves all strengths.

    Args:
        model: whose gradient it is.
        X: [N, D] in [0, 1].
        codes: [N] classes to lead away from.
        strengths: [S].
        loss: to raise.
        rng: not needed.
        steps: not needed: there is one.

    Returns:
        [N, D] for each strength, one after the other.
    """
    return _along(np.sign(slopes(model, X, codes, loss)[1]).astype(np.int8), X, strengths)


def noise(
    model: Any, X: Floats, codes: Ints, strengths: Floats, *, loss: str, rng: np.random.Generator, steps: int
) -> Iterator[Floats]:
    """Random signs instead of the gradient's; the same ones at all strengths. Arguments as `fgsm`."""
    return _along(rng.choice(np.array([-1, 1], np.int8), size=X.shape), X, strengths)


def _along(direction: Array, X: Floats, strengths: Floats) -> Iterator[Floats]:
    """Images that went in a direction, by each strength."""
    for strength in strengths:
        yield _inside(X + strength * direction, X, strength)


def pgd(
    model: Any, X: Floats, codes: Ints, strengths: Floats, *, loss: str, rng: np.random.Generator, steps: int
) -> Iterator[Floats]:
    """Projected gradient steps from a random place within the strength; the iterate of largest loss is kept.

    The image itself counts as one, so none ends below its loss. Arguments as `fgsm`, but `rng` draws the
    place, the same one at all strengths; `steps` k, each 2.5 strength / k long.
    """
    target = target_of(model)
    run = compiled_pgd(target.key, target.signature, loss, target.dtype)
    dtype = target.dtype.as_numpy_dtype
    place = rng.uniform(-1.0, 1.0, X.shape)
    for strength in strengths:
        best = np.empty_like(X)
        for rows in slices(len(X), target.rows):
            iterates, _ = run(
                target.arrays,
                dtype(target.beta),
                X[rows].astype(dtype),
                codes[rows].astype(np.int32),
                (X[rows] + strength * place[rows]).astype(dtype),
                np.full(len(X[rows]), strength, dtype),
                np.int32(steps),
            )
            best[rows] = iterates.numpy()
        yield _inside(best, X, strength)


def attacks_on(
    model: Any,
    X: Array,
    y: Array | None = None,
    *,
    method: str = "fgsm",
    strengths: Sequence[float] | Floats = (0.1,),
    loss: str | None = None,
    steps: int = STEPS,
    surrogate: Any = None,
    random_state: int = 0,
) -> Iterator[Floats]:
    """Attacked images, one strength after the other.

    Args:
        model: the fitted classifier under attack.
        X: [N, D] images, every value in [0, 1].
        y: [N] true labels; None leads away from what the model now predicts.
        method: a name in `ATTACKS`.
        strengths: [S] largest changes of a pixel, each in [0, 1].
        loss: a name in `LOSSES`; None for the attack's own.
        steps: of iterative attacks.
        surrogate: the model that "transfer" computes its gradient on.
        random_state: of "noise" and of where iterative attacks start.

    Yields:
        [N, D] float64 for each strength.

    Raises:
        InputError: images or strengths outside [0, 1], labels the model does not know, a model
            without gradients, a loss that needs variances it does not have, or no surrogate.
    """
    entry = ATTACKS[method]
    images, grid = check_images(X), check_strengths(strengths)
    if steps < 1:
        raise InputError(f"An attack needs at least one step; got {steps}.")
    if not is_fitted(model):
        raise InputError("Fit the model before attacking it.")
    source = surrogate if entry.needs_surrogate else model
    if source is None:
        raise InputError("The transfer attack needs a surrogate: the model its gradient is computed on.")
    name = loss_of(method, loss, supports_latent(source))
    codes = codes_of(source, model.predict(images) if y is None else np.asarray(y), len(images))
    return entry.load()(
        source, images, codes, grid, loss=name, rng=np.random.default_rng([random_state, 0xA77]), steps=steps
    )


def attack(
    model: Any,
    X: Array,
    y: Array | None = None,
    *,
    method: str = "fgsm",
    strength: float = 0.1,
    loss: str | None = None,
    steps: int = STEPS,
    surrogate: Any = None,
    random_state: int = 0,
) -> Floats:
    """Attacked images at one strength. Arguments as `attacks_on`.

    Returns:
        [N, D] float64, within `strength` of X and within [0, 1].
    """
    return next(
        attacks_on(
            model,
            X,
            y,
            method=method,
            strengths=(strength,),
            loss=loss,
            steps=steps,
            surrogate=surrogate,
            random_state=random_state,
        )
    )


def codes_of(model: Any, y: Array, n: int) -> Ints:
    """Labels [n] as codes into the model's classes.

    Raises:
        InputError: another number of labels, or labels the model does not know.
    """
    if not is_fitted(model):
        raise InputError("Fit the model before attacking it.")
    if y.shape != (n,):
        raise InputError(f"One label an image is needed: {n} images and labels of shape {list(y.shape)}.")
    place = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    unknown = sorted({str(label) for label in y.tolist() if label not in place})
    if unknown:
        raise InputError(
            f"The model does not know the class {unknown[0]!r}; it knows {', '.join(map(str, place))}."
        )
    return np.fromiter((place[label] for label in y.tolist()), np.int64, n)


def _inside(images: Floats, X: Floats, strength: float) -> Floats:
    """Within the strength of X and within [0, 1], to the last bit."""
    return np.clip(np.clip(images, X - strength, X + strength), 0.0, 1.0)
