"""Where the pictures of pools are."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def picture(name: str, kind: str) -> Path:
    """The picture of a pool's card; of its kind when the pool has none of its own.

    Args:
        name: of the pool.
        kind: "table", "image" or "text".

    Returns:
        Path of an SVG file.
    """
    own = FOLDER / f"card-{name}.svg"
    return own if own.is_file() else FOLDER / f"kind-{kind}.svg"
