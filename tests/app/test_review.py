"""Decisions looked at again: doubts, filters, actions, agreement; and the page that shows them."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import streamlit as st

from tests.app.test_pages import open_page, texts
from tests.sessions.fakes import FAKE
from workbench.app.access import current
from workbench.app.history import agreement, corrections, decision_tables, decisions, history
from workbench.app.serving import evaluation
from workbench.app.shell import palette
from workbench.errors import InputError
from workbench.exchange import label_table
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
        ann.label_items([int(i) for i in items], ann.classes[code])
    ann.label_item(int(by_class[0][0]), ann.classes[2])
    bob = ann.as_annotator("bob")
    for item in by_class[1][:3]:
        bob.label_item(int(item), ann.classes[1])
    bob.label_item(int(by_class[1][3]), ann.classes[2])
    for kind in ("skip", "unsure"):
        ask = ann.ask()[0]
        assert ann.tell(ask.id, Event(kind))
    ann.flag(int(by_class[2][0]), reason="blurred")
    ann.note(int(by_class[2][1]), "odd petals")
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
    shown = decision_tables.table(project.pool, ordered, found)
    assert [row["Chance it is right"] for row in shown[:30]] == [round(c, 2) for c in chances]


def test_a_model_that_foretells_few_labels_accuses_none(project: Session) -> None:
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


def test_items_the_model_never_learnt_from_are_judged_by_the_model_itself(project: Session) -> None:
    model = project.model
    assert model is not None
    fresh = next(int(i) for i in project.pool.trainable if int(i) not in project.state.answered)
    project.label_item(fresh, project.classes[0])
    found = decisions.opinions(project.state, model, None)
    # a tie is learnt from where what is known of the people decides it
    assert set(found) == {fresh, *project.state.undecided} - set(model.items.tolist())
    assert 0.0 <= found[fresh].right <= 1.0
    project.rename_class(project.classes[0], "other")
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


def test_actions_say_what_they_did_and_change_only_what_differs(project: Session) -> None:
    item = wrong_one(project)
    others = [i for i, c in project.state.codes.items() if c == 0][:2]
    assert corrections.relabel(project, [item, *others], project.classes[0]) == "1 item labelled setosa."
    assert project.state.labels[item] == "setosa"
    assert project.state.standing[item].role == "review"
    assert project.state.conflicts and item not in project.state.conflicts
    before = project.state.n_events
    assert "Nothing to change" in corrections.relabel(project, [item], "setosa")
    assert project.state.n_events == before
    n, said = len(project.events), {item: "virginica", others[0]: "setosa"}
    assert corrections.relabel_each(project, said) == "1 item labelled virginica."
    assert "Nothing to change" in corrections.relabel_each(project, said), "a key that was pressed twice"
    assert len(project.events) == n + 1
    # a class that two people gave and neither decided is nobody's yet
    project.undo()
    project.clear([item])
    for person, name in (("ann", "setosa"), ("bob", "virginica")):
        project.as_annotator(person).label_item(item, name)
    assert item in project.state.undecided
    assert corrections.relabel(project, [item], "virginica") == "1 item labelled virginica."
    assert project.state.decided[item] == "virginica"
    assert corrections.set_flag(project, [item, *project.state.flagged], True) == "1 item flagged."
    assert corrections.set_flag(project, list(project.state.flagged), False) == "2 flags cleared."
    assert not project.state.flagged
    corrections.add_note(project, [item], " again ")
    assert [n.text for n in project.state.notes[item]] == ["again"]
    with pytest.raises(InputError, match="some words"):
        corrections.add_note(project, [item], "  ")
    aside = [*project.state.skipped, *project.state.unsure]
    assert corrections.ask_again(project, [item, *aside]) == "2 items will be asked about again on Label."
    assert project.state.requeued == set(aside)
    assert "skipped or unsure" in corrections.ask_again(project, [item])
    disputed = list(project.state.conflicts)
    assert corrections.resolve(project, disputed, "versicolor") == "1 disagreement decided: versicolor."
    assert not project.state.conflicts and project.state.labels[disputed[0]] == "versicolor"
    assert project.pool.test is not None
    with pytest.raises(InputError, match="test split"):
        corrections.relabel(project, [int(project.pool.test.test[0])], "setosa")


def test_agreement_of_two_people_leaves_out_what_decided(project: Session) -> None:
    shared = agreement.shared_labels(project.state)
    assert len(shared) == 4
    ((a, b, found),) = agreement.pairs(shared)
    assert {a, b} == {"ann", "bob"} and found.observed == 0.75 and found.n_items == 4
    assert agreement.group(shared, 3) is None
    words = agreement.in_words("ann and bob", found)
    assert words == "ann and bob labelled 4 items both, and agree in 75 %. Kappa is told from 10 items on."
    assert "kappa is 0.00" in agreement.in_words("ann and bob", found._replace(n_items=10))
    (disputed,) = project.state.conflicts
    row = decision_tables.disputes(project.pool, project.state, [disputed], {})[0]
    assert (row["ann"], row["bob"]) == ("versicolor", "virginica")
    # whoever decides, also one of the two: they differed, and agreement is about that
    project.as_annotator("bob").resolve(disputed, "versicolor")
    (row,) = [row for row in label_table(project) if row["item"] == disputed]
    assert (row["label"], row["source"], row["status"]) == ("versicolor", "resolved", "labelled")
    assert row["label_by_person"] == {"ann": "versicolor", "bob": "virginica"}
    assert not project.state.conflicts and agreement.shared_labels(project.state) == shared
    project.as_annotator("carol").resolve(disputed, "versicolor")
    assert agreement.shared_labels(project.state) == shared
    seen = next(i for i in project.state.codes if i not in shared)
    corrections.relabel(project.as_annotator("carol"), [seen], "virginica")
    assert seen in project.state.votes and agreement.shared_labels(project.state) == shared
    project.as_annotator("carol").label_item(next(i for i in shared if i != disputed), "versicolor")
    found_all = agreement.group(agreement.shared_labels(project.state), 3)
    assert found_all is not None and (found_all.n_ratings, found_all.n_left_out) == (9, 0)
    words = agreement.in_words("3 people", found_all._replace(n_items=10), together=True)
    assert words == (
        "3 people, 9 labels of 10 items: two labels of one item agree in 78 %; chance alone gives 78 %, so "
        "Krippendorff's alpha is 0.00."
    )


def test_looking_twice_is_agreement_with_oneself(project: Session) -> None:
    assert agreement.second_looks(project.state, "ann") == (None, [])
    assert corrections.look_again(project, 4).startswith("4 labels of yours")
    asks = [ask for ask in project.ask(8) if ask.role == "second"]
    for n, ask in enumerate(asks):
        names = project.classes
        first = project.state.codes[ask.item]
        assert project.tell(ask.id, names[(first + (n == 0)) % 3])
    found, differ = agreement.second_looks(project.state, "ann")
    assert found is not None and found.n_items == len(asks) == 4 and found.observed == 0.75
    assert differ == [asks[0].item]
    words = agreement.in_words("", found, oneself=True)
    assert words.startswith("Looked at twice, 4 items got the same label in 75 %")


def test_the_gallery_has_what_the_table_has_and_labels_can_be_cleared(project: Session) -> None:
    rows, found = decisions.decisions(project), looked_at(project)
    cards = decision_tables.gallery(project.pool, decisions.in_doubt_first(rows, found), found, "/p/{item}")
    assert len(cards) == 32 and cards[0]["item"] == wrong_one(project) and cards[0]["verdict"] == "wrong"
    assert {card["kind"] for card in cards} == {"label", "skip", "unsure"}
    assert {card["who"] for card in cards} == {"ann", "bob"}
    assert corrections.clear(project, [cards[0]["item"]]).startswith("The labels of 1 item removed")
    assert cards[0]["item"] not in project.state.labels
    project.undo()
    assert cards[0]["item"] in project.state.labels


def test_rows_show_what_there_is_and_no_empty_columns(project: Session) -> None:
    rows = [row for row in decisions.decisions(project) if row.status == "labelled"][:3]
    shown = decision_tables.table(project.pool, rows, {})
    assert shown[0]["Label"] in project.classes and "Picture" not in shown[0] and "Model says" not in shown[0]
    assert len(set(map(tuple, shown))) == 1
    digits = SimpleNamespace(
        fingerprint="x", items=SimpleNamespace(show=lambda i: SimpleNamespace(image=IMAGE))
    )
    assert decision_tables.picture(digits, 0).startswith("data:image/png;base64,")  # type: ignore[arg-type]


IMAGE = np.zeros((900, 600, 3), dtype=np.uint8)


def test_history_opens_on_what_looks_wrong(project: Session) -> None:
    looked_at(project)
    test = open_page("history", project.id)
    said = texts(test)
    assert "of 30 labels are likely wrong" in said and "did not see them expected another class" in said
    assert [tab.label for tab in test.tabs] == ["Review", "Agreement", "People", "Labels", "Fits"]
    table = test.dataframe[0].value
    assert table.iloc[0]["Item"] == str(project.pool.items.ids[wrong_one(project)])
    assert table.iloc[0]["Verdict"] == "looks wrong"
    labels = {b.key: b.disabled for b in test.button if str(b.key).startswith("review-")}
    assert all(labels.values()) and {"review-relabel", "review-again"} <= set(labels)
    kinds = next(p for p in test.button_group if p.key == "review-kind")
    kinds.set_value("skipped").run()
    assert not test.exception
    assert len(test.dataframe[0].value) == 1
    assert test.dataframe[0].value.iloc[0]["Label"] == "(skipped)"
    test.session_state["history-tabs"] = "Agreement"
    test.run()
    said = texts(test)
    assert "ann and bob labelled 4 items both" in said.replace("\\", "")
    assert "People differ on 1 item." in said and test.button(key="resolve-button").disabled


def test_a_selected_row_is_relabelled_in_the_name_of_whoever_sits_there(
    project: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(project)
    item, real = wrong_one(project), st.dataframe

    def first_row_selected(*given: Any, **more: Any) -> Any:
        made = real(*given, **more)
        first = str(more["key"]).startswith("review-table")
        return SimpleNamespace(selection=SimpleNamespace(rows=[0])) if first else made

    monkeypatch.setattr(st, "dataframe", first_row_selected)
    monkeypatch.setattr(current, "person", lambda fallback: "carol")
    test = open_page("history", project.id)
    button = test.button(key="review-relabel")
    assert button.label == "Relabel 1 item" and button.disabled
    test.selectbox(key="review-new").set_value("setosa").run()
    test.button(key="review-relabel").click().run()
    assert not test.exception
    assert any("1 item labelled setosa" in line.value for line in test.markdown)
    assert project.state.labels[item] == "setosa"
    standing = project.state.standing[item]
    assert (standing.annotator, standing.role) == ("carol", "review")
    test.button(key="review-undo").click().run()
    assert any("Taken back" in line.value and "setosa" in line.value for line in test.markdown)
    assert project.state.labels[item] != "setosa"

    # what takes labels away says whose, and gives them back
    remove = test.button(key="review-clear")
    assert remove.label == ":red[Remove the labels of 1 item]"
    assert any("given by ann" in line.value for line in test.caption)
    remove.click().run()
    cleared = next(line for line in project.events[::-1] if line.kind == "cleared")
    assert not test.exception and set(cleared.payload["items"]) - set(project.state.labels)
    # somebody's later act is not taken back by the button of an earlier one
    project.as_annotator("carol").flag(0)
    test.button(key="review-undo").click().run()
    assert any("something else since" in line.value for line in test.markdown)
    assert 0 in project.state.flagged


def test_rows_stand_still_while_some_are_selected(project: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at(project)
    drawn: list[tuple[str, list[str]]] = []
    real = st.dataframe

    def watched(data: Any, **more: Any) -> Any:
        key = str(more["key"])
        if not key.startswith("review-table"):
            return real(data, **more)
        drawn.append((key, list(data["Item"])))
        return SimpleNamespace(selection=SimpleNamespace(rows=[]))

    monkeypatch.setattr(st, "dataframe", watched)
    test = open_page("history", project.id)
    (key, rows), places = drawn[-1], list(test.session_state["review-table-order"])
    # as if the doubts had come in another order before, and a row had been selected then
    other = places[::-1]
    before = f"review-table-{crc32(repr(other).encode()):x}"
    test.session_state["review-table-order"] = other
    test.session_state[before] = SimpleNamespace(selection=SimpleNamespace(rows=[0]))
    test.run()
    assert drawn[-1] == (before, rows[::-1])
    # without a selection what is in doubt comes first again
    test.session_state[before] = SimpleNamespace(selection=SimpleNamespace(rows=[]))
    test.run()
    assert drawn[-1] == (key, rows) and not test.exception


def test_a_class_that_was_gone_to_is_chosen_however_often_the_page_runs(project: Session) -> None:
    test = open_page("history", project.id)
    assert test.selectbox(key="review-class").value is None
    test.session_state[palette.CLASS] = ("setosa", 1, None)
    for _ in range(2):
        test.run()
        assert test.selectbox(key="review-class-1").value == "setosa"
        assert set(test.dataframe[0].value["Label"]) == {"setosa"}
    # what somebody chooses after that stands, and another visit begins with every class
    test.selectbox(key="review-class-1").select_index(0).run()
    assert len(set(test.dataframe[0].value["Label"])) > 1
    test.session_state["page-shown"] = "label"
    test.run()
    assert test.selectbox(key="review-class").value is None and not test.exception


def test_too_few_labels_to_compare_are_said_and_the_decisions_stand_below(home: Path) -> None:
    session = Session.create("iris", classifier=FAKE, annotator="ann")
    truth = session.pool.truth
    assert truth is not None
    for code in (0, 1):
        item = next(int(i) for i in session.pool.trainable if truth[i] == code)
        session.label_item(item, session.classes[code])
    current.keep(session)
    session.refit()
    model = session.model
    assert model is not None and evaluation.cross_validation(session, model).wait(600)
    test = open_page("history", session.id)
    assert "needs two labels of each of two classes" in texts(test)
    assert sorted(test.dataframe[0].value["Label"]) == ["setosa", "versicolor"]
    assert "Verdict" not in test.dataframe[0].value and not test.error


def test_whole_numbers_with_gaps_stay_whole() -> None:
    rows = [{"had": 37, "utility": 0.5, "who": "ann"}, {"had": None, "utility": None, "who": "bob"}]
    table = history.whole_numbers(rows)
    assert [str(value) for value in table["had"]] == ["37", "<NA>"]
    assert table["utility"].dtype.kind == "f" and list(table["who"]) == ["ann", "bob"]


def test_the_keys_of_review_name_the_item_on_screen_and_are_drawn_with_it_alone(flowers):
    flowers.label_items([int(i) for i in flowers.pool.trainable[:3]], "setosa")
    test = open_page("history", flowers.id)
    shown = [b.key for b in test.button if b.key and b.key.startswith("label-is-right-")]
    assert len(shown) == 1
    # most labels are right: that is the first button, and the blue one
    both = [b for b in test.button if b.key and "-is-right-" in b.key]
    assert [(b.key or "")[:5] for b in both] == ["label", "model"]
    assert [b.proto.type for b in both] == ["primary", "secondary"]
    test.button(key=shown[0]).click().run()
    after = [b.key for b in test.button if b.key and b.key.startswith("label-is-right-")]
    # a second press of the first button is of no button that is there
    assert len(after) == 1 and after != shown
    test.session_state["history-tabs"] = "Labels"
    test.run()
    assert not [b for b in test.button if b.key and b.key.startswith(("label-is-right-", "model-is-right-"))]


def test_one_tab_of_history_is_drawn_the_one_that_is_open(
    project: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(project)
    drawn: list[str] = []
    real = st.dataframe

    def watched(data: Any, **more: Any) -> Any:
        drawn.append(str(more.get("key")).rpartition("-")[0])
        return real(data, **more)

    monkeypatch.setattr(st, "dataframe", watched)
    test = open_page("history", project.id)
    tables = {"Review": {"review-table", "events"}, "Agreement": {"disputes"}, "Labels": {"labels"}}
    for title in ["Review", "Agreement", "People", "Labels", "Fits"]:
        drawn.clear()
        test.session_state["history-tabs"] = title
        test.run()
        assert not test.exception and [tab.label for tab in test.tabs if tab.children] == [title]
        assert set(drawn) >= tables.get(title, set()) and drawn
        others = {key for one, keys in tables.items() if one != title for key in keys}
        assert not others & set(drawn)
