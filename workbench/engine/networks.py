"""Networks as pure functions: Keras layers give the forward pass, weights travel as arrays.

A Keras model is built once per (network, input shape) and only ever called stateless, so that one
compiled function serves every fitted classifier of the process, from any thread, and a classifier
is plain arrays that copy, pickle and save exactly. The output of every network here goes through
a LayerNorm without parameters: it keeps the features of a large-margin head at one length, where a
single length scale means something.

What trains and runs it, with the large-margin head in front of it, is in `network_training`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.features.network import Layer
from workbench.registry import Entry, Registry, load_own, written_entries

# TensorFlow imports Keras while it loads: who asked for Keras first would wait for a thread that asked for
# TensorFlow, and that thread for him
keras = tf.keras
layers = keras.layers

Shape = tuple[int, ...]
Weights = tuple[Array, ...]


def stacked(seed: Iterator[int], parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Layers as a table of networks describes them.

    Args:
        seed: of the kernels.
        parts: ("convolution", filters, size, padding), ("pooling",), ("flat",) or ("dense", units) each.
    """
    makers = {
        "convolution": lambda filters, size, padding: layers.Conv2D(
            filters, size, padding=padding, activation="relu", kernel_initializer=_he_uniform(seed)
        ),
        "pooling": layers.MaxPooling2D,
        "flat": layers.Flatten,
        "dense": lambda units: layers.Dense(units, activation="relu", kernel_initializer=_he_uniform(seed)),
    }
    return [makers[kind](*sizes) for kind, *sizes in parts]


def _he_uniform(seed: Iterator[int]) -> Any:
    return keras.initializers.HeUniform(seed=next(seed))


NETWORKS: Registry[Entry] = Registry(
    "network", written_entries(Path(__file__).with_name("networks.toml"), Entry)
)


def _seeds(seed: int) -> Iterator[int]:
    rng = np.random.default_rng([seed, 0x2E7])
    while True:
        yield int(rng.integers(2**31 - 1))


def _build(network: str, input_shape: Shape, seed: int) -> Any:
    if ":" in network:
        parts = load_own(network, "network")(_seeds(seed))
    else:
        entry = NETWORKS[network]
        parts = entry.load()(_seeds(seed), **entry.options)
    try:
        model = keras.Sequential([keras.Input(input_shape), *parts])
    except ValueError as error:
        raise InputError(
            f"Network {network!r} does not fit images of shape {list(input_shape)}: {error} "
            "Choose a smaller network or larger images."
        ) from error
    if len(model.output_shape) != 2:
        raise InputError(
            f"Network {network!r} must end in one vector an item; it ends in {model.output_shape}."
        )
    if model.non_trainable_variables:
        raise InputError(
            f"Network {network!r} has layers that behave otherwise in training "
            "(dropout, batch normalisation); these are not supported."
        )
    return model


def initial_weights(network: str, input_shape: Shape, seed: int) -> Weights:
    """Weights to start from.

    Args:
        network: a name in `NETWORKS`, or "package.module:function" of your own: seeds -> layers.
        input_shape: (H, W, channels), or (D,) for networks of dense layers.
        seed: same seed, same weights.

    Returns:
        float32 arrays in the network's order.

    Raises:
        InputError: no such network, or one that does not fit the shape.
    """
    return tuple(np.asarray(v) for v in _build(network, input_shape, seed).trainable_variables)


@cache
def template(network: str, input_shape: Shape) -> Any:
    """The Keras model behind a network, for its layers alone; its own weights mean nothing.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
    """
    return _build(network, input_shape, 0)


def n_features(network: str, input_shape: Shape) -> int:
    """Length of the feature vector a network ends in."""
    return int(template(network, input_shape).output_shape[-1])


def forward(network: str, input_shape: Shape, weights: Sequence[Any], scaled: Any) -> Any:
    """Features [n, d] of scaled inputs [n, D], in TensorFlow; differentiable.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
        weights: tensors in the network's order.
        scaled: [n, D] float32.
    """
    values = tf.reshape(scaled, (-1, *input_shape))
    iterator = iter(weights)
    for layer in template(network, input_shape).layers:
        layer_weights = [next(iterator) for _ in layer.trainable_variables]
        values, _ = layer.stateless_call(layer_weights, [], values)
    return layer_norm(values)


def described(network: str, input_shape: Shape, weights: Sequence[Array]) -> tuple[Layer, ...]:
    """A network layer by layer, for a feature map that needs no TensorFlow.

    Args:
        network: as in `initial_weights`.
        input_shape: (H, W, channels).
        weights: arrays in the network's order.

    Raises:
        InputError: layers other than plain convolutions, pooling of 2 x 2 and dense ones with rectifiers.
    """
    stack: list[Layer] = []
    iterator = iter(weights)
    for layer in template(network, input_shape).layers:
        arrays = [np.asarray(next(iterator), np.float32) for _ in layer.trainable_variables]
        plain = getattr(layer, "activation", None) is keras.activations.relu and len(arrays) == 2
        if isinstance(layer, layers.Conv2D) and plain and layer.strides == layer.dilation_rate == (1, 1):
            stack.append(Layer("convolution", arrays[0], arrays[1], layer.padding))
        elif isinstance(layer, layers.Dense) and plain:
            stack.append(Layer("dense", arrays[0], arrays[1]))
        elif isinstance(layer, layers.MaxPooling2D) and layer.pool_size == layer.strides == (2, 2):
            stack.append(Layer("pooling"))
        elif isinstance(layer, layers.Flatten):
            stack.append(Layer("flat"))
        else:
            raise InputError(
                f"Layer {layer.name!r} of network {network!r} is none that a feature map can replay: plain "
                "convolutions and dense layers with rectifiers, pooling of 2 x 2 and flattening are."
            )
    return tuple(stack)


def layer_norm(raw: Any) -> Any:
    """Rows shifted to mean 0 and scaled to variance 1."""
    centred = raw - tf.reduce_mean(raw, 1, keepdims=True)
    # a row of zeros (every unit silent) stays where it is instead of becoming noise
    return centred * tf.math.rsqrt(tf.reduce_mean(centred * centred, 1, keepdims=True) + 1e-5)
