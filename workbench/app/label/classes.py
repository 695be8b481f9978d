"""The classes as a table that people edit, and what of it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import InputError
from workbench.sessions import ProjectState, Session
from workbench.sessions.taxonomy import code_book

PLACE, NAME, KEY, COLOUR, GUIDANCE, ITEMS = "Place", "Class", "Key", "Colour", "Guidance", "Items"
KINDS = {PLACE: "int64", NAME: "object", KEY: "object", COLOUR: "object", GUIDANCE: "object", ITEMS: "int64"}
"""The columns of the table and what they hold."""
_ABOUT = {KEY: "shortcut", COLOUR: "colour", GUIDANCE: "guidance"}


def table(state: ProjectState) -> list[dict[str, Any]]:
    """A row a class, in the order in which they are shown."""
    return [
        {
            PLACE: place,
            NAME: row["class"],
            KEY: row["shortcut"],
            COLOUR: row["colour"],
            GUIDANCE: row["guidance"],
            ITEMS: row["items"],
        }
        for place, row in enumerate(code_book(state), start=1)
    ]


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a data frame; with none of them the columns in which a class is named."""
    import pandas as pd

    kinds = KINDS if rows else {name: kind for name, kind in KINDS.items() if name not in (PLACE, ITEMS)}
    return pd.DataFrame(list(rows), columns=list(kinds)).astype(kinds)


def n_changes(delta: Mapping[str, Any]) -> int:
    """Number of cells that were changed and rows filled in or taken out; a row that was only begun is none.

    Args:
        delta: of the editor, as `apply` takes it.
    """
    cells = sum(len(row) for row in delta.get("edited_rows", {}).values())
    added = sum(any(row.values()) for row in delta.get("added_rows", ()))
    return cells + added + len(delta.get("deleted_rows", ()))


def apply(session: Session, before: Sequence[Mapping[str, Any]], delta: Mapping[str, Any]) -> list[str]:
    """Do what somebody changed in the table; what cannot be done leaves the rest.

    Args:
        session: of the person who edits.
        before: the rows as they were shown.
        delta: of the editor: edited_rows (place in `before` -> column -> value), added_rows, deleted_rows.

    Returns:
        Why something was not done, a sentence each.
    """
    problems: list[str] = []

    def attempt(change: Any, *args: Any, **kwargs: Any) -> bool:
        try:
            change(*args, **kwargs)
        except InputError as error:
            problems.append(str(error))
            return False
        return True

    edited = {int(at): dict(cells) for at, cells in delta.get("edited_rows", {}).items()}
    deleted_rows = {int(at) for at in delta.get("deleted_rows", ())}
    places: list[tuple[float, str]] = []
    for at, row in enumerate(before):
        if at in deleted_rows:
            continue
        name, cells = str(row[NAME]), edited.get(at, {})
        new = str(cells.get(NAME) or name).strip()
        if new != name and attempt(session.classes.rename, name, new):
            name = new
        about = {word: str(cells[column] or "") for column, word in _ABOUT.items() if column in cells}
        if about:
            attempt(session.classes.describe, name, **about)
        # a class that is given a place goes before the one that has it
        has_place = PLACE in cells and cells[PLACE] is not None
        places.append((float(cells[PLACE]) - 0.5 if has_place else float(row[PLACE]), name))
        if has_place and float(cells[PLACE]) > float(row[PLACE]):
            places[-1] = (float(cells[PLACE]) + 0.5, name)
    for cells in delta.get("added_rows", ()):
        name = str(cells.get(NAME) or "").strip()
        about = {word: str(cells[column]) for column, word in _ABOUT.items() if cells.get(column)}
        if not name and not about:
            continue
        if attempt(session.classes.add, name) and about:
            attempt(session.classes.describe, name, **about)
    for at in sorted(deleted_rows):
        attempt(session.classes.remove, str(before[at][NAME]))
    if any(PLACE in cells for cells in edited.values()):
        attempt(session.classes.order, [name for _, name in sorted(places, key=lambda p: p[0])])
    return problems
