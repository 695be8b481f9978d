"""Draws the pictures of the bundled pools' cards: `python -m benchmarks.cards`.

They are drawn once and shipped, because opening a pool to draw it would make the first page wait
for scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.app.data.cards import FOLDER
from workbench.arrays import Array
from workbench.figures import theme
from workbench.pools import POOLS, load_pool

WIDTH, HEIGHT = 320, 132


def scatter_card(points: Array, codes: Array, *, limit: int = 220) -> str:
    """Items on a plane, coloured by class.

    Args:
        points: [N, 2]; those that are no finite numbers are left out.
        codes: [N] classes; -1 is drawn grey.
        limit: at most this many points.

    Returns:
        SVG text.
    """
    points, codes = np.asarray(points, dtype=float), np.asarray(codes)
    there = np.isfinite(points).all(axis=1)
    points, codes = points[there], codes[there]
    if not len(points):
        return _svg([])
    pick = np.linspace(0, len(points) - 1, min(limit, len(points))).astype(int)
    low, high = np.percentile(points, [2, 98], axis=0)
    unit = np.clip((points[pick] - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    pad = 12
    marks = []
    for (x, y), code in zip(unit, codes[pick], strict=True):
        colour = theme.class_colour(int(code)) if code >= 0 else theme.NEUTRAL
        at = f'cx="{pad + x * (WIDTH - 2 * pad):.1f}" cy="{HEIGHT - pad - y * (HEIGHT - 2 * pad):.1f}"'
        marks.append(f'<circle {at} r="4" fill="{colour}" fill-opacity="0.8"/>')
    return _svg(marks)


def image_card(images: Sequence[Array], *, rows: int = 2) -> str:
    """Small grey images in rows; ink drawn in one colour on nothing.

    Args:
        images: each [H, W] with 0 for paper and its maximum for ink.
        rows: of images.

    Returns:
        SVG text.
    """
    if not len(images):
        return _svg([])
    columns = -(-len(images) // rows)
    height, width = np.asarray(images[0]).shape
    cell = min(WIDTH / (columns * (width + 1) + 1), HEIGHT / (rows * (height + 1) + 1))
    left = (WIDTH - cell * (columns * (width + 1) - 1)) / 2
    top = (HEIGHT - cell * (rows * (height + 1) - 1)) / 2
    marks = []
    for i, image in enumerate(images):
        ink = np.asarray(image, dtype=float)
        ink = ink / (ink.max() or 1.0)
        x0 = left + (i % columns) * (width + 1) * cell
        y0 = top + (i // columns) * (height + 1) * cell
        for row, column in zip(*np.nonzero(ink > 0.08), strict=True):
            marks.append(
                f'<rect x="{x0 + column * cell:.1f}" y="{y0 + row * cell:.1f}" width="{cell:.1f}" '
                f'height="{cell:.1f}" fill="{theme.class_colour(0)}" fill-opacity="{ink[row, column]:.2f}"/>'
            )
    return _svg(marks)


def _svg(marks: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">' + "".join(marks) + "</svg>\n"
    )


def main() -> None:
    for name, entry in POOLS.items():
        if entry.n_items > 100_000:
            continue  # the picture of its kind will do
        pool = load_pool(name)
        if entry.kind == "image":
            rng = np.random.default_rng(3)
            one_each = [rng.choice(np.flatnonzero(pool.truth == c)) for c in range(len(pool.classes))]
            others = rng.permutation(len(pool))[: max(0, 14 - len(one_each))]
            images = [np.asarray(pool.items.show(int(i)).image, dtype=float) for i in [*one_each, *others]]
            # ink is what the corner is not, whichever way round the images are
            images = [np.abs(image - float(np.median([im[0, 0] for im in images]))) for image in images]
            picture = image_card(images)
        else:
            features = np.asarray(pool.features, dtype=float)
            if not pool.plane:
                scaled = np.clip((features - features.mean(0)) / (features.std(0) + 1e-12), -2, 2)
                scaled -= scaled.mean(0)
                features = scaled @ np.linalg.svd(scaled, full_matrices=False)[2][:2].T
            picture = scatter_card(features, pool.truth)
        (FOLDER / f"card-{name}.svg").write_text(picture, encoding="utf-8")
        print(f"card-{name}.svg", len(picture))


if __name__ == "__main__":
    main()
