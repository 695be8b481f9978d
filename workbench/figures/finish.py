"""Cost of a finish and its certainty: answers against the allowed error, and the bound as it falls."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Floats
from workbench.figures import parts, theme
from workbench.shares import in_percent

GOOD = "#2A9D5C"
WRONG = "#CC4D4F"


class Cost(NamedTuple):
    """Cost of a promise, by the forecast.

    Attributes:
        error: allowed share of wrong labels.
        answers: human answers from now on, checks and the rest.
        low: the lower end of their range.
        high: the upper end.
        machine: labels that the machine gives.
    """

    error: float
    answers: float
    low: float
    high: float
    machine: int


def answers_needed(costs: Sequence[Cost], chosen: Cost, everything: int, *, height: int = 320) -> go.Figure:
    """Human answers from now on against the error one can live with; a forecast.

    Args:
        costs: rising in error.
        chosen: the point that is marked.
        everything: answers that labelling all of it takes.
        height: in pixels.
    """
    if not costs:
        return theme.empty("Nothing is left to label", height)
    fig = theme.figure(
        x="Allowed error",
        y="Human answers from now on",
        height=height,
        legend=False,
        x_options={"tickformat": theme.SHARE_TICKS, "rangemode": "tozero"},
        y_options={"rangemode": "tozero", "separatethousands": True},
    )
    errors = np.array([cost.error for cost in costs])
    low, high = np.array([cost.low for cost in costs]), np.array([cost.high for cost in costs])
    colour = theme.CATEGORICAL[0]
    fig.add_trace(parts.band(errors, low, np.minimum(high, everything), colour, "range"))
    fig.add_scatter(
        x=errors,
        y=[cost.answers for cost in costs],
        mode="lines",
        line={"color": colour, "width": 2.5},
        customdata=[[cost.machine] for cost in costs],
        text=[in_percent(error) for error in errors],
        hovertemplate="at most %{text} wrong: about %{y:,.0f} answers, "
        "the machine labels %{customdata[0]:,}<extra></extra>",
        name="forecast",
    )
    fig.add_hline(y=everything, line={"color": theme.NEUTRAL, "dash": "dot", "width": 1.5})
    fig.add_annotation(
        x=1,
        xref="paper",
        xanchor="right",
        y=everything,
        yanchor="bottom",
        showarrow=False,
        text=f"labelling everything: {everything:,}",
        font={"color": theme.NEUTRAL, "size": 12},
    )
    fig.add_scatter(
        x=[chosen.error],
        y=[chosen.answers],
        mode="markers+text",
        marker={"color": GOOD, "size": 13, "symbol": "diamond", "line": {"color": "white", "width": 1.5}},
        text=[f"about {chosen.answers:,.0f}"],
        textfont={"size": 13, "weight": 600},
        # on the side that the curve leaves free: it falls to the right
        textposition="bottom center" if chosen.answers > 0.85 * everything else "top right",
        hovertemplate=f"at most {in_percent(chosen.error)} wrong: about {chosen.answers:,.0f} answers"
        "<extra></extra>",
        cliponaxis=False,
        name="chosen",
    )
    fig.update_yaxes(range=[0, 1.12 * max(everything, float(max(cost.answers for cost in costs)))])
    return fig


def falling_bound(curve: Sequence[float] | Floats, error: float, wrong: Sequence[int] = ()) -> go.Figure:
    """The upper bound on the share of wrong labels, check by check.

    Args:
        curve: [t + 1] before the first check and after each.
        error: the share that is allowed.
        wrong: numbers of the checks that found a wrong label, from 1 on.
    """
    height = 280
    if len(curve) < 2:
        return theme.empty("No check was answered yet", height)
    least = min(error, float(curve[-1]) or error) / 1.6
    ticks = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
    fig = theme.figure(
        x="Checks",
        y="Wrong labels, at most",
        height=height,
        legend=False,
        x_options={"dtick": 1} if len(curve) < 10 else {},  # a check is whole
        y_options={
            "type": "log",
            "range": [float(np.log10(max(least, 1e-4))), 0.05],
            "tickvals": ticks,
            "ticktext": [in_percent(share) for share in ticks],
        },
    )
    fig.add_hline(y=error, line={"color": GOOD, "width": 2})
    fig.add_annotation(
        x=1,
        xref="paper",
        xanchor="right",
        y=float(np.log10(error)),
        yanchor="top",
        showarrow=False,
        text=f"promised: {in_percent(error)}",
        font={"color": GOOD, "size": 12},
    )
    fig.add_scatter(
        x=np.arange(len(curve)),
        y=np.maximum(np.asarray(curve, dtype=float), 1e-4),
        mode="lines",
        line={"color": theme.CATEGORICAL[0], "width": 2.5},
        text=[in_percent(share) for share in curve],
        hovertemplate="after %{x:,} checks at most %{text}<extra></extra>",
        name="bound",
    )
    if len(wrong):
        fig.add_scatter(
            x=list(wrong),
            y=[float(curve[t]) for t in wrong],
            mode="markers",
            marker={"color": WRONG, "size": 8, "symbol": "x"},
            hovertemplate="check %{x:,} found a wrong label<extra></extra>",
            name="wrong",
        )
    return fig
