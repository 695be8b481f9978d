"""`workbench access` and `workbench log`: who may open a project, and who did what to it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.cli.audit import done
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
        called = ", ".join(names.get(key, key) for key in found.members)
        done(store, "shared", found, " with ".join(filter(None, (found.access, called))))
    whose = f"of {names.get(found.owner, found.owner)}" if found.owner else "of nobody"
    shared = ", ".join(names.get(key, key) for key in found.members)
    print(f"{found.name} ({found.id}): {found.access}, {whose}" + (f", with {shared}" if shared else ""))


def print_audit(project: str | None, most: int) -> None:
    """Who opened, exported, shared, deleted and uploaded what, newest first.

    Args:
        project: id or name, also of one that was deleted; all of them unless given.
        most: entries.

    Raises:
        InputError: nothing was ever done to such a project, and there is none.
    """
    from workbench.cli.labels import project_named
    from workbench.cli.values import print_table
    from workbench.store import Store

    if most < 1:
        raise InputError(f"--count must be at least 1; got {most}.")
    store = Store.open()
    if project is None:
        found = store.audited(most=most)
    else:
        gone = [one for one in store.audited(what="deleted") if project in (one.project, one.called)]
        try:
            wanted = project_named(project)[0].id
        except InputError:
            if not gone or gone[0].project is None:
                raise
            wanted = gone[0].project
        found = store.audited(project=wanted, most=most)
    rows = [(one.time[:19], one.name, one.what, one.called, one.project or "", one.detail) for one in found]
    print_table(("time", "who", "what", "project", "id", "about"), rows)


def _key(given: str, names: dict[str, str]) -> str:
    found = [key for key, name in names.items() if given in (key, name)]
    if not found:
        known = listed(sorted(names.values())) if names else "nobody yet"
        raise InputError(f"Nobody called {cut(given)} has logged in; there are: {known}.")
    return found[0]
