"""The attacks: FGSM, PGD, random signs, by name and by strength.

Strengths are in units of the pixels' range [0, 1]: 0.1 moves no pixel by more than a tenth of the
way from black to white. Results lie within the strength of the image and within [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.arrays import Array, Floats, Ints
from workbench.attacks import ATTACKS, LOSSES
from workbench.attacks.inputs import check_images, check_strengths, loss_of
from workbench.attacks.targets import moments, target_of
from workbench.classifiers.protocols import is_fitted, supports_latent
from workbench.errors import InputError

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
    for rows in _chunks(len(X), target.rows):
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

    Yields:
        [N, D] for each strength.
    """
    direction = np.sign(slopes(model, X, codes, loss)[1]).astype(np.int8)
    for strength in strengths:
        yield _inside(X + strength * direction, X, strength)


def noise(
    model: Any, X: Floats, codes: Ints, strengths: Floats, *, loss: str, rng: np.random.Generator, steps: int
) -> Iterator[Floats]:
    """Random signs instead of the gradient's; the same ones at all strengths. Arguments as `fgsm`."""
    direction = rng.choice(np.array([-1, 1], np.int8), size=X.shape)
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
        for rows in _chunks(len(X), target.rows):
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


def _chunks(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, start + size)
