"""Router and shared frame; nothing else. One line a page."""

from pathlib import Path

import streamlit as st

from workbench.app.shell import frame

# pages/ lies beside the package in the repository and inside it in a wheel
_HERE = Path(__file__).resolve().parent
PAGES = next((f for f in (_HERE.parent / "pages", _HERE / "app_pages") if (f / "data.py").is_file()), _HERE)

ICONS = {
    "data": "database",
    "label": "label",
    "finish": "verified",
    "compare": "show_chart",
    "uncertainty": "scatter_plot",
    "calibration": "straighten",
    "adversarial": "shield",
    "lessons": "school",
    "history": "history",
    "help": "help",
}
FIRST = "data"

frame.run(
    [
        st.Page(
            PAGES / f"{name}.py",
            title=name.capitalize(),
            icon=f":material/{icon}:",
            url_path="start" if name == FIRST else name,
            default=name == FIRST,
        )
        for name, icon in ICONS.items()
    ]
    # the first page answers at / alone; people type its name too
    + [st.Page(frame.first_page, title="Data", url_path=FIRST, visibility="hidden")]
)
