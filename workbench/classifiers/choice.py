"""Choosing a large-margin model's geometry by what it predicts of labels it did not see (docs/math.md, 11).

One look goes from the present candidate along one factor at a time (columns, scale, linear part,
intercept, basis) and moves only where the leave-one-out log-likelihood is clearly better.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers.calibration import LeftOut, clearly_less
from workbench.classifiers.geometry import Geometry
from workbench.engine.kernels import DescribedKernel, OffsetKernel, StationaryKernel
from workbench.errors import InputError

EVERY = 10  # labels between two looks; a tenth of the labels from 100 on
A_CLASS = 2  # labels a class before the first look
ROWS = 1000  # a look is taken at no more labels than this
IN_TURNS = 50  # labels from which on a look tries one factor, and looks come half as often again
LABELLED = 63  # at most so many labelled items join the basis: from 128 points on a round costs far more
STRETCH_JUDGED = 100  # up to so many labels a stretch is judged once more, by labels that did not make it
STRETCH_FOLDS = 10
ONE_FACTOR = 2.0 / 3.0  # times as many labels lie between looks at one factor
_STANDARD_ERRORS = 0.5  # whole runs were worse at 1, although single looks were better
_OFFSET = 10.0
_WIDER = 5.0 / 3.0  # 0.6 to 1.0 of the median distance
_SAID = {
    "numbers": "features as they are",
    "one-hot": "columns as categories",
    "normal-scores": "columns by rank",
}


@dataclass(frozen=True)
class Candidate:
    """One geometry a model can have.

    Attributes:
        representation: "numbers", "one-hot" or "normal-scores".
        stretch: features are stretched by this power of their shrunk F statistic.
        length: times the model's own length scale.
        linear: half of the kernel is linear.
        intercept: each latent has an unknown constant.
        labelled: the labelled items are inducing points beside the pool's centres.
    """

    representation: str = "numbers"
    stretch: float = 0.0
    length: float = 1.0
    linear: bool = False
    intercept: bool = False
    labelled: bool = False

    def __str__(self) -> str:
        parts = [_SAID[self.representation]]
        if self.stretch:
            parts.append(
                "stretched by the labels" if self.stretch > 0.25 else "stretched a little by the labels"
            )
        if self.length != 1.0:
            parts.append("smoother")
        if self.linear:
            parts.append("half linear")
        if self.intercept:
            parts.append("+ intercept")
        if self.labelled:
            parts.append("+ labelled items")
        return ", ".join(parts)

    def kernel(
        self, name: str, length: float, variance: float, geometry: Geometry, scaled: Floats, codes: Ints
    ) -> DescribedKernel:
        """Its covariance function on the geometry's scaled features.

        Args:
            name: of the stationary kernel.
            length: the model's own length scale.
            variance: of the kernel, without the intercept.
            geometry: of the pool in this candidate's representation.
            scaled: [N, D] labelled rows.
            codes: [N] their classes.
        """
        lengths: float | Floats = length * self.length
        if self.stretch:
            statistics = shrunk_f_statistics(scaled, codes)
            lengths = lengths_by_f(length * self.length, statistics, geometry.inducing, self.stretch)
        slope = 0.0
        if self.linear:
            squares = ((geometry.inducing / lengths) ** 2).sum(axis=1)
            slope = 0.5 * variance / max(float(squares.mean()), 1e-12)
        kernel = StationaryKernel(name, lengths, variance * (0.5 if self.linear else 1.0), slope)
        return OffsetKernel(kernel, _OFFSET) if self.intercept else kernel


@dataclass(frozen=True)
class Choice:
    """Result of one search.

    Attributes:
        labels: how many there were.
        candidate: the one in use from here on.
        loss: minus its mean leave-one-out log-likelihood; of a stretch that few labels made, by folds.
        plain_loss: that of features as they are and nothing else; None beside one by folds.
        failed: candidates that could not be fitted, and why.
        n_labelled_points: labelled items among its inducing points, the last ones.
    """

    labels: int
    candidate: Candidate
    loss: float
    plain_loss: float | None
    failed: dict[str, str] = field(default_factory=dict)
    n_labelled_points: int = 0

    @property
    def own(self) -> bool:
        """True if it is of use to nobody but the labels it was chosen by."""
        return self.candidate.stretch > 0.0

    def __str__(self) -> str:
        text = f"{self.candidate}; loss on labels it had not seen {self.loss:.2f}"
        if self.plain_loss is not None and self.candidate != Candidate():
            text += f", with features as they are {self.plain_loss:.2f}"
        return text + "".join(f"; not possible: {name} ({why})" for name, why in self.failed.items())


def due(n: int, n_classes: int, last: int, in_turns: float = 1.0) -> bool:
    """True if it is time for a search.

    Args:
        n: labels.
        n_classes: declared.
        last: labels at the last look, 0 for none.
        in_turns: from `IN_TURNS` on, times as many labels lie between two looks.
    """
    every = max(EVERY, last // 10) * (in_turns if last >= IN_TURNS else 1.0)
    return n >= A_CLASS * n_classes and n >= last + int(every)


Step: TypeAlias = Callable[[Candidate], Iterator[Candidate]]
"""One factor: what to try beside a candidate."""


def steps(geometry: Geometry, alone: bool = True) -> list[Step]:
    """The factors that mean something for a pool: what to try beside the best so far.

    Args:
        geometry: of the pool.
        alone: whether one question chooses for itself; what is chosen for several is not stretched by the
            labels of one.
    """
    ranges: list[list[dict[str, object]]] = []
    # one unit for all features: to rewrite or to stretch some of them makes no sense, and where questions are
    # hard ones the labels ask for a smoother function than the pool does (digits)
    if not geometry.common_scale:
        ranges.append([{"representation": name} for name in sorted(geometry.names)])
        scales = [(0.0, 1.0), (0.25, 1.0), (0.5, 1.0), (0.0, _WIDER)]
        scales = [(stretch, length) for stretch, length in scales if alone or not stretch]
        ranges.append([{"stretch": stretch, "length": length} for stretch, length in scales])
    ranges += [[{name: False}, {name: True}] for name in ("linear", "intercept", "labelled")]

    def others(values: list[dict[str, object]]) -> Step:
        def tried(best: Candidate) -> Iterator[Candidate]:
            for value in values:
                candidate = replace(best, **value)  # type: ignore[arg-type]
                if candidate != best:
                    yield candidate

        return tried

    return [others(values) for values in ranges if len(values) > 1]


def turn(factors: list[Step], labels: int, looks: int) -> list[Step]:
    """The factors of this look: all in the first and while labels are few, later one after the other.

    So no single round waits for all of them, and a fit that has one look alone has looked at each.

    Args:
        factors: `steps` of the pool.
        labels: how many there are.
        looks: taken before.
    """
    at_once = looks == 0 or labels < IN_TURNS or len(factors) < 2
    return factors if at_once else [factors[looks % len(factors)]]


def clearly_better(a: Floats, b: Floats) -> bool:
    """True if losses a are so much below losses b that a geometry is moved for it."""
    return clearly_less(a, b, _STANDARD_ERRORS)


def look(
    present: Candidate,
    factors: Sequence[Step],
    judge: Callable[[Candidate], LeftOut],
    labels: int,
) -> Choice:
    """Compare candidates and choose.

    Args:
        present: the one in use.
        factors: `steps` of the pool.
        judge: fits a candidate and says how well it predicts the labels, all on the same rows.
        labels: how many there are.

    Returns:
        The choice; the present candidate where nothing is clearly better.

    Raises:
        InputError: not even plain numbers could be fitted.
    """
    plain = Candidate()
    cache: dict[Candidate, Floats] = {}
    failed: dict[str, str] = {}

    def loss(candidate: Candidate) -> Floats | None:
        if candidate not in cache:
            try:
                losses = -judge(candidate).log_likelihood
            except (InputError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
                failed[str(candidate)] = str(error) or type(error).__name__
                return None
            if not np.isfinite(losses).all():
                failed[str(candidate)] = "its likelihood is not finite"
                return None
            cache[candidate] = losses
        return cache[candidate]

    best, best_loss = present, loss(present)  # the first: the fit before is a start for it
    base = loss(plain)
    if best_loss is None:
        best, best_loss = plain, base
    if best_loss is None or base is None:
        raise InputError(f"The model cannot be fitted to these labels: {next(iter(failed.values()))}")

    def try_out(candidate: Candidate) -> None:
        nonlocal best, best_loss
        losses = loss(candidate)
        assert best_loss is not None
        if losses is not None and clearly_better(losses, best_loss):
            best, best_loss = candidate, losses

    try_out(plain)
    for step in factors:
        for candidate in list(step(best)):
            try_out(candidate)
    return Choice(labels, best, float(best_loss.mean()), float(base.mean()), failed)


def to_text(choices: Sequence[Choice]) -> str:
    """Choices as one JSON text; `from_text` is the way back."""
    return json.dumps([asdict(choice) for choice in choices], sort_keys=True)


def from_text(text: str) -> tuple[Choice, ...]:
    """The choices that `to_text` wrote."""
    choices = json.loads(text)
    return tuple(Choice(**(choice | {"candidate": Candidate(**choice["candidate"])})) for choice in choices)


PSEUDO_ROWS = 5.0  # of no effect: they pull F to 1 while there are few labels


def f_statistics(scaled: Floats, codes: Ints) -> Floats:
    """[D] the F statistic of each feature: variance between classes over variance within.

    Args:
        scaled: [N, D] features.
        codes: [N] classes; at least two occur.
    """
    between, within, n_groups = _sums_of_squares(scaled, codes)
    spare = max(len(codes) - n_groups, 1)
    # one member a class leaves no variance within: a floor keeps the statistic finite
    floor = 1e-3 * (between + within) / spare + 1e-300
    return (between / (n_groups - 1)) / (within / spare + floor)


def shrunk_f_statistics(scaled: Floats, codes: Ints) -> Floats:
    """[D] F statistics drawn to 1 by five pseudo-rows of no effect (docs/math.md, 11).

    Args:
        scaled: [N, D] features.
        codes: [N] classes; at least two occur.
    """
    between, within, n_groups = _sums_of_squares(scaled, codes)
    no_effect = PSEUDO_ROWS * (between + within) / (len(codes) - 1)
    above = (between + no_effect) / (n_groups - 1 + PSEUDO_ROWS)
    below = (within + no_effect) / (len(codes) - n_groups + PSEUDO_ROWS)
    # a column that does not vary among the labels says nothing
    return np.divide(above, below, out=np.ones_like(above), where=below > 0)


def _sums_of_squares(scaled: Floats, codes: Ints) -> tuple[Floats, Floats, int]:
    """[D] between and [D] within the classes that occur, and how many those are."""
    groups = np.unique(codes)
    overall = scaled.mean(axis=0)
    between, within = np.zeros(scaled.shape[1]), np.zeros(scaled.shape[1])
    for code in groups:
        rows = scaled[codes == code]
        between += len(rows) * (rows.mean(axis=0) - overall) ** 2
        within += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    return between, within, len(groups)


def lengths_by_f(length: float, F: Floats, centres: Floats, power: float = 0.25) -> Floats:
    """[D] length scales that stretch feature d by F_d^power and keep distances `length` on the whole.

    Args:
        length: length scale without stretching.
        F: [D] statistics.
        centres: [P, D] of the pool, whose median distance is kept.
        power: of the statistic.
    """
    stretch = np.maximum(F, 1e-4 * max(float(F.max()), 1e-300)) ** power
    return length * (_median_gap(centres * stretch) / _median_gap(centres)) / stretch


def _median_gap(points: Floats) -> float:
    from scipy.spatial.distance import pdist

    gaps = pdist(points)
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if gaps.size else 1.0
