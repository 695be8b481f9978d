"""The question at the desk, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.sessions import Session

OF_KIND = {
    "image": "What does this picture show?",
    "text": "Which class does this text belong to?",
    "table": "Which class does this row belong to?",
}
LONGEST = 30  # characters of a column's name that reads well in a question


def question(session: Session) -> str:
    """Question about each item: the project's words, else its pool's, else made from its target.

    Args:
        session: of the project.
    """
    return str(session.settings.get("question") or "") or usual(session)


def usual(session: Session) -> str:
    """The question that a project comes with; of several the one with the session's name."""
    from workbench.pools import POOLS
    from workbench.store import YES_NO

    if len(session.questions.every) > 1:
        name = " ".join(session.question_name.split())
        return f"{name}: yes or no?" if session.project.kind == YES_NO else f"Which {name} is this?"

    pool = session.project.pool
    name = str(pool["name"])
    if name in POOLS and POOLS[name].question:
        return POOLS[name].question
    options = pool.get("options") or {}
    columns = dict(options.get("columns") or {})
    of_class = next((column for column, use in columns.items() if use.get("use") == "class"), "")
    target = " ".join(str(options.get("target") or of_class).replace("_", " ").split())
    plain = target.lower() in ("", "label", "class", "target", "y")
    if not plain and len(target) <= LONGEST and session.pool.kind != "image":
        return f"Which {target} is this?"
    return OF_KIND[session.pool.kind]
