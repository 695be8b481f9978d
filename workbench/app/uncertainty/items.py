"""Items as people see them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.shell import widgets
from workbench.app.words.text import NOTHING, one_line, plain, verbatim

if TYPE_CHECKING:
    from workbench.pools import Pool

SIDE = 340
MOST_CELLS = 200
PLACE = "larger than in {:.0f} % of the items"
ROW_STYLE = (
    "dl.item-row.item-row { margin: 0; padding: 0; max-height: 30rem; overflow: auto; font-size: .9rem; }"
    ".item-row div { padding: .3rem .1rem .35rem;"
    " border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent); }"
    ".item-row dt { font-size: .8rem; opacity: .8; font-weight: 400; overflow-wrap: anywhere;"
    " line-height: 1.25; }"
    ".item-row dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; display: flex; flex-wrap: wrap;"
    " align-items: center; justify-content: space-between; gap: .1rem .75rem; }"
    ".item-row dd i { font-weight: 400; opacity: .8; }"
    ".item-row dd span { flex: none; width: 5rem; height: .4rem; border-radius: .2rem;"
    " background: color-mix(in srgb, currentColor 14%, transparent); }"
    ".item-row dd b { display: block; height: 100%; border-radius: .2rem; min-width: 2px;"
    " background: #2F74C4; }"
)
SHORT = 360
"""Characters of a text that need no box to scroll in."""


def show(pool: Pool, item: int, key: str) -> None:
    """One item, big.

    Args:
        pool: it belongs to.
        item: its index.
        key: makes widget keys unique.
    """
    content = pool.items.show(item)
    if content.kind == "image" and content.image is not None:
        from workbench.figures.thumbnails import enlarged

        st.image(
            enlarged(content.image, SIDE), width=SIDE, output_format="PNG", alt=f"Item {pool.items.ids[item]}"
        )
    elif content.kind == "text" and content.text is not None:
        # a long text is scrolled, a short one takes what it needs
        long = len(content.text) > SHORT or content.text.count("\n") > SHORT // 60
        with st.container(border=True, height=SIDE if long else "content"):
            st.text(content.text)
        if content.row:
            cells = (
                f"{one_line(name, 40)}: {plain(value) or NOTHING}" for name, value in content.row.items()
            )
            st.caption(verbatim(" · ".join(cells), 600))
    elif content.row is not None:
        _row(pool, item, dict(content.row), key)


def _row(pool: Pool, item: int, row: dict[str, Any], key: str) -> None:
    columns = {name: i for i, name in enumerate(pool.feature_map.columns)}
    places: list[float | None] = []
    for name, value in row.items():
        at = columns.get(name)
        # an empty cell has none: what the model takes in its stead is not the item's
        if at is None or not plain(value):
            places.append(None)
            continue
        column = np.asarray(pool.features[:, at])
        # the middle of the ties, so that a common value is drawn in the middle of its run
        below, same = float((column < column[item]).mean()), float((column == column[item]).mean())
        places.append(round(100 * (below + same / 2)))
    with st.container(key=f"row-of-{key}"):
        widgets.style(ROW_STYLE)
        st.html(
            '<dl class="item-row" tabindex="0" aria-label="The values of this item">'
            + _cells(row, places)
            + "</dl>"
        )


def _cells(row: dict[str, Any], places: Sequence[float | None]) -> str:
    """The cells as the parts of a list: a name above its value, whatever the width of either."""
    parts = []
    for (name, value), place in list(zip(row.items(), places, strict=True))[:MOST_CELLS]:
        # a name of many words may be broken between them
        header = re.sub(r"([_/.:-])", r"\1<wbr>", escape(one_line(name)))
        text = plain(value)
        words = escape(text) if text else f"<i>{NOTHING}</i>"
        bar = (
            ""
            if place is None
            else f'<span title="{PLACE.format(place)}"><b style="width:{place:.0f}%"></b></span>'
        )
        parts.append(f'<div><dt dir="auto">{header}</dt><dd dir="auto">{words}{bar}</dd></div>')
    if len(row) > MOST_CELLS:
        parts.append(f"<div><dt>and {len(row) - MOST_CELLS:,} more columns</dt><dd></dd></div>")
    return "".join(parts)


def neighbours(pool: Pool, found: Sequence[tuple[int, int, float]], classes: Sequence[str], key: str) -> None:
    """Labelled items most like the shown one, with their classes.

    Args:
        pool: they belong to.
        found: as `explanations.nearest_labelled` gives them.
        classes: names.
        key: makes widget keys unique.
    """
    if not found:
        st.caption("No labelled item yet.")
        return
    if pool.kind == "image":
        from workbench.figures.thumbnails import thumbnail

        with st.container(horizontal=True, gap="xsmall", key=f"near-{key}"):
            for item, code, _ in found:
                with st.container(width=60, gap=None):
                    image = pool.items.show(item).image
                    if image is not None:
                        st.image(thumbnail(image, 56), width=56, output_format="PNG", alt=str(classes[code]))
                    st.caption(verbatim(classes[code], 12), text_alignment="center")
        return
    import pandas as pd

    table = pd.DataFrame(
        {
            "Item": [str(pool.items.ids[item]) for item, _, _ in found],
            "Class": [str(classes[code]) for _, code, _ in found],
            "Distance": [distance for _, _, distance in found],
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        key=f"near-{key}",
        column_config={"Distance": st.column_config.NumberColumn(format="%.2f")},
        alt="Nearest labelled items",
    )
