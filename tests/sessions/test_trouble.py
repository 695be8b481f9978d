"""A busy database, a long computation or a left grid loses nothing."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.sessions.conftest import answer
from workbench.errors import InputError, StorageError
from workbench.pools.pool import Pool
from workbench.sessions import Session, asking
from workbench.store import Store
from workbench.store.events import SOURCE

Start = Callable[..., Session]


def busy(*_: object, **__: object) -> None:
    raise StorageError("locked all this time")


def test_a_stored_fit_is_looked_for_again_when_the_database_was_busy(
    start: Start, store: Store, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    answer(session, iris, 8)
    session.refit()
    again = Session.open(session.id, store=store)
    with monkeypatch.context() as patch:
        patch.setattr(store.rounds, "state", busy)
        with pytest.raises(StorageError):
            _ = again.model
    assert again.model is not None and not again.stale


def test_a_fit_that_could_not_be_saved_is_saved_and_not_made_again(
    start: Start, store: Store, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    answer(session, iris, 8)
    with monkeypatch.context() as patch:
        patch.setattr("workbench.store.log.Recorder.add_round", busy)
        with pytest.raises(StorageError):
            session.refit()
    assert not session.rounds and session.stale
    with monkeypatch.context() as patch:
        patch.setattr("workbench.sessions.fitting.fit_measure_query", busy)  # no second fit
        done = session.refit()
    assert done is not None and [r.number for r in session.rounds] == [0] and not session.stale
    assert session.model is not None and store.rounds.state(session.id) is not None
    answer(session, iris, 2)
    again = session.refit()
    assert again is not None and again.number == 1 and again.n_labelled == 10


def test_nobody_waits_for_k_means_in_a_transaction(
    start: Start, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    answer(session, iris, 8)
    session.refit()
    session = Session.open(session.id, store=session.store, annotator="ann")
    session.classes.merge(session.classes[0], session.classes[1])
    session.classes.merge(session.classes[0], session.classes[1])
    held: list[bool] = []

    def diverse(pool: Pool, items: np.ndarray, n: int, seed: int, further: int) -> np.ndarray:
        held.append(session.store._turns._free == 0 or session._project.log.lock._is_owned())
        return np.asarray(items[:n])

    monkeypatch.setattr(asking, "diverse_items", diverse)
    (asked,) = session.as_annotator("bob").ask()
    assert asked.role == "cold-start" and held == [False]


def test_a_grid_that_was_left_does_not_wait_for_ever(start: Start, iris: Pool) -> None:
    session = start()
    answer(session, iris, 8)
    session.refit()
    name = session.classes[0]
    first = session.predictions.grid(name, 6)
    second = session.predictions.grid(name, 6)
    asks, waiting = session.state.asks, session.state.waiting["ann"]
    assert [asks[a.id].released for a in first] == [True] * 6 and not asks[second[0].id].released
    assert [i for i in waiting if asks[i].role == "grid"] == [a.id for a in second]
    # two tabs: what is confirmed in the first is taken all the same
    assert session.queue.confirm([a.id for a in first], name).status == "saved"
    assert set(session.state.labels) >= {a.item for a in first}


def test_nobody_is_called_as_the_pools_own_labels_are(start: Start, store: Store) -> None:
    session = start()
    with pytest.raises(InputError, match="choose another"):
        session.as_annotator(f" {SOURCE} ")
    with pytest.raises(InputError, match="choose another"):
        Session.open(session.id, store=store, annotator=SOURCE)
    assert store.people.known_as("eve@x", SOURCE) == f"{SOURCE} (eve@x)"
