"""Defaults of a form, its words on measured policies, and the name of a project."""

from pathlib import Path

import pytest

from workbench.app.data import forms
from workbench.policies.default_policy import DEFAULT_POLICY, Suggestion
from workbench.sessions import Session

OFFERED = ("random", "entropy-of-means", DEFAULT_POLICY)


@pytest.mark.parametrize(
    ("full", "of_default", "first", "said"),
    [
        (True, True, "entropy-of-means", True),
        (False, True, DEFAULT_POLICY, True),  # a capped run is told, and decides nothing
        (False, False, DEFAULT_POLICY, False),  # another model than the one that is offered
    ],
)
def test_a_capped_run_is_told_and_the_default_stays(
    monkeypatch: pytest.MonkeyPatch, full: bool, of_default: bool, first: str, said: bool
) -> None:
    best = Suggestion("entropy-of-means", "best mean rank on 7 sets", 7, {}, full, of_default)
    monkeypatch.setattr(forms, "suggested", lambda: best)
    place, words = forms.suggestion(OFFERED)
    assert OFFERED[place] == first
    assert words == ("Entropy of the means – best mean rank on 7 sets." if said else "")


def test_what_is_not_offered_is_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    best = Suggestion("bald", "best mean rank on 7 sets", 7, {}, True, True)
    monkeypatch.setattr(forms, "suggested", lambda: best)
    place, words = forms.suggestion(OFFERED)
    assert OFFERED[place] == DEFAULT_POLICY and words == ""


def test_two_projects_of_one_file_get_two_names(home: Path) -> None:
    assert forms._unused("letters") == "letters"
    Session.create("iris", name="letters")
    assert forms._unused("letters") == "letters 2"
    Session.create("iris", name="letters 2")
    assert forms._unused("letters") == "letters 3"
