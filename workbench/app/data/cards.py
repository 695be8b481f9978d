"""The pictures of pools, and what stands on their cards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.app.serving.frontend import picture_address
from workbench.writing import private_folder, whole_file

if TYPE_CHECKING:
    from workbench.pools.pool import Pool

FOLDER = Path(__file__).resolve().parent


def picture(name: str, kind: str) -> Path:
    """The picture of a pool's card; of its kind when the pool has none of its own.

    Args:
        name: of the pool.
        kind: "table", "image" or "text".

    Returns:
        Path of an SVG file.
    """
    path = FOLDER / f"card-{name}.svg"
    return path if path.is_file() else FOLDER / f"kind-{kind}.svg"


def face(title: str, drawing: Path, lines: Sequence[str]) -> str:
    """A card's picture, title and words as HTML: one element of the page, quicker than one for each.

    Args:
        title: plain text.
        drawing: an SVG file of ours.
        lines: plain texts under it.
    """
    words = "<br>".join(escape(line) for line in lines)
    about = escape(f"Items of {title}")
    return (
        f'<img alt="{about}" src="{picture_address(drawing)}" width="320" height="132"'
        ' style="display: block; width: 100%; height: auto">'
        f'<p style="margin: 1rem 0 .25rem; font-weight: 600">{escape(title)}</p>'
        '<p style="margin: 0; font-size: .875rem; line-height: 1.6;'
        f' color: color-mix(in srgb, currentColor 80%, transparent)">{words}</p>'
    )


def thumbnail(project: str) -> Path:
    """The place of the picture of a project's card, once the project was opened."""
    from workbench.store import workbench_home

    return workbench_home() / "thumbnails" / f"{project}.png"


def project_picture(record: Any) -> Path:
    """The picture of a project's card: of its own images, else of its pool, else of its kind."""
    from workbench.pools import POOLS

    path = thumbnail(record.id)
    if path.is_file():
        return path
    name, options = str(record.pool["name"]), record.pool.get("options") or {}
    if name in POOLS:
        return picture(name, POOLS[name].kind)
    uses = [use.get("use") for use in (options.get("columns") or {}).values() if isinstance(use, dict)]
    features = [use for use in uses if use in ("number", "category", "date", "text")]
    if options.get("text_column") or features == ["text"]:
        return picture("", "text")
    is_image = (
        name.startswith("images:") or "picture" in uses or options.get("features") in ("shapes", "pixels")
    )
    return picture("", "image" if is_image else "table")


def draw(project: str, pool: Pool) -> None:
    """Keep a picture of a project's images for its card; without one the card shows its kind."""
    if pool.kind != "image" or thumbnail(project).is_file():
        return
    from PIL import Image

    from workbench.figures.parts import sheet, tile

    place = thumbnail(project)
    # nobody is kept from labelling by a picture of a card
    with suppress(Exception):
        images = [pool.items.show(i).image for i in range(0, len(pool), max(1, len(pool) // 18))[:18]]
        image = sheet([tile(picture, 64) for picture in images if picture is not None], 6, gap=4, ground=255)
        private_folder(place.parent)
        with whole_file(place, private=True, synced=False) as file:
            Image.fromarray(image).save(file, "PNG")
