"""Models as differentiable functions of pixels: what an attacker who knows everything has.

A target is a key, which says which function, and tensors, which say with what numbers; so one
compiled gradient serves every fitted model of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.classifiers import protocols
from workbench.classifiers.network_predictor import FLOOR, NetworkPredictor
from workbench.classifiers.networks import LargeMarginNetClassifier, SoftmaxNetClassifier
from workbench.classifiers.predictor import Predictor
from workbench.engine.kernels import OffsetKernel, SlopedKernel, StationaryKernel, stationary
from workbench.errors import InputError

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
    def has_variance(self) -> bool:
        """True if it has latent functions with uncertainty."""
        return self.key[0] != "softmax"

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
    constant = slope = 0.0
    if isinstance(kernel, OffsetKernel):
        kernel, constant = kernel.inner, kernel.offset
    if isinstance(kernel, SlopedKernel):
        kernel, slope = kernel.inner, kernel.slope
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
        np.asarray(slope),
    ]
    owners = [np.repeat(np.arange(n_latent), r) for r in (ranks, raise_ranks)]
    arrays = tuple(tf.convert_to_tensor(np.asarray(part, dtype=dtype)) for part in numbers)
    arrays += tuple(tf.convert_to_tensor(o.astype(np.int32)) for o in owners)
    return (kernel.name, predictor.binary, np.ndim(kernel.length_scale), slope > 0), arrays


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
