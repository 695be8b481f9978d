"""Uncertainty and Calibration without a browser: what they show, and what they say when they cannot."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.app.pages import open_page, texts
from workbench.app.access import current
from workbench.app.lessons import lessons
from workbench.app.serving import evaluation
from workbench.app.shell import labelling_speed
from workbench.app.uncertainty import mapping
from workbench.errors import InputError
from workbench.metrics import expected_calibration_error, negative_log_likelihood, reliability_table
from workbench.policies import POLICIES, variation_ratio
from workbench.sessions import Session, insight
from workbench.sessions.insight import DOUBT


def said(test: Any) -> str:
    """Text of the page, without the marks that keep Markdown away."""
    return texts(test).replace("\\", "")


def started(pool: Any, labels: int = 15, **options: Any) -> Session:
    """A project with a round after two thirds of the labels and one after all."""
    session = Session.create(pool, annotator="ann", **options)
    truth = session.pool.truth
    assert truth is not None
    items = np.random.default_rng(1).permutation(session.pool.trainable)[:labels]
    for count, item in enumerate(items, start=1):
        session.items.label([int(item)], session.pool.classes[int(truth[item])])
        if count in (2 * labels // 3, labels):
            session.refit()
    current.keep(session)
    return session


@pytest.fixture(scope="module")
def wine(home: Path) -> Session:
    return started("wine", options={"neighbours": "none"})  # inducing points lie on the plane


@pytest.fixture(scope="module")
def flat(home: Path) -> Session:
    """A model without latent functions."""
    return started("wine", classifier="logistic-regression", policy="margin")


def unfolded_calibration(project: str) -> Any:
    """The Calibration page with all that it has folded away."""
    test = open_page("calibration", project)
    assert not test.table, "what is folded away is not drawn"
    for key in ("cal-confidence", "cal-in-numbers", "cal-readings"):
        test.session_state[key] = True
    test.run()
    assert not test.exception
    return test


def view_of(session: Session) -> mapping.View:
    assert session.model is not None
    view, _ = mapping.at_round(session, session.model.number)
    assert view is not None
    return view


def test_the_measures_on_the_map_are_what_they_are_called(wine: Session) -> None:
    view = view_of(wine)
    latent, p = view.model.latent, np.asarray(view.model.probabilities)
    assert latent is not None and set(mapping.measures_for(view.model)) == {
        *(e.name for e in POLICIES.values() if e.measure and e.kind == "policy"),
        mapping.CLASS_VARIANCE,
        DOUBT,
    }
    exact = variation_ratio(latent.mean, latent.variance)
    assert mapping.values_of(view.model, "variation-ratio") == pytest.approx(exact, abs=1e-6)
    drawn = mapping.values_of(view.model, "variation-ratio-mc")
    assert np.abs(drawn - exact).mean() < 0.05 and (drawn != exact).any()
    entropy = -(p * np.log(np.clip(p, 1e-300, None))).sum(axis=1)
    assert mapping.values_of(view.model, "entropy") == pytest.approx(entropy, abs=1e-6)
    means = np.sort(np.asarray(latent.mean), axis=1)
    assert mapping.values_of(view.model, "margin") == pytest.approx(means[:, -2] - means[:, -1], abs=1e-5)
    of_class = mapping.values_of(view.model, f"variance:{view.model.classes[2]}")
    assert of_class == pytest.approx(np.asarray(latent.variance)[:, 2])
    assert (mapping.values_of(view.model, "bald") >= -1e-9).all()


def test_a_line_through_an_item_meets_its_own_latents(wine: Session) -> None:
    view, item = view_of(wine), int(wine.pool.trainable[3])
    line = mapping.line_through(view.model, item, 0, 4001)
    at = int(np.abs(line.grid - line.at).argmin())
    assert view.model.latent is not None
    assert line.mean[at] == pytest.approx(np.asarray(view.model.latent.mean)[item], abs=0.02)
    assert line.probabilities.sum(axis=1) == pytest.approx(1)


def test_two_features_are_a_plane_that_says_what_it_hides(wine: Session) -> None:
    where = mapping.layout(wine.pool, (0, 6))
    assert not where.own and "Two of 13 features" in where.note
    assert np.array_equal(where.points, np.asarray(wine.pool.features)[:, [0, 6]])
    centres = mapping.inducing_points(view_of(wine), where)
    assert centres is not None
    low, high = where.points.min(axis=0), where.points.max(axis=0)
    # the model clips far values, so the centres lie within the pool
    assert ((centres >= low - 1e-6) & (centres <= high + 1e-6)).mean() > 0.9


def test_an_earlier_round_and_another_model_are_fitted_on_the_same_labels(wine: Session) -> None:
    first = wine.rounds[0]
    _, job = mapping.at_round(wine, first.number)
    assert job is not None and job.wait(600) and job.status == "done", job.error
    view, job = mapping.at_round(wine, first.number)
    assert view is not None and job is None and view.model.n_labelled == 10
    assert set(view.model.items) < set(view_of(wine).model.items)
    _, job = mapping.other_kind(wine, view, "logistic-regression")
    assert job is not None and job.wait(600) and job.status == "done", job.error
    other, _ = mapping.other_kind(wine, view, "logistic-regression")
    assert other is not None and np.array_equal(other.model.items, view.model.items)


def test_a_model_without_latents_says_what_it_lacks(flat: Session) -> None:
    view = view_of(flat)
    assert set(mapping.measures_for(view.model)) == {DOUBT, "entropy", "margin", "least-confident"}
    with pytest.raises(InputError):
        mapping.values_of(view.model, "variance")
    test = open_page("uncertainty", flat.id)
    assert mapping.LATENT_ONLY in said(test)
    assert "The model is unsure of" in said(test) or "The model is sure of" in said(test)
    group = next((b for b in test.button if b.key == "group-0"), None)
    if group is not None:
        group.click().run()
        assert not test.exception and " selected" in said(test)
        asked = test.button(key="ask-selected")
        assert asked.label.startswith("Ask me about these") and not asked.disabled
    test.session_state["map-view"] = "Class functions"
    test.run()
    assert not test.exception and "no latent functions to draw" in said(test)
    test = unfolded_calibration(flat.id)
    assert len(test.table) == 1, "one reading of the probabilities: nothing to compare"


@pytest.mark.slow  # alone: a map of twelve classes, and why it has no colours
def test_more_classes_than_colours_say_why_there_is_no_colour_map(home: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["x,y,kind"]
    for code in range(12):
        centre = 4 * np.array([np.cos(code), np.sin(code)])
        rows += [f"{x:.4f},{y:.4f},k{code}" for x, y in centre + rng.standard_normal((8, 2)) / 3]
    path = home / "twelve.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    session = started(str(path), labels=30, target="kind")
    test = open_page("uncertainty", session.id)
    assert "No colour map" not in said(test)
    test.session_state["behind"] = "blend"
    test.run()
    assert not test.exception and "No colour map: 12 classes" in said(test)


def test_calibration_shows_the_numbers_of_the_test_split(wine: Session) -> None:
    view = view_of(wine)
    items, codes = wine.fits.held_out()
    p = np.asarray(view.model.probabilities)[items]
    test = unfolded_calibration(wine.id)
    rows = {row["Measure"]: row["Value"] for _, row in test.table[0].value.iterrows()}
    ece = expected_calibration_error(codes, p, 15)
    assert rows["Negative log-likelihood"] == f"{negative_log_likelihood(codes, p):.3f}"
    assert float(rows["Expected calibration error"].split()[0]) == pytest.approx(ece, abs=0.0006)
    assert f"(n = {len(items)})" in said(test)
    readings = test.table[1].value
    assert list(readings["Reading"]) == ["As the model predicts", "Argmax frequency", "Softmax of the means"]
    plain = insight.probabilities_as(view.model, "plain", items)
    is_surer = plain.max(axis=1).mean() > p.max(axis=1).mean()
    assert readings["What it is"].iloc[2].endswith(": surer." if is_surer else ": less sure.")
    test.selectbox(key="cal-class").select(2).run()
    assert not test.exception
    of_class = {row["Measure"]: row["Value"] for _, row in test.table[0].value.iterrows()}
    expected = reliability_table(codes, p, 15, class_code=1).error
    assert float(of_class["Expected calibration error"].split()[0]) == pytest.approx(expected, abs=0.0006)
    assert of_class["Negative log-likelihood"] == rows["Negative log-likelihood"]


def test_what_is_measured_is_kept(wine: Session) -> None:
    model = view_of(wine).model
    items, codes = wine.fits.held_out()
    once = evaluation.calibration(model, items, codes, "own", 7, None, None)
    assert evaluation.calibration(model, items, codes, "own", 7, None, None) is once
    assert evaluation.calibration(model, items, codes, "own", 8, None, None) is not once


def test_items_of_one_class_and_no_items_at_all(wine: Session) -> None:
    from workbench.figures.reliability import confidence_histogram, reliability_diagram

    model = view_of(wine).model
    items, codes = wine.fits.held_out()
    one = evaluation.calibration(model, items[codes == 1], codes[codes == 1], "own", 10, None, None)
    assert one.n == (codes == 1).sum() and np.isfinite([one.ece.value, one.nll, one.brier, one.maximum]).all()
    assert one.table.count.sum() == one.n
    drawn = reliability_diagram(one.table)
    assert sum(len(trace.x) for trace in drawn.data[1:]) == (one.table.count > 0).sum()
    assert confidence_histogram(one.table).data
    with pytest.raises(InputError, match="nothing to measure"):
        evaluation.calibration(model, items[:0], codes[:0], "own", 10, None, None)


@pytest.mark.slow  # alone: calibration by cross-validation, from too few labels to a figure
def test_without_test_labels_calibration_cross_validates_and_says_so(home: Path) -> None:
    rng = np.random.default_rng(0)
    path = home / "unlabelled.csv"
    path.write_text("x,y\n" + "\n".join(f"{a:.4f},{b:.4f}" for a, b in rng.standard_normal((80, 2))), "utf-8")
    session = Session.create(str(path), classes=("left", "right"), annotator="ann")
    current.keep(session)
    side = np.asarray(session.pool.features)[:, 0] > 0
    for item in range(2):
        session.items.label([item], ("left", "right")[item])
    session.refit()
    words = said(open_page("calibration", session.id))
    assert "0 of the 20 items are labelled" in words and "predicted by a model that did not see it" in words
    model = session.model
    assert model is not None
    job = evaluation.cross_validation(session, model)
    assert job.wait(600) and job.status == "failed" and "two labels of each" in job.error
    assert "two labels of each" in said(open_page("calibration", session.id))
    for item in range(2, 24):
        session.items.label([item], ("left", "right")[int(side[item])])
    session.refit()
    assert session.model is not None
    open_page("calibration", session.id)
    job = evaluation.cross_validation(session, session.model)
    assert job.wait(600) and job.status == "done", job.error
    words = said(open_page("calibration", session.id))
    assert (
        "Measured on 24 labels, each predicted by a model that did not see it" in words
        and "not drawn at random" in words
    )


@dataclass
class Fits:
    """Fits of the trade-off that wait after the first until told to go on."""

    done: int = 0
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, pool: str, points: int, shared: bool, rows: int, seed: int) -> dict[str, float]:
        if self.done:
            assert self.go.wait(600)
        self.done += 1
        return {"error": 0.1, "nll": 0.2, "ece": 0.05, "seconds": float(points), "n": 36}


def test_an_experiment_starts_with_a_button_streams_and_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = Fits()
    monkeypatch.setattr("workbench.studies.lessons.trade_fit", fits)
    values = {"pool": "wine", "seed": 2}
    address = {"experiment": "trade-offs", "pool": "wine", "seed": "2"}
    test = open_page("calibration", **address)
    assert not fits.done and lessons.present(lessons.EXPERIMENTS["trade-offs"], values) == (None, None)
    test.button(key="start-experiment").click().run()
    _, job = lessons.present(lessons.EXPERIMENTS["trade-offs"], values)
    assert job is not None and job.active
    try:
        while not job.partial:
            assert not job.wait(0.02), job.error
        test.run()
        assert not test.exception and "shared kernel, 5 points: error 10 %" in said(test)
        assert fits.done == 1, "shown before the second is fitted"
    finally:
        fits.go.set()
    assert job.wait(600) and job.status == "done", job.error
    test = open_page("calibration", **address)
    assert "From 5 to 80 inducing points: shared kernel, error from 10 % to 10 %" in said(test)
    numbers = test.table[0].value
    assert list(numbers.index) == ["shared kernel"] * 5 + ["a kernel for each class"] * 5
    assert list(numbers["Points"])[:5] == ["5", "10", "20", "40", "80"]
    assert not [b for b in test.button if b.key == "start-experiment"] and fits.done == 10


def test_an_experiment_that_fails_says_why_and_an_unknown_one_is_the_project(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> dict[str, float]:
        raise InputError("no such luck")

    monkeypatch.setattr("workbench.studies.lessons.trade_fit", broken)
    job = lessons.start(lessons.EXPERIMENTS["trade-offs"], {"pool": "wine", "seed": 1})
    assert job.wait(600)
    test = open_page("calibration", experiment="trade-offs", pool="wine", seed="1")
    assert "no such luck" in said(test) and not test.button(key="start-experiment").disabled
    assert "No project is open" in said(open_page("calibration", experiment="nonsense"))


@pytest.mark.parametrize("lesson", lessons.EXPERIMENTS.values(), ids=list(lessons.EXPERIMENTS))
def test_an_experiment_asks_and_says_what_to_look_for(lesson: lessons.Lesson) -> None:
    assert lesson.question.endswith("?") and len(lesson.look) >= 3
    assert all(c.default in c.options for c in lesson.controls)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("page", ["calibration", "uncertainty", "history", "label", "data"])
def test_where_no_fit_can_come_any_more_the_page_says_so(home: Path, tmp_path: Path, page: str) -> None:
    path = tmp_path / "pool.csv"
    path.write_text("a,b\n1,2\n3,1\n2,2\n", encoding="utf-8")
    session = Session.create(str(path), classes=["low", "high"], pool_options={"target": None})
    current.keep(session)
    assert labelling_speed.first_fit(session) == "The first fit comes with labels of two classes."
    session.items.label([0], "low")
    assert (
        labelling_speed.first_fit(session)
        == "The only label is low; the first fit comes with one of another class."
    )
    session.items.label([1, 2], "low")
    words = "All 3 labels are low and nothing is left to ask, so no model can be fitted"
    test = open_page(page, session.id)
    if page == "history":
        test.session_state["history-tabs"] = "Fits"
        test.run()
    assert not test.exception and words in said(test)


@pytest.mark.parametrize(
    "case",
    [
        "three items",
        "one feature",
        "equal rows",
        pytest.param("500 features", marks=pytest.mark.slow),
        pytest.param("200 classes", marks=pytest.mark.slow),
        pytest.param("texts", marks=pytest.mark.slow),  # alone: a map of few texts
    ],
)
def test_the_map_of_a_pool_that_is_hardly_one(home: Path, tmp_path: Path, case: str) -> None:
    rng = np.random.default_rng(0)
    colours, animals = ("red", "blue", "green", "old"), ("cat", "dog", "bird", "fish", "cow")
    said_of = {"text": [f"{a} {b} runs" for a in colours for b in animals] * 2, "label": ["a", "b"] * 20}
    rows = {
        "three items": rng.normal(size=(3, 4)),
        "one feature": rng.normal(size=(40, 1)),
        "equal rows": np.ones((40, 4)),
        "500 features": rng.normal(size=(40, 500)),
        "200 classes": rng.normal(size=(400, 3)),
    }
    if case == "texts":
        table, options = pd.DataFrame(said_of), {"text_column": "text"}
    else:
        X, n = rows[case], 200 if case == "200 classes" else 2
        table = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
        # of equal rows every column would be left out
        options = {"columns": {name: "number" for name in table}} if case == "equal rows" else {}
        table["label"] = [f"c{i % n}" for i in range(len(X))]
    path = tmp_path / "pool.csv"
    table.to_csv(path, index=False)
    session = Session.create(
        str(path), target="label", pool_options=options, classifier="logistic-regression", policy="entropy"
    )
    truth = session.pool.truth
    assert truth is not None
    for item in session.pool.trainable[:12]:
        session.items.label([int(item)], session.pool.classes[int(truth[item])])
    session.refit()
    current.keep(session)
    test = open_page("uncertainty", session.id)
    assert not test.error and not test.exception
    _, job, why = mapping.neighbours(session)
    if case in ("three items", "equal rows"):
        assert "have no neighbourhoods to keep" in why
        # of three items the test split may keep the only one of its class
        assert (why in said(test)) if session.model is not None else ("no model yet" in said(test))
    elif job is not None:
        assert job.wait(600) and job.status == "done", job.error
        assert case in ("500 features", "200 classes", "texts") and np.isfinite(job.result.points).all()
    if case == "equal rows":
        assert "All items have the same values" in said(test)
    if case == "one feature":
        (tile,) = (
            tile
            for part in test.get("bidi_component")
            for tile in (json.loads(part.proto.json or "{}") or {}).get("cards", ())
        )
        ((_, _, place),) = tile["face"]["rows"]
        values = np.asarray(session.pool.features)[:, 0]
        # the item itself counts half
        assert place == pytest.approx((values < values[tile["item"]]).mean() + 0.5 / 40, abs=0.01)
    # along a feature that all share there is nothing to draw
    if case in ("equal rows", "one feature"):
        assert mapping.is_constant(session, 0) == (case == "equal rows")
    test.session_state["map-view"] = "Side by side"
    test.run()
    assert not test.error and not test.exception
