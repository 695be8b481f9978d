"""Decisions looked at again: doubts, filters, actions, agreement; and the page that shows them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

from tests.app.pages import open_page, texts
from tests.sessions.fakes import FAKE
from workbench.app.access import current
from workbench.app.history import decisions, people, tables
from workbench.app.serving import evaluation
from workbench.app.serving.jobs import Job
from workbench.app.shell import palette
from workbench.exchange.rows import label_table
from workbench.sessions import Session
from workbench.store import Event


@pytest.fixture
def project(home: Path) -> Session:
    """Ann's labels of 30 items, one of them wrong; Bob's of four of these, one different; some set aside."""
    ann = Session.create("iris", classifier=FAKE, annotator="ann")
    truth = ann.pool.truth
    assert truth is not None
    by_class = [ann.pool.trainable[truth[ann.pool.trainable] == c][:10] for c in range(3)]
    for code, items in enumerate(by_class):
        ann.items.label([int(i) for i in items], ann.classes[code])
    ann.items.label(int(by_class[0][0]), ann.classes[2])
    bob = ann.as_annotator("bob")
    for item in by_class[1][:3]:
        bob.items.label(int(item), ann.classes[1])
    bob.items.label(int(by_class[1][3]), ann.classes[2])
    for kind in ("skip", "unsure"):
        ask = ann.ask()[0]
        assert ann.tell(ask.id, Event(kind))
    ann.items.flag(int(by_class[2][0]), reason="blurred")
    ann.items.note(int(by_class[2][1]), "odd petals")
    ann.refit()
    current.keep(ann)
    return ann


def wrong_one(session: Session) -> int:
    truth = session.pool.truth
    assert truth is not None
    return next(
        i
        for i, c in session.state.codes.items()
        if c != truth[i] and session.state.standing[i].annotator == "ann"
    )


def looked_at(session: Session) -> dict[int, decisions.Opinion]:
    model = session.model
    assert model is not None
    job = evaluation.cross_validation(session, model)
    assert job.wait(600) and job.status == "done", job.error
    return decisions.opinions(session.state, model, job.result)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, Any]]]:
    """The tiles of each gallery that a page draws."""
    shown: list[list[dict[str, Any]]] = []
    monkeypatch.setattr(
        "workbench.app.desk.mount_gallery", lambda who, tiles, stamp, **more: shown.append(tiles)
    )
    return shown


def test_the_wrong_label_is_the_likeliest_error(project: Session) -> None:
    rows, found = decisions.decisions(project), looked_at(project)
    assert len(rows) == 32 and set(found) == set(project.state.codes)
    first = decisions.in_doubt_first(rows, found)[0]
    said = found[first.item]
    assert first.item == wrong_one(project) and said.wrong and said.disagrees
    assert said.label == project.classes[0] and said.right < 0.5
    n = sum(one.wrong for one in found.values())
    apart = sum(one.disagrees for one in found.values())
    words = decisions.verdict(rows, found)
    assert re.match(
        r"About [01] to [123] of 30 labels are likely wrong\. A model that did not see them", words
    )
    assert f"expected another class for {apart}; {n} of them look" in words
    assert decisions.verdict(rows, {}) == "No label was compared with a model that did not see it."
    alike = [row for row in rows if row.item in found and not found[row.item].disagrees]
    assert decisions.verdict(alike, found).endswith("says the same of each.")


def test_rows_stand_by_the_chance_that_the_label_is_right(project: Session) -> None:
    rows, found = decisions.decisions(project), looked_at(project)
    ordered = decisions.in_doubt_first(rows, found)
    chances = [found[row.item].right for row in ordered if row.item in found]
    assert chances == sorted(chances) and len(chances) == 30
    assert not any(row.item in found for row in ordered[30:]), "those without an opinion stand last"
    shown = decisions.tiles(project.pool, ordered, found, "/p/{item}")
    assert [tile["chance"] for tile in shown[:30]] == [round(c, 3) for c in chances]
    assert shown[0]["item"] == wrong_one(project) and shown[0]["verdict"] == "wrong"
    assert {tile["kind"] for tile in shown} == {"label", "skip", "unsure"}
    assert {tile["who"] for tile in shown} == {"ann", "bob"}
    # who said what stands where people differ
    assert [tile["said"] for tile in shown if tile["said"]] == [["ann: versicolor", "bob: virginica"]]


def test_a_model_that_predicts_few_labels_accuses_none(project: Session) -> None:
    state, model = project.state, project.model
    assert model is not None
    codes = np.array([state.codes[int(item)] for item in model.items])
    # as after two labels of each of many classes: it says another class of most of them
    p = np.full((len(codes), 3), 0.1)
    p[np.arange(len(codes)), np.where(np.arange(len(codes)) % 3 == 0, codes, (codes + 1) % 3)] = 0.8
    found = decisions.opinions(state, model, (model.items, codes, p))
    assert not any(one.wrong for one in found.values())
    rows = [row for row in decisions.decisions(project) if row.item in found]
    n, alike = len(rows), sum(not one.disagrees for one in found.values())
    assert f"A model that did not see them predicts {alike:,} of them: it knows too" in decisions.verdict(
        rows, found
    )
    first = found[decisions.in_doubt_first(rows, found)[0].item]
    assert n == 30 and first.right == min(one.right for one in found.values())


def test_a_label_that_was_kept_in_review_is_in_doubt_no_more(project: Session) -> None:
    wrong = wrong_one(project)
    assert looked_at(project)[wrong].wrong
    project.items.relabel([wrong], project.state.labels[wrong])
    opinions = looked_at(project)
    assert opinions[wrong].disagrees and not opinions[wrong].wrong and opinions[wrong].right == 1.0
    labelled = [row for row in decisions.decisions(project) if row.item in opinions]
    assert decisions.in_doubt_first(labelled, opinions)[0].item != wrong


def test_items_the_model_never_learnt_from_are_judged_by_the_model_itself(project: Session) -> None:
    model = project.model
    assert model is not None
    fresh = next(int(i) for i in project.pool.trainable if int(i) not in project.state.answered)
    project.items.label(fresh, project.classes[0])
    found = decisions.opinions(project.state, model, None)
    # a tie is learnt from where what is known of the people decides it
    assert set(found) == {fresh, *project.state.undecided} - set(model.items.tolist())
    assert 0.0 <= found[fresh].right <= 1.0
    project.classes.rename(project.classes[0], "other")
    assert decisions.opinions(project.state, model, None) == {}, "its columns are of other classes"


def test_filters(project: Session) -> None:
    rows, found = decisions.decisions(project), looked_at(project)

    def items(*given: Any) -> list[int]:
        return [row.item for row in decisions.chosen(rows, found, *given)]

    state = project.state
    assert set(items("skipped")) == set(state.skipped) and len(state.skipped) == 1
    assert set(items("unsure")) == set(state.unsure) and len(state.unsure) == 1
    assert set(items("flagged")) == set(state.flagged) and len(state.flagged) == 1
    assert set(items("disputed")) == set(state.conflicts) and len(state.conflicts) == 1
    assert wrong_one(project) in items("disagrees") and wrong_one(project) in items("wrong")
    assert len(items("all", None, "bob")) == 4
    assert set(items("all", project.classes[0])) == {i for i, c in state.codes.items() if c == 0}
    assert items("skipped", None, "bob") == []


def test_agreement_of_two_people_leaves_out_what_decided(project: Session) -> None:
    shared = people.shared_labels(project.state)
    assert len(shared) == 4
    ((a, b, found),) = people.pairs(shared)
    assert {a, b} == {"ann", "bob"} and found.observed == 0.75 and found.n_items == 4
    assert people.group(shared, 3) is None
    words = people.in_words("ann and bob", found)
    assert words == "ann and bob labelled 4 items both, and agree in 3 of 4. Kappa is told from 10 items on."
    assert "kappa is 0.00" in people.in_words("ann and bob", found._replace(n_items=10))
    (disputed,) = project.state.conflicts
    # whoever decides, also one of the two: they differed, and agreement is about that
    project.as_annotator("bob").items.resolve(disputed, "versicolor")
    (row,) = [row for row in label_table(project) if row["item"] == disputed]
    assert (row["label"], row["source"], row["status"]) == ("versicolor", "resolved", "labelled")
    assert row["label_by_person"] == {"ann": "versicolor", "bob": "virginica"}
    assert not project.state.conflicts and people.shared_labels(project.state) == shared
    project.as_annotator("carol").items.resolve(disputed, "versicolor")
    assert people.shared_labels(project.state) == shared
    seen = next(i for i in project.state.codes if i not in shared)
    project.as_annotator("carol").items.relabel([seen], "virginica")
    assert seen in project.state.votes and people.shared_labels(project.state) == shared
    project.as_annotator("carol").items.label(next(i for i in shared if i != disputed), "versicolor")
    found_all = people.group(people.shared_labels(project.state), 3)
    assert found_all is not None and found_all.n_ratings == 9
    words = people.in_words("3 people", found_all._replace(n_items=10), together=True)
    assert words.replace("\u00a0", " ") == (
        "3 people, 9 labels of 10 items: two labels of one item agree in 78 %; chance alone gives 78 %, so "
        "Krippendorff's alpha is 0.00."
    )


def test_looking_twice_is_agreement_with_oneself(project: Session) -> None:
    assert people.second_looks(project.state, "ann") == (None, [])
    project.items.look_again(4)
    asks = [ask for ask in project.ask(8) if ask.role == "second"]
    for n, ask in enumerate(asks):
        names = project.classes
        first = project.state.codes[ask.item]
        assert project.tell(ask.id, names[(first + (n == 0)) % 3])
    found, differ = people.second_looks(project.state, "ann")
    assert found is not None and found.n_items == len(asks) == 4 and found.observed == 0.75
    assert differ == [asks[0].item]
    words = people.in_words("", found, oneself=True)
    assert words.startswith("Looked at twice, 4 items got the same label in 3 of 4")


def test_history_opens_on_what_looks_wrong(project: Session, drawn: list[list[dict[str, Any]]]) -> None:
    looked_at(project)
    test = open_page("history", project.id)
    said = texts(test)
    assert "of 30 labels are likely wrong" in said and "did not see them expected another class" in said
    assert [tab.label for tab in test.tabs] == ["Review", "Agreement", "People", "Labels", "Fits"]
    assert drawn[-1][0]["item"] == wrong_one(project) and drawn[-1][0]["verdict"] == "wrong"
    # nothing on the page but the gallery gives a label
    assert not [b for b in test.button if str(b.key).startswith(("review-", "label-", "model-", "resolve"))]
    kinds = next(p for p in test.button_group if p.key == "review-kind")
    kinds.set_value("skipped").run()
    assert not test.exception and [tile["kind"] for tile in drawn[-1]] == ["skip"]
    # what is decided in the gallery stays in it, with its undo, while one looks
    project.items._event("requeue", items=[drawn[-1][0]["item"]])
    test.run()
    assert [tile["kind"] for tile in drawn[-1]] == ["skip"]
    test.session_state["history-tabs"] = "Agreement"
    test.run()
    said = texts(test)
    assert (
        "ann and bob labelled 4 items both" in said.replace("\\", "") and "People differ on 1 item." in said
    )
    test.button(key="decide").click().run()
    assert not test.exception and [tile["item"] for tile in drawn[-1]] == list(project.state.conflicts)


def test_decisions_beyond_200_are_a_page_away_in_the_order_they_had(
    home: Path, drawn: list[list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current, "keep_fitting", lambda session: None)
    ann = Session.create("digits", classifier=FAKE, annotator="ann")
    ann.items.label([int(item) for item in ann.pool.trainable[:205]], ann.classes[0])
    current.keep(ann)
    test = open_page("history", ann.id)
    first = [tile["item"] for tile in drawn[-1]]
    assert len(first) == 200
    # what is dealt with on a page moves nothing from the next one onto it
    ann.items.clear(first[:50])
    test.session_state["review-page"] = 2
    test.run()
    second = [tile["item"] for tile in drawn[-1]]
    assert not test.exception and {*first, *second} == {int(item) for item in ann.pool.trainable[:205]}
    test.session_state["review-page"] = 1
    test.run()
    assert [tile["item"] for tile in drawn[-1]] == first[50:]


def test_a_tile_says_why_it_was_flagged_and_how_sure_the_model_is(
    project: Session, drawn: list[list[dict[str, Any]]]
) -> None:
    opinions = looked_at(project)
    open_page("history", project.id)
    tiles = {tile["item"]: tile for tile in drawn[-1]}
    flagged = next(iter(project.state.flagged))
    assert tiles[flagged]["flag"] and tiles[flagged]["reason"] == "blurred"
    assert {tiles[item]["sure"] for item in opinions} == {
        round(one.confidence, 3) for one in opinions.values()
    }


def test_the_gallery_is_drawn_anew_once_the_labels_are_compared(
    project: Session, drawn: list[list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current, "keep_fitting", lambda session: None)
    # a label that the model did not learn, as of items to measure on: it has an opinion before the others
    fresh = next(int(i) for i in project.pool.trainable if int(i) not in project.state.answered)
    project.items.label(fresh, project.classes[0])
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "cross_validation", lambda *inputs: Job(project.id, "Comparing", ""))
        test = open_page("history", project.id)
    assert next(tile["item"] for tile in drawn[-1] if tile["says"]) == fresh
    looked_at(project)
    test.run()
    assert not test.exception and drawn[-1][0]["item"] == wrong_one(project)
    assert all(tile["says"] for tile in drawn[-1] if tile["kind"] == "label")


class Ending(Job):
    """A job that ends after its status was read so many times, as one whose thread is quick."""

    def __init__(self, project: str, result: Any, reads: int) -> None:
        super().__init__(project, "Comparing", "")
        self.result, self.reads = result, reads

    def __getattribute__(self, name: str) -> Any:
        if name != "status" or "reads" not in self.__dict__:
            return super().__getattribute__(name)
        self.reads -= 1
        return "running" if self.reads >= 0 else "done"


@pytest.mark.parametrize("reads", range(8))
def test_a_comparison_that_ends_while_the_page_is_drawn_is_shown(
    project: Session, drawn: list[list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    monkeypatch.setattr(current, "keep_fitting", lambda session: None)
    looked_at(project)
    assert project.model is not None
    result = evaluation.cross_validation(project, project.model).result
    job = Ending(project.id, result, reads)
    monkeypatch.setattr(evaluation, "cross_validation", lambda *inputs: job)
    test = open_page("history", project.id)
    test.run()  # as the panel does by itself when the job has ended
    assert drawn[-1][0]["item"] == wrong_one(project)
    assert all(tile["says"] for tile in drawn[-1] if tile["kind"] == "label")


def test_a_class_that_was_gone_to_is_chosen_however_often_the_page_runs(
    project: Session, drawn: list[list[dict[str, Any]]]
) -> None:
    test = open_page("history", project.id)
    assert test.selectbox(key="review-class").value is None
    test.session_state[palette.CLASS] = ("setosa", 1, None)
    for _ in range(2):
        test.run()
        assert test.selectbox(key="review-class-1").value == "setosa"
        assert {tile["class"] for tile in drawn[-1]} == {"setosa"}
    # what somebody chooses after that stands, and another visit begins with every class
    test.selectbox(key="review-class-1").select_index(0).run()
    assert len({tile["class"] for tile in drawn[-1]}) > 1
    test.session_state["page-shown"] = "label"
    test.run()
    assert test.selectbox(key="review-class").value is None and not test.exception


def test_too_few_labels_to_compare_are_said_and_the_decisions_stand_below(
    home: Path, drawn: list[list[dict[str, Any]]]
) -> None:
    session = Session.create("iris", classifier=FAKE, annotator="ann")
    truth = session.pool.truth
    assert truth is not None
    for code in (0, 1):
        item = next(int(i) for i in session.pool.trainable if truth[i] == code)
        session.items.label(item, session.classes[code])
    current.keep(session)
    session.refit()
    model = session.model
    assert model is not None and evaluation.cross_validation(session, model).wait(600)
    test = open_page("history", session.id)
    assert "needs two labels of each of two classes" in texts(test)
    assert sorted(tile["class"] for tile in drawn[-1]) == ["setosa", "versicolor"]
    assert not any(tile["verdict"] for tile in drawn[-1]) and not test.error


def test_whole_numbers_with_gaps_stay_whole() -> None:
    rows = [{"had": 37, "utility": 0.5, "who": "ann"}, {"had": None, "utility": None, "who": "bob"}]
    table = tables.whole_numbers(rows)
    assert [str(value) for value in table["had"]] == ["37", "<NA>"]
    assert table["utility"].dtype.kind == "f" and list(table["who"]) == ["ann", "bob"]


def test_one_tab_of_history_is_drawn_the_one_that_is_open(
    project: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(project)
    drawn: list[str] = []
    real = st.dataframe
    monkeypatch.setattr("workbench.app.desk.mount_gallery", lambda *given, **more: drawn.append("gallery"))

    def watched(data: Any, **more: Any) -> Any:
        drawn.append(str(more.get("key")).rpartition("-")[0])
        return real(data, **more)

    monkeypatch.setattr(st, "dataframe", watched)
    test = open_page("history", project.id)
    tables = {"Review": {"gallery", "events"}, "Labels": {"labels"}, "Fits": set()}
    for title in ["Review", "Agreement", "People", "Labels", "Fits"]:
        drawn.clear()
        test.session_state["history-tabs"] = title
        test.run()
        assert not test.exception and [tab.label for tab in test.tabs if tab.children] == [title]
        assert set(drawn) >= tables.get(title, set())
        others = {key for one, keys in tables.items() if one != title for key in keys}
        assert not others & set(drawn)
