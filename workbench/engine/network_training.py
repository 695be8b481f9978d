"""Work on a network: its features of many rows, and minibatch training with either head.

A compiled function is made once per (network, input shape) and serves every fitted classifier of the
process, from any thread; a classifier is plain arrays that copy, pickle and save exactly.

The large-margin head in front of a network (LMGP-DNN, Wistuba & Rawat 2018, 2019; docs/math.md, 10):
network and head maximise

    sum_n [ -tau log sum_t exp(g_nt / tau) ] - KL(q || p),  g = d + sqrt(a),
    d = 1 + F_t - F_y,  a = d^2 + 2 r + V_t + V_y,

over the network's weights, the inducing points Z and q(v_c) = N(m_c, L_c L_c'), by Adam.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Array, Floats, Ints
from workbench.engine.adam import AdamState, adam_step, in_shares
from workbench.engine.augmentation import rival_hinges, tempered_maximum, without_own
from workbench.engine.networks import Shape, Weights, forward, n_features, template
from workbench.engine.whitened import kl, project

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
    batches, rates = tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None, 2), f32)

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
        layer = tf.TensorSpec((self.n_features, None), self.f32), self.vector
        return self._training(_cross_entropy, self.f32, layer)

    def joint(self) -> Any:
        head = Head(
            tf.TensorSpec((None, self.n_features), self.f64),
            tf.TensorSpec((None, None), self.f64),
            tf.TensorSpec((None, None, None), self.f64),
        )
        number = tf.TensorSpec((), self.f64)
        return self._training(_head_loss, self.f64, head, tf.TensorSpec((2,), self.f64), number, number)

    def _training(self, loss_of: Any, dtype: Any, layers: tuple[Any, ...], *fixed: Any) -> Any:
        """Minibatch steps of network and last layers.

        Args:
            loss_of: (features, last layers, codes, what is fixed) -> mean loss of a batch.
            dtype: of the loss.
            layers: signature of the last layers.
            fixed: signature of what else the loss depends on.
        """
        spec, n_last = (*self.weights, *layers), len(layers)

        @tf.function(experimental_attributes={"_noinline": True})
        def slopes_of(variables: Any, shift: Any, scale: Any, rows: Any, y: Any, fixed: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(variables)
                f = self.forward(variables[:-n_last], shift, scale, rows)
                loss = loss_of(f, variables[-n_last:], y, *fixed)
            return loss, tape.gradient(loss, variables)

        @tf.function(
            input_signature=[spec, AdamState.spec(spec), *self.data, self.batches, self.rates, fixed]
        )
        def train(variables, state, shift, scale, X, codes, rows, rates, fixed):  # type: ignore[no-untyped-def]
            total = tf.zeros((), dtype)
            for i in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
                batch = tf.gather(X, rows[i]), tf.gather(codes, rows[i])
                loss, slopes = slopes_of(variables, shift, scale, *batch, fixed)
                step_rates = [rates[i, 0]] * (len(slopes) - n_last) + [rates[i, 1]] * n_last
                variables, state = adam_step(variables, slopes, state, step_rates)
                total += loss
            return variables, state, total

        return train


def _cross_entropy(features: Any, layer: Any, codes: Any) -> Any:
    logits = tf.matmul(features, layer[0]) + layer[1]
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(codes, logits))


def _head_loss(features: Any, head: Any, codes: Any, kernel: Any, tau: Any, n: Any) -> Any:
    moments = head_moments(Head(*head), kernel, tf.cast(features, tf.float64))
    return tf.reduce_mean(margin_loss(*moments, codes, tau)) + head_kl(Head(*head)) / n


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
    return _train(run, variables, data, rows, np.stack([rates, rates], axis=1), (), report)


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
    fixed = (np.asarray(kernel), np.float64(tau), np.float64(len(X)))
    training = _train(run, (*weights, *head), data, rows, rates, fixed, report)
    return training.variables[:-3], Head(*training.variables[-3:]), training


def _train(
    run: Any,
    variables: Sequence[Array],
    data: tuple[Any, ...],
    rows: Ints,
    rates: Floats,
    fixed: tuple[Any, ...],
    report: OnSteps | None,
) -> Trained:
    """Call the compiled loop in shares of about a second, so that people see progress and can stop."""
    tensors = tuple(tf.convert_to_tensor(part) for part in data)
    values, steps, stopped, trace = variables, 0, False, list[float]()

    def take(values: Any, adam: AdamState, part: slice) -> Any:
        return run(values, adam, *tensors, rows[part], rates[part].astype(np.float32), fixed)

    share = max(1, min(len(rows) // 50, 64))
    for after, loss, steps in in_shares(take, variables, len(rows), share):
        values = after
        trace.append(loss)
        stopped = report is not None and bool(report(steps, loss)) and steps < len(rows)
        if stopped:
            break
    return Trained(tuple(np.asarray(v) for v in values), np.asarray(trace), steps, stopped)


JITTER = 1e-5  # relative to the kernel's variance: points may meet while they move


class Head(NamedTuple):
    """Variables that joint training moves besides the network.

    Attributes:
        points: [P, d] inducing points in feature space.
        mean: [P, C] whitened means of q.
        factor: [C, P, P] lower factors of the whitened covariances: below the diagonal as they
            are, on it their logarithms, so that no step can leave the domain.
    """

    points: Any
    mean: Any
    factor: Any

    @classmethod
    def of(cls, points: Floats, mean: Floats, covariance: Floats) -> Head:
        """Take a posterior apart.

        Args:
            points: [P, d].
            mean: [P, C].
            covariance: [C, P, P].
        """
        factor = np.linalg.cholesky(covariance)
        diagonal = np.arange(factor.shape[1])
        factor[:, diagonal, diagonal] = np.log(factor[:, diagonal, diagonal])
        return cls(np.array(points, np.float64), np.array(mean, np.float64), factor)

    @property
    def covariance(self) -> Floats:
        """[C, P, P]."""
        factor = np.tril(np.asarray(self.factor), -1)
        diagonal = np.arange(factor.shape[1])
        factor[:, diagonal, diagonal] = np.exp(np.asarray(self.factor)[:, diagonal, diagonal])
        return np.matmul(factor, factor.transpose(0, 2, 1))


def _lower(raw: Any) -> Any:
    return tf.linalg.set_diag(tf.linalg.band_part(raw, -1, 0), tf.exp(tf.linalg.diag_part(raw)))


def head_moments(head: Head, kernel: Any, features: Any) -> tuple[Any, Any, Any]:
    """Latent mean [n, C], q's share of the variance [n, C] and what the points leave open [n].

    Args:
        head: tensors, float64.
        kernel: [2] variance and length scale of the squared exponential.
        features: [n, d] float64.
    """
    phi, residual = project("squared-exponential", features, head.points, kernel[1], kernel[0], JITTER)
    B = tf.matmul(phi[None], _lower(head.factor))  # [C, n, P]
    return tf.matmul(phi, head.mean), tf.transpose(tf.reduce_sum(B * B, 2)), residual


def margin_loss(mean: Any, share: Any, residual: Any, codes: Any, tau: Any) -> Any:
    """[n] minus the objective's term of each row: tempered maximum over rivals of g.

    Args:
        mean: [n, C].
        share: [n, C] q's share of the variance.
        residual: [n] what the points leave open.
        codes: [n] true classes.
        tau: temperature over rivals.
    """
    one_hot = tf.one_hot(codes, tf.shape(mean)[1], dtype=mean.dtype)
    hinge = rival_hinges(mean, share + residual[:, None], one_hot, tf)
    return tempered_maximum(without_own(hinge.bound, one_hot, tf), tau)


def head_kl(head: Head) -> Any:
    """KL(q || p) over all classes."""
    return kl(head.mean, _lower(head.factor))
