"""What `streamlit run streamlit_app.py` serves; `workbench app` serves the same."""

import streamlit as st

from workbench.app.server import options

# Streamlit finds the app by reading this file, so the call stays in this literal form. The router
# lives in workbench/main.py: beside a folder called pages/ it would be bypassed on a deep link.
app = st.App("workbench/main.py", **options())
