"""Guesses on the command line: their columns are no features, and what they lack is said."""

import pandas as pd
import pytest

from workbench.cli.labelling import guess
from workbench.cli.operands import without_guesses
from workbench.errors import InputError


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "pets.csv"
    rows = [{"x": i, "llm": "cat", "p_cat": 0.9, "p_dog": 0.1, "y": "dog"} for i in range(6)]
    pd.DataFrame(rows).to_csv(file, index=False)
    return str(file)


@pytest.mark.parametrize(
    ("given", "guess", "found"),
    [
        ({}, ["column:llm"], {"exclude": ["llm"]}),
        ({"exclude": "llm"}, ["column:llm", "columns:p_*"], {"exclude": ["llm", "p_cat", "p_dog"]}),
        ({"columns": "auto"}, ["column:llm"], {"columns": "auto", "exclude": ["llm"]}),
        ({"columns": {"llm": "category"}}, ["column:llm"], {"columns": {"llm": "category"}, "exclude": []}),
        ({}, ["names"], {}),
        ({}, None, {}),
        ({}, ["column:gone"], {"exclude": []}),
    ],
)
def test_columns_of_a_guess_are_left_out(path, given, guess, found):
    assert without_guesses(path, given, guess) == found


def test_a_pool_that_is_no_file_is_left_alone():
    assert without_guesses("digits", {"features": "pixels"}, ["column:llm"]) == {"features": "pixels"}


def test_a_projects_guesses_are_shown_and_changed(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    from workbench.sessions import Session

    made = Session.create(
        path, pool_options={"exclude": ["llm", "p_cat", "p_dog", "y"]}, classes=["cat", "dog"]
    )
    file = tmp_path / "old.csv"
    file.write_text("item,prediction,confidence\n0,cat,0.9\n1,dog,0.6\n")
    guess(made.id, add=["column:llm"], file=file)
    said = capsys.readouterr().out
    assert "file:old.csv" in said and "column:llm" in said and "the same class in every row" in said
    guess(made.id, off=["column:llm"])
    again = Session.open(made.id)
    assert [(one["source"], one["on"]) for one in again.settings["guesses"]] == [
        ("file:old.csv", True),
        ("column:llm", False),
    ]
    with pytest.raises(InputError, match="does not begin with 'names'"):
        guess(made.id, off=["names"])
