"""A finished column is checked in the browser, from the table to the certificate that is downloaded."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit
from tests.browser.homes import store_of
from tests.browser.test_labelling import DESK
from workbench.certificates import verify
from workbench.exchange.auditing import read_certificate, read_finished
from workbench.sessions import Session

SAID = {"card": "I lost my card", "refund": "I want my money back", "login": "I cannot log in"}
MOVED = f"""before => {{
  if (document.querySelector('.st-key-certified')) return true;
  const title = {DESK}?.querySelector('.desk .title')?.textContent;
  return Boolean(title) && title !== before;
}}"""


def tickets() -> bytes:
    draw = random.Random(0)
    lines = ["id,text,llm_label"]
    for i in range(120):
        name = draw.choice(list(SAID))
        lines.append(f"t{i},{SAID[name]} since day {i},{name}")
    return "\n".join(lines).encode()


def checked_column(server: Server) -> Any:
    """A project whose column is being checked, and the class of a text."""
    path = server.home / "tickets.csv"
    path.write_bytes(tickets())
    with store_of(server) as store:
        session = Session.create(
            str(path),
            pool_options={"columns": {"id": "id", "text": "text"}},
            classes=list(SAID),
            classifier="logistic-regression",
            evaluation_share=0.0,
            annotator="root",
            store=store,
        )
        session.checks.start(0.2, 0.8, of="column:llm_label")
    return session


def class_of(text: str) -> str:
    return next(name for name, says in SAID.items() if text.startswith(says))


def test_while_the_last_answers_are_on_their_way_the_next_check_is_said_to_come(
    page: Any, server: Server
) -> None:
    session = checked_column(server)
    away = True
    visit(page, f"{server.url}/finish?project={session.id}")
    text, empty = page.locator(".desk .stage .text"), page.locator(".desk .stage .empty")
    text.wait_for()
    page.route("**/sync", lambda route: route.abort() if away else route.continue_())
    while not empty.count():
        words = text.inner_text()
        page.keyboard.press(str(list(SAID).index(class_of(words)) + 1))
        page.locator(".desk .stage").get_by_text(words, exact=True).wait_for(state="detached")
    assert empty.inner_text() == "The next check comes in a moment."
    away = False
    text.wait_for()


def test_after_the_last_check_the_page_has_its_keys_back(page: Any, server: Server) -> None:
    session = checked_column(server)
    with store_of(server) as store:
        session = Session.open(session.id, annotator="root", store=store)
        texts = session.pool.items.texts  # type: ignore[attr-defined]
        while (((state := session.checks.state()) and state.to_go) or (0, 0))[0] > 1:
            ask = session.checks.next()
            session.checks.answer(ask.id, class_of(texts[ask.item]))  # type: ignore[union-attr]
    page.set_viewport_size({"width": 1400, "height": 400})
    visit(page, f"{server.url}/finish?project={session.id}")
    shown = "document.querySelector('.desk .stage .text')?.innerText"
    while not page.locator(".st-key-certified").count():
        text = page.locator(".desk .stage .text").inner_text()
        page.keyboard.press(str(list(SAID).index(class_of(text)) + 1))
        page.wait_for_function(
            f"document.querySelector('.st-key-certified') || ({shown} && {shown} !== {json.dumps(text)})"
        )
    settled(page)
    page.locator(".st-key-certified p").first.click()  # the part of the page that scrolls has the focus
    for key, there in (
        ("End", "> 0"),
        ("Home", "=== 0"),
        (" ", "> 0"),
        ("Home", "=== 0"),
        ("ArrowDown", "> 0"),
    ):
        page.keyboard.press(key)
        page.wait_for_function(f"document.querySelector('[data-testid=stMain]').scrollTop {there}")


@pytest.mark.slow  # alone: a column is checked key by key up to the certificate
def test_a_column_is_checked_and_certified(page: Any, server: Server, tmp_path: Path) -> None:
    visit(page, server.url)
    page.wait_for_selector("[data-testid=stFileUploader]")
    file = {"name": "calls.csv", "mimeType": "text/csv", "buffer": tickets()}
    page.set_input_files("[data-testid=stFileUploader] input", file)
    page.wait_for_selector("text=a guess at the class")
    settled(page)
    page.click(".st-key-audit-own button")
    page.wait_for_selector(".st-key-finish-start button")
    settled(page)
    page.click(".st-key-finish-start button")
    page.wait_for_selector(".desk .answers button:enabled")
    aside = page.locator(".desk .aside").inner_text()
    assert "0 checks, 0 called wrong" in aside and "guess" not in aside.lower()
    assert not page.locator(".desk [data-command=skip], .desk [data-command=accept]").count()
    keys = [one.get_attribute("data-class") for one in page.locator(".desk .answer").all()]
    assert set(keys) == set(SAID)
    before, done = "", page.locator(".st-key-certified")
    while True:
        page.wait_for_function(MOVED, arg=before)  # the next item, or the page that follows the last one
        if done.count():
            break
        text, before = (
            page.locator(".desk .stage .text").inner_text(),
            page.locator(".desk .title").inner_text(),
        )
        page.keyboard.press(str(keys.index(next(n for n, says in SAID.items() if text.startswith(says))) + 1))
    assert "at most 5 % of them wrong" in page.inner_text(".st-key-certified").replace("\u00a0", " ")
    settled(page)
    for key, name in (("download-finished", "calls.csv"), ("download-certificate-json", "c.json")):
        with page.expect_download() as download:
            page.click(f".st-key-{key} a")
        download.value.save_as(tmp_path / name)
    assert verify(read_certificate(tmp_path / "c.json"), read_finished(tmp_path / "calls.csv")).holds
