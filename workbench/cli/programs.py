"""`workbench key`: the keys with which programs are let in."""

from __future__ import annotations

from workbench.errors import InputError


def change_keys(project: str, person: str | None, purpose: str, revoke: str | None) -> None:
    """Make a key for a person, revoke one, or list those that there are.

    Args:
        project: id or name.
        person: whose answers the new key's will be; None makes none.
        purpose: a few words on the new one.
        revoke: id of one that opens nothing any more.

    Raises:
        InputError: no such project or key.
    """
    from workbench.cli.audit import done
    from workbench.cli.labels import project_named
    from workbench.cli.values import print_table

    record, store = project_named(project)
    if revoke is not None:
        gone = store.revoke_key(record.family, revoke)
        done(store, "opened to programs", record, f"key {gone.id} of {gone.name} revoked")
        print(f"The key {gone.id} of {gone.name} opens nothing any more.")
        return
    if person is not None:
        if record.owner:
            raise InputError("This project belongs to somebody: they make its keys on the Data page.")
        made, secret = store.make_key(record.family, person, purpose=purpose)
        done(store, "opened to programs", record, f"key {made.id} for {made.name}")
        print(f"A key for {made.name} in {record.name} (/api/v1/projects/{record.family}), told here once:")
        print(secret)
        return
    keys = store.keys_of(record.family)
    if not keys:
        print("No program has a key of this project; --person NAME makes one.")
        return
    rows = [(key.id, key.name, key.purpose, key.created[:16], (key.used or "never")[:16]) for key in keys]
    print_table(("id", "person", "for", "made", "used"), rows)
