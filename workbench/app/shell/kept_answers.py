"""Answers that wait in a browser for a project that its person may not open any more."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from workbench.app.access import login


@cache
def _registered() -> Any:
    import streamlit as st

    folder = Path(__file__).resolve().parent
    desk = folder.parent / "desk"
    scripts = [file.read_text(encoding="utf-8") for file in (desk / "parts.js", folder / "kept.js")]
    return st.components.v2.component(
        "workbench_kept",
        html='<div class="desk-place"></div>',
        css=(desk / "desk.css").read_text(encoding="utf-8"),
        js="\n".join(scripts),
    )


def mount(project: str, person: login.Person) -> None:
    """Say how many answers wait, and offer them as a file; nothing where none do.

    Args:
        project: its id.
        person: whoever logged in.
    """
    data = {"project": project, "person": person.name, "account": person.account}
    _registered()(key="kept-answers", data=data)
