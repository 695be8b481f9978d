"""Router and shared frame; nothing else. One line a page."""

from pathlib import Path

import streamlit as st

from workbench.app.shell import frame

# pages/ lies beside the package in the repository and inside it in a wheel
_HERE = Path(__file__).resolve().parent
PAGES = next((f for f in (_HERE.parent / "pages", _HERE / "app_pages") if (f / "data.py").is_file()), _HERE)

frame.run(
    [
        st.Page(PAGES / "data.py", title="Data", icon=":material/database:", url_path="start", default=True),
        st.Page(PAGES / "label.py", title="Label", icon=":material/label:", url_path="label"),
        st.Page(PAGES / "finish.py", title="Finish", icon=":material/verified:", url_path="finish"),
        st.Page(PAGES / "compare.py", title="Compare", icon=":material/show_chart:", url_path="compare"),
        st.Page(
            PAGES / "uncertainty.py",
            title="Uncertainty",
            icon=":material/scatter_plot:",
            url_path="uncertainty",
        ),
        st.Page(
            PAGES / "calibration.py",
            title="Calibration",
            icon=":material/straighten:",
            url_path="calibration",
        ),
        st.Page(
            PAGES / "adversarial.py", title="Adversarial", icon=":material/shield:", url_path="adversarial"
        ),
        st.Page(PAGES / "lessons.py", title="Lessons", icon=":material/school:", url_path="lessons"),
        st.Page(PAGES / "history.py", title="History", icon=":material/history:", url_path="history"),
        st.Page(PAGES / "help.py", title="Help", icon=":material/help:", url_path="help"),
        # the first page answers at / alone; people type its name too
        st.Page(frame.first_page, title="Data", url_path="data", visibility="hidden"),
    ]
)
