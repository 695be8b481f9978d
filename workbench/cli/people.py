"""`workbench access`: whose a project is and who may open it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import InputError
from workbench.reading import cut, listed


def show_or_change(project: str, access: str | None, owner: str | None, people: Sequence[str]) -> None:
    """Print who may open a project, after changing what is given.

    Args:
        project: id or name.
        access: "private", "shared" or "open"; "shared" where only people are given.
        owner: name or key of the person it is to belong to.
        people: names or keys of those it is shared with, instead of the present ones.

    Raises:
        InputError: no such project or person, or an access without an owner.
    """
    from workbench.cli.labels import project_named

    found, store = project_named(project)
    names = store.people()
    if access or owner or people:
        key = found.owner if owner is None else _key(owner, names)
        kind = access or ("shared" if people else found.access)
        members = [_key(one, names) for one in people] if people else list(found.members)
        store.share_project(found.id, key, kind, members)
        found = store.project(found.id)
    whose = f"of {names.get(found.owner, found.owner)}" if found.owner else "of nobody"
    shared = ", ".join(names.get(key, key) for key in found.members)
    print(f"{found.name} ({found.id}): {found.access}, {whose}" + (f", with {shared}" if shared else ""))


def _key(given: str, names: dict[str, str]) -> str:
    found = [key for key, name in names.items() if given in (key, name)]
    if not found:
        known = listed(sorted(names.values())) if names else "nobody yet"
        raise InputError(f"Nobody called {cut(given)} has logged in; there are: {known}.")
    return found[0]
