"""The state is a pure function of the events; undo and redo are each other's inverse."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.store import Event, EventFold, ProjectState, fold
from workbench.store.fold import distinct_names
from workbench.store.layered_mapping import FEW, LayeredMapping

PEOPLE = ("ann", "bob", "eve")
KEYS = ("a", "b", "c")
items = st.integers(0, 5)
keys = st.sampled_from(KEYS)

undoable = st.one_of(
    st.builds(Event.label, keys, items),
    st.builds(Event.skip, items),
    st.builds(Event.unsure, items),
    st.builds(Event.flag, items, st.booleans(), st.sampled_from(["", "blurred"])),
    st.builds(Event.note, items, st.sampled_from(["x", "y"])),
    st.builds(Event.class_added, st.sampled_from(["a", "d"])),
    st.builds(Event.class_renamed, keys, st.sampled_from(["new", "newer"])),
    st.builds(Event.class_merged, keys, keys),
    st.builds(Event.imported, st.lists(st.tuples(items, keys), max_size=3), st.just("file.csv")),
    st.builds(Event.resolved, items, keys),
    st.builds(Event.confirmed, st.lists(items, max_size=4, unique=True), keys),
    st.builds(Event.requeued, st.lists(items, max_size=3)),
    st.builds(Event.class_removed, keys),
    st.builds(lambda k, g: Event.class_described(k, guidance=g), keys, st.sampled_from(["", "round"])),
    st.builds(Event.classes_ordered, st.permutations(KEYS)),
    st.builds(
        Event.relabelled,
        st.lists(items, max_size=3, unique=True),
        keys,
        st.sampled_from(["review", "map"]),
        st.booleans(),
    ),
    st.builds(Event.cleared, st.lists(items, max_size=2)),
    st.builds(Event.wanted, st.lists(items, max_size=3), st.just("found"), st.booleans()),
    st.builds(lambda k, i: Event.label(k, i, role="second"), keys, items),
    st.builds(lambda k, i, s: Event.label(k, i, role="check", check=s), keys, items, st.integers(1, 9)),
    st.builds(lambda i, s: Event.unsure(i, role="check", check=s), items, st.integers(1, 9)),
)
anything = st.one_of(
    undoable,
    st.builds(Event.undo),
    st.builds(Event.undo, st.integers(1, 25)),
    st.builds(Event.redo),
    st.builds(lambda i: Event.released([f"q{i}"]), items),
    st.builds(Event.model_changed, st.just("c"), st.just({}), st.sampled_from(["margin", "random"])),
    st.builds(
        lambda i, r: Event.asked([{"id": f"q{i}", "item": i, "role": r}], 9.0),
        items,
        st.sampled_from(["policy", "evaluation"]),
    ),
    st.builds(lambda n: Event.round({"number": n}), st.integers(0, 3)),
    st.builds(lambda n: Event.checks_started({"attempt": n}), st.integers(1, 3)),
    st.builds(lambda n: Event.certified(n, [(n, False)], {}), st.integers(0, 3)),
)
START = [Event.class_added(key) for key in KEYS]

# what people gave hangs on these: as many examples in make test
ALL = settings(max_examples=100)


def by(person: str, event: Event) -> Event:
    return replace(event, annotator=person)


people = st.sampled_from(PEOPLE)
histories = st.lists(st.builds(by, people, anything), max_size=25)


def numbered(events: list[Event]) -> list[Event]:
    return [replace(event, id=i + 1) for i, event in enumerate([*START, *events])]


def content(state: ProjectState) -> dict[str, Any]:
    """State that people see; not who could undo what, nor how many events it took."""
    names = (
        "class_names",
        "class_about",
        "class_order",
        "merged",
        "votes",
        "undecided",
        "wanted",
        "second",
        "skipped",
        "unsure",
        "requeued",
        "answered",
        "flagged",
        "notes",
        "evaluation",
        "rounds",
        "checks",
        "learnable",
    )
    return {name: getattr(state, name) for name in names} | {"labels": state.labels}


@ALL
@given(histories, people, undoable)
def test_undo_takes_back_exactly_the_last_event(before: list[Event], person: str, event: Event) -> None:
    done = numbered([*before, by(person, event), by(person, Event.undo())])
    assert content(fold(done)) == content(fold(done[:-2]))
    assert fold(done).redoable[person] == done[-2]


@ALL
@given(histories, people, st.integers(1, 6))
def test_redo_undoes_undo(before: list[Event], person: str, n: int) -> None:
    start = fold(numbered(before))
    events = list(before)
    while n and person in fold(numbered(events)).undoable:
        events.append(by(person, Event.undo()))
        n -= 1
    redone = [by(person, Event.redo())] * (len(events) - len(before))
    again = fold(numbered([*events, *redone]))
    assert content(again) == content(start)
    assert again.undoable == start.undoable


def in_order(state: ProjectState) -> dict[str, Any]:
    """Everything of a state, its maps as sequences; of sets and of remarks the order says nothing."""
    names = [f.name for f in fields(state)]
    found = {name: getattr(state, name) for name in names} | {"counts": state.counts, "keys": state.keys}
    unordered = ("flagged", "notes", "checks")
    return {
        n: list(v.items()) if isinstance(v, Mapping) and n not in unordered else v for n, v in found.items()
    } | {"each": [list(votes.items()) for votes in state.votes.values()]}


@ALL
@given(histories, st.lists(st.booleans(), min_size=25, max_size=25))
def test_a_state_does_not_depend_on_when_it_was_looked_at(events: list[Event], looks: list[bool]) -> None:
    """Also as sequences: a round's digest and the order of its rows stand on that of the training set."""
    pieces = EventFold(numbered([]))
    for event, look in zip(numbered(events)[len(START) :], looks, strict=False):
        pieces.extend([event])
        if look:
            pieces.state()
    whole = fold(numbered(events))
    assert in_order(pieces.state()) == in_order(whole)
    assert list(whole.training) == [i for i in whole.votes if i in whole.training]


def test_a_tie_that_ends_is_learnt_from_at_its_place() -> None:
    pieces = EventFold(numbered([]))
    steps = [
        by("ann", Event.label("a", 0)),
        by("ann", Event.label("b", 1)),
        by("bob", Event.label("b", 0)),
        by("ann", Event.resolved(0, "b")),
    ]
    seen = []
    for event in numbered(steps)[len(START) :]:
        pieces.extend([event])
        seen.append(list(pieces.state().training.items()))
    assert seen == [[(0, 0)], [(0, 0), (1, 1)], [(1, 1)], [(0, 1), (1, 1)]]
    assert list(fold(numbered(steps)).training.items()) == seen[-1]


def test_two_classes_never_show_one_name() -> None:
    steps = [
        by("ann", Event.class_renamed("a", "new")),
        by("bob", Event.class_added("a#2", "a")),
        by("ann", Event.undo()),
    ]
    state = fold(numbered(steps))
    assert state.class_names == {"a": "a", "b": "b", "c": "c", "a#2": "a (2)"}
    assert state.counts == dict.fromkeys(state.classes, 0)


def test_names_that_are_alike_are_counted() -> None:
    assert distinct_names({key: "x" for key in "abc"}) == {"a": "x", "b": "x (2)", "c": "x (3)"}


def test_a_class_that_was_removed_comes_back_bare() -> None:
    steps = [
        by("ann", Event.class_described("b", guidance="with a tail", shortcut="t")),
        by("ann", Event.class_removed("b")),
    ]
    assert fold(numbered(steps)).removed == {"b": "b"}
    again = fold(numbered([*steps, by("bob", Event.class_added("b"))]))
    assert again.class_about == {} and again.removed == {} and again.classes == ("a", "b", "c")
    # whoever undoes the removal has it as it was
    assert fold(numbered([*steps, by("ann", Event.undo())])).class_about["b"]["guidance"] == "with a tail"


def test_a_class_is_called_as_it_is_or_last_was_also_where_it_is_gone() -> None:
    steps = [
        by("ann", Event.class_merged("a", "c")),
        by("ann", Event.class_renamed("b", "bees")),
        by("ann", Event.class_renamed("c", "cats")),
        by("ann", Event.class_removed("b")),
    ]
    state = fold(numbered(steps))
    assert [state.class_name(key) for key in ("a", "b", "c", "d", "")] == ["cats", "bees", "cats", "d", ""]


@ALL
@given(histories)
def test_undoing_leaves_what_the_standing_events_alone_would_give(events: list[Event]) -> None:
    """Also the order of classes and of items, on which a fit depends to the last digit."""
    everything = numbered(events)
    whole = EventFold(everything)
    plain = [e for e in everything if e.id in whole.standing and e.kind not in ("undo", "redo")]
    state, wanted = whole.state(), fold(plain)
    for found in (state, wanted):  # who answered a check first is told by what was taken back, too
        for said in found.checks.values():
            said.update({who: replace(check, first=0) for who, check in said.items()})
    assert content(state) == content(wanted)
    for name in ("class_names", "votes", "standing", "codes", "training"):
        assert list(getattr(state, name).items()) == list(getattr(wanted, name).items()), name


@ALL
@given(histories)
def test_a_state_does_not_change_under_its_holder(events: list[Event]) -> None:
    everything = numbered(events)
    folder = EventFold()
    states = []
    for event in everything:
        folder.extend([event])
        states.append(folder.state())
    for n, state in enumerate(states, start=1):
        assert state == fold(everything[:n])


@ALL
@given(histories, people)
def test_an_undo_that_names_another_event_takes_nothing(before: list[Event], person: str) -> None:
    state = fold(numbered(before))
    last = state.undoable.get(person)
    for of in {1, 2, 5, 9} - ({last.id} if last else set()):
        assert content(fold(numbered([*before, by(person, Event.undo(of))]))) == content(state)
    if last is not None:
        named = fold(numbered([*before, by(person, Event.undo(last.id))]))
        assert content(named) == content(fold(numbered([*before, by(person, Event.undo())])))


@ALL
@given(histories, people)
def test_undo_and_redo_with_nothing_to_do_change_nothing(before: list[Event], person: str) -> None:
    state = fold(numbered(before))
    if person not in state.undoable:
        assert content(fold(numbered([*before, by(person, Event.undo())]))) == content(state)
    if person not in state.redoable:
        assert content(fold(numbered([*before, by(person, Event.redo())]))) == content(state)


@ALL
@given(histories, people)
def test_nobody_undoes_what_others_did(before: list[Event], person: str) -> None:
    others = numbered([e for e in before if e.annotator != person])
    state = fold([*others, by(person, Event.undo())])
    assert content(state) == content(fold(others))
    assert person not in state.undoable


@ALL
@given(histories)
def test_one_at_a_time_is_all_at_once(events: list[Event]) -> None:
    folder = EventFold()
    for i, event in enumerate(numbered(events)):
        folder.extend([event])
        assert folder.state() == fold(numbered(events)[: i + 1])


@ALL
@given(histories)
def test_every_label_has_a_standing_class_and_a_code(events: list[Event]) -> None:
    state = fold(numbered(events))
    assert set(state.labels) == set(state.votes)
    for item, code in state.codes.items():
        assert state.classes[code] == state.labels[item]
    assert not (state.skipped | state.unsure) & set(state.votes)
    assert set(state.training) == set(state.labels) - state.evaluation - state.undecided
    assert state.undecided <= set(state.conflicts)
    assert sum(state.counts.values()) == state.n_labelled


@settings(max_examples=60)
@given(histories, people, people, undoable, undoable)
def test_different_people_on_different_items_commute(
    before: list[Event], one: str, two: str, first: Event, second: Event
) -> None:
    about = ("label", "skip", "unsure", "flag", "note", "resolved")
    if one == two or first.kind not in about or second.kind not in about or first.item == second.item:
        return
    a = fold(numbered([*before, by(one, first), by(two, second)]))
    b = fold(numbered([*before, by(two, second), by(one, first)]))
    assert a.labels == b.labels and a.notes == b.notes and a.flagged == b.flagged
    assert (a.skipped, a.unsure, a.counts) == (b.skipped, b.unsure, b.counts)


def test_a_new_event_ends_redo() -> None:
    ann = [by("ann", e) for e in (Event.label("a", 0), Event.undo(), Event.label("b", 1), Event.redo())]
    state = fold(numbered(ann))
    assert state.labels == {1: "b"}
    assert "ann" not in state.redoable


def test_renaming_moves_labels_and_undoing_it_brings_them_back() -> None:
    steps = [
        by("ann", Event.label("a", 0)),
        by("ann", Event.class_renamed("a", "hound")),
        by("bob", Event.label("a", 1)),
    ]
    assert fold(numbered(steps)).labels == {0: "hound", 1: "hound"}
    assert fold(numbered([*steps, by("ann", Event.undo())])).labels == {0: "a", 1: "a"}


def test_merging_moves_labels_and_undoing_it_parts_them_again() -> None:
    steps = [
        by("ann", Event.label("a", 0)),
        by("ann", Event.label("b", 1)),
        by("ann", Event.class_merged("a", "b")),
    ]
    merged = fold(numbered(steps))
    assert merged.classes == ("b", "c") and merged.counts == {"b": 2, "c": 0}
    assert fold(numbered([*steps, by("ann", Event.undo())])).labels == {0: "a", 1: "b"}


def test_a_label_survives_the_undoing_of_its_class() -> None:
    steps = [by("ann", Event.class_added("new")), by("bob", Event.label("new", 3)), by("ann", Event.undo())]
    state = fold(numbered(steps))
    assert state.labels == {3: "new"} and "new" in state.classes


def test_the_majority_counts_a_tie_is_not_learnt_from_and_who_decides_has_the_last_word() -> None:
    steps = [by("ann", Event.label("a", 0)), by("bob", Event.label("b", 0))]
    tie = fold(numbered(steps))
    assert tie.conflicts == (0,) and tie.undecided == {0} and tie.training == {}
    majority = fold(numbered([*steps, by("eve", Event.label("a", 0)), by("bob", Event.label("c", 0))]))
    assert majority.labels[0] == "a" and majority.conflicts == (0,) and not majority.undecided
    assert majority.training == {0: 0}
    decided = [*steps, by("eve", Event.resolved(0, "a"))]
    late = fold(numbered([*decided, by("bob", Event.label("c", 0))]))
    assert late.labels[0] == "a" and late.conflicts == () and late.training == {0: 0}
    # a label given in review decides, and the latest decision counts
    again = fold(numbered([*decided, by("bob", Event.relabelled([0, 1], "c", "review", final=True))]))
    assert again.labels == {0: "c", 1: "c"} and not again.undecided
    # classes merged into one end the tie, and undoing the merge brings it back
    merged = [*steps, by("ann", Event.class_merged("b", "a"))]
    assert fold(numbered(merged)).training == {0: 0}
    assert fold(numbered([*merged, by("ann", Event.undo())])).undecided == {0}


def test_a_class_nobody_needs_goes_and_is_back_with_its_first_label() -> None:
    steps = [
        by("ann", Event.label("b", 0)),
        by("ann", Event.label("c", 0)),
        by("ann", Event.class_removed("b")),
    ]
    assert fold(numbered(steps)).classes == ("a", "c") and fold(numbered(steps)).codes == {0: 1}
    assert fold(numbered([*steps, by("ann", Event.undo())])).classes == ("a", "b", "c")
    # the undone label that names it brings it back
    back = fold(numbered([*steps[:1], by("bob", Event.class_removed("b")), by("ann", Event.undo())]))
    assert back.classes == ("a", "c")
    again = fold(
        numbered(
            [
                *steps[:1],
                by("bob", Event.class_removed("b")),
                by("ann", Event.undo()),
                by("ann", Event.redo()),
            ]
        )
    )
    assert again.classes == ("a", "b", "c") and again.labels == {0: "b"}
    anew = fold(numbered([*steps, by("bob", Event.class_added("b", "new b"))]))
    assert anew.classes == ("a", "new b", "c")


def test_classes_are_described_and_ordered_without_new_codes() -> None:
    steps = [
        by("ann", Event.class_described("b", guidance="with a tail", colour="#aa0000")),
        by("bob", Event.class_described("b", guidance="with two tails")),
        by("bob", Event.classes_ordered(["c", "b"])),
    ]
    state = fold(numbered(steps))
    assert state.class_about == {"b": {"guidance": "with two tails", "colour": "#aa0000"}}
    assert state.classes == ("a", "b", "c") and state.shown_classes == ("c", "b", "a")
    before = fold(numbered([*steps, by("bob", Event.undo()), by("bob", Event.undo())]))
    assert before.class_about["b"]["guidance"] == "with a tail" and before.shown_classes == before.classes


def test_items_of_ones_own_choosing_are_wanted_until_somebody_answers_them() -> None:
    steps = [by("ann", Event.wanted([3, 1, 2], "search")), by("bob", Event.label("a", 1))]
    assert fold(numbered(steps)).wanted == {"ann": (3, 2)}
    assert fold(numbered([*steps, by("ann", Event.undo())])).wanted == {}


def test_a_second_look_keeps_what_was_said_first() -> None:
    steps = [
        by("ann", Event.label("a", 0)),
        by("ann", Event.label("b", 1)),
        by("ann", Event.wanted([0, 1, 4], "second pass", second=True)),
    ]
    assert fold(numbered(steps)).second == {"ann": (0, 1)}
    looked = [*steps, by("ann", Event.label("c", 0, role="second")), by("ann", Event.skip(1, role="second"))]
    state = fold(numbered(looked))
    assert state.second == {} and state.labels == {0: "c", 1: "b"}
    assert (state.standing[0].first, state.standing[1].first) == ("a", "")
    assert fold(numbered([*looked, by("ann", Event.undo())])).second == {"ann": (1,)}


def test_what_is_cleared_may_be_asked_again() -> None:
    steps = [by("ann", Event.label("a", 0)), by("bob", Event.label("b", 0)), by("ann", Event.skip(1))]
    state = fold(numbered([*steps, by("ann", Event.cleared([0, 1]))]))
    assert not state.answered and not state.labels and not state.undecided
    assert fold(numbered([*steps, by("ann", Event.cleared([0, 1])), by("ann", Event.undo())])).undecided == {
        0
    }


def test_unsure_takes_back_ones_own_label_only() -> None:
    steps = [by("ann", Event.label("a", 0)), by("bob", Event.unsure(0))]
    assert fold(numbered(steps)).labels == {0: "a"}
    assert fold(numbered([*steps, by("ann", Event.unsure(0))])).unsure == {0}


def test_an_answered_question_stays_answered_after_undo() -> None:
    asked = by("ann", Event.asked([{"id": "q", "item": 2, "role": "policy"}], 99.0))
    answer = by("ann", Event.label("a", 2, ask="q"))
    state = fold(numbered([asked, answer, by("ann", Event.undo())]))
    assert state.asks["q"].answered
    assert state.reopened == {"ann": (2,)}
    assert fold(numbered([asked, answer])).reopened == {}


def test_a_question_that_is_looked_at_stands_before_what_else_waits() -> None:
    both, last = (
        [{"id": id_, "item": item, "role": "policy"} for id_, item in (("q", 2), ("r", 3)) if id_ in ids]
        for ids in ("qr", "r")
    )
    asked = by("ann", Event.asked(both, 99.0))

    def waiting(*since: Event) -> tuple[str, ...]:
        return fold(numbered([asked, *(by("ann", event) for event in since)])).waiting["ann"]

    assert waiting() == waiting(Event.asked(last, 99.0)) == ("q", "r")
    assert waiting(Event.asked(last, 99.0, first=True)) == ("r", "q")
    assert waiting(Event.released(["r"]), Event.asked(last, 99.0)) == ("r", "q")


def test_a_question_that_was_handed_on_waits_for_one_person() -> None:
    asked = Event.asked([{"id": "q", "item": 2, "role": "policy"}], 99.0)
    other = Event.asked([{"id": "r", "item": 3, "role": "policy"}], 99.0)
    state = fold(numbered([by("ann", asked), by("ann", other), by("bob", asked)]))
    assert state.waiting == {"ann": ("r",), "bob": ("q",)}
    again = fold(numbered([by("ann", asked), by("ann", other), by("ann", asked)]))
    assert again.waiting == {"ann": ("q", "r")}


def test_evaluation_items_are_never_training_items() -> None:
    asked = by("ann", Event.asked([{"id": "q", "item": 2, "role": "evaluation"}], 99.0))
    state = fold(numbered([asked, by("ann", Event.label("a", 2)), by("ann", Event.label("b", 3))]))
    assert state.evaluation == {2} and set(state.training) == {3}


def test_confirmed_items_are_learnt_from_and_go_with_one_undo() -> None:
    asked = by("ann", Event.asked([{"id": f"q{i}", "item": i, "role": "grid"} for i in range(3)], 99.0))
    confirmed = by("ann", Event.confirmed([0, 1], "a", rejected=[2], asks=["q0", "q1", "q2"]))
    state = fold(numbered([asked, confirmed]))
    assert state.labels == {0: "a", 1: "a"} and set(state.training) == {0, 1}
    assert {v.role for v in state.standing.values()} == {"confirmed"}
    assert all(a.answered for a in state.asks.values()) and state.waiting == {"ann": ()}
    assert fold(numbered([asked, confirmed, by("ann", Event.undo())])).labels == {}


def test_skipped_items_come_back_when_asked_for() -> None:
    steps = [by("ann", Event.skip(1)), by("ann", Event.unsure(2)), by("ann", Event.requeued([1, 2, 3]))]
    state = fold(numbered(steps))
    assert not state.skipped and not state.unsure and state.requeued == {1, 2} and not state.answered
    assert fold(numbered([*steps, by("bob", Event.label("a", 1))])).requeued == {2}
    again = fold(numbered([*steps, by("ann", Event.unsure(1))]))
    assert again.requeued == {2} and again.unsure == {1}
    assert fold(numbered([*steps, by("ann", Event.undo())])).skipped == {1}


def test_operations_and_what_was_given_back_are_known() -> None:
    asked = by("ann", Event.asked([{"id": "q", "item": 2, "role": "policy"}], 99.0))
    state = fold(
        numbered([asked, by("ann", Event.released(["q"])), by("ann", Event.label("a", 2, operation="o1"))])
    )
    assert state.asks["q"].released and state.waiting["ann"] == ()
    assert state.operations == {"o1": state.last_event}


def test_questions_drawn_and_not_given_back_are_counted() -> None:
    def drawn(name: str, role: str, **more: Any) -> dict[str, Any]:
        return {"id": name, "item": 2, "role": role, **more}

    asked = by("ann", Event.asked([drawn("q", "policy"), drawn("r", "uniform"), drawn("s", "map")], 99.0))
    more = [by("ann", Event.asked([drawn("t", "evaluation", counted=False)], 99.0))]
    assert (fold(numbered([asked, *more])).places, fold(numbered([asked, *more])).most_places) == (2, 2)
    again = by("bob", Event.asked([drawn("q", "policy")], 99.0))  # handed on, and not drawn anew
    back = fold(numbered([asked, again, by("bob", Event.released(["q"]))]))
    assert (back.places, back.most_places, back.asks["q"].expires) == (1, 2, 0.0)
    assert fold(numbered([])).most_places == 0


def test_what_is_chosen_for_a_project_is_its_last_word() -> None:
    source = {"source": "names", "on": True}
    chosen = [
        Event.model_changed("large-margin", {}, "margin"),
        Event.question_changed("Which?"),
        Event.names_hidden(True),
        Event.guesses_changed([source]),
        Event.question_changed("Which one?"),
    ]
    assert fold(numbered([by("ann", event) for event in chosen])).model == {
        "classifier": "large-margin",
        "options": {},
        "policy": "margin",
        "question": "Which one?",
        "names_hidden": True,
        "guesses": [source],
    }


def test_who_decides_keeps_what_they_said_by_themselves() -> None:
    alone = [by("ann", Event.label("a", 1)), by("bob", Event.label("b", 1))]
    assert not fold(numbered(alone)).standing[1].final and fold(numbered(alone)).conflicts
    for decided in (Event.relabelled([1], "b", "review", True), Event.resolved(1, "b")):
        vote = fold(numbered([*alone, by("ann", decided)])).votes[1]["ann"]
        assert (vote.final, vote.key, vote.by_themselves) == (True, "b", "a")
    fresh = fold(numbered([*alone, by("eve", Event.resolved(1, "b"))])).votes[1]["eve"]
    assert fresh.by_themselves == ""
    changed = fold(numbered([*alone, by("ann", Event.label("b", 1))])).votes[1]["ann"]
    assert (changed.final, changed.own, changed.first) == (False, "", "")


def test_one_undo_takes_back_a_whole_import() -> None:
    steps = [by("ann", Event.imported([(0, "a"), (1, "b")], "f.csv"))]
    assert len(fold(numbered(steps)).labels) == 2
    assert fold(numbered([*steps, by("ann", Event.undo())])).labels == {}


def test_classes_that_an_import_brings_come_in_its_order_and_go_with_it() -> None:
    steps = [by("ann", Event.imported([(0, "z"), (1, "d")], "f.csv"))]
    assert fold(numbered(steps)).classes == (*KEYS, "z", "d")
    another = [*steps, by("bob", Event.class_added("q")), by("bob", Event.undo())]
    assert fold(numbered(another)).classes == (*KEYS, "z", "d")
    assert fold(numbered([*steps, by("ann", Event.undo())])).classes == KEYS


def test_a_check_keeps_who_answered_what() -> None:
    steps = [
        by("ann", Event.label("a", 0, role="check", check=4)),
        by("bob", Event.unsure(0, role="check", check=4)),
    ]
    said = fold(numbered(steps)).checks[0]
    assert {who: (check.started, check.key) for who, check in said.items()} == {
        "ann": (4, "a"),
        "bob": (4, ""),
    }


@pytest.mark.parametrize(
    "later",
    [
        [Event.label("b", 0, role="check", check=4)],
        [Event.undo(), Event.label("a", 0, role="check", check=4)],
        [Event.undo(), Event.redo()],
    ],
    ids=["corrected", "taken back and said again", "put back"],
)
def test_an_answer_to_a_check_keeps_its_place_whatever_its_person_says_later(later: list[Event]) -> None:
    check = Event.label("a", 0, role="check", check=4)
    steps = [by("ann", check), by("bob", check), *(by("ann", event) for event in later)]
    said = fold(numbered(steps)).checks[0]
    assert sorted(said, key=lambda who: said[who].first) == ["ann", "bob"]
    again = [*steps, by("bob", replace(check, payload={**check.payload, "check": 9}))]
    assert fold(numbered(again)).checks[0]["bob"].first == len(START) + len(again)


def test_a_remark_costs_nothing_that_grows_with_those_before() -> None:
    """Their maps are layered as those of labels are: none is made anew for one more entry."""
    pieces = EventFold(numbered([by("ann", Event.flag(list(range(FEW + 1)), True))]))
    pieces.state()
    pieces.extend(numbered([by("ann", Event.flag(FEW + 1, True))])[-1:])
    assert isinstance(pieces.state().flagged, LayeredMapping)


def test_what_is_wanted_is_looked_through_again_only_where_it_may_have_changed() -> None:
    pieces = EventFold(numbered([by("ann", Event.wanted([0, 1, 2], "found"))]))
    before = pieces.state().wanted
    pieces.extend([by("ann", Event.label("a", 5))])
    assert pieces.state().wanted is before
    pieces.extend([by("ann", Event.label("a", 1))])
    assert pieces.state().wanted == {"ann": (0, 2)}
    pieces.extend([by("ann", Event.undo()), by("ann", Event.undo()), by("ann", Event.undo())])
    assert pieces.state().wanted == {}


def test_a_flag_is_taken_off_and_an_example_is_one_of_one_class_at_most() -> None:
    marked = [Event.flag([1, 2], True, "blurred"), Event.flag(1, False), Event.example_picked(2, "a", True)]
    found = fold(numbered([by("ann", event) for event in marked]))
    assert found.flagged == {2: "blurred"} and dict(found.examples) == {"a": (2,)}
    moved = [*marked, Event.example_picked(2, "b", True), Event.example_picked(3, "b", True)]
    assert dict(fold(numbered([by("ann", event) for event in moved])).examples)["b"] == (2, 3)
    gone = [*moved, Event.example_picked(2, "b", False)]
    assert dict(fold(numbered([by("ann", event) for event in gone])).examples)["b"] == (3,)


def test_instructions_are_numbered_from_one_and_known_to_who_wrote_them() -> None:
    steps = [by("ann", Event.instructions_written("look twice")), by("bob", Event.instructions_written(""))]
    state = fold(
        numbered([*steps, by("eve", Event.instructions_read(1)), by("eve", Event.instructions_read(9))])
    )
    assert [one.version for one in state.instructions] == [1, 2]
    read = {who: [version for _, version in given] for who, given in state.read.items()}
    assert read == {"ann": [1], "bob": [2], "eve": [1, 2]}


def test_a_class_keeps_its_name_while_somebody_elses_label_stands_though_its_addition_is_undone() -> None:
    steps = [
        by("ann", Event.class_added("a#2", "again")),
        by("bob", Event.label("a#2", 3)),
        by("ann", Event.undo()),
    ]
    assert fold(numbered(steps)).labels == {3: "again"}
    later = [*steps, by("bob", Event.undo()), by("eve", Event.label("a#2", 4))]
    assert fold(numbered(later)).labels == {4: "again"}
    assert fold(numbered([*later, by("bob", Event.redo())])).labels == {3: "again", 4: "again"}
