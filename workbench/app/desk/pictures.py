"""Pictures of items and of instructions, as the browser fetches them."""

from __future__ import annotations

from workbench.app.desk import cards
from workbench.errors import InputError


def picture(project: str, item: int, side: int = 0) -> tuple[bytes, str]:
    """A picture's bytes and media type.

    Args:
        project: id of the project.
        item: index into the pool.
        side: pixels of its longer side, at most; 0 for all.

    Raises:
        InputError: there is no such picture.
    """
    from workbench.app.access import current
    from workbench.pools.images.photos import PhotoItems

    pool = current.opened(project).pool
    inside = 0 <= item < len(pool)
    if inside and side and isinstance(pool.items, PhotoItems) and pool.items.photos.longest(item) > side:
        return cards.encoded(pool.items.photos.brought(side=side)[item], "JPEG"), "image/jpeg"
    view = pool.items.show(item) if inside else None
    if view is None or view.image is None:
        raise InputError(f"There is no picture of item {item}.")
    form = "PNG" if view.image.size <= 200_000 else "JPEG"
    return cards.encoded(view.image, form, side), f"image/{form.lower()}"


def picture_told(project: str, name: str) -> tuple[bytes, str]:
    """A picture of the instructions: its bytes and media type.

    Args:
        project: id of the project.
        name: that it is kept under.

    Raises:
        InputError: there is no such picture.
    """
    from workbench.app.access import current

    picture = current.opened(project).instructions.picture(name)
    return picture.data, picture.media
