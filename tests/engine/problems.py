"""Small projected problems for the tests of the closed-form engine."""

import numpy as np

from workbench.engine.kernels import StationaryKernel
from workbench.engine.projection import make_basis, project


def overlapping(n, n_classes, seed=0, spread=0.6, dims=2):
    """Gaussian blobs: X [n, dims], codes [n]."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((n_classes, dims))
    codes = np.arange(n) % n_classes
    return centres[codes] + spread * rng.standard_normal((n, dims)), codes


def projected(X, n_inducing=12, length=1.0, variance=2.0, name="squared-exponential"):
    """phi, rest, kernel, basis with the first rows as inducing points."""
    kernel = StationaryKernel(name, length, variance)
    basis = make_basis(X[:n_inducing], kernel)
    return *project(X, basis, kernel), kernel, basis


def one_hot(codes, n_classes):
    return np.eye(n_classes)[codes]


def differences(function, at, step=1e-5):
    """Central differences of a scalar function, entry by entry."""
    out = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        out[index] = (function(up) - function(down)) / (2 * step)
    return out
