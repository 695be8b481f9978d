"""Several programs on one project: no fit is lost, none is replayed on labels other than its own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.sessions.conftest import answer
from tests.sessions.fakes import NearestMean
from workbench.errors import OutgrownError
from workbench.pools.pool import Pool
from workbench.sessions import Session
from workbench.store import Store

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., Session]


def during_the_next_fit(monkeypatch: pytest.MonkeyPatch, what: Callable[[], object]) -> None:
    """Have something happen while a classifier is being fitted, once."""
    plain = NearestMean.fit

    def fit(self: NearestMean, X: object, y: object, callback: object = None) -> NearestMean:
        monkeypatch.setattr(NearestMean, "fit", plain)
        what()
        return plain(self, X, y, callback)

    monkeypatch.setattr(NearestMean, "fit", fit)


def test_a_fit_beside_a_fit_gets_a_number_of_its_own(
    start: Start, store: Store, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start()
    two = Session.open(one.id, annotator="bob", store=store)
    answer(one, iris, 8)
    first = dict(one.state.training)
    inner = []

    def meanwhile() -> None:
        answer(two, iris, 3)
        inner.append(two.refit())

    during_the_next_fit(monkeypatch, meanwhile)
    outer = one.refit()
    assert outer is not None and inner[0] is not None
    assert (inner[0].number, outer.number) == (0, 1)
    assert [r.number for r in one.rounds] == [0, 1] and [r.n_labelled for r in one.rounds] == [11, 8]
    for session in (one, Session.open(one.id, store=store)):
        fitted = session.fits.model_at(1)
        assert dict(zip(fitted.items.tolist(), fitted.codes.tolist(), strict=True)) == first
        assert session.fits.model_at(0).n_labelled == 11
    # the newest stored fit has seen fewer labels than there are, and that is said
    assert one.stale and Session.open(one.id, store=store).stale


def test_a_merge_during_a_fit_leaves_a_project_that_opens(
    start: Start, store: Store, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start()
    two = Session.open(one.id, annotator="bob", store=store)
    answer(one, iris, 12)
    one.refit()
    answer(one, iris, 3)

    def meanwhile() -> None:
        two.classes.merge("virginica", "versicolor")
        two.refit()

    during_the_next_fit(monkeypatch, meanwhile)
    outer = one.refit()
    assert outer is not None and outer.number == 2
    answer(two, replace(iris, classes=("setosa", "versicolor", "versicolor")), 2)
    two.refit()
    again = Session.open(one.id, store=store)
    assert [len(again.fits.model_at(n).classes) for n in range(4)] == [3, 2, 3, 2]
    assert [again.fits.model_at(n).n_labelled for n in range(4)] == [12, 15, 15, 17]
    assert again.model is not None and again.model.number == 3 and not again.stale


def test_a_fit_of_another_program_is_taken_up(start: Start, store: Store, iris: Pool) -> None:
    one = start()
    two = Session.open(one.id, annotator="bob", store=store)
    answer(one, iris, 8)
    two.refit()
    assert one.model is not None and two.model is not None and not one.stale
    assert np.array_equal(one.model.probabilities, two.model.probabilities)


def test_each_round_stands_for_itself(start: Start, store: Store, iris: Pool) -> None:
    """Whatever happens to other rounds, the training set of one is that of the events it saw."""
    session = start()
    sets = []
    for _ in range(5):
        answer(session, iris, 4)
        session.refit()
        session.undo()
        sets.append(session.rounds[-1].n_labelled)
    from workbench.store.database import tables

    rounds = tables().rounds
    with store._write() as connection:
        connection.execute(rounds.delete().where(rounds.c.number.in_([0, 1, 3])))
    again = Session.open(session.id, store=store)
    assert again.fits.model_at(2).n_labelled == sets[2] and again.fits.model_at(4).n_labelled == sets[4]


_WORKER = """
import sys
import numpy as np
from workbench.errors import InputError
from workbench.registry import trust
from workbench.sessions import Session
from workbench.store import Store
trust("tests.sessions.fakes:NearestMean")
name, n = sys.argv[3], int(sys.argv[4])
session = Session.open(sys.argv[2], annotator=name, store=Store.open(sys.argv[1]))
rng = np.random.default_rng([int(c) for c in name.encode()])
print("ready", flush=True)
sys.stdin.readline()
for step in range(n):
    for ask in session.ask(2):
        try:
            session.tell(ask.id, str(rng.choice(session.classes)))  # one look: others change the classes
        except InputError:  # merged away by another between the look and the answer
            pass
    what = rng.integers(4)
    if what == 0:
        session.undo()
    elif what == 1 and len(session.classes) > 2:
        try:
            session.classes.merge(session.classes[-1], session.classes[0])
        except InputError:
            pass
    elif what == 2:
        try:
            session.classes.add(f"{name}{step}")
        except InputError:
            pass
    done = session.refit()
    if done is not None:
        print("round", done.number, done.n_labelled, flush=True)
"""


@pytest.mark.slow  # alone: three processes at once on one project
def test_refits_merges_and_undos_of_three_processes_lose_no_fit(start: Start, store: Store) -> None:
    session = start("three-gaussians", pool_options={"n_items": 60})
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, store.url, session.id, name, "5"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ann", "bob", "eve")
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [line.split() for worker in workers for line in worker.communicate(timeout=600)[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    acknowledged = {int(number): int(n) for _, number, n in said}
    assert len(acknowledged) == len(said) > 8
    again = Session.open(session.id, store=store)
    assert {r.number: r.n_labelled for r in again.rounds} == acknowledged
    assert sorted(acknowledged) == list(range(len(said)))
    for number, n in acknowledged.items():
        # raises where the labels replayed are not, to the last one, those that were fitted
        assert again.fits.model_at(number).n_labelled == n
    again.refit()
    assert not again.stale


def rows_of(iris: Pool, n: int) -> Pool:
    """The first rows of iris, as a table that grows has them."""
    items = replace(iris.items, ids=[str(i) for i in range(n)])  # type: ignore[type-var]
    return replace(
        iris, features=iris.features[:n], truth=None, fingerprints=iris.fingerprints[:n], items=items
    )


def ask_of(session: Session, item: int) -> None:
    session.items.want([item])
    assert item in [ask.item for ask in session.ask(3)]


@pytest.mark.parametrize(
    "elsewhere",
    [
        lambda session: session.items.label(140, "setosa"),
        lambda session: ask_of(session, 140),
        lambda session: session.items.import_labels([(140, "setosa")], "file"),
        lambda session: session.items.flag(140, reason="look"),
        lambda session: session.refit(),  # about no new item, but over all of the longer pool
    ],
    ids=["label", "question", "import", "flag", "fit"],
)
def test_what_was_stored_on_a_longer_pool_is_used_only_there(
    start: Start, store: Store, iris: Pool, elsewhere: Callable[[Session], object]
) -> None:
    short = start(rows_of(iris, 100), classes=iris.classes)
    answer(short, iris, 8)
    long = Session.open(short.id, pool=rows_of(iris, 150), store=store, annotator="bob")
    elsewhere(long)
    reads: list[Callable[[], object]] = [
        lambda: short.ask(3),
        lambda: short.stale,
        lambda: short.model,
        lambda: short.items.label(5, "setosa"),
        lambda: short.refit(),
    ]
    for read in reads:
        with pytest.raises(OutgrownError, match="has grown since it was opened here, where it has 100 items"):
            read()
    assert short.log.outgrown and not long.log.outgrown
    again = Session.open(short.id, pool=rows_of(iris, 150), store=store, annotator="ann")
    answer(again, iris, 2)
    assert again.refit() is not None and again.model is not None
    assert again.state.n_labelled == long.state.n_labelled
