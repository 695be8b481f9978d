"""Class probabilities of one item, as bars."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import parts, theme
from workbench.short_names import short_names

BESIDE = 14
"""Letters of the longest name up to which names stand beside their bars."""


def class_probabilities(probabilities: Array, classes: Sequence[object], *, top: int = 5) -> go.Figure:
    """The most probable classes of one item, largest on top.

    Args:
        probabilities: [C] summing to one.
        classes: [C] names.
        top: at most this many bars; the rest are summed in one grey bar.

    Returns:
        The figure.
    """
    values = np.asarray(probabilities, dtype=float)
    if values.size == 0 or not np.isfinite(values).all():
        return theme.empty("No probabilities yet", 120)
    order = np.argsort(-values, kind="stable")
    # one left-over class is shown by name: "1 other" would say less
    selection = order if len(order) <= top + 1 else order[:top]
    short = short_names(classes, 26)
    stacked = any(len(short[i]) > BESIDE for i in selection)
    names = [theme.text(short[i]) for i in selection]
    amounts = values[selection].tolist()
    colours = [theme.class_colour(int(i)) for i in selection]
    n_others = len(order) - len(selection)
    if n_others:
        names.append(f"{n_others} others")
        amounts.append(float(values[order[top:]].sum()))
        colours.append(theme.NEUTRAL)
    fig = theme.figure(
        height=(48 if stacked else 34) * len(names) + 16,
        legend=False,
        x_options={"range": [0, 1.35], "visible": False, "fixedrange": True},
        y_options={"autorange": "reversed", "showgrid": False, "fixedrange": True, "type": "category"},
    )
    # positions, not names: two names may be cut to the same text
    fig.add_trace(
        go.Bar(
            x=amounts,
            y=list(range(len(names))),
            orientation="h",
            marker={"color": colours, "cornerradius": 4},
            text=[parts.in_percent(a) for a in amounts],
            # within a bar of any colour it could not be read in both themes
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            customdata=names,
            hovertemplate="%{customdata}: %{x:.1%}<extra></extra>",
        )
    )
    at = list(range(len(names)))
    if stacked:  # above its bar: beside it a narrow figure would cut all of them to the same
        fig.update_yaxes(type="linear", tickvals=[], range=[len(names) - 0.6, -0.85], autorange=False)
        for place, name in zip(at, names, strict=True):
            fig.add_annotation(
                x=0, y=place, text=name, xanchor="left", yanchor="bottom", yshift=8, showarrow=False
            )
    else:
        fig.update_yaxes(type="linear", tickvals=at, ticktext=names)
    fig.update_layout(margin={"l": 4, "r": 4, "t": 4, "b": 4}, bargap=0.6 if stacked else 0.35)
    return fig
