"""Items as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.text import NOTHING, plain, verbatim

if TYPE_CHECKING:
    from workbench.pools import Pool

SIDE = 340
SHORT = 360
"""Characters of a text that need no box to scroll in."""


def show(pool: Pool, item: int, key: str) -> None:
    """One item, big.

    Args:
        pool: it belongs to.
        item: its index.
        key: makes widget keys unique.
    """
    shown = pool.items.show(item)
    if shown.kind == "image" and shown.image is not None:
        from workbench.figures.thumbnails import enlarged

        st.image(
            enlarged(shown.image, SIDE), width=SIDE, output_format="PNG", alt=f"Item {pool.items.ids[item]}"
        )
    elif shown.kind == "text" and shown.text is not None:
        # a long text is scrolled, a short one takes what it needs
        long = len(shown.text) > SHORT or shown.text.count("\n") > SHORT // 60
        with st.container(border=True, height=SIDE if long else "content"):
            st.text(shown.text)
    elif shown.row is not None:
        _row(pool, item, dict(shown.row), key)


def _row(pool: Pool, item: int, row: dict[str, Any], key: str) -> None:
    import pandas as pd

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
    values = [plain(value) or NOTHING for value in row.values()]
    # the place before the value, which may be long and would push it out of sight
    table = pd.DataFrame({"Column": list(map(str, row)), "In the pool": places, "Value": values})
    configuration: dict[str, Any] = {
        "In the pool": st.column_config.ProgressColumn(
            "Place",
            help="Share of the pool with a smaller value: a full bar is the largest.",
            format="%.0f %%",
            min_value=0,
            max_value=100,
            width=72,
        )
    }
    if all(place is None for place in places):
        table = table.drop(columns="In the pool")
        configuration = {}
    st.dataframe(
        table,
        hide_index=True,
        column_config=configuration,
        height=min(38 + 35 * len(table), 480),
        key=key,
        alt="The values of this item",
    )


def neighbours(pool: Pool, found: Sequence[tuple[int, int, float]], classes: Sequence[str], key: str) -> None:
    """Labelled items most like the shown one, with their classes.

    Args:
        pool: they belong to.
        found: as `seeing.nearest_labelled` gives them.
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
