"""A drawn figure for another room: its height and its type."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.parts import plot_height


def resized(fig: go.Figure, height: int) -> None:
    """Give a figure another height; what stands outside of the plot keeps its distance in pixels.

    Args:
        fig: to be changed.
        height: in pixels.
    """
    top = fig.layout.margin.t or 0
    before, after = (plot_height(h, top) for h in (fig.layout.height or height, height))
    ratio = before / max(after, 1.0)

    def moved(place: Any) -> None:
        if place is None or place.y is None:
            return
        if place.y < 0:
            place.y = max(-2.0, place.y * ratio)
        elif place.y > 1:
            place.y = min(3.0, 1 + (place.y - 1) * ratio)

    moved(fig.layout.legend)
    for words in fig.layout.annotations:
        if words.yref == "paper":
            moved(words)
    for trace in fig.data:
        for holder in (trace, getattr(trace, "marker", None)):
            if holder is not None and "colorbar" in holder:
                moved(holder.colorbar)
    fig.layout.height = height


def enlarge(fig: go.Figure, scale: float) -> None:
    """Type for a hall, or for a phone.

    Args:
        fig: to be changed.
        scale: of type on a desk.
    """
    size = round(12 * scale)
    fig.update_layout(font_size=size, legend_font_size=size)
    fig.update_xaxes(tickfont_size=max(10, size - 1), title_font_size=size)
    fig.update_yaxes(tickfont_size=max(10, size - 1), title_font_size=size)
    for axis in fig.select_xaxes():
        # what is said of n, in a line of its own
        axis.title.text = (axis.title.text or "").replace("font-size:12px", f"font-size:{size - 1}px") or None
    # titles of panels, and the words within them
    for words in fig.layout.annotations:
        words.font.size = max(size - 1, round(0.85 * scale * (words.font.size or 12)))
    if scale < 1:  # a phone: marks as large as their counts would run into each other
        for trace in fig.data:
            counted = trace.marker.size if isinstance(trace, go.Scatter) else None
            if counted is not None and np.ndim(counted):
                trace.marker.size = 0.6 * np.asarray(counted, dtype=float)
    # scales below keep clear of the two lines of an axis, which have grown
    below = (scale - 1) * 3 * 12 / plot_height(fig.layout.height or 450, fig.layout.margin.t or 0)
    for trace in fig.data:
        bar = trace.colorbar if "colorbar" in trace else None
        if bar is not None and bar.orientation == "h" and bar.y is not None and bar.y < 0:
            bar.y -= below
    # and the legend out of the way of titles that have grown
    if fig.layout.legend.y is not None and fig.layout.height and fig.layout.margin.t:
        two = any("<br>" in (words.text or "") for words in fig.layout.annotations)
        grown = round((scale - 1) * 18 * (1 + two))
        fig.layout.margin.t += grown + round((scale - 1) * 16)
        fig.layout.legend.y += grown / plot_height(fig.layout.height, fig.layout.margin.t)
