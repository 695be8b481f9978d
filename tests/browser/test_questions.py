"""A project with several questions: an item stays while all are answered, or one is asked over all items."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.driving import Server, settled, visit
from tests.browser.homes import store_of
from tests.browser.test_bad_input import upload
from tests.browser.test_labelling import SAVED, at_the_desk, press_and_wait
from workbench.sessions import Session


def _shot(page: Any, name: str) -> None:
    if "SHOTS" in os.environ:
        settled(page)
        page.screenshot(path=str(Path(os.environ["SHOTS"]) / f"{name}.png"))


def _project(server: Server, store: Any, questions: list[Any]) -> Session:
    path = server.home / "messages.csv"
    things = ("lamp", "chair", "shelf", "mirror")
    ends = ("came late", "is broken", "is lovely", "has the wrong colour")
    rows = [f"The {things[i % 4]} of my order {i} {ends[i // 4 % 4]}" for i in range(160)]
    path.write_text("text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return Session.create(
        str(path), pool_options={"columns": {"text": "text"}}, store=store, questions=questions,
        classifier="logistic-regression", policy="margin", annotator="root", evaluation_share=0.0,
    )  # fmt: skip


def test_two_questions_are_answered_while_the_item_stays(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage", "praise"]), "urgent"])
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        _shot(page, "two-questions")
        shown = page.locator(".desk .title").inner_text()
        page.keyboard.press("2")
        urgent = page.locator(".desk [data-question=urgent]")
        urgent.click()
        assert urgent.get_attribute("aria-checked") == "true"
        assert page.locator(".desk .title").inner_text() == shown
        press_and_wait(page, "Enter")
        topic, switch = session.question("topic").state, session.question("urgent").state
        assert list(topic.labels.values()) == ["damage"] and list(switch.labels.values()) == ["yes"]
        page.keyboard.press("z")
        page.wait_for_function(SAVED)
        page.wait_for_function(
            "() => document.querySelector('[data-testid=stSidebar]')?.innerText.includes('0 of')"
        )
        assert not session.question("topic").state.labels and not session.question("urgent").state.labels
        page.keyboard.press("q")
        page.locator(".desk .every").wait_for(state="detached")
        page.wait_for_selector(".desk .answers .answer >> text=damage")
        at_the_desk(page)
        press_and_wait(page, "1")
        assert list(session.question("topic").state.labels.values()) == ["delivery"]
        assert not session.question("urgent").state.labels
        page.keyboard.press("q")
        page.locator(".desk .every").wait_for()
        page.locator(".desk .answers:not(.every)").wait_for(state="detached")
        at_the_desk(page)
        assert page.locator(".desk [data-command=questions]").inner_text().startswith("One question")


def test_earlier_answers_a_new_class_and_a_grid_over_all_questions(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage"]), "lamp", "urgent"])
        lamp, topic = session.question("lamp"), session.question("topic")
        for item in range(40, 80):
            lamp.label_item(item, "no" if item % 4 else "yes")
        lamp.refit()
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        first = page.locator(".desk .title").inner_text()
        # a class that is typed has its button at once, and is stored with the row
        page.keyboard.press("+")
        page.locator(".desk [role=dialog] input").fill("praise")
        page.keyboard.press("Enter")
        page.locator(".desk [data-question=topic] [data-class=praise][aria-pressed=true]").wait_for()
        press_and_wait(page, "Enter")
        page.locator(".desk [data-question=topic] [data-class=praise] kbd").wait_for()
        assert list(topic.state.labels.values()) == ["praise"]
        # back: what was said stands, what is pressed changes it, Esc is at the item again
        shown = page.locator(".desk .title").inner_text()
        page.keyboard.press("ArrowLeft")
        page.locator(".desk .badge.back").get_by_text("topic praise").wait_for()
        assert page.locator(".desk .title").inner_text() == first
        _shot(page, "every-back")
        page.locator(".desk [data-question=urgent]").click()
        page.locator(".desk [data-command=save]").get_by_text("Save what changed").click()
        page.locator(".desk .badge.back").get_by_text("urgent").wait_for()
        page.wait_for_function(SAVED)
        page.keyboard.press("Escape")
        page.locator(".desk .badge.back").wait_for(state="hidden")
        assert page.locator(".desk .title").inner_text() == shown
        said = {one.question_name: list(one.state.labels.values())[-1] for one in session.asked()}
        assert said["urgent"] == "yes" and said["topic"] == "praise"
        # a grid is of one question and one class; others are a click away
        before = lamp.state.n_labelled
        page.keyboard.press("g")
        dialog = page.locator(".desk [role=dialog]")
        dialog.get_by_text("Which of these are not “lamp”?").wait_for()
        dialog.get_by_role("button", name="not lamp (").click()
        dialog.get_by_text("Which of these are “lamp”?").wait_for()
        dialog.get_by_role("button", name="lamp (", exact=False).first.click()
        dialog.get_by_text("Which of these are not “lamp”?").wait_for()
        _shot(page, "every-grid")
        n = dialog.locator(".tile").count()
        page.keyboard.press("a")
        dialog.get_by_text(f"Confirm {n - 1} items as “lamp”").wait_for()
        page.keyboard.press("Enter")
        dialog.wait_for(state="detached")
        page.wait_for_function(SAVED)
        assert lamp.state.n_labelled == before + n - 1 and topic.state.n_labelled == 1


def test_a_question_is_added_on_the_data_page(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage"])])
        visit(page, server.url)
        page.click(f".st-key-more-{session.id} button")
        page.click(f".st-key-questions-{session.id} button")
        dialog = page.locator("[data-testid=stDialog]")
        dialog.get_by_label("One more question").fill("tone")
        dialog.get_by_role("textbox", name="Classes, with commas between").fill("angry, calm")
        dialog.get_by_role("button", name="Add", exact=True).click()
        dialog.locator("[class*=st-key-question-row-]").nth(1).wait_for()
        _shot(page, "questions-dialog")
        added = Session.open(session.id, store=store, question="tone")
        assert added.classes == ("angry", "calm") and added.twins.n_groups == session.twins.n_groups


def test_twenty_switches_are_confirmed_together(page: Any, server: Server) -> None:
    names = [
        f"about {word}" for word in ["lamps", "chairs", "shelves", "mirrors", "colours", "orders", "dates"]
    ]
    names += [f"tag {number}" for number in range(1, 14)]
    with store_of(server) as store:
        session = _project(server, store, names)
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        assert page.locator(".desk [role=switch]").count() == 20
        page.locator(".desk [data-question='about chairs']").click()
        page.locator(".desk [data-question='tag 3']").click()
        _shot(page, "switches")
        press_and_wait(page, "Enter")
        said = {q.question_name: next(iter(q.state.labels.values())) for q in session.asked()}
        assert {name for name, answer in said.items() if answer == "yes"} == {"about chairs", "tag 3"}
        assert len(said) == 20


def test_columns_and_typed_ones_are_questions_where_a_project_begins(page: Any, server: Server) -> None:
    from playwright.sync_api import TimeoutError as Late

    things = [f"thing {n}" for n in range(1, 21)]
    rows = [",".join(["text", "tone", *things])]
    for i in range(120):
        tags = ["" if i % 2 else str(int((i + place) % 5 == 0)) for place in range(20)]
        rows.append(",".join([f"order number {i} came late again", "" if i % 3 else "calm", *tags]))
    upload(page, server, ("\n".join(rows) + "\n").encode(), "mail.csv")
    box = page.locator(".st-key-own-further-box")
    box.get_by_text("21 columns may hold answers").click()
    box.get_by_text("Columns that hold their answers").wait_for()
    chosen = box.locator("[data-testid=stMultiSelect] input")
    for name in ("tone", "thing 2"):
        # a run of the page that comes late closes the list: it is opened again
        option = page.get_by_role("option", name=name, exact=True).first
        for _ in range(8):
            chosen.click()
            chosen.fill(name)
            try:
                option.click(timeout=15_000)
            except Late:
                continue
            break
        box.locator("[data-testid=stMultiSelectTagsContainer]").get_by_text(name, exact=True).wait_for()
    page.keyboard.press("Escape")
    typed = box.get_by_role("textbox", name="Others, one a line")
    typed.fill("urgent\nplace: shop, web")
    typed.press("Control+Enter")
    box.get_by_text("place", exact=True).wait_for()
    _shot(page, "questions-begin")
    page.click(".st-key-start-own button")
    page.wait_for_url("**/label*")
    at_the_desk(page)
    with store_of(server) as store:
        session = Session.open("mail", store=store)
        assert session.questions == ("tone", "thing 2", "urgent", "place")
        assert session.state.n_labelled == 40 and session.question("thing 2").state.n_labelled == 60
        assert session.question("place").classes == ("shop", "web")
