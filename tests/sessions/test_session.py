"""Ask, tell, undo, refit: what a person at the Label page relies on."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.oracles import step
from tests.sessions.conftest import answer
from tests.sessions.fakes import FAKE, held_fits
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import ArrayOracle, Event, Session
from workbench.sessions.asking import _best
from workbench.sessions.learner import Learner
from workbench.sessions.published import Published
from workbench.store import Store

Start = Callable[..., Session]


def test_the_default_looks_for_a_declared_class_that_nobody_has_seen(start: Start) -> None:
    session = start(uniform_share=0.0)
    oracle = ArrayOracle(session.pool)
    asked_by = {}
    for _ in range(20):
        missing = set(session.classes) - set(session.state.labels.values())
        fitted = session.model
        for ask in session.ask():
            session.tell(ask.id, oracle(ask.item))
            payload = session.log.events[-1].payload
        if payload["role"] == "policy" and fitted is not None:
            asked_by[bool(missing)] = payload["policy"]
        session.refit()
    assert asked_by[False] == "margin" and asked_by.get(True, "variance") == "variance"
    other = start(policy="entropy", uniform_share=0.0)
    for _ in range(4):
        step(other, oracle)
    told = [e.payload for e in other.log.events if e.kind == "label" and e.payload["role"] == "policy"]
    assert {p["policy"] for p in told} <= {"entropy"}


def test_what_is_recorded_is_what_chose_also_where_a_fit_comes_before_the_answer(start: Start) -> None:
    session = start(uniform_share=0.0, early_share=0.0, evaluation_share=0.0)
    truth = np.asarray(session.pool.truth)
    of = [session.pool.trainable[truth[session.pool.trainable] == code] for code in range(3)]
    for code in (0, 0, 1, 1):  # nobody has seen the third
        item = next(i for i in of[code].tolist() if i not in session.state.labels)
        session.items.label(item, session.classes[code])
    session.refit()
    (ask,) = session.ask()
    assert (ask.role, ask.details["policy"], ask.details["n_labelled"]) == ("policy", "variance", 4)
    for item in of[2][:2].tolist():
        if item != ask.item:
            session.items.label(item, session.classes[2])
    session.change_model(classifier="logistic-regression", policy="entropy")
    session.refit()
    assert session.tell(ask.id, session.classes[int(truth[ask.item])])
    said = session.log.events[-1].payload
    assert (said["policy"], said["classifier"], said["n_labelled"]) == ("variance", FAKE, 4)
    assert said["utility"] == pytest.approx(ask.utility) and said["round"] == 0
    # reopened, or asked for again, it is still that question's
    (later,) = [a for a in session.ask(3) if a.details["policy"] == "entropy"][:1]
    assert later.details["classifier"] == "logistic-regression" and later.details["n_labelled"] > 4


def test_the_loop_with_an_oracle_learns(start: Start) -> None:
    session = start()
    oracle = ArrayOracle(session.pool)
    rounds = [step(session, oracle) for _ in range(15)]
    done = [r for r in rounds if r is not None]
    assert done[-1].n_labelled == 15 and done[-1].error < 0.2
    assert [r.number for r in session.rounds] == list(range(len(done)))
    assert session.rounds[-1].error == done[-1].error
    assert not set(session.state.labels) & set(session.pool.test.test.tolist())  # type: ignore[union-attr]
    truth = np.asarray(session.pool.truth)
    assert all(session.pool.classes[truth[i]] == name for i, name in session.state.labels.items())


def test_cold_start_spreads_until_two_classes_are_seen_and_says_so(start: Start, iris: Pool) -> None:
    session = start()
    first = session.ask()[0]
    assert first.role == "cold-start" and first.utility is None
    session.tell(first.id, "setosa")
    assert session.refit() is None and session.model is None and not session.stale
    second = session.ask()[0]
    assert second.role == "cold-start"
    session.tell(second.id, "versicolor")
    assert session.stale and session.refit() is not None and not session.stale
    third = session.ask()[0]
    assert third.role == "policy" and third.round == 0 and third.utility is not None
    session.tell(third.id, Event.skip())
    told = [e for e in session.log.events if e.kind in ("label", "skip")]
    assert [e.payload["role"] for e in told] == ["cold-start", "cold-start", "policy"]
    # the third class has no label yet, so the default looks for it
    assert told[-1].payload["policy"] == "variance" and told[-1].payload["n_labelled"] == 2


def test_the_same_question_stays_until_it_is_answered(start: Start, store: Store) -> None:
    session = start()
    ask = session.ask()
    assert session.ask() == ask
    second_tab = Session.open(session.id, annotator="ann", store=store)
    assert second_tab.ask() == ask
    three = session.ask(3)
    assert three[0] == ask[0] and len({a.item for a in three}) == 3
    assert second_tab.ask(3) == three


def test_one_answer_per_question(start: Start, store: Store) -> None:
    session = start()
    ask = session.ask()[0]
    tab = Session.open(session.id, annotator="ann", store=store)
    assert session.tell(ask.id, "setosa")
    assert not session.tell(ask.id, "virginica")
    assert not tab.tell(ask.id, Event.skip())
    assert session.state.labels == {ask.item: "setosa"} == tab.state.labels
    assert session.ask()[0].item != ask.item


def test_what_cannot_be_told(start: Start) -> None:
    session = start()
    ask = session.ask()[0]
    with pytest.raises(InputError, match="no question 'nope'"):
        session.tell("nope", "setosa")
    with pytest.raises(InputError, match=r"no class 'tulip'\. Classes: setosa"):
        session.tell(ask.id, "tulip")
    with pytest.raises(InputError, match="cannot be answered with 'undo'"):
        session.tell(ask.id, Event.undo())
    with pytest.raises(InputError, match="k=0"):
        session.ask(0)
    assert session.tell(ask.id, Event.note(ask.item, "hm")) and session.tell(ask.id, "setosa")
    assert session.state.notes[ask.item][0].text == "hm"


def test_others_are_not_asked_what_is_leased_until_it_runs_out(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    first = ann.ask()[0]
    assert bob.ask()[0].item != first.item
    late = ann.ask(2, lease=-1.0)[1]  # ran out at once
    other = bob.ask(2)[1]
    assert other.item == late.item
    assert not ann.tell(late.id, "setosa")  # bob is being asked now
    assert bob.tell(other.id, "setosa")
    assert not ann.tell(late.id, "setosa")


def test_a_lease_that_ran_out_unnoticed_still_takes_the_answer(start: Start) -> None:
    session = start()
    late = session.ask(1, lease=-1.0)[0]
    again = session.ask(1)[0]
    assert again.id == late.id and again.expires > late.expires
    assert session.tell(late.id, "setosa")


def test_undo_brings_the_item_back_and_redo_the_answer(start: Start) -> None:
    session = start()
    assert session.undo() is None and session.redo() is None
    ask = session.ask()[0]
    session.tell(ask.id, "setosa")
    undone = session.undo()
    assert undone is not None and undone.item == ask.item
    assert session.state.labels == {}
    again = session.ask()[0]
    assert (again.item, again.role) == (ask.item, "again") and again.id != ask.id
    assert session.redo() is not None
    assert session.state.labels == {ask.item: "setosa"}
    assert session.ask()[0].item != ask.item
    assert not session.tell(again.id, "virginica")  # its item has its answer back


def test_undo_is_ones_own(start: Start, store: Store) -> None:
    ann = start()
    bob = Session.open(ann.id, annotator="bob", store=store)
    item = ann.ask()[0].item
    ann.tell(ann.ask()[0].id, "setosa")
    assert bob.undo() is None
    assert bob.state.labels == {item: "setosa"}


def test_a_click_on_the_map_labels_and_closes_the_question(start: Start) -> None:
    session = start()
    ask = session.ask()[0]
    session.items.label(ask.item, "virginica")
    assert session.state.labels == {ask.item: "virginica"}
    assert not session.tell(ask.id, "setosa")
    session.items.label(ask.item, "setosa")
    assert session.state.labels == {ask.item: "setosa"} and session.state.n_labelled == 1
    test = int(session.pool.test.test[0])  # type: ignore[union-attr]
    with pytest.raises(InputError, match="test split"):
        session.items.label(test, "setosa")
    for wrong in (-1, 150):
        with pytest.raises(InputError, match=f"no item {wrong}"):
            session.items.label(wrong, "setosa")
    train = session.pool.trainable[:3].tolist()
    with pytest.raises(InputError, match="no item 900"):
        session.items.label([*train, 900], "setosa")
    assert session.items.label(train, "setosa").item is None


def test_reopening_finds_the_model_as_it_was(start: Start, store: Store, iris: Pool) -> None:
    session = start()
    answer(session, iris, 8)
    session.refit()
    answer(session, iris, 3)
    session.refit()
    again = Session.open(session.id, annotator="ann", store=store)
    assert again.model is not None and session.model is not None
    assert again.model.number == 1 and again.model.n_labelled == 11 and not again.stale
    assert np.array_equal(again.model.probabilities, session.model.probabilities)
    assert again.predictions.evaluation == session.predictions.evaluation
    assert [a.item for a in again.ask(4)] == [a.item for a in session.ask(4)]
    # the first round is fitted again on the labels it had then
    first = again.fits.model_at(0)
    assert first.n_labelled == 8 and set(first.items.tolist()) < set(again.model.items.tolist())
    with pytest.raises(InputError, match="no round 7"):
        again.fits.model_at(7)


@pytest.mark.parametrize(
    ("state", "problem", "logged"),
    [
        ({"session.format": np.asarray(99)}, "another version of the program", False),
        ({"session.format": np.asarray(1), "means": np.zeros(1)}, "KeyError: 'n'", True),
    ],
)
def test_a_fit_that_cannot_be_read_is_made_again_and_the_reason_is_said(
    start: Start,
    store: Store,
    iris: Pool,
    caplog: pytest.LogCaptureFixture,
    state: dict[str, np.ndarray],
    problem: str,
    logged: bool,
) -> None:
    """A programming error is not taken for another version: it is logged with where it happened."""
    session = start()
    answer(session, iris, 8)
    session.refit()
    number, record = 0, store.rounds.all(session.id)[0].record
    store.rounds.save(session.id, number, record, state)
    again = Session.open(session.id, annotator="ann", store=store)
    assert again.model is None and again.stale and again.ask()
    assert problem in again.fits.problem
    assert any(r.exc_info for r in caplog.records) == logged
    assert again.fits.model_at(0).n_labelled == 8
    assert again.refit() is not None and again.model is not None and again.model.number == 1
    assert again.fits.problem == ""


def test_a_stale_queue_never_asks_what_is_labelled(start: Start, store: Store, iris: Pool) -> None:
    session = start()
    answer(session, iris, 6)
    session.refit()
    other = Session.open(session.id, annotator="bob", store=store)
    seen = answer(session, iris, 15) + answer(other, iris, 15)  # nobody refits: the queue holds 10
    assert len(set(seen)) == 30 and len(session.state.labels) == 36


def test_answers_during_a_fit_are_for_the_next_one(
    start: Start, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    answer(session, iris, 6)
    fitting, go_on = held_fits(monkeypatch)
    thread = threading.Thread(target=session.refit)
    thread.start()
    assert fitting.wait(600)
    during = answer(session, iris, 4)  # nobody waits
    assert session.model is None
    go_on.set()
    thread.join(600)
    assert session.model is not None and session.model.n_labelled == 6 and session.stale
    assert not set(during) & set(session.model.items.tolist())
    session.refit()
    assert session.model.n_labelled == 10 and not session.stale


def test_undo_and_relabel_reach_the_training_set(start: Start, iris: Pool) -> None:
    session = start()
    items = answer(session, iris, 6)
    session.refit()
    session.undo()
    assert session.stale
    session.refit()
    assert session.model is not None and items[-1] not in session.model.items
    assert [r.n_labelled for r in session.rounds] == [6, 5]
    other = next(c for c in iris.classes if c != session.state.labels[items[0]])
    session.items.label(items[0], other)
    assert session.stale
    session.refit()
    assert session.model.codes[session.model.items.tolist().index(items[0])] == iris.classes.index(other)
    reopened = Session.open(session.id, store=session.store)
    assert reopened.model is not None
    assert dict(zip(reopened.model.items.tolist(), reopened.model.codes.tolist(), strict=True)) == dict(
        session.state.training
    )


def test_rows_that_come_with_a_class_are_labels_and_are_not_asked(start: Start, iris: Pool) -> None:
    truth = np.array(iris.truth)
    truth[40:] = -1
    truth[100:110] = 2
    session = start(replace(iris, truth=truth))
    known = set(session.state.labels)
    assert known and known <= set(session.pool.trainable.tolist())
    assert {truth[i] for i in known} == {0, 2}
    assert session.stale and session.refit() is not None
    asks = session.ask(10)
    assert not {a.item for a in asks} & known and all(truth[a.item] < 0 for a in asks)
    assert all(truth[i] >= 0 for i in session.fits.held_out()[0])


def test_classes_can_be_added_renamed_and_merged_while_labelling(start: Start, iris: Pool) -> None:
    session = start()
    answer(session, iris, 9)
    session.refit()
    session.classes.add("tulip")
    assert session.classes == (*iris.classes, "tulip") and session.stale
    session.refit()
    assert session.model is not None and session.model.probabilities.shape == (150, 4)
    session.classes.rename("tulip", "rose")
    session.items.label(int(session.pool.trainable[-1]), "rose")
    assert session.state.counts["rose"] == 1
    session.classes.merge("rose", "setosa")
    session.refit()
    assert session.classes == iris.classes and session.model.classes == iris.classes
    for call, message in (
        (lambda: session.classes.add("setosa"), "is a class 'setosa' already"),
        (lambda: session.classes.add("  "), "needs a name"),
        (lambda: session.classes.rename("setosa", "virginica"), "already"),
        (lambda: session.classes.rename("nope", "x"), "no class 'nope'"),
        (lambda: session.classes.merge("setosa", "setosa"), "into itself"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    # the old name is free again, and what has it now is another class
    session.classes.rename("virginica", "v")
    session.classes.add("virginica")
    assert session.state.counts["virginica"] == 0


def test_a_file_whose_name_has_a_slash_between_spaces_is_no_person(start: Start) -> None:
    session = start("iris")
    item = int(session.pool.trainable[0])
    session.items.import_labels([(item, "setosa")], "mine / old.csv")
    session.items.label(item, "virginica")
    assert session.state.labels[item] == "virginica" and item not in session.state.undecided


def test_imported_labels_bring_their_classes_and_go_with_one_undo(start: Start) -> None:
    session = start()
    items = session.pool.trainable[:4].tolist()
    session.items.import_labels([(items[0], "setosa"), (items[1], "tulip"), (items[2], "tulip")], "old.csv")
    assert session.state.counts["tulip"] == 2 and session.state.n_labelled == 3
    session.undo()
    assert session.state.n_labelled == 0
    with pytest.raises(InputError, match="no item 1000"):
        session.items.import_labels([(1000, "setosa")], "x")


def test_imported_labels_of_the_test_split_are_never_learnt_from(
    start: Start, store: Store, iris: Pool
) -> None:
    session = start()
    assert session.pool.test is not None
    test = session.pool.test.test[:20].tolist()
    truth = np.asarray(iris.truth)
    session.items.import_labels([(i, iris.classes[truth[i]]) for i in test], "all.csv")
    assert session.state.n_labelled == 20 and not session.stale and session.refit() is None
    answer(session, iris, 8)
    assert session.stale and session.refit() is not None and not session.stale
    assert session.model is not None and not set(session.model.items.tolist()) & set(test)
    assert session.state.n_labelled == 28
    again = Session.open(session.id, store=store)
    assert not again.stale and again.fits.model_at(0).n_labelled == 8


def test_rows_may_be_appended_and_nothing_else(start: Start, store: Store, iris: Pool) -> None:
    def rows(which: list[int] | slice) -> Pool:
        assert iris.truth is not None
        keep = np.arange(150)[which]
        items = replace(iris.items, ids=[str(i) for i in keep])  # type: ignore[type-var]
        return replace(
            iris,
            features=iris.features[keep],
            truth=iris.truth[keep],
            fingerprints=iris.fingerprints[keep],
            items=items,
        )

    session = start(rows(slice(0, 120)), classes=iris.classes)
    answer(session, iris, 10)
    session.refit()
    grown = Session.open(session.id, pool=rows(slice(0, 150)), store=store, annotator="ann")
    assert len(grown.pool) == 150 and grown.state.n_labelled == 10
    before, after = session.pool.test, grown.pool.test
    assert before is not None and after is not None
    assert np.array_equal(before.test, after.test)  # appended rows do not reshuffle the split
    assert set(range(120, 150)) <= set(grown.pool.trainable.tolist())
    assert grown.model is not None and grown.model.probabilities.shape == (150, 3)
    answer(grown, iris, 3)
    grown.refit()
    shrunk = rows([*range(0, 7), *range(8, 150)])
    with pytest.raises(InputError, match="not the one this project was made from"):
        Session.open(session.id, pool=shrunk, store=store)
    assert Session.open(session.id, pool=rows(slice(0, 150)), store=store).state.n_labelled == 13


def test_everything_can_be_labelled_and_then_nothing_is_asked(start: Start, iris: Pool) -> None:
    session = start(test_fraction=0.8)
    n = session.queue.n_left
    answer(session, iris, n)
    assert session.refit() is not None
    assert session.ask() == [] and session.queue.n_left == 0
    assert step(session, ArrayOracle(session.pool)) is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"classifier": "large-margins"}, "Did you mean 'large-margin'"),
        ({"policy": "variation"}, "no policy called"),
        ({"classifier": FAKE, "options": {"sharp": 1}}, "no option 'sharp'.*sharpness"),
        ({"classes": ["a", "a"]}, "same name"),
        ({"classes": ["a", ""]}, "needs a name"),
        ({"classes": ["a", "b" * 301]}, "at most 300 characters"),
        ({"classifier": "logistic-regression", "policy": "variation-ratio"}, "needs latent functions"),
        ({"test_fraction": 0.0}, "'test_fraction' is 0.0: input should be greater than 0"),
        ({"test_fraction": 1.0}, "'test_fraction' is 1.0: input should be less than 1"),
    ],
)
def test_a_project_that_cannot_be(start: Start, store: Store, more: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        start("iris", **more)
    assert store.projects() == []


def test_an_option_of_the_wrong_kind_is_explained(start: Start, iris: Pool) -> None:
    session = start(options={"sharpness": "much"})
    answer(session, iris, 5)
    with pytest.raises(InputError, match="cannot be fitted with sharpness='much'"):
        session.refit()


def test_bob_may_be_anybody(start: Start, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    assert start(annotator=None).annotator == "somebody"
    with pytest.raises(InputError, match="There is no project 'x'"):
        Session.open("x", store=store)


def test_a_file_without_classes_is_labelled_from_nothing(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal(6 * (i % 2)):.3f},{rng.normal():.3f}" for i in range(60)]
    path.write_text("a,b\n" + "\n".join(rows) + "\n")
    session = start(str(path))
    assert session.classes == () and session.refit() is None
    first = session.ask()[0]
    with pytest.raises(InputError, match="Classes: none yet"):
        session.tell(first.id, "even")
    session.classes.add("even")
    session.classes.add("odd")
    for _ in range(12):
        ask = session.ask()[0]
        assert session.tell(ask.id, ("even", "odd")[ask.item % 2])
    assert session.refit() is not None
    reopened = Session.open(session.id, store=session.store)
    assert reopened.state.labels == session.state.labels and reopened.model is not None
    right = reopened.model.probabilities.argmax(axis=1) == np.arange(60) % 2
    assert right.mean() > 0.9


def test_after_its_queue_the_fit_has_the_best_thousand_in_order_and_then_all() -> None:
    utilities = np.random.default_rng(0).integers(0, 300, 5000).astype(float)  # many are equal
    utilities[::7] = np.nan
    made = Published(None, {}, (), {}, np.array([14, 5]), utilities)  # type: ignore[arg-type]
    free = np.ones(5000, dtype=bool)
    order = [14, 5]
    best = np.argsort(-np.where(np.isnan(utilities), -1.0, utilities), kind="stable")
    order += [int(i) for i in best if not np.isnan(utilities[i]) and i not in (14, 5)]
    for wanted in order[:1500]:
        assert _best(made, free) == wanted
        free[wanted] = False
    free[:] = False
    assert _best(made, free) == -1


@pytest.mark.parametrize("classifier", ["logistic-regression", "svm-platt", "gp-laplace"])
def test_every_fit_of_a_run_is_scaled_by_the_pool(classifier: str) -> None:
    """And not the second by the labelled rows alone: a restored model brings what the first one measured."""
    pool = load_pool("wine").split(0)
    assert pool.truth is not None
    learner = Learner(pool, classifier, seed=0)
    state, shifts = None, []
    for number in range(3):
        items = pool.trainable[: 40 + 10 * number]
        model = learner.fit(items, pool.truth[items], number=number, previous=state)
        state = model.state
        assert state is not None
        shifts.append(state["geometry.shift"])
    assert all(np.array_equal(shifts[0], shift) for shift in shifts)


def test_questions_are_members_of_sets_and_keys(start: Start) -> None:
    session = start()
    asks = session.ask(3)
    answers = dict.fromkeys(asks, session.classes[0])
    assert len(answers) == 3 and {*session.ask(3)} == {*asks}
