"""Learning curves, with a band over seeds, values that the stopping rule looks at, and sparklines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import parts, theme
from workbench.metrics import mean_band, share_interval

# with two runs the interval of the mean is wider than anything worth drawing
MIN_RUNS = 3
SAVED = theme.CATEGORICAL[2]
_MARK_ROW, _MARK_ROWS = 16, 4  # pixels of a row of marks' words, and rows


@dataclass(frozen=True)
class Curve:
    """One policy's curve.

    Attributes:
        name: for the legend.
        labels: [R] numbers of labels, ascending.
        mean: [R] mean over runs.
        low: [R] lower end of the band, NaN where fewer than three runs got that far.
        high: [R] upper end of the band.
        runs: [R] how many runs are behind each point.
        baseline: drawn as what the others are compared with.
        interval: what the band is an interval of.
        items: [R] how many items each point was measured on; None where the runs differ.
    """

    name: str
    labels: Array
    mean: Array
    low: Array
    high: Array
    runs: Array
    baseline: bool = False
    interval: str = "the mean over runs"
    items: Array | None = None


@dataclass(frozen=True)
class Saving:
    """Labels that one curve needs less than another, to be drawn as the gap between them.

    Attributes:
        height: the measure where both arrive.
        from_labels: labels of the one that arrives first.
        to_labels: labels of the other.
        words: written at the gap.
    """

    height: float
    from_labels: float
    to_labels: float
    words: str


def summarise(
    name: str, runs: Sequence[tuple[Sequence[float], Sequence[float]]], *, baseline: bool = False
) -> Curve:
    """Mean and 95 % t-band over runs, pointwise; unfinished runs count as far as they got.

    Args:
        name: for the legend.
        runs: a pair (numbers of labels [R], values [R]) for each seed; None and NaN are left out.
        baseline: whether it is the random baseline.

    Returns:
        The curve over every number of labels that occurs.
    """
    gathered: dict[float, list[float]] = {}
    for labels, values in runs:
        for label, value in zip(labels, values, strict=True):
            if value is not None and np.isfinite(value):
                gathered.setdefault(float(label), []).append(float(value))
    at = sorted(gathered)
    mean = np.array([np.mean(gathered[n]) for n in at])
    counts = np.array([len(gathered[n]) for n in at], dtype=np.int64)
    low, high = np.full((2, len(at)), np.nan)
    for count in np.unique(counts[counts >= MIN_RUNS]):
        places = np.flatnonzero(counts == count)
        _, low[places], high[places] = mean_band(np.array([gathered[at[i]] for i in places]).T)
    return Curve(name, np.array(at), mean, low, high, counts, baseline)


def measured(name: str, labels: Sequence[int], errors: Sequence[float], items: Sequence[int]) -> Curve:
    """The error of one project with the 95 % interval (Wilson 1927) of each measurement as its band.

    Args:
        name: for the legend.
        labels: [R] numbers of labels, ascending.
        errors: [R] shares of wrong predictions; where one is NaN nothing is drawn.
        items: [R] how many items each was measured on, at least 1.
    """
    measurements = [entry for entry in zip(labels, errors, items, strict=True) if np.isfinite(entry[1])]
    labels, errors, items = zip(*measurements, strict=True) if measurements else ((), (), ())
    intervals = [share_interval(round(e * n), n) for e, n in zip(errors, items, strict=True)]
    return Curve(
        name,
        np.array(labels, dtype=np.float64),
        np.array(errors, dtype=np.float64),
        np.array([entry.low for entry in intervals]),
        np.array([entry.high for entry in intervals]),
        np.ones(len(intervals), dtype=np.int64),
        interval="the error",
        items=np.array(items, dtype=np.int64),
    )


FEW_LABELS = 6


def learning_curve(
    curves: Sequence[Curve],
    *,
    measure: str = "Test error",
    share: bool = True,
    height: int = 400,
    marks: Sequence[tuple[str, float]] = (),
    saving: Saving | None = None,
) -> go.Figure:
    """A measure against labels, one line a policy, the baseline in grey.

    Args:
        curves: as `summarise` gives them; the baseline is drawn first, under the others.
        measure: title of the y axis.
        share: whether values are shares, shown in percent.
        height: in pixels.
        marks: text and number of labels of each vertical mark.
        saving: a gap between two curves.

    Returns:
        The figure; says so when there is no point yet.
    """
    curves = [c for c in curves if len(c.labels)]
    if not curves:
        return theme.empty("No round has finished yet", height)
    fig = theme.figure(
        x=_labels(curves),
        y=measure,
        height=height,
        y_options={"tickformat": theme.SHARE_TICKS if share else "", "range": [0, _top(curves, share)]},
    )
    looks = _looks(curves)
    for curve in sorted(curves, key=lambda c: not c.baseline):
        n_runs = int(curve.runs.max())
        name = curve.name + (f" · n = {n_runs}" if n_runs > 1 else "")
        fig.add_traces(_traces(curve, looks[curve.name], name, measure, share, _tint(curves)))
    end = max(float(c.labels.max()) for c in curves)
    begin = min(float(c.labels.min()) for c in curves)
    if end - begin < FEW_LABELS:  # else the axis counts in halves and fifths of a label
        fig.update_xaxes(dtick=1, range=[begin - 0.5, end + 0.5])
    for row, (words, at) in enumerate(marks):
        fig.add_vline(
            x=at,
            line={"color": theme.NEUTRAL, "dash": "dot", "width": 1},
            annotation_text=theme.text(words),
            annotation_position="top left" if at > 0.8 * end else "top right",
            annotation_yshift=-_MARK_ROW * (row % _MARK_ROWS),  # close marks do not lie over each other
        )
    if saving is not None:
        _draw_saving(fig, saving)
    return fig


def _draw_saving(fig: go.Figure, saving: Saving) -> None:
    ends = [saving.from_labels, saving.to_labels]
    fig.add_scatter(
        x=ends,
        y=[saving.height] * 2,
        mode="lines+markers",
        name="saving",
        showlegend=False,
        line={"color": SAVED, "width": 3},
        hoverinfo="skip",
        marker={"symbol": "line-ns", "size": 14, "line": {"color": SAVED, "width": 3}},
    )
    fig.add_annotation(
        # where the curves lie furthest apart
        x=saving.from_labels,
        y=saving.height,
        text=theme.text(saving.words),
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        xshift=8,
        yshift=4,
        font={"color": SAVED, "size": 14},
    )


def learning_curves(
    groups: Sequence[tuple[str, Sequence[Curve]]],
    *,
    measure: str = "Test error",
    share: bool = True,
    across: int = 3,
) -> go.Figure:
    """Several pictures of `learning_curve` side by side; a name has one look in all of them.

    Args:
        groups: title and curves of each.
        measure: title of the y axes.
        share: whether values are shares, shown in percent.
        across: how many stand in one row.

    Returns:
        The figure, each picture with its own range.
    """
    everything = [c for _, curves in groups for c in curves if len(c.labels)]
    if not everything:
        return theme.empty("No round has finished yet", 320)
    columns = min(across, len(groups))
    rows = -(-len(groups) // columns)
    fig = parts.panels(
        [_with_n(title, curves) for title, curves in groups],
        rows=rows,
        columns=columns,
        y=measure,
        height=60 + 320 * rows,
        horizontal_spacing=0.16 / columns,
        vertical_spacing=0.3 / rows,
    )
    fig.update_yaxes(tickformat=theme.SHARE_TICKS if share else "")
    looks = _looks(everything)
    legend_names: set[str] = set()
    for place, (_, curves) in enumerate(groups):
        at = parts.place(place, columns)
        lines = sorted((c for c in curves if len(c.labels)), key=lambda c: not c.baseline)
        for curve in lines:
            for trace in _traces(curve, looks[curve.name], curve.name, measure, share, _tint(lines)):
                trace.showlegend = trace.showlegend is not False and curve.name not in legend_names
                fig.add_trace(trace, **at)
            legend_names.add(curve.name)
        if lines:
            fig.update_yaxes(range=[0, _top(lines, share)], **at)
        if place + columns >= len(groups):
            fig.update_xaxes(title="Labels", **at)
    return fig


def _with_n(title: str, curves: Sequence[Curve]) -> str:
    n_runs = max((int(c.runs.max()) for c in curves if len(c.runs)), default=0)
    return title + (f" · n = {n_runs}" if n_runs else "")


def _labels(curves: Sequence[Curve]) -> str:
    """Title of the axis, which says what the bands are; in two lines where a phone has no room for one."""
    intervals = dict.fromkeys(c.interval for c in curves if np.isfinite(c.low).any())
    if not intervals:
        return "Labels"
    gap = "<br>" if len(intervals) > 1 else " "
    return f"Labels{gap}(band: 95 % interval of {', or of '.join(intervals)})"


def _top(curves: Sequence[Curve], share: bool) -> float:
    """Upper end of the y axis: a wide band may be cut beside others, the lines never."""
    most_mean = max(float(c.mean.max()) for c in curves)
    most_high = max((float(np.nanmax(c.high)) for c in curves if np.isfinite(c.high).any()), default=0.0)
    # of one project the interval is what there is to see
    room = 6.0 if len(curves) == 1 and curves[0].interval == "the error" else 1.6
    top = max(1.05 * most_mean, min(1.02 * most_high, room * most_mean)) or 1.02 * most_high or 1.0
    return min(top, 1.0) if share else top


def _looks(curves: Sequence[Curve]) -> dict[str, parts.Look]:
    """Name -> look, in order of appearance; the baseline is grey and dotted."""
    return parts.looks((c.name for c in curves), [c.name for c in curves if c.baseline])


def _tint(curves: Sequence[Curve]) -> float:
    """Opacity of bands: the more lie over each other, the lighter."""
    return min(0.16, 0.3 / max(1, sum(bool(np.isfinite(c.low).any()) for c in curves)))


def _traces(
    curve: Curve, look: parts.Look, name: str, measure: str, share: bool, tint: float
) -> list[go.Scatter]:
    """A curve's band, where it has one, and its line."""
    traces = []
    banded = np.isfinite(curve.low)
    if banded.any():
        ends = (np.maximum(curve.low[banded], 0.0), curve.high[banded])
        traces.append(parts.band(curve.labels[banded], *ends, look.colour, curve.name, tint))
    behind, of = ("runs", curve.runs) if curve.items is None else ("items", curve.items)
    hover = (
        f"%{{x}} labels<br>{measure.lower()} %{{y{':.1%' if share else ':.3f'}}}<br>{behind}: %{{customdata}}"
    )
    # a one-point curve has no line to see
    few = len(curve.labels) <= 12
    line = parts.line(curve.labels, curve.mean, curve.name, look, hover=hover, marks=few, customdata=of)
    return [
        *traces,
        line.update(name=theme.text(name), showlegend=None, marker={"size": 6, "symbol": "circle"}),
    ]


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


def stopping_panels(labels: Array, panels: Sequence[Panel]) -> go.Figure:
    """A panel a rule over one axis of labels: its value, its limit, and where it first said stop.

    Args:
        labels: [R] after each round.
        panels: in order.

    Returns:
        The figure.
    """
    if not panels or len(labels) == 0:
        return theme.empty("No round has finished yet")
    n = len(panels)
    fig = parts.panels(
        [p.title for p in panels],
        height=60 + 130 * n,
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


def sparkline(values: Sequence[float], *, width: int = 220, height: int = 44) -> str | None:
    """Values in order, from zero, the last one marked.

    Args:
        values: shares or other non-negative numbers; NaN is left out.
        width: in pixels.
        height: in pixels.

    Returns:
        SVG text, or None with fewer than two values: one point is no line.
    """
    data = np.array([v for v in values if v is not None and np.isfinite(v)], dtype=float)
    if data.size < 2:
        return None
    pad = 5
    top = float(data.max()) or 1.0
    place = np.arange(data.size)
    if data.size > 2 * width:
        # more than a pixel can show: the least and the greatest of each column, in their order
        columns = np.array_split(place, width)
        ends = [(c[data[c].argmin()], c[data[c].argmax()]) for c in columns]
        place = np.unique([0, *np.ravel(ends), data.size - 1])
    x = pad + (width - 2 * pad) * place / (data.size - 1)
    data = data[place]
    y = height - pad - (height - 2 * pad) * data / top
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    area = f"{x[0]:.1f},{height - pad} {points} {x[-1]:.1f},{height - pad}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">'
        f'<polygon points="{area}" fill="{theme.CATEGORICAL[0]}" opacity="0.14"/>'
        f'<polyline points="{points}" fill="none" stroke="{theme.CATEGORICAL[0]}" stroke-width="2" '
        'stroke-linejoin="round"/>'
        f'<circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="3.5" fill="{theme.CATEGORICAL[0]}"/></svg>'
    )
