"""Lessons: presets of a question, a picture that reacts to a slider, and what to look for.

A lesson's state is its controls' values, all of them in the address. What a state shows is computed
once in a process, by whoever comes first; a class of thirty shares it while each keeps a state of
their own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.app.jobs import Job, manager
from workbench.errors import InputError
from workbench.policies.registry import POLICIES, title_of

Values = dict[str, Any]
OWNER = "lessons"
_DONE: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_LOCK = threading.Lock()
_KEPT = 256


@dataclass(frozen=True)
class Control:
    """A slider, or a choice of names.

    Attributes:
        name: in the address.
        label: for people.
        options: value -> title, in order.
        default: one of the values.
        slider: whether the values are an order.
        mark: whether it only moves a mark, so that nothing is computed anew.
    """

    name: str
    label: str
    options: Mapping[Any, str]
    default: Any
    slider: bool = True
    mark: bool = False

    def parse(self, given: str | None) -> tuple[Any, bool]:
        """The value in an address, and whether it was one of ours; else the default."""
        if given is None:
            return self.default, True
        for value in self.options:
            if str(value) == given:
                return value, True
        return self.default, False


@dataclass(frozen=True)
class Picture:
    """A figure of a lesson.

    Attributes:
        figure: of Plotly.
        alt: what it shows, in a sentence.
    """

    figure: Any
    alt: str


@dataclass(frozen=True)
class Lesson:
    """One lesson.

    Attributes:
        name: in the address.
        title: in a few words.
        question: it asks.
        look: what to look for, a sentence each.
        controls: what can be moved.
        compute: (values, job) -> result; without Streamlit, in another thread.
        draw: (result, values) -> pictures and the sentence that says what came out.
        minutes: of class time; 0 outside of a class.
        height: of its pictures, in pixels.
        lane: of the jobs that compute it.
    """

    name: str
    title: str
    question: str
    look: tuple[str, ...]
    controls: tuple[Control, ...]
    compute: Callable[[Values, Job], Any]
    draw: Callable[[Any, Values], tuple[list[Picture], str]]
    minutes: int
    height: int = 560
    lane: str = "refit"

    def key(self, values: Values) -> tuple[Any, ...]:
        """What a result depends on."""
        return (self.name, *(values[c.name] for c in self.controls if not c.mark))


def present(lesson: Lesson, values: Values) -> tuple[Any, Job | None]:
    """What a state shows and the newest job that computes it, None where there is none; starts nothing.

    Args:
        lesson: it belongs to.
        values: of its controls.
    """
    key = lesson.key(values)
    return _kept(key), manager().get(OWNER, _kind(key))


def start(lesson: Lesson, values: Values) -> Job:
    """Compute a state in the background, also one that failed before."""
    key = lesson.key(values)

    def work(job: Job) -> Any:
        made = lesson.compute(values, job)
        _keep(key, made)
        return made

    return manager().submit(OWNER, _kind(key), work, title=lesson.title, lane=lesson.lane)


def result(lesson: Lesson, values: Values) -> tuple[Any, Job | None]:
    """What a state shows, or the job that is computing it.

    Args:
        lesson: it belongs to.
        values: of its controls.

    Returns:
        (result, None), or (None, job); a failed job stays until the state is started again.
    """
    found, job = present(lesson, values)
    if found is not None:
        return found, None
    if job is not None and (job.active or job.status == "failed"):
        return None, job
    return None, start(lesson, values)


def prepare(lesson: Lesson, values: Values) -> None:
    """Compute the other places of the first slider in the background, so that it answers at once."""
    first = next((c for c in lesson.controls if c.slider and not c.mark), None)
    if first is None:
        return
    states = [values | {first.name: option} for option in first.options]
    missing = [state for state in states if _kept(lesson.key(state)) is None]
    kind = f"prepare-{lesson.name}"
    before = manager().get(OWNER, kind)
    if not missing or (before is not None and (before.active or before.status == "failed")):
        return

    def work(job: Job) -> None:
        for place, state in enumerate(missing):
            job.report(place / len(missing), "preparing the slider")
            if _kept(lesson.key(state)) is None:
                quiet = Job(OWNER, kind, lesson.title)
                _keep(lesson.key(state), lesson.compute(state, quiet))

    manager().submit(OWNER, kind, work, title="Preparing the slider", lane="study")


def _kind(key: tuple[Any, ...]) -> str:
    return "/".join(map(str, key))


def _kept(key: tuple[Any, ...]) -> Any:
    with _LOCK:
        if key in _DONE:
            _DONE.move_to_end(key)
        return _DONE.get(key)


def _keep(key: tuple[Any, ...], made: Any) -> None:
    with _LOCK:
        _DONE[key] = made
        while len(_DONE) > _KEPT:
            _DONE.popitem(last=False)


def find(name: str) -> Lesson:
    """A lesson by name.

    Raises:
        InputError: there is none.
    """
    for lesson in LESSONS:
        if lesson.name == name:
            return lesson
    raise InputError(f"There is no lesson {name!r}. Choose one of those below.")


def _panels(honest: Any) -> Any:
    from workbench.figures.teaching import HonestyPanel, honesty_panels

    return honesty_panels(
        [HonestyPanel(h.title, h.table, h.band, h.histogram, h.scores.ece, h.scores.nll) for h in honest]
    )


def _told(honest: Any) -> str:
    return " · ".join(
        f"{h.title}: error {h.scores.error:.1%}, NLL {h.scores.nll:.2f}, ECE {h.scores.ece:.3f}"
        for h in honest
    )


_HONEST = "Confidence histograms above reliability diagrams, a column a model"


def _honesty(honest: Any, _values: Values) -> tuple[list[Picture], str]:
    return [Picture(_panels(honest), _HONEST)], _told(honest)


def _over_confident(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.over_confident(values["beside"], values["noise"], job.report)


def _useless(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.useless(values["noise"], job.report)


def _argmax(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.argmax_frequency(values["noise"], values["labels"], job.report)


def _sweep(values: Values, job: Job) -> Any:
    from workbench.studies.calibration import SWEPT, noise_sweep

    curves: list[Any] = []
    seeds = tuple(range(values["draws"]))

    def watch(fraction: float, message: str) -> None:
        job.report(fraction, message, partial=tuple(curves) or None)

    for curve in noise_sweep((*SWEPT, "collapsed"), seeds=seeds, progress=watch):
        curves.append(curve)
        job.partial = tuple(curves)
    return tuple(curves)


def _draw_sweep(curves: Any, values: Values) -> tuple[list[Picture], str]:
    from workbench.figures.teaching import NoiseCurve, noise_curves

    drawn = [NoiseCurve(c.title, c.noise, c.error, c.nll, c.ece, reference=c.name == "bayes") for c in curves]
    fig = noise_curves(drawn, mark=values["noise"], expected=8, n=2000, height=470)
    at = [
        f"{c.title} {c.error[:, k].mean():.1%} / {c.nll[:, k].mean():.2f} / {c.ece[:, k].mean():.3f}"
        for c in curves
        for k in [int(abs(c.noise - values["noise"]).argmin())]
    ]
    words = f"At noise {values['noise']:g}, error / NLL / ECE: " + " · ".join(at) if at else ""
    return [Picture(fig, "Error, likelihood and calibration error of each likelihood against noise")], words


def _inducing(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.inducing_points(values["points"], job.report)


def _draw_inducing(made: Any, values: Values) -> tuple[list[Picture], str]:
    import plotly.graph_objects as go

    from workbench.figures.teaching import ProbabilityGrid, probability_maps

    grid = ProbabilityGrid(
        "Class probabilities as mixed colours", made.grid.x, made.grid.y, made.probabilities
    )
    fig = probability_maps([grid], points=made.X, codes=made.y, classes=("arm 1", "arm 2", "arm 3"), size=480)
    fig.add_trace(
        go.Scatter(
            x=made.centres[:, 0],
            y=made.centres[:, 1],
            mode="markers",
            name=f"inducing points · {len(made.centres)}",
            marker={"symbol": "x", "size": 10, "color": "white", "line": {"width": 1.5, "color": "black"}},
            hovertemplate="inducing point<extra></extra>",
        ),
        row=1,
        col=1,
    )
    words = f"Error {made.error:.1%}, NLL {made.nll:.2f} nats on {made.n_test} test points."
    return [Picture(fig, "Class probabilities as blended colours, with the inducing points")], words


def _measures(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.two_measures(values["labels"], values["noise"], job.report)


def _draw_measures(made: Any, _values: Values) -> tuple[list[Picture], str]:
    from math import log

    from workbench.figures.teaching import ValueGrid, value_maps

    g = made.grid
    grids = [
        ValueGrid("Variation ratio: which class leads?", g.x, g.y, made.variation_ratio, made.X, made.y, ""),
        ValueGrid("Entropy: what will the label be?", g.x, g.y, made.entropy, made.X, made.y, "nats"),
    ]
    fig = value_maps(grids, classes=("A", "B", "C"), ranges=[(0, 2 / 3), (0, log(3))])
    words = (
        f"Mean over the plane: variation ratio {made.variation_ratio.mean():.3f} of at most .667, "
        f"entropy {made.entropy.mean():.3f} of at most 1.099 nats."
    )
    return [Picture(fig, "Variation ratio and entropy over the plane, side by side")], words


def _looked(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.looked(values["policy"], values["seed"], report=job.report)


def _draw_looked(made: Any, values: Values) -> tuple[list[Picture], str]:
    from workbench.figures.teaching import asked_maps

    n = values["questions"]
    titles = {name: title_of(name) for name in made.asked}
    panels = {titles[name]: (made.initial, items[:n]) for name, items in made.asked.items()}
    fig = asked_maps(panels, made.points, made.codes, classes=made.classes)
    words = " · ".join(
        f"{titles[name]}: error {error[min(n, len(error) - 1)]:.1%} after {n} questions"
        for name, error in made.error.items()
    )
    words += f", on {made.n_test} test points. One run: a comparison needs many seeds (Compare)."
    return [Picture(fig, "Items in the order policies asked about them, beside random")], words


def _rivals(values: Values, job: Job) -> Any:
    from workbench.studies import lessons

    return lessons.rivals(values["classes"], job.report)


def _draw_rivals(made: Any, _values: Values) -> tuple[list[Picture], str]:
    import numpy as np

    from workbench.figures.ranks import series

    sweeps = np.arange(len(made.hard))
    fig = series(
        {
            "tempered rivals": (np.arange(len(made.tempered)), made.tempered),
            "whoever leads is the rival": (sweeps, made.hard),
        },
        x=f"Sweeps (n = {made.n} rows, {made.n_classes} classes)",
        y="Objective with the hard rival, nats",
    )
    falls = int((np.diff(made.hard) < -1e-6).sum())
    words = (
        f"The hard rule fell in {falls} of {len(made.switched)} sweeps and ends at {made.hard[-1]:,.0f}; "
        f"the tempered rule ends at {made.tempered[-1]:,.0f}. In its last sweep "
        f"{made.switched[-1]:.0%} of the rows still changed their rival."
    )
    return [Picture(fig, "The objective after each sweep, hard rule against tempered rule")], words


def _numbers(*values: float) -> dict[Any, str]:
    return {value: f"{value:g}" for value in values}


_NOISE = Control("noise", "Noise σ²", _numbers(0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5), 0.5)
_LABELS = Control("labels", "Labels", _numbers(9, 20, 50, 100, 200, 500), 500)


def _policies() -> dict[Any, str]:
    """The policies that can be looked at beside random: those that say something about every item."""
    return {e.name: e.title for e in POLICIES.values() if e.kind == "policy" and e.measure and not e.warning}


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "over-confident",
        "The model that is always sure",
        "A model is right 62 times out of 100. How sure does it say it is?",
        (
            "Robust-max puts nearly every item into the last bar: 99.9 % sure, whatever the noise.",
            "Its predictions are hardly worse than its neighbours'; only its probabilities are.",
            "Move the noise: exact Bayes becomes modest where classes overlap. Who follows it?",
        ),
        (
            _NOISE,
            Control(
                "beside",
                "Beside it",
                {
                    "logistic-softmax": "Logistic-softmax",
                    "softmax": "Softmax",
                    "heaviside": "Heaviside + noise",
                    "large-margin": "Large-margin GP",
                },
                "logistic-softmax",
                slider=False,
            ),
        ),
        _over_confident,
        _honesty,
        12,
    ),
    Lesson(
        "likelihoods",
        "Six likelihoods and the truth",
        "As the classes melt into each other, which likelihood still tells the truth about itself?",
        (
            "The grey line is the exact Bayes rule: nobody can do better on average, at any noise.",
            "In the error all lines but one lie on each other. In the likelihood robust-max takes off.",
            "The mean-field line is too modest: the bound, not the model, is at fault.",
            "Even the exact line has a calibration error above 0: with 2,000 points that is chance.",
        ),
        (
            Control("noise", "Mark noise σ²", _NOISE.options, 0.5, mark=True),
            Control("draws", "Draws of the data", {1: "1", 3: "3"}, 1, slider=False),
        ),
        _sweep,
        _draw_sweep,
        15,
        470,
    ),
    Lesson(
        "useless",
        "Perfectly calibrated, perfectly useless",
        "Its calibration error is near 0. Would you use this model?",
        (
            "The collapsed model says one third to everything, and is right one time in three: calibrated.",
            "Its error and its likelihood give it away. Never read the calibration error alone.",
            "Below a noise of about .5 it does not collapse. Move the slider to find where it gives up.",
        ),
        (Control("noise", "Noise σ²", _NOISE.options, 1.0),),
        _useless,
        _honesty,
        10,
    ),
    Lesson(
        "argmax",
        "Argmax frequency is not probability",
        "In 999 of 1,000 draws of the functions A is largest. Is the label A with 99.9 %?",
        (
            "Left: how often A leads among draws of the functions. It is about the functions, not the label.",
            "More labels make the functions certain, so the left column grows ever surer. The noise stays.",
            "The softmax of the means errs the other way. One fitted number, β, repairs it.",
            "But β is fitted too: with 50 labels it sharpens too much.",
        ),
        (_LABELS, _NOISE),
        _argmax,
        _honesty,
        12,
    ),
    Lesson(
        "inducing",
        "How many inducing points?",
        "Three spiral arms, 300 labels. With how few points can a GP say where they are?",
        (
            "Muddy colour is a guess, pure colour is certainty; the crosses are the inducing points.",
            "Up to 8 points the model cannot bend enough and is unsure nearly everywhere.",
            "From 64 on nothing more is gained: only the price grows.",
        ),
        (Control("points", "Inducing points", _numbers(2, 4, 8, 16, 32, 64, 128), 8),),
        _inducing,
        _draw_inducing,
        10,
        570,
    ),
    Lesson(
        "two-doubts",
        "Two kinds of doubt",
        "Where classes overlap, no number of labels helps. Which measure knows that?",
        (
            "With 9 labels both maps are dark where labels are few.",
            "Add labels: the variation ratio shrinks to a thin line, because the functions become known.",
            "The entropy stays dark over the whole overlap: the label there stays a coin toss.",
            "A policy that follows the entropy keeps asking about coin tosses.",
        ),
        (Control("labels", "Labels", _LABELS.options, 20), _NOISE),
        _measures,
        _draw_measures,
        12,
        460,
    ),
    Lesson(
        "looking",
        "Where did the policy look?",
        "Both had 40 questions. What did one of them spend them on?",
        (
            "Move the slider and watch the questions come: colour is the order.",
            "The policy goes to the borders; random asks where items are many.",
            "Try entropy, and another draw: one run proves nothing.",
        ),
        (
            Control(
                "questions",
                "Questions",
                {n: str(n) for n in (0, 5, 10, 15, 20, 25, 30, 35, 40)},
                20,
                mark=True,
            ),
            Control(
                "policy",
                "Policy",
                _policies(),
                "variation-ratio",
                slider=False,
            ),
            Control("seed", "Draw", {0: "1", 1: "2", 2: "3"}, 0, slider=False),
        ),
        _looked,
        _draw_looked,
        10,
        460,
    ),
    Lesson(
        "rivals",
        "The rival that cycles",
        "Each sweep climbs its own objective. Why does the whole never arrive?",
        (
            "The papers let every item be pushed away from the class that leads now, chosen anew each sweep.",
            "Whoever is pushed down hands the lead to another: the objective falls, cycles or sticks.",
            "With 2 classes there is only one rival, and nothing to cycle.",
            "Tempered rivals push all leaders at once, and never fall in their own objective.",
        ),
        (Control("classes", "Classes", _numbers(2, 3, 4, 5, 6), 3),),
        _rivals,
        _draw_rivals,
        9,
        400,
    ),
)
