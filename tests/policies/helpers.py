"""Beliefs without models."""

from typing import Any

import numpy as np

from workbench.classifiers.latent import Latent
from workbench.policies import Belief


def belief(
    n: int = 300,
    C: int = 4,
    D: int = 3,
    n_labelled: int = 10,
    seed: int = 0,
    order: np.ndarray | None = None,
    spread: float = 1.0,
    project: bool = True,
    **changes: Any,
) -> Belief:
    """A pool of n items with random features and moments; `order` permutes it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    mean, variance = rng.normal(size=(n, C)) * spread, rng.uniform(0.1, 2.0, size=(n, C))
    centres = rng.normal(size=(16, D))
    labels = np.arange(n_labelled) % C
    order = np.arange(n) if order is None else order
    place = np.argsort(order)
    X, mean, variance = X[order], mean[order], variance[order]
    p = np.exp(1.3 * mean)
    p /= p.sum(axis=1, keepdims=True)
    phi = np.exp(-0.5 * ((X[:, None, :] - centres) ** 2).sum(axis=2))
    given: dict[str, Any] = {
        "features": X,
        "labelled": place[:n_labelled],
        "labels": labels,
        "n_classes": C,
        "latent": Latent(mean, variance),
        "probabilities": p,
        "inducing_projection": (lambda rows: phi[rows]) if project else None,
        "temperature": 1.3,
    }
    return Belief(**(given | changes))


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)
