"""One natural-gradient step for whitened sparse GPs, compiled: data to sums, sums to the next q(v).

Open shapes: one trace per likelihood object and dtype, whatever the number of items or inducing points.
The equations are in the docstring of `workbench.engine.natural_gradient`, whose drivers call this.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as _tensorflow

from workbench.engine.gaussian import State
from workbench.engine.likelihoods import SiteLikelihood
from workbench.engine.whitened import grams, inverse_root, kl, variances

# its type stubs know neither AutoGraph's loops nor NumPy arrays as arguments
tf: Any = _tensorflow


class Block(NamedTuple):
    """Some rows of the data, projected.

    Attributes:
        phi: [n, P] whitened features.
        residual: [n] prior variance the inducing points do not explain.
        targets: [n, C] what the likelihood wants: one-hot, or signs -1 and +1.
        offset: [n, C] a prior mean at every row, beside m0.
    """

    phi: Any
    residual: Any
    targets: Any
    offset: Any

    @classmethod
    def of(cls, phi: Any, residual: Any, targets: Any, offset: Any = None) -> Block:
        """Rows in one precision; without an offset it is 0.

        Args:
            phi: [n, P].
            residual: [n].
            targets: [n, C].
            offset: [n, C], or None.
        """
        parts = (targets, np.zeros_like(targets) if offset is None else offset)
        return cls(phi, residual, *(part.astype(phi.dtype, copy=False) for part in parts))


class MeanPrior(NamedTuple):
    """The prior of the prior mean m0.

    Attributes:
        mean: m0's centre, or its fixed value.
        variance: of m0 around it; None keeps m0 fixed.
    """

    mean: float = 0.0
    variance: float | None = None

    def tensors(self, dtype: Any) -> tuple[Any, Any]:
        """True if m0 is learned, and its centre and precision [2]."""
        precision = 0.0 if self.variance is None else 1.0 / self.variance
        return tf.constant(self.variance is not None), tf.constant([self.mean, precision], dtype)


ZERO_MEAN = MeanPrior()


class Sums(NamedTuple):
    """Sums over items that a step needs.

    Attributes:
        gram: [C, P, P] Phi' diag(theta_c) Phi.
        linear: [C, P] Phi' (g + theta (F - offset)).
        cross: [C, P] Phi' theta.
        totals: [2, C] sums of g + theta (F - offset) and of theta.
        value: the data's part of the objective.
    """

    gram: Any
    linear: Any
    cross: Any
    totals: Any
    value: Any


class Plan(NamedTuple):
    """Minibatch steps.

    Attributes:
        rows: [T, S] rows of each step.
        classes: [T, K] classes it updates.
        scale: N / S.
    """

    rows: Any
    classes: Any
    scale: Any


class Drift(NamedTuple):
    """Moving moments of the natural gradient, for rates that adapt themselves (Ranganath et al. 2013).

    Attributes:
        linear: [C, P] moving means.
        precision: [C, P, P] moving means.
        averaging: [3, C] steps taken, moving squared length, window.
    """

    linear: Any
    precision: Any
    averaging: Any


KEPT = 12
"""Compiled functions of a kind that are kept: a trace takes megabytes, and some likelihoods need one a C."""

# ---------------------------------------------------------------------------------- compiled parts


def moments(block: Block, state: State) -> tuple[Any, Any]:
    """Mean and variance [n, C] of the latents of a block."""
    mean = tf.matmul(block.phi, state.mean) + state.prior_mean + block.offset
    return mean, block.residual[:, None] + variances(block.phi, state.root)


def _sums(likelihood: SiteLikelihood, block: Block, state: State, first: Any, share: Any = 1.0) -> Sums:
    f, v = moments(block, state)
    g, theta, value = likelihood.sites(f, v, block.targets, first, share)
    r = g + theta * (f - block.offset)
    return Sums(
        grams(block.phi, theta),
        tf.matmul(r, block.phi, transpose_a=True),
        tf.matmul(theta, block.phi, transpose_a=True),
        tf.stack([tf.reduce_sum(r, 0), tf.reduce_sum(theta, 0)]),
        tf.reduce_sum(value),
    )


def _solve(precision: Any, linear: Any, cross: Any, totals: Any, m0: Any, prior: Any) -> tuple[Any, Any, Any]:
    """Mean [P, C], root and m0 of natural parameters; NaN where a precision is not positive."""
    learn, (centre, tightness) = prior[0], tf.unstack(prior[1])
    root = inverse_root(precision)
    a = tf.linalg.matvec(root, linear)
    b = tf.linalg.matvec(root, cross)
    # the best m0 with v_c maximised out: a Schur complement
    best = (totals[0] - tf.reduce_sum(b * a, 1) + centre * tightness) / (
        totals[1] - tf.reduce_sum(b * b, 1) + tightness
    )
    m0 = tf.where(learn, best, m0)
    return tf.transpose(tf.linalg.matvec(root, a - b * m0[:, None], transpose_a=True)), root, m0


def _penalty(state: State, prior: Any) -> Any:
    """KL(q || p) summed over classes, minus log N(m0) up to its constant where m0 is learned."""
    pull = 0.5 * prior[1][1] * tf.reduce_sum(tf.square(state.prior_mean - prior[1][0]))
    return kl(state.mean, state.root) + tf.where(prior[0], pull, tf.zeros_like(pull))


@cache
def _traced_penalty(dtype: Any) -> Any:
    of = _Specs(dtype)
    return Traced(_penalty, of.state, of.prior)


def _identity(gram: Any) -> Any:
    return tf.eye(tf.shape(gram)[1], dtype=gram.dtype)


class _Specs:
    """Signatures with open shapes, so that no number of rows, points or classes is traced again."""

    def __init__(self, dtype: Any) -> None:
        matrix, cube = self._of(dtype, None, None), self._of(dtype, None, None, None)
        vector, pair, self.number = self._of(dtype, None), self._of(dtype, 2), self._of(dtype)
        self.vector = vector
        self.block = Block(matrix, vector, matrix, matrix)
        self.state = State(matrix, cube, vector, cube, matrix, matrix, self._of(dtype, 2, None))
        self.sums = Sums(cube, matrix, matrix, self._of(dtype, 2, None), self.number)
        integers = tf.TensorSpec((None, None), tf.int32)
        self.plan = Plan(integers, integers, self.number)
        self.prior = (tf.TensorSpec((), tf.bool), pair)  # learn m0?, its mean and precision
        self.drift = Drift(matrix, cube, self._of(dtype, 3, None))

    @staticmethod
    def _of(dtype: Any, *shape: int | None) -> Any:
        return tf.TensorSpec(shape, dtype)


class Traced:
    """A function that is traced once, at its first call, and called without the matching of signatures.

    TensorFlow counts the traces of a method over all objects that have it: with five likelihoods in a process
    it warned of functions that are traced again and again.

    Args:
        body: takes and gives tuples of tensors.
        signature: of its arguments.

    Attributes:
        function: the `tf.function`.
    """

    def __init__(self, body: Any, *signature: Any) -> None:
        self.function = tf.function(body, input_signature=list(signature))

    @cached_property
    def concrete(self) -> Any:
        """The traced function itself, of tensors: a tenth of a sweep faster."""
        return self.function.get_concrete_function()

    def __call__(self, *arguments: Any) -> Any:
        """The body's result for tuples of arrays or tensors."""
        return self.concrete(*tf.nest.map_structure(tf.convert_to_tensor, arguments))


class Compiled:
    """The compiled functions of one likelihood and dtype; each takes and gives the tuples above.

    Args:
        likelihood: gives the sites.
        dtype: of every number.

    Attributes:
        sums: (block, state) -> Sums.
        sites: (block, state) -> Sites.
        advance: (state, sums, rho, prior) -> state and penalty: a step towards sums over all data.
        penalty: (state, prior) -> KL of a state.
        scheduled: (block, state, plan, rates, prior) -> state after minibatch steps of these rates.
        adaptive: (block, state, plan, drift, warm_up, prior) -> state and drift.
    """

    def __init__(self, likelihood: SiteLikelihood, dtype: Any) -> None:
        self.likelihood = likelihood
        self.dtype = dtype
        of = _Specs(dtype)

        self.sums = Traced(self._sums_by_chunks, of.block, of.state)
        self.sites = Traced(self._sites, of.block, of.state)
        self.advance = Traced(self._advance, of.state, of.sums, of.number, of.prior)
        self.penalty = _traced_penalty(dtype)
        self.scheduled = Traced(self._scheduled, of.block, of.state, of.plan, of.vector, of.prior)
        self.adaptive = Traced(self._adaptive, of.block, of.state, of.plan, of.drift, of.number, of.prior)

    def _sums_by_chunks(self, block: Any, state: Any) -> Any:
        size = self.likelihood.chunk_rows(tf.shape(block.targets)[1])
        if size is None:
            return _sums(self.likelihood, block, state, 0)
        n = tf.shape(block.phi)[0]
        total = _sums(self.likelihood, Block(*(part[:size] for part in block)), state, 0)
        for first in tf.range(size, n, size):
            rows = Block(*(part[first : first + size] for part in block))
            part = _sums(self.likelihood, rows, state, first)
            total = Sums(*(a + b for a, b in zip(total, part, strict=True)))
        return total

    def _sites(self, block: Any, state: Any) -> Any:
        return self.likelihood.sites(*moments(block, state), block.targets)

    def _advance(self, state: Any, target: Any, rho: Any, prior: Any) -> Any:
        precision = state.precision + rho * (_identity(target.gram) + target.gram - state.precision)
        linear = state.linear + rho * (target.linear - state.linear)
        cross = state.cross + rho * (target.cross - state.cross)
        totals = state.totals + rho * (target.totals - state.totals)
        mean, root, m0 = _solve(precision, linear, cross, totals, state.prior_mean, prior)
        if self.likelihood.shift_invariant:
            mean -= tf.reduce_mean(mean, axis=1, keepdims=True)
            linear = tf.linalg.matvec(precision, tf.transpose(mean)) + cross * m0[:, None]
        new_state = State(mean, root, m0, precision, linear, cross, totals)
        return new_state, _penalty(new_state, prior)

    def _naturals(self, state: Any, classes: Any) -> Any:
        """Precision, linear, cross and totals of the classes in `classes`."""
        return (*(tf.gather(a, classes) for a in state[3:6]), tf.gather(state.totals, classes, axis=1))

    def _targets(self, block: Any, state: Any, rows: Any, classes: Any, scale: Any) -> Any:
        """Estimate by a minibatch of the natural parameters of the classes in `classes`."""
        of_all, of_classes = block[:2], block[2:]
        few = Block(
            *(tf.gather(part, rows) for part in of_all),
            *(tf.gather(tf.gather(part, rows), classes, axis=1) for part in of_classes),
        )
        part = state._replace(
            mean=tf.gather(state.mean, classes, axis=1),
            root=tf.gather(state.root, classes),
            prior_mean=tf.gather(state.prior_mean, classes),
        )
        share = tf.cast(tf.shape(state.root)[0], self.dtype) / tf.cast(tf.shape(classes)[0], self.dtype)
        sums = _sums(self.likelihood, few, part, 0, share)
        gram = _identity(sums.gram) + scale * sums.gram
        return gram, scale * sums.linear, scale * sums.cross, scale * sums.totals

    def _scheduled(self, block: Any, state: Any, plan: Any, rates: Any, prior: Any) -> Any:
        for t in tf.range(tf.shape(plan.rows)[0]):
            classes, rho = plan.classes[t], rates[t]
            target = self._targets(block, state, plan.rows[t], classes, plan.scale)
            old = self._naturals(state, classes)
            state = _put(state, classes, [a + rho * (b - a) for a, b in zip(old, target, strict=True)], prior)
        return state

    def _adaptive(self, block: Any, state: Any, plan: Any, drift: Any, warm_up: Any, prior: Any) -> Any:
        for t in tf.range(tf.shape(plan.rows)[0]):
            classes = plan.classes[t]
            target = self._targets(block, state, plan.rows[t], classes, plan.scale)
            old = self._naturals(state, classes)
            drift, rho = _drifted(drift, classes, old, target, warm_up)
            sizes = rho[:, None, None], rho[:, None], rho[:, None], rho
            new = [a + size * (b - a) for size, a, b in zip(sizes, old, target, strict=True)]
            state = _put(state, classes, new, prior)
        return state, drift


def _put(state: Any, classes: Any, natural: Any, prior: Any) -> Any:
    """The state with the natural parameters of the classes in `classes` replaced."""
    precision, linear, cross, totals = natural
    solved = _solve(precision, linear, cross, totals, tf.gather(state.prior_mean, classes), prior)
    at = classes[:, None]

    def columns(old, new):  # type: ignore[no-untyped-def]
        return tf.transpose(tf.tensor_scatter_nd_update(tf.transpose(old), at, tf.transpose(new)))

    fresh = State(*solved, *natural)
    by_column = {"mean", "totals"}
    parts = {
        name: columns(old, new) if name in by_column else tf.tensor_scatter_nd_update(old, at, new)
        for name, old, new in zip(State._fields, state, fresh, strict=True)
    }
    return State(**parts)


def _drifted(drift: Any, classes: Any, old: Any, target: Any, warm_up: Any) -> Any:
    """The moving moments after a step of the classes in `classes`, and the rates [K] that they give."""
    # natural gradient in (linear, -precision / 2), its moving mean and squared length
    slope, curvature = target[1] - old[1], -0.5 * (target[0] - old[0])
    steps, power, window = tf.unstack(tf.gather(drift.averaging, classes, axis=1))
    weight = 1.0 / window
    d1, d2 = tf.gather(drift.linear, classes), tf.gather(drift.precision, classes)
    d1 += weight[:, None] * (slope - d1)
    d2 += weight[:, None, None] * (curvature - d2)
    power += weight * (tf.reduce_sum(slope**2, 1) + tf.reduce_sum(curvature**2, [1, 2]) - power)
    rho = (tf.reduce_sum(d1**2, 1) + tf.reduce_sum(d2**2, [1, 2])) / power
    steps += 1.0
    warm = steps > warm_up  # until then the moving means are plain means and nothing moves
    window = tf.where(warm, window * (1.0 - rho) + 1.0, steps + 1.0)
    rho = tf.where(warm, rho, tf.zeros_like(rho))
    at = classes[:, None]
    averaging = tf.tensor_scatter_nd_update(
        tf.transpose(drift.averaging), at, tf.stack([steps, power, window], 1)
    )
    new_drift = Drift(
        tf.tensor_scatter_nd_update(drift.linear, at, d1),
        tf.tensor_scatter_nd_update(drift.precision, at, d2),
        tf.transpose(averaging),
    )
    return new_drift, rho


def compiled(likelihood: SiteLikelihood, dtype_name: str) -> Compiled:
    """Compile the loops for a likelihood; those used last are kept, so that each is traced once.

    Args:
        likelihood: gives the sites.
        dtype_name: "float64" or "float32".
    """
    return _compiled(likelihood.for_any_classes(), dtype_name)


@lru_cache(maxsize=KEPT)
def _compiled(likelihood: SiteLikelihood, dtype_name: str) -> Compiled:
    return Compiled(likelihood, tf.as_dtype(dtype_name))
