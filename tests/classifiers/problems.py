"""Data that several families are tried on."""

import numpy as np
from sklearn.model_selection import train_test_split


def split(load, seed=0):
    """X, X of the test set, y, y of the test set: 30 % of one of scikit-learn's sets is kept out."""
    X, y = load(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)


def three_gaussians(n, seed, noise=0.5):
    """X [n, 2], y [n] of three classes that overlap."""
    rng = np.random.default_rng(seed)
    centres = np.array([[1.0, 0.0], [0.0, 1.0], [(1 + 3**0.5) / 2] * 2]) / 2**0.5
    y = rng.integers(0, 3, n)
    return centres[y] + noise**0.5 * rng.normal(size=(n, 2)), y
