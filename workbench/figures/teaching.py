"""Figures that teach: likelihoods over the noise, honesty side by side, probability maps, bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.arrays import Array, Ints
from workbench.figures import theme
from workbench.metrics import ConfidenceHistogram, ReliabilityTable

DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot", "solid", "dash", "dashdot")
MOST_BLENDED = 10
"""Classes a colour map can tell apart."""
PRIMARIES = ("#FF0000", "#00FF00", "#0000FF")
"""Red, green and blue: with three classes the blend is paper 002's figure 8."""


@dataclass(frozen=True, eq=False)
class NoiseCurve:
    """A likelihood over the noise.

    Attributes:
        name: for the legend.
        noise: [K] sigma^2.
        error: [S, K], a row a seed; so the others.
        nll: nats.
        ece: of 15 bins.
        reference: the exact line, drawn in grey.
    """

    name: str
    noise: Array
    error: Array
    nll: Array
    ece: Array
    reference: bool = False


@dataclass(frozen=True, eq=False)
class HonestyPanel:
    """What `honesty_panels` draws of one model.

    Attributes:
        title: above it.
        table: accuracy against confidence.
        band: ends [B] of intervals of the accuracies.
        histogram: of confidence.
        ece: printed.
        nll: printed, nats.
    """

    title: str
    table: ReliabilityTable
    band: tuple[Array, Array] | None
    histogram: ConfidenceHistogram
    ece: float
    nll: float


@dataclass(frozen=True, eq=False)
class ProbabilityGrid:
    """A model's class probabilities over the plane.

    Attributes:
        title: above it.
        x: [W].
        y: [H].
        probabilities: [H, W, C].
    """

    title: str
    x: Array
    y: Array
    probabilities: Array


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
        n: test items behind each value, printed.
    """

    name: str
    points: Array
    error: Array
    nll: Array
    ece: Array
    seconds: Array
    n: int


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """A measure over the plane, and items on it.

    Attributes:
        title: above it.
        x: [W].
        y: [H].
        values: [H, W].
        points: [n, 2] items, or None.
        codes: [n] their classes, or None.
        unit: of the values.
    """

    title: str
    x: Array
    y: Array
    values: Array
    points: Array | None = None
    codes: Ints | None = None
    unit: str = ""


def _two_lines(title: str) -> str:
    """A panel's title, broken near its middle where it is long: panels share a narrow window."""
    spaces = [i for i, c in enumerate(title) if c == " "]
    if len(title) <= 18 or not spaces:
        return theme.text(title, 44)
    at = min(spaces, key=lambda i: abs(i - len(title) / 2))
    return f"{theme.text(title[:at], 30)}<br>{theme.text(title[at + 1 :], 30)}"


def _panels(rows: int, columns: int, titles: Sequence[str], height: int, **more: Any) -> go.Figure:
    shown = [_two_lines(t) if columns > 1 else theme.text(t, 44) for t in titles]
    above = 16 * any("<br>" in t for t in shown)
    fig = make_subplots(rows, columns, subplot_titles=shown, **more)
    plain = theme.figure(height=height)
    kept = ("height", "paper_bgcolor", "plot_bgcolor", "colorway", "hoverlabel", "uirevision", "modebar")
    fig.update_layout({name: plain.layout[name] for name in kept})
    fig.update_layout(
        margin={"l": 8, "r": 12, "t": 74 + above, "b": 8},
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1 + (34 + above) / height,
            "xanchor": "left",
            "x": 0,
            "itemsizing": "constant",
        },
    )
    axis = {"gridcolor": theme.GRID, "zeroline": False, "linecolor": theme.GRID, "ticks": ""}
    fig.update_xaxes(**axis, automargin=True, title_standoff=8)
    fig.update_yaxes(**axis, automargin=True, title_standoff=8)
    fig.update_annotations(font={"size": 14})
    return fig


def noise_curves(
    curves: Sequence[NoiseCurve],
    *,
    mark: float | None = None,
    expected: int | None = None,
    n: int | None = None,
    height: int = 430,
) -> go.Figure:
    """Error, negative log-likelihood and calibration error against the noise (paper 002, figure 4).

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
    fig = _panels(
        1,
        3,
        # short, because three panels share a narrow window
        ("Test error", "NLL, nats", "ECE, 15 bins"),
        height,
        horizontal_spacing=0.07,
    )
    rank = 0
    for curve in curves:
        colour = theme.NEUTRAL if curve.reference else theme.class_colour(rank)
        dash = "dot" if curve.reference else DASHES[rank % len(DASHES)]
        symbol = "x" if curve.reference else theme.SYMBOLS[rank % len(theme.SYMBOLS)]
        rank += not curve.reference
        for column, (values, shown) in enumerate(
            ((curve.error, ":.1%"), (curve.nll, ":.3f"), (curve.ece, ":.3f")), start=1
        ):
            rows = np.atleast_2d(np.asarray(values, dtype=float))
            mean = rows.mean(axis=0)
            bars = None
            if len(rows) > 1:
                bars = {
                    "type": "data",
                    "symmetric": False,
                    "array": rows.max(axis=0) - mean,
                    "arrayminus": mean - rows.min(axis=0),
                    "thickness": 1,
                    "width": 3,
                }
            fig.add_trace(
                go.Scatter(
                    x=curve.noise,
                    y=mean,
                    error_y=bars,
                    mode="lines+markers",
                    name=theme.text(curve.name),
                    legendgroup=curve.name,
                    showlegend=column == 1,
                    line={"color": colour, "dash": dash, "width": 3 if curve.reference else 2.2},
                    marker={"symbol": symbol, "size": 7},
                    hovertemplate=f"<b>{theme.text(curve.name)}</b><br>noise %{{x:g}}: %{{y{shown}}}"
                    "<extra></extra>",
                ),
                row=1,
                col=column,
            )
    fig.update_xaxes(title="Noise σ²")
    fig.update_yaxes(rangemode="tozero")
    fig.update_yaxes(tickformat=".0%", row=1, col=1)
    if mark is not None:
        fig.add_vline(x=mark, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    seeds = max(len(np.atleast_2d(c.error)) for c in curves)
    words = [] if n is None else [f"n = {n:,} test points"]
    words += [f"{seeds} draws, bars: smallest to largest"] if seeds > 1 else []
    words += [f"{len(curves)} of {expected} curves so far"] if expected and len(curves) < expected else []
    _foot(fig, " · ".join(words))
    return fig


def honesty_panels(panels: Sequence[HonestyPanel], *, height: int = 560) -> go.Figure:
    """Confidence histograms above reliability diagrams, a column a model (paper 002, figure 3).

    Args:
        panels: the models.
        height: in pixels.

    Returns:
        The figure; n, ECE and NLL are printed in it.
    """
    panels = [p for p in panels if int(p.table.count.sum())]
    if not panels:
        return theme.empty("No item with a known class to measure on", height)
    k = len(panels)
    fig = _panels(
        2,
        k,
        [p.title for p in panels] + [""] * k,
        height,
        row_heights=[0.36, 0.64],
        vertical_spacing=0.1,
        horizontal_spacing=0.12 / (k + 1),
    )
    for column, panel in enumerate(panels, start=1):
        h, table = panel.histogram, panel.table
        n = int(table.count.sum())
        centre = (np.asarray(h.lower) + np.asarray(h.upper)) / 2
        for name, counts, colour in (
            ("right", h.right, theme.class_colour(0)),
            ("wrong", h.wrong, theme.class_colour(1)),
        ):
            fig.add_trace(
                go.Bar(
                    x=centre,
                    y=np.asarray(counts) / n,
                    customdata=counts,
                    name=name,
                    legendgroup=name,
                    showlegend=column == 1,
                    width=0.92 * (np.asarray(h.upper) - np.asarray(h.lower)),
                    marker={"color": colour, "line": {"width": 0}},
                    hovertemplate=f"confidence %{{x:.0%}}: %{{customdata:,}} {name}<extra></extra>",
                ),
                row=1,
                col=column,
            )
        full = np.asarray(table.count) > 0
        accuracy = np.asarray(table.accuracy)[full]
        bars = None
        if panel.band is not None:
            low, high = (np.asarray(end, dtype=float)[full] for end in panel.band)
            bars = {
                "type": "data",
                "symmetric": False,
                "array": np.nan_to_num(np.maximum(high - accuracy, 0)),
                "arrayminus": np.nan_to_num(np.maximum(accuracy - low, 0)),
                "color": theme.NEUTRAL,
                "thickness": 1.5,
                "width": 4,
            }
        fig.add_trace(
            go.Scatter(
                x=[0, 1],
                y=[0, 1],
                mode="lines",
                line={"color": theme.NEUTRAL, "dash": "dot"},
                hoverinfo="skip",
                showlegend=False,
            ),
            row=2,
            col=column,
        )
        fig.add_trace(
            go.Scatter(
                x=np.asarray(table.confidence)[full],
                y=accuracy,
                error_y=bars,
                mode="lines+markers",
                showlegend=False,
                line={"color": theme.class_colour(0), "width": 2},
                marker={"size": 7 + 16 * np.sqrt(table.count[full] / table.count.max()), "opacity": 0.85},
                customdata=table.count[full],
                hovertemplate="said %{x:.1%}, right %{y:.1%}<br>n = %{customdata:,}<extra></extra>",
            ),
            row=2,
            col=column,
        )
        place = 2 * k - (2 * k - (k + column))
        axis = "" if place == 1 else str(place)
        fig.add_annotation(
            text=f"ECE {panel.ece:.3f}<br>NLL {panel.nll:.2f} nats<br>n = {n:,}",
            align="left",
            showarrow=False,
            x=0.03,
            y=0.98,
            xref=f"x{axis} domain",
            yref=f"y{axis} domain",
            xanchor="left",
            yanchor="top",
            font={"size": 12},
        )
    fig.update_layout(barmode="stack", bargap=0)
    # none at the ends, where those of neighbours would meet
    fig.update_xaxes(range=[0, 1.03], tickformat=".0%", tickvals=[0.25, 0.5, 0.75])
    fig.update_xaxes(title="Confidence", row=2)
    fig.update_yaxes(tickformat=".0%", range=[0, 1.03])
    for column in range(2, k + 1):
        # all as in the first
        fig.update_yaxes(showticklabels=False, col=column)
    fig.update_yaxes(title="Share of items", row=1, col=1)
    fig.update_yaxes(title="Share right", row=2, col=1)
    return fig


def blend(probabilities: Array, colours: Sequence[str] | None = None) -> Array:
    """Class colours mixed by probability: a sure prediction has its class's colour, a guess is muddy.

    Args:
        probabilities: [..., C], C <= 10.
        colours: [C] as #rrggbb; red, green and blue for three classes, else the theme's.

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
    chosen = colours or (PRIMARIES if count == 3 else theme.CATEGORICAL[:count])
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in chosen], dtype=float)
    return np.clip(np.rint(p @ rgb), 0, 255).astype(np.uint8)


def blend_colours(n_classes: int) -> tuple[str, ...]:
    """The colours `blend` gives sure predictions of C classes."""
    return PRIMARIES if n_classes == 3 else theme.CATEGORICAL[:n_classes]


def blend_image(
    grid: ProbabilityGrid, opacity: float = 1.0, colours: Sequence[str] | None = None
) -> go.Image:
    """The blend of a grid as a trace; put `autorange=True` on its y axis, images stand on their head."""
    x, y = np.asarray(grid.x, dtype=float), np.asarray(grid.y, dtype=float)
    return go.Image(
        z=blend(grid.probabilities, colours),
        x0=float(x[0]),
        dx=float(x[1] - x[0]),
        y0=float(y[0]),
        dy=float(y[1] - y[0]),
        opacity=opacity,
        hoverinfo="skip",
    )


def probability_maps(
    grids: Sequence[ProbabilityGrid],
    *,
    points: Array | None = None,
    codes: Ints | None = None,
    classes: Sequence[object] = (),
    axes: tuple[str, str] = ("x1", "x2"),
    columns: int = 3,
    size: int = 330,
) -> go.Figure:
    """Class probabilities over the plane as blended colours, a panel a model (paper 002, figure 8).

    Args:
        grids: the models; all of the same classes.
        points: [n, 2] training items drawn on top.
        codes: [n] their classes.
        classes: [C] names.
        axes: titles.
        columns: panels in a row.
        size: of a panel's side, in pixels.

    Returns:
        The figure, or an empty one that says why: no model, or more than 10 classes.
    """
    if not grids:
        return theme.empty("No model to draw", size)
    count = grids[0].probabilities.shape[-1]
    if count > MOST_BLENDED:
        return theme.empty(
            f"No colour map: {count} classes, and no more than {MOST_BLENDED} colours can be told apart.",
            size,
        )
    wide = min(columns, len(grids))
    rows = -(-len(grids) // wide)
    fig = _panels(
        rows,
        wide,
        [g.title for g in grids],
        rows * size + 90,
        horizontal_spacing=0.05,
        vertical_spacing=0.28 / (rows + 1),
        shared_xaxes="all",
        shared_yaxes="all",
    )
    colours = blend_colours(count)
    for place, grid in enumerate(grids):
        row, column = place // wide + 1, place % wide + 1
        fig.add_trace(blend_image(grid), row=row, col=column)
        if points is not None and codes is not None:
            for code in np.unique(codes):
                mine = np.asarray(codes) == code
                name = theme.text(classes[code], 24) if code < len(classes) else f"class {code + 1}"
                fig.add_trace(
                    go.Scatter(
                        x=np.asarray(points)[mine, 0],
                        y=np.asarray(points)[mine, 1],
                        mode="markers",
                        name=f"{name} · n = {int(mine.sum())}",
                        legendgroup=name,
                        showlegend=place == 0,
                        marker={
                            "size": 5,
                            "color": colours[int(code)],
                            "symbol": theme.class_symbol(int(code)),
                            "line": {"width": 0.8, "color": "white"},
                        },
                        hovertemplate=f"{name}<extra></extra>",
                    ),
                    row=row,
                    col=column,
                )
    x, y = np.asarray(grids[0].x), np.asarray(grids[0].y)
    fig.update_xaxes(range=[float(x[0]), float(x[-1])], showgrid=False, constrain="domain")
    fig.update_yaxes(
        range=[float(y[0]), float(y[-1])],
        showgrid=False,
        autorange=False,
        scaleanchor=None,
        constrain="domain",
    )
    fig.update_xaxes(title=theme.text(axes[0]), row=rows)
    fig.update_yaxes(title=theme.text(axes[1]), col=1)
    return fig


def value_maps(
    grids: Sequence[ValueGrid],
    *,
    classes: Sequence[object] = (),
    axes: tuple[str, str] = ("x1", "x2"),
    ranges: Sequence[tuple[float, float]] | None = None,
    height: int = 460,
) -> go.Figure:
    """A measure over the plane, a panel a measure or a model, axes linked.

    Args:
        grids: the panels.
        classes: [C] names.
        axes: titles.
        ranges: ends of each colour scale; from the values otherwise.
        height: in pixels.

    Returns:
        The figure.
    """
    if not grids:
        return theme.empty("Nothing to draw", height)
    k = len(grids)
    fig = _panels(
        1, k, [g.title for g in grids], height, horizontal_spacing=0.26 / k, shared_xaxes="all",
        shared_yaxes="all",
    )  # fmt: skip
    told: set[int] = set()
    for column, grid in enumerate(grids, start=1):
        low, high = (
            ranges[column - 1]
            if ranges is not None
            else (float(np.nanmin(grid.values)), float(np.nanmax(grid.values)))
        )
        domain = fig.layout["xaxis" if column == 1 else f"xaxis{column}"].domain
        fig.add_trace(
            go.Heatmap(
                x=grid.x,
                y=grid.y,
                z=grid.values,
                zmin=low,
                zmax=high if high > low else low + 1,
                colorscale=[list(stop) for stop in theme.SEQUENTIAL],
                colorbar={
                    "x": domain[1] + 0.005,
                    "thickness": 10,
                    "len": 0.9,
                    "outlinewidth": 0,
                    "title": {"text": theme.text(grid.unit), "side": "right"},
                },
                hovertemplate=f"{theme.text(grid.title)} %{{z:.3f}}<extra></extra>",
            ),
            row=1,
            col=column,
        )
        if grid.points is None or grid.codes is None:
            continue
        for code in np.unique(grid.codes):
            mine = np.asarray(grid.codes) == code
            name = theme.text(classes[code], 24) if code < len(classes) else f"class {code + 1}"
            fig.add_trace(
                go.Scatter(
                    x=np.asarray(grid.points)[mine, 0],
                    y=np.asarray(grid.points)[mine, 1],
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    showlegend=int(code) not in told,
                    marker={
                        "size": 8,
                        "color": theme.class_colour(int(code)),
                        "symbol": theme.class_symbol(int(code)),
                        "line": {"width": 1.2, "color": "white"},
                    },
                    hovertemplate=f"{name}<extra></extra>",
                ),
                row=1,
                col=column,
            )
            told.add(int(code))
    fig.update_xaxes(title=theme.text(axes[0]), showgrid=False)
    fig.update_yaxes(showgrid=False)
    fig.update_yaxes(title=theme.text(axes[1]), col=1)
    counts = [0 if g.points is None else len(g.points) for g in grids]
    if max(counts):
        _foot(fig, "n = " + " and ".join(f"{c:,}" for c in dict.fromkeys(counts)) + " labels")
    return fig


def asked_maps(
    panels: Mapping[str, tuple[Ints, Ints]],
    points: Array,
    codes: Ints,
    *,
    classes: Sequence[object] = (),
    axes: tuple[str, str] = ("x1", "x2"),
    height: int = 460,
) -> go.Figure:
    """Where policies looked: items in the order they were asked about, later ones darker.

    Args:
        panels: title -> (items before the first question, items asked about in order).
        points: [N, 2] the pool.
        codes: [N] its classes.
        classes: [C] names.
        axes: titles.
        height: in pixels.

    Returns:
        The figure.
    """
    if not panels:
        return theme.empty("Nobody has asked yet", height)
    fig = _panels(
        1, len(panels), list(panels), height, horizontal_spacing=0.05, shared_xaxes="all", shared_yaxes="all"
    )
    points, codes = np.asarray(points), np.asarray(codes)
    for column, (title, (initial, asked)) in enumerate(panels.items(), start=1):
        for code in np.unique(codes):
            mine = codes == code
            name = theme.text(classes[code], 24) if code < len(classes) else f"class {code + 1}"
            fig.add_trace(
                go.Scattergl(
                    x=points[mine, 0],
                    y=points[mine, 1],
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    showlegend=column == 1,
                    marker={
                        "size": 5,
                        "opacity": 0.45,
                        "color": theme.class_colour(int(code)),
                        "symbol": theme.class_symbol(int(code)),
                    },
                    hoverinfo="skip",
                ),
                row=1,
                col=column,
            )
        if len(initial):
            fig.add_trace(
                go.Scatter(
                    x=points[initial, 0],
                    y=points[initial, 1],
                    mode="markers",
                    name="given at the start",
                    legendgroup="start",
                    showlegend=column == 1,
                    marker={
                        "size": 13,
                        "symbol": "square-open",
                        "color": theme.NEUTRAL,
                        "line": {"width": 3},
                    },
                    hovertemplate="given at the start<extra></extra>",
                ),
                row=1,
                col=column,
            )
        if len(asked):
            order = np.arange(1, len(asked) + 1)
            fig.add_trace(
                go.Scatter(
                    x=points[asked, 0],
                    y=points[asked, 1],
                    mode="markers",
                    name="asked",
                    legendgroup="asked",
                    showlegend=column == 1,
                    marker={
                        "size": 12,
                        "color": order,
                        "cmin": 1,
                        "cmax": max(len(asked), 2),
                        "colorscale": [list(stop) for stop in theme.MEASURE],
                        "line": {"width": 1.5, "color": "white"},
                        "showscale": column == len(panels),
                        "colorbar": {
                            "title": {"text": "question", "side": "right"},
                            "thickness": 10,
                            "len": 0.9,
                        },
                    },
                    customdata=order,
                    hovertemplate=f"{theme.text(title)}<br>question %{{customdata}}<extra></extra>",
                ),
                row=1,
                col=column,
            )
    fig.update_xaxes(title=theme.text(axes[0]))
    fig.update_yaxes(title=theme.text(axes[1]), col=1)
    _foot(fig, f"n = {len(points):,} items, {max(len(a) for _, a in panels.values())} questions")
    return fig


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
        The figure (paper 003, figure 5).
    """
    if not len(grid):
        return theme.empty("The line has no length", height)
    mean, spread = np.asarray(mean), 1.96 * np.sqrt(np.asarray(variance))
    fig = _panels(
        2, 1, ("Latent functions, 95 % bands", "Class probabilities"), height, shared_xaxes=True,
        row_heights=[0.6, 0.4], vertical_spacing=0.12,
    )  # fmt: skip
    for code in range(mean.shape[1]) if shown is None else shown:
        colour = theme.class_colour(code)
        name = theme.text(classes[code], 24) if code < len(classes) else f"class {code + 1}"
        dash = DASHES[code % len(DASHES)]
        fig.add_trace(
            go.Scatter(
                x=np.concatenate([grid, grid[::-1]]),
                y=np.concatenate([mean[:, code] + spread[:, code], (mean[:, code] - spread[:, code])[::-1]]),
                fill="toself",
                fillcolor=theme.translucent(colour, 0.13),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=name,
            ),
            row=1,
            col=1,
        )
        for row, values, fmt in ((1, mean[:, code], ":.2f"), (2, np.asarray(probabilities)[:, code], ":.1%")):
            fig.add_trace(
                go.Scatter(
                    x=grid,
                    y=values,
                    mode="lines",
                    name=name,
                    legendgroup=name,
                    showlegend=row == 1,
                    line={"color": colour, "width": 2.2, "dash": dash},
                    hovertemplate=f"<b>{name}</b> %{{y{fmt}}}<extra></extra>",
                ),
                row=row,
                col=1,
            )
    fig.update_yaxes(title="f", row=1)
    fig.update_yaxes(title="p", range=[0, 1.02], tickformat=".0%", row=2)
    fig.update_xaxes(title=theme.text(axis), row=2)
    if mark is not None:
        fig.add_vline(x=mark, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    return fig


def agreement(
    rows: Mapping[str, Mapping[str, tuple[Array, Array]]], *, against: str = "Gibbs", size: int = 290
) -> go.Figure:
    """Values of approximations against exact ones with the diagonal; a row each, a column a quantity.

    Args:
        rows: approximation -> quantity -> (exact values, its values), of any equal shape; every row
            has the same quantities.
        against: the exact one's name.
        size: of a panel, in pixels.

    Returns:
        The figure; n and the mean distance are printed in each panel (paper 002, figure 5).
    """
    if not rows:
        return theme.empty("Nothing to compare", size)
    quantities = list(next(iter(rows.values())))
    wide = len(quantities)
    fig = _panels(
        len(rows),
        wide,
        quantities,
        len(rows) * size + 60,
        horizontal_spacing=0.18 / wide,
        vertical_spacing=0.2 / len(rows),
    )
    fig.update_layout(showlegend=False, margin={"t": 40})
    panels = [(name, what, *pair) for name, row in rows.items() for what, pair in row.items()]
    for place, (name, what, exact, ours) in enumerate(panels):
        row, column = place // wide + 1, place % wide + 1
        a, b = np.ravel(np.asarray(exact, dtype=float)), np.ravel(np.asarray(ours, dtype=float))
        ends = [float(min(a.min(), b.min())), float(max(a.max(), b.max()))]
        fig.add_trace(
            go.Scatter(
                x=ends, y=ends, mode="lines", line={"color": theme.NEUTRAL, "dash": "dot"}, hoverinfo="skip"
            ),
            row=row, col=column,
        )  # fmt: skip
        fig.add_trace(
            go.Scatter(
                x=a,
                y=b,
                mode="markers",
                marker={"size": 5, "opacity": 0.7, "color": theme.class_colour(place // wide)},
                hovertemplate=f"{theme.text(what)}<br>{theme.text(against)} %{{x:.3f}}<br>"
                f"{theme.text(name)} %{{y:.3f}}<extra></extra>",
            ),
            row=row,
            col=column,
        )
        axis = "" if place == 0 else str(place + 1)
        fig.add_annotation(
            text=f"n = {len(a)}<br>mean |Δ| = {np.abs(a - b).mean():.3g}",
            align="left", showarrow=False, x=0.03, y=0.97, xref=f"x{axis} domain", yref=f"y{axis} domain",
            xanchor="left", yanchor="top", font={"size": 12},
        )  # fmt: skip
        if column == 1:
            fig.update_yaxes(title=theme.text(name), row=row, col=1)
    fig.update_xaxes(title=theme.text(against), row=len(rows))
    return fig


def trade_offs(curves: Sequence[TradeCurve], *, mark: float | None = None, height: int = 600) -> go.Figure:
    """Error, likelihood, calibration error and processor time of a fit against the inducing points.

    Args:
        curves: as far as they are fitted.
        mark: a number of inducing points to mark.
        height: in pixels.

    Returns:
        The figure (paper 002, figure 6); says so when nothing is fitted yet.
    """
    if not any(len(curve.points) for curve in curves):
        return theme.empty("No fit is finished yet", height)
    fig = _panels(
        2,
        2,
        (
            "Test error",
            "NLL, nats",
            "ECE, 15 bins",
            "CPU seconds",
        ),
        height,
        horizontal_spacing=0.1,
        vertical_spacing=0.14,
    )
    for rank, curve in enumerate(curves):
        name = theme.text(curve.name)
        for place, (values, shown) in enumerate(
            ((curve.error, ":.1%"), (curve.nll, ":.3f"), (curve.ece, ":.3f"), (curve.seconds, ":.2f"))
        ):
            fig.add_trace(
                go.Scatter(
                    x=curve.points,
                    y=values,
                    mode="lines+markers",
                    name=name,
                    legendgroup=name,
                    showlegend=place == 0,
                    line={"color": theme.class_colour(rank), "dash": DASHES[rank], "width": 2.2},
                    marker={"symbol": theme.class_symbol(rank), "size": 7},
                    hovertemplate=f"<b>{name}</b><br>%{{x}} points: %{{y{shown}}}<extra></extra>",
                ),
                row=place // 2 + 1,
                col=place % 2 + 1,
            )
    ticks = sorted({float(v) for curve in curves for v in curve.points})
    fig.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{t:g}" for t in ticks])
    fig.update_xaxes(title="Inducing points of each class", row=2)
    fig.update_yaxes(rangemode="tozero")
    fig.update_yaxes(tickformat=".0%", row=1, col=1)
    if mark is not None:
        fig.add_vline(x=mark, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    _foot(fig, f"n = {max(curve.n for curve in curves):,} test items")
    return fig


def _foot(fig: go.Figure, words: str) -> None:
    """Say n under the last panel's axis, where no legend can run into it."""
    if words:
        axis = list(fig.select_xaxes())[-1]
        axis.title.text = f"{axis.title.text or ''}<br><span style='font-size:12px'>{words}</span>"
