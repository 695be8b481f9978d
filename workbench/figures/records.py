"""Records that studies measure and figures draw; no Plotly here."""

from dataclasses import dataclass
from typing import NamedTuple

from workbench.arrays import Floats
from workbench.metrics import ReliabilityTable


class Scores(NamedTuple):
    """Three measures on the test points.

    Attributes:
        error: share of wrong predictions.
        nll: mean negative log-likelihood, nats.
        ece: expected calibration error, 15 bins.
    """

    error: float
    nll: float
    ece: float


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """Calibration of some probabilities.

    Attributes:
        title: whose.
        n: test points.
        scores: error, NLL, ECE.
        table: accuracy against confidence, 10 bins.
    """

    title: str
    n: int
    scores: Scores
    table: ReliabilityTable


@dataclass(frozen=True, eq=False)
class SweepCurve:
    """One likelihood over the noise.

    Attributes:
        name: short, for code.
        title: for people.
        noise: [K] sigma^2.
        error: [S, K], a row a seed; so the others.
        nll: nats.
        ece: 15 bins.
    """

    name: str
    title: str
    noise: Floats
    error: Floats
    nll: Floats
    ece: Floats

    @property
    def n_seeds(self) -> int:
        """S."""
        return len(self.error)


@dataclass(frozen=True, eq=False)
class TradeCurve:
    """A kind of model over its number of inducing points.

    Attributes:
        name: for the legend.
        points: [K] inducing points.
        error: [K].
        nll: [K] nats.
        ece: [K] of 15 bins.
        seconds: [K] of training.
        n: test items behind each value.
    """

    name: str
    points: Floats
    error: Floats
    nll: Floats
    ece: Floats
    seconds: Floats
    n: int
