"""Sparse variational GPs without augmentation: softmax, robust-max and Heaviside likelihoods.

The bound is GPflow's SVGP bound in whitened form, and the expectations are those of GPflow
likelihoods; what is added is a way to maximise it in a dozen sweeps. With g = dE/dF and
w = -2 dE/dV per item and class (E = sum_n E_q[log p(y_n | f_n)], F and V the moments of f), a
natural-gradient step of size rho moves

    precision_c  towards  I + Phi' diag(w_c) Phi,      mean_c  along  precision^-1 (Phi' g_c - mean_c).

By Price's theorem w_c = -E[d^2 log p / df_c^2], which for log-concave likelihoods (softmax,
multinomial probit) is never negative even as a sample average: every precision stays above the
prior's, steps of size 1 are safe, and halving rejected steps makes the bound monotone. Robust-max
is not log-concave: there w is cut at 0 (without the cut GPflow's natural gradients end in NaN).
Class likelihoods do not feel a shift common to all classes, so means are centred over classes
after each step, which never lowers the bound and removes its one slow direction.

Expectations with no closed form are averages over fixed quasi-random nodes, other ones for each
row of the data: the objective is deterministic, so back-tracking and stopping mean something.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import gpflow as _gpflow
import numpy as np
import tensorflow as _tensorflow

from workbench.arrays import Array, Floats, Ints
from workbench.engine.kernels import GPflowKernel, Kernel, StationaryKernel
from workbench.engine.projection import Basis, make_basis, project
from workbench.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

# their type stubs know neither AutoGraph's loops nor NumPy arrays as arguments
tf: Any = _tensorflow
gpflow: Any = _gpflow

Callback = Callable[[float, float], bool | None]

LIKELIHOODS = ("softmax", "robust-max", "heaviside")
NODES = {"softmax": 64, "robust-max": 2, "heaviside": 16}
EPSILON = 1e-3  # robust-max: GPflow's default share of wrong labels

_TABLE_ROWS = 256  # rows of data with node sets of their own; after that the sets repeat
_PROBIT_POINTS = 8
_HYPER_ROWS = 4096
_CELLS = 1 << 18  # numbers per intermediate tensor of a chunk: stays in the cache


class Variational(NamedTuple):
    """q(v_c) = N(mean_c, root_c root_c'), whitened; P inducing points, C classes.

    Attributes:
        mean: [P, C], GPflow's q_mu.
        root: [C, P, P] lower triangular, GPflow's q_sqrt.
    """

    mean: Array
    root: Array


class Projected(NamedTuple):
    """The data as the bound sees them.

    Attributes:
        phi: [N, P] whitened features.
        rest: [N] prior variance that the inducing points do not explain.
        codes: [N] int classes.
    """

    phi: Array
    rest: Array
    codes: Ints


class Fit(NamedTuple):
    """What a fit ends with.

    Attributes:
        posterior: the best state met.
        objective: its evidence lower bound.
        trace: [T] bounds along the way, the start included.
        steps: sweeps or epochs done.
    """

    posterior: Variational
    objective: float
    trace: Floats
    steps: int


class Hyper(NamedTuple):
    """Kernel hyperparameters and inducing points, as `learn` returns them.

    Attributes:
        length_scale: of the squared exponential.
        variance: of the squared exponential.
        inducing: [P, D].
    """

    length_scale: float
    variance: float
    inducing: Array


# ---------------------------------------------------------------------------------- likelihoods


@cache
def node_table(n_classes: int, n_nodes: int) -> Floats:
    """Quasi-random standard normal nodes, a set for each row of the data modulo the table's length.

    Every set is its own mirror image and has unit variance per class, so that the mean of any
    quadratic is exact. Separate sets for the rows keep a fit from exploiting their common error.

    Args:
        n_classes: C.
        n_nodes: S, rounded up to an even number.

    Returns:
        [256, S, C].
    """
    from scipy.stats import norm, qmc

    half = max(1, (n_nodes + 1) // 2)
    total = 1 << int(np.ceil(np.log2(_TABLE_ROWS * half)))
    uniform = qmc.Sobol(n_classes, scramble=True, rng=np.random.default_rng(20)).random(total)
    z = norm.ppf(np.clip(uniform, 1e-12, 1 - 1e-12))[: _TABLE_ROWS * half].reshape(_TABLE_ROWS, half, -1)
    z /= np.sqrt(np.mean(z * z, axis=1, keepdims=True))
    return np.concatenate([z, -z], axis=1)


def _nodes_for(table: Any, first: Any, n: Any) -> Any:
    """[n, S, C] nodes of rows first .. first + n."""
    return tf.gather(table, (first + tf.range(n)) % tf.shape(table)[0])


class _OnNodes:
    """Replaces a GPflow likelihood's random draws by the node table, by position in the batch."""

    node_table: Any

    def _mc_quadrature(
        self,
        funcs: Any,
        Fmu: Any,
        Fvar: Any,
        logspace: bool = False,
        epsilon: Any = None,
        **Ys: Any,
    ) -> Any:
        if epsilon is None:
            table = tf.cast(self.node_table, Fmu.dtype)
            epsilon = tf.transpose(_nodes_for(table, 0, tf.shape(Fmu)[0]), [1, 0, 2])
        return super()._mc_quadrature(funcs, Fmu, Fvar, logspace, epsilon, **Ys)  # type: ignore[misc]


class NodesSoftmax(_OnNodes, gpflow.likelihoods.Softmax):
    """GPflow's softmax likelihood with expectations over fixed nodes instead of random draws.

    Args:
        n_classes: C.
        n_nodes: S per row of the data.
    """

    def __init__(self, n_classes: int, n_nodes: int = NODES["softmax"]) -> None:
        super().__init__(n_classes)
        self.node_table = node_table(n_classes, n_nodes)
        self.num_monte_carlo_points = self.node_table.shape[1]


class MultinomialProbit(_OnNodes, gpflow.likelihoods.MonteCarloLikelihood):
    """Heaviside likelihood on latents with unit noise: p(y | f) = P(f_y + e_y is the largest), e ~ N(0, I).

    With a Gaussian q the expected log of a bare Heaviside function is minus infinity; the noise
    makes it finite. The noise of the true class is integrated by Gauss-Hermite, the others are CDFs.

    Args:
        n_classes: C.
        n_nodes: S per row of the data, for expectations of the log.
    """

    def __init__(self, n_classes: int, n_nodes: int = NODES["heaviside"]) -> None:
        super().__init__(input_dim=None, latent_dim=n_classes, observation_dim=None)
        self.num_classes = n_classes
        self.node_table = node_table(n_classes, n_nodes)
        self.num_monte_carlo_points = self.node_table.shape[1]

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        y = tf.one_hot(tf.cast(Y[..., 0], tf.int32), self.num_classes, dtype=F.dtype)
        return _log_probit(F, tf.broadcast_to(y, tf.shape(F)))[0]

    def _conditional_mean(self, X: Any, F: Any) -> Any:
        return _largest(F, tf.ones_like(F))

    def _conditional_variance(self, X: Any, F: Any) -> Any:
        p = self._conditional_mean(X, F)
        return p - tf.square(p)

    def _predict_mean_and_var(self, X: Any, Fmu: Any, Fvar: Any, epsilon: Any = None) -> Any:
        p = _largest(Fmu, Fvar + 1.0)
        return p, p - tf.square(p)

    def _predict_log_density(self, X: Any, Fmu: Any, Fvar: Any, Y: Any, epsilon: Any = None) -> Any:
        p = _largest(Fmu, Fvar + 1.0)
        return tf.math.log(tf.gather(p, tf.cast(Y[:, 0], tf.int32), axis=1, batch_dims=1))


def make_likelihood(name: str, n_classes: int, n_nodes: int | None = None, epsilon: float = EPSILON) -> Any:
    """The GPflow likelihood behind a name.

    Args:
        name: one of `LIKELIHOODS`.
        n_classes: C >= 2.
        n_nodes: S for expectations without a closed form; None is the name's default.
        epsilon: robust-max's share of wrong labels.

    Returns:
        A `gpflow.likelihoods.Likelihood` for integer labels [N, 1].

    Raises:
        InputError: an unknown name.
    """
    if name == "softmax":
        return NodesSoftmax(n_classes, n_nodes or NODES[name])
    if name == "heaviside":
        return MultinomialProbit(n_classes, n_nodes or NODES[name])
    if name == "robust-max":
        link = gpflow.likelihoods.RobustMax(n_classes, epsilon)
        return gpflow.likelihoods.MultiClass(n_classes, invlink=link)
    raise InputError(f"There is no likelihood called {name!r}. Known: {', '.join(LIKELIHOODS)}.")


def log_ndtr(a: Any) -> Any:
    """Logarithm of Phi(a), with finite gradients for every finite a.

    Args:
        a: a float tensor.
    """
    edge = -20.0 if a.dtype == tf.float64 else -5.0
    central = a > edge
    body = tf.math.log(0.5 * tf.math.erfc(-np.sqrt(0.5) * tf.where(central, a, tf.ones_like(a))))
    far = tf.where(central, edge * tf.ones_like(a), a)
    i = 1.0 / tf.square(far)
    # the asymptotic series alternates: five terms leave 3e-9 at -20, 1e-3 of a float32's unit at -5
    series = i * (-1.0 + i * (3.0 + i * (-15.0 + i * (105.0 - 945.0 * i))))
    tail = -0.5 * tf.square(far) - tf.math.log(-far) - 0.5 * np.log(2 * np.pi) + tf.math.log1p(series)
    return tf.where(central, body, tail)


def _hermite(n: int, dtype: Any) -> tuple[Any, Any]:
    x, w = np.polynomial.hermite_e.hermegauss(n)
    return tf.constant(x, dtype), tf.constant(np.log(w / w.sum()), dtype)


def _log_probit(F: Any, Y: Any) -> tuple[Any, Any, Any]:
    """The multinomial probit's log p(y | f), its gradient and minus its diagonal second derivative.

    With weights omega(u) proportional to phi(u) prod_{c != y} Phi(a_c), a_c = u + f_y - f_c and
    lambda = phi / Phi: d/df_c = -E[lambda_c], d/df_y = E[u], -d^2/df_c^2 = E[a_c lambda_c] +
    E[lambda_c]^2, -d^2/df_y^2 = 1 - Var[u]; all second derivatives are >= 0 (log-concavity).

    Args:
        F: [..., C] latents.
        Y: [..., C] one-hot.

    Returns:
        [...], [..., C], [..., C].
    """
    x, log_weight = _hermite(_PROBIT_POINTS, F.dtype)
    top = tf.reduce_sum(F * Y, axis=-1, keepdims=True)
    others = (1.0 - Y)[..., None, :]
    # nodes around the integrand's mode, which lies far out where the true class is far behind
    mode, deviation = (tf.stop_gradient(z) for z in _probit_mode(F - top, 1.0 - Y))
    u = mode + deviation * x  # [..., G]
    log_weight = log_weight + tf.math.log(deviation) + 0.5 * (tf.square(x) - tf.square(u))
    a = (top - F)[..., None, :] + u[..., None]  # [..., G, C]
    log_cdf = log_ndtr(a) * others
    terms = tf.reduce_sum(log_cdf, axis=-1) + log_weight
    log_p = tf.reduce_logsumexp(terms, axis=-1)
    omega = tf.exp(terms - log_p[..., None])[..., None]
    ratio = tf.exp(-0.5 * tf.square(a) - 0.5 * np.log(2 * np.pi) - log_cdf) * others
    first = tf.reduce_sum(omega * ratio, axis=-2)
    second = tf.reduce_sum(omega * a * ratio, axis=-2)
    mean = tf.reduce_sum(omega[..., 0] * u, axis=-1, keepdims=True)
    spread = tf.reduce_sum(omega[..., 0] * tf.square(u), axis=-1, keepdims=True) - tf.square(mean)
    gradient = Y * mean - first
    curvature = Y * (1.0 - spread) + (1.0 - Y) * (second + tf.square(first))
    return log_p, gradient, tf.maximum(curvature, 0.0)


def _probit_mode(ahead: Any, others: Any) -> tuple[Any, Any]:
    """Mode [..., 1] and width of phi(u) prod_c Phi(u - ahead_c), ahead [..., C]; three Newton steps."""
    u = tf.maximum(0.5 * tf.reduce_max(ahead, axis=-1, keepdims=True), 0.0)
    for _ in range(3):
        a = u - ahead
        ratio = tf.exp(-0.5 * tf.square(a) - 0.5 * np.log(2 * np.pi) - log_ndtr(a)) * others
        slope = tf.reduce_sum(ratio, axis=-1, keepdims=True) - u
        curvature = 1.0 + tf.reduce_sum(ratio * (ratio + a), axis=-1, keepdims=True)
        u += slope / curvature
    return u, tf.math.rsqrt(curvature)


def _largest(mean: Any, variance: Any) -> Any:
    """[N, C] probability that each class has the largest of independent Gaussians; rows sum to 1."""
    C = mean.shape[-1]
    x, log_weight = _hermite(32, mean.dtype)
    s = tf.sqrt(variance)
    # node g of class j, against every class l: [N, j, l, G]
    at = mean[..., :, None, None] + s[..., :, None, None] * x
    log_cdf = log_ndtr((at - mean[..., None, :, None]) / s[..., None, :, None])
    keep = 1.0 - tf.eye(C, dtype=mean.dtype)[:, :, None]
    p = tf.exp(tf.reduce_logsumexp(tf.reduce_sum(log_cdf * keep, axis=-2) + log_weight, axis=-1))
    return p / tf.reduce_sum(p, axis=-1, keepdims=True)


# ---------------------------------------------------------------------------------- sites: E, g, w


def _softmax_sites(F: Any, V: Any, Y: Any, z: Any) -> tuple[Any, Any, Any]:
    f = F[:, None, :] + tf.sqrt(V)[:, None, :] * z
    log_sum = tf.reduce_logsumexp(f, axis=-1)
    p = tf.exp(f - log_sum[..., None])
    value = tf.reduce_sum(Y * F, axis=-1) - tf.reduce_mean(log_sum, axis=-1)
    mean = tf.reduce_mean(p, axis=1)
    return value, Y - mean, mean - tf.reduce_mean(tf.square(p), axis=1)


def _probit_sites(F: Any, V: Any, Y: Any, z: Any) -> tuple[Any, Any, Any]:
    f = F[:, None, :] + tf.sqrt(V)[:, None, :] * z
    value, gradient, curvature = _log_probit(f, tf.broadcast_to(Y[:, None, :], tf.shape(f)))
    return tf.reduce_mean(value, axis=1), tf.reduce_mean(gradient, axis=1), tf.reduce_mean(curvature, axis=1)


def _robust_max_sites(likelihood: Any, F: Any, V: Any, Y: Any) -> tuple[Any, Any, Any]:
    with tf.GradientTape() as tape:
        tape.watch([F, V])
        value = _expectations(likelihood, F, V, tf.argmax(Y, axis=-1))
        total = tf.reduce_sum(value)
    g, slope = tape.gradient(total, [F, V])
    return value, g, tf.maximum(-2.0 * slope, 0.0)


def _expectations(likelihood: Any, F: Any, V: Any, codes: Any) -> Any:
    """[N] E[log p(y | f)] by a GPflow likelihood; in float64, which GPflow's own quadratures assume."""
    F64, V64 = tf.cast(F, tf.float64), tf.cast(V, tf.float64)
    nothing = tf.zeros([tf.shape(F)[0], 0], tf.float64)
    return tf.cast(likelihood.variational_expectations(nothing, F64, V64, codes[:, None]), F.dtype)


# ---------------------------------------------------------------------------------- compiled parts


class Kernels(NamedTuple):
    """The compiled functions of one (likelihood, C, S, epsilon, dtype)."""

    likelihood: Any
    sites: Any
    statistics: Any
    advance: Any
    adam: Any
    learn: Any


def _kl(mean: Any, root: Any) -> Any:
    """KL(q || N(0, I)) summed over classes; root is any square root with a triangular shape."""
    size = tf.cast(tf.size(mean), mean.dtype)
    log_det = tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(root))))
    return 0.5 * (tf.reduce_sum(tf.square(root)) + tf.reduce_sum(tf.square(mean)) - size - log_det)


def _variances(phi: Any, root: Any, n_classes: int) -> Any:
    # a loop over classes beats a dense [C, n, P] batch
    return tf.stack(
        [tf.reduce_sum(tf.square(tf.matmul(phi, root[c])), axis=1) for c in range(n_classes)], axis=1
    )


def _adam_step(
    values: list[Any], grads: list[Any], first: list[Any], second: list[Any], t: Any, lr: Any
) -> Any:
    """Adam's ascent step (Kingma & Ba 2015), pure: new values and new moments."""
    dtype = values[0].dtype
    step = (
        lr * tf.sqrt(1.0 - tf.pow(tf.constant(0.999, dtype), t)) / (1.0 - tf.pow(tf.constant(0.9, dtype), t))
    )
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    second = [0.999 * v + 0.001 * tf.square(g) for v, g in zip(second, grads, strict=True)]
    values = [x + step * m / (tf.sqrt(v) + 1e-7) for x, m, v in zip(values, first, second, strict=True)]
    return values, first, second


@cache
def compiled(name: str, n_classes: int, n_nodes: int, epsilon: float, dtype_name: str) -> Kernels:
    """Compile the updates; cached, so that a process traces each once per classes and dtype.

    Args:
        name: one of `LIKELIHOODS`.
        n_classes: C.
        n_nodes: S.
        epsilon: robust-max's.
        dtype_name: "float64" or "float32".
    """
    dtype = tf.as_dtype(dtype_name)
    C = n_classes
    likelihood = make_likelihood(name, C, n_nodes, epsilon)
    table = tf.constant(node_table(C, n_nodes), dtype)
    points = {"softmax": n_nodes, "heaviside": n_nodes * _PROBIT_POINTS, "robust-max": 20}[name]
    # a multiple of the table's length, so that a row's nodes do not depend on the chunks
    chunk = max(1, _CELLS // (C * points * _TABLE_ROWS)) * _TABLE_ROWS

    def evaluate(F: Any, V: Any, Y: Any, first: Any) -> tuple[Any, Any, Any]:
        if name == "robust-max":
            return _robust_max_sites(likelihood, F, V, Y)
        z = _nodes_for(table, first, tf.shape(F)[0])
        return (_softmax_sites if name == "softmax" else _probit_sites)(F, V, Y, z)

    def spec(*shape: int | None) -> tf.TensorSpec:
        return tf.TensorSpec(shape, dtype)

    index = tf.TensorSpec((None,), tf.int32)
    data = [spec(None, None), spec(None), index]
    state = [spec(None, C), spec(C, None, None)]

    @tf.function(input_signature=[spec(None, C), spec(None, C), index])
    def sites(F, V, codes):  # type: ignore[no-untyped-def]
        return evaluate(F, V, tf.one_hot(codes, C, dtype=dtype), 0)

    @tf.function(input_signature=[*data, *state])
    def statistics(phi, rest, codes, mean, root):  # type: ignore[no-untyped-def]
        """Bound, Phi' g [P, C] and Phi' diag(w_c) Phi [C, P, P], over chunks of rows."""
        n, P = tf.shape(phi)[0], tf.shape(phi)[1]
        total = tf.zeros((), dtype)
        linear = tf.zeros([P, C], dtype)
        gram = tf.zeros([C, P, P], dtype)
        for first in tf.range(0, n, chunk):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[
                    (linear, tf.TensorShape([None, C])),
                    (gram, tf.TensorShape([C, None, None])),
                ]
            )
            p = phi[first : first + chunk]
            F = tf.matmul(p, mean)
            V = rest[first : first + chunk, None] + _variances(p, root, C)
            E, g, w = evaluate(F, V, tf.one_hot(codes[first : first + chunk], C, dtype=dtype), first)
            total += tf.reduce_sum(E)
            linear += tf.matmul(p, g, transpose_a=True)
            gram += tf.stack([tf.matmul(p, w[:, c, None] * p, transpose_a=True) for c in range(C)])
        return total - _kl(mean, root), linear, gram

    @tf.function(input_signature=[*state, spec(C, None, None), spec(None, C), spec(C, None, None), spec()])
    def advance(mean, root, precision, linear, gram, rho):  # type: ignore[no-untyped-def]
        """A natural-gradient step of size rho: mean, root (upper triangular) and precision."""
        eye = tf.eye(tf.shape(mean)[0], batch_shape=[C], dtype=dtype)
        gradient = linear - mean
        moved = tf.transpose(mean)[..., None]  # [C, P, 1]
        natural = tf.matmul(precision, moved)
        target = eye + gram
        natural += rho * (tf.matmul(target, moved) + tf.transpose(gradient)[..., None] - natural)
        precision += rho * (target - precision)
        inverse = tf.linalg.triangular_solve(tf.linalg.cholesky(precision), eye)
        root = tf.linalg.matrix_transpose(inverse)
        new = tf.transpose(tf.matmul(root, tf.matmul(inverse, natural))[..., 0])
        return new - tf.reduce_mean(new, axis=1, keepdims=True), root, precision

    def expected(phi: Any, rest: Any, codes: Any, mean: Any, root: Any) -> Any:
        F = tf.matmul(phi, mean)
        V = rest[:, None] + _variances(phi, root, C)
        return tf.reduce_sum(_expectations(likelihood, F, V, codes))

    @tf.function(
        input_signature=[
            *data,
            *state,
            *state,
            *state,
            tf.TensorSpec((None, None), tf.int32),
            spec(),
            spec(),
            spec(),
        ]
    )
    def adam(phi, rest, codes, mean, root, m1, r1, m2, r2, rows, t, rate, scale):  # type: ignore[no-untyped-def]
        """One Adam step for each line of row numbers; the last step's bound comes with it."""
        bound = tf.zeros((), dtype)
        for step in tf.range(tf.shape(rows)[0]):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tf.TensorShape([None, C])) for x in (mean, m1, m2)]
                + [(x, tf.TensorShape([C, None, None])) for x in (root, r1, r2)]
            )
            some = rows[step]
            with tf.GradientTape() as tape:
                tape.watch([mean, root])
                lower = tf.linalg.band_part(root, -1, 0)
                bound = scale * expected(
                    tf.gather(phi, some), tf.gather(rest, some), tf.gather(codes, some), mean, lower
                ) - _kl(mean, lower)
            grads = tape.gradient(bound, [mean, root])
            t += 1.0
            (mean, root), (m1, r1), (m2, r2) = _adam_step([mean, root], grads, [m1, r1], [m2, r2], t, rate)
        return mean, root, m1, r1, m2, r2, t, bound

    hyper = [spec(2), spec(None, None)]

    @tf.function(
        input_signature=[
            spec(None, None),
            index,
            *state,
            *hyper,
            *state,
            *hyper,
            *state,
            *hyper,
            tf.TensorSpec((None, None), tf.int32),
            spec(),
            spec(),
            spec(),
            spec(4),
        ]
    )
    def learn(  # type: ignore[no-untyped-def]
        X, codes, mean, root, logs, Z, m1, r1, l1, z1, m2, r2, l2, z2, rows, t, rate, scale, train
    ):
        """Adam on q, log hyperparameters and inducing points; `train` [4] switches or scales each rate."""
        bound = tf.zeros((), dtype)
        for step in tf.range(tf.shape(rows)[0]):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tf.TensorShape([None, C])) for x in (mean, m1, m2)]
                + [(x, tf.TensorShape([C, None, None])) for x in (root, r1, r2)]
                + [(x, tf.TensorShape([None, None])) for x in (Z, z1, z2)]
            )
            some = rows[step]
            values = [mean, root, logs, Z]
            with tf.GradientTape() as tape:
                tape.watch(values)
                lower = tf.linalg.band_part(root, -1, 0)
                phi, rest = _project(tf.gather(X, some), Z, logs)
                bound = scale * expected(phi, rest, tf.gather(codes, some), mean, lower) - _kl(mean, lower)
            grads = tape.gradient(bound, values)
            t += 1.0
            new, (m1, r1, l1, z1), (m2, r2, l2, z2) = _adam_step(
                values, grads, [m1, r1, l1, z1], [m2, r2, l2, z2], t, rate
            )
            mean, root, logs, Z = (
                x + train[i] * (y - x) for i, (x, y) in enumerate(zip(values, new, strict=True))
            )
        return mean, root, logs, Z, m1, r1, l1, z1, m2, r2, l2, z2, t, bound

    return Kernels(likelihood, sites, statistics, advance, adam, learn)


def _project(X: Any, Z: Any, logs: Any) -> tuple[Any, Any]:
    """Whitened features and unexplained variance for a squared exponential, differentiable."""
    scale, variance = tf.exp(logs[0]), tf.exp(logs[1])

    def kernel(A: Any, B: Any) -> Any:
        squares = (
            tf.reduce_sum(A * A, 1)[:, None] + tf.reduce_sum(B * B, 1) - 2 * tf.matmul(A, B, transpose_b=True)
        )
        return variance * tf.exp(-0.5 * tf.maximum(squares, 0.0) / tf.square(scale))

    jitter = 1e-6 if X.dtype == tf.float64 else 1e-4
    K = kernel(Z, Z) + jitter * variance * tf.eye(tf.shape(Z)[0], dtype=X.dtype)
    phi = tf.transpose(tf.linalg.triangular_solve(tf.linalg.cholesky(K), kernel(Z, X)))
    return phi, tf.maximum(variance - tf.reduce_sum(tf.square(phi), 1), 0.0)


# ---------------------------------------------------------------------------------- GPflow's model


class Jittered(gpflow.kernels.Kernel):
    """A kernel whose covariance of a set with itself has `jitter` added to the diagonal.

    GPflow adds one absolute jitter to every model; ours is relative to the kernel variance. This
    carries the difference, so that both factor the same matrix.

    Args:
        kernel: the kernel.
        jitter: may be negative.
    """

    def __init__(self, kernel: Any, jitter: float) -> None:
        super().__init__()
        self.kernel = kernel
        self.jitter = jitter

    def K(self, X: Any, X2: Any = None) -> Any:
        """[N, N2] covariances."""
        K = self.kernel(X, X2)
        if X2 is not None:
            return K
        return K + self.jitter * tf.eye(tf.shape(X)[-2], dtype=K.dtype)

    def K_diag(self, X: Any) -> Any:
        """[N] variances, without jitter."""
        return self.kernel(X, full_cov=False)


_GPFLOW_KERNELS = {
    "squared-exponential": gpflow.kernels.SquaredExponential,
    "matern52": gpflow.kernels.Matern52,
    "matern32": gpflow.kernels.Matern32,
    "exponential": gpflow.kernels.Matern12,  # exp(-r); GPflow's Exponential is exp(-r / 2)
}


def gpflow_model(
    likelihood: Any, kernel: Kernel, basis: Basis, mean: Array, root: Array, n_rows: int
) -> gpflow.models.SVGP:
    """A fitted posterior as GPflow's own model, in float64.

    Args:
        likelihood: a GPflow likelihood.
        kernel: of the latents.
        basis: P inducing points.
        mean: [P, C] whitened means.
        root: [C, P, P] lower triangular.
        n_rows: N, for bounds of minibatches.

    Returns:
        The model; `predict_f` equals the Predictor, `elbo` the objective.
    """
    if isinstance(kernel, GPflowKernel):
        inner = kernel.kernel
    else:
        assert isinstance(kernel, StationaryKernel)
        inner = _GPFLOW_KERNELS[kernel.name](kernel.variance, kernel.length_scale)
    return gpflow.models.SVGP(
        Jittered(inner, basis.jitter - gpflow.config.default_jitter()),
        likelihood,
        gpflow.inducing_variables.InducingPoints(basis.points),
        num_latent_gps=mean.shape[1],
        q_mu=np.asarray(mean, dtype=np.float64),
        q_sqrt=np.asarray(root, dtype=np.float64),
        whiten=True,
        num_data=n_rows,
    )


# ---------------------------------------------------------------------------------- fits


def trace_count(likelihood: str, n_classes: int, dtype: str = "float64") -> int:
    """How often the natural-gradient step was traced in this process, for tests and the doctor.

    Args:
        likelihood: one of `LIKELIHOODS`, with its default nodes.
        n_classes: C.
        dtype: "float64" or "float32".
    """
    kernels = compiled(likelihood, n_classes, NODES[likelihood], EPSILON, dtype)
    return max(
        kernels.statistics.experimental_get_tracing_count(), kernels.advance.experimental_get_tracing_count()
    )


def prior(n_inducing: int, n_classes: int, dtype: Any = np.float64) -> Variational:
    """The prior as q.

    Args:
        n_inducing: P.
        n_classes: C.
        dtype: float32 or float64.
    """
    eye = np.broadcast_to(np.eye(n_inducing, dtype=dtype), (n_classes, n_inducing, n_inducing))
    return Variational(np.zeros((n_inducing, n_classes), dtype), eye.copy())


def elbo(kernels: Kernels, data: Projected, q: Variational) -> float:
    """The evidence lower bound of q on all data.

    Args:
        kernels: from `compiled`.
        data: N rows.
        q: the posterior.
    """
    return float(kernels.statistics(*_tensors(data), q.mean, q.root)[0])


def fit_natural(
    kernels: Kernels,
    data: Projected,
    start: Variational,
    *,
    rate: float = 1.0,
    max_iter: int = 60,
    tol: float = 1e-4,
    callback: Callback | None = None,
) -> Fit:
    """Natural-gradient sweeps over all data; the bound never falls.

    Args:
        kernels: from `compiled`.
        data: N rows.
        start: the state to start from; a fit's last state makes a warm start.
        rate: first step size in (0, 1]; halved where the bound would fall, then let grow again.
        max_iter: sweeps.
        tol: stop after two sweeps that each gain less than this share of the bound.
        callback: (fraction, bound) after each sweep; True stops.

    Returns:
        The fit.
    """
    dtype = data.phi.dtype
    tensors = _tensors(data)
    slack = 1e-10 if dtype == np.float64 else 1e-6
    mean, root = tf.constant(start.mean, dtype), tf.constant(start.root, dtype)
    precision = tf.constant(_precision(start.root), dtype)
    bound, linear, gram = kernels.statistics(*tensors, mean, root)
    best = float(bound)
    trace, rho, small, steps = [best], rate, 0, 0
    while steps < max_iter and small < 2:
        steps += 1
        for _ in range(10):
            trial = kernels.advance(mean, root, precision, linear, gram, tf.constant(rho, dtype))
            after = kernels.statistics(*tensors, trial[0], trial[1])
            value = float(after[0])
            if np.isfinite(value) and value >= best - slack * abs(best):
                break
            rho /= 2.0
        else:
            break
        gain = value - best
        mean, root, precision = trial
        _, linear, gram = after
        best = value
        trace.append(best)
        rho = min(1.0, 1.5 * rho)
        small = small + 1 if gain < tol * abs(best) else 0
        fraction = 1.0 if small == 2 else steps / max_iter
        if callback is not None and callback(fraction, best):
            break
    return Fit(Variational(mean.numpy(), _lower(root.numpy())), best, np.asarray(trace), steps)


def fit_adam(
    kernels: Kernels,
    data: Projected,
    start: Variational,
    *,
    rate: float,
    epochs: int,
    batch_size: int | None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Fit:
    """Adam on (mean, root), keeping the best state met.

    Args:
        kernels: from `compiled`.
        data: N rows.
        start: the state to start from.
        rate: learning rate.
        epochs: passes over the data.
        batch_size: rows a step; None for all.
        rng: shuffles the rows.
        callback: (fraction, bound) about fifty times a fit; True stops.

    Returns:
        The fit; `trace` holds the bound on all data at each report.
    """
    dtype = data.phi.dtype
    tensors = _tensors(data)
    values: list[Any] = [tf.constant(start.mean, dtype), tf.constant(start.root, dtype)]
    values += [tf.zeros_like(x) for _ in range(2) for x in values[:2]]
    t: Any = tf.zeros((), dtype)
    best, keep = elbo(kernels, data, start), start
    trace = [best]
    done = 0
    for rows in _batches(len(data.codes), batch_size, epochs, rng):
        scale = len(data.codes) / rows.shape[2]
        for epoch in rows:
            *values, t, _ = kernels.adam(
                *tensors, *values, epoch, t, tf.constant(rate, dtype), tf.constant(scale, dtype)
            )
        done += len(rows)
        q = Variational(values[0].numpy(), np.tril(values[1].numpy()))
        bound = elbo(kernels, data, q)
        trace.append(bound)
        if bound >= best:
            best, keep = bound, q
        if callback is not None and callback(done / epochs, bound):
            break
    return Fit(Variational(keep.mean, _lower(keep.root)), best, np.asarray(trace), done)


def learn(
    kernels: Kernels,
    X: Array,
    codes: Ints,
    start: Variational,
    hyper: Hyper,
    *,
    rate: float,
    epochs: int,
    batch_size: int | None,
    rng: np.random.Generator,
    train: tuple[bool, bool, bool, bool] = (True, True, True, True),
    callback: Callback | None = None,
) -> tuple[Fit, Hyper]:
    """Adam on q together with a squared exponential's hyperparameters and inducing points.

    Args:
        kernels: from `compiled`.
        X: [N, D] scaled features.
        codes: [N].
        start: q to start from, whitened under `hyper`.
        hyper: where to start.
        rate: learning rate, of logarithms for length scale and variance.
        epochs: passes over the data.
        batch_size: rows a step; None for all.
        rng: shuffles the rows.
        train: which to change: mean, root, (length scale, variance), inducing points.
        callback: (fraction, bound) about fifty times a fit; True stops.

    Returns:
        The fit with the last step's (minibatch) bounds as its trace, and the hyperparameters.
    """
    dtype = X.dtype
    logs = np.log([hyper.length_scale, hyper.variance]).astype(dtype)
    values: list[Any] = [tf.constant(x, dtype) for x in (start.mean, start.root, logs, hyper.inducing)]
    values += [tf.zeros_like(x) for _ in range(2) for x in values[:4]]
    features, labels = tf.constant(X), tf.constant(codes, tf.int32)
    switches = tf.constant(np.asarray(train, dtype=dtype))
    t: Any = tf.zeros((), dtype)
    trace: list[float] = []
    done = 0
    keep = values[:4]
    for rows in _batches(len(codes), batch_size, epochs, rng):
        scale = tf.constant(len(codes) / rows.shape[2], dtype)
        for epoch in rows:
            *values, t, bound = kernels.learn(
                features, labels, *values, epoch, t, tf.constant(rate, dtype), scale, switches
            )
        done += len(rows)
        if not all(np.isfinite(x.numpy()).all() for x in values[:4]):
            break  # diverged: the last finite state stands
        keep = values[:4]
        trace.append(float(bound))
        if callback is not None and callback(done / epochs, trace[-1]):
            break
    mean, root, logs, Z = (x.numpy() for x in keep)
    scale_, variance = np.exp(np.asarray(logs, dtype=np.float64))
    q = Variational(mean, _lower(np.tril(root)))
    value = trace[-1] if trace else -np.inf
    return Fit(q, value, np.asarray(trace), done), Hyper(float(scale_), float(variance), Z)


def fit_type2(
    kernels: Kernels,
    X: Array,
    codes: Ints,
    start: Variational,
    hyper: Hyper,
    *,
    inducing: bool,
    rate: float,
    rounds: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> tuple[Fit, Hyper]:
    """Natural-gradient sweeps for q in turn with Adam on the hyperparameters (type-II likelihood).

    Args:
        kernels: from `compiled`.
        X: [N, D] scaled features.
        codes: [N].
        start: q to start from, whitened under `hyper`.
        hyper: where to start.
        inducing: move the inducing points, too.
        rate: Adam's learning rate.
        rounds: of three sweeps and five Adam steps each.
        max_iter: sweeps of the last fit, hyperparameters fixed.
        tol: of the last fit.
        rng: for `learn`.
        callback: (fraction, bound) after each round and sweep of the last fit; True stops.

    Returns:
        The fit and the hyperparameters of the round with the largest bound.
    """
    q, trace = start, []
    best: tuple[Fit, Hyper] | None = None
    for r in range(rounds + 1):
        last = r == rounds
        kernel = StationaryKernel("squared-exponential", hyper.length_scale, hyper.variance)
        data = Projected(*project(X, make_basis(hyper.inducing, kernel, X.dtype), kernel), codes)
        fit = fit_natural(kernels, data, q, max_iter=max_iter if last else 3, tol=tol)
        trace.append(fit.objective)
        if best is None or fit.objective >= best[0].objective:
            best = fit, hyper
        if callback is not None and callback((r + 1) / (rounds + 1), fit.objective):
            break
        if not last:
            q = fit.posterior
            _, hyper = learn(
                kernels, X, codes, q, hyper, rate=rate, epochs=5, batch_size=_HYPER_ROWS, rng=rng,
                train=(False, False, True, inducing),
            )  # fmt: skip
    assert best is not None
    return best[0]._replace(trace=np.asarray(trace), steps=len(trace)), best[1]


def _batches(n: int, size: int | None, epochs: int, rng: np.random.Generator) -> Iterator[Array]:
    """[epochs a report, steps, B] row numbers, about fifty reports; each epoch covers as many rows as fit."""
    B = n if size is None else min(size, n)
    steps = n // B
    every = max(1, epochs // 50)
    for first in range(0, epochs, every):
        count = min(every, epochs - first)
        if size is None or n <= size:
            yield np.broadcast_to(np.arange(n, dtype=np.int32), (count, 1, n))
        else:
            order = np.stack([rng.permutation(n)[: steps * B] for _ in range(count)])
            yield order.reshape(count, steps, B).astype(np.int32)


def _tensors(data: Projected) -> tuple[Any, Any, Any]:
    return tf.constant(data.phi), tf.constant(data.rest), tf.constant(data.codes, tf.int32)


def _lower(root: Array) -> Array:
    """A lower triangular square root with a positive diagonal of root root', per class."""
    q, r = np.linalg.qr(np.swapaxes(root, 1, 2).astype(np.float64))
    del q
    lower = np.swapaxes(r, 1, 2)
    signs = np.where(np.diagonal(lower, axis1=1, axis2=2) < 0, -1.0, 1.0)
    return np.tril(lower * signs[:, None, :]).astype(root.dtype)


def _precision(root: Array) -> Array:
    inverse = np.linalg.inv(np.asarray(root, dtype=np.float64))
    return np.swapaxes(inverse, 1, 2) @ inverse
