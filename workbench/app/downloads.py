"""Figures to take away: one small menu that a page puts under a figure."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from workbench.figures import export


def figure_downloads(fig: Any, stem: str, key: str) -> None:
    """A menu that offers a figure as HTML, and as PNG and SVG where a browser can draw them.

    Nothing is drawn until a file is asked for, so a rerun costs no more than the menu.

    Args:
        fig: the Plotly figure, as shown.
        stem: of the file's name.
        key: of the menu; unique on the page.
    """
    with st.popover("Save figure", icon=":material/download:", type="tertiary", key=key):
        _button("Interactive page (HTML)", lambda: export.html(fig, stem).encode(), f"{stem}.html", key)
        _button("Numbers (CSV)", lambda: export.numbers(fig).encode(), f"{stem}.csv", key)
        reason = export.why_no_images()
        if reason:
            st.caption(reason)
            return
        _button("Picture (PNG)", partial(export.image, fig, "png"), f"{stem}.png", key)
        _button("Drawing (SVG)", partial(export.image, fig, "svg"), f"{stem}.svg", key)


def _button(label: str, data: Any, name: str, key: str) -> None:
    ending = name.rpartition(".")[2]
    mime = {"html": "text/html", "csv": "text/csv", "png": "image/png", "svg": "image/svg+xml"}[ending]
    st.download_button(
        label,
        data=data,
        file_name=name,
        mime=mime,
        key=f"{key}-{ending}",
        on_click="ignore",
        width="stretch",
    )
