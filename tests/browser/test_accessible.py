"""Every page in both themes and at four widths: no serious violation, nothing too wide."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, ROOT, Server, settled, visit
from tests.browser.homes import answered

WIDTHS = (400, 800, 1024, 1440)
OF_ALL = "label-all"  # the desk of all questions
PAGES = tuple(path.stem for path in sorted((ROOT / "pages").glob("*.py")))
HALF = "id,age,city,leaves\n" + "".join(
    f"C{i},{20 + i % 30},{('Oslo', 'Rome')[i % 2]},{('yes', 'no')[i % 2] if i < 20 else ''}\n"
    for i in range(40)
)
NEEDED = "no axe-core: run npm install --no-save axe-core here, or set WORKBENCH_AXE to its file"


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, which `.ci/run` fetches."""
    path = Path(os.environ.get("WORKBENCH_AXE") or ROOT / "node_modules" / "axe-core" / "axe.min.js")
    if not path.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(NEEDED)
        pytest.skip(NEEDED)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(server: Server) -> str:
    """The id of a small project with a model."""
    return answered(server, "iris", 8, name="Iris")


@pytest.fixture(scope="module")
def several(server: Server) -> str:
    """The id of a project with a model and further questions."""
    asked = [("species", []), ("tone", ["calm", "angry"]), "large", "rare"]
    return answered(server, "iris", 8, name="Iris and more", questions=asked)


@pytest.fixture(scope="module")
def window(profile: Any) -> Iterator[Any]:
    """One light window for all pages."""
    window = profile.new_page()
    window.emulate_media(color_scheme="light")
    yield window
    window.close()


def go(page: Any, server: Server, name: str, project: str, several: str) -> None:
    if name != OF_ALL:
        visit(page, f"{server.url}/{'' if name == 'data' else name}?project={project}")
        return
    visit(page, f"{server.url}/label?project={several}")
    page.locator(".desk .every [role=switch]").nth(1).wait_for()


@pytest.fixture(scope="module", params=(*PAGES, OF_ALL))
def opened(request: pytest.FixtureRequest, window: Any, server: Server, project: str, several: str) -> Any:
    """The window with a page in it, opened at the smallest width."""
    window.set_viewport_size({"width": WIDTHS[0], "height": 900})
    go(window, server, request.param, project, several)
    return window


@pytest.mark.slow  # alone: no page is wider than its window, at four widths
def test_a_page_fits_every_window(opened: Any) -> None:
    for width in WIDTHS:
        opened.set_viewport_size({"width": width, "height": 900})
        settled(opened)
        # the side bar slides in, and tables follow a moment later
        opened.wait_for_function(
            "(() => { const m = document.querySelector('[data-testid=stMain]');"
            " return m.clientWidth > 300 && m.scrollWidth <= m.clientWidth; })()"
        )


def violations(page: Any, axe: str) -> list[str]:
    page.set_viewport_size({"width": WIDTHS[-1], "height": 900})
    settled(page)
    page.wait_for_function("/Iris.* · Workbench$/.test(document.title)")
    return serious(page, axe)


def serious(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)
    # of a run that is late what it will draw anew is faded, and has no contrast: no state of the page
    page.wait_for_function(
        "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
        " && !document.querySelector('[data-stale=true]')"
    )
    return page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
        ".filter(v => ['serious', 'critical'].includes(v.impact) || v.id === 'heading-order')"
        ".map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 120)).join(' | '))"
    )


@pytest.mark.slow  # alone: axe on every page, light
def test_a_page_has_no_serious_violation(opened: Any, axe: str) -> None:
    assert violations(opened, axe) == []


@pytest.mark.slow  # alone: axe on every page, dark: contrast is another
@pytest.mark.parametrize("name", (*PAGES, OF_ALL))
def test_a_dark_page_has_no_serious_violation(
    browser: Any, server: Server, project: str, several: str, axe: str, name: str
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    go(page, server, name, project, several)
    found = violations(page, axe)
    context.close()
    assert found == []


@pytest.mark.slow  # alone: axe on what is drawn only once somebody has pressed or brought something
def test_what_opens_has_no_serious_violation(page: Any, server: Server, project: str, axe: str) -> None:
    found: dict[str, list[str]] = {}
    visit(page, f"{server.url}/compare?project={project}")
    page.locator("[class*=st-key-compare-policies-]").get_by_text(re.compile(r"^All \d+")).click()
    page.locator("[class*=-others]").wait_for()
    settled(page)
    found["all policies"] = serious(page, axe)
    visit(page, f"{server.url}/adversarial?project={project}")
    page.get_by_text("holds no pictures").wait_for()
    page.locator(".st-key-attack-more button").click()
    page.locator(".st-key-attack-names").wait_for()
    settled(page)
    found["attacks"] = serious(page, axe)
    visit(page, f"{server.url}/lessons?lesson=together")
    page.locator(".st-key-together-example .plot-container").wait_for()
    found["together"] = serious(page, axe)
    page.keyboard.press("Control+k")
    page.locator("dialog[open] input").wait_for()
    found["palette"] = serious(page, axe)
    visit(page, server.url)
    file = {"name": "customers.csv", "mimeType": "text/csv", "buffer": HALF.encode()}
    page.locator(".st-key-upload input[type=file]").set_input_files([file])
    page.get_by_text("the class is leaves, 20 labels taken over").wait_for()
    settled(page)
    found["a table"] = serious(page, axe)
    assert found == {name: [] for name in found}
