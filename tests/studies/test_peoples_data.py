"""Data as people bring it, made by a seed: figures that the defaults must reach."""

import io
import math
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions.simulate import simulate

FAST, ALL = 1, 5
SIZES = ((160, 120), (120, 160), (118, 88), (240, 180), (200, 200), (270, 90))
PAPER = ((225, 222, 210), (200, 214, 205), (235, 230, 235), (180, 190, 200))
INK = ((90, 70, 40), (60, 90, 60), (110, 60, 70), (50, 70, 100))


def scene(shape: str, rng: np.random.Generator) -> bytes:
    """A drawn organism somewhere on speckled paper of any size, as JPEG."""
    width, height = SIZES[rng.integers(len(SIZES))]
    paper, ink = np.array(PAPER[rng.integers(4)]), INK[rng.integers(4)]
    light = tuple(min(255, value + 70) for value in ink)
    speckles = rng.integers(-40, 40, (height, width, 1)) * (rng.random((height, width, 1)) < 1 / 60)
    image = Image.fromarray((paper + speckles).clip(0, 255).astype(np.uint8))
    draw, size, turn = ImageDraw.Draw(image), min(width, height), rng.uniform(0, 6)
    x, y = width * rng.uniform(0.35, 0.65), height * rng.uniform(0.4, 0.6)

    def at(radius: float, angle: float) -> tuple[float, float]:
        return x + radius * math.cos(angle), y + radius * math.sin(angle)

    if shape == "disc":
        r = size * rng.uniform(0.22, 0.36)
        draw.ellipse([x - r, y - r, x + r, y + r], outline=ink, width=max(2, int(r / 12)), fill=light)
        for k in range(12):
            draw.line([(x, y), at(r, k * math.pi / 6)], fill=ink)
    elif shape == "rod":
        r = size * rng.uniform(0.3, 0.42)
        draw.line([at(r, turn), at(-r, turn)], fill=ink, width=int(size * rng.uniform(0.08, 0.14)))
    elif shape == "spiral":
        path = [at(size * 0.4 * i / 200, i * 6 * math.pi / 200 + turn) for i in range(200)]
        draw.line(path, fill=ink, width=max(2, size // 40), joint="curve")
    else:
        n = int(rng.integers(5, 8))
        corners = [
            at(size * (0.4 if i % 2 else 0.16) * rng.uniform(0.9, 1.1), turn + i * math.pi / n)
            for i in range(2 * n)
        ]
        draw.polygon(corners, fill=light, outline=ink)
    file = io.BytesIO()
    image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.5))).save(file, "JPEG", quality=85)
    return file.getvalue()


def photos(seed: int, folder: Path) -> Pool:
    """200 photos of mixed sizes in four folders, the rarest with a tenth of them."""
    rng = np.random.default_rng(seed)
    path = folder / f"scenes{seed}.zip"
    with zipfile.ZipFile(path, "w") as file:
        for i in range(200):
            shape = str(rng.choice(["disc", "rod", "spiral", "star"], p=[0.4, 0.3, 0.2, 0.1]))
            file.writestr(f"{shape}/{i}.jpg", scene(shape, rng))
    return load_pool(str(path))


def error_of_new_items(pool: Pool, labels: int, seed: int) -> float:
    """Share of wrong predictions of held-out items at a number of labels, asked by margin."""
    error = math.nan
    for at in simulate(pool, policy="margin", budget=labels - len(pool.classes), seed=seed):
        error = at.error if at.n_labelled <= labels else error
    return error


def mean_error(make: Callable[[int, Path], Pool], labels: int, seeds: int, folder: Path) -> float:
    """Mean over seeds, printed."""
    errors = [error_of_new_items(make(seed, folder), labels, seed) for seed in range(seeds)]
    print(f"{make.__name__}: error at {labels} labels {np.round(errors, 4)}, mean {np.mean(errors):.4f}")
    return float(np.mean(errors))


@pytest.mark.parametrize("seeds", [FAST, pytest.param(ALL, marks=pytest.mark.slow)])
def test_photos_of_mixed_sizes_are_learnt_from_60_labels(seeds: int, tmp_path: Path) -> None:
    assert mean_error(photos, 60, seeds, tmp_path) <= 0.05
