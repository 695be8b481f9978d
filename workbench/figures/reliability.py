"""Reliability: how often the model is right against how sure it says it is."""

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import parts, theme
from workbench.metrics import ReliabilityTable
from workbench.shares import in_percent

ROOM = 1.04
"""End of the axes of shares: the largest circle is drawn whole."""
FEW = 5
"""Items of a bin below which its share right says next to nothing: it is faint, and no line leads there."""


def reliability_line(table: ReliabilityTable, *, largest: float = 29) -> go.Scatter:
    """Accuracy against mean confidence of each bin that is not empty, with the interval of each accuracy.

    Args:
        table: the bins.
        largest: diameter of the largest circle, in pixels; circles grow with the number of items.
    """
    return _points(table, table.count > 0, largest=largest)


def _points(table: ReliabilityTable, full: Array, *, bars: bool = True, largest: float = 29) -> go.Scatter:
    """Some of the bins, joined by a line."""
    count, accuracy = table.count[full], table.accuracy[full]
    return go.Scatter(
        x=table.confidence[full],
        y=accuracy,
        error_y=parts.error_bars(accuracy, *(end[full] for end in table.band)) if bars else None,
        customdata=count,
        showlegend=False,
        mode="lines+markers",
        line={"color": theme.class_colour(0), "width": 2},
        cliponaxis=False,
        marker={"size": 7 + (largest - 7) * np.sqrt(count / np.max(table.count)), "opacity": 0.85},
        hovertemplate="says %{x:.1%}, is right %{y:.1%}<br>n = %{customdata:,}<extra></extra>",
    )


def histogram_bars(
    table: ReliabilityTable, *, share: bool = False, legend: bool = True, count: bool = False
) -> list[go.Bar]:
    """Items by confidence, right ones below wrong ones.

    Args:
        table: the bins.
        share: whether shares of all items are drawn instead of numbers.
        legend: whether the two stand in the legend.
        count: whether the legend says how many.
    """
    bars = []
    for code, (name, items) in enumerate((("right", table.right), ("wrong", table.wrong))):
        bars.append(
            go.Bar(
                x=(table.lower + table.upper) / 2,
                y=items / table.count.sum() if share else items,
                width=0.92 * (table.upper - table.lower),
                name=f"{name} · n = {int(items.sum()):,}" if count else name,
                legendgroup=name,
                showlegend=legend,
                marker={"color": theme.class_colour(code), "line": {"width": 0}},
                customdata=items,
                hovertemplate=f"%{{x:.0%}}: %{{customdata:,}} {name}<extra></extra>",
            )
        )
    return bars


def reliability_diagram(
    table: ReliabilityTable,
    *,
    bars: bool = True,
    event: str = "the prediction",
    height: int = 380,
) -> go.Figure:
    """Accuracy against mean confidence in each bin; circles grow with the number of items.

    Bins of fewer than `FEW` items are faint and not joined, where there are others.

    Args:
        table: the bins.
        bars: whether the interval of the share right of each bin is drawn.
        event: what the confidence is in, for the axis ("the prediction", or a class).
        height: in pixels.

    Returns:
        The figure; n is printed on it.
    """
    count, total = table.count, int(table.count.sum())
    if total == 0:
        return theme.empty("No item with a known class to measure on", height)
    share = {"range": [0, ROOM], "tickformat": ".0%"}
    fig = theme.figure(
        x="How sure it says it is",
        y="How often it is right" if event == "the prediction" else f"Share that is {theme.text(event, 24)}",
        height=height,
        legend=False,
        x_options=share,
        y_options=share,
    )
    few = (count > 0) & (count < FEW)
    if not few.any() or not (count >= FEW).any():
        fig.add_traces([parts.diagonal(), _points(table, count > 0, bars=bars)])
    else:
        faint = _points(table, few, bars=False)
        faint.update(mode="markers", marker={"color": theme.NEUTRAL, "opacity": 0.55})
        fig.add_traces([parts.diagonal(), _points(table, count >= FEW, bars=bars), faint])
    # below, since intervals reach into every corner
    parts.foot(fig, f"n = {total:,}")
    return fig


def confidence_histogram(table: ReliabilityTable, *, height: int = 380) -> go.Figure:
    """Numbers of items by predicted confidence, right ones below wrong ones.

    Args:
        table: the bins; the accuracy of all is marked by a solid line and its mean confidence by a dashed
            one: the gap between the two is over-confidence.
        height: in pixels.

    Returns:
        The figure; n is printed on it.
    """
    if not table.count.any():
        return theme.empty("No item with a known class to measure on", height)
    fig = theme.figure(
        x="Confidence", y="Items", height=height, x_options={"range": [0, ROOM], "tickformat": ".0%"}
    )
    fig.add_traces(histogram_bars(table, count=True))
    fig.update_layout(barmode="stack", bargap=0)
    # room above the tallest bar for the two lines' words
    fig.update_yaxes(range=[0, 1.3 * float(table.count.max())])
    for value, dash, words, y in (
        (table.mean_accuracy, "solid", f"accuracy {in_percent(table.mean_accuracy)}", 1.0),
        (table.mean_confidence, "dash", f"mean confidence {in_percent(table.mean_confidence)}", 0.9),
    ):
        on_left = value > 0.5
        fig.add_vline(x=value, line={"color": theme.NEUTRAL, "dash": dash, "width": 2})
        fig.add_annotation(
            x=value,
            y=y,
            yref="paper",
            text=words,
            showarrow=False,
            xanchor="right" if on_left else "left",
            xshift=-6 if on_left else 6,
        )
    return fig
