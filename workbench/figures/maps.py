"""The pool on a plane: items coloured by a measure, decision regions behind; and the classes of one item."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array, Ints
from workbench.figures import parts, theme
from workbench.short_names import short_names

MOST_NAMED = 24
"""Classes that a legend names: more of them would stand in place of the map."""
_ONE_LINE = 6  # names that one line of a legend holds at 500 pixels
_FEW_LINES = 100  # between neighbours: so few are drawn to be seen one by one


@dataclass(frozen=True)
class Regions:
    """Predictions of a model on a grid over the plane.

    Attributes:
        x: [W] coordinates of the columns.
        y: [H] coordinates of the rows.
        codes: [H, W] predicted class.
        confidence: [H, W] probability of that class.
    """

    x: Array
    y: Array
    codes: Ints
    confidence: Array


def thinned(n: int, keep: Ints) -> Ints:
    """Rows of n points to draw: all up to `limit`, else an even sample that keeps `keep`.

    Returns:
        Ascending indices.
    """
    if n <= theme.THIN_FROM:
        return np.arange(n)
    even = np.linspace(0, n - 1, theme.THIN_FROM).astype(np.int64)
    return np.union1d(even, np.asarray(keep, dtype=np.int64))


LARGE = 0.25
"""Share that has the last colour where all are smaller: doubts of 1 % do not look like large ones."""
_FEWEST_NAMED = 3  # labelled items of a class from which on its name stands among them
ROOM_OF_A_NAME = np.array([0.16, 0.04])
"""Share of the map that a name takes, across and up."""
STAR = {"size": 19, "symbol": "star", "color": "#F4D35E", "line": {"width": 1.6, "color": "#1B1F24"}}
"""The next question."""
MARK = {"size": 9, "symbol": "square-open", "color": theme.NEUTRAL, "line": {"width": 1.2}}
"""Labelled items of more classes than a legend names."""
RING = {"size": 20, "symbol": "circle-open", "color": "#D1495B", "line": {"width": 3}}
"""Items that are asked about."""


def pool_map(
    points: Array,
    *,
    items: Ints | None = None,
    values: Array | None = None,
    measure: str = "",
    classes: Sequence[object] = (),
    labels: Ints | None = None,
    names: Sequence[object] | None = None,
    details: Sequence[str] | None = None,
    asked: Sequence[int] = (),
    ringed_as: str = "asked now",
    revision: int = 0,
    regions: Regions | None = None,
    axes: tuple[str, str] = ("", ""),
    height: int = 620,
    value_range: tuple[float, float] | None = None,
    share: bool = False,
    next_item: int | None = None,
) -> go.Figure:
    """The pool on a plane.

    Args:
        points: [N, 2].
        items: those to draw; all by default.
        values: [N] a measure of each item, NaN where it has none; drawn as colour.
        measure: its name and unit.
        classes: [C] names.
        labels: [N] the class people or the oracle gave, -1 where none.
        names: [N] names of the items, for the hover.
        details: [N] further words for the hover, escaped, lines parted by <br>.
        asked: items now being asked about, ringed.
        ringed_as: what the ring means, for the legend.
        revision: another number takes back what a person selected.
        regions: decision regions behind the points.
        axes: titles of the two axes.
        height: in pixels.
        value_range: ends of the colour scale; from the values by default.
        share: the measure is a share, shown in per cent; its colours begin at 0.
        next_item: the item that is asked about next, starred.

    Returns:
        The figure; n is printed on it. `customdata[0]` of every point is the item's index.
    """
    pool_items = np.arange(len(points)) if items is None else np.asarray(items, dtype=np.int64)
    n = len(pool_items)
    if n == 0:
        return theme.empty("The pool is empty", height)
    points = np.asarray(points, dtype=float)
    labels = np.full(len(points), -1) if labels is None else np.asarray(labels)
    labelled = pool_items[labels[pool_items] >= 0]
    priority = np.flatnonzero(np.isin(pool_items, np.union1d(labelled, np.asarray(asked, dtype=np.int64))))
    keep = pool_items[thinned(n, priority)]
    kind = go.Scattergl if len(keep) > theme.WEBGL_FROM else go.Scatter
    fig = theme.figure(
        x=theme.text(axes[0]),
        y=theme.text(axes[1]),
        height=height,
        legend=labelled.size > 0 or len(asked) > 0 or next_item is not None,
    )
    if regions is not None:
        _draw_regions(fig, regions, classes)

    about = _About(points, names, details, labels, values, measure, classes, share)
    _draw_open(fig, keep[labels[keep] < 0], about, kind, value_range)
    present = np.unique(labels[labelled])
    legend = len(present) <= MOST_NAMED
    for code in present if legend else ():
        of_class = labelled[labels[labelled] == code]
        [marks] = parts.class_marks(
            points[of_class], labels[of_class], classes, size=12, rim=1.6, legend=legend, kind=kind
        )
        fig.add_trace(marks.update(about.words(of_class, "labelled %{customdata[3]}")))
    if not legend:
        # more classes than colours and shapes: a mark of each would say nothing, and hide what is open
        name = f"labelled, of {len(present)} classes"
        fig.add_trace(about.marks(labelled, name, MARK, "labelled %{customdata[3]}", kind=kind))
    if legend:
        _draw_names(fig, points, labelled, labels, classes)
    if len(asked):
        fig.add_trace(about.marks(np.asarray(asked, dtype=np.int64), ringed_as, RING, ringed_as))
    if next_item is not None:
        fig.add_trace(about.marks(np.array([next_item]), "next question", STAR, "next question"))
    counted = f"n = {n:,} items" if len(keep) == n else f"{len(keep):,} of {n:,} items drawn"
    parts.corner(fig, counted if legend else f"{counted} · point at an item for its class")
    if fig.layout.showlegend:
        # the tool bar stands above the legend, not on it; on a narrow page many names take two lines
        fig.update_layout(margin_t=70 if len(present) <= _ONE_LINE or not legend else 100)
    return _selectable(fig, revision)


class _About(NamedTuple):
    """Facts of each item, for the words at the pointer; fields as in `pool_map`."""

    points: Array
    names: Sequence[object] | None
    details: Sequence[str] | None
    labels: Ints
    values: Array | None
    measure: str
    classes: Sequence[object]
    share: bool

    def marks(
        self, items: Ints, name: str, marker: Any, last: str = "", *, kind: Any = go.Scatter, **more: Any
    ) -> Any:
        """A trace of these items with their words; arguments as of Plotly's traces and of `words`."""
        return kind(
            x=self.points[items, 0],
            y=self.points[items, 1],
            mode="markers",
            name=name,
            marker=marker,
            **self.words(items, last),
            **more,
        )

    def words(self, items: Ints, last: str = "") -> dict[str, object]:
        """`customdata` and `hovertemplate` of a trace of these items; `last` is a line of its own."""
        template = "<b>%{customdata[1]}</b>" + ("" if self.details is None else "<br>%{customdata[4]}")
        if self.values is not None:
            template += f"<br>{theme.text(self.measure).lower()} %{{customdata[2]}}"
        return {
            "customdata": self._data(items),
            "hovertemplate": template + (f"<br>{last}" if last else "") + "<extra></extra>",
        }

    def _data(self, items: Ints) -> Array:
        who = [theme.text(self.names[i], 40) if self.names is not None else f"item {i}" for i in items]
        more = [""] * len(items) if self.details is None else [self.details[i] for i in items]
        amounts = (
            np.full(len(items), np.nan)
            if self.values is None
            else np.asarray(self.values, dtype=float)[items]
        )
        form = parts.whole_percent if self.share else (lambda v: f"{v:.3f}")
        numbers = [form(v) if np.isfinite(v) else "–" for v in amounts]
        label_names = theme.labels_of(self.classes, self.labels[items].tolist())
        return np.array(list(zip(items.tolist(), who, numbers, label_names, more, strict=True)), dtype=object)


def _draw_open(
    fig: go.Figure, items: Ints, about: _About, kind: type, value_range: tuple[float, float] | None
) -> None:
    """The items without a label, coloured by the measure where there is one."""
    if not items.size:
        return
    marker: dict[str, object] = {"size": 7, "opacity": 0.85, "color": theme.NEUTRAL}
    if about.values is not None:
        amounts = np.asarray(about.values, dtype=float)[items]
        finite = amounts[np.isfinite(amounts)]
        low, high = value_range or ((float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0))
        ends = (0.0, max(high, LARGE)) if about.share else (low, high)
        scale = parts.colour_scale(*ends, about.measure)
        if about.share:
            scale["colorbar"] |= {"tickformat": theme.SHARE_TICKS}
        marker |= {"color": amounts} | scale
    fig.add_trace(about.marks(items, "not labelled", marker, kind=kind, showlegend=False))


def _draw_names(
    fig: go.Figure, points: Array, labelled: Ints, labels: Array, classes: Sequence[object]
) -> None:
    """The name of each class at the one of its items that lies in the middle of them, none over another."""
    places: list[Array] = []
    room = np.ptp(points, axis=0) * ROOM_OF_A_NAME
    for code in np.unique(labels[labelled]):
        of_class = points[labelled[labels[labelled] == code]]
        if len(of_class) < _FEWEST_NAMED:
            continue
        middle = of_class[np.square(of_class - np.median(of_class, axis=0)).sum(axis=1).argmin()]
        shift, place = 14, middle
        while any((abs(place - other) < room).all() for other in places):
            shift, place = shift + 20, place + room * [0, 1.01]
        places.append(place)
        fig.add_annotation(
            x=middle[0],
            y=middle[1],
            text=f"<b>{theme.text(parts.class_name(classes, int(code)), 16)}</b>",
            showarrow=False,
            yshift=shift,
            font={"size": 12, "color": "white"},
            bgcolor="rgba(27, 31, 36, 0.72)",
            borderpad=2,
        )


def _selectable(fig: go.Figure, revision: int) -> go.Figure:
    """Points that can be clicked and circled; the others keep their strength, so nothing stays faded."""
    for trace in fig.data:
        if isinstance(trace, (go.Scatter, go.Scattergl)):
            opacity = trace.marker.opacity
            trace.unselected = {"marker": {"opacity": 1.0 if opacity is None else opacity}}
    return fig.update_layout(clickmode="event+select", dragmode="pan", selectionrevision=revision)


def _draw_regions(fig: go.Figure, regions: Regions, classes: Sequence[object]) -> None:
    count = max(len(classes), int(regions.codes.max()) + 1)
    scale: list[list[object]] = []
    for code in range(count):
        colour = theme.class_colour(code)
        scale += [[code / count, colour], [(code + 1) / count, colour]]
    names = np.array([parts.class_name(classes, c) for c in range(count)])
    fig.add_heatmap(
        x=regions.x,
        y=regions.y,
        z=regions.codes,
        zmin=-0.5,
        zmax=count - 0.5,
        colorscale=scale,
        showscale=False,
        opacity=0.2,
        customdata=np.dstack([names[regions.codes], regions.confidence]),
        hovertemplate="predicted %{customdata[0]} (%{customdata[1]:.0%})<extra></extra>",
    )
    # where the model is no surer than a coin between the best two, whatever the number of classes
    fig.add_contour(
        x=regions.x,
        y=regions.y,
        z=regions.confidence,
        contours={"start": 0.6, "end": 0.9, "size": 0.15, "coloring": "lines", "showlabels": True},
        colorscale=[[0, theme.NEUTRAL], [1, theme.NEUTRAL]],
        line={"width": 1, "dash": "dot"},
        showscale=False,
        hoverinfo="skip",
    )


def with_blend(fig: go.Figure, image: go.Image, x: Array, y: Array) -> go.Figure:
    """A map with an image of the plane behind it.

    Args:
        fig: of `pool_map`, without regions.
        image: of `teaching.blend_image`.
        x: [W] of the image.
        y: [H] of the image.

    Returns:
        The same figure.
    """
    fig.add_trace(image)
    fig.data = (fig.data[-1], *fig.data[:-1])
    # images turn the y axis round and fix its scale unless told not to
    fig.update_xaxes(range=[float(x[0]), float(x[-1])])
    fig.update_yaxes(range=[float(y[0]), float(y[-1])], autorange=False, scaleanchor=False)
    return fig


def with_lines(fig: go.Figure, points: Array, pairs: Array) -> go.Figure:
    """A map with lines between items that are neighbours in all features, behind the points.

    Args:
        fig: of `pool_map`.
        points: [N, 2] of the pool.
        pairs: [e, 2] items.

    Returns:
        The same figure.
    """
    ends = np.asarray(points, dtype=float)[np.asarray(pairs, dtype=np.int64)]
    gaps = np.concatenate([ends, np.full((len(ends), 1, 2), np.nan)], axis=1).reshape(-1, 2)
    kind = go.Scattergl if len(ends) > theme.WEBGL_FROM else go.Scatter
    few = len(ends) <= _FEW_LINES
    fig.add_trace(
        kind(
            x=gaps[:, 0],
            y=gaps[:, 1],
            mode="lines",
            name=f"neighbours · {len(ends):,} lines",
            line={"width": 1.5 if few else 1, "color": theme.NEUTRAL},
            opacity=0.9 if few else 0.35,
            hoverinfo="skip",
        )
    )
    fig.data = (fig.data[-1], *fig.data[:-1])
    return fig


def with_inducing(fig: go.Figure, points: Array) -> go.Figure:
    """A map with the inducing points of its model.

    Args:
        fig: of `pool_map`.
        points: [P, 2].

    Returns:
        The same figure.
    """
    fig.add_scatter(
        x=np.asarray(points)[:, 0],
        y=np.asarray(points)[:, 1],
        mode="markers",
        name=f"inducing points · {len(points)}",
        marker={"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": theme.NEUTRAL}},
        hoverinfo="skip",
    )
    fig.update_layout(showlegend=True, margin={"t": 70})
    return fig


def side_by_side(
    left: go.Figure, right: go.Figure, titles: tuple[str, str], *, one_scale: bool = True, height: int = 560
) -> go.Figure:
    """Two maps with linked axes: zooming one zooms the other.

    Args:
        left: of `pool_map`.
        right: the other; with `one_scale` drawn with the same `value_range`.
        titles: above them.
        one_scale: whether both have the same colour scale, which is then shown once.
        height: in pixels.

    Returns:
        One figure.
    """
    across, up = (axis.title.text or "" for axis in (left.layout.xaxis, left.layout.yaxis))
    # the axes are one: said once, below both, since two titles run into each other on a narrow screen
    fig = parts.panels(
        titles,
        height=height,
        x_title=across or None,
        horizontal_spacing=0.04,
        shared_xaxes="all",
        shared_yaxes="all",
    )
    # escaped already
    fig.update_yaxes(title=up, col=1)
    if across or not one_scale:
        fig.update_layout(margin_b=52 if one_scale else 104)
    if not one_scale:
        # the bars' own room
        fig.update_layout(height=height + 52)
    legend_names: set[str] = set()
    for column, side in enumerate((left, right), start=1):
        for trace in side.data:
            copy = type(trace)(trace)
            if copy.showlegend is not False and copy.name:
                copy.update(legendgroup=copy.name, showlegend=copy.name not in legend_names)
                legend_names.add(copy.name)
            scaled = "marker" in copy and copy.marker.colorscale is not None
            if scaled and copy.marker.colorbar.title.text == titles[column - 1]:
                # said above the map; beside the bar it reaches into the other one on a narrow screen
                copy.marker.colorbar.title.text = ""
            if scaled and not one_scale:
                copy.marker.colorbar.update(parts.lying_bar(fig, column - 1, 68, height))
            elif scaled and column == 1:
                copy.marker.update(showscale=False, colorbar=None)
            fig.add_trace(copy, row=1, col=column)
    _selectable(fig, left.layout.selectionrevision or 0)
    # what the maps say of themselves, such as that not all items are drawn
    for words in left.layout.annotations:
        fig.add_annotation(words)
    if any(isinstance(trace, go.Image) for trace in fig.data):
        fig.update_yaxes(range=left.layout.yaxis.range, autorange=False, scaleanchor=False)
        fig.update_xaxes(range=left.layout.xaxis.range)
    return fig


BESIDE = 14
"""Letters of the longest name up to which names stand beside their bars."""
TOP = 5
"""Classes that have a bar of their own."""


def class_probabilities(probabilities: Array, classes: Sequence[object]) -> go.Figure:
    """The most probable classes of one item, largest on top.

    Args:
        probabilities: [C] summing to one.
        classes: [C] names.

    Returns:
        The figure; what is beyond `TOP` bars is summed in one grey bar.
    """
    values = np.asarray(probabilities, dtype=float)
    if values.size == 0 or not np.isfinite(values).all():
        return theme.empty("No probabilities yet", 120)
    order = np.argsort(-values, kind="stable")
    # one left-over class is shown by name: "1 other" would say less
    selection = order if len(order) <= TOP + 1 else order[:TOP]
    short = short_names(classes, 26)
    stacked = any(len(short[i]) > BESIDE for i in selection)
    names = [theme.text(short[i]) for i in selection]
    amounts = values[selection].tolist()
    colours = [theme.class_colour(int(i)) for i in selection]
    n_others = len(order) - len(selection)
    if n_others:
        names.append(f"{n_others} others")
        amounts.append(float(values[order[TOP:]].sum()))
        colours.append(theme.NEUTRAL)
    fig = theme.figure(
        height=(48 if stacked else 34) * len(names) + 16,
        legend=False,
        x_options={"range": [0, 1.35], "visible": False, "fixedrange": True},
        y_options={"autorange": "reversed", "showgrid": False, "fixedrange": True, "type": "category"},
    )
    # positions, not names: two names may be cut to the same text
    fig.add_bar(
        x=amounts,
        y=list(range(len(names))),
        orientation="h",
        marker={"color": colours, "cornerradius": 4},
        text=[parts.whole_percent(a) for a in amounts],
        # within a bar of any colour it could not be read in both themes
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        customdata=names,
        hovertemplate="%{customdata}: %{x:.1%}<extra></extra>",
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
