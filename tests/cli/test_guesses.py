"""Guesses on the command line: their columns are no features, and what they lack is said."""

import pandas as pd
import pytest

from workbench.cli.values import without_guesses


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
        ({"columns": "auto"}, ["column:llm"], {"columns": {"llm": "leave out"}}),
        ({"columns": {"llm": "category"}}, ["column:llm"], {"columns": {"llm": "category"}}),
        ({}, ["names"], {}),
        ({}, None, {}),
        ({}, ["column:gone"], {"exclude": []}),
    ],
)
def test_columns_of_a_guess_are_left_out(path, given, guess, found):
    assert without_guesses(path, given, guess) == found


def test_a_pool_that_is_no_file_is_left_alone():
    assert without_guesses("digits", {"features": "pixels"}, ["column:llm"]) == {"features": "pixels"}
