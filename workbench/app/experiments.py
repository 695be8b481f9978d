"""The Calibration page's experiments: like lessons, but started by a button, and in no class hour."""

from __future__ import annotations

from typing import Any

from workbench.app.jobs import Job
from workbench.app.lessons import Control, Lesson, Picture, Values, find

ROWS = 600
"""Of a pool, for the trade-offs."""
POOLS = {"digits": "Digits", "wine": "Wine", "breast-cancer": "Breast cancer", "three-gaussians": "Gaussians"}
_SPLIT = Control("seed", "Split", {0: "1", 1: "2", 2: "3"}, 0, slider=False)


def _gibbs(values: Values, job: Job) -> Any:
    from workbench.studies.calibration import against_gibbs

    made: list[Any] = []

    def watch(fraction: float, title: str) -> None:
        job.report(fraction, title, partial=tuple(made) or None)

    for one in against_gibbs(values["samples"], values["seed"], progress=watch):
        made.append(one)
        job.partial = tuple(made)
    return tuple(made)


def _draw_gibbs(made: Any, _values: Values) -> tuple[list[Picture], str]:
    from workbench.figures.teaching import agreement

    exact, *others = made
    told = [f"{exact.title}: error {exact.error:.1%} on {len(exact.mean)} test items"]
    told += [
        f"{one.title}: error {one.error:.1%}, mean distance of p {one.distance(exact):.3f}" for one in others
    ]
    if not others:
        return [], told[0]
    alt = "Probabilities, means and variances of each inference against those of Gibbs sampling"
    fig = agreement({one.title: one.beside(exact) for one in others})
    return [Picture(fig, alt)], " · ".join(told)


def _trade(values: Values, job: Job) -> Any:
    from workbench.studies.calibration import trade_offs

    curves: tuple[Any, ...] = ()

    def watch(fraction: float, message: str) -> None:
        job.report(fraction, message, partial=curves or None)

    for curves in trade_offs(values["pool"], rows=ROWS, seed=values["seed"], progress=watch):
        job.partial = curves
    return curves


def _draw_trade(curves: Any, values: Values) -> tuple[list[Picture], str]:
    from workbench.figures.teaching import trade_offs

    fig = trade_offs(curves)
    told = " · ".join(
        f"{c.name}, {c.points[-1]:.0f} points: error {c.error[-1]:.1%}, NLL {c.nll[-1]:.2f}, "
        f"ECE {c.ece[-1]:.3f}, {c.seconds[-1]:.1f} s"
        for c in curves
    )
    told += f". {POOLS[values['pool']]}, at most {ROWS} items."
    return [Picture(fig, "Error, likelihood, calibration error and time against inducing points")], told


GIBBS = Lesson(
    "gibbs",
    "Augmented and plain variational inference against Gibbs sampling",
    "What does a quick approximation cost, when exact samples can be had?",
    (
        "On the dotted line a value is as Gibbs sampling gives it; a dot is a test item and a class.",
        "In p, plain inference and the joint augmentation lie on it. All three find variances too small.",
        "The joint bound shifts every mean alike, and p hardly feels it.",
        "The mean-field augmentation draws all p towards one third, and is right as often.",
    ),
    (
        Control("samples", "Gibbs samples", {400: "400", 2000: "2,000"}, 2000, slider=False),
        _SPLIT,
    ),
    _gibbs,
    _draw_gibbs,
    0,
    960,
    "study",
)
TRADE = Lesson(
    "trade-offs",
    "Inducing points, shared and own hyperparameters",
    "What do more inducing points buy, and a kernel for each class?",
    (
        "More points: error and likelihood fall, then flatten; the time goes on growing.",
        "A kernel for each class costs as many fits as classes. Does it buy anything?",
        "The calibration error need not fall with the error: read both.",
    ),
    (Control("pool", "Pool", POOLS, "digits", slider=False), _SPLIT),
    _trade,
    _draw_trade,
    0,
    640,
    "study",
)
EXPERIMENTS = {"likelihoods": find("likelihoods"), "gibbs": GIBBS, "trade-offs": TRADE}
