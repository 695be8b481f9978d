"""No page's first screen holds a term that the glossary does not introduce there.

What is on it: the widgets of the script, what figures write (titles, axes, legends, notes), and what the
scripts of components say (the desk, the map's keys) with the data they are given.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.pages import PAGES, application, open_page, place
from workbench.app.access import current
from workbench.app.data import upload
from workbench.app.lessons.lessons import LESSONS
from workbench.app.words.text import terms, verbatim
from workbench.policies import POLICIES
from workbench.sessions import Session

FOLDED = ("expander", "expandable", "popover", "dialog")
# of jargon that stood on first screens; none of it is a term
PHRASES = (
    "latent variance",
    "of the same latents",
    "Before the temperature",
    "best mean rank",
    "the run was capped",
    "of a tie",
    "lines=False",
    "cannot be None",
    "stretched by the labels",
    "+ intercept",
    "given: ",
    "(p = ",
)
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
        for item in session.pool.trainable[::5][:24].tolist():
            session.items.label(item, session.classes[int(truth[item])])
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
    proto = getattr(element, "proto", None)
    if getattr(element, "type", "") == "plotly_chart":
        parts += written_in_figure(json.loads(proto.spec))
    if getattr(element, "type", "") == "bidi_component":
        parts += [*written_in_script(proto.js_content), *texts_in(json.loads(proto.json or "null"))]
    # a menu shows the chosen one alone, and rows of names to choose from are a menu
    if getattr(element, "type", "") in ("radio", "button_group") and len(element.options) <= 6:
        parts += [str(getattr(option, "content", option)) for option in element.options]
    return " \n".join(part for part in parts if isinstance(part, str)).replace("\\", "")


def written_in_figure(part: Any, key: str = "") -> list[str]:
    """Texts that a figure writes on itself, without those under the pointer."""
    if isinstance(part, str):
        return [part] if key in ("text", "name", "title", "ticktext") else []
    if isinstance(part, list):
        return [words for one in part for words in written_in_figure(one, key)]
    if not isinstance(part, dict):
        return []
    hidden = part.get("showlegend") is False
    return [
        words
        for name, value in part.items()
        if name != "template" and not (name == "name" and hidden)
        for words in written_in_figure(value, name)
    ]


def written_in_script(script: str) -> list[str]:
    """The texts of a component's script without its comments; of templates what is between the values."""
    plain = re.sub(r"(?m)(^|\s)//.*$", "", script)
    found = re.findall(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', plain)
    return [re.sub(r"\$\{[^{}]*\}", " ", one or other) for one, other in found if " " in (one or other)]


def texts_in(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [words for one in inner for words in texts_in(one)]


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


def with_a_file(place: Path) -> AppTest:
    """The Data page, once a table of numbers, texts and classes was brought."""
    rows = [f"{i},{i % 7}.5,Order {i} came {'late' if i % 2 else 'at once'},{'ab'[i % 2]}" for i in range(60)]
    (place / "orders.csv").write_text("\n".join(["id,weight,comment,kind", *rows]), encoding="utf-8")
    test = application()
    test.session_state[upload.PLACE] = str(place / "orders.csv")
    return test.run()


def without_its_file(place: Path) -> AppTest:
    """A page of a project whose file is gone."""
    path = place / "rows.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(40)), encoding="utf-8")
    session = Session.create(str(path), classes=["x", "y"], classifier="logistic-regression")
    current.forget(session.id)
    path.unlink()
    return open_page("label", session.id)


@pytest.mark.parametrize("name", [*PAGES, "upload", "lost"])
def test_the_first_screen_has_no_term_that_is_not_introduced(
    project: Session, name: str, tmp_path: Path
) -> None:
    made = {"upload": with_a_file, "lost": without_its_file}
    test = made[name](tmp_path) if name in made else open_page(name, project.id)
    assert not test.exception
    elements = unfolded(test.main)
    assert elements, "the page shows something"
    assert unexplained(elements) == set()
    shown = " ".join(map(words_of, elements))
    assert [phrase for phrase in PHRASES if phrase in shown] == []


@pytest.mark.parametrize("name", ["together", *(lesson.name for lesson in LESSONS)])
def test_a_lesson_explains_every_term_of_its_first_screen(home: Path, name: str) -> None:
    test = application().run()
    test.switch_page(place("lessons"))
    test.query_params["lesson"] = name
    test.run()
    assert unexplained(unfolded(test.main)) == set()
    for button in [one for one in test.button if one.key == "guess-skip"]:
        button.click().run()
        assert not test.exception
        assert unexplained(unfolded(test.main)) == set()


def test_the_desk_and_the_figures_are_seen(project: Session) -> None:
    """The pages have a model, so that there is something to read; and what is drawn is read."""
    seen = {name: " ".join(map(words_of, unfolded(open_page(name, project.id).main))) for name in PAGES}
    assert "Why this one" in seen["label"] and "Which kind of iris is this?" in seen["label"]
    assert "Doubt" in seen["uncertainty"] and "arrows walk" in seen["uncertainty"]
    assert "How sure it says it is" in seen["calibration"]


def test_why_an_item_is_asked_about_is_said_without_terms() -> None:
    """Words of the desk about each policy, which no page's script draws."""
    said = " ".join(entry.sentence(0.31, (0.5, 0.4)) for entry in POLICIES.values() if entry.says)
    assert "the closest" in said
    assert [
        one for one in terms() if one not in {*PLAIN, "pool", "policy"} and one.lower() in said.lower()
    ] == []


def test_a_term_is_noticed_where_nothing_explains_it() -> None:
    class Words:
        value = "its ECE is 0.1, its latents and its entropy are high"
        proto = type("P", (), {"help": f"**{verbatim('entropy')}** · ..."})()

    assert unexplained([Words()]) == {"ECE", "latent"}
