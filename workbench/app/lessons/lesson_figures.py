"""Figures of lessons: (result, values of the controls) -> pictures, what came out, the guess's answer."""

from math import log
from typing import Any, NamedTuple

import numpy as np

from workbench.app.words.text import percent, with_minus
from workbench.figures import parts, teaching, theme

Values = dict[str, Any]


class Picture(NamedTuple):
    """A figure of a lesson.

    Attributes:
        figure: of Plotly.
        alt: what it shows, in a sentence.
    """

    figure: Any
    alt: str


class Drawn(NamedTuple):
    """View of a state of a lesson.

    Attributes:
        pictures: in order.
        words: what came out.
        answer: to the guess, in its unit; None where nothing is to be guessed.
        says: of an experiment, what came out in one plain sentence.
        table: of an experiment, what came out in numbers, a row a model.
    """

    pictures: list[Picture]
    words: str
    answer: float | None = None
    says: str = ""
    table: tuple[dict[str, str], ...] = ()


def _calibration(reports: Any, answer: float) -> Drawn:
    words = " · ".join(
        # how sure beside how often wrong: that is the lesson; a term stands behind both
        f"{r.title}: {percent(r.table.mean_confidence)} sure, {percent(r.scores.error)} wrong; "
        f"NLL {r.scores.nll:.2f}, ECE {r.scores.ece:.3f}"
        for r in reports
    )
    alt = "Confidence histograms above reliability diagrams, a column a model"
    return Drawn([Picture(teaching.calibration_panels(reports), alt)], words, answer)


def sure(reports: Any, _values: Values) -> Drawn:
    """Calibration of several models; asked for is how sure the first is."""
    return _calibration(reports, 100 * reports[0].table.mean_confidence)


def wrong(reports: Any, _values: Values) -> Drawn:
    """Calibration of several models; asked for is the error of the first."""
    return _calibration(reports, 100 * reports[0].scores.error)


def sweep(curves: Any, values: Values) -> Drawn:
    """Likelihoods over the noise."""
    noise = values["noise"]
    fig = teaching.noise_curves(curves, mark=noise, expected=8, n=2000, height=470)
    readings = [(c, int(abs(c.noise - noise).argmin())) for c in curves]
    table = tuple(
        {
            "Model": c.title,
            "Error": percent(c.error[:, k].mean()),
            "Negative log-likelihood": f"{c.nll[:, k].mean():.2f}",
            "Expected calibration error": f"{c.ece[:, k].mean():.3f}",
        }
        for c, k in readings
    )
    lines = [f"{model} {' / '.join(numbers)}" for model, *numbers in map(dict.values, table)]
    # a line of its own says what the three numbers of each line are
    words = " · ".join([f"At noise {noise:g}: error / NLL / ECE", *lines]) if lines else ""
    exact = next((c for c in curves if c.name == "bayes"), None)
    answer = None if exact is None else 100 * float(exact.error[:, abs(exact.noise - 0.5).argmin()].mean())
    alt = "Error, likelihood and calibration error of each likelihood against noise"
    return Drawn([Picture(fig, alt)], words, answer, _of_noise(readings, noise), table)


def _of_noise(readings: list[tuple[Any, int]], noise: float) -> str:
    """Error of the models at a noise and the distance of their words from it, in a sentence."""
    off = {c.title: 100 * float(c.ece[:, k].mean()) for c, k in readings if c.name != "bayes"}
    wrong = [100 * float(c.error[:, k].mean()) for c, k in readings if c.name != "bayes"]
    best = [100 * float(c.error[:, k].mean()) for c, k in readings if c.name == "bayes"]
    if not off:
        return ""
    return (
        f"At noise {noise:g} the models are wrong {_between(wrong)} times in 100"
        + (f", the best possible rule {best[0]:.0f}" if best else "")
        + f". What they say is {_between(list(off.values()))} points from how often they are right; furthest "
        f"off is {max(off, key=off.__getitem__)}."
    )


def _between(numbers: list[float]) -> str:
    low, high = f"{min(numbers):.0f}", f"{max(numbers):.0f}"
    return low if low == high else f"{low} to {high}"


def inducing(outcome: Any, _values: Values) -> Drawn:
    """Probabilities over the plane and the inducing points."""
    title = {"Class probabilities as mixed colours": outcome.probabilities}
    names = ("arm 1", "arm 2", "arm 3")
    fig = teaching.probability_maps(
        title, outcome.grid.x, outcome.grid.y, points=outcome.X, codes=outcome.y, classes=names, size=480
    )
    fig.add_scatter(
        x=outcome.centres[:, 0],
        y=outcome.centres[:, 1],
        mode="markers",
        name=f"inducing points · {len(outcome.centres)}",
        hovertemplate="inducing point<extra></extra>",
        marker={"symbol": "x", "size": 10, "color": "white", "line": {"width": 1.5, "color": "black"}},
    )
    words = f"Error {percent(outcome.error)}, NLL {outcome.nll:.2f} nats on {outcome.n_test} test points."
    alt = "Class probabilities as blended colours, with the inducing points"
    return Drawn([Picture(fig, alt)], words, 100 * outcome.error)


def two_measures(outcome: Any, _values: Values) -> Drawn:
    """Variation ratio and entropy over the plane."""
    maps = {
        "Variation ratio: which class leads?": outcome.variation_ratio,
        "Entropy: what will the label be?": outcome.entropy,
    }
    fig = teaching.value_maps(
        maps,
        outcome.grid.x,
        outcome.grid.y,
        points=outcome.X,
        codes=outcome.y,
        units=("", "nats"),
        classes=("A", "B", "C"),
        ranges=[(0, 2 / 3), (0, log(3))],
    )
    entropy = float(outcome.entropy.mean())
    words = (
        f"Mean over the plane: variation ratio {outcome.variation_ratio.mean():.3f} of at most 0.667, "
        f"entropy {entropy:.3f} of at most 1.099 nats."
    )
    alt = "Variation ratio and entropy over the plane, side by side"
    return Drawn([Picture(fig, alt)], words, entropy)


def asked(outcome: Any, values: Values) -> Drawn:
    """Items in the order policies asked about them."""
    from workbench.policies.registry import title_of

    n = values["questions"]
    titles = {name: title_of(name) for name in outcome.asked}
    panels = {titles[name]: (outcome.initial, items[:n]) for name, items in outcome.asked.items()}
    fig = teaching.asked_maps(panels, outcome.points, outcome.codes, classes=outcome.classes)
    words = " · ".join(
        f"{titles[name]}: error {percent(error[min(n, len(error) - 1)])} after {n} questions"
        for name, error in outcome.error.items()
    )
    words += f", on {outcome.n_test} test points. One run: a comparison needs many seeds (Compare)."
    alt = "Items in the order policies asked about them, beside random"
    return Drawn([Picture(fig, alt)], words, 100 * float(outcome.error["random"][-1]))


def outvoted(outcome: Any, values: Values) -> Drawn:
    """Weights and errors of a model that began with two guesses, over its labels."""
    from workbench.figures.ranks import series

    n = values["given"]
    at = int(abs(outcome.labels - n).argmin())
    good, wrong_one = (percent(share, 0) for share in outcome.alone)
    marks = {"labels": n}
    lines = {
        name: (outcome.labels, outcome.weights[:, j])
        for j, name in enumerate(("mostly right", "mostly wrong"))
    }
    weights = series(lines, x="Labels", y="Weight of the guess, margins", marks=marks)
    is_finite = np.isfinite(outcome.without)
    errors = series(
        {
            "begins with both guesses": (outcome.labels, outcome.error),
            "begins with nothing": (outcome.labels[is_finite], outcome.without[is_finite]),
        },
        x="Labels",
        y="Error on 1,000 other points",
        share=True,
        marks=marks,
        heights={"the better guess alone": float(outcome.alone[0])},
    )
    words = (
        f"At {outcome.labels[at]} labels: the guess that is wrong {good} of the time counts "
        f"{outcome.weights[at, 0]:.2f}, the one that is wrong {wrong_one} of the time "
        f"{outcome.weights[at, 1]:.2f}. Error {percent(outcome.error[at])}"
        + (f", beginning with nothing {percent(outcome.without[at])}." if is_finite[at] else ".")
    )
    pictures = [
        Picture(weights, "The weights of a good and a wrong guess against labels"),
        Picture(errors, "The error with both guesses and with none, against labels"),
    ]
    return Drawn(pictures, words, 100 * float(outcome.error[list(outcome.labels).index(40)]))


def unlabelled(outcome: Any, values: Values) -> Drawn:
    """Errors at each strength of leaning on neighbours, and the items as one of them sees these."""
    from workbench.figures.ranks import series
    from workbench.pools.neighbours.graph import STRENGTHS

    strength = str(values["strength"])
    at = outcome.strengths.index(strength)
    names = {"none": "none: own features"} | {name: name for name in outcome.strengths[1:]}
    errors = series(
        {names[name]: (outcome.labels, outcome.error[s]) for s, name in enumerate(outcome.strengths)},
        x="Labels",
        y=f"Error on {outcome.n_test} items outside the graph",
        share=True,
        logarithmic=True,
        baseline=names["none"],
    )
    at_labels = [int(n) for n in outcome.labels]
    errors.update_xaxes(tickvals=at_labels, ticktext=list(map(str, at_labels)), minor_showgrid=False)
    leaning = STRENGTHS[strength].said
    caption = f"{len(outcome.codes)} items as the model sees them that leans on neighbours: {leaning}"
    fig = theme.figure(x=caption, height=420, legend=True)
    for trace in parts.class_marks(outcome.places[at], outcome.codes, outcome.classes, size=7):
        fig.add_trace(trace)
    fig.update_xaxes(showticklabels=False)
    fig.update_yaxes(showticklabels=False)
    few, many = 0, len(outcome.labels) - 1
    words = " ".join(
        f"With {outcome.labels[i]} labels {percent(outcome.error[at, i])} are wrong"
        + (f", by their own features alone {percent(outcome.error[0, i])}." if at else ".")
        for i in (few, many)
    )
    pictures = [
        Picture(errors, "The error at each strength of leaning on neighbours, against labels"),
        Picture(fig, caption),
    ]
    strong = outcome.strengths.index("strong")
    return Drawn(pictures, words, 100 * float(outcome.error[strong, few]))


def rivals(outcome: Any, _values: Values) -> Drawn:
    """The objective after each sweep of two rules."""
    from workbench.figures.ranks import series

    fig = series(
        {
            "tempered rivals": (np.arange(len(outcome.tempered)), outcome.tempered),
            "whoever leads is the rival": (np.arange(len(outcome.hard)), outcome.hard),
        },
        x=f"Sweeps (n = {outcome.n} rows, {outcome.n_classes} classes)",
        y="Objective with the hard rival, nats",
    )
    falls = int((np.diff(outcome.hard) < -1e-6).sum())
    hard, tempered = (with_minus(f"{objective[-1]:,.0f}") for objective in (outcome.hard, outcome.tempered))
    words = (
        f"The hard rule fell in {falls} of {len(outcome.switched)} sweeps and ends at {hard}; "
        f"the tempered rule ends at {tempered}. In its last sweep "
        f"{percent(outcome.switched[-1], 0)} of the rows still changed their rival."
    )
    alt = "The objective after each sweep, hard rule against tempered rule"
    return Drawn([Picture(fig, alt)], words, falls)


def promises(outcome: Any, values: Values) -> Drawn:
    """Shares of simulated projects that have made their promise, against checks."""
    from workbench.figures.ranks import series

    n = values["looked"]
    fig = series(
        {
            "a fixed test, looked at after every answer": (outcome.checks, outcome.peeked),
            "the same test, looked at once": (outcome.checks, outcome.once),
            "betting, looked at after every answer": (outcome.checks, outcome.anytime),
        },
        x="Checks",
        y="Projects that promise at most 5\u00a0%",
        share=True,
        points=False,
        marks={"looked until": n},
        heights={"5\u00a0%, allowed": 0.05},
    )
    at = n - 1
    words = (
        f"Where {percent(outcome.wrong)} of the labels are wrong, {1000 * outcome.peeked[at]:.0f} of 1,000 "
        f"projects have promised at most 5\u00a0% by {n} checks if the fixed test is looked at after every "
        f"answer, {1000 * outcome.once[at]:.0f} if it is looked at once, {1000 * outcome.anytime[at]:.0f} by "
        f"betting. With nothing wrong the fixed test needs {outcome.rule} checks, betting {outcome.needed}."
    )
    alt = "The share of simulated projects that make their promise, against the number of checks"
    return Drawn([Picture(fig, alt)], words, float(outcome.fooled))


def gibbs(outcome: Any, _values: Values) -> Drawn:
    """Inference against Gibbs sampling, as far as it is finished."""
    exact, *methods = outcome
    words = [f"{exact.title}: error {percent(exact.error)} on {len(exact.mean)} test items"]
    words += [
        f"{method.title}: error {percent(method.error)}, mean distance of p {method.distance(exact):.3f}"
        for method in methods
    ]
    alt = "Probabilities, means and variances of each inference against those of Gibbs sampling"
    fig = teaching.agreement({method.title: method.against(exact) for method in methods})
    off = [f"{100 * method.distance(exact):.1f} ({method.title})" for method in methods]
    says = f"On average, points that a percentage is off the sampled one: {', '.join(off)}."
    table = tuple(
        {
            "Method": method.title,
            f"Error on {len(exact.mean)} items": percent(method.error),
            "Mean distance of p": f"{method.distance(exact):.3f}",
        }
        for method in outcome
    )
    pictures = [Picture(fig, alt)] if methods else []
    return Drawn(pictures, " · ".join(words), says=says if methods else "", table=table)


def trade(curves: Any, values: Values) -> Drawn:
    """Error, likelihood, calibration error and time against inducing points."""
    from workbench.studies.lessons import TRADED

    words = " · ".join(
        f"{c.name}, {c.points[-1]:.0f} points: error {percent(c.error[-1])}, NLL {c.nll[-1]:.2f}, "
        f"ECE {c.ece[-1]:.3f}, {c.seconds[-1]:.1f} s"
        for c in curves
    )
    alt = "Error, likelihood, calibration error and time against inducing points"
    fig = teaching.trade_offs(curves)
    says = f"From {curves[0].points[0]:.0f} to {curves[0].points[-1]:.0f} inducing points: " + "; ".join(
        f"{c.name}, error from {percent(c.error[0])} to {percent(c.error[-1])}, a fit from "
        f"{c.seconds[0]:.1f} to {c.seconds[-1]:.1f} s"
        for c in curves
    )
    table = tuple(
        {
            "Model": c.name,
            "Points": f"{c.points[k]:.0f}",
            "Error": percent(c.error[k]),
            "Negative log-likelihood": f"{c.nll[k]:.2f}",
            "Expected calibration error": f"{c.ece[k]:.3f}",
            "Seconds": f"{c.seconds[k]:.1f}",
        }
        for c in curves
        for k in range(len(c.points))
    )
    words = f"{words}. Pool {values['pool']}, at most {TRADED} items."
    return Drawn([Picture(fig, alt)], words, says=f"{says}.", table=table)
