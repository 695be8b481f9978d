"""Several people in one project: what the model learns, who is asked what, and how each of them does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
from workbench.cli import labelling
from workbench.errors import InputError
from workbench.exchange.rows import label_table
from workbench.sessions import Session
from workbench.sessions.asking import Questions
from workbench.sessions.people import first_guesses, shown_people, training_of


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))


def project(**settings):
    return Session.create("iris", classifier=FAKE, policy="random", annotator="owner", **settings)


def of(session, person):
    """The project as somebody has it open."""
    return Session.open(session.id, pool=session.pool, annotator=person)


def spread(session, n):
    """So many items of the project, over all classes."""
    rows = session.pool.trainable
    return rows[np.linspace(0, len(rows) - 1, n).astype(int)].tolist()


def labelled(people, n=45, wrong=()):
    """A project in which these people labelled the same n items; those of `wrong` always say virginica."""
    session = project()
    names, truth = session.pool.classes, session.pool.truth
    items = spread(session, n)
    for person in people:
        mine = of(session, person)
        for item in items:
            mine.items.label(item, "virginica" if person in wrong else names[truth[item]])
    return session, items


def test_one_person_is_told_that_agreement_needs_another():
    session, _ = labelled(["ann"])
    report = session.people.report()
    assert report.alpha is None and "Only ann has labelled" in report.words
    assert [(one.name, one.n_labels, one.n_shared) for one in report.people] == [("ann", 45, 0)]
    assert training_of(session.state) is session.state.training


def test_a_spammer_is_outvoted_and_told_apart():
    session, items = labelled(["ann", "bob", "spam"], wrong=["spam"])
    truth = session.pool.truth
    assert training_of(session.state) == {item: int(truth[item]) for item in items}
    by_name = {one.name: one for one in session.people.report().people}
    assert by_name["ann"].agreement == 1.0 and by_name["spam"].agreement < 0.5
    assert by_name["spam"].confusions[0][1] == "virginica" and by_name["spam"].disagreements
    report = session.people.report()
    assert {(one.said, one.model) for one in report.confusions} == {("virginica", 0)}
    assert (report.n_answers, sum(one.people for one in report.confusions)) == (135, 30)
    assert by_name["spam"].accuracy < 0.6 < by_name["bob"].accuracy


def test_a_tie_with_somebody_whom_the_others_contradict_is_learnt_from():
    session, items = labelled(["ann", "bob", "spam"], wrong=["spam"])
    names, truth = session.pool.classes, session.pool.truth
    item = next(i for i in session.pool.trainable.tolist() if truth[i] == 0 and i not in items)
    for person, name in (("ann", names[0]), ("spam", "virginica")):
        of(session, person).items.label(item, name)
    state = session.state
    assert item in state.undecided and item not in state.training
    assert training_of(state)[item] == 0
    assert session.people.report().n_other == 1
    row = {r["item"]: r for r in label_table(session)}[item]
    assert row["consensus"] == names[0] and row["consensus_certainty"] > 2 / 3


def test_a_reply_makes_no_consensus_to_say_whether_a_fit_would_see_anything_new(monkeypatch):
    session, items = labelled(["ann", "bob"], n=12)
    with monkeypatch.context() as patched:
        patched.setattr("workbench.sessions.people.item_consensus", lambda state: pytest.fail("made anew"))
        assert session.stale  # also before there is a fit
    session.refit()
    again = of(session, "ann")
    monkeypatch.setattr("workbench.sessions.people.item_consensus", lambda state: pytest.fail("made anew"))
    assert not session.stale and not again.stale
    mine = of(session, "eve")
    mine.items.label(items[0], "virginica")
    assert session.stale and again.stale
    mine.undo()
    mine.items.note(items[1], "a remark teaches nothing")
    assert not session.stale and not again.stale


def test_two_who_differ_and_nothing_else_teach_nothing():
    session = project()
    (item,) = spread(session, 1)
    of(session, "ann").items.label(item, "setosa")
    of(session, "bob").items.label(item, "virginica")
    assert item not in training_of(session.state)


def test_a_decision_stands_whatever_people_mean_together():
    session, items = labelled(["ann", "bob", "cia"])
    of(session, "ann").items.resolve([items[0]], "virginica")
    assert training_of(session.state)[items[0]] == session.state.classes.index("virginica")


def test_second_opinions_go_where_people_differ():
    session = project(overlap=1.0, people=3)
    names, truth = session.pool.classes, session.pool.truth
    items = spread(session, 15)
    for person in ("ann", "bob"):
        mine = of(session, person)
        for item in items:
            other = person == "bob" and item == items[7]
            mine.items.label(item, names[(truth[item] + other) % 3])
    asked = of(session, "cia").ask(1)
    assert (asked[0].item, asked[0].role) == (items[7], "overlap")


def told(session, person, n, wrong=()):
    """A person answers n questions, in the words of the pool but for the places in `wrong`."""
    mine, truth, names = of(session, person), session.pool.truth, session.pool.classes
    items = []
    for place in range(n):
        (ask,) = mine.ask(1)
        mine.tell(ask, names[(truth[ask.item] + (place in wrong)) % 3])
        items.append((ask.item, ask.role))
    return items


def test_a_second_opinion_is_asked_for_where_it_is_worth_more_than_a_new_item():
    session = Session.create(
        "iris", classifier="logistic-regression", policy="margin", overlap="worth", people=3
    )
    asked = told(session, "ann", 15)
    assert {role for _, role in asked}.isdisjoint({"overlap"}), "nobody is asked about the own labels again"
    session.refit()
    # a setosa of which the model was sure is called something else
    mine, truth = of(session, "ann"), session.pool.truth
    told(session, "ann", 5)
    odd = next(int(i) for i in session.pool.trainable if truth[i] == 0 and i not in mine.state.votes)
    mine.items.want([odd])
    ask = mine.ask(1)[0]
    assert ask.item == odd
    mine.tell(ask, "virginica")
    first = of(session, "bob").ask(1)[0]
    assert (first.item, first.role) == (odd, "overlap")
    # and what all agree about with the model is left alone for new items
    of(session, "bob").tell(first, "setosa")
    assert [role for _, role in told(session, "bob", 4)].count("overlap") < 4


def test_what_the_model_says_of_an_item_that_it_has_learnt_is_no_guess_of_before():
    session = project(overlap=1.0, people=2)
    names, truth, items = session.pool.classes, session.pool.truth, spread(session, 30)
    for code, name in enumerate(names):
        session.items.label([item for item in items if truth[item] == code], name)
    session.refit()
    bob, codes = of(session, "bob"), {key: code for code, key in enumerate(session.state.keys)}
    asks = bob.ask(5)
    for ask in asks:
        assert bob.tell(ask, names[truth[ask.item]])
    learnt = [ask.item for ask in asks if ask.item in items]
    assert learnt and all(ask.guess for ask in asks) and first_guesses(session.state, learnt, codes) == {}
    (new,) = (ask for ask in session.ask(1) if ask.item not in items)
    session.tell(new, names[truth[new.item]])
    bob.items.label(new.item, names[truth[new.item]])
    assert list(first_guesses(session.state, [new.item], codes)) == [new.item]


def test_who_takes_a_file_in_has_given_no_opinion_of_their_own():
    session = project(overlap=1.0, people=2)
    names, truth, items = session.pool.classes, session.pool.truth, spread(session, 12)
    session.items.import_labels([(item, names[truth[item]]) for item in items], "labels.csv")
    of(session, "bob").items.label(items[0], names[truth[items[0]]])
    raters = [(one.name, one.n_labels) for one in session.people.report().people]
    assert raters == [("file labels.csv", 12), ("bob", 1)]
    [ask] = session.ask(1)  # the file is a rater of its own: who took it in may still be asked
    assert ask.item in items[1:] and ask.role == "overlap"


def test_a_share_of_items_or_worth_and_nothing_else():
    for wrong in ("often", 1.5, -0.1, True, float("nan"), [0.5]):
        with pytest.raises(
            InputError, match=r"'overlap' is .*: it is a share of the items, in \[0, 1\], or 'worth'"
        ):
            project(overlap=wrong)
    with pytest.raises(InputError, match="'people' is 1: input should be greater than or equal to 2"):
        project(overlap="worth", people=1)


def test_names_are_hidden_for_everybody_where_the_owner_wants_it(capsys):
    session, _ = labelled(["ann", "bob", "cia"], n=6)
    assert session.people.hide_names() is not None and session.people.hide_names() is None
    labelling.people(session.id)
    said = capsys.readouterr().out
    assert not any(name in said for name in ("ann", "bob", "cia")) and "Person 3" in said
    shown = shown_people(session.people.report(), True, session.id)
    assert [name for name, _ in shown] == ["Person 1", "Person 2", "Person 3"]
    session.people.hide_names(False)
    labelling.people(session.id)
    assert "ann" in capsys.readouterr().out


def test_agreement_of_few_items_is_a_range_and_says_how_its_items_were_chosen():
    session, _ = labelled(["ann", "bob"], n=2)
    report = session.people.report()
    assert report.interval.low < 0.2 and report.interval.high == 1.0 and report.n_drawn == 0
    assert "2 items with labels of two or more (0 drawn at random, 2 picked)" in report.words
    assert "is 1.00" not in report.words and "too early" in report.words
    for _ in range(12):
        (ask,) = session.ask(1)
        session.tell(ask, session.pool.classes[session.pool.truth[ask.item]])
        of(session, "bob").items.label(ask.item, session.pool.classes[session.pool.truth[ask.item]])
    report = session.people.report()
    drawn = [
        ask for ask in session.state.asks.values() if ask.role == "evaluation" or ask.details.get("policy")
    ]
    assert report.n_drawn == len(drawn) and f"({len(drawn)} drawn at random" in report.words
    assert "alpha is 1.00 (" in report.words


@pytest.mark.parametrize(("people", "told"), [(3, True), (6, False)])  # six fewer of ten: p = 0.011
def test_a_change_over_time_is_told_where_it_is_more_than_chance_among_all_people(people, told):
    session = project()
    truth, names, items = session.pool.truth, session.pool.classes, spread(session, 20)
    for k in range(people):
        mine = of(session, f"person {k}")
        for place, item in enumerate(items[::2] + items[1::2]):
            mine.items.label(item, names[(truth[item] + (k == 0 and place >= 14)) % 3])
    drifts = {one.name: one.drift for one in session.people.report().people}
    assert drifts.pop("person 0") == ((1.0, 0.4) if told else None)
    assert set(drifts.values()) == {None}


@pytest.mark.parametrize("n", [20, pytest.param(100, marks=pytest.mark.slow)])  # alone: so many
def test_many_people_and_the_command(capsys, n):
    session = project()
    for k in range(n):
        mine = of(session, f"person {k:02}")
        for item in spread(session, 3):
            mine.items.label(item, session.pool.classes[session.pool.truth[item]])
    report = session.people.report()
    assert len(report.people) == n and report.alpha is not None and report.alpha.kappa == 1.0
    labelling.people(session.id)
    said = capsys.readouterr().out
    assert f"{n} people, 3 items" in said and f"person {n - 1}" in said


def test_who_gives_second_opinions_costs_what_changed_since_the_last_one(monkeypatch):
    first = project(overlap=1.0, people=2, evaluation_share=0.0, early_share=0.0, uniform_share=0.0)
    names, truth = first.pool.classes, first.pool.truth
    ann = of(first, "ann")
    for _ in range(15):
        (ask,) = ann.ask(1)
        ann.tell(ask, names[truth[ask.item]])
    walks = []

    def counted(state, items, codes):
        walks.append(len(state.asks))
        return first_guesses(state, items, codes)

    monkeypatch.setattr("workbench.sessions.people.first_guesses", counted)
    bob = of(first, "bob")
    seconds = []
    for _ in range(12):
        (ask,) = bob.ask(1)
        seconds.append(ask.item)
        assert ask.role == "overlap" and bob.tell(ask, names[truth[ask.item]])
    assert len(set(seconds)) == 12 and len(walks) == 1  # over all questions, for the first of these alone


def test_second_opinions_that_are_kept_are_those_of_a_program_that_begins(monkeypatch, store, unknown):
    monkeypatch.setattr("workbench.store.layered_mapping.FEW", 2)
    ada = Session.create(unknown, name="p", annotator="Ada", store=store, overlap=1.0, people=3)
    cid, questions = ada.as_annotator("Cid"), ada._questions
    for item in range(9):
        ada.items.label(item, ada.classes[0])
    before = questions.unseen(ada.state, "Bob")
    assert before == set(range(9))
    for change in (
        lambda: ada.items.label(2, ada.classes[1]),
        lambda: cid.items.label(4, ada.classes[0]),
        ada.undo,
        lambda: ada.as_annotator("Bob").items.label(6, ada.classes[0]),
    ):
        change()
        fresh = Questions(questions.pool, questions.settings)
        kept = list(questions._unlabelled_by("Bob", ada.state))
        assert kept == list(fresh._unlabelled_by("Bob", ada.state))
