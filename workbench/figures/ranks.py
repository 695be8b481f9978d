"""Figures about ranks, pairs of methods, times, and functions on a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.arrays import Array
from workbench.figures import theme
from workbench.metrics import cliques


def critical_difference_diagram(
    names: Sequence[str], mean_ranks: Sequence[float] | Array, critical_difference: float
) -> go.Figure:
    """Mean ranks on a line, best at the left; bars join methods that are not told apart (Demsar 2006).

    Args:
        names: [K] of the methods.
        mean_ranks: [K].
        critical_difference: of Nemenyi's test; NaN draws no bars.

    Returns:
        The figure.
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    if not len(ranks):
        return theme.empty("Nothing to rank yet")
    order = np.argsort(ranks, kind="stable")
    bars = cliques(ranks, critical_difference)
    rows = len(order)
    fig = theme.figure(
        x="Mean rank, 1 is best",
        height=110 + 30 * rows + 14 * len(bars),
        legend=False,
        x_options={"range": [0.8, len(ranks) + 0.2], "side": "top", "dtick": 1},
        y_options={"visible": False, "range": [-rows - 0.9, 1.2 + 0.45 * len(bars)]},
    )
    for place, index in enumerate(order):
        y = -float(place)
        colour = theme.class_colour(place)
        fig.add_trace(
            go.Scatter(
                x=[ranks[index], ranks[index]],
                y=[0.35 + 0.45 * len(bars), y],
                mode="lines",
                line={"color": theme.GRID, "width": 1},
                hoverinfo="skip",
            )
        )
        fig.add_trace(
            go.Scatter(
                x=[ranks[index]],
                y=[y],
                mode="markers+text",
                marker={"size": 11, "color": colour},
                text=f"  {theme.text(names[index])} {ranks[index]:.2f}  ",
                # a name near the right end would leave the figure
                textposition="middle left" if ranks[index] > 0.62 * (len(ranks) + 1) else "middle right",
                hovertemplate=f"{theme.text(names[index])}<br>mean rank {ranks[index]:.3f}<extra></extra>",
            )
        )
    ordered = ranks[order]
    for level, (first, last) in enumerate(bars):
        fig.add_trace(
            go.Scatter(
                x=[ordered[first] - 0.03, ordered[last] + 0.03],
                y=[0.6 + 0.45 * level] * 2,
                mode="lines",
                line={"color": theme.NEUTRAL, "width": 6},
                hovertemplate="not told apart<extra></extra>",
            )
        )
    if np.isfinite(critical_difference):
        fig.add_annotation(
            text=f"critical difference {critical_difference:.2f}; grey bars join what is not told apart",
            showarrow=False,
            xref="paper",
            yref="paper",
            x=0,
            y=0,
            xanchor="left",
            yanchor="bottom",
            font={"size": 11, "color": theme.NEUTRAL},
        )
    return fig


def rank_curves(
    rounds: Array, ranks: Mapping[str, Array], *, baseline: str = "", x: str = "Questions asked"
) -> go.Figure:
    """Mean rank of each policy against the number of questions.

    Args:
        rounds: [R].
        ranks: name -> [R] mean ranks.
        baseline: the name drawn in grey.
        x: title of the x axis.

    Returns:
        The figure; low is better.
    """
    fig = theme.figure(x=x, y="Mean rank, 1 is best", height=420)
    place = 0
    for name, values in ranks.items():
        grey = name == baseline
        fig.add_trace(
            go.Scatter(
                x=rounds,
                y=values,
                mode="lines",
                name=theme.text(name),
                line={
                    "color": theme.NEUTRAL if grey else theme.class_colour(place),
                    "dash": "dot" if grey else "solid",
                    "width": 2.2,
                },
            )
        )
        place += not grey
    return fig


def pairwise_scatter(
    first: Array, second: Array, names: Sequence[str], *, x: str, y: str, share: bool = True
) -> go.Figure:
    """One method against another, a point a data set, with the diagonal.

    Args:
        first: [M] of the method on the x axis.
        second: [M] of the other.
        names: [M] of the data sets.
        x: the first method.
        y: the second.
        share: whether values are shares, shown in percent.

    Returns:
        The figure; above the diagonal the second has the higher value.
    """
    both = np.concatenate([np.asarray(first), np.asarray(second)])
    low, high = (float(np.min(both)), float(np.max(both))) if both.size else (0.0, 1.0)
    pad = 0.03 * max(high - low, 1e-9)
    ends = [low - pad, high + pad]
    form = {"tickformat": ".0%"} if share else {}
    fig = theme.figure(
        x=f"{x}: accuracy" if share else x,
        y=f"{y}: accuracy" if share else y,
        height=460,
        legend=False,
        x_options={"range": ends, **form},
        y_options={"range": ends, **form},
    )
    fig.add_trace(
        go.Scatter(
            x=ends, y=ends, mode="lines", line={"color": theme.NEUTRAL, "dash": "dot"}, hoverinfo="skip"
        )
    )
    shown = ":.1%" if share else ":.3f"
    fig.add_trace(
        go.Scatter(
            x=first,
            y=second,
            mode="markers",
            marker={"size": 8, "color": theme.CATEGORICAL[0], "opacity": 0.75},
            text=[theme.text(n) for n in names],
            hovertemplate=f"%{{text}}<br>{theme.text(x)} %{{x{shown}}}<br>{theme.text(y)} %{{y{shown}}}"
            "<extra></extra>",
        )
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
    for place, (method, values) in enumerate(ratios.items()):
        colour = theme.class_colour(place)
        fig.add_trace(
            go.Scatter(
                x=values,
                y=[theme.text(method)] * len(values),
                mode="markers",
                marker={"size": 8, "color": theme.translucent(colour, 0.5)},
                text=[theme.text(n) for n in names],
                hovertemplate="%{text}: %{x:.2f} times<extra></extra>",
            )
        )
        fig.add_trace(
            go.Scatter(
                x=[float(np.median(values))],
                y=[theme.text(method)],
                mode="markers",
                marker={"size": 22, "symbol": "line-ns-open", "color": colour, "line": {"width": 3}},
                hovertemplate="median %{x:.2f} times<extra></extra>",
            )
        )
    fig.add_vline(x=1, line={"color": theme.NEUTRAL, "dash": "dot"})
    return fig


def time_curves(
    curves: Mapping[str, tuple[Array, Array]],
    *,
    y: str,
    share: bool = True,
    dashed: Mapping[str, float] = {},
) -> go.Figure:
    """A measure against seconds of training on a logarithmic axis, a line a method.

    Args:
        curves: method -> (seconds [R], values [R]).
        y: title of the y axis.
        share: whether values are shares, shown in percent.
        dashed: text -> height of a dashed line.

    Returns:
        The figure.
    """
    fig = theme.figure(
        x="Training time, CPU seconds",
        y=y,
        height=420,
        x_options={"type": "log", "dtick": "D2"},
        y_options={"tickformat": ".0%" if share else ""},
    )
    for place, (method, (seconds, values)) in enumerate(curves.items()):
        fig.add_trace(
            go.Scatter(
                x=seconds,
                y=values,
                mode="lines+markers",
                name=theme.text(method),
                line={"color": theme.class_colour(place), "width": 2.2},
                marker={"size": 6, "symbol": theme.SYMBOLS[place % len(theme.SYMBOLS)]},
            )
        )
    for words, height in dashed.items():
        fig.add_hline(
            y=height, line={"color": theme.NEUTRAL, "dash": "dash"}, annotation_text=theme.text(words)
        )
    return fig


def series(
    lines: Mapping[str, tuple[Array, Array]],
    *,
    x: str,
    y: str,
    spread: Mapping[str, Array] = {},
    logarithmic: bool = False,
    share: bool = False,
    marks: Mapping[str, float] = {},
) -> go.Figure:
    """Lines with markers, maybe with error bars, and vertical marks.

    Args:
        lines: name -> (x [R], y [R]).
        x: title of the x axis.
        y: title of the y axis.
        spread: name -> [R] half lengths of error bars.
        logarithmic: whether the x axis is.
        share: whether y values are shares, shown in percent.
        marks: text -> x of a vertical line.

    Returns:
        The figure.
    """
    fig = theme.figure(
        x=x,
        y=y,
        height=400,
        x_options={"type": "log", "dtick": "D2"} if logarithmic else {},
        y_options={"tickformat": ".0%"} if share else {},
    )
    for place, (name, (at, values)) in enumerate(lines.items()):
        bars = spread.get(name)
        fig.add_trace(
            go.Scatter(
                x=at,
                y=values,
                mode="lines+markers",
                name=theme.text(name),
                error_y=None if bars is None else {"type": "data", "array": bars, "thickness": 1.2},
                line={"color": theme.class_colour(place), "width": 2.2},
                marker={"size": 6, "symbol": theme.SYMBOLS[place % len(theme.SYMBOLS)]},
            )
        )
    for words, where in marks.items():
        fig.add_vline(
            x=where, line={"color": theme.NEUTRAL, "dash": "dash"}, annotation_text=theme.text(words)
        )
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
    base = theme.figure(height=760)
    fig = make_subplots(
        rows=4,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.05,
        row_heights=[0.12, 0.26, 0.36, 0.26],
        subplot_titles=("Items", "LMGP: probabilities", "LMGP: latent functions, 95 %", "SVM: probabilities"),
    )
    fig.update_layout(base.layout.to_plotly_json() | {"xaxis": {}, "yaxis": {}})
    fig.update_layout(legend={"y": 1.06})
    for c in range(probabilities.shape[1]):
        colour, name = theme.class_colour(c), f"class {c + 1}"
        mine = codes == c
        fig.add_trace(
            go.Scatter(
                x=x[mine],
                y=np.zeros(int(mine.sum())),
                mode="markers",
                name=name,
                legendgroup=name,
                marker={"color": colour, "symbol": theme.class_symbol(c), "size": 8, "opacity": 0.7},
            ),
            row=1,
            col=1,
        )
        line = {"color": colour, "width": 2.2}
        for row, values in ((2, probabilities), (3, mean), (4, others)):
            fig.add_trace(
                go.Scatter(
                    x=grid,
                    y=values[:, c],
                    mode="lines",
                    line=line,
                    name=name,
                    legendgroup=name,
                    showlegend=False,
                ),
                row=row,
                col=1,
            )
        fig.add_trace(
            go.Scatter(
                x=np.concatenate([grid, grid[::-1]]),
                y=np.concatenate(
                    [mean[:, c] + 1.96 * spread[:, c], (mean[:, c] - 1.96 * spread[:, c])[::-1]]
                ),
                fill="toself",
                fillcolor=theme.translucent(colour, 0.14),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=name,
            ),
            row=3,
            col=1,
        )
    fig.update_xaxes(gridcolor=theme.GRID, zeroline=False)
    fig.update_yaxes(gridcolor=theme.GRID, zeroline=False)
    fig.update_yaxes(visible=False, row=1, col=1)
    fig.update_xaxes(title="x", row=4, col=1)
    return fig
