"""Looking back, finding, one's own keys; and review with the desk's keys by two people who differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import answered, store_of
from tests.browser.test_labelling import (
    DESK,
    SAVED,
    at_the_desk,
    exported,
    item_of,
    press_and_wait,
    start_digits,
)
from workbench.sessions import Session

SHOWN = f"words => {DESK}?.querySelector('.badge')?.innerText.includes(words)"


def words(page: Any, selector: str) -> str:
    return str(page.evaluate(f"s => {DESK}?.querySelector(s)?.innerText || ''", selector))


def test_one_key_says_that_the_model_is_right_and_one_takes_it_back(page: Any, own_server: Server) -> None:
    server = own_server
    project = answered(server, "iris", 24, classifier="logistic-regression", fit=False)
    with store_of(server) as store:
        session = Session.open(project, store=store)
        truth = session.pool.truth
        assert truth is not None
        # a setosa far from all others under another name
        wrong = next(item for item in session.state.labels if truth[item] == 0)
        session.items.label(wrong, "virginica")
        session.refit()
    visit(page, f"{server.url}/history?project={project}")
    first = page.locator(".gallery .tile").first
    first.locator(".says", has_text="model: setosa").wait_for()
    assert first.get_attribute("data-item") == str(wrong) and "virginica" in first.inner_text()
    for key, words, name in (
        ("m", "1 item labelled as the model says.", "setosa"),
        ("z", "Taken back", "virginica"),
    ):
        page.keyboard.press(key)
        page.locator(".gallery .message", has_text=words).wait_for()
        page.wait_for_function(SAVED)
        with store_of(server) as store:
            assert Session.open(project, store=store).state.labels[wrong] == name


@pytest.mark.slow  # alone: arrows and search at the desk
def test_looking_back_and_finding(page: Any, server: Server) -> None:
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

    # what is found is on screen at once: the next key is for it
    page.keyboard.press("/")
    find = page.locator(".panel .command.strong")
    assert find.is_disabled()
    page.keyboard.type("1234")
    assert find.inner_text().startswith("Find")  # what Enter does now
    page.keyboard.press("Enter")
    page.locator(".panel [role=status]", has_text="1 item;").wait_for()
    assert find.inner_text().startswith("Ask me about this one")
    page.keyboard.press("Enter")
    assert item_of(page) == "1234"
    page.wait_for_function(SHOWN, arg="your choice")
    press_and_wait(page, "3")
    assert item_of(page) not in (*given, "1234")  # what was asked before, or what a newer model asks
    page.keyboard.press("m")
    page.locator(".panel [role=status]", has_text="24 items").wait_for()
    page.keyboard.press("Escape")


def two_people_differ(browser: Any, server: Server) -> tuple[str, Any, Any, dict[str, dict[str, str]]]:
    """A project in which two people label every item, two of them differently.

    Returns:
        Its id, Ann's and Bob's page, and who gave which item which key.
    """
    with store_of(server) as store:
        project = Session.create("iris", overlap=1.0, people=2, annotator="root", store=store).id
    pages = {}
    answers: dict[str, dict[str, str]] = {"Ann": {}, "Bob": {}}
    for name in answers:
        context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
        context.add_cookies([{"name": "workbench-person", "value": name, "url": server.url}])
        context.set_default_timeout(PATIENCE)
        page = pages[name] = context.new_page()
        visit(page, f"{server.url}/label?project={project}")
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
    return project, ann, bob, answers


@pytest.mark.slow  # alone: two browsers, two answers, one review
def test_two_people_differ_and_review_decides(browser: Any, server: Server) -> None:
    project, ann, bob, answers = two_people_differ(browser, server)

    # they differ on both; in the gallery the keys decide, and what is decided is no dispute any more
    visit(bob, f"{server.url}/history?project={project}")
    bob.locator(".st-key-review-filters").get_by_text("People differ").click()
    settled(bob)
    bob.wait_for_function(f"() => {DESK}?.querySelectorAll('.tile').length === 2")
    assert "Ann: " in bob.locator(".gallery .tile").first.inner_text(), "who said what"
    bob.locator(".gallery .tile").first.click()
    bob.keyboard.press("x")
    bob.keyboard.press("ArrowRight")
    bob.keyboard.press("x")
    bob.keyboard.press("1")
    bob.wait_for_function(SAVED)
    assert words(bob, ".message") == "2 items labelled setosa. Z takes it back."
    bob.keyboard.press("f")  # the keys go on: a flag on one
    bob.wait_for_function(f"() => {DESK}?.querySelector('.tile.here .marks')?.innerText.includes('flagged')")
    bob.wait_for_function(SAVED)
    with store_of(server) as store:
        state = Session.open(project, store=store).state
    ids = {str(item) for item in state.votes if state.labels[item] == "setosa"}
    assert set(answers["Ann"]) <= ids and not state.conflicts and len(state.flagged) == 1
    assert {vote.annotator for vote in state.standing.values() if vote.final} == {"Bob"}
    for page in (ann, bob):
        page.context.close()


@pytest.mark.slow  # alone: the queue of disagreements up to the next fit
def test_a_disagreement_is_decided_in_its_queue_and_learnt_from(browser: Any, server: Server) -> None:
    project, ann, bob, answers = two_people_differ(browser, server)
    first, second = answers["Ann"]
    visit(ann, f"{server.url}/history?project={project}")
    ann.wait_for_selector("text=2 on which people differ")
    ann.get_by_role("tab", name="Agreement").click()
    ann.wait_for_selector("text=Ann and Bob labelled 2 items both, and agree in 0 of 2")
    ann.wait_for_selector("text=People differ on 2 items.")
    # Ann decides: about the first neither as she said nor as Bob did
    ann.locator(".st-key-decide button").click()
    ann.wait_for_function(f"() => {DESK}?.querySelectorAll('.tile').length === 2")
    for item, key in ((first, "3"), (second, "1")):
        ann.locator(f".gallery .tile[data-item='{item}']").click()
        ann.keyboard.press(key)
    ann.wait_for_function(SAVED)

    table = exported(ann, "all that is known").set_index("id")
    assert table.loc[[first, second], "label"].tolist() == ["virginica", "setosa"]
    assert set(table.loc[[first, second], "source"]) == {"review"}
    assert set(table.loc[[first, second], "person"]) == {"Ann"} and set(table["status"]) == {"labelled"}
    said = [json.loads(table.loc[item, "label_by_person"]) for item in (first, second)]
    assert said == [{"Ann": "setosa", "Bob": "virginica"}, {"Ann": "versicolor", "Bob": "virginica"}]
    with store_of(server) as store:
        session = Session.open(project, store=store)
        state = session.state
        assert not state.undecided and {int(first), int(second)} <= set(state.training)
        assert [state.labels[int(item)] for item in (first, second)] == ["virginica", "setosa"]
    for page in (ann, bob):
        page.context.close()


@pytest.mark.slow  # alone: undo across pages
def test_undo_takes_back_what_was_done_on_another_page(page: Any, server: Server) -> None:
    id_ = answered(server, "iris", 12, fit=False)
    visit(page, f"{server.url}/label?project={id_}")
    at_the_desk(page)
    mine = item_of(page)
    press_and_wait(page, "1")
    with store_of(server) as store:
        before = dict(Session.open(id_, store=store).state.labels)
    page.get_by_role("link", name="History").click()
    page.locator(".gallery .tile").first.click()
    page.keyboard.press("Backspace")
    page.locator(".gallery .message", has_text="1 label taken away.").wait_for()
    page.wait_for_function(SAVED)
    with store_of(server) as store:
        (gone,) = before.keys() - Session.open(id_, store=store).state.labels.keys()

    # the desk's own last answer is not the last act: Z gives back what History took, and says so
    page.get_by_role("link", name="Label", exact=True).click()
    page.locator(".gallery").wait_for(state="detached")  # until then keys are of the page that goes
    at_the_desk(page)
    page.keyboard.press("z")
    page.locator(".desk .message", has_text=f"Taken back: labels of {gone} removed.").wait_for()
    page.wait_for_function(SAVED)
    assert not page.locator(".desk .message.bad").is_visible()
    with store_of(server) as store:
        assert dict(Session.open(id_, store=store).state.labels) == before
    page.keyboard.press("z")
    page.wait_for_function(f"id => {DESK}.querySelector('.title').innerText === id", arg=mine)
    page.locator(".desk .badge", has_text="taken back").wait_for()

    # and on History what was done at the desk
    page.wait_for_function(SAVED)
    page.get_by_role("link", name="History").click()
    page.locator(".gallery .tile").first.wait_for()
    page.locator("[data-command=undo]:not([disabled])").click()
    page.locator(".gallery .message", has_text="Taken back").wait_for()
