"""Copies are asked about once, their label is offered, and none is measured on beside one that is learnt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import RunSpec, Session, insight, labelled_at, simulate
from workbench.sessions.operations import Operation
from workbench.studies.runner import pool_of

Start = Callable[..., Session]


@pytest.fixture
def copies() -> Pool:
    """30 distinct rows and 10 copies of the first ten, without known classes."""
    X = np.random.default_rng(3).normal(size=(30, 3))
    return load_pool(np.concatenate([X, X[:10]]), name="copies")


def _answered(session: Session, n: int) -> list[int]:
    asked = []
    for k in range(n):
        asks = session.ask(1)
        if not asks:
            break
        session.tell(asks[0].id, "ab"[k % 2])
        asked.append(asks[0].item)
    return asked


def test_one_of_each_group_is_asked_about(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.3)
    assert session.items.twins.n_groups == 10
    asked = _answered(session, 60)
    assert len(asked) == 30 and len({item % 30 for item in asked}) == 30
    apart = start(copies, classes=["a", "b"], evaluation_share=0.3, twins=False)
    assert len(_answered(apart, 60)) == 40


def test_a_copy_that_a_person_chooses_can_be_asked_about_all_the_same(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.0, early_share=0.0)
    session.items.label(4, "a")
    session.items.want([34], "it is another one")
    [ask] = session.ask(1)
    assert ask.item == 34 and session.tell(ask, "b")
    assert session.state.standing[34].key == "b"


def test_a_label_is_offered_for_the_copies_and_one_undo_takes_it_back(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.0, early_share=0.0)
    session.items.label(4, "a")
    assert session.queue.twins(4) == [34]
    [done] = session.apply([Operation("same", "twins", item=4, label="a")])
    assert done.status == "saved"
    vote = session.state.standing[34]
    assert (vote.key, vote.role) == ("a", "twin") and session.queue.twins(4) == []
    with pytest.raises(InputError, match="no copy that is without a label"):
        session.items._event("twins", item=4, label="a")
    session.undo()
    assert session.queue.twins(4) == [34] and 4 in session.state.standing


def test_a_copy_of_what_is_measured_on_is_never_learnt_from(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.5)
    _answered(session, 30)
    held = [item for item in session.state.evaluation if item % 30 < 10]
    assert held
    for item in held:
        session.items._event("twins", item=item, label=session.state.standing[item].key)
    session.refit()
    model = session.model
    assert model is not None
    assert not {i % 30 for i in model.items.tolist()} & {i % 30 for i in session.state.evaluation}
    assert len(session.fits.held_out()[0]) == len(session.state.evaluation)


def test_a_group_of_copies_teaches_once_and_people_go_before_others(start: Start, copies: Pool) -> None:
    """Else a model that is judged on a label it did not see has seen it on the copy."""
    session = start(copies, classes=["a", "b"], evaluation_share=0.0, early_share=0.0)
    for item in range(10):
        session.items.want([item], "in turn")
        session.tell(session.ask(1)[0], "ab"[item % 2])
        session.items._event("twins", item=item, label="ab"[item % 2])

    def learnt() -> dict[int, int]:
        session.refit()
        assert session.model is not None
        return dict(zip(session.model.items.tolist(), session.model.codes.tolist(), strict=True))

    assert learnt() == {item: item % 2 for item in range(10)}
    session.items.label(31, "a", role="review")  # another class than item 1's: the two teach nothing
    assert learnt() == {item: item % 2 for item in range(10) if item != 1}
    session.items.label(30, "b")  # with others, as on the map: what a person said of item 0 stands
    assert learnt()[0] == 0 and len(session.state.codes) == 20


def test_folds_over_labels_of_a_column_keep_copies_together(
    start: Start, copies: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start(copies, classes=["a", "b"])
    parts: list[set[float]] = []

    class Recorder:
        def fit(self, X: Floats, codes: Ints) -> None:
            self.rows = set(X[:, 0].tolist())

        def predict_proba(self, X: Floats) -> Floats:
            parts.append(self.rows & set(X[:, 0].tolist()))
            return np.full((len(X), 2), 0.5)

    monkeypatch.setattr(insight, "make_classifier", lambda *_, **__: Recorder())
    insight._foretold(session, np.arange(40), np.arange(40) % 2, 2)
    assert parts == [set()] * insight.FOLDS


@pytest.mark.parametrize("initial", ["one-per-class", "random:8", (35, 6)])
def test_a_run_asks_about_one_of_each_group_and_measures_on_no_copy(initial: Any, tmp_path: Path) -> None:
    """As a project over the same file does, whether it is run, compared or part of a study."""
    X = np.random.default_rng(3).normal(size=(60, 3)).round(3)
    rows = [[*row, "ab"[int(row[0] > 0)]] for row in np.concatenate([X, X[:20]])]
    place = tmp_path / "rows.csv"
    place.write_text("\n".join(["x,y,z,kind", *(",".join(map(str, row)) for row in rows)]), encoding="utf-8")
    spec = RunSpec(str(place), target="kind", classifier="gaussian-process", seed=1)
    pool = pool_of(spec)
    assert pool.test is not None and np.array_equal(pool.test.test, spec.load_pool().test.test)
    measured = {item % 60 for item in pool.test.test.tolist()}
    if not isinstance(initial, str):
        initial = [item for item in range(60, 80) if item in pool.trainable][:1] + [
            item for item in range(20, 60) if item in pool.trainable
        ][:3]
        with pytest.raises(InputError, match="of copies from one"):
            next(simulate(pool, FAKE, initial=[*initial, initial[0] - 60]))
    rounds = list(simulate(pool, FAKE, budget=99, batch=20, initial=initial))
    items = labelled_at(rounds, len(rounds) - 1)[0] % 60
    assert len(set(items.tolist())) == len(items) == 60 - len(measured)
    assert not measured & set(items.tolist())


def test_a_project_finds_its_groups_again(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"])
    again = Session._first(session.store, session.store.project(session.id), copies, "ben")
    assert (
        again.items.twins.groups == session.items.twins.groups
        and "20 items are copies" in again.items.twins.say()
    )
    # a reply that looks at the settings walks through no number of the groups
    assert again.settings["twins"] is again.project.settings["twins"]
