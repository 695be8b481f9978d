"""`workbench instructions`: what the people of a project are told before they label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.errors import InputError


def show_or_write(
    project: str,
    *,
    source: Path | None,
    version: int | None,
    examples: Mapping[str, str],
    out: Path | None,
    replace: bool = False,
) -> None:
    """Print the instructions of a project, after what was asked for was done.

    Args:
        project: id or name.
        source: a file or folder to take them from.
        version: an earlier one to print.
        examples: class -> id of an item that shows what it is.
        out: a folder for the text and its pictures, in the place of printing.
        replace: write over files of these names that are there.

    Raises:
        InputError: no such project, version, class or item, or a file that holds no instructions.
    """
    from workbench.cli.labels import files_kept, project_named
    from workbench.exchange.instructions import instruction_files
    from workbench.pools.instructions import read_instructions
    from workbench.sessions import Session
    from workbench.store import fold
    from workbench.writing import check_place, chosen_file

    record, store = project_named(project)
    if source is not None or examples:
        session = Session.open(record.id, store=store)
        if source is not None:
            told = read_instructions(str(source))
            session.write_instructions(told.text, told.pictures)
        places = {str(key): item for item, key in enumerate(session.pool.items.ids)} if examples else {}
        for name, key in examples.items():
            if key not in places:
                raise InputError(f"Pool {session.pool.name!r} has no item {key!r}.")
            session.pick_example(places[key], name)
    state = fold(store.events(record.id))
    versions = state.instructions
    if version is not None and not 1 <= version <= len(versions):
        raise InputError(f"There is no version {version}; there are {len(versions)}.")
    number = len(versions) if version is None else version
    if not number or not (one := versions[number - 1]).text:
        print(f"{record.name}: no instructions. Write them with --from FILE, or on the Label page.")
        return
    if out is not None:
        files = instruction_files(state, number)
        for path in files:
            check_place(out / path, protected=files_kept(source), replace=replace)
        for path, data in files.items():
            with chosen_file(out / path, protected=files_kept(source), replace=replace) as file:
                file.write(data)
        print(f"{record.name}: version {number} of the instructions in {out}")
        return
    print(f"{record.name}: version {number} of {len(versions)}, by {one.annotator}, {one.time[:16]}")
    people = {vote.annotator for votes in state.votes.values() for vote in votes.values()}
    if people:
        n = sum(state.version_read(person) >= len(versions) for person in people)
        print(f"{n} of {len(people)} who labelled have read the last version.")
    print(f"\n{one.text}")
