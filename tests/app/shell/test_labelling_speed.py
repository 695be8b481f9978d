"""Pace, time left and advice in one line."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.app.pages import open_page, texts
from workbench.app.access import current
from workbench.app.history import tables
from workbench.app.shell import labelling_speed
from workbench.classifiers import CLASSIFIERS
from workbench.figures.curves import learning_curve, summarise
from workbench.sessions import Event, Session
from workbench.sessions.measure import TOLD, Evaluation, ModelVerdict, class_recalls
from workbench.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(event: Event, seconds: float, person: str = "ann") -> Event:
    return replace(event, annotator=person, time=(START + timedelta(seconds=seconds)).isoformat())


def rounds(*changed: float) -> list[Any]:
    return [SimpleNamespace(n_labelled=i, signs={"changed": c}) for i, c in enumerate(changed)]


def table_with_copies(folder: Path, n_customers: int) -> tuple[Path, int]:
    """A table of texts, a third of whose rows stand there twice; and its number of labels."""
    names = [f"customer {first}{second}" for first in "abcdefghij" for second in "klmnop"][:n_customers]
    kinds = {"bill": "the bill of {} is too high", "parcel": "the parcel of {} did not come yet"}
    rows = [f"{text.format(name)},{kind}" for name in names for kind, text in kinds.items()]
    # a third stands there again, and of those copies only every fourth has its class
    copies = [
        row if place % 4 == 0 else row[: row.index(",") + 1]
        for place, row in enumerate(rows[: len(rows) // 3])
    ]
    path = folder / "copies.csv"
    path.write_text("text,kind\n" + "\n".join(rows + copies) + "\n")
    return path, len(rows) + len(copies) // 4


def test_labels_taken_over_are_those_of_the_table_and_copies_count_once(home: Path, tmp_path: Path) -> None:
    path, n_labels = table_with_copies(tmp_path, 60)
    session = Session.create(
        str(path),
        pool_options={"target": "kind", "columns": "auto"},
        annotator="ann",
        classifier="logistic-regression",
    )
    session.refit()
    current.keep(session)
    assert session.pool.truth is not None and session.pool.test is not None
    assert session.items.twins.n_groups and (session.pool.truth[session.pool.test.test] < 0).any()
    words = texts(open_page("label", session.id))
    assert f"· {n_labels} labels taken over: " in words
    assert "labels**; copies count once ·" in words


def test_one_measured_fit_of_a_half_known_pool_is_a_sentence_and_two_are_a_curve(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "half.csv"
    rows = [f"{i % 7}.5,{i % 3}," + (("yes", "no")[i % 7 > 3] if i < 160 else "") for i in range(200)]
    path.write_text("a,b,kind\n" + "\n".join(rows) + "\n")
    session = Session.create(
        str(path),
        pool_options={"target": "kind", "columns": "auto"},
        annotator="ann",
        classifier="logistic-regression",
    )
    session.refit()
    current.keep(session)
    test = open_page("label", session.id)
    assert "The curve begins with the second fit." in texts(test)
    sentence = f"**Error: {labelling_speed.error_so_far(session.predictions.evaluation)}.**"
    assert sentence.replace("\u00a0", " ") in texts(test)
    # and in the table of fits no figure is of fewer items than one needs
    few = [replace(session.rounds[0], n_test=13), session.rounds[0]]
    told = tables.fit_rows(SimpleNamespace(project=session.project, rounds=few))
    assert told[0]["Error"] == pytest.approx(100 * session.rounds[0].error)
    assert [told[1][name] for name in ("Items", "Error", "NLL", "Brier", "ECE")] == [13, *[None] * 4]
    session.tell(session.ask(1)[0].id, "yes")
    session.refit()
    test.run()
    assert not test.exception and "The curve begins with the second fit." not in texts(test)


def test_pauses_others_programs_and_the_oracle_do_not_count() -> None:
    events = [at(Event.label("a", i, operation=f"x{i}"), 6.0 * i) for i in range(10)]
    later = [at(Event.label("a", 20 + i, operation=f"y{i}"), 7200 + 6.0 * i) for i in range(10)]
    noise = [
        at(Event.label("a", 40, operation="z"), 3.0, "bob"),
        at(Event.label("a", 41, source="oracle"), 3.5),
    ]
    noise += [at(Event.label("a", 50 + i), 0.01 * i) for i in range(30)]
    assert labelling_speed.labels_an_hour([*events, *noise, *later], "ann") == pytest.approx(600)
    assert labelling_speed.labels_an_hour(events[:5], "ann") is None
    assert (
        labelling_speed.labels_an_hour(
            [*events, at(Event.confirmed([1] * 20, "a", operation="g"), 64.0)], "ann"
        )
        > 1500
    )


def test_one_round_stands_for_each_number_of_labels() -> None:
    made = rounds(0.5, 0.4)
    again = SimpleNamespace(n_labelled=0, signs={})
    assert labelling_speed.latest_at_each([*made, again]) == [again, made[1]]


def test_an_error_is_drawn_from_20_measured_items_on_with_its_interval() -> None:
    made = [
        SimpleNamespace(n_labelled=n, n_test=n_test, error=error, signs={})
        for n, n_test, error in ((5, 2, 0.0), (9, 19, 0.1), (12, 20, 0.2), (12, 21, 0.25), (30, 40, 0.05))
    ]
    kept = labelling_speed.measured_rounds(made)
    assert [(one.n_labelled, one.n_test) for one in kept] == [(12, 21), (30, 40)]
    curve = labelling_speed.error_curve("error", kept)
    for one, low, high in zip(kept, curve.low, curve.high, strict=True):
        found = Evaluation.of(one.n_test, round(one.error * one.n_test), "evaluation set")
        assert low == pytest.approx(found.low) and high == pytest.approx(found.high)
        assert low < one.error < high
    figure = learning_curve([curve])
    assert figure.layout.xaxis.title.text == "Labels (band: 95 % interval of the error)"
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == ["error"], "not n = 6"
    runs = summarise("random", [([5, 9], [0.4, error]) for error in (0.1, 0.2, 0.3)])
    title = learning_curve([curve, runs]).layout.xaxis.title.text
    # 68 letters are cut on a phone
    assert title == "Labels<br>(band: 95 % interval of the error, or of the mean over runs)"
    line = next(trace for trace in figure.data if trace.name == "error" and trace.customdata is not None)
    assert "items: " in line.hovertemplate and list(line.customdata) == [21, 40]


@pytest.mark.parametrize(("n", "is_told"), [(TOLD - 1, False), (TOLD, True)])
def test_the_error_of_every_class_alike_needs_as_many_measured_items_as_a_verdict(
    n: int, is_told: bool
) -> None:
    pairs = [("stays", "stays")] * (n - 1) + [("churn", "stays")]
    recalls = class_recalls(["stays", "churn"], ["stays"] * 60 + ["churn"], pairs)
    verdict = ModelVerdict(Evaluation.of(n, 1, "evaluation set"), 0.02, recalls)
    words = labelling_speed.of_rare_classes(verdict)
    assert "churn" in words and ("counted alike" in words) == is_told


def test_what_is_known_of_the_error_is_said_in_one_way() -> None:
    def words(n: int, wrong: int) -> str:
        so_far = labelling_speed.error_so_far(Evaluation.of(n, wrong, "evaluation set"))
        return so_far.replace("\u00a0", " ")

    assert words(0, 0) == "not known yet (none of the 20 measured items that a figure needs)"
    assert words(9, 0) == "not known yet (9 of the 20 measured items that a figure needs)"
    assert words(12, 1).startswith("likely between 1 % and 35 % so far (12 of the 20")
    assert words(20, 1).startswith("5 % of 20 items of the evaluation set, and on all others likely")


def test_advice_follows_what_fits_still_change() -> None:
    many = ModelVerdict(Evaluation.of(150, 3, "evaluation set"))

    def advice(*changed: float, verdict: ModelVerdict = many) -> str:
        return labelling_speed.advice(rounds(*changed), verdict)

    assert advice() == "" and labelling_speed.line([], "ann", [], 7, many) == ""
    assert "labels still help" in advice(0.0, 0.0, 0.0, 0.0, 0.021)
    assert "2.1" in advice(0.021)
    still = (0.2, 0.0, 0.004, 0.0, 0.0, 0.001)
    assert advice(*still) == (
        "the last 5 fits changed at most 4 of 1,000 predictions, and at most 5.8 % wrong, as 150 measured "
        "items tell: this may be enough"
    )
    few = ModelVerdict(Evaluation.of(30, 3, "evaluation set"))
    assert advice(*still, verdict=few) == (
        "the last 5 fits changed at most 4 of 1,000 predictions; of 30 measured, between 3 and 26 % are "
        "wrong: too few to tell"
    )
    quiet = advice(0.021, 0.02, 0.0)
    assert "0\u00a0%" in quiet and "labels still help" not in quiet, "no label helps that changes nothing"
    assert "4 more fits like it" in quiet


def test_a_change_of_model_is_marked_where_it_first_was_fitted() -> None:
    events = [
        Event.round({"number": 0, "n_labelled": 8}),
        Event.model_changed("large-margin", {}, "random"),
        Event.label("a", 1),
        Event.round({"number": 1, "n_labelled": 9}),
        Event.round({"number": 2, "n_labelled": 10}),
        Event.model_changed("large-margin", {}, "margin"),
    ]
    (mark,) = labelling_speed.changes(events)
    assert mark == (f"{CLASSIFIERS['large-margin'].title}, Random", 9), "the names of the menus"
    events += [
        Event.round({"number": 3, "n_labelled": 20}),
        Event.model_changed("large-margin", {}, "random"),
        Event.round({"number": 4, "n_labelled": 30}),
    ]
    assert [at for _, at in labelling_speed.changes(events)] == [9, 20, 30], "one that comes back is a change"


def test_what_labels_are_for_and_what_is_left_count_each_item_once(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "t.txt"
    path.write_text("".join(f"text {i} of some\n" for i in range(12)), encoding="utf-8")
    ann = Session.create(str(path), classes=["a", "b"], annotator="ann", store=store, evaluation_share=0.5)
    assert labelling_speed.shares(ann.state) == "" and labelling_speed.left(ann) == 12
    asks = ann.ask(8)
    to_measure = [ask.item for ask in asks if ask.role == "evaluation"]
    to_learn = [ask.item for ask in asks if ask.role != "evaluation"]
    assert len(to_measure) > 1 and len(to_learn) > 1
    for item in (to_measure[0], *to_learn[:2]):
        ann.items.label(item, "a")
    bob = Session.open(ann.id, annotator="bob", store=store)
    bob.items.label(to_learn[0], "b")
    assert bob.state.undecided == {to_learn[0]}
    assert labelling_speed.shares(bob.state) == "1 to learn from, 1 to measure on, 1 to decide"
    assert labelling_speed.measured(bob.state) == 1
    assert labelling_speed.left(bob) == 9, "what waits to be measured on is left too"


@pytest.mark.parametrize(
    ("roles", "said"),
    [(["policy", "policy", "imported"], "hard"), (["imported", "policy"], "better or worse")],
)
def test_labels_that_came_with_a_table_are_not_called_hard(roles: list[str], said: str) -> None:
    state: Any = SimpleNamespace(standing={n: SimpleNamespace(role=role) for n, role in enumerate(roles)})
    assert said in labelling_speed.not_drawn(state)


def test_the_error_curve_counts_the_measured_items_that_have_a_class(home: Path, tmp_path: Path) -> None:
    path, _ = table_with_copies(tmp_path, 46)
    session = Session.create(
        str(path),
        pool_options={"target": "kind", "columns": "auto"},
        annotator="ann",
        classifier="logistic-regression",
    )
    session.refit()
    current.keep(session)
    split = session.pool.test
    assert split is not None and session.pool.truth is not None
    n = int((session.pool.truth[split.test] >= 0).sum())
    assert n < 20 <= len(split.test)
    words = texts(open_page("label", session.id))
    assert "starts with the first fit" not in words
    assert f"the pool keeps {n} items to measure on, and a figure needs 20" in words
