"""Learning curves: a measure against the number of labels, with a band over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench.arrays import Array
from workbench.figures import theme

# two-sided 95 % quantiles of Student's t for 1..30 degrees of freedom; 1.96 beyond
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
DASHES = ("solid", "dash", "dashdot", "longdash", "solid", "dash")
# with two runs the interval of the mean is wider than anything worth drawing
MIN_RUNS = 3


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
    """

    name: str
    labels: Array
    mean: Array
    low: Array
    high: Array
    runs: Array
    baseline: bool = False


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
    half = np.full(len(at), np.nan)
    for i, n in enumerate(at):
        if counts[i] >= MIN_RUNS:
            quantile = _T95[counts[i] - 2] if counts[i] - 2 < len(_T95) else 1.96
            half[i] = quantile * np.std(gathered[n], ddof=1) / np.sqrt(counts[i])
    return Curve(name, np.array(at), mean, mean - half, mean + half, counts, baseline)


def learning_curve(
    curves: Sequence[Curve],
    *,
    measure: str = "Test error",
    share: bool = True,
    height: int = 400,
    marks: Mapping[str, float] | None = None,
) -> go.Figure:
    """A measure against labels, one line a policy, the baseline in grey.

    Args:
        curves: as `summarise` gives them; the baseline is drawn first, under the others.
        measure: title of the y axis.
        share: whether values are shares, shown in percent.
        height: in pixels.
        marks: text -> number of labels, for vertical marks.

    Returns:
        The figure; says so when there is no point yet.
    """
    curves = [c for c in curves if len(c.labels)]
    if not curves:
        return theme.empty("No round has finished yet", height)
    most_mean = max(float(c.mean.max()) for c in curves)
    most_high = max((float(np.nanmax(c.high)) for c in curves if np.isfinite(c.high).any()), default=0.0)
    # a wide band may be cut, the lines never
    top = max(1.05 * most_mean, min(1.02 * most_high, 1.6 * most_mean)) or 1.0
    banded_any = any(np.isfinite(c.low).any() for c in curves)
    fig = theme.figure(
        x="Labels (band: 95 % interval of the mean over runs)" if banded_any else "Labels",
        y=measure,
        height=height,
        y_options={"tickformat": ".0%" if share else "", "range": [0, min(top, 1.0) if share else top]},
    )
    shown = ":.1%" if share else ":.3f"
    rank = 0
    for curve in sorted(curves, key=lambda c: not c.baseline):
        colour = theme.NEUTRAL if curve.baseline else theme.class_colour(rank)
        dash = "dot" if curve.baseline else DASHES[rank % len(DASHES)]
        rank += not curve.baseline
        most = int(curve.runs.max())
        # a one-point curve has no line to see
        mode = "lines+markers" if len(curve.labels) <= 12 else "lines"
        banded = np.isfinite(curve.low)
        if banded.any():
            x = curve.labels[banded]
            fig.add_trace(
                go.Scatter(
                    x=np.concatenate([x, x[::-1]]),
                    y=np.concatenate([curve.high[banded], np.maximum(curve.low[banded], 0.0)[::-1]]),
                    fill="toself",
                    fillcolor=theme.translucent(colour, 0.16),
                    line={"width": 0},
                    hoverinfo="skip",
                    showlegend=False,
                    legendgroup=curve.name,
                )
            )
        fig.add_trace(
            go.Scatter(
                x=curve.labels,
                y=curve.mean,
                mode=mode,
                name=theme.text(curve.name) + (f" · n = {most}" if most > 1 else ""),
                legendgroup=curve.name,
                line={"color": colour, "width": 2.4, "dash": dash},
                marker={"size": 6},
                customdata=curve.runs,
                hovertemplate=(
                    f"<b>{theme.text(curve.name)}</b><br>%{{x}} labels<br>{measure.lower()} %{{y{shown}}}"
                    "<br>runs: %{customdata}<extra></extra>"
                ),
            )
        )
    for words, at in (marks or {}).items():
        fig.add_vline(
            x=at, line={"color": theme.NEUTRAL, "dash": "dot", "width": 1}, annotation_text=theme.text(words)
        )
    return fig
