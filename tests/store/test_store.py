"""The database keeps what it acknowledged, in order, for threads and processes alike."""

import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

from tests.databases import new_project, written_meanwhile
from workbench.errors import InputError, StorageError
from workbench.pools.formats.npy_files import arrays_to_bytes, bytes_to_arrays
from workbench.store import Event, Store
from workbench.store.database import FairSemaphore
from workbench.store.log import News
from workbench.store.processes import LEASE, Lease, this_process
from workbench.store.schema import VERSION, metadata, versions

ROOT = Path(__file__).resolve().parents[2]


def project(store: Store) -> str:
    prints = np.array([1, 2**63 + 5, 3], dtype=np.uint64)
    return store.create_project("p", {"name": "iris"}, {"seed": 1}, prints, {"kind": "numbers"}).id


def test_commits_are_synced_in_full(file_store: Store) -> None:
    with file_store._read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_a_table_of_the_version_without_a_row_is_an_empty_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "w.sqlite") as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    connection.close()
    store = Store.open(tmp_path / "w.sqlite")
    assert list(store.projects()) == []
    store.close()


def test_a_new_database_has_the_schema_that_the_code_uses(store: Store) -> None:
    with store._read() as connection:
        there = inspect(connection)
        assert {*there.get_table_names()} == {*metadata.tables, versions.name}
        for name, table in metadata.tables.items():
            columns = {(column["name"], column["nullable"]) for column in there.get_columns(name)}
            assert columns == {(column.name, column.nullable) for column in table.columns}
            assert there.get_pk_constraint(name)["constrained_columns"] == [*table.primary_key.columns.keys()]
        assert connection.execute(versions.select()).scalars().all() == [VERSION]


@pytest.mark.parametrize("version", ["0010", "9999"])
def test_a_database_of_another_version_is_refused_and_left_as_it_is(store: Store, version: str) -> None:
    id_ = project(store)
    with store._write() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
    url = store.url
    store.close()
    with pytest.raises(InputError, match=f"version {version}, which this version"):
        Store.open(url)
    with create_engine(url.replace("postgresql://", "postgresql+psycopg://")).connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == version
        assert connection.execute(text("SELECT id FROM projects")).scalars().all() == [id_]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u@h/db", "must be SQLite or PostgreSQL"),
        ("sqlite://", "Give the SQLite database a file"),
        ("nonsense://", "must be SQLite or PostgreSQL|cannot be read"),
    ],
)
def test_bad_urls_say_what_to_do(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Store.open(url)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.sqlite"
    path.write_text("not a database, and long enough to have a header of its own " * 20)
    with pytest.raises(InputError, match="cannot be opened"):
        Store.open(path)


def test_opening_by_the_same_path_gives_the_same_store(store: Store) -> None:
    assert Store.open(store.url) is store


def test_home_and_url_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    first = Store.open()
    assert (tmp_path / "home" / "workbench.sqlite").is_file()
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", f"sqlite:///{tmp_path / 'other.sqlite'}")
    second = Store.open()
    assert second is not first and (tmp_path / "other.sqlite").is_file()
    first.close()
    second.close()


def test_a_project_comes_back_as_it_was(store: Store) -> None:
    id_ = project(store)
    found = store.project(id_)
    assert found.settings == {"seed": 1} and found.pool == {"name": "iris"}
    assert found.fingerprints.tolist() == [1, 2**63 + 5, 3]
    store.update_project(id_, name="q", settings={"seed": 2})
    assert (store.project(id_).name, store.projects()[0].settings) == ("q", {"seed": 2})
    store.delete_project(id_)
    with pytest.raises(InputError, match="There is no project"):
        store.project(id_)


def test_a_failed_block_records_nothing(store: Store) -> None:
    id_ = project(store)
    with pytest.raises(RuntimeError), store.recording(id_) as recorder:
        recorder.add(Event.label("a", 1))
        raise RuntimeError
    assert store.events(id_) == []
    with store.recording(id_) as recorder:
        added = recorder.add(Event.label("a", 1))
    assert store.events(id_) == [added] and added.time


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Event.label("a", 1, ask="q"), Event.label("b", 1, ask="q")),
        (Event.label("a", 1, operation="o"), Event.label("a", 2, operation="o")),
    ],
    ids=["ask", "operation"],
)
def test_the_database_itself_refuses_a_second_answer(store: Store, first: Event, second: Event) -> None:
    id_ = project(store)
    with store.recording(id_) as recorder:
        recorder.add(first)
    with pytest.raises(IntegrityError), store.recording(id_) as recorder:
        recorder.add(second)
    assert len(store.events(id_)) == 1


def test_events_are_numbered_within_their_project(store: Store) -> None:
    first, second = project(store), project(store)
    for id_, n in ((first, 1), (second, 1), (first, 2), (second, 2)):
        with store.recording(id_) as recorder:
            assert recorder.add(Event.label("a", n)).id == n
    with pytest.raises(RuntimeError), store.recording(first) as recorder:
        assert recorder.add(Event.label("a", 3)).id == 3
        raise RuntimeError
    one, two = store.events(first)
    with store.recording(first, two) as recorder:
        assert [recorder.add(Event.label("a", n)).id for n in (3, 4)] == [3, 4]
        assert recorder.missed == News([])
    assert [e.id for e in store.news(first, one).events] == [2, 3, 4]
    other = replace(one, time="2020")
    assert store.news(first, other) == News(store.events(first), afresh=True)
    whole = store.whole_project(first)
    assert [e.id for e in whole.events] == [1, 2, 3, 4] and whole.record.id == first
    copy = store.restore_project(whole)
    assert store.events(copy.id) == list(whole.events)
    with pytest.raises(InputError, match="without a gap"):
        store.restore_project(replace(whole, events=whole.events[1:]))


def test_a_duplicate_is_of_one_moment(store: Store) -> None:
    """Of a project that is written to meanwhile, each transaction is in the copy whole or not at all."""
    id_ = project(store)
    with written_meanwhile(store, id_):
        copies = [store.duplicate_project(id_, f"copy {n}").id for n in range(5)]
    for copy in copies:
        assert len(store.events(copy)) % 2 == 0


def test_those_who_wait_to_write_keep_no_reader_waiting(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty wait for one who writes, more than there are connections; the reader is there at once."""
    id_ = project(store)
    monkeypatch.setattr(store._engine.pool, "_timeout", 0.0)  # a read that finds no connection is an error
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with store.recording(id_) as recorder:
            recorder.add(Event.label("a", 1))
            begun.set()
            assert end.wait(600)

    def write(n: int) -> None:
        with store.recording(id_) as recorder:
            recorder.add(Event.note(n, "x"))

    writers = [threading.Thread(target=hold), *(threading.Thread(target=write, args=(n,)) for n in range(20))]
    writers[0].start()
    assert begun.wait(600)
    for writer in writers[1:]:
        writer.start()
    while len(store._turns._waiting) < 12:
        assert all(writer.is_alive() for writer in writers)
    assert store.events(id_) == [] and store.project(id_).name == "p"
    end.set()
    for writer in writers:
        writer.join()
    assert len(store.events(id_)) == 21


def test_a_lock_that_is_never_let_go_ends_in_a_sentence(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.store.database.LOCKED_SECONDS", 0.05)
    id_ = project(store)
    other = type(store)(store.url)  # another program
    said = pytest.raises(StorageError, match=r"locked all this time.*do it again")
    with store.recording(id_), said, other.recording(id_):
        pass
    turns = FairSemaphore(1, 0.01)
    with turns.taken():
        with pytest.raises(StorageError, match="within another one"), turns.taken():
            pass  # it would wait for itself
        with ThreadPoolExecutor(1) as others, pytest.raises(StorageError, match="do it again"):
            others.submit(turns.taken().__enter__).result()
    with turns.taken():
        pass
    other.close()


def test_runs_and_comparisons_are_not_overwritten_by_a_copy(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    store.backup(tmp_path / "copy.sqlite")
    run = store.runs.start({"a": 1}, "print").id
    store.runs.save_study("ab", {"name": "x"})
    with pytest.raises(InputError, match=r"holds 1 run\(s\) and 1 comparison\(s\)"):
        store.restore(tmp_path / "copy.sqlite")
    assert [r.id for r in store.runs.all()] == [run]
    aside = store.restore(tmp_path / "copy.sqlite", replace=True)
    assert aside is not None and store.runs.all() == []
    before = Store.open(aside)
    assert [r.id for r in before.runs.all()] == [run] and [s.id for s in before.runs.studies()] == ["ab"]
    before.close()
    store.runs.end(run, "failed")


def test_a_run_of_a_machine_that_is_gone_is_interrupted_when_its_lease_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = store.runs.start({"a": 1}, "print").id

    def heard(owner: str, seconds_ago: float) -> None:
        moment = datetime.fromtimestamp(time.time() - seconds_ago, UTC).isoformat(timespec="milliseconds")
        with store._write() as connection:
            connection.execute(
                text("UPDATE runs SET owner = :owner, updated = :moment"), {"owner": owner, "moment": moment}
            )

    heard("a-container:1:7", LEASE / 2)
    assert store.runs.get(run).status == "running" and not store.runs.claim(run)
    store.runs.renew()  # it is not ours: nothing is renewed
    heard("a-container:1:7", 2 * LEASE)
    assert store.runs.get(run).status == "interrupted" and store.runs.claim(run)
    heard(this_process(), 2 * LEASE)
    assert store.runs.get(run).status == "running"  # here it is seen whether a program lives
    store.runs.renew()
    moment = datetime.fromisoformat(store.runs.get(run).updated)
    assert time.time() - moment.timestamp() < LEASE
    store.runs.end(run, "finished")
    assert store.runs._lease is None


def test_a_lease_is_renewed_until_it_ends() -> None:
    twice, said = threading.Event(), []

    def renew() -> None:
        said.append(1)
        if len(said) == 2:
            twice.set()
        raise OSError  # a disk that is full for a while

    lease = Lease(renew, every=0.001)
    assert twice.wait(600)
    lease.end()


def test_a_store_that_is_closed_has_let_go_of_its_connections(store: Store) -> None:
    project(store)
    store.close()
    assert store._engine.pool.checkedin() == 0


def test_recording_in_a_project_that_is_not_there(store: Store) -> None:
    with pytest.raises(InputError, match="There is no project"), store.recording("nope"):
        pass


def test_events_share_the_texts_that_all_have(store: Store) -> None:
    """A project of ten thousand rounds is kept in memory: its keys, people and classes once."""
    number = project(store)
    with store.recording(number) as recorder:
        added = [recorder.add(replace(Event.label("cat", i, role="policy"), annotator="ann")) for i in (0, 1)]
    for one, two in (added, store.events(number)):
        assert [id(key) for key in one.payload] == [id(key) for key in two.payload]
        assert one.payload["class"] is two.payload["class"] and one.payload["role"] is two.payload["role"]
        assert one.annotator is two.annotator and one.kind is two.kind


def test_threads_lose_nothing_and_see_events_in_order(store: Store) -> None:
    id_ = project(store)

    def work(name: str) -> None:
        for i in range(10):
            with store.recording(id_) as recorder:
                recorder.add(
                    Event("note", {"item": i, "text": str(len(recorder.missed.events))}, annotator=name)
                )

    threads = [threading.Thread(target=work, args=(f"t{t}",)) for t in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = store.events(id_)
    assert len(events) == 60
    # each writer saw every event before its own: writers of one project never overlap
    assert [int(e.payload["text"]) for e in events] == list(range(60))


def test_rounds_keep_the_last_posterior(store: Store) -> None:
    run = store.runs.start({"a": 1}, "print").id
    for n in range(3):
        store.rounds.save(run, n, {"n": n}, {"x": np.full(2, n)})
    assert [r.record for r in store.rounds.all(run)] == [{"n": 0}, {"n": 1}, {"n": 2}]
    found = store.rounds.state(run)
    assert found is not None and found[0] == 2 and found[1]["x"].tolist() == [2, 2]
    assert store.rounds.state(run, 0) is None and store.rounds.state(run, 1) is None


def test_a_run_whose_process_died_is_interrupted_and_can_be_claimed_once(store: Store) -> None:
    code = (
        "import sys; from workbench.store import Store\n"
        "print(Store.open(sys.argv[1]).runs.start({'a': 1}, 'print').id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, store.url], cwd=ROOT, capture_output=True, text=True, check=True
    )
    dead = done.stdout.strip()
    mine = store.runs.start({"a": 2}, "print").id
    found = {r.id: r.status for r in store.runs.all()}
    assert found == {dead: "interrupted", mine: "running"}
    # a read: what the table holds has not changed
    with store._read() as connection:
        assert set(connection.execute(text("SELECT status FROM runs")).scalars()) == {"running"}
    assert store.runs.get(dead).message == "The program that ran it ended before the run did."
    assert store.runs.claim(dead)
    assert not store.runs.claim(dead)
    store.runs.end(dead, "finished")
    assert store.runs.get(dead).status == "finished"


def test_arrays_give_the_same_bytes_and_come_back(tmp_path: Path) -> None:
    arrays = {"b": np.arange(3.0), "a": np.array(["x", "yy"]), "n": np.asarray(7)}
    data = arrays_to_bytes(arrays)
    assert data == arrays_to_bytes(dict(reversed(arrays.items())))
    back = bytes_to_arrays(data)
    assert set(back) == set(arrays) and all((back[k] == arrays[k]).all() for k in arrays)
    assert all(back[k].dtype == np.asarray(arrays[k]).dtype and back[k].flags.writeable for k in arrays)
    with np.load(_written(tmp_path / "x.npz", data), allow_pickle=False) as loaded:
        assert loaded["b"].tolist() == [0, 1, 2]


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        arrays_to_bytes({"a": np.array([{}], dtype=object)})
    np.savez(tmp_path / "evil.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="pickled Python objects, which may run code"):
        bytes_to_arrays((tmp_path / "evil.npz").read_bytes())
    with pytest.raises(InputError, match="not an NPZ file"):
        bytes_to_arrays(b"no zip")
    with pytest.raises(InputError, match="the limit is 1,000"):
        bytes_to_arrays(arrays_to_bytes({"a": np.zeros(1000)}), limit=1000)


def test_files_of_a_home_are_for_their_owner_only(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "home" / "w.sqlite")
    project(store)
    modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "home").iterdir()}
    store.close()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert modes and set(modes.values()) == {0o600}, modes


def test_a_copy_while_others_write_is_whole_and_comes_back(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    id_ = project(store)
    with written_meanwhile(store, id_):
        store.backup(tmp_path / "copy.sqlite")
    assert (tmp_path / "copy.sqlite").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="is there already"):
        store.backup(tmp_path / "copy.sqlite")
    other = Store.open(tmp_path / "other" / "w.sqlite")
    assert other.restore(tmp_path / "copy.sqlite") is None
    copied = other.events(id_)
    # a transaction is in the copy with both of its events or not at all
    assert len(copied) % 2 == 0 and copied == store.events(id_)[: len(copied)]
    with pytest.raises(InputError, match="holds 1 project"):
        other.restore(tmp_path / "copy.sqlite")
    with other.recording(id_) as recorder:
        recorder.add(Event.note(2, "later"))
    aside = other.restore(tmp_path / "copy.sqlite", replace=True)
    assert aside is not None and other.events(id_) == copied
    before = Store.open(aside)
    assert len(before.events(id_)) == len(copied) + 1
    before.close()
    other.close()


def test_what_is_no_copy_is_not_restored(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        store.restore(tmp_path / "nope")
    (tmp_path / "text").write_text("not a database " * 100)
    with pytest.raises(InputError, match=r"no copy of a database|cannot be opened"):
        store.restore(tmp_path / "text")
    assert store.projects() == []


def test_ids_of_items_are_kept_with_the_project(store: Store) -> None:
    prints = np.arange(3, dtype=np.uint64)
    odd = ["a", "ü\ud800", '"']
    made = store.create_project("p", {}, {}, prints, {}, [], odd)
    plain = store.create_project("p", {}, {}, prints, {}, [], ["0", "1", "2"])
    numbered = store.create_project("p", {}, {}, prints, {})
    assert store.item_ids(made.id) == odd
    assert store.item_ids(plain.id) == store.item_ids(numbered.id) == ["0", "1", "2"]
    with pytest.raises(InputError, match="There is no project"):
        store.item_ids("nothing")


def test_a_round_gets_the_next_number_when_it_is_written(store: Store) -> None:
    id_ = project(store)
    for n in range(3):
        with store.recording(id_) as recorder:
            assert recorder.add_round({"number": 7, "n": n}, {"x": np.full(2, n)}, id_) == n
    assert [(r.number, r.record) for r in store.rounds.all(id_, after=0)] == [
        (1, {"number": 1, "n": 1}),
        (2, {"number": 2, "n": 2}),
    ]
    assert [n for n in range(3) if store.rounds.state(id_, n)] == [2]
    assert store.rounds.get(id_, 1) == {"number": 1, "n": 1} and store.rounds.get(id_, 9) is None
    with pytest.raises(RuntimeError), store.recording(id_) as recorder:
        recorder.add_round({}, {}, id_)
        raise RuntimeError
    assert len(store.rounds.all(id_)) == 3


def test_a_duplicate_keeps_the_last_rounds_model_and_no_other(store: Store) -> None:
    first = project(store)
    for n in range(2):
        store.rounds.save(first, n, {"n": n}, {"x": np.full(2, n)})
    store.archive_project(first)
    second = store.duplicate_project(first, "again").id
    found = store.rounds.state(second)
    assert found is not None and found[0] == 1
    np.testing.assert_array_equal(found[1]["x"], [1, 1])
    assert [r.record for r in store.rounds.all(second)] == [{"n": 0}, {"n": 1}]
    assert store.rounds.state(second, 0) is None and not store.project(second).archived
    opened = store.restore_project(store.whole_project(first))  # as of a bundle
    assert store.project(first).archived and not opened.archived and not store.project(opened.id).archived
    listed = {p.id: p.n_items for p in store.projects()}
    assert listed[second] == 3 and isinstance(listed[second], int)


def test_the_last_fit_checks_and_certificate_of_a_project_are_told_in_their_order(store: Store) -> None:
    first, second = project(store), project(store)
    for error in (0.5, 0.25):
        with store.recording(first) as recorder:
            recorder.add(Event.round({"n_test": 40, "error": error}))
    assert store.stages() == {first: {"round": {"n_test": 40, "error": 0.25}}}
    with store.recording(second) as recorder:
        recorder.add(Event.certified(1, [], {}))
        recorder.add(Event.checks_started({}))
    assert list(store.stages()[second].items()) == [("certified", None), ("checks-started", None)]


def test_the_address_of_a_person_is_the_one_they_logged_in_with_last(store: Store) -> None:
    assert store.people.address_of("key-of-ann") == ""
    for address in ("ann@example.org", "ann@other.org", "ann@other.org"):
        assert store.people.known_as("key-of-ann", "Ann", address=address) == "Ann"
        assert store.people.address_of("key-of-ann") == address
    assert store.people.known_as("key-of-bob", "Ann", "bob", "bob@example.org") == "Ann (bob)"
    assert store.people.address_of("key-of-ann") == "ann@other.org"


def test_a_project_lets_in_whom_its_owner_says(store: Store) -> None:
    nobodys = project(store)
    prints = np.arange(3, dtype=np.uint64)
    own = store.create_project("p", {}, {}, prints, {}, owner="ann@x").id

    def let_in(project_id: str) -> list[str]:
        listed = {p.id: p for p in store.projects()}[project_id]
        found = store.project(project_id)
        assert (found.owner, found.access, found.members) == (listed.owner, listed.access, listed.members)
        return [key for key in ("ann@x", "bob@x", "eve@x", "") if found.lets_in(key)]

    assert let_in(nobodys) == ["ann@x", "bob@x", "eve@x", ""] and let_in(own) == ["ann@x"]
    store.share_project(own, "ann@x", "shared", ["bob@x", "ann@x", "bob@x", ""])
    assert let_in(own) == ["ann@x", "bob@x"]
    store.share_project(own, "ann@x", "private", ["bob@x"])
    assert let_in(own) == ["ann@x"]
    store.share_project(own, "ann@x", "open")
    assert let_in(own) == ["ann@x", "bob@x", "eve@x", ""]
    with pytest.raises(InputError, match="private, shared or open"):
        store.share_project(own, "ann@x", "secret")
    with pytest.raises(InputError, match="belongs to nobody"):
        store.share_project(own, "", "private")
    with pytest.raises(InputError, match="no project"):
        store.share_project("nope", "ann@x", "open")
    with store._write() as connection:
        connection.execute(text("UPDATE projects SET access = 'newer'"))
    assert let_in(nobodys) == [] and let_in(own) == ["ann@x"]


def test_two_people_never_share_a_name(store: Store) -> None:
    assert store.people.known_as("ann@x", " Ann  Lee ") == "Ann Lee"
    assert store.people.known_as("ann@y", "Ann Lee") == "Ann Lee (ann@y)"
    # the name events carry stays, whatever the log-in calls them later
    assert store.people.known_as("ann@x", "Ann Smith") == "Ann Lee"
    assert store.people.known_as("bob@x", "Ann Lee (ann@y)") == "Ann Lee (ann@y) (bob@x)"
    assert store.people.known_as("eve@x", "") == "eve@x"
    names = store.people.names()
    assert set(names) == {"ann@x", "ann@y", "bob@x", "eve@x"} and len(set(names.values())) == 4


def test_people_who_come_at_once_are_known_once(store: Store) -> None:
    names: dict[int, str] = {}

    def come(i: int) -> None:
        names[i] = store.people.known_as(f"k{i % 3}", "Ann")

    threads = [threading.Thread(target=come, args=(i,)) for i in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 9 and all(names[i] == names[i % 3] for i in names)
    assert len(set(names.values())) == 3 and len(store.people.names()) == 3


def test_who_knows_the_last_event_looks_for_no_news_and_who_does_not_gets_them(store: Store) -> None:
    from sqlalchemy import event as happening

    id_ = new_project(store).id
    sent: list[str] = []
    happening.listen(store._engine, "before_cursor_execute", lambda *given: sent.append(given[2]))

    def added(text: str, known: Event | None) -> tuple[list[Event], Event]:
        sent.clear()
        with store.recording(id_, known) as recorder:
            return list(recorder.missed.events), recorder.add(Event.note(1, text))

    first = added("a", store.events(id_)[-1] if store.events(id_) else None)[1]
    missed, second = added("b", first)
    assert not missed and not any(s.startswith("SELECT events") for s in sent)
    missed, third = added("c", first)
    assert missed == [second]
    # one of the same number that is another's: a copy of the database was put in this one's place
    missed, _ = added("d", replace(third, time="2001-01-01T00:00:00.000+00:00"))
    assert missed[-1] == third and len(missed) == third.id
