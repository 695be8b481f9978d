"""Colours, symbols and layout shared by every figure."""

from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

# Ten colours chosen to stay apart under the common colour deficiencies and to reach 2:1 against
# both backgrounds; a test simulates the deficiencies. Further classes repeat colours with another symbol.
CATEGORICAL = (
    "#4169C0",
    "#D8884C",
    "#15A1A0",
    "#CC4D4F",
    "#0BBAFF",
    "#C27601",
    "#505494",
    "#CEAF00",
    "#892441",
    "#807678",
)
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "hexagon", "triangle-down")
NEUTRAL = "#8A94A0"
"""The random baseline, the diagonal, the whole pool: what a thing is compared with."""
SHARE_TICKS = ".3~%"
"""Ticks of a share where the axis follows the data: on a short one two whole per cents are alike."""
GRID = "rgba(138, 148, 160, 0.22)"
# Lightness falls steadily, so the order survives a grey print and every colour deficiency.
SEQUENTIAL = (
    (0.0, "#E8F3F5"),
    (0.25, "#A8D0DB"),
    (0.5, "#5DA2BA"),
    (0.75, "#2F7094"),
    (1.0, "#122845"),
)
# For measures drawn as points: neither end vanishes on white or on black.
MEASURE = (
    (0.0, "#4B5F8A"),
    (0.3, "#5E86B8"),
    (0.55, "#B59BB0"),
    (0.8, "#E39A5C"),
    (1.0, "#F2B632"),
)
# For an order among points that have the colours of classes: a hue that no class has, light to dark.
ORDER = ((0.0, "#FFD6E8"), (0.33, "#FF6FAE"), (0.67, "#C2185B"), (1.0, "#5A0028"))
# Above this many points the marks go to WebGL; above the second figure they are thinned.
WEBGL_FROM = 2_000
THIN_FROM = 20_000


def class_colour(code: int) -> str:
    """The colour of class `code`."""
    return CATEGORICAL[code % len(CATEGORICAL)]


def class_symbol(code: int) -> str:
    """The symbol of class `code`; changes before colours repeat, so that no two classes look alike."""
    return (
        SYMBOLS[code % len(SYMBOLS)]
        if code < len(CATEGORICAL)
        else SYMBOLS[(code + code // 10) % len(SYMBOLS)]
    )


def translucent(colour: str, alpha: float) -> str:
    """`#rrggbb` as rgba(...) with an opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha:g})"


def text(value: object, limit: int = 60) -> str:
    """A person's text for a figure: Plotly reads a little HTML, so it is escaped and cut."""
    plain = " ".join(str(value).split())
    return escape(plain if len(plain) <= limit else plain[: limit - 1] + "…", quote=False)


def figure(
    *,
    x: str = "",
    y: str = "",
    height: int = 380,
    legend: bool = True,
    x_options: dict[str, Any] | None = None,
    y_options: dict[str, Any] | None = None,
) -> go.Figure:
    """An empty figure in the house style.

    Args:
        x: title of the x axis, with its unit.
        y: title of the y axis, with its unit.
        height: in pixels.
        legend: whether there is a legend (above the plot).
        x_options: further options of the x axis.
        y_options: further options of the y axis.

    Returns:
        A figure with transparent backgrounds, a legend above and tight margins.
    """
    axis: dict[str, Any] = {
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": GRID,
        "ticks": "",
        "automargin": True,
        "title_standoff": 10,
    }
    fig = go.Figure()
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 40 if legend else 12, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        colorway=list(CATEGORICAL),
        showlegend=legend,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
        hoverlabel={"namelength": -1},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": NEUTRAL, "activecolor": CATEGORICAL[0]},
        uirevision="kept",
        xaxis=axis | {"title": x} | (x_options or {}),
        yaxis=axis | {"title": y} | (y_options or {}),
    )
    return fig


def empty(message: str, height: int = 260) -> go.Figure:
    """A figure that says why there is nothing to draw."""
    fig = figure(height=height, legend=False)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    fig.add_annotation(
        text=text(message, 200),
        showarrow=False,
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        font={"color": NEUTRAL},
    )
    return fig


def for_export(fig: go.Figure) -> go.Figure:
    """A copy with fixed colours of text and background, for a file.

    Args:
        fig: any of our figures.

    Returns:
        The copy, on white.
    """
    copy = go.Figure(fig)
    copy.update_layout(
        paper_bgcolor="#FFFFFF",
        plot_bgcolor="#FFFFFF",
        font={"color": "#1C2530", "family": "Source Sans Pro, Helvetica, Arial, sans-serif"},
        # words below both of two panels keep their room
        margin={"l": 16, "r": 20, "t": 56, "b": max(16, fig.layout.margin.b or 0)},
    )
    return copy


def labels_of(classes: Sequence[object], codes: Sequence[int]) -> list[str]:
    """Names of class codes, escaped; an en dash for -1."""
    return [text(classes[code]) if 0 <= code < len(classes) else "–" for code in codes]
