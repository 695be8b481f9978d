"""Parts that several figures are made of: panels, lines, marks, bars, tiles of images, examples."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.arrays import Array, Ints
from workbench.figures import theme
from workbench.shares import in_percent
from workbench.short_names import short_names

DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot", "dot")


class Look(NamedTuple):
    """Style of a line.

    Attributes:
        colour: `#rrggbb`.
        dash: of Plotly.
        symbol: of its points.
    """

    colour: str
    dash: str
    symbol: str


def looks(names: Iterable[str], baselines: Iterable[str] = ()) -> dict[str, Look]:
    """Name -> look, in order of appearance; what others are compared with is grey and dotted."""
    grey, by_name = set(baselines), dict[str, Look]()
    for name in dict.fromkeys(names):
        rank = sum(key not in grey for key in by_name)
        by_name[name] = (
            Look(theme.NEUTRAL, "dot", "x")
            if name in grey
            else Look(theme.class_colour(rank), DASHES[rank % len(DASHES)], theme.class_symbol(rank))
        )
    return by_name


def panels(
    titles: Sequence[str],
    *,
    height: int,
    rows: int = 1,
    columns: int | None = None,
    x: str = "",
    y: str = "",
    legend: bool = True,
    **grid: Any,
) -> go.Figure:
    """Empty panels in the house style, with one legend above all of them.

    Args:
        titles: of the panels, row by row.
        height: of the whole, in pixels.
        rows: of panels.
        columns: of panels; as many as the titles need by default.
        x: title under the last row.
        y: title left of the first column.
        legend: whether there is a legend.
        grid: further arguments of `make_subplots`.
    """
    columns = columns or -(-len(titles) // rows)
    headings = [_two_lines(t, 54 // columns) for t in titles]
    above = 16 * any("<br>" in t for t in headings)
    fig = make_subplots(rows, columns, subplot_titles=headings, **grid)
    base = theme.figure(height=height, legend=legend).layout.to_plotly_json()
    axis = base.pop("xaxis") | {"title": None, "title_standoff": 8}
    base.pop("yaxis")
    fig.update_layout(base)
    top = (84 if legend else 34) + above
    fig.update_layout(
        margin={"t": top},
        legend={"y": 1 + (34 + above) / plot_height(height, top), "itemsizing": "constant"},
    )
    fig.update_xaxes(axis)
    fig.update_yaxes(axis)
    fig.update_annotations(font={"size": 14})
    if x:
        fig.update_xaxes(title=theme.text(x, 120), row=rows)
    if y:
        fig.update_yaxes(title=theme.text(y, 120), col=1)
    return fig


def plot_height(height: float, top: float) -> float:
    """Pixels between the upper margin and the words under the axis: the unit that a legend's place is in."""
    return max(60.0, height - top - 60)


def clear_of_tools(fig: go.Figure) -> None:
    """Room above a legend of several rows: on a wide screen its first would lie under the tool bar."""
    names = [str(trace.name or "") for trace in fig.data if trace.showlegend is not False]
    # a letter is some 6.5 pixels, a sample and its gaps 55; figures are about 900 wide
    rows = -(-sum(6.5 * len(name) + 55 for name in names) // 900)
    top, height = fig.layout.margin.t, fig.layout.height
    if rows < 2 or fig.layout.legend.y is None:
        return
    above = (fig.layout.legend.y - 1) * plot_height(height, top)
    # what the further rows take, and the tool bar
    more = int(20 * (rows - 1)) + 18
    top += more
    fig.update_layout(height=height + more, margin={"t": top})
    fig.update_layout(legend={"y": 1 + above / plot_height(fig.layout.height, top)})


def _two_lines(title: str, limit: int) -> str:
    """A panel's title, broken near its middle beyond `limit` letters: panels share a narrow window."""
    spaces = [i for i, c in enumerate(title) if c == " "]
    if len(title) <= limit or not spaces:
        return theme.text(title, 44)
    at = min(spaces, key=lambda i: abs(i - len(title) / 2))
    return f"{theme.text(title[:at], 30)}<br>{theme.text(title[at + 1 :], 30)}"


def line(
    x: Array,
    y: Array,
    name: str,
    look: Look,
    *,
    hover: str = "%{x:g}: %{y:.3f}",
    legend: bool = True,
    marks: bool = True,
    bars: Mapping[str, Any] | None = None,
    **more: Any,
) -> go.Scatter:
    """A named line with its points; lines of one name hide and show together.

    Args:
        x: [n].
        y: [n].
        name: for the legend.
        look: of `looks`.
        hover: words after the name; Plotly's placeholders.
        legend: whether this one stands in the legend.
        marks: whether the points are drawn.
        bars: of `error_bars`.
        more: of `go.Scatter`.
    """
    label = theme.text(name)
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers" if marks else "lines",
        name=label,
        legendgroup=name,
        showlegend=legend,
        line={"color": look.colour, "dash": look.dash, "width": 2.3},
        error_y=bars,
        marker={"symbol": look.symbol, "size": 7},
        hovertemplate=f"<b>{label}</b><br>{hover}<extra></extra>",
    ).update(more)


def error_bars(value: Array, low: Array, high: Array, *, width: float = 1.5) -> dict[str, Any]:
    """Bars from `low` to `high` about values, of any equal shape; an end on the wrong side is left out."""
    value = np.asarray(value, dtype=float)
    return {
        "type": "data",
        "symmetric": False,
        "color": theme.NEUTRAL,
        "thickness": width,
        "width": 4,
        "array": np.nan_to_num(np.maximum(np.asarray(high) - value, 0.0)),
        "arrayminus": np.nan_to_num(np.maximum(value - np.asarray(low), 0.0)),
    }


def band(x: Array, low: Array, high: Array, colour: str, group: str, alpha: float = 0.15) -> go.Scatter:
    """A tinted band between two lines, with no entry in the legend."""
    # said, since fewer than twenty points would get marks
    return go.Scatter(
        mode="lines",
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=theme.translucent(colour, alpha),
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=group,
    )


def diagonal(x: Sequence[float] = (0, 1), y: Sequence[float] | None = None) -> go.Scatter:
    """A dotted grey line to compare with: equality by default."""
    return go.Scatter(
        x=list(x),
        y=list(x if y is None else y),
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        line={"color": theme.NEUTRAL, "dash": "dot", "width": 1.5},
    )


def mark_at(fig: go.Figure, x: float | None) -> None:
    """A dashed vertical line in every panel; nothing for None."""
    if x is not None:
        fig.add_vline(x=x, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})


def colour_scale(low: float, high: float, title: str, *, stops: Any = theme.MEASURE) -> dict[str, Any]:
    """Colour options of a marker from `low` to `high`, with a narrow bar."""
    if not high > low:
        # one value stands in the middle of a short bar: beyond it there is nothing
        low, high = low - 0.05, low + 0.05
    return {
        "cmin": low,
        "cmax": high,
        "colorscale": [list(stop) for stop in stops],
        "colorbar": colour_bar(title),
    }


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    """A narrow colour bar with its title along the side."""
    return {
        "title": {"text": theme.text(title), "side": "right"},
        "thickness": 11,
        "len": 0.9,
        "outlinewidth": 0,
    } | more


def lying_bar(fig: go.Figure, panel: int, below: float, height: float) -> dict[str, Any]:
    """Options of a colour bar under its panel: beside it, it reaches into the next one on a narrow screen.

    Args:
        fig: of `panels`.
        panel: counted from 0.
        below: pixels from the plot to the bar.
        height: of the figure without what stands below the bar, in pixels.
    """
    ends = fig.layout[f"xaxis{panel + 1 if panel else ''}"].domain
    return {
        "orientation": "h",
        "nticks": 4,
        "x": sum(ends) / 2,
        "xanchor": "center",
        "len": 0.9 * (ends[1] - ends[0]),
        "y": -below / plot_height(height, fig.layout.margin.t),
        "yanchor": "top",
    }


NAME = 28
"""Characters of a class in a legend."""


def whole_percent(share: float) -> str:
    """A share in whole per cent; one that is there, but would be none, as "<1 %"."""
    return in_percent(share, 0) if share >= 0.01 or share == 0 else "<1 %"


def class_name(classes: Sequence[object], code: int) -> str:
    """A class's name, escaped and cut so that it differs from the others; its number where it has none."""
    return theme.text(short_names(classes, NAME)[code]) if code < len(classes) else f"class {code + 1}"


def class_marks(
    points: Array,
    codes: Ints,
    classes: Sequence[object],
    *,
    size: float = 8,
    rim: float = 1.2,
    legend: bool = True,
    count: bool = False,
    colours: Sequence[str] = theme.CATEGORICAL,
    kind: Any = go.Scatter,
    **more: Any,
) -> list[Any]:
    """Points in the colour and symbol of their class, a trace a class.

    Args:
        points: [n, 2].
        codes: [n].
        classes: [C] names.
        size: in pixels.
        rim: width of the white line around each, in pixels.
        legend: whether the classes stand in the legend.
        count: whether the legend says how many.
        colours: of the classes.
        kind: of trace.
        more: of the marker.
    """
    points, codes = np.asarray(points), np.asarray(codes)
    traces = []
    for code in map(int, np.unique(codes)):
        members, name = codes == code, class_name(classes, code)
        marker = {
            "size": size,
            "color": colours[code % len(colours)],
            "symbol": theme.class_symbol(code),
            "line": {"width": rim, "color": "white"},
        } | more
        traces.append(
            kind(
                x=points[members, 0],
                y=points[members, 1],
                mode="markers",
                legendgroup=name,
                showlegend=legend,
                name=f"{name} · n = {int(members.sum())}" if count else name,
                marker=marker,
                hovertemplate=f"{name}<extra></extra>",
            )
        )
    return traces


def place(number: int, columns: int) -> dict[str, int]:
    """Row and column, for Plotly, of a panel counted from 0."""
    return {"row": number // columns + 1, "col": number % columns + 1}


def note(fig: go.Figure, panel: int, words: str) -> None:
    """Words in the upper left corner of a panel, counted from 0."""
    axis = "" if panel == 0 else str(panel + 1)
    fig.add_annotation(
        text=words,
        align="left",
        showarrow=False,
        x=0.03,
        y=0.94,
        xref=f"x{axis} domain",
        yref=f"y{axis} domain",
        xanchor="left",
        yanchor="top",
        font={"size": 12},
    )


def corner(fig: go.Figure, words: str) -> None:
    """Small words in the lower right corner of a figure."""
    fig.add_annotation(
        text=words,
        showarrow=False,
        xref="paper",
        yref="paper",
        x=1,
        y=0,
        xanchor="right",
        yanchor="bottom",
        font={"size": 11, "color": theme.NEUTRAL},
    )


def foot(fig: go.Figure, words: str) -> None:
    """Say n under the last panel's axis, where no legend can run into it."""
    if words:
        axis = list(fig.select_xaxes())[-1]
        axis.title.text = f"{axis.title.text or ''}<br><span style='font-size:12px'>{words}</span>"


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


FILE = Path(__file__).with_name("examples.json")
WORDS = "This is an example"


@cache
def _figures() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return figures


def example(name: str) -> go.Figure:
    """An example of a figure, on made numbers and greyed.

    Args:
        name: "comparison", "attack", "error", "doubt", "reliability", "answers", "wrong_labels", or "class"
            for a comparison of random questions with a class's.
    """
    return go.Figure(_figures()[name])


def magnified(image: Array, side: int) -> Array:
    """An image in sharp pixels, by the whole factor that makes its longer edge `side` pixels or more.

    Args:
        image: [H, W] or [H, W, 3] uint8.
        side: wanted length of the longer edge, in pixels.

    Returns:
        [H', W'(, 3)] uint8.
    """
    factor = -(-side // max(image.shape[:2]))
    return np.repeat(np.repeat(image, factor, axis=0), factor, axis=1)


def tile(image: Array, side: int) -> Array:
    """An image in the middle of a grey square in colour, so that images of any sizes share a sheet.

    Args:
        image: [H, W], [H, W, 3] or [H, W, 4] uint8; transparency is left out.
        side: of the square, in pixels.

    Returns:
        [side, side, 3] uint8.
    """
    from PIL import Image, ImageOps

    picture = Image.fromarray(image).convert("RGB")
    # a line of pixels stays one, however long it is
    size = [max(1, round(n * side / max(picture.size))) for n in picture.size]
    fitted = picture.resize(size, reducing_gap=2.0)
    return np.asarray(ImageOps.pad(fitted, (side, side), color="#808080"))


def sheet(images: Sequence[Array], columns: int, *, gap: int = 1, ground: int = 255) -> Array:
    """Several images of one size side by side.

    Args:
        images: each [H, W] or [H, W, 3] uint8.
        columns: in a row.
        gap: pixels between them.
        ground: grey level between them.

    Returns:
        One image [H', W'(, 3)] uint8.

    Raises:
        ValueError: no image, or images of different shapes.
    """
    if not len(images):
        raise ValueError("A sheet needs at least one image.")
    shapes = {np.asarray(image).shape for image in images}
    if len(shapes) > 1:
        raise ValueError(f"Images of one sheet share one shape; got {sorted(shapes)}.")
    height, width, *channels = np.asarray(images[0]).shape
    rows = -(-len(images) // columns)
    out = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, *channels), ground, dtype=np.uint8
    )
    for i, image in enumerate(images):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        out[top : top + height, left : left + width] = image
    return out
