"""Figures about ranks, pairs of methods, times, and functions on a line."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import parts, theme
from workbench.metrics import cliques


def critical_difference_diagram(
    names: Sequence[str], mean_ranks: Sequence[float] | Array, critical_difference: float
) -> go.Figure:
    """Mean ranks on a line, best at the left; bars join methods that are not told apart (Demsar 2006).

    Args:
        names: [K] of the methods.
        mean_ranks: [K]; a method with NaN is left out.
        critical_difference: of Nemenyi's test; NaN draws no bars.

    Returns:
        The figure.
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    names = [name for name, rank in zip(names, ranks, strict=True) if np.isfinite(rank)]
    ranks = ranks[np.isfinite(ranks)]
    if not len(ranks):
        return theme.empty("Nothing to rank yet")
    bars, rows = cliques(ranks, critical_difference), len(ranks)
    fig = theme.figure(
        x="Mean rank, 1 is best",
        height=110 + 30 * rows + 14 * len(bars),
        legend=False,
        x_options={"range": [0.8, rows + 0.2], "side": "top", "dtick": 1},
        y_options={"visible": False, "range": [-rows - 0.9, 1.2 + 0.45 * len(bars)]},
    )
    order = np.argsort(ranks, kind="stable")
    for place, index in enumerate(order):
        at, name = ranks[index], theme.text(names[index])
        fig.add_scatter(
            x=[at, at],
            y=[0.35 + 0.45 * len(bars), -place],
            mode="lines",
            hoverinfo="skip",
            line={"color": theme.GRID, "width": 1},
        )
        fig.add_scatter(
            x=[at],
            y=[-place],
            mode="markers+text",
            text=f"  {name} {at:.2f}  ",
            marker={"size": 11, "color": theme.class_colour(int(index))},
            # a name near the right end would leave the figure
            textposition="middle left" if at > 0.62 * (rows + 1) else "middle right",
            hovertemplate=f"{name}<br>mean rank {at:.3f}<extra></extra>",
        )
    for level, (first, last) in enumerate(bars):
        fig.add_scatter(
            x=[ranks[order[first]] - 0.03, ranks[order[last]] + 0.03],
            y=[0.6 + 0.45 * level] * 2,
            mode="lines",
            line={"color": theme.NEUTRAL, "width": 6},
            hovertemplate="not told apart<extra></extra>",
        )
    if np.isfinite(critical_difference):
        words = f"critical difference {critical_difference:.2f}; grey bars join what is not told apart"
        parts.corner(fig, words)
        fig.update_annotations(x=0, xanchor="left")
    return fig


def series(
    lines: Mapping[str, tuple[Array, Array]],
    *,
    x: str,
    y: str,
    spread: Mapping[str, Array] = {},
    logarithmic: bool = False,
    share: bool = False,
    points: bool = True,
    baseline: str = "",
    marks: Mapping[str, float] = {},
    heights: Mapping[str, float] = {},
) -> go.Figure:
    """Lines, maybe with error bars, and lines that mark an x or a height.

    Args:
        lines: name -> (x [R], y [R]).
        x: title of the x axis.
        y: title of the y axis.
        spread: name -> [R] half lengths of error bars.
        logarithmic: whether the x axis is.
        share: whether y values are shares, shown in percent.
        points: whether the points are drawn.
        baseline: the name drawn in grey.
        marks: text -> x of a vertical line.
        heights: text -> y of a horizontal line.

    Returns:
        The figure.
    """
    fig = theme.figure(
        x=x,
        y=y,
        height=410,
        x_options={"type": "log", "dtick": "D2"} if logarithmic else {},
        y_options={"tickformat": ".1~%"} if share else {},
    )
    looks = parts.looks(lines, [baseline])
    for name, (at, values) in lines.items():
        half = spread.get(name)
        bars = None if half is None else parts.error_bars(values, values - half, values + half, width=1.2)
        hover = "%{x:.4~g}: %{y" + (":.1%}" if share else ":.4~g}")
        fig.add_trace(parts.line(at, values, name, looks[name], marks=points, bars=bars, hover=hover))
    dashed = {"line": {"color": theme.NEUTRAL, "dash": "dash"}}
    for words, where in marks.items():
        fig.add_vline(x=where, annotation_text=theme.text(words), **dashed)
    for words, where in heights.items():
        fig.add_hline(y=where, annotation_text=theme.text(words), **dashed)
    return fig


def time_curves(curves: Mapping[str, tuple[Array, Array]], *, y: str, share: bool = True) -> go.Figure:
    """A measure against seconds of training on a logarithmic axis, a line a method.

    Args:
        curves: method -> (seconds [R], values [R]).
        y: title of the y axis.
        share: whether values are shares, shown in percent.

    Returns:
        The figure.
    """
    return series(curves, x="Training time, CPU seconds", y=y, logarithmic=True, share=share)


def pairwise_scatter(first: Array, second: Array, names: Sequence[str], *, x: str, y: str) -> go.Figure:
    """Accuracy of one method against another's, a point a data set, with the diagonal.

    Args:
        first: [M] of the method on the x axis.
        second: [M] of the other.
        names: [M] of the data sets.
        x: the first method.
        y: the second.

    Returns:
        The figure; above the diagonal the second is better.
    """
    accuracies = np.concatenate([np.asarray(first), np.asarray(second)])
    low, high = (float(np.min(accuracies)), float(np.max(accuracies))) if accuracies.size else (0.0, 1.0)
    pad = 0.03 * max(high - low, 1e-9)
    ends = [low - pad, high + pad]
    form = {"tickformat": ".1~%", "range": ends}
    fig = theme.figure(
        x=f"{x}: accuracy", y=f"{y}: accuracy", height=460, legend=False, x_options=form, y_options=form
    )
    fig.add_trace(parts.diagonal(ends))
    fig.add_scatter(
        x=first,
        y=second,
        mode="markers",
        text=[theme.text(n) for n in names],
        marker={"size": 8, "color": theme.CATEGORICAL[0], "opacity": 0.75},
        hovertemplate=f"%{{text}}<br>{theme.text(x)} %{{x:.1%}}<br>{theme.text(y)} %{{y:.1%}}<extra></extra>",
    )
    return fig


def ratio_strip(ratios: Mapping[str, Array], names: Sequence[str]) -> go.Figure:
    """Times over a reference's on a logarithmic axis, a point a data set, a row a method.

    Args:
        ratios: method -> [M].
        names: [M] of the data sets.

    Returns:
        The figure, with the median of each row marked.
    """
    fig = theme.figure(
        x="Training time over the reference's",
        height=90 + 52 * max(1, len(ratios)),
        legend=False,
        x_options={"type": "log", "dtick": "D2"},
        y_options={"autorange": "reversed"},
    )
    for place, (method, values) in enumerate(ratios.items(), 1):  # the reference has the first colour
        colour, row = theme.class_colour(place), theme.text(method)
        fig.add_scatter(
            x=values,
            y=[row] * len(values),
            mode="markers",
            text=[theme.text(n) for n in names],
            marker={"size": 8, "color": theme.translucent(colour, 0.5)},
            hovertemplate="%{text}: %{x:.2f} times<extra></extra>",
        )
        fig.add_scatter(
            x=[float(np.median(values))],
            y=[row],
            mode="markers",
            marker={"size": 22, "symbol": "line-ns-open", "color": colour, "line": {"width": 3}},
            hovertemplate="median %{x:.2f} times<extra></extra>",
        )
    fig.add_vline(x=1, line={"color": theme.NEUTRAL, "dash": "dot"})
    return fig


def line_panels(
    grid: Array, x: Array, codes: Array, probabilities: Array, mean: Array, spread: Array, others: Array
) -> go.Figure:
    """Four panels over one axis: the data, probabilities, latents with bands, another's probabilities.

    Args:
        grid: [G].
        x: [N] items.
        codes: [N] their classes.
        probabilities: [G, C].
        mean: [G, C] of the latents.
        spread: [G, C] their standard deviations.
        others: [G, C] another model's probabilities.

    Returns:
        The figure.
    """
    titles = ("Items", "LMGP: probabilities", "LMGP: latent functions, 95 %", "SVM: probabilities")
    fig = parts.panels(
        titles,
        height=760,
        rows=4,
        x="x",
        shared_xaxes=True,
        vertical_spacing=0.05,
        row_heights=[0.12, 0.26, 0.36, 0.26],
    )
    looks = parts.looks(f"class {c + 1}" for c in range(probabilities.shape[1]))
    for c, (name, look) in enumerate(looks.items()):
        positions = x[codes == c]
        solid = look._replace(dash="solid")
        items = parts.line(
            positions, np.zeros(len(positions)), name, solid, mode="markers", marker_opacity=0.7
        )
        fig.add_trace(items, row=1, col=1)
        for row, values in ((2, probabilities), (3, mean), (4, others)):
            fig.add_trace(
                parts.line(grid, values[:, c], name, solid, legend=False, marks=False), row=row, col=1
            )
        half = 1.96 * spread[:, c]
        fig.add_trace(parts.band(grid, mean[:, c] - half, mean[:, c] + half, look.colour, name), row=3, col=1)
    fig.update_yaxes(visible=False, row=1, col=1)
    return fig
