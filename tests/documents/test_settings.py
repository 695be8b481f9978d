"""A project's settings are one model: what makes a project, stores it or shows it takes them from there."""

import os
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from tests.cli.calls import ROOT
from workbench.cli.commands import app
from workbench.documents.checking import checked, settings_of
from workbench.documents.projects import Chosen, ProjectSettings, QuestionSettings, Settings
from workbench.errors import InputError
from workbench.sessions import Session
from workbench.sessions.spec import RunSpec
from workbench.store import Store

MADE_UP = '''
from typing import Annotated
from pydantic import Field
from workbench.documents import projects
from workbench.documents.checking import Share

class QuestionSettings(projects.QuestionSettings):
    made_up: Annotated[Share, Field(title="Made up")] = 0.5

class ProjectSettings(projects.ProjectSettings):
    """With one more.

    Attributes:
        made_up: share of a setting that is new.
    """

    made_up: Annotated[Share, Field(title="Made up")] = 0.5

projects.QuestionSettings, projects.ProjectSettings = QuestionSettings, ProjectSettings

from streamlit.testing.v1 import AppTest
from tests.cli.calls import call
from workbench.sessions import Session
from workbench.store import Store

first = Session.create("iris", questions=[("kind", []), "rare"], made_up=0.25)
assert [first.question(q.id).settings["made_up"] for q in first.questions.every] == [0.25] * 2
assert "made_up: share of a setting that is new." in Session.create.__doc__
assert call("new", "iris", "--name", "told", "--made-up", "0.75") == 0
assert Session.open("told").settings["made_up"] == 0.75
copy = Store.open().duplicate_project(first.id, "copy")
assert Session.open(copy.id).settings["made_up"] == 0.25

page = """
import streamlit as st
from workbench.app.data import forms
st.text(repr(forms.settings("x", "y", "table", 3).made_up))
"""
test = AppTest.from_string(page, default_timeout=60).run()
assert not test.exception and test.text[0].value == "0.5"
(field,) = [field for field in test.number_input if field.label == "Made up,\u00a0%"]
assert field.help == "Share of a setting that is new."
assert field.set_value(10).run().text[0].value == "0.1"
'''


@pytest.mark.slow  # alone: a process with a setting more; below, that those there are arguments and options
def test_a_setting_is_added_in_one_place(tmp_path: Path) -> None:
    home = os.environ | {"WORKBENCH_HOME": str(tmp_path)}
    home.pop("WORKBENCH_DATABASE_URL", None)
    command = [sys.executable, "-c", MADE_UP]
    done = subprocess.run(command, cwd=ROOT, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_setting_is_an_argument_an_option_and_explained() -> None:
    options = {p.name: p for p in get_command(app).commands["new"].params}  # type: ignore[attr-defined]
    arguments = signature(Session.create).parameters
    for name, setting in settings_of(ProjectSettings).items():
        assert arguments[name].default == setting.default, name
        assert setting.description and f"{name}: {setting.description}" in str(Session.create.__doc__)
        assert options[name].help, name


def test_what_a_project_begins_with_is_stored_under_the_same_names(store: Store) -> None:
    values = {"seed": 3, "uniform_share": 0.3, "overlap": 0.5, "people": 4, "policy": "random"}
    session = Session.create("iris", store=store, twins=False, **values)
    assert QuestionSettings.model_fields.keys() <= session.settings.keys()
    assert {name: session.settings[name] for name in values} == values
    document = dict(session.project.settings)
    checked(Settings, document, "It")
    for name in QuestionSettings.model_fields:
        with pytest.raises(InputError, match=f"{name} is missing"):
            checked(Settings, {key: document[key] for key in document if key != name}, "It")


def test_a_change_of_the_model_has_the_types_of_the_settings() -> None:
    for name in ("classifier", "options", "policy"):
        event, setting = Chosen.model_fields[name], QuestionSettings.model_fields[name]
        assert (event.annotation, event.metadata) == (setting.annotation, setting.metadata)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"unifrom_share": 0.2},
            r"no setting 'unifrom_share' \(did you mean 'uniform_share'\?\); there are cl",
        ),
        ({"zzz": 1}, "no setting 'zzz'; there are classifier, options, policy"),
        ({"seed": -1}, "'seed' is -1: input should be greater than or equal to 0"),
        ({"seed": "1"}, "'seed' is '1': input should be a valid integer"),
        ({"uniform_share": 1.5}, r"'uniform_share' is 1\.5: input should be less than or equal to 1"),
        ({"early_share": float("nan")}, "'early_share' is nan: input should be a finite number"),
        ({"twins": 1}, "'twins' is 1: input should be a valid boolean"),
        ({"options": [1]}, r"'options' is \[1\]: input should be a valid dictionary"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings: dict[str, object], says: str, store: Store) -> None:
    with pytest.raises(InputError, match=f"The project cannot be made: .*{says}"):
        Session.create("iris", store=store, **settings)


@pytest.mark.parametrize("make", [lambda **o: Session.create("iris", **o), lambda **o: RunSpec(**o)])
def test_an_option_that_no_file_holds_is_refused_with_a_sentence(make: Callable[..., object]) -> None:
    for value in (np.arange(3), {1, 2}, [(object(),)]):
        with pytest.raises(InputError, match="options are numbers, texts, true / false and lists of them"):
            make(options={"kernel": value})


def test_other_documents_have_fields_and_no_settings() -> None:
    from workbench.documents.certificates import CertificateApart

    with pytest.raises(
        InputError, match=r"no field 'ranks' \(did you mean 'rank'\?\); there are item, label"
    ):
        checked(CertificateApart, {"item": "a", "label": "b", "rank": 1, "ranks": 2}, "It")


def test_numbers_of_numpy_are_taken_as_pythons(store: Store) -> None:
    session = Session.create("iris", uniform_share=np.float32(0.5), seed=np.int64(3), store=store)
    assert session.settings["uniform_share"] == 0.5 and session.settings["seed"] == 3
    spec = RunSpec("iris", seed=np.int64(1), budget=np.int64(4))
    assert type(spec.seed) is int and type(spec.budget) is int


def test_an_array_where_a_number_belongs_is_refused_by_a_sentence() -> None:
    with pytest.raises(InputError, match="'seed' is"):
        RunSpec("iris", "logistic-regression", "margin", seed=np.array([1, 2]))  # type: ignore[arg-type]
