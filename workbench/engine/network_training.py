"""Work on a network: its features of many rows, and minibatch training with either head.

A compiled function is made once per (network, input shape) and serves every fitted classifier of the
process, from any thread; a classifier is plain arrays that copy, pickle and save exactly.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Array, Floats, Ints
from workbench.engine.adam import AdamState, adam_step
from workbench.engine.network_head import Head, head_kl, head_moments, margin_loss
from workbench.engine.networks import Shape, Weights, forward, n_features, template
from workbench.errors import InputError

_FLOATS_PER_CALL = 1 << 24  # activations of one forward chunk

OnSteps = Callable[[int, float], bool | None]
"""report(steps done, mean loss of the last steps) -> True to stop."""


class Compiled(NamedTuple):
    """The compiled functions of one network and input shape.

    Attributes:
        features: (weights, shift, scale, X [n, D]) -> [n, d].
        softmax: minibatch steps of network and softmax layer.
        joint: minibatch steps of network and large-margin head.
    """

    features: Any
    softmax: Any
    joint: Any


@cache
def compiled(network: str, input_shape: Shape) -> Compiled:
    """Compile a network; cached, so that a process traces each once, whatever N, C and P are.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
    """
    steps = _Steps(network, input_shape)
    return Compiled(steps.features(), steps.softmax(), steps.joint())


class _Steps:
    """A network's functions of one input shape, each compiled under one signature.

    Gradients are functions of their own within the loops: the library chooses its kernels (of pooling) by
    the order of operations, which is well defined only where nothing goes round.
    """

    f32, f64 = tf.float32, tf.float64
    vector = tf.TensorSpec((None,), f32)
    matrix = tf.TensorSpec((None, None), f32)
    batches = tf.TensorSpec((None, None), tf.int32)

    def __init__(self, network: str, input_shape: Shape) -> None:
        self.network, self.input_shape = network, input_shape
        self.n_features = n_features(network, input_shape)
        variables = template(network, input_shape).trainable_variables
        self.weights = tuple(tf.TensorSpec(v.shape, self.f32) for v in variables)
        # shift, scale, X and codes
        self.data = (self.vector, self.vector, self.matrix, tf.TensorSpec((None,), tf.int32))

    def forward(self, weights: Sequence[Any], shift: Any, scale: Any, rows: Any) -> Any:
        return forward(self.network, self.input_shape, weights, (rows - shift) / scale)

    def features(self) -> Any:
        @tf.function(input_signature=[self.weights, self.vector, self.vector, self.matrix])
        def features(weights, shift, scale, X):  # type: ignore[no-untyped-def]
            return self.forward(weights, shift, scale, X)

        return features

    def softmax(self) -> Any:
        layer = (tf.TensorSpec((self.n_features, None), self.f32), self.vector)
        spec = (*self.weights, *layer)

        @tf.function(experimental_attributes={"_noinline": True})
        def slopes_of(variables: Any, shift: Any, scale: Any, rows: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(variables)
                f = self.forward(variables[:-2], shift, scale, rows)
                logits = tf.matmul(f, variables[-2]) + variables[-1]
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
            return loss, tape.gradient(loss, variables)

        @tf.function(input_signature=[spec, AdamState.spec(spec), *self.data, self.batches, self.vector])
        def softmax(variables, state, shift, scale, X, codes, rows, rates):  # type: ignore[no-untyped-def]
            total = tf.constant(0.0)
            for i in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
                batch = tf.gather(X, rows[i]), tf.gather(codes, rows[i])
                loss, slopes = slopes_of(variables, shift, scale, *batch)
                variables, state = adam_step(variables, slopes, state, [rates[i]] * len(slopes))
                total += loss
            return variables, state, total

        return softmax

    def joint(self) -> Any:
        head = Head(
            tf.TensorSpec((None, self.n_features), self.f64),
            tf.TensorSpec((None, None), self.f64),
            tf.TensorSpec((None, None, None), self.f64),
        )
        spec = (*self.weights, *head)
        kernel, rates_of, number = (
            tf.TensorSpec((2,), self.f64),
            tf.TensorSpec((None, 2), self.f32),
            tf.TensorSpec((), self.f64),
        )

        @tf.function(experimental_attributes={"_noinline": True})
        def slopes_of(
            variables: Any, kernel: Any, shift: Any, scale: Any, rows: Any, y: Any, tau: Any, n: Any
        ) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(variables)
                f = self.forward(variables[:-3], shift, scale, rows)
                head = Head(*variables[-3:])
                moments = head_moments(head, kernel, tf.cast(f, tf.float64))
                loss = tf.reduce_mean(margin_loss(*moments, y, tau)) + head_kl(head) / n
            return loss, tape.gradient(loss, variables)

        @tf.function(
            input_signature=[
                spec,
                AdamState.spec(spec),
                kernel,
                *self.data,
                self.batches,
                rates_of,
                number,
                number,
            ]
        )
        def joint(variables, state, kernel, shift, scale, X, codes, rows, rates, tau, n):  # type: ignore[no-untyped-def]
            total = tf.constant(0.0, tf.float64)
            for i in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
                batch = tf.gather(X, rows[i]), tf.gather(codes, rows[i])
                loss, slopes = slopes_of(variables, kernel, shift, scale, *batch, tau, n)
                step_rates = [rates[i, 0]] * (len(slopes) - 3) + [rates[i, 1]] * 3
                variables, state = adam_step(variables, slopes, state, step_rates)
                total += loss
            return variables, state, total

        return joint


def features_of(
    network: str, input_shape: Shape, weights: Weights, shift: Floats, scale: Floats, X: Array
) -> Floats:
    """Features [N, d] float32 of raw rows X [N, D], in chunks; a row's are the same anywhere, to a rounding.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
        weights: the network's.
        shift: [D] subtracted from rows.
        scale: [D] then divided by.
        X: [N, D].
    """
    run = compiled(network, input_shape).features
    tensors = tuple(tf.convert_to_tensor(w) for w in weights)
    out = np.empty((len(X), n_features(network, input_shape)), np.float32)
    size = chunk_rows(network, input_shape)
    for start in range(0, len(X), size):
        rows = np.asarray(X[start : start + size], np.float32)
        count = len(rows)
        if count < size:
            # always the same shape: a matrix product rounds otherwise in its last few rows, and an
            # item's features would depend on its place
            rows = np.concatenate([rows, np.zeros((size - count, X.shape[1]), np.float32)])
        out[start : start + count] = run(tensors, shift, scale, rows).numpy()[:count]
    return out


@cache
def chunk_rows(network: str, input_shape: Shape, most: int = 128) -> int:
    """Rows of one call: as many as keep their activations small.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
        most: never more than this.
    """
    widest = max(int(np.prod(layer.output.shape[1:])) for layer in template(network, input_shape).layers)
    return int(np.clip(_FLOATS_PER_CALL // widest, 16, most))


class Trained(NamedTuple):
    """Result of training.

    Attributes:
        variables: trained, in the order given.
        trace: [T] mean losses, one for each share of the steps.
        steps: done.
        stopped: the report asked to stop.
    """

    variables: tuple[Array, ...]
    trace: Floats
    steps: int
    stopped: bool


def train_softmax(
    network: str,
    input_shape: Shape,
    variables: Sequence[Array],
    shift: Floats,
    scale: Floats,
    X: Array,
    codes: Ints,
    rows: Ints,
    rates: Floats,
    report: OnSteps | None = None,
) -> Trained:
    """Minimise the cross-entropy of network and softmax layer by Adam.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
        variables: the network's weights, then the layer's [d, C] and [C].
        shift: [D].
        scale: [D].
        X: [N, D] float32 raw rows.
        codes: [N].
        rows: [T, B] the minibatches.
        rates: [T] learning rates.
        report: told now and then; may stop.
    """
    run = compiled(network, input_shape).softmax
    data = (shift, scale, X, codes.astype(np.int32))
    return _train(run, variables, (), data, rows, rates.astype(np.float32), (), report)


def train_joint(
    network: str,
    input_shape: Shape,
    weights: Sequence[Array],
    head: Head,
    kernel: tuple[float, float],
    shift: Floats,
    scale: Floats,
    X: Array,
    codes: Ints,
    rows: Ints,
    rates: Floats,
    *,
    tau: float,
    report: OnSteps | None = None,
) -> tuple[Weights, Head, Trained]:
    """Minimise minus the large-margin objective a row over network, inducing points and q by Adam.

    Args:
        network: as in `initial_weights`.
        input_shape: as in `initial_weights`.
        weights: the network's.
        head: where to start.
        kernel: variance and length scale, held.
        shift: [D].
        scale: [D].
        X: [N, D] float32 raw rows.
        codes: [N].
        rows: [T, B] the minibatches.
        rates: [T, 2] learning rates of network and head.
        tau: temperature over rivals.
        report: told now and then; may stop.

    Returns:
        Weights, head and what training says of itself.
    """
    run = compiled(network, input_shape).joint
    data = (shift, scale, X, codes.astype(np.int32))
    after = (np.float64(tau), np.float64(len(X)))
    start = (*weights, *head)
    training = _train(run, start, (np.asarray(kernel),), data, rows, rates.astype(np.float32), after, report)
    return training.variables[:-3], Head(*training.variables[-3:]), training


def _train(
    run: Any,
    variables: Sequence[Array],
    before: tuple[Any, ...],
    data: tuple[Any, ...],
    rows: Ints,
    rates: Floats,
    after: tuple[Any, ...],
    report: OnSteps | None,
) -> Trained:
    """Call the compiled loop in shares of about a second, so that people see progress and can stop."""
    state = tuple(tf.convert_to_tensor(v) for v in variables)
    adam = AdamState.start(variables)
    tensors = tuple(tf.convert_to_tensor(part) for part in data)
    share, steps, stopped = max(1, min(len(rows) // 50, 64)), 0, False
    trace: list[float] = []
    while steps < len(rows) and not stopped:
        part = slice(steps, min(steps + share, len(rows)))
        state, adam, total = run(state, adam, *before, *tensors, rows[part], rates[part], *after)
        count = part.stop - steps
        steps = part.stop
        trace.append(float(total) / count)
        if not np.isfinite(trace[-1]):
            raise InputError("Training diverged (the loss is not a number); lower the learning rates.")
        stopped = report is not None and bool(report(steps, trace[-1])) and steps < len(rows)
    return Trained(tuple(v.numpy() for v in state), np.asarray(trace), steps, stopped)
