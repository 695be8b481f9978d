"""Every random choice of a session has its own stream, so that none depends on another."""

import numpy as np
from numpy.random import Generator

INITIAL = 1
QUERY = 2
FIT = 3
EVALUATION = 4
COLD_START = 5
MEASURE = 6
OVERLAP = 7
UNIFORM = 8
SECOND = 9
DRAWN = 10
CHECKS = 11


def generator(seed: int, number: int, stream: int) -> Generator:
    """The generator of one stream in one round.

    Args:
        seed: of the run or project.
        number: of the round (or of the question).
        stream: one of this module's constants.
    """
    return np.random.default_rng([seed, number, stream])
