"""Reliability: how often the model is right against how sure it says it is."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import theme


def reliability_diagram(
    confidence: Array, accuracy: Array, counts: Array, *, ece: float | None = None, height: int = 380
) -> go.Figure:
    """Accuracy against mean confidence in each bin; circles grow with the number of items.

    Args:
        confidence: [B] mean confidence of each bin, NaN where empty.
        accuracy: [B] share right in each bin.
        counts: [B] items in each bin.
        ece: expected calibration error, printed on the figure.
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
        y="Share right",
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
            hovertemplate="said %{x:.1%}, right %{y:.1%}<br>n = %{customdata:,}<extra></extra>",
        )
    )
    words = f"n = {total:,}" + (f" · ECE = {ece:.3f}" if ece is not None else "")
    fig.add_annotation(
        text=words, showarrow=False, xref="paper", yref="paper", x=0.03, y=0.98, xanchor="left", yanchor="top"
    )
    return fig
