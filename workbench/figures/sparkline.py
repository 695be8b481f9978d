"""A line the size of a word, as SVG: small enough for a sidebar."""

from collections.abc import Sequence

import numpy as np

from workbench.figures import theme


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
