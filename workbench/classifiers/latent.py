"""The latent functions' marginals: what a Bayesian classifier knows about each item."""

from typing import NamedTuple

from workbench.arrays import Array


class Latent(NamedTuple):
    """q(f_c(x)): Gaussian marginals, independent over classes.

    A binary model with one f gives (-f/2, +f/2) and (v/2, v/2), so that the exact variation
    ratio is 1 - Phi(|f| / sqrt v).

    Attributes:
        mean: [N, C].
        variance: [N, C], >= 0.
    """

    mean: Array
    variance: Array
