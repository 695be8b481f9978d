"""Pages driven without a browser: what they show in each state, and what they import."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.app.pages import PAGES, ROOT, open_page, texts
from tests.sessions.fakes import FAKE
from workbench.app.access import current
from workbench.app.label import oracle
from workbench.app.serving import explanations
from workbench.app.serving.jobs import Job
from workbench.app.shell import labelling_speed
from workbench.app.words.text import percent
from workbench.sessions import Session
from workbench.sessions.drawing import ArrayOracle
from workbench.sessions.measure import TOLD

TITLES = {name: name.title() for name in ("data", "compare", "adversarial", "lessons", "help")}
"""Of the pages that need no project; the others say that there is none."""


@pytest.fixture(scope="module")
def labelled(home: Path) -> Session:
    """A wine project with a model."""
    session = Session.create("wine", name="Cellar *one*", annotator="ann")
    oracle = ArrayOracle(session.pool)
    for _ in range(12):
        ask = session.ask()[0]
        session.tell(ask.id, oracle(ask.item))
    session.refit()
    current.keep(session)
    return session


def test_the_title_of_the_tab_stays_while_a_page_runs_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, titles = st.set_page_config, []

    def noted(**given: Any) -> None:
        titles.append(given.get("page_title"))
        real(**given)

    monkeypatch.setattr(st, "set_page_config", noted)
    test = open_page("help")
    titles.clear()
    test.run()
    assert titles and set(titles) == {"Help · Workbench"}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_without_a_project(home: Path, name: str) -> None:
    test = open_page(name)
    if name in TITLES:
        assert test.title[0].value == TITLES[name]
    # in the page itself: the sidebar says so on every page
    said = [str(p.value) for p in (*test.main.info, *test.main.markdown, *test.main.subheader)]
    assert any("No project is open" in s for s in said) == (name not in TITLES)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_with_a_project_and_its_sidebar(labelled: Session, name: str) -> None:
    test = open_page(name, labelled.id)
    assert test.title[0].value.lower() == name
    side = "\n".join(str(m.value) for m in test.sidebar.markdown)
    assert r"Cellar \*one\*" in side
    measured = labelled.predictions.evaluation
    assert measured.enough and measured.n < TOLD
    assert test.sidebar.metric[0].label == f"Error on {measured.n} measured items"
    assert test.sidebar.metric[0].value == f"{percent(measured.low, 0)} to {percent(measured.high, 0)}"


def test_data_begins_with_the_open_project_what_it_means_and_the_way_on(labelled: Session) -> None:
    test = open_page("data", labelled.id)
    said = [str(one.value) for one in test.main.markdown]
    # after the page's own sentence
    at = next(place for place, words in enumerate(said) if words.startswith("Choose what to label.")) + 1
    first = said[at : at + 2]
    measured = labelled.predictions.evaluation
    ends = f"the model is right on {percent(1 - measured.high)} to {percent(1 - measured.low)} of"
    assert first[0].startswith(r"**Cellar \*one\***: 12 of") and ends in first[0]
    assert first[1], "what that means"
    [way] = [one for one in test.button if one.key == "go-on-open"]
    assert way.proto.type == "primary"
    assert "go-on-open" not in [one.key for one in open_page("data").button]


@pytest.mark.parametrize("name", ["label", "uncertainty", "calibration", "history", "finish"])
def test_an_empty_page_shows_what_it_will_look_like(home: Path, name: str) -> None:
    test = open_page(name)
    assert "What you will see" in texts(test) and len(test.get("plotly_chart")) == 1


def test_a_page_that_ends_early_still_has_its_sidebar(home: Path) -> None:
    test = open_page("label")
    assert any("No project is open" in str(c.value) for c in test.sidebar.caption)
    assert any("Engine" in str(c.value) for c in test.sidebar.caption)


def test_while_a_project_is_opened_its_page_says_what_it_waits_for(
    labelled: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, shown, words = current.session, [], []

    class Spinner:
        def __init__(self, text: str) -> None:
            self.text = text

        def __enter__(self) -> None:
            shown.append(self.text)

        def __exit__(self, *error: object) -> None:
            shown.clear()

    monkeypatch.setattr(st, "spinner", Spinner)
    monkeypatch.setattr(current, "session", lambda: (words.append(list(shown)), real())[1])
    open_page("label", labelled.id)
    assert "Opening the project, its pool and its model" in words[0][0] and not shown


def test_a_project_that_is_gone_says_so_and_leads_back(home: Path) -> None:
    test = open_page("label", "nowhere")
    assert test.title[0].value == "There is no such project"
    assert "nowhere" in test.error[0].value
    # neither where things are kept nor that it is safe
    assert "sqlite" not in texts(test) and "Nothing of the project is lost" not in texts(test)
    long = open_page("label", "y" * 2_000)
    assert len(long.error[0].value) < 200


def test_a_pool_that_was_changed_is_named_and_nothing_is_lost(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    rows = [f"{i}.5,{'x' if i % 2 else 'y'}\n" for i in range(40)]
    path.write_text("a,class\n" + "".join(rows))
    session = Session.create(str(path), target="class", annotator="ann")
    ask = session.ask()[0]
    session.tell(ask.id, "x")
    current.forget(session.id)
    path.write_text("a,class\n" + "".join(["99.5,x\n", *rows[1:]]))
    test = open_page("label", session.id)
    assert "cannot be opened" in test.title[0].value
    assert "own" in test.error[0].value
    path.write_text("a,class\n" + "".join(rows))
    test = open_page("label", session.id)
    assert test.title[0].value == "Label"
    assert current.opened(session.id).state.labels == {ask.item: "x"}


def test_the_first_page_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, json\n"
        "from streamlit.testing.v1 import AppTest\n"
        "test = AppTest.from_file('workbench/main.py', default_timeout=600).run()\n"
        "assert not test.exception, test.exception\n"
        "assert test.title[0].value == 'Data'\n"
        "heavy = {'tensorflow', 'gpflow', 'sklearn', 'dask', 'distributed', 'scipy', 'pyarrow'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))\n"
    )
    import os

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"WORKBENCH_HOME": str(tmp_path), "WORKBENCH_WARM": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def buttons(test: AppTest, start: str) -> list[Any]:
    return [b for b in test.button if str(b.key).startswith(start)]


def test_why_this_one_tells_rank_and_hides_the_guess_on_request(labelled: Session) -> None:
    from workbench.app.serving import explanations

    ask = next(a for a in labelled.ask(4) if a.role == "policy")
    reason = explanations.why(labelled, ask)
    assert 1 <= reason.rank <= reason.n_open
    assert np.isfinite(reason.utility)
    near = explanations.nearest_labelled(labelled, ask.item, 3)
    assert len(near) == 3 and [d for *_, d in near] == sorted(d for *_, d in near)
    assert all(labelled.state.codes[item] == code for item, code, _ in near)
    # an item that is labelled itself is not among its own neighbours
    own = near[0][0]
    again = explanations.nearest_labelled(labelled, own, 3)
    points, known = np.asarray(labelled.model.scaled), sorted(labelled.state.codes)
    apart = {item: float(np.linalg.norm(points[item] - points[own])) for item in known if item != own}
    assert own not in {item for item, *_ in again}
    assert [d for *_, d in again] == pytest.approx(sorted(apart.values())[:3])


def test_an_evaluation_item_never_shows_the_guess(labelled: Session) -> None:
    from dataclasses import replace

    from workbench.app.serving import explanations

    ask = replace(labelled.ask()[0], role="evaluation")
    assert "never learns" in explanations.why(labelled, ask).words


def test_the_map_of_a_wide_pool_is_called_a_projection(labelled: Session) -> None:
    from workbench.app.uncertainty import mapping

    where = mapping.layout(labelled.pool)
    assert not where.own and "projection" in where.note.lower()
    assert where.points.shape == (178, 2)
    assert labelled.model is not None
    view, _ = mapping.at_round(labelled, labelled.model.number)
    assert view is not None and not where.own
    test = open_page("uncertainty", labelled.id)
    made, job, _ = mapping.neighbours(labelled)
    if job is not None:
        # the components stand in until the neighbour map is there
        assert job.wait(600) and job.status == "done", job.error
        assert "projection" in texts(test).lower()
        made, job, _ = mapping.neighbours(labelled)
    assert made is not None or job is None
    if made is not None:
        assert "Neighbours stay neighbours" in texts(test.run())
        assert made.trust > made.trust_of_components
        flat = mapping.with_trust(where, made).note
        assert "of the variance" in flat and f"{made.trust_of_components:.3f}" in flat


def test_the_map_joins_neighbours_when_asked(labelled: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.app.uncertainty import mapping

    graph = labelled.fits.making.neighbourhood
    pairs = mapping.neighbour_lines(labelled, [], 0)
    assert pairs is not None and len(pairs) > len(graph) and np.isin(pairs, graph.rows).all()
    one = int(graph.rows[7])
    of_one = mapping.neighbour_lines(labelled, [one], 0)
    assert of_one is not None and (of_one == one).any(axis=1).all()
    with monkeypatch.context() as patch:  # where all lines would hide the items: of the one that is shown
        patch.setattr(mapping, "MOST_LINES", 50)
        assert np.array_equal(mapping.neighbour_lines(labelled, [], one), of_one)
    assert set(of_one.ravel().tolist()) - {one} == set(graph.around(one, 10).tolist())
    test = open_page("uncertainty", labelled.id)

    def drawn() -> int:
        return max(len(json.loads(one.proto.spec)["data"]) for one in test.get("plotly_chart"))

    before = drawn()
    test.toggle(key="neighbour-lines").set_value(True).run()
    assert not test.exception and drawn() == before + 1
    test.toggle(key="neighbour-lines").set_value(False).run()
    assert drawn() == before


def test_a_pool_of_two_features_keeps_its_own_plane_and_has_regions(home: Path) -> None:
    from workbench.app.uncertainty import mapping

    session = Session.create("three-gaussians", pool_options={"n_items": 300}, annotator="ann")
    oracle = ArrayOracle(session.pool)
    for _ in range(10):
        ask = session.ask()[0]
        session.tell(ask.id, oracle(ask.item))
    session.refit()
    where = mapping.layout(session.pool)
    assert where.own and np.array_equal(where.points, session.pool.features)
    assert session.model is not None
    view, _ = mapping.at_round(session, session.model.number)
    assert view is not None
    over = mapping.over_plane(view.model)
    assert over is not None
    regions, p = over
    assert regions.codes.shape == p.shape[:2]
    at = np.array([[regions.x[3], regions.y[5]]])
    assert regions.codes[5, 3] == session.model.estimator.predict_proba(at).argmax()


def test_class_functions_say_that_they_go_without_neighbours(labelled: Session) -> None:
    test = open_page("uncertainty", labelled.id)
    test.session_state["map-view"] = "Class functions"
    test.run()
    assert not test.exception and labelled.model is not None
    leans = labelled.model.smoothing.strength != "none"
    assert ("The lines go without that" in texts(test)) == leans


def test_random_questions_say_what_they_wait_for(labelled: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(labelled.id, "rival", "Random questions")
    monkeypatch.setattr(oracle, "baseline", lambda *_: ([], job))
    assert "they wait for: those of another project" in texts(open_page("label", labelled.id))
    job.started, job.waits_for = 1.0, "Comparison"
    assert "they wait for: Comparison" in texts(open_page("label", labelled.id))
    job.waits_for, job.fraction = "", 0.25
    assert "Random questions from the same start: 25" in texts(open_page("label", labelled.id))


def test_the_budget_begins_above_what_is_labelled_and_no_engine_is_promised(home: Path) -> None:
    session = Session.create("digits", classifier=FAKE, annotator="ann", early_share=0.0)
    truth = session.pool.truth
    assert truth is not None
    for code, name in enumerate(session.classes):
        session.items.label([i for i in session.pool.trainable.tolist() if truth[i] == code][:25], name)
    current.keep(session)
    job = current.keep_fitting(session)
    assert job is not None and job.wait(600)
    test = open_page("label", session.id)
    (budget,) = [n for n in test.number_input if n.label == "Budget, labels"]
    (run,) = [b for b in test.button if b.label == "Run to budget"]
    assert budget.value == 260 and not run.disabled
    budget.set_value(70).run()
    (run,) = [b for b in test.button if b.label == "Run to budget"]
    assert run.disabled and "250 labels are there already: the budget is spent." in texts(test)
    assert not any("loads with the next fit" in str(c.value) for c in test.sidebar.caption)


def test_the_oracle_answers_with_the_truth_and_says_so(home: Path) -> None:
    from workbench.app.label.oracle import answer_by_oracle

    session = Session.create("wine", annotator="ann")
    job = answer_by_oracle(session, 6)
    assert job.wait(600) and job.status == "done", job.error
    assert len(session.state.codes) == 6
    truth = {i: session.pool.classes[session.pool.truth[i]] for i in session.state.codes}
    assert dict(session.state.labels) == truth
    assert {e.payload.get("source") for e in session.log.events if e.kind == "label"} == {"oracle"}


def test_labels_are_fitted_in_the_background_and_only_once(home: Path) -> None:
    session = Session.create("iris", annotator="ann")
    oracle = ArrayOracle(session.pool)
    assert current.keep_fitting(session) is None, "no labels, no fit"
    for _ in range(6):
        ask = session.ask()[0]
        session.tell(ask.id, oracle(ask.item))
    job = current.keep_fitting(session)
    assert job is not None and job.wait(600) and job.status == "done", job
    assert session.model is not None and session.model.n_labelled == 6
    assert current.keep_fitting(session) is None


@pytest.mark.slow  # alone: a class that nobody has seen is looked for on the page, and found
def test_a_rare_class_of_a_table_of_ones_own_is_looked_for_and_found(home: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    common = np.concatenate([rng.normal(-2, 0.5, (120, 2)), rng.normal(2, 0.5, (120, 2))])
    rows = np.concatenate([common, rng.normal((5, -5), 0.2, (5, 2))])
    kinds = ["small"] * 120 + ["large"] * 120 + ["fraud"] * 5
    path = tmp_path / "cheques.csv"
    path.write_text("sum,hour\n" + "\n".join(f"{a:.4f},{b:.4f}" for a, b in rows), encoding="utf-8")
    session = Session.create(str(path), classes=("small", "large", "fraud"), annotator="ann")
    first = np.r_[0:4, 120:124]
    for item in first:
        session.items.label(int(item), kinds[item])
    session.refit()
    current.keep(session)
    said = texts(open_page("label", session.id))
    assert "25 % of the questions until 20 are answered, then 10 % of them" in said
    for _ in range(25):
        ask = session.ask()[0]
        if ask.role == "policy":
            words = explanations.why(session, ask).words
            assert words.startswith("Looking for fraud: none seen yet.")
        session.tell(ask.id, kinds[ask.item])
        if kinds[ask.item] == "fraud" and ask.role != "evaluation":
            break
        session.refit()
    else:
        pytest.fail("the rare class was not found in 25 questions")


@pytest.mark.slow  # alone: a set of pictures from the menu starts on shapes, its options on pixels
def test_a_known_set_of_images_starts_on_shapes_and_offers_pixels(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.app.serving.jobs import manager
    from workbench.store import Store

    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 256, (30, 16, 16)).astype(np.uint8)
    (tmp_path / "images").mkdir()
    np.savez(
        tmp_path / "images" / "mnist.npz",
        x_train=drawn[:20],
        y_train=np.arange(20) % 10,
        x_test=drawn[20:],
        y_test=np.arange(10),
    )
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    test = open_page("data")
    test.selectbox(key="known-set").set_value("images:mnist").run()
    test.button(key="start-known").click().run()
    made: list[Any] = []
    for _ in range(1000):  # the page looks again by itself
        made = [p for p in Store.open().projects() if p.pool["name"] == "images:mnist"]
        if made:
            break
        assert not test.exception and not test.main.error
        for job in manager().active("opening"):
            job.wait(600)
        test.run()
    assert [p.pool["options"] for p in made] == [{"features": "shapes"}]
    again = open_page("data")
    again.selectbox(key="known-set").set_value("images:mnist").run()
    again.button(key="options-known").click().run()
    assert again.selectbox(key="known-features").options[1].startswith("Pixels")


def test_the_open_project_leaves_room_for_a_curve_where_there_is_one(
    labelled: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_columns = []
    for rounds in ([], labelled.rounds[:1] * 2):
        monkeypatch.setattr(labelling_speed, "measured_rounds", lambda _, rounds=rounds: rounds)
        n_columns.append(len(open_page("data", labelled.id).get("column")))
    assert n_columns[1] == n_columns[0] + 2


def test_people_who_labelled_together_have_a_part_of_history(home: Path) -> None:
    session = Session.create("iris", name="Together", classifier=FAKE, policy="random", annotator="ann")
    items = session.pool.trainable[::20].tolist()
    for person in ("ann", "bob"):
        mine = Session.open(session.id, pool=session.pool, annotator=person)
        for item in items:
            mine.items.label(item, session.pool.classes[session.pool.truth[item]])
    assert "People" not in [tab.label for tab in open_page("history", None).tabs]
    test = open_page("history", session.id)
    assert "People" in [tab.label for tab in test.tabs]
    test.session_state["history-tabs"] = "People"
    test.run()
    assert "alpha may be anything from" in texts(test)
    (toggle,) = [one for one in test.toggle if one.label == "Hide names"]
    toggle.set_value(True).run()
    assert Session.open(session.id, pool=session.pool).state.model["names_hidden"] is True
    (table,) = [one.value for one in test.dataframe if "Agrees with the others" in one.value.columns]
    assert sorted(table["Person"]) == ["Person 1", "Person 2"]
    assert not [one for one in test.dataframe if "Last answer" in one.value.columns]  # it names people


def test_a_page_about_one_of_several_questions_names_it_where_the_side_bar_is_folded(home: Path) -> None:
    asks = [("kind", []), "<b>rare</b>"]
    several = Session.create("iris", classifier=FAKE, annotator="ann", questions=asks)
    asked = "Question: **kind**"
    assert asked in texts(open_page("history", several.id)) and asked not in texts(
        open_page("help", several.id)
    )
    label = open_page("label", several.id)
    assert [one.value for one in label.header] == ["How well it goes: kind"] and "**kind**: " in texts(label)
    alone = Session.create("iris", name="Alone", classifier=FAKE, annotator="ann")
    assert "Question: " not in texts(open_page("history", alone.id))
