"""Values that stopping rules look at, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import parts, theme


class Panel(NamedTuple):
    """One rule.

    Attributes:
        title: above its panel.
        values: [R] what it looks at, NaN where it cannot say.
        limit: the value at which it says stop, or None.
        first: labels at which it first said stop, or None.
        share: whether values are shares, shown in percent.
    """

    title: str
    values: Array
    limit: float | None
    first: int | None
    share: bool = False


def stopping_panels(labels: Array, panels: Sequence[Panel], *, height: int = 130) -> go.Figure:
    """A panel a rule over one axis of labels: its value, its limit, and where it first said stop.

    Args:
        labels: [R] after each round.
        panels: in order.
        height: of one panel, in pixels.

    Returns:
        The figure.
    """
    if not panels or len(labels) == 0:
        return theme.empty("No round has finished yet")
    n = len(panels)
    fig = parts.panels(
        [p.title for p in panels],
        height=60 + height * n,
        rows=n,
        x="Labels",
        legend=False,
        shared_xaxes=True,
        vertical_spacing=0.32 / n,
    )
    fig.update_annotations(x=0, xanchor="left")
    fig.update_yaxes(nticks=4)
    look, *_ = parts.looks(["curve"]).values()
    for row, panel in enumerate(panels, start=1):
        hover = "%{x} labels: %{y" + (":.1%}" if panel.share else ":.4~g}")
        few = len(labels) <= 12
        fig.add_trace(
            parts.line(labels, panel.values, panel.title, look, hover=hover, marks=few), row=row, col=1
        )
        finite = panel.values[np.isfinite(panel.values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        if panel.limit is not None:
            fig.add_hline(
                y=panel.limit, line={"color": theme.NEUTRAL, "dash": "dot", "width": 1.5}, row=row, col=1
            )
            # a line alone does not stretch the axis
            low, high = min(low, panel.limit), max(high, panel.limit)
        if panel.share:
            low = 0.0
        margin = 0.08 * ((high - low) or 1.0)
        fig.update_yaxes(
            range=[low - margin, high + margin],
            tickformat=theme.SHARE_TICKS if panel.share else "",
            row=row,
            col=1,
        )
        if panel.first is not None:
            late = panel.first > (labels[0] + labels[-1]) / 2
            stop_values = panel.values[labels == panel.first]
            above = stop_values.size > 0 and stop_values[0] > (low + high) / 2
            fig.add_vline(
                x=panel.first,
                line={"color": theme.class_colour(1), "width": 1.5},
                # where the curve is not
                annotation_text=f"stop at {panel.first}",
                annotation_position=f"{'bottom' if above else 'top'} {'left' if late else 'right'}",
                row=row,
                col=1,
            )
    return fig
