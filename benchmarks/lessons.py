"""Results and small pictures of the lessons, computed anew: `make lessons`.

A figure becomes a picture for a card: its shapes alone, as SVG that reads on any ground.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.app.lessons import lessons
from workbench.app.serving.jobs import Job
from workbench.arrays import Array
from workbench.figures import theme

WIDTH, HEIGHT = 320, 132
_PAD = 5
_MARKS = 90
_PIXELS = 48
LARGE = 1000
"""Arrays of more elements are stored as float16: for pictures, where half a per mille is not seen."""


def small(fig: go.Figure) -> str:
    """Lines, points, bars and pictures of a figure without its words.

    Args:
        fig: of ours: scatter, bar, heatmap and image traces on any number of panels.

    Returns:
        SVG text.
    """
    panels: dict[tuple[str, str], list[Any]] = {}
    for trace in fig.data:
        panels.setdefault((trace.xaxis or "x", trace.yaxis or "y"), []).append(trace)
    marks = []
    for (x, y), traces in panels.items():
        axes = fig.layout[x.replace("x", "xaxis")], fig.layout[y.replace("y", "yaxis")]
        left, right = axes[0].domain or (0, 1)
        bottom, top = axes[1].domain or (0, 1)
        box = (
            _PAD + left * (WIDTH - 2 * _PAD),
            _PAD + (1 - top) * (HEIGHT - 2 * _PAD),
            (right - left) * (WIDTH - 2 * _PAD),
            (top - bottom) * (HEIGHT - 2 * _PAD),
        )
        marks += _panel(traces, box, log=(axes[0].type == "log", axes[1].type == "log"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}">' + "".join(marks) + "</svg>\n"
    )


def _panel(traces: list[Any], box: tuple[float, ...], log: tuple[bool, bool]) -> list[str]:
    frame = (
        f'<rect x="{box[0]:.1f}" y="{box[1]:.1f}" width="{box[2]:.1f}" height="{box[3]:.1f}" fill="none" '
        f'stroke="{theme.NEUTRAL}" stroke-opacity="0.35"/>'
    )
    traces = [trace for trace in traces if all(part.size for part in _span(trace))]
    if not traces:
        return [frame]
    spans = [_span(trace) for trace in traces]
    xs = _scaled(np.concatenate([span[0] for span in spans]), log[0])
    ys = _scaled(np.concatenate([span[1] for span in spans]), log[1])
    x0, y0 = float(xs.min()), float(ys.min())
    wide, tall = float(np.ptp(xs)) or 1.0, float(np.ptp(ys)) or 1.0

    def at(x: Array, y: Array) -> tuple[Array, Array]:
        across = box[0] + (_scaled(x, log[0]) - x0) / wide * box[2]
        return across, box[1] + box[3] - (_scaled(y, log[1]) - y0) / tall * box[3]

    marks = [frame]
    for trace in traces:
        marks += _drawn(trace, at)
    return marks


def _scaled(values: Any, log: bool) -> Array:
    found = np.asarray(values, dtype=float)
    return np.log10(np.clip(found, 1e-12, None)) if log else found


def _finite(values: Any) -> Array:
    found = np.asarray(values, dtype=float)
    return found[np.isfinite(found)]


def _span(trace: Any) -> tuple[Array, Array]:
    if trace.type == "image":
        rows, columns = np.shape(trace.z)[:2]
        return (
            np.array([trace.x0, trace.x0 + trace.dx * columns]),
            np.array([trace.y0, trace.y0 + trace.dy * rows]),
        )
    y = _finite(trace.y)
    return _finite(trace.x), np.append(y, 0.0) if trace.type == "bar" else y


def _drawn(trace: Any, at: Any) -> list[str]:
    if trace.type in ("image", "heatmap"):
        return [_picture(trace, at)]
    x, y = np.asarray(trace.x, dtype=float), np.asarray(trace.y, dtype=float)
    keep = np.isfinite(x) & np.isfinite(y)
    x, y = x[keep], y[keep]
    if not len(x):
        return []
    if trace.type == "bar":
        return _bars(trace, x, y, at)
    across, down = at(x, y)
    mode = trace.mode or "lines"
    found = []
    if "lines" in mode and len(x) > 1:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
        colour = trace.line.color or theme.NEUTRAL
        dash = ' stroke-dasharray="4 3"' if trace.line.dash not in (None, "solid") else ""
        found.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    if "markers" in mode and (len(x) > 1 or "lines" not in mode):
        pick = np.linspace(0, len(x) - 1, min(_MARKS, len(x))).astype(int)
        colours = [trace.marker.color, trace.line.color if "lines" in mode else None, theme.NEUTRAL]
        colour = next(c for c in colours if isinstance(c, str))
        size = 2.0 if len(x) > 40 else 2.6
        found += [
            f'<circle cx="{across[i]:.1f}" cy="{down[i]:.1f}" r="{size}" fill="{colour}"/>' for i in pick
        ]
    return found


def _bars(trace: Any, x: Array, y: Array, at: Any) -> list[str]:
    across, tops = at(x, y)
    floor = at(x, np.zeros_like(y))[1]
    width = 0.85 * (float(np.diff(across).min()) if len(across) > 1 else 10.0)
    colour = trace.marker.color if isinstance(trace.marker.color, str) else theme.NEUTRAL
    return [
        f'<rect x="{a - width / 2:.1f}" y="{min(t, f):.1f}" width="{width:.1f}" height="{abs(f - t):.1f}" '
        f'fill="{colour}"/>'
        for a, t, f in zip(across, tops, floor, strict=True)
        if abs(f - t) > 0.3
    ]


def _picture(trace: Any, at: Any) -> str:
    from PIL import Image

    if trace.type == "image":
        pixels = np.asarray(trace.z, dtype=np.uint8)[..., :3]
    else:
        values = np.asarray(trace.z, dtype=float)
        low = float(np.nanmin(values) if trace.zmin is None else trace.zmin)
        high = float(np.nanmax(values) if trace.zmax is None else trace.zmax)
        unit = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
        stops = np.array([float(stop) for stop, _ in trace.colorscale])
        colours = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for _, c in trace.colorscale])
        mixed = [np.interp(unit, stops, colours[:, channel]) for channel in range(3)]
        pixels = np.rint(np.stack(mixed, axis=-1)).astype(np.uint8)
    span_x, span_y = _span(trace)
    across, down = at(span_x, span_y)
    # rows rise on the plane and fall in a picture
    drawn = Image.fromarray(np.ascontiguousarray(pixels[::-1])).resize((_PIXELS, _PIXELS)).quantize(32)
    out = io.BytesIO()
    drawn.save(out, "PNG", optimize=True)
    data = base64.b64encode(out.getvalue()).decode("ascii")
    return (
        f'<image x="{across.min():.1f}" y="{down.min():.1f}" width="{np.ptp(across):.1f}" '
        f'height="{np.ptp(down):.1f}" preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    )


def packed(value: Any, arrays: dict[str, Any]) -> Any:
    """A result as JSON; its arrays go into `arrays` and are named in it."""
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value.astype(np.float16) if value.dtype.kind == "f" and value.size > LARGE else value
        return {"array": name}
    if kind in lessons.stored_kinds():
        fields = getattr(value, "_fields", None) or value.__dataclass_fields__
        return {"record": kind, "fields": {f: packed(getattr(value, f), arrays) for f in fields}}
    if isinstance(value, dict):
        return {"dict": {k: packed(v, arrays) for k, v in value.items()}}
    if isinstance(value, (tuple, list)):
        return {"tuple": [packed(v, arrays) for v in value]}
    return value.item() if isinstance(value, np.generic) else value


def write(path: Path, states: Iterable[tuple[str, Any]]) -> None:
    """Store results.

    Args:
        path: of the file.
        states: (key, result) of each.
    """
    arrays: dict[str, Any] = {}
    trees = {key: packed(result, arrays) for key, result in states}
    with path.open("wb") as file:
        np.savez_compressed(file, index=np.array(json.dumps(trees)), **arrays)


def fresh() -> Iterator[tuple[str, Any]]:
    """Every place of each lesson's first slider, computed anew: (name of the state, result)."""
    for lesson in lessons.LESSONS:
        for values in lessons.places(lesson):
            print(lessons.name_of(lesson, values), flush=True)
            yield lessons.name_of(lesson, values), lesson.compute(values, Job("", "", lesson.title))


def thumbnail(lesson: lessons.Lesson) -> str:
    """A lesson's small picture, from what it shows when it opens."""
    shown = lessons.stored_result(lessons.name_of(lesson, lesson.preset))
    return small(lesson.draw(shown, lesson.preset).pictures[0].figure)


if __name__ == "__main__":
    write(Path(sys.argv[1]), fresh())
    for each in lessons.LESSONS:
        lessons.thumbnail(each).write_text(thumbnail(each), encoding="utf-8")
