"""No page's first screen holds a term that the glossary does not introduce there."""

import re
from typing import Any

import pytest

from tests.app.test_pages import open_page
from workbench.app import current
from workbench.app.glossary import terms
from workbench.app.text import verbatim
from workbench.sessions import Session

FOLDED = ("expander", "expandable", "popover", "dialog")
PAGES = ("data", "label", "compare", "uncertainty", "calibration", "adversarial", "lessons", "history")
# plain English words that a page may use in their own meaning
PLAIN = {"strength", "reliability", "margin", "doubt"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_HOME", str(home))
        session = Session.create("iris", classifier="logistic-regression", annotator="ann")
        truth = session.pool.truth
        assert truth is not None
        for item in session.pool.trainable[:24].tolist():
            session.label_item(item, session.classes[int(truth[item])])
        session.refit()
        current.keep(session)
        yield session


def unfolded(block: Any) -> list[Any]:
    """The elements that are on screen before somebody opens anything."""
    found = []
    for child in getattr(block, "children", {}).values():
        if hasattr(child, "children"):
            if getattr(child, "type", "") not in FOLDED:
                found += unfolded(child)
        else:
            found.append(child)
    return found


def words_of(element: Any) -> str:
    parts = [getattr(element, name, "") for name in ("value", "label", "body")]
    return " ".join(part for part in parts if isinstance(part, str)).replace("\\", "")


def unexplained(elements: list[Any]) -> set[str]:
    shown = " ".join(map(words_of, elements))
    helps = " ".join(str(getattr(getattr(one, "proto", None), "help", "") or "") for one in elements)
    found = set()
    for term in terms():
        flags = 0 if term.isupper() else re.IGNORECASE
        if term in PLAIN or not re.search(rf"\b{re.escape(term)}s?\b", shown, flags):
            continue
        if f"**{verbatim(term)}**" not in helps:
            found.add(term)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_the_first_screen_has_no_term_that_is_not_introduced(project: Session, name: str) -> None:
    test = open_page(name, project.id)
    assert not test.exception
    elements = unfolded(test.main)
    assert elements, "the page shows something"
    assert unexplained(elements) == set()


def test_a_term_is_noticed_where_nothing_explains_it() -> None:
    class Words:
        value = "its ECE is 0.1, its latents and its entropy are high"
        proto = type("P", (), {"help": f"**{verbatim('entropy')}** · ..."})()

    assert unexplained([Words()]) == {"ECE", "latent"}
