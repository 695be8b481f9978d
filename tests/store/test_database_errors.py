"""Words for SQLite's errors about its place."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from workbench.errors import StorageError
from workbench.store import Event, Store, database_errors


def error(name: str) -> sqlite3.OperationalError:
    made = sqlite3.OperationalError("disk I/O error")
    made.sqlite_errorname = name
    return made


@pytest.mark.parametrize(
    ("name", "free", "words"),
    [
        ("SQLITE_FULL", 1e9, "is full"),
        ("SQLITE_IOERR_SHMSIZE", 4096, "is full"),
        ("SQLITE_CANTOPEN", 0, "is full"),
        ("SQLITE_IOERR_WRITE", 1e9, "the disk refuses"),
        ("SQLITE_READONLY_DIRECTORY", 1e9, "for writing"),
        ("SQLITE_BUSY_SNAPSHOT", 1e9, "locked"),
        ("SQLITE_NOTADB", 1e9, "cannot be opened"),
        ("SQLITE_CONSTRAINT_UNIQUE", 1e9, ""),
        ("", 1e9, ""),
    ],
)
def test_each_error_of_the_place_is_a_sentence(
    name: str, free: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_errors, "_free", lambda folder: free)
    said = database_errors.explained(error(name), Path("/home/w.sqlite"))
    assert words in said and bool(said) == bool(words)


def test_a_database_that_may_grow_no_more_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w.sqlite")
    made = store.create_project("p", {"name": "iris"}, {}, np.zeros(3, dtype=np.uint64), {})
    with store._read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="is full"):
        for _ in range(200):
            with store.recording(made.id) as recorder:
                recorder.add(Event.note(1, "a" * 2000))
    kept = store.events(made.id)
    with store._read() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
    with store.recording(made.id) as recorder:
        recorder.add(Event.note(1, "room again"))
    assert len(store.events(made.id)) == len(kept) + 1
    store.close()
