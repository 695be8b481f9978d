"""Figures that teach: likelihoods over the noise, calibration side by side, probability maps, bands."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array, Ints
from workbench.figures import parts, theme
from workbench.figures.records import CalibrationReport, SweepCurve, TradeCurve
from workbench.figures.reliability import histogram_bars, reliability_line

MOST_BLENDED = 10
"""Classes a colour map can tell apart."""
PRIMARIES = ("#FF0000", "#00FF00", "#0000FF")
"""Red, green and blue, as in figure 8 of Galy-Fajou et al. (2019); hard on colour-blind eyes."""
# title of a panel, format of a value in the hover
_MEASURES = {
    "error": ("Test error", ".1%"),
    "nll": ("NLL, nats", ".3f"),
    "ece": ("ECE, 15 bins", ".3f"),
    "seconds": ("CPU seconds", ".2f"),
}


def _measure_panels(
    curves: Mapping[str, tuple[Array, SweepCurve | TradeCurve]],
    measures: Sequence[str],
    *,
    of: str,
    axis: str,
    height: int,
    rows: int,
    baselines: Sequence[str] = (),
    mark: float | None = None,
) -> go.Figure:
    """A panel a measure, a line a curve: mean over its rows, with bars from the smallest to the largest."""
    columns = -(-len(measures) // rows)
    spacing: dict[str, Any] = {"horizontal_spacing": 0.07 if rows == 1 else 0.1}
    if rows > 1:
        spacing["vertical_spacing"] = 0.14
    fig = parts.panels([_MEASURES[m][0] for m in measures], rows=rows, height=height, x=axis, **spacing)
    look = parts.looks(curves, baselines)
    for name, (x, curve) in curves.items():
        for number, measure in enumerate(measures):
            several = np.atleast_2d(np.asarray(getattr(curve, measure), dtype=float))
            mean = several.mean(axis=0)
            ends = (several.min(axis=0), several.max(axis=0))
            bars = parts.error_bars(mean, *ends, width=1) if len(several) > 1 else None
            hover = f"{of} %{{x:g}}: %{{y:{_MEASURES[measure][1]}}}"
            line = parts.line(x, mean, name, look[name], hover=hover, legend=number == 0, bars=bars)
            fig.add_trace(line, **parts.place(number, columns))
    fig.update_yaxes(rangemode="tozero")
    fig.update_yaxes(tickformat=theme.SHARE_TICKS, row=1, col=1)
    parts.mark_at(fig, mark)
    parts.clear_of_tools(fig)
    return fig


def noise_curves(
    curves: Sequence[SweepCurve],
    *,
    mark: float | None = None,
    expected: int | None = None,
    n: int | None = None,
    height: int = 430,
) -> go.Figure:
    """Error, NLL and calibration error against the noise (Galy-Fajou et al. 2019, fig. 4).

    Args:
        curves: those that are finished; several seeds are drawn as mean and range.
        mark: a noise to mark.
        expected: how many there will be, to say that some are still missing.
        n: test points behind each value, printed.
        height: in pixels.

    Returns:
        The figure; says so when no curve is finished yet.
    """
    if not curves:
        return theme.empty("No curve is finished yet", height)
    fig = _measure_panels(
        {c.title: (c.noise, c) for c in curves},
        ("error", "nll", "ece"),
        of="noise",
        axis="Noise σ²",
        height=height,
        rows=1,
        mark=mark,
        baselines=[c.title for c in curves if c.name == "bayes"],
    )
    seeds = max(c.n_seeds for c in curves)
    words = [] if n is None else [f"n = {n:,} test points"]
    words += [f"{seeds} draws, bars: smallest to largest"] if seeds > 1 else []
    words += [f"{len(curves)} of {expected} curves so far"] if expected and len(curves) < expected else []
    parts.foot(fig, " · ".join(words))
    return fig


def trade_offs(curves: Sequence[TradeCurve]) -> go.Figure:
    """Error, likelihood, calibration error and processor time of a fit against the inducing points.

    Args:
        curves: as far as they are fitted.

    Returns:
        The figure (Galy-Fajou et al. 2019, fig. 6); says so when nothing is fitted yet.
    """
    if not any(len(curve.points) for curve in curves):
        return theme.empty("No fit is finished yet", 600)
    fig = _measure_panels(
        {c.name: (c.points, c) for c in curves},
        tuple(_MEASURES),
        of="points",
        axis="Inducing points of each class",
        height=600,
        rows=2,
    )
    ticks = sorted({float(v) for curve in curves for v in curve.points})
    fig.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{t:g}" for t in ticks])
    parts.foot(fig, f"n = {max(curve.n for curve in curves):,} test items")
    return fig


def calibration_panels(reports: Sequence[CalibrationReport]) -> go.Figure:
    """Confidence histograms above reliability diagrams, a column a model (Galy-Fajou et al. 2019, fig. 3).

    Args:
        reports: the models.

    Returns:
        The figure; n, ECE and NLL are printed in it.
    """
    height = 560
    reports = [r for r in reports if int(r.table.count.sum())]
    if not reports:
        return theme.empty("No item with a known class to measure on", height)
    k = len(reports)
    fig = parts.panels(
        [r.title for r in reports] + [""] * k,
        rows=2,
        height=height,
        row_heights=[0.36, 0.64],
        vertical_spacing=0.1,
        horizontal_spacing=0.12 / (k + 1),
    )
    for column, report in enumerate(reports, start=1):
        n, scores = int(report.table.count.sum()), report.scores
        fig.add_traces(histogram_bars(report.table, share=True, legend=column == 1), 1, column)
        fig.add_trace(parts.diagonal().update(name="diagonal"), row=2, col=column)
        fig.add_trace(reliability_line(report.table, largest=23), row=2, col=column)
        # two short lines: on a phone a panel is as wide as twenty letters
        parts.note(fig, k + column - 1, f"ECE {scores.ece:.3f}<br>NLL {scores.nll:.2f}")
        below = f"Confidence, %<br><span style='font-size:12px'>n = {n:,}</span>"
        fig.update_xaxes(title=below, row=2, col=column)
    fig.update_layout(barmode="stack", bargap=0)
    # none at the ends, where those of neighbours would meet; without the sign they need not be turned
    fig.update_xaxes(range=[0, 1.04], tickvals=[0.25, 0.5, 0.75], ticktext=["25", "50", "75"], tickangle=0)
    fig.update_yaxes(tickformat=".0%", range=[0, 1.04])
    for column in range(2, k + 1):
        # all as in the first
        fig.update_yaxes(showticklabels=False, col=column)
    fig.update_yaxes(title="Share of items", row=1, col=1)
    fig.update_yaxes(title="Share right", row=2, col=1)
    return fig


def blend(probabilities: Array, colours: Sequence[str] = theme.CATEGORICAL) -> Array:
    """Class colours mixed by probability: a sure prediction has its class's colour, a guess is muddy.

    Args:
        probabilities: [..., C], C <= 10.
        colours: at least C, as #rrggbb.

    Returns:
        [..., 3] uint8.

    Raises:
        ValueError: more classes than colours that can be told apart.
    """
    p = np.asarray(probabilities, dtype=float)
    count = p.shape[-1]
    if count > MOST_BLENDED:
        raise ValueError(
            f"{count} classes: no more than {MOST_BLENDED} colours can be told apart in a blend."
        )
    palette = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours[:count]], dtype=float)
    return np.clip(np.rint(p @ palette), 0, 255).astype(np.uint8)


def blend_image(
    x: Array,
    y: Array,
    probabilities: Array,
    *,
    opacity: float = 1.0,
    colours: Sequence[str] = theme.CATEGORICAL,
) -> go.Image:
    """The blend as an image in the plane's own units.

    Args:
        x: [W].
        y: [H].
        probabilities: [H, W, C].
        opacity: of the colours over the ground.
        colours: of the classes.
    """
    return go.Image(
        z=blend(probabilities, colours),
        name="colours",
        opacity=opacity,
        hoverinfo="skip",
        x0=float(x[0]),
        y0=float(y[0]),
        dx=float(x[1] - x[0]),
        dy=float(y[1] - y[0]),
    )


def probability_maps(
    maps: Mapping[str, Array],
    x: Array,
    y: Array,
    *,
    points: Array | None = None,
    codes: Ints | None = None,
    classes: Sequence[object] = (),
    size: int = 330,
    colours: Sequence[str] = theme.CATEGORICAL,
) -> go.Figure:
    """Class probabilities over the plane as blended colours (Galy-Fajou et al. 2019, fig. 8).

    Args:
        maps: title -> probabilities [H, W, C]; all of the same classes.
        x: [W].
        y: [H].
        points: [n, 2] training items drawn on top.
        codes: [n] their classes.
        classes: [C] names.
        size: of a panel's side, in pixels.
        colours: of the classes.

    Returns:
        The figure, or an empty one that says why: no model, or more than 10 classes.
    """
    if not maps:
        return theme.empty("No model to draw", size)
    count = next(iter(maps.values())).shape[-1]
    if count > MOST_BLENDED:
        words = f"No colour map: {count} classes, and no more than {MOST_BLENDED} colours can be told apart."
        return theme.empty(words, size)
    wide = min(3, len(maps))
    rows = -(-len(maps) // wide)
    fig = parts.panels(
        list(maps),
        rows=rows,
        columns=wide,
        height=rows * size + 90,
        x="x1",
        y="x2",
        horizontal_spacing=0.05,
        vertical_spacing=0.28 / (rows + 1),
        shared_xaxes="all",
        shared_yaxes="all",
    )
    for number, p in enumerate(maps.values()):
        at = parts.place(number, wide)
        fig.add_trace(blend_image(x, y, p, colours=colours), **at)
        if points is not None and codes is not None:
            look: dict[str, Any] = {"size": 5, "rim": 0.8, "count": True, "colours": colours}
            for marks in parts.class_marks(points, codes, classes, legend=number == 0, **look):
                fig.add_trace(marks, **at)
    still: dict[str, Any] = {"showgrid": False, "constrain": "domain"}
    fig.update_xaxes(range=[float(x[0]), float(x[-1])], **still)
    fig.update_yaxes(range=[float(y[0]), float(y[-1])], autorange=False, scaleanchor=None, **still)
    # a plane that is smaller than its place hangs below its title
    fig.update_yaxes(constraintoward="top")
    return fig


def value_maps(
    maps: Mapping[str, Array],
    x: Array,
    y: Array,
    *,
    points: Array | None = None,
    codes: Ints | None = None,
    units: Sequence[str] = (),
    classes: Sequence[object] = (),
    ranges: Sequence[tuple[float, float]] | None = None,
) -> go.Figure:
    """Measures over the plane, a panel a measure or a model, axes linked.

    Args:
        maps: title -> values [H, W].
        x: [W].
        y: [H].
        points: [n, 2] items drawn on top.
        codes: [n] their classes.
        units: of the values, a panel each.
        classes: [C] names.
        ranges: ends of each colour scale; from the values otherwise.

    Returns:
        The figure.
    """
    height = 520
    if not maps:
        return theme.empty("Nothing to draw", height)
    fig = parts.panels(
        list(maps),
        height=height,
        x="x1",
        y="x2",
        horizontal_spacing=0.1 / len(maps),
        shared_xaxes="all",
        shared_yaxes="all",
    )
    # pixels from the plot to the colour bars: the axis, and below its name how many labels there are
    below = 90 if points is None else 114
    for number, (title, values) in enumerate(maps.items()):
        at = parts.place(number, len(maps))
        low, high = ranges[number] if ranges else (float(np.nanmin(values)), float(np.nanmax(values)))
        fig.add_trace(
            go.Heatmap(
                x=x,
                y=y,
                z=values,
                zmin=low,
                zmax=high if high > low else low + 1,
                colorscale=[list(stop) for stop in theme.SEQUENTIAL],
                colorbar=parts.colour_bar(
                    units[number] if units else "",
                    title_side="bottom",
                    **parts.lying_bar(fig, number, below, height),
                ),
                hovertemplate=f"{theme.text(title)} %{{z:.3f}}<extra></extra>",
            ),
            **at,
        )
        if points is not None and codes is not None:
            for marks in parts.class_marks(points, codes, classes, legend=number == 0):
                fig.add_trace(marks, **at)
    fig.update_xaxes(showgrid=False)
    fig.update_yaxes(showgrid=False)
    if points is not None:
        parts.foot(fig, f"n = {len(points):,} labels")
    return fig


def asked_maps(
    panels: Mapping[str, tuple[Ints, Ints]],
    points: Array,
    codes: Ints,
    *,
    classes: Sequence[object] = (),
) -> go.Figure:
    """Items that policies asked about, in their order.

    Args:
        panels: title -> (items before the first question, items asked about in order).
        points: [N, 2] the pool.
        codes: [N] its classes.
        classes: [C] names.

    Returns:
        The figure.
    """
    height = 460
    if not panels:
        return theme.empty("Nobody has asked yet", height)
    points = np.asarray(points)
    k = len(panels)
    fig = parts.panels(
        list(panels),
        height=height,
        x="x1",
        y="x2",
        horizontal_spacing=0.05,
        shared_xaxes="all",
        shared_yaxes="all",
    )
    for number, (title, (initial, questions)) in enumerate(panels.items()):
        at, first = parts.place(number, k), number == 0
        # what WebGL draws lies over everything else, the items asked about too
        kind = go.Scatter if len(points) < theme.WEBGL_FROM else go.Scattergl
        faint: dict[str, Any] = {"size": 5, "opacity": 0.45, "rim": 0, "kind": kind}
        for marks in parts.class_marks(points, codes, classes, legend=first, **faint):
            fig.add_trace(marks.update(hovertemplate=None, hoverinfo="skip"), **at)
        order = np.arange(1, len(questions) + 1)
        scale = _in_order(len(questions)) | {"showscale": number == k - 1 and len(questions) > 1}
        for items, name, words, marker in (
            (
                initial,
                "given at the start",
                "given at the start",
                {"size": 13, "symbol": "square-open", "color": theme.NEUTRAL, "line": {"width": 3}},
            ),
            (
                questions,
                "asked",
                f"{theme.text(title)}<br>question %{{customdata}}",
                {"size": 12, "color": order, "opacity": 1} | scale,
            ),
        ):
            if len(items):
                fig.add_trace(
                    kind(
                        x=points[items, 0],
                        y=points[items, 1],
                        mode="markers",
                        name=name,
                        legendgroup=name,
                        showlegend=first,
                        marker=marker,
                        customdata=order,
                        hovertemplate=f"{words}<extra></extra>",
                    ),
                    **at,
                )
    parts.foot(fig, f"n = {len(points):,} items, {max(len(a) for _, a in panels.values())} questions")
    return fig


def _in_order(n: int) -> dict[str, Any]:
    """Marker options of n items in their order: light to dark, rims the other way, so that all are seen."""
    last = max(n, 2)
    ends = {"tickmode": "array", "tickvals": [1, last], "ticktext": ["first", "last"], "ticks": ""}
    scale = parts.colour_scale(1, last, "asked", stops=theme.ORDER)
    rims = {
        "cmin": 1,
        "cmax": last,
        "colorscale": [[0.0, "#8E1246"], [0.5, "#8E1246"], [0.5, "white"], [1.0, "white"]],
    }
    return scale | {
        "colorbar": scale["colorbar"] | ends,
        "line": {"width": 1.5, "color": np.arange(1, n + 1)} | rims,
    }


def class_bands(
    grid: Array,
    mean: Array,
    variance: Array,
    probabilities: Array,
    *,
    classes: Sequence[object] = (),
    axis: str = "",
    mark: float | None = None,
    shown: Sequence[int] | None = None,
    height: int = 520,
) -> go.Figure:
    """Latent functions of the classes along a line with 95 % bands, and the probabilities below.

    Args:
        grid: [G] along the line.
        mean: [G, C] of q(f_c).
        variance: [G, C].
        probabilities: [G, C].
        classes: [C] names.
        axis: what changes along the line, with its unit.
        mark: where the inspected item lies.
        shown: class codes to draw; all by default.
        height: in pixels.

    Returns:
        The figure (Wistuba and Rawat 2019, fig. 5).
    """
    if not len(grid):
        return theme.empty("The line has no length", height)
    grid, mean, spread = np.asarray(grid), np.asarray(mean), 1.96 * np.sqrt(np.asarray(variance))
    fig = parts.panels(
        ("Latent functions, 95 % bands", "Class probabilities"),
        rows=2,
        height=height,
        x=axis,
        shared_xaxes=True,
        row_heights=[0.6, 0.4],
        vertical_spacing=0.12,
    )
    for code in range(mean.shape[1]) if shown is None else shown:
        name = parts.class_name(classes, code)
        look = parts.Look(theme.class_colour(code), parts.DASHES[code % 6], theme.class_symbol(code))
        ends = (mean[:, code] - spread[:, code], mean[:, code] + spread[:, code])
        fig.add_trace(parts.band(grid, *ends, look.colour, name, 0.13), row=1, col=1)
        for row, values, form in ((1, mean[:, code], ".2f"), (2, np.asarray(probabilities)[:, code], ".1%")):
            hover = f"%{{y:{form}}}"
            line = parts.line(grid, values, name, look, hover=hover, legend=row == 1, marks=False)
            fig.add_trace(line, row=row, col=1)
    fig.update_yaxes(title="f", row=1)
    fig.update_yaxes(title="p", range=[0, 1.04], tickformat=".0%", row=2)
    parts.mark_at(fig, mark)
    return fig


def agreement(rows: Mapping[str, Mapping[str, tuple[Array, Array]]]) -> go.Figure:
    """Values of approximations against those of Gibbs sampling; a row each, a column a quantity.

    Args:
        rows: approximation -> quantity -> (Gibbs sampling's values, its values), of any equal shape; every
            row has the same quantities.

    Returns:
        The figure; n and the mean distance are printed in each panel (Galy-Fajou et al. 2019, fig. 5).
    """
    if not rows:
        return theme.empty("Nothing to compare", 290)
    quantities = list(next(iter(rows.values())))
    wide = len(quantities)
    fig = parts.panels(
        quantities,
        rows=len(rows),
        columns=wide,
        height=len(rows) * 290 + 60,
        x="Gibbs",
        legend=False,
        horizontal_spacing=0.18 / wide,
        vertical_spacing=0.2 / len(rows),
    )
    pairs = [(name, quantity, *pair) for name, row in rows.items() for quantity, pair in row.items()]
    for number, (name, quantity, exact, estimate) in enumerate(pairs):
        at = parts.place(number, wide)
        a, b = np.ravel(np.asarray(exact, dtype=float)), np.ravel(np.asarray(estimate, dtype=float))
        fig.add_trace(parts.diagonal([float(min(a.min(), b.min())), float(max(a.max(), b.max()))]), **at)
        words = f"{theme.text(quantity)}<br>Gibbs %{{x:.3f}}<br>{theme.text(name)} %{{y:.3f}}"
        marker = {"size": 5, "opacity": 0.7, "color": theme.class_colour(at["row"] - 1)}
        dots = go.Scatter(x=a, y=b, mode="markers", marker=marker, hovertemplate=f"{words}<extra></extra>")
        fig.add_trace(dots, **at)
        parts.note(fig, number, f"n = {len(a)}<br>mean |Δ| = {np.abs(a - b).mean():.3g}")
        if at["col"] == 1:
            fig.update_yaxes(title=theme.text(name), **at)
    return fig


def guess_tally(guesses: Sequence[float], answer: float, *, unit: str = "") -> go.Figure:
    """Guesses as stacked dots on a line, with the answer.

    Args:
        guesses: of a class.
        answer: what came out.
        unit: of both.
    """
    height = 220
    if not len(guesses):
        return theme.empty("Nobody has guessed yet", height)
    values = np.sort(np.asarray(guesses, dtype=float))
    low, high = min(float(values[0]), answer), max(float(values[-1]), answer)
    step = (high - low) / 40 or 1.0
    columns = np.round((values - low) / step).astype(int)
    heights = [int((columns[:i] == column).sum()) + 1 for i, column in enumerate(columns)]
    fig = theme.figure(
        x=f"Guess, {unit}",
        height=height,
        legend=False,
        x_options={"range": [low - 2 * step, high + 2 * step]},
        y_options={"visible": False, "range": [0, max(heights) + 1]},
    )
    fig.add_scatter(
        x=low + columns * step,
        y=heights,
        mode="markers",
        customdata=values,
        marker={"size": 14, "color": theme.class_colour(0), "opacity": 0.8},
        hovertemplate="%{customdata:g}<extra></extra>",
    )
    fig.add_vline(
        x=answer,
        line={"color": theme.class_colour(1), "width": 3},
        annotation_text=f"it is {answer:.3g}",
        # towards the middle, where there is room
        annotation_position="top left" if answer > (low + high) / 2 else "top right",
    )
    return fig
