"""Adam (Kingma & Ba 2015) as a function of its state, for use inside compiled loops and outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Array, slices
from workbench.errors import InputError

FIRST_RATE = 0.9
SECOND_RATE = 0.999
EPSILON = 1e-7


class AdamState(NamedTuple):
    """Moments of the gradients of a tuple of variables.

    Attributes:
        first: moving means of the gradients.
        second: moving means of their squares.
        steps: how many were taken, float32.
    """

    first: tuple[Any, ...]
    second: tuple[Any, ...]
    steps: Any

    @classmethod
    def start(cls, variables: Sequence[Array]) -> AdamState:
        """Before the first step."""
        zeros = tuple(np.zeros_like(v) for v in variables)
        return cls(zeros, zeros, np.float32(0.0))

    @classmethod
    def spec(cls, variables: Sequence[tf.TensorSpec]) -> AdamState:
        """The signature of a state for variables with these signatures."""
        return cls(tuple(variables), tuple(variables), tf.TensorSpec((), tf.float32))


def adam_step(
    variables: Sequence[Any], gradients: Sequence[Any], state: AdamState, rates: Sequence[Any]
) -> tuple[tuple[Any, ...], AdamState]:
    """One step downhill.

    Args:
        variables: tensors.
        gradients: of the loss; pass their negatives to climb.
        state: before.
        rates: learning rate of each variable.

    Returns:
        (variables, state) after.
    """
    t = state.steps + 1.0
    correction = tf.sqrt(1.0 - SECOND_RATE**t) / (1.0 - FIRST_RATE**t)
    first = tuple(
        FIRST_RATE * m + (1.0 - FIRST_RATE) * g for m, g in zip(state.first, gradients, strict=True)
    )
    second = tuple(
        SECOND_RATE * v + (1.0 - SECOND_RATE) * g * g for v, g in zip(state.second, gradients, strict=True)
    )
    new_variables = tuple(
        w - tf.cast(rate * correction, w.dtype) * m / (tf.sqrt(v) + EPSILON)
        for w, m, v, rate in zip(variables, first, second, rates, strict=True)
    )
    return new_variables, AdamState(first, second, t)


def in_shares(
    take: Callable[[Any, AdamState, slice], Any], variables: Sequence[Array], n_steps: int, share: int
) -> Iterator[tuple[Any, float, int]]:
    """Compiled steps in shares, so that people see progress and can stop.

    Args:
        take: (variables, state, which steps) -> variables, state and the sum of the losses.
        variables: where to start.
        n_steps: in all.
        share: steps of a share.

    Returns:
        Of each share the variables after it, its mean loss and the steps done.

    Raises:
        InputError: training diverged.
    """
    values: Any = tuple(tf.convert_to_tensor(v) for v in variables)
    state = AdamState.start([v.numpy() for v in values])
    for part in slices(n_steps, share):
        try:
            values, state, total = take(values, state, part)
            loss = float(total) / (part.stop - part.start)
        except tf.errors.InvalidArgumentError:  # eigenvalues of a matrix that is not finite
            loss = np.nan
        if not np.isfinite(loss):
            raise InputError("Training diverged (the loss is not a number); lower the learning rates.")
        yield values, loss, part.stop
