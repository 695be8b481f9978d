"""What every page shares: title, menu, sidebar, the error of a person in place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

ICON = Path(__file__).resolve().parent / "icon.svg"


def run(pages: Sequence[Any]) -> None:
    """Route to the page in the address and draw the sidebar.

    Args:
        pages: `st.Page` objects, in the order of the menu; the first is where people start.
    """
    st.set_page_config(page_title="Workbench", page_icon=str(ICON), layout="wide")
    chosen = st.navigation(list(pages))
    chosen.run()
