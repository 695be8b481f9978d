"""A policy of another package stands on every page that lists policies or measures."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.pages import open_page
from tests.plugged import installed
from workbench.app.access import current
from workbench.app.data import forms
from workbench.app.lessons import lessons
from workbench.app.serving import explanations
from workbench.policies import POLICIES
from workbench.sessions import Session


@pytest.fixture(scope="module")
def project(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A project that asks by a policy of another package; its classifier needs no engine."""
    with installed(tmp_path_factory.mktemp("package")):
        importlib.reload(lessons)  # its controls name the policies that there are when it is imported
        session = Session.create(
            "wine",
            classifier="logistic-regression",
            policy="nearness",
            annotator="ann",
            evaluation_share=0.0,
            early_share=0.0,
            uniform_share=0.0,
        )
        truth = np.asarray(session.pool.truth)
        for code, name in enumerate(session.pool.classes):
            session.items.label(session.pool.trainable[truth[session.pool.trainable] == code][:4], name)
        session.refit()
        current.keep(session)
        yield session
    importlib.reload(lessons)


def offered(test: AppTest, key: str) -> set[str]:
    """Options of the page's widgets whose keys begin so."""
    kinds = ("selectbox", "multiselect", "button_group", "select_slider", "radio")
    found: list[Any] = [
        widget for kind in kinds for widget in test.get(kind) if str(widget.key).startswith(key)
    ]
    return {str(option) for widget in found for option in widget.options}


def test_a_new_project_can_be_asked_for_by_it(project: Session) -> None:
    test = open_page("data")
    test.session_state["new-wine-policy-large-margin-few"] = forms.ALL
    test.button(key="options-wine").click().run()
    assert {"Nearness", "far-out"} <= offered(test, "new-wine-policy")


def test_it_can_be_compared(project: Session) -> None:
    test = open_page("compare")
    test.session_state["compare-policies-large-margin"] = [forms.ALL]
    assert {"Nearness", "far-out"} <= offered(test.run(), "compare-policies")


def test_the_desk_asks_by_it_and_says_why(project: Session) -> None:
    test = open_page("label", project.id)
    policies = next(box for box in test.radio if box.label == "Policy")
    assert policies.value == "nearness" and policies.options[0] == "Nearness"
    policies.set_value("all").run()
    every = next(box for box in test.selectbox if box.label == "Policy, all")
    assert {"Nearness", "far-out"} <= set(every.options)
    ask = project.ask()[0]
    reason = explanations.why(project, ask)
    assert reason.words == POLICIES["nearness"].sentence(reason.utility) and reason.rank == 1


def test_a_map_is_coloured_by_it(project: Session) -> None:
    test = open_page("uncertainty", project.id)
    kinds = next(box for box in test.radio if str(box.key).startswith("measure-kind"))
    assert "What is asked by: Nearness" in kinds.options
    kinds.set_value("more").run()
    assert "far-out" in offered(test, "measure")
    next(box for box in test.selectbox if box.label == "Measure").select("entropy").run()
    assert any("· Entropy: **" in words.value for words in test.markdown)


def test_the_lesson_that_asks_many_policies_offers_it(project: Session) -> None:
    name, control = next(
        (one.name, c) for one in lessons.EVERY for c in one.controls if "nearness" in c.options
    )
    assert {"Nearness", "far-out"} <= set(control.options.values())
    assert not open_page("lessons", lesson=name).exception


def test_the_fits_name_it(project: Session) -> None:
    test = open_page("history", project.id)
    test.session_state["history-tabs"] = "Fits"
    test.run()
    fits = next(frame.value for frame in test.dataframe if "Model" in frame.value.columns)
    assert fits["Model"].str.endswith("· Nearness").all()


def test_it_judges_attacked_images(project: Session) -> None:
    from workbench.attacks.robustness import DETECTORS, detectors_for

    assert DETECTORS["nearness"].title == "Nearness"
    assert project.model is not None and "nearness" in detectors_for(project.model.estimator)
