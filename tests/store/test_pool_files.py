"""Names of another home's files, wherever they stand in a document; and a home that was copied or emptied."""

import io
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.databases import new_project
from workbench.errors import StorageError
from workbench.reading import with_texts
from workbench.sessions import Session
from workbench.store import Store, database
from workbench.store.pool_files import _moved, found_here, keep_upload


def test_a_path_is_moved_where_it_starts_a_text_or_stands_in_it() -> None:
    document = {
        "spec": "/old/home/pools/a.csv",
        "with": ["images:/old/home/pools/b", "/old/homely/c.csv", "plain", 3, None],
        "windows": "C:\\old\\pools\\d.csv",
    }
    assert with_texts(document, partial(_moved, old=["/old/home", "C:\\old"], new="/new")) == {
        "spec": "/new/pools/a.csv",
        "with": ["images:/new/pools/b", "/old/homely/c.csv", "plain", 3, None],
        "windows": "/new/pools/d.csv",
    }


def test_a_home_that_was_copied_finds_its_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "here"))
    rows = "".join(f"{i},{i * 7 % 13},{'xy'[i % 2]}\n" for i in range(40)).encode()
    place = keep_upload("rows.csv", b"a,b,y\n" + rows)
    vectors = io.BytesIO()
    np.save(vectors, np.random.default_rng(0).normal(size=(40, 4)))
    beside = keep_upload("v.npy", vectors.getvalue())
    store = Store.open()
    session = new_project(store, str(place), target="y")
    options = {"target": "y", "features": f"embeddings:{beside}"}
    other = Session.create(str(place), pool_options=options, store=store, classifier="logistic-regression")
    session.items.label(int(session.pool.trainable[0]), "x")
    labels = {one.id: one.state.labels for one in (session, other)}
    store.close()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    (tmp_path / "here").rename(tmp_path / "gone")
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "there"))
    again = Store.open()
    for one in (session, other):
        opened = Session.open(one.id, store=again)
        assert opened.state.labels == labels[one.id]
        np.testing.assert_array_equal(opened.pool.features, one.pool.features)
        assert str(tmp_path / "there") in json.dumps(dict(again.project(one.id).pool))
    assert all(str(tmp_path / "there") in str(one.pool["name"]) for one in again.projects())
    again.close()


@pytest.mark.parametrize(
    "named",
    [
        "/x/uploads/0123456789abcdef/../../etc/passwd",
        "/x/uploads/0123456789abcdeg/a.csv",
        "uploads",
        "iris",
        3,
        None,
    ],
)
def test_only_uploads_are_looked_for_in_this_home(named: object) -> None:
    assert found_here({"name": named, "options": {"columns": [named]}}) == {
        "name": named,
        "options": {"columns": [named]},
    }


def test_a_database_of_no_bytes_beside_uploads_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BEGUN", 0.0)
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    path = tmp_path / "home" / "workbench.sqlite"
    path.parent.mkdir()
    path.touch()
    Store.open().close()  # nothing was there: a new home
    path.write_bytes(b"")
    keep_upload("rows.csv", b"a,b\n1,2\n")
    for sidecar in path.parent.glob("workbench.sqlite-*"):
        sidecar.unlink()
    with pytest.raises(StorageError, match=r"is empty \(0 bytes\), and uploads .*workbench restore COPY"):
        Store.open()
    path.unlink()
    Store.open().close()
    assert path.stat().st_size
