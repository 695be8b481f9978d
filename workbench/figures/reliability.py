"""Reliability: how often the model is right against how sure it says it is."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import theme


def reliability_diagram(
    confidence: Array,
    accuracy: Array,
    counts: Array,
    *,
    ece: float | None = None,
    band: tuple[Array, Array] | None = None,
    event: str = "the prediction",
    height: int = 380,
) -> go.Figure:
    """Accuracy against mean confidence in each bin; circles grow with the number of items.

    Args:
        confidence: [B] mean confidence of each bin, NaN where empty.
        accuracy: [B] share right in each bin.
        counts: [B] items in each bin.
        ece: expected calibration error, printed on the figure.
        band: ends [B] of an interval for the share right of each bin, drawn as bars; NaN where empty.
        event: what the confidence is in, for the axis ("the prediction", or a class).
        height: in pixels.

    Returns:
        The figure; n is printed on it.
    """
    counts = np.asarray(counts)
    full = counts > 0
    total = int(counts.sum())
    if total == 0:
        return theme.empty("No item with a known class to measure on", height)
    fig = theme.figure(
        x="Mean confidence",
        y="Share right" if event == "the prediction" else f"Share that is {theme.text(event, 24)}",
        height=height,
        legend=False,
        x_options={"range": [0, 1.02], "tickformat": ".0%", "constrain": "domain"},
        y_options={"range": [0, 1.02], "tickformat": ".0%", "scaleanchor": "x", "constrain": "domain"},
    )
    fig.add_trace(
        go.Scatter(
            x=[0, 1], y=[0, 1], mode="lines", line={"color": theme.NEUTRAL, "dash": "dot"}, hoverinfo="skip"
        )
    )
    fig.add_trace(
        go.Scatter(
            x=np.asarray(confidence)[full],
            y=np.asarray(accuracy)[full],
            mode="lines+markers",
            line={"color": theme.class_colour(0), "width": 2},
            marker={"size": 7 + 22 * np.sqrt(counts[full] / counts.max()), "opacity": 0.85},
            customdata=counts[full],
            error_y=None if band is None else _bars(np.asarray(accuracy)[full], band, full),
            hovertemplate="said %{x:.1%}, right %{y:.1%}<br>n = %{customdata:,}<extra></extra>",
        )
    )
    words = f"n = {total:,}" + (f" · ECE = {ece:.3f}" if ece is not None else "")
    # in the plot's own units: the square is smaller than the space it is given
    fig.add_annotation(text=words, showarrow=False, x=0.02, y=1.0, xanchor="left", yanchor="top")
    return fig


def _bars(accuracy: Array, band: tuple[Array, Array], full: Array) -> dict[str, object]:
    low, high = (np.asarray(end, dtype=np.float64)[full] for end in band)
    return {
        "type": "data",
        "symmetric": False,
        "array": np.nan_to_num(np.maximum(high - accuracy, 0.0)),
        "arrayminus": np.nan_to_num(np.maximum(accuracy - low, 0.0)),
        "color": theme.NEUTRAL,
        "thickness": 1.5,
        "width": 4,
    }


def confidence_histogram(
    lower: Array,
    upper: Array,
    right: Array,
    wrong: Array,
    *,
    mean_confidence: float,
    accuracy: float,
    height: int = 380,
) -> go.Figure:
    """How many items were predicted with which confidence, right ones below wrong ones.

    Args:
        lower: [B] left ends of the bins.
        upper: [B] right ends of the bins.
        right: [B] items predicted rightly.
        wrong: [B] items predicted wrongly.
        mean_confidence: over all items, marked by a dashed line.
        accuracy: over all items, marked by a solid line; the gap between the two is over-confidence.
        height: in pixels.

    Returns:
        The figure; n is printed on it.
    """
    right, wrong = np.asarray(right), np.asarray(wrong)
    total = int(right.sum() + wrong.sum())
    if total == 0:
        return theme.empty("No item with a known class to measure on", height)
    fig = theme.figure(
        x="Confidence", y="Items", height=height, x_options={"range": [0, 1.02], "tickformat": ".0%"}
    )
    centre, width = (np.asarray(lower) + np.asarray(upper)) / 2, np.asarray(upper) - np.asarray(lower)
    for name, counts, colour in (
        ("right", right, theme.class_colour(0)),
        ("wrong", wrong, theme.class_colour(1)),
    ):
        fig.add_trace(
            go.Bar(
                x=centre,
                y=counts,
                width=0.92 * width,
                name=f"{name} · n = {int(counts.sum()):,}",
                marker={"color": colour, "line": {"width": 0}},
                hovertemplate=f"%{{x:.0%}}: %{{y:,}} {name}<extra></extra>",
            )
        )
    fig.update_layout(barmode="stack", bargap=0)
    for value, dash, words, anchor in (
        (accuracy, "solid", f"accuracy {accuracy:.1%}", "bottom"),
        (mean_confidence, "dash", f"mean confidence {mean_confidence:.1%}", "top"),
    ):
        fig.add_vline(x=value, line={"color": theme.NEUTRAL, "dash": dash, "width": 2})
        fig.add_annotation(
            x=value,
            y=1.0 if anchor == "bottom" else 0.9,
            yref="paper",
            text=words,
            showarrow=False,
            xanchor="right" if value > 0.5 else "left",
            xshift=-6 if value > 0.5 else 6,
        )
    return fig
