"""Help in the app: what the pages link to is there, also in a wheel."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.app.pages import ROOT, open_page, texts
from workbench.app.words import help
from workbench.cli import main
from workbench.errors import InputError

EVERY = [page.name for group in help.pages().values() for page in group]


def test_every_help_page_of_the_docs_is_in_the_list() -> None:
    from tests.test_docs import READ

    named = {path.relative_to(ROOT / "docs").as_posix().removesuffix(".md") for path in READ}
    assert named - {"index", "recipes/index"} <= set(EVERY)


@pytest.mark.parametrize("name", [help.FIRST, *EVERY])
def test_a_page_has_no_picture_and_links_lead_to_pages_that_are_there(name: str) -> None:
    page = help.read(name)
    assert "<!--" not in page.text
    assert page.title and "![" not in page.text
    prose = re.sub(r"```.*?```", "", page.text, flags=re.DOTALL)
    assert not re.search(r"\d[ \n]%", prose), "a line may end before the sign"
    for target in re.findall(r"\]\(([^()\s]+)\)", prose):
        assert target.startswith(("http", "help?page=")), target


def test_code_is_left_alone() -> None:
    block = re.findall(r"```python\n.*?```", (ROOT / "docs" / "policies.md").read_text(), re.DOTALL)[0]
    assert block in help.read("policies").text


@pytest.mark.parametrize("name", ["../pyproject", "/etc/passwd", "math", "", "desk.md"])
def test_only_pages_of_the_list_are_read(name: str) -> None:
    with pytest.raises(InputError, match="no page of help"):
        help.read(name)


def test_a_wheel_takes_every_page() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    setuptools = document["tool"]["setuptools"]
    assert (
        setuptools["package-dir"]["workbench.help"] == "docs" and "workbench.help" in setuptools["packages"]
    )
    taken = {
        path
        for pattern in setuptools["package-data"]["workbench.help"]
        for path in (ROOT / "docs").glob(pattern)
    }
    assert {ROOT / "docs" / f"{name}.md" for name in (help.FIRST, *EVERY)} <= taken
    assert not list((ROOT / "docs").glob("*.py"))


def test_the_page_shows_what_is_asked_for_and_says_what_is_not_there(home: Path) -> None:
    assert "The desk" in [h.value for h in open_page("help", page="desk").header]
    assert "no page of help called 'nothing'" in texts(open_page("help", page="nothing")).replace("\\", "")


@pytest.mark.parametrize(("n", "said"), [(0, "No page has"), (1, "1 page has"), (2, "2 pages have")])
def test_the_pages_that_have_words_are_counted(
    home: Path, monkeypatch: pytest.MonkeyPatch, n: int, said: str
) -> None:
    page = open_page("help")
    monkeypatch.setattr(help, "found", lambda words: [help.read(name) for name in EVERY[:n]])
    page.text_input(key="help-words").set_value("desk").run()
    assert f"{said} these words." in texts(page)


def test_words_find_pages() -> None:
    assert {page.name for page in help.found("nginx proxy")} == {"teams", "recipes/server"}
    assert help.found("label studio")[0].name == "recipes/label-studio"
    assert help.found("xyzzy") == []


def test_the_terminal_prints_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, said in (
        (["help", "teams"], 0, "oauth2callback"),
        (["help"], 0, "recipes/texts"),
        (["help", "nothing"], 2, "no page of help"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == code
        assert said in "".join(capsys.readouterr())
