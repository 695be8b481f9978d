"""Look of pools and items in a notebook: HTML without scripts, styles or colours of its own."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from workbench.arrays import Array

_THUMBNAILS, _SIDE = 12, 64
_TEXTS, _LONGEST = 4, 200
_ROWS, _COLUMNS = 4, 8
_CLASSES = 12


def counted(n: int, noun: str, plural: str = "") -> str:
    """A number of things in words: 1 item, 2 items."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def class_words(classes: Sequence[str]) -> str:
    """Number and names of classes: "3 classes: a, b, c"."""
    if not classes:
        return "no classes yet"
    names = ", ".join(classes[:_CLASSES])
    more = f" and {len(classes) - _CLASSES} more" if len(classes) > _CLASSES else ""
    return f"{counted(len(classes), 'class', 'classes')}: {names}{more}"


def pool_words(pool: Any) -> str:
    """A pool in a line: its name, its sizes, its classes."""
    noun = {"table": ("row", "rows"), "image": ("image", "images"), "text": ("text", "texts")}[pool.kind]
    parts = [counted(len(pool), *noun), counted(pool.n_features, "feature"), class_words(pool.classes)]
    if pool.truth is not None:
        n_known = int((pool.truth >= 0).sum())
        parts.append("every class known" if n_known == len(pool) else f"{n_known:,} classes known")
    if pool.test is not None:
        parts.append(f"{pool.test.test.size:,} kept to measure on")
    return f"Pool {pool.name!r}: {'; '.join(parts)}"


def pool_html(pool: Any) -> str:
    """A pool with a look at its first items: pictures in a row, texts, or rows of a table."""
    head = f"<p><b>{escape(pool.title or pool.name)}</b><br>{escape(pool_words(pool))}</p>"
    if pool.kind == "image":
        step = max(1, len(pool) // _THUMBNAILS)
        items = range(0, len(pool), step)[:_THUMBNAILS]
        pictures = (picture(pool.items.show(i).image, f"item {i}") for i in items)
        return f"<div>{head}<p>{' '.join(pictures)}</p></div>"
    views = [pool.items.show(i) for i in range(min(len(pool), _ROWS))]
    if pool.kind == "text":
        texts = "".join(f"<li>{escape(_cut(view.text))}</li>" for view in views[:_TEXTS])
        return f"<div>{head}<ul>{texts}</ul></div>"
    rows = [dict(view.row or {}) for view in views]
    names = list(rows[0])[:_COLUMNS] if rows else []
    more = len(rows[0]) - len(names) if rows else 0
    cells = [[row.get(name) for name in names] for row in rows]
    table = table_html(names, cells)
    beyond = f"<p>and {counted(more, 'more column')}</p>" if more > 0 else ""
    return f"<div>{head}{table}{beyond}</div>"


def item_html(shown: Any) -> str:
    """One item as a person sees it."""
    if shown.image is not None:
        return picture(shown.image, "the item", side=224)
    if shown.text is not None:
        return f'<p style="white-space:pre-wrap;max-width:48em">{escape(shown.text)}</p>'
    return table_html(("", ""), list((shown.row or {}).items()), heads=False)


def item_words(shown: Any) -> str:
    """One item in a line or a few."""
    if shown.image is not None:
        height, width = shown.image.shape[:2]
        return f"Image of {height} x {width} pixels"
    return str(shown.text) if shown.text is not None else str(dict(shown.row or {}))


def picture(image: Array, words: str, side: int = _SIDE) -> str:
    """An image as an HTML element, its longer edge `side` pixels.

    Args:
        image: [H, W] or [H, W, 3] uint8.
        words: for people who do not see it.
        side: in pixels.
    """
    from PIL import Image

    small = Image.fromarray(image)
    small.thumbnail((2 * side, 2 * side))
    out = io.BytesIO()
    small.save(out, "PNG")
    height, width = image.shape[:2]
    longest = max(height, width)
    sharp = ";image-rendering:pixelated" if longest < side else ""
    return (
        f'<img alt="{escape(words)}" src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}" '
        f'style="width:{max(1, width * side // longest)}px;height:{max(1, height * side // longest)}px;'
        f'display:inline-block;margin:1px{sharp}">'
    )


def table_html(heads_: Sequence[str], rows: Iterable[Sequence[Any]], *, heads: bool = True) -> str:
    """Cells as an HTML table.

    Args:
        heads_: names of the columns.
        rows: their cells.
        heads: whether the names are shown.
    """
    top = f"<tr>{''.join(f'<th>{escape(_cut(name, 40))}</th>' for name in heads_)}</tr>" if heads else ""
    lines = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div style="overflow-x:auto"><table>{top}{lines}</table></div>'


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(_cut(str(value) if not isinstance(value, Mapping) else repr(dict(value))))


def _cut(text: Any, limit: int = _LONGEST) -> str:
    full_text = str(text)
    return full_text if len(full_text) <= limit else f"{full_text[: limit - 1]}…"
