"""`workbench access`, `key` and `log`: who and what may open a project, and what was done with it."""

from typing import Annotated

from typer import Argument, Option

from workbench.cli.operands import Project, done, print_table, project_named
from workbench.documents.checking import MOST_ITEMS
from workbench.errors import InputError
from workbench.reading import cut, listed


def access(
    project: Project,
    access: Annotated[str | None, Argument(help="private, shared or open.")] = None,
    owner: Annotated[str | None, Option(help="Whose it is to be; somebody who has logged in.")] = None,
    people: Annotated[
        list[str] | None, Option("--with", help="Somebody it is shared with; again for more.")
    ] = None,
) -> None:
    """Show or change whose a project is and who may open it."""
    record, store = project_named(project)
    names = store.people.names()
    if access or owner or people:
        key = record.owner if owner is None else _key(owner, names)
        kind = access or ("shared" if people else record.access)
        members = [_key(person, names) for person in people] if people else list(record.members)
        store.share_project(record.id, key, kind, members)
        record = store.project(record.id)
        member_names = ", ".join(names.get(key, key) for key in record.members)
        done(store, "shared", record, " with ".join(filter(None, (record.access, member_names))))
    whose = f"of {names.get(record.owner, record.owner)}" if record.owner else "of nobody"
    shared = ", ".join(names.get(key, key) for key in record.members)
    print(f"{record.name} ({record.id}): {record.access}, {whose}" + (f", with {shared}" if shared else ""))


def program_keys(
    project: Project,
    person: Annotated[str | None, Option(help="Make a key that stands for this person.")] = None,
    purpose: Annotated[str, Option("--for", help="What the key is for, in a few words.")] = "",
    revoke: Annotated[str | None, Option(metavar="ID", help="This key opens nothing any more.")] = None,
) -> None:
    """Keys with which programs label and ask over HTTP."""
    record, store = project_named(project)
    if revoke is not None:
        old_key = store.keys.revoke(record.family, revoke)
        done(store, "opened to programs", record, f"key {old_key.id} of {old_key.name} revoked")
        print(f"The key {old_key.id} of {old_key.name} opens nothing any more.")
        return
    if person is not None:
        if record.owner:
            raise InputError("This project belongs to somebody: they make its keys on the Data page.")
        new_key, secret = store.keys.make(record.family, person, purpose=purpose)
        done(store, "opened to programs", record, f"key {new_key.id} for {new_key.name}")
        print(
            f"A key for {new_key.name} in {record.name} (/api/v1/projects/{record.family}), told here once:"
        )
        print(secret)
        return
    keys = store.keys.of(record.family)
    if not keys:
        print("No program has a key of this project; --person NAME makes one.")
        return
    rows = [(key.id, key.name, key.purpose, key.created[:16], (key.used or "never")[:16]) for key in keys]
    print_table(("id", "person", "for", "made", "used"), rows)


def audit_log(
    project: Annotated[
        str | None, Argument(help="Id or name, also of one that was deleted; all unless given.")
    ] = None,
    count: Annotated[int, Option(min=1, max=MOST_ITEMS, help="So many of the last entries.")] = 100,
) -> None:
    """The log of what people opened, exported, shared, deleted and uploaded, and when; newest first."""
    from workbench.store import Store

    store = Store.open()
    if project is None:
        entries = store.audit.entries(most=count)
    else:
        deletions = [
            entry for entry in store.audit.entries(what="deleted") if project in (entry.project, entry.called)
        ]
        try:
            project_id = project_named(project)[0].id
        except InputError:
            if not deletions or deletions[0].project is None:
                raise
            project_id = deletions[0].project
        entries = store.audit.entries(project=project_id, most=count)
    rows = [
        (entry.time[:19], entry.name, entry.what, entry.called, entry.project or "", entry.detail)
        for entry in entries
    ]
    print_table(("time", "who", "what", "project", "id", "about"), rows)


def _key(person: str, names: dict[str, str]) -> str:
    keys = [key for key, name in names.items() if person in (key, name)]
    if not keys:
        known_names = listed(sorted(names.values())) if names else "nobody yet"
        raise InputError(f"Nobody called {cut(person)} has logged in; there are: {known_names}.")
    return keys[0]
