"""A table whose column a language model filled: brought as a guess, asked from at once, outvoted or not."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit
from tests.browser.homes import store_of
from tests.browser.test_labelling import DESK, at_the_desk, press_and_wait
from workbench.sessions import Session

SAID = {
    "card_lost": ("I lost my card", "my card was stolen", "where is my card", "please block the card"),
    "refund_request": ("I want my money back", "when will the refund arrive", "the shop owes me money"),
    "password_reset": ("I forgot my password", "cannot log in", "locked out of my account"),
}


def tickets() -> bytes:
    """Texts without a class, and what a language model calls them: right four times of five."""
    draw = random.Random(0)
    lines = ["id,text,llm_label,llm_confidence"]
    for i in range(90):
        name = draw.choice(list(SAID))
        says = name if draw.random() < 0.8 else draw.choice(list(SAID))
        lines.append(f"{i},{draw.choice(SAID[name])} since day {i},{says},{draw.uniform(0.5, 0.99):.2f}")
    return "\n".join(lines).encode()


@pytest.mark.slow  # alone: the way of a guess from the table of columns to the desk and its switches
def test_a_column_of_a_language_model_is_where_the_model_begins(page: Any, server: Server) -> None:
    visit(page, server.url)
    page.wait_for_selector("[data-testid=stFileUploader]")
    file = {"name": "tickets.csv", "mimeType": "text/csv", "buffer": tickets()}
    page.set_input_files("[data-testid=stFileUploader] input", file)
    page.wait_for_selector("text=a guess at the class")
    settled(page)
    words = page.inner_text("[data-testid=stMain]")
    assert "llm_label, llm_confidence: a guess at the class" in words and "Taken for one by its name" in words
    assert page.locator(".st-key-names-guess input").is_checked()
    page.click(".st-key-start-own button")
    at_the_desk(page)
    project = str(re.search(r"project=(\w+)", page.url)[1])
    # the classes are those the guess names, the first question is chosen, and no percentage is claimed
    page.wait_for_selector(".desk .guess .bar")
    aside = page.locator(".desk").inner_text()
    assert "A first guess" in aside and "What it began with" in aside and "Column llm_label" in aside
    assert "taken on trust" in aside and " %" not in page.inner_text(".desk .guess")
    assert "chosen by the policy" in aside or "for measuring" in aside
    press_and_wait(page, "Enter")
    hide = page.get_by_role("button", name="Hide the model's guess")
    while not hide.count():  # an item for measuring shows no guess
        press_and_wait(page, "1")
    hide.click()
    page.wait_for_selector(".desk .said", state="detached")
    press_and_wait(page, "1")
    with store_of(server) as store:
        state = store.projects()
        record = next(one for one in state if one.id == project)
        sources = [one["source"] for one in record.settings["guesses"]]
        assert sources == ["column:llm_label:llm_confidence", "names"]
        labels = [event for event in store.events(project) if event.kind == "label"]
        shown = [event.payload["guess_shown"] for event in labels]
        assert shown[0] and len(shown) > 1 and not any(shown[1:])
    # a source is switched off, and the next fit goes without it
    page.click(".st-key-guesses button")
    page.wait_for_selector(".st-key-guess-source-1")
    settled(page)
    dialog = page.locator("[role=dialog]")
    assert re.search(r"right on \d of \d label", dialog.inner_text())
    dialog.locator(".st-key-guess-source-0 label").first.click()
    page.wait_for_function(
        "() => document.querySelector('.st-key-guess-source-0')?.innerText.includes('not used')"
    )
    with store_of(server) as store:
        changed = [event for event in store.events(project) if event.kind == "guesses-changed"]
        assert [one["on"] for one in changed[-1].payload["sources"]] == [False, True]


@pytest.mark.slow  # alone: the order of the first questions of a project
def test_the_first_guess_comes_before_questions_to_measure_on(page: Any, server: Server) -> None:
    folder = server.home / "first"
    folder.mkdir(exist_ok=True)
    path = folder / "rows.csv"
    path.write_text(
        "kind,size\n" + "".join(f"{i % 2},{i % 2 + i / 500}\n" for i in range(200)), encoding="utf-8"
    )
    with store_of(server) as store:
        project = Session.create(
            str(path),
            pool_options={"columns": {"kind": "number", "size": "number"}},
            classes=["zero", "one"],
            classifier="logistic-regression",
            evaluation_share=0.6,
            early_share=0.6,
            store=store,
        ).id
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    given: set[str] = set()
    while len(given) < 2:
        assert page.locator(".desk .badge").first.inner_text() == "to know the pool"
        value = page.locator(".desk .row td").first.inner_text()
        given.add(value)
        press_and_wait(page, "2" if value == "1" else "1")
    page.wait_for_function(f"{DESK}?.querySelector('.status')?.title.includes('model learned from')")
    # the one on screen was chosen before; of those that follow, none hides what was learnt
    press_and_wait(page, "1")
    page.wait_for_selector(".desk .guess .bar")
