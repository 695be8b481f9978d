"""Answers that wait in a browser for a project that its person may not open any more."""

from pathlib import Path

from workbench.app.access import login
from workbench.app.serving.frontend import component

_HERE = Path(__file__).resolve().parent
_DESK = _HERE.parent / "desk"


def mount(project: str, person: login.Person) -> None:
    """Say how many answers wait, and offer them as a file; nothing where none do.

    Args:
        project: its id.
        person: whoever logged in.
    """
    data = {"project": project, "person": person.name, "account": person.account}
    scripts = _DESK / "parts.js", _HERE / "kept.js"
    kept = component("kept", *scripts, style=_DESK / "desk.css", html='<div class="desk-place"></div>')
    kept(key="kept-answers", data=data)
