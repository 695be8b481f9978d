"""The audit log: recorded in either kind of database, kept when the project is gone, copied with the rest."""

from pathlib import Path

import pytest

from tests.databases import KINDS, database, new_project
from tests.events import EVENTS
from workbench.store import Event, Store
from workbench.store.accounts import DEEDS, AuditEntry


def test_what_was_done_is_read_newest_first_and_outlives_its_project(store: Store) -> None:
    project = new_project(store).id
    entries = [
        AuditEntry("made", "Ann", "k1", project, "Petals"),
        AuditEntry("opened", "Bob", "k2", project, "Petals"),
        AuditEntry("uploaded", "Bob", "k2", detail="/home/x.csv", octets=2**40),
        AuditEntry("deleted", "Ann", "k1", project, "Petals", "3 labels"),
    ]
    for entry in entries[:3]:
        store.audit.record(entry)
    store.delete_project(project)
    store.audit.record(entries[3])
    found = store.audit.entries()
    assert {(one.what, one.name, one.detail, one.octets) for one in found} == {
        (one.what, one.name, one.detail, one.octets) for one in entries
    }
    assert [one.time for one in found] == sorted((one.time for one in found), reverse=True)
    assert {one.what for one in store.audit.entries(project=project)} == {"made", "opened", "deleted"}
    assert [one.octets for one in store.audit.entries(person="k2", what="uploaded")] == [2**40]
    assert len(store.audit.entries(most=2)) == 2


def test_a_backup_has_it(store: Store, tmp_path: Path) -> None:
    store.audit.record(AuditEntry("opened", "Ann", detail="\N{SNOWMAN}"))
    store.backup(tmp_path / "copy.sqlite")
    with database("sqlite", tmp_path) as other:
        other.restore(tmp_path / "copy.sqlite")
        assert other.audit.entries() == store.audit.entries()
        other.audit.record(AuditEntry("opened", "Bob"))
        assert len(other.audit.entries()) == 2


@pytest.mark.parametrize("into", KINDS)
def test_every_deed_event_and_role_is_kept_and_moves_to_either_database(
    store: Store, into: str, tmp_path: Path
) -> None:
    long = "\N{SNOWMAN}" * 200  # as a bundle may hold; SQLite looks at no length
    project = new_project(store).id
    for deed in DEEDS:
        store.audit.record(AuditEntry(deed, long, long * 2, project, long * 9, long * 9))
    store.people.known_as(long, long, long)
    with store.recording(project) as recorder:
        for event in EVENTS:
            recorder.add(event)
        recorder.add(Event.skip(1, operation=long, ask=long))
    kept = store.events(project)
    assert {event.kind for event in kept} >= {event.kind for event in EVENTS}
    store.backup(tmp_path / "copy.sqlite")
    with database(into, tmp_path / "other") as other:
        other.restore(tmp_path / "copy.sqlite")
        assert (other.audit.entries(), other.events(project), other.people.names()) == (
            store.audit.entries(),
            kept,
            store.people.names(),
        )
        assert {entry.what for entry in other.audit.entries()} == set(DEEDS)
