"""Looking back, finding, one's own keys; and review with the desk's keys by two people who differ."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import store_of
from tests.browser.test_labelling import DESK, SAVED, at_the_desk, item_of, press_and_wait, start_digits
from workbench.sessions import Session

SHOWN = f"words => {DESK}?.querySelector('.badge')?.innerText.includes(words)"


def words(page: Any, selector: str) -> str:
    return str(page.evaluate(f"s => {DESK}?.querySelector(s)?.innerText || ''", selector))


def test_looking_back_finding_and_own_keys(page: Any, server: Server) -> None:
    start_digits(page, server)
    given = []
    for key in "12":
        given.append(item_of(page))
        press_and_wait(page, key)
    asked = item_of(page)

    # back through one's answers: a class corrects, Escape returns to the question
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(SHOWN, arg="1 item back: 2")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(SHOWN, arg="2 items back: 1")
    assert item_of(page) == given[0]
    page.keyboard.press("7")
    page.wait_for_function(SHOWN, arg="2 items back: 7")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(SHOWN, arg="1 item back: 2")
    page.keyboard.press("Escape")
    page.wait_for_function(SAVED)
    assert item_of(page) == asked
    # a reload knows them too
    page.reload()
    at_the_desk(page)
    for back in ("1 item back: 7", "2 items back: 2"):  # the corrected one was answered last
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(SHOWN, arg=back)
    page.keyboard.press("Escape")

    # another key for a command holds at once and after a reload, in any browser
    page.keyboard.press("?")
    page.locator(".desk [data-key-of=skip]").click()
    page.keyboard.press("x")
    page.locator(".panel [role=status]", has_text="Kept.").wait_for()
    page.keyboard.press("Escape")
    skipped = item_of(page)
    page.reload()
    at_the_desk(page)
    page.keyboard.press("s")  # no command any more
    assert item_of(page) == skipped
    press_and_wait(page, "x")

    # what is found comes next
    page.keyboard.press("/")
    find = page.locator(".panel .command.strong")
    assert find.is_disabled()
    page.keyboard.type("1234")
    assert find.inner_text().startswith("Find")  # what Enter does now
    page.keyboard.press("Enter")
    page.locator(".panel [role=status]", has_text="1 item;").wait_for()
    assert find.inner_text().startswith("Ask me about this one")
    page.keyboard.press("Enter")
    page.wait_for_function(SAVED)
    press_and_wait(page, "3")
    page.wait_for_function(SHOWN, arg="your choice")
    assert item_of(page) == "1234"
    page.keyboard.press("m")
    page.locator(".panel [role=status]", has_text="24 items").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_role("button", name="Keys as they come").click()
    page.locator(".panel [role=status]", has_text="Kept.").wait_for()


@pytest.mark.slow
def test_two_people_differ_and_review_decides(browser: Any, own_server: Server) -> None:
    with store_of(own_server) as store:
        project = Session.create("iris", overlap=1.0, people=2, annotator="root", store=store).id
    pages = {}
    answers: dict[str, dict[str, str]] = {"Ann": {}, "Bob": {}}
    for name in answers:
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        context.add_cookies([{"name": "workbench-person", "value": name, "url": own_server.url}])
        context.set_default_timeout(PATIENCE)
        page = pages[name] = context.new_page()
        visit(page, f"{own_server.url}/label?project={project}")
        at_the_desk(page)
    ann, bob = pages["Ann"], pages["Bob"]
    assert item_of(ann) != item_of(bob), "a question is reserved for who was shown it"
    for key in "12":
        answers["Ann"][item_of(ann)] = key
        press_and_wait(ann, key)
    for _ in range(16):  # those that were at hand before hers come first
        if set(answers["Bob"]) >= set(answers["Ann"]):
            break
        shown = item_of(bob)
        answers["Bob"][shown] = "3"
        press_and_wait(bob, "3")
    assert set(answers["Bob"]) >= set(answers["Ann"]), "items of hers come to him as second opinions"

    # they differ on both; in the gallery the keys decide, and what is decided is no dispute any more
    visit(bob, f"{own_server.url}/history?project={project}")
    bob.locator(".st-key-review-filters").get_by_text("People differ").click()
    settled(bob)
    bob.locator(".st-key-review-as button", has_text="Gallery").first.click()
    bob.wait_for_function(f"() => {DESK}?.querySelectorAll('.tile').length === 2")
    bob.locator(".gallery .tile").first.click()
    bob.keyboard.press("x")
    bob.keyboard.press("ArrowRight")
    bob.keyboard.press("x")
    bob.keyboard.press("1")
    bob.wait_for_function(SAVED)
    assert words(bob, ".message") == "2 items labelled setosa."
    bob.keyboard.press("f")  # the keys go on: a flag on one
    bob.wait_for_function(f"() => {DESK}?.querySelector('.tile.here .marks')?.innerText.includes('flagged')")
    bob.wait_for_function(SAVED)
    with store_of(own_server) as store:
        state = Session.open(project, store=store).state
    ids = {str(item) for item in state.votes if state.labels[item] == "setosa"}
    assert set(answers["Ann"]) <= ids and not state.conflicts and len(state.flagged) == 1
    assert {vote.annotator for vote in state.standing.values() if vote.final} == {"Bob"}
    for page in pages.values():
        page.context.close()
