"""Networks as pure functions: Keras layers give the forward pass, weights travel as arrays.

A Keras model is built once per (network, input shape) and only ever called stateless, so that one
compiled function serves every fitted classifier of the process, from any thread, and a classifier
is plain arrays that copy, pickle and save exactly. The output of every network here goes through
a LayerNorm without parameters: it keeps the features of a large-margin head at one length, where a
single length scale means something.

The large-margin head in front of it (LMGP-DNN, Wistuba & Rawat 2018, 2019; docs/math.md, 10) maximises

    sum_n [ -tau log sum_t exp(g_nt / tau) ] - KL(q || p),  g = d + sqrt(a),
    d = 1 + F_t - F_y,  a = d^2 + 2 r + V_t + V_y,

over the network's weights, the inducing points Z and q(v_c) = N(m_c, L_c L_c'), by Adam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from workbench.arrays import Array, Floats, Ints
from workbench.engine.adam import AdamState, adam_step
from workbench.engine.augmentation import rival_hinges, tempered_maximum, without_own
from workbench.engine.fitting import minibatches as minibatches
from workbench.engine.whitened import kl, project
from workbench.errors import InputError
from workbench.pools.features.network import Layer
from workbench.registry import Entry, Registry, load_own

BATCH = 128
JITTER = 1e-5  # relative to the kernel's variance: points may meet while they move
BLOCK = 4  # pixels on a side that stand in the place of channels
_FLOATS_PER_CALL = 1 << 24  # activations of one forward chunk

Shape = tuple[int, ...]
Weights = tuple[Array, ...]
OnSteps = Callable[[int, float], bool | None]
"""report(steps done, mean loss of the last steps) -> True to stop."""

# --------------------------------------------------------------------------- the networks


def _mlp(seed: Iterator[int]) -> list[Any]:
    return [layers.Flatten(), _dense(128, seed), _dense(64, seed)]


def _small(seed: Iterator[int]) -> list[Any]:
    return [
        _conv(16, 3, seed), layers.MaxPooling2D(), _conv(32, 3, seed), layers.MaxPooling2D(),
        layers.Flatten(), _dense(64, seed),
    ]  # fmt: skip


def _middle(seed: Iterator[int]) -> list[Any]:
    return [
        _conv(32, 3, seed), layers.MaxPooling2D(), _conv(64, 3, seed), layers.MaxPooling2D(),
        layers.Flatten(), _dense(128, seed),
    ]  # fmt: skip


def _papers_mnist(seed: Iterator[int]) -> list[Any]:
    return [
        _conv(32, 5, seed, "valid"), _conv(64, 3, seed, "valid"), layers.MaxPooling2D(),
        layers.Flatten(), _dense(1024, seed), _dense(100, seed),
    ]  # fmt: skip


def _papers_cifar(seed: Iterator[int]) -> list[Any]:
    return [
        _conv(128, 3, seed, "valid"), _conv(128, 3, seed, "valid"), layers.MaxPooling2D(),
        _conv(128, 3, seed, "valid"), layers.MaxPooling2D(),
        layers.Flatten(), _dense(256, seed), _dense(100, seed),
    ]  # fmt: skip


def _conv(filters: int, size: int, seed: Iterator[int], padding: str = "same") -> Any:
    start = keras.initializers.HeUniform(seed=next(seed))
    return layers.Conv2D(filters, size, padding=padding, activation="relu", kernel_initializer=start)


def _dense(units: int, seed: Iterator[int]) -> Any:
    return layers.Dense(
        units, activation="relu", kernel_initializer=keras.initializers.HeUniform(seed=next(seed))
    )


_HERE = "workbench.engine.networks"
NETWORKS: Registry[Entry] = Registry(
    "network",
    [
        Entry("mlp", f"{_HERE}:_mlp", "Two dense layers", "fc(128)-fc(64), for features that are no images."),
        Entry(
            "small", f"{_HERE}:_small", "Small", "conv(16,3)-pool-conv(32,3)-pool-fc(64): seconds an epoch."
        ),
        Entry("middle", f"{_HERE}:_middle", "Middle", "conv(32,3)-pool-conv(64,3)-pool-fc(128)."),
        Entry(
            "papers-mnist",
            f"{_HERE}:_papers_mnist",
            "The papers' MNIST network",
            "conv(32,5)-conv(64,3)-pool-fc(1024)-fc(100), unpadded.",
        ),
        Entry(
            "papers-cifar10",
            f"{_HERE}:_papers_cifar",
            "The papers' CIFAR-10 network",
            "conv(128,3)-conv(128,3)-pool-conv(128,3)-pool-fc(256)-fc(100), unpadded.",
        ),
    ],
)


def _seeds(seed: int) -> Iterator[int]:
    rng = np.random.default_rng([seed, 0x2E7])
    while True:
        yield int(rng.integers(2**31 - 1))


def _build(network: str, input_shape: Shape, seed: int) -> Any:
    builder = load_own(network, "network") if ":" in network else NETWORKS[network].load()
    parts = builder(_seeds(seed))
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
    left = iter(weights)
    for layer in template(network, input_shape).layers:
        own = [next(left) for _ in layer.trainable_variables]
        if _reads_grey(layer):
            values = layer.activation(tf.nn.bias_add(grey_convolution(layer.padding)(values, own[0]), own[1]))
        else:
            values, _ = layer.stateless_call(own, [], values)
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
    found: list[Layer] = []
    left = iter(weights)
    for layer in template(network, input_shape).layers:
        own = [np.asarray(next(left), np.float32) for _ in layer.trainable_variables]
        plain = getattr(layer, "activation", None) is keras.activations.relu and len(own) == 2
        if isinstance(layer, layers.Conv2D) and plain and layer.strides == layer.dilation_rate == (1, 1):
            found.append(Layer("convolution", own[0], own[1], layer.padding))
        elif isinstance(layer, layers.Dense) and plain:
            found.append(Layer("dense", own[0], own[1]))
        elif isinstance(layer, layers.MaxPooling2D) and layer.pool_size == layer.strides == (2, 2):
            found.append(Layer("pooling"))
        elif isinstance(layer, layers.Flatten):
            found.append(Layer("flat"))
        else:
            raise InputError(
                f"Layer {layer.name!r} of network {network!r} is none that a feature map can replay: plain "
                "convolutions and dense layers with rectifiers, pooling of 2 x 2 and flattening are."
            )
    return tuple(found)


def _reads_grey(layer: Any) -> bool:
    plain = isinstance(layer, layers.Conv2D) and layer.strides == layer.dilation_rate == (1, 1)
    return bool(plain and layer.use_bias and layer.kernel.shape[2] == 1)


@cache
def grey_convolution(padding: str) -> Any:
    """A convolution of images of one channel whose gradient in the images is quick.

    The library's is padded to eight channels, most of them empty: it costs more than the rest of
    an attack on a small network. Here a block of pixels stands in the place of channels.

    Args:
        padding: "same" or "valid".

    Returns:
        (images [n, H, W, 1], kernel [h, w, 1, d]) -> [n, H', W', d], differentiable in both, once.
    """
    rule: Any = padding.upper()

    @tf.custom_gradient
    def convolution(images: Any, kernel: Any) -> Any:
        def slopes(upstream: Any) -> Any:
            of_kernel = tf.raw_ops.Conv2DBackpropFilter(
                input=images, filter_sizes=tf.shape(kernel), out_backprop=upstream, strides=[1] * 4,
                padding=rule,
            )  # fmt: skip
            return _slope_in_pixels(upstream, kernel, images.shape[1:3], padding), of_kernel

        return tf.nn.conv2d(images, kernel, 1, rule), slopes

    return convolution


def _slope_in_pixels(upstream: Any, kernel: Any, size: Any, padding: str) -> Any:
    """Gradient [n, H, W, 1] of a convolution in its images: one strided convolution, a block a place."""
    height, width, _, depth = kernel.shape
    flat = tf.concat([tf.reshape(kernel, (-1, depth)), tf.zeros((1, depth), kernel.dtype)], 0)
    spread = tf.transpose(tf.gather(flat, _places(height, width)), (0, 1, 3, 2))
    blocks, margins = [-(-side // BLOCK) for side in size], []
    for given, count, reach in zip(upstream.shape[1:3], blocks, (height, width), strict=True):
        before = reach // 2 if padding == "same" else reach - 1
        margins.append([before, BLOCK * count + reach - 1 - given - before])
    around: Any = [[0, 0], *margins, [0, 0]]
    found = tf.nn.conv2d(upstream, spread, BLOCK, around)
    return tf.nn.depth_to_space(found, BLOCK)[:, : size[0], : size[1]]


def _places(height: int, width: int) -> Ints:
    """[height + BLOCK - 1, width + BLOCK - 1, BLOCK^2] which weight joins a place to a pixel of a block."""
    u, v, i, j = np.ogrid[: height + BLOCK - 1, : width + BLOCK - 1, :BLOCK, :BLOCK]
    a, b = height - 1 - (u - i), width - 1 - (v - j)
    inside = (a >= 0) & (a < height) & (b >= 0) & (b < width)
    places: Ints = np.where(inside, a * width + b, height * width)
    return places.reshape(*places.shape[:2], BLOCK**2)


def layer_norm(raw: Any) -> Any:
    """Rows shifted to mean 0 and scaled to variance 1."""
    centred = raw - tf.reduce_mean(raw, 1, keepdims=True)
    # a row of zeros (every unit silent) stays where it is instead of becoming noise
    return centred * tf.math.rsqrt(tf.reduce_mean(centred * centred, 1, keepdims=True) + 1e-5)


# --------------------------------------------------------------------------- the large-margin head


class Head(NamedTuple):
    """What joint training moves besides the network.

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
    own = tf.one_hot(codes, tf.shape(mean)[1], dtype=mean.dtype)
    hinge = rival_hinges(mean, share + residual[:, None], own, tf)
    return tempered_maximum(without_own(hinge.bound, own, tf), tau)


def head_kl(head: Head) -> Any:
    """KL(q || p) over all classes."""
    return kl(head.mean, _lower(head.factor))


# --------------------------------------------------------------------------- training


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
    model = template(network, input_shape)
    d = n_features(network, input_shape)
    f32 = tf.float32
    weight_spec = tuple(tf.TensorSpec(v.shape, f32) for v in model.trainable_variables)
    layer_spec = (tf.TensorSpec((d, None), f32), tf.TensorSpec((None,), f32))
    head_spec = Head(
        tf.TensorSpec((None, d), tf.float64),
        tf.TensorSpec((None, None), tf.float64),
        tf.TensorSpec((None, None, None), tf.float64),
    )

    one = tf.TensorSpec((None,), f32)
    data_spec = (one, one, tf.TensorSpec((None, None), f32), tf.TensorSpec((None,), tf.int32))
    rows_spec = tf.TensorSpec((None, None), tf.int32)

    def apply(weights: Sequence[Any], shift: Any, scale: Any, rows: Any) -> Any:
        return forward(network, input_shape, weights, (rows - shift) / scale)

    @tf.function(input_signature=[weight_spec, one, one, data_spec[2]])
    def features(weights, shift, scale, X):  # type: ignore[no-untyped-def]
        return apply(weights, shift, scale, X)

    softmax_spec = (*weight_spec, *layer_spec)

    # gradients are functions of their own within the loops: the library chooses its kernels (of pooling)
    # by the order of operations, which is well defined only where nothing goes round
    @tf.function(experimental_attributes={"_noinline": True})
    def softmax_slopes(variables: Any, shift: Any, scale: Any, rows: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(variables)
            f = apply(variables[:-2], shift, scale, rows)
            logits = tf.matmul(f, variables[-2]) + variables[-1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        return loss, tape.gradient(loss, variables)

    @tf.function(input_signature=[softmax_spec, AdamState.spec(softmax_spec), *data_spec, rows_spec, one])
    def softmax(variables, state, shift, scale, X, codes, rows, rates):  # type: ignore[no-untyped-def]
        total = tf.constant(0.0)
        for i in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
            batch = tf.gather(X, rows[i]), tf.gather(codes, rows[i])
            loss, slopes = softmax_slopes(variables, shift, scale, *batch)
            variables, state = adam_step(variables, slopes, state, [rates[i]] * len(slopes))
            total += loss
        return variables, state, total

    joint_spec = (*weight_spec, *head_spec)

    @tf.function(experimental_attributes={"_noinline": True})
    def joint_slopes(
        variables: Any, kernel: Any, shift: Any, scale: Any, rows: Any, y: Any, tau: Any, n: Any
    ) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(variables)
            f = apply(variables[:-3], shift, scale, rows)
            head = Head(*variables[-3:])
            moments = head_moments(head, kernel, tf.cast(f, tf.float64))
            loss = tf.reduce_mean(margin_loss(*moments, y, tau)) + head_kl(head) / n
        return loss, tape.gradient(loss, variables)

    @tf.function(
        input_signature=[
            joint_spec,
            AdamState.spec(joint_spec),
            tf.TensorSpec((2,), tf.float64),
            *data_spec,
            rows_spec,
            tf.TensorSpec((None, 2), f32),
            tf.TensorSpec((), tf.float64),
            tf.TensorSpec((), tf.float64),
        ]
    )
    def joint(variables, state, kernel, shift, scale, X, codes, rows, rates, tau, n):  # type: ignore[no-untyped-def]
        total = tf.constant(0.0, tf.float64)
        for i in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
            batch = tf.gather(X, rows[i]), tf.gather(codes, rows[i])
            loss, slopes = joint_slopes(variables, kernel, shift, scale, *batch, tau, n)
            each = [rates[i, 0]] * (len(slopes) - 3) + [rates[i, 1]] * 3
            variables, state = adam_step(variables, slopes, state, each)
            total += loss
        return variables, state, total

    return Compiled(features, softmax, joint)


def features_of(
    network: str, input_shape: Shape, weights: Weights, shift: Floats, scale: Floats, X: Array
) -> Floats:
    """Features [N, d] float32 of raw rows X [N, D], in chunks; the same for a row wherever it stands.

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
    """What training ends with.

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
    network: str, input_shape: Shape, variables: Sequence[Array], shift: Floats, scale: Floats, X: Array,
    codes: Ints, rows: Ints, rates: Floats, report: OnSteps | None = None,
) -> Trained:  # fmt: skip
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
    network: str, input_shape: Shape, weights: Sequence[Array], head: Head, kernel: tuple[float, float],
    shift: Floats, scale: Floats, X: Array, codes: Ints, rows: Ints, rates: Floats, *, tau: float,
    report: OnSteps | None = None,
) -> tuple[Weights, Head, Trained]:  # fmt: skip
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
    done = _train(run, start, (np.asarray(kernel),), data, rows, rates.astype(np.float32), after, report)
    return done.variables[:-3], Head(*done.variables[-3:]), done


def _train(
    run: Any, variables: Sequence[Array], before: tuple[Any, ...], data: tuple[Any, ...], rows: Ints,
    rates: Floats, after: tuple[Any, ...], report: OnSteps | None,
) -> Trained:  # fmt: skip
    """Call the compiled loop in shares of about a second, so that people see progress and can stop."""
    state = tuple(tf.convert_to_tensor(v) for v in variables)
    adam = AdamState.start(variables)
    held = tuple(tf.convert_to_tensor(part) for part in data)
    share, done, stopped = max(1, min(len(rows) // 50, 64)), 0, False
    trace: list[float] = []
    while done < len(rows) and not stopped:
        part = slice(done, min(done + share, len(rows)))
        state, adam, total = run(state, adam, *before, *held, rows[part], rates[part], *after)
        count = part.stop - done
        done = part.stop
        trace.append(float(total) / count)
        if not np.isfinite(trace[-1]):
            raise InputError("Training diverged (the loss is not a number); lower the learning rates.")
        stopped = report is not None and bool(report(done, trace[-1])) and done < len(rows)
    return Trained(tuple(v.numpy() for v in state), np.asarray(trace), done, stopped)


def trace_counts(network: str, input_shape: Shape) -> dict[str, int]:
    """How often each compiled function of a network was traced in this process."""
    return {
        name: function.experimental_get_tracing_count()
        for name, function in compiled(network, input_shape)._asdict().items()
    }
