"""Copies are asked about once, their label is offered, and none is measured on beside one that is learnt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import Session
from workbench.sessions.operations import Operation

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
    assert session.twins.n_groups == 10
    asked = _answered(session, 60)
    assert len(asked) == 30 and len({item % 30 for item in asked}) == 30
    apart = start(copies, classes=["a", "b"], evaluation_share=0.3, twins=False)
    assert len(_answered(apart, 60)) == 40


def test_a_copy_that_a_person_chooses_can_be_asked_about_all_the_same(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.0, early_share=0.0)
    session.label_item(4, "a")
    session.want([34], "it is another one")
    [ask] = session.ask(1)
    assert ask.item == 34 and session.tell(ask, "b")
    assert session.state.standing[34].key == "b"


def test_a_label_is_offered_for_the_copies_and_one_undo_takes_it_back(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.0, early_share=0.0)
    session.label_item(4, "a")
    assert session.open_twins(4) == [34]
    [done] = session.apply([Operation("same", "twins", item=4, label="a")])
    assert done.status == "saved"
    vote = session.state.standing[34]
    assert (vote.key, vote.role) == ("a", "twin") and session.open_twins(4) == []
    with pytest.raises(InputError, match="no copy that is without a label"):
        session._event("twins", item=4, label="a")
    session.undo()
    assert session.open_twins(4) == [34] and 4 in session.state.standing


def test_a_copy_of_what_is_measured_on_is_never_learnt_from(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"], evaluation_share=0.5)
    _answered(session, 30)
    held = [item for item in session.state.evaluation if item % 30 < 10]
    assert held
    for item in held:
        session._event("twins", item=item, label=session.state.standing[item].key)
    session.refit()
    model = session.model
    assert model is not None
    assert not {i % 30 for i in model.items.tolist()} & {i % 30 for i in session.state.evaluation}
    assert len(session.held_out()[0]) == len(session.state.evaluation)


def test_a_project_finds_its_groups_again(start: Start, copies: Pool) -> None:
    session = start(copies, classes=["a", "b"])
    again = Session(session.store, session.store.project(session.id), copies, "ben")
    assert again.twins.groups == session.twins.groups and "20 items are copies" in again.twins.say()
    # a reply that looks at the settings walks through no number of the groups
    assert again.settings["twins"] is again.project.settings["twins"]
