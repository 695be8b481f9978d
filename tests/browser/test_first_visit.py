"""Requests of a browser that was never here."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.driving import PATIENCE, Server, own_home, visit
from workbench.sessions import Session
from workbench.store import Store


@pytest.fixture
def newcomer(browser: Any) -> Iterator[Any]:
    """A page of a browser without a cache, which fails the test when its script broke."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    yield page
    context.close()
    assert broken == []


def scripts(page: Any) -> list[str]:
    """Names of the front end's scripts that a page has asked its server for, as they are asked for."""
    asked: list[str] = []
    page.on(
        "request",
        lambda one: asked.append(one.url.rpartition("/")[2]) if "/static/js/" in one.url else None,
    )
    return asked


def little(server: Server, asked: list[str]) -> set[str]:
    """The files in the script that has the little ones."""
    (name,) = {one for one in asked if one.startswith("little.")}
    with urllib.request.urlopen(f"{server.url}/static/js/{name}", timeout=600) as answer:
        script = answer.read().decode()
    return set(json.loads(script[script.index('({"') + 1 : -1]))


def test_the_first_page_asks_for_its_little_files_together_and_for_no_plotly(
    newcomer: Any, server: Server
) -> None:
    asked = scripts(newcomer)
    visit(newcomer, server.url)
    newcomer.wait_for_selector(".st-key-start-digits button")
    together = little(server, asked)
    assert len(together) > 40
    assert not together & set(asked)
    assert len(asked) == len(set(asked)), "nothing is asked for twice"
    assert not [one for one in asked if "Plotly" in one]


def test_plotly_comes_with_the_first_figure_and_brings_no_little_file_again(
    newcomer: Any, server: Server
) -> None:
    asked = scripts(newcomer)
    visit(newcomer, server.url)
    newcomer.click("[data-testid=stSidebarNav] a:has-text('Calibration')")
    newcomer.wait_for_selector(".js-plotly-plot .main-svg")
    assert len([one for one in asked if one.startswith("PlotlyChart.")]) == 1
    assert not little(server, asked) & set(asked)


@pytest.mark.slow  # alone: the order of the desk and Plotly
def test_the_desk_comes_before_plotly_and_the_figure_below_it_after(
    newcomer: Any, own_server: Server
) -> None:
    with own_home(own_server.home):
        store = Store.open()
        session = Session.create("wine", store=store)
        items = np.random.default_rng(0).permutation(session.pool.trainable)[:14]
        for labelled in (items[:10], items[10:]):
            for item in labelled:
                session.items.label([int(item)], session.classes[int(session.pool.truth[item])])
            session.refit()
        store.close()
    asked: list[str] = []
    newcomer.on("request", lambda one: asked.append(one.url))
    newcomer.goto(f"{own_server.url}/label?project={session.id}")
    newcomer.wait_for_selector(".desk .title:not(:empty)")
    held = newcomer.wait_for_selector(".st-key-error-curve-held")
    height = held.bounding_box()["height"]
    # by itself, a few seconds later, where its place was
    newcomer.wait_for_selector(".st-key-error-curve .js-plotly-plot .main-svg")
    assert height == newcomer.locator(".st-key-error-curve").bounding_box()["height"] == 320
    (plotly,) = [place for place, url in enumerate(asked) if "/static/js/PlotlyChart." in url]
    items = next(place for place, url in enumerate(asked) if url.endswith("/sync"))
    assert items < plotly


@pytest.mark.slow  # alone: an older browser
def test_a_browser_without_import_maps_asks_for_each(newcomer: Any, server: Server) -> None:
    asked = scripts(newcomer)
    newcomer.add_init_script("HTMLScriptElement.supports = () => false")
    visit(newcomer, server.url)
    newcomer.wait_for_selector(".st-key-start-digits button")
    # all but what this page has no use for
    assert len(little(server, asked) & set(asked)) > 40
