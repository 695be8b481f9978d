"""A copy of a project says what the project says, wherever it lies."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.databases import new_project
from tests.sessions.conftest import answer
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.pools.pool import Pool
from workbench.sessions import Session
from workbench.store import Store

Start = Callable[..., Session]


def worked(session: Session, pool: Pool) -> Session:
    """Four rounds with answers taken back, a merge and a second opinion between them."""
    bob = session.as_annotator("bob")
    answer(session, pool, 8)
    session.refit()
    session.undo()
    session.undo()
    session.redo()
    answer(bob, pool, 4)
    session.refit()
    answer(session, pool, 4)
    session.classes.merge(session.classes[1], session.classes[2])
    session.refit()
    bob.items.relabel(list(session.state.training)[:2], session.classes[0])
    session.refit()
    return session


def same(one: Session, two: Session) -> None:
    assert list(two.state.training.items()) == list(one.state.training.items())
    assert [r.number for r in two.rounds] == [r.number for r in one.rounds]
    for number in range(len(one.rounds)):
        ours, theirs = one.fits.model_at(number), two.fits.model_at(number)
        np.testing.assert_array_equal(theirs.items, ours.items)
        np.testing.assert_array_equal(theirs.codes, ours.codes)
        np.testing.assert_allclose(theirs.probabilities, ours.probabilities, atol=1e-12)
    assert two.predictions.evaluation == one.predictions.evaluation and two.stale == one.stale
    # and it goes on
    ours, theirs = one.undo(), two.undo()
    assert ours is not None and theirs is not None and ours.payload == theirs.payload
    assert dict(one.state.training) == dict(two.state.training)


@pytest.mark.parametrize("how", ["duplicate", "bundle", "backup"])
def test_a_copy_has_every_round_of_the_project(
    start: Start, store: Store, iris: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    other = start()  # a used database: ids of one project are not those of another
    answer(other, iris, 3)
    session = worked(start(), iris)
    if how == "backup":
        store.backup(tmp_path / "copy.sqlite")
        there, id_ = Store.open(tmp_path / "there.sqlite"), session.id
        there.restore(tmp_path / "copy.sqlite")
    elif how == "bundle":
        write_project_bundle(tmp_path / "bundle", session)
        there = Store.open(tmp_path / "there.sqlite")
        answer(new_project(there), iris, 3)
        id_ = open_bundle(tmp_path / "bundle", store=there).id
    else:
        there, id_ = store, store.duplicate_project(session.id, "copy").id
    same(session, Session.open(id_, store=there, annotator="ann"))
    if there is not store:
        there.close()


def test_an_open_project_notices_that_a_copy_was_put_in_its_place(
    start: Start, store: Store, iris: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    session = start()
    answer(session, iris, 8)
    session.refit()
    labels = session.state.labels
    store.backup(tmp_path / "copy.sqlite")
    answer(session, iris, 8)
    session.refit()
    for more in (1, 12, 0):
        store.restore(tmp_path / "copy.sqlite", replace=True)
        assert session.state.labels == labels and len(session.rounds) == 1 and not session.stale
        assert session.model is not None and session.model.n_labelled == 8
        assert session.undo() is not None and len(session.state.labels) == 7
        answer(session, iris, more)  # a log that is as long, or longer, is another one too
