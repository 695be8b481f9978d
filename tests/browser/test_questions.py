"""A project with several questions: an item stays while all are answered, or one is asked over all items."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import store_of
from tests.browser.test_bad_input import upload
from tests.browser.test_labelling import (
    DESK,
    SAVED,
    another_than,
    at_the_desk,
    exported,
    item_of,
    press_and_wait,
)
from workbench.sessions import Session

READ = ".desk[data-stands]"
"""The desk once its row has stood long enough to be read."""


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
        str(path),
        pool_options={"columns": {"text": "text"}},
        store=store,
        questions=questions,
        classifier="logistic-regression",
        policy="margin",
        annotator="root",
        evaluation_share=0.0,
    )


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


@pytest.mark.slow  # alone: back, a new class and the grid with several questions
def test_earlier_answers_a_new_class_and_a_grid_over_all_questions(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage"]), "lamp", "urgent"])
        lamp, topic = session.question("lamp"), session.question("topic")
        for item in range(40, 80):
            lamp.items.label(item, "no" if item % 4 else "yes")
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
        said = {
            one.question_name: list(one.state.labels.values())[-1] for one in session.questions.sessions()
        }
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


@pytest.mark.slow  # alone: a row with more classes than buttons
def test_a_row_answered_in_part_says_how_many_are_open_beside_77_classes(page: Any, server: Server) -> None:
    with store_of(server) as store:
        places = [f"place {n}" for n in range(77)]
        session = _project(server, store, [("place", places), ("topic", ["delivery", "damage"]), "urgent"])
        for item in range(160):
            session.question("topic").items.label(item, "damage" if item % 3 else "delivery")
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        assert page.locator(".desk .question").inner_text() == "2 of 3 questions about this text"
        # few of the classes stand there, and the switch has a key; the others are found by typing
        place = page.locator(".desk [data-question=place]")
        assert place.locator("[data-class]").count() == 9
        assert page.locator(".desk [data-question=urgent] kbd").count() == 1
        place.get_by_role("button", name="Search 77 classes").click()
        page.locator(".desk [role=dialog] input").fill("place 61")
        page.keyboard.press("Enter")
        place.locator("[data-class='place 61'][aria-pressed=true]").wait_for()
        # what the person could not tell stands below the switch's name, which is not cut for it
        page.keyboard.press("u")
        page.locator(".desk .title:not(:empty)").wait_for()
        page.wait_for_function(SAVED)
        page.keyboard.press("ArrowLeft")
        doubt = page.locator(".desk [data-question=urgent] .doubt")
        doubt.wait_for()
        name = page.locator(".desk [data-question=urgent] .name").bounding_box()
        below = doubt.bounding_box()
        assert name is not None and below is not None and below["y"] >= name["y"] + name["height"] - 1


def _standing(page: Any) -> tuple[str, str]:
    """The item on screen, and the class that stands pressed."""
    return item_of(page), page.locator(".desk .asked [aria-pressed=true]").inner_text()


def test_a_row_stays_on_screen_when_a_new_model_chooses_again(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage"]), "urgent", "lamp"])
        for item in range(40, 80):
            session.items.label(item, "damage" if item % 3 else "delivery")
            session.question("lamp").items.label(item, "no" if item % 4 else "yes")
        session.questions.refit()
        held: list[Any] = []

        def hold(route: Any) -> None:
            first = route.request.post_data_json["ops"] and not held
            held.append(route) if first else route.continue_()

        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        page.route("**/sync", hold)
        for _ in range(2):  # the second while the first answer, with the item before on screen, is on its way
            before = item_of(page)
            page.wait_for_selector(READ)
            page.keyboard.press("Enter")
            another_than(page, before)
        page.keyboard.press("1")
        switch = page.locator(".desk [data-question=urgent]")
        turned = {"true": "false", "false": "true"}[str(switch.get_attribute("aria-checked"))]
        switch.click()
        stood = _standing(page)
        # the server takes it for a desk of an older model, and gives back all but the item it names
        held[0].continue_(post_data=held[0].request.post_data_json | {"model": -1})
        page.wait_for_function(SAVED)
        assert _standing(page) == stood and switch.get_attribute("aria-checked") == turned
        press_and_wait(page, "Enter")
        item = [str(one) for one in session.pool.items.ids].index(stood[0])
        assert session.state.labels[item] == stood[1].split()[0] == "delivery"
        said = {"true": "yes", "false": "no"}[turned]
        assert session.question("urgent").state.labels[item] == said


def test_a_row_ends_with_enter_and_the_next_one_never_with_the_same_press(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage"]), ("tone", ["angry", "calm"])])
        for item in range(100, 140):
            session.items.label(item, "damage" if item % 3 else "delivery")
            session.question("tone").items.label(item, "calm" if item % 4 else "angry")
        session.questions.refit()
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        shown = item_of(page)
        # the last class ends no row: a person who goes on with Enter would store the next one unread
        struck = page.evaluate(
            f"""keys => keys.map(key => {{
                window.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }}));
                return {DESK}.querySelector('.title').innerText;
            }})""",
            ["1", "2", "Enter", "Enter", "Enter"],
        )
        assert struck[:2] == [shown, shown] and len(set(struck[2:])) == 1 and struck[2] != shown
        page.locator(".desk .message").get_by_text("Nobody can have read this row yet").wait_for()
        page.wait_for_function(SAVED)
        ids = [str(one) for one in session.pool.items.ids]
        labelled = {item: session.question("tone").state.labels[item] for item in (ids.index(shown),)}
        assert labelled == {ids.index(shown): "calm"} and session.state.n_labelled == 41
        # once it has stood, Enter takes the guesses as they stand
        page.wait_for_selector(READ)
        press_and_wait(page, "Enter")
        assert session.state.n_labelled == 42


def test_keys_pressed_while_the_page_draws_the_desk_anew_are_not_lost(page: Any, server: Server) -> None:
    with store_of(server) as store:
        session = _project(server, store, [("topic", ["delivery", "damage"]), "urgent"])
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        before = item_of(page)
        # as it is between the end of one place of the desk and the next, which comes with the other theme
        page.evaluate(f"() => {DESK}.querySelector('.desk').remove()")
        page.keyboard.press("2")
        page.keyboard.press("Enter")
        page.emulate_media(color_scheme="dark")
        another_than(page, before)
        page.wait_for_function(SAVED)
        item = [str(one) for one in session.pool.items.ids].index(before)
        assert session.state.labels == {item: "damage"}
        # for another desk's item it would answer what nobody saw: said, and not taken
        page.evaluate(
            "() => ['q', 'Enter'].map(key => document.body.dispatchEvent("
            "new KeyboardEvent('keydown', { key, bubbles: true, composed: true })))"
        )
        page.locator(".desk .message").get_by_text("1 key was not taken").wait_for()
        page.wait_for_function(SAVED)
        assert session.state.labels == {item: "damage"}


@pytest.mark.slow  # alone: a question that comes later
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
        assert (
            added.classes == ("angry", "calm") and added.items.twins.n_groups == session.items.twins.n_groups
        )


@pytest.mark.slow  # as many switches as there are keys; above, one beside a question
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
        said = {q.question_name: next(iter(q.state.labels.values())) for q in session.questions.sessions()}
        assert {name for name, answer in said.items() if answer == "yes"} == {"about chairs", "tag 3"}
        assert len(said) == 20


@pytest.mark.slow  # alone: more switches than keys
def test_sixty_switches_are_searched_by_typing(page: Any, server: Server) -> None:
    names = [
        f"tag {number} of {thing}" for number in range(15) for thing in ("lamps", "mats", "beds", "jars")
    ]
    with store_of(server) as store:
        session = _project(server, store, names)
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        box = page.get_by_placeholder("Type to search 60 switches; Enter turns the first")
        for words, name in (("jars 12", "tag 12 of jars"), ("mats 4 of", "tag 4 of mats")):
            box.press_sequentially(words)
            page.locator(f".desk .switches .switch >> nth=0 >> text={name}").wait_for()
            box.press("Enter")
            page.locator(f".desk [data-question='{name}'][aria-checked=true]").wait_for()
        _shot(page, "sixty-switches")
        press_and_wait(page, "Enter")
        said = {q.question_name: next(iter(q.state.labels.values())) for q in session.questions.sessions()}
        assert {name for name, answer in said.items() if answer == "yes"} == {
            "tag 12 of jars",
            "tag 4 of mats",
        }
        assert len(said) == 60


def choose_columns(page: Any, likely: int, names: tuple[str, ...]) -> None:
    """Choose columns as questions where a file is opened; so many look like answers."""
    box = page.locator(".st-key-own-further-box")
    # the page before is gone: what stands now stays where it is
    page.locator(".st-key-data-choices").wait_for(state="detached")
    box.get_by_text(f"{likely} columns may hold answers").click()
    chosen = box.locator("[data-testid=stMultiSelect] input")
    for name in names:
        settled(page)
        tag = box.locator("[data-testid=stMultiSelectTagsContainer]").get_by_text(name, exact=True)
        # a list that is drawn anew while it is open shuts: it is opened again, as a person would
        until = monotonic() + PATIENCE / 1000
        while not tag.count() and monotonic() < until:
            chosen.click()
            chosen.fill(name)
            with suppress(PlaywrightTimeout):
                page.get_by_role("option", name=name, exact=True).first.click(timeout=PATIENCE / 30)
            settled(page)
        tag.wait_for()
    page.keyboard.press("Escape")


@pytest.mark.slow  # alone: questions chosen on the page that begins a project
def test_columns_and_typed_ones_are_questions_where_a_project_begins(page: Any, server: Server) -> None:
    things = [f"thing {n}" for n in range(1, 21)]
    rows = [",".join(["text", "tone", *things])]
    for i in range(120):
        tags = ["" if i % 2 else str(int((i + place) % 5 == 0)) for place in range(20)]
        rows.append(",".join([f"order number {i} came late again", "" if i % 3 else "calm", *tags]))
    upload(page, server, ("\n".join(rows) + "\n").encode(), "mail.csv")
    choose_columns(page, 21, ("tone", "thing 2"))
    box = page.locator(".st-key-own-further-box")
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


TAGS = tuple(f"about {word}" for word in ("lamps", "chairs", "shelves", *(f"thing {n}" for n in range(17))))


def _letters() -> bytes:
    rows = ["id,text,tone,tags"]
    for i in range(90):
        tags = ";".join(name for place, name in enumerate(TAGS) if (i * 7 + place * 3) % 11 == 0)
        filled = i % 3 == 0
        tone, cell = ("calm" if i % 2 else "angry", tags) if filled else ("", "")
        rows.append(f"l{i},Letter number {i} that came on day {i * 13 % 31},{tone},{cell}")
    return ("\n".join(rows) + "\n").encode()


def _letters_file(server: Server) -> str:
    path = server.home / "letters-again.csv"
    path.write_bytes(_letters())
    return str(path)


def _open_questions(session: Session, page: Any) -> tuple[int, list[Session]]:
    """The item on screen, and the sessions of the questions that are open about it."""
    name = page.locator(".desk .title").inner_text()
    item = [str(one) for one in session.pool.items.ids].index(name)
    return item, [one for one in session.questions.sessions() if item not in one.state.answered]


def _answer_by_keys(session: Session, page: Any) -> dict[str, str]:
    """Answer what is open about the item on screen: the first class of each, and the first switch turned.

    The other switches stand where a model puts them, once there is one: what is on screen is what is given.
    """
    _, asked = _open_questions(session, page)
    switches = [one for one in asked if one.project.kind == "yes / no"]
    others = [one for one in asked if one not in switches]
    if switches:
        first = f".desk [role=switch][data-question='{switches[0].question_name}']"
        turned = "false" if page.locator(first).get_attribute("aria-checked") == "true" else "true"
        page.locator(first).click()
        page.locator(f"{first}[aria-checked={turned}]").wait_for()
    for one in others:
        page.locator(f".desk .asked.turn[data-question='{one.question_name}']").wait_for()
        page.keyboard.press("1")
        pressed = f".desk .asked:not(.turn)[data-question='{one.question_name}'] [aria-pressed=true]"
        page.locator(pressed).wait_for()
    said = {one.question_name: one.classes[0] for one in others}
    if switches:
        turned_on = page.locator(".desk [role=switch][aria-checked=true]")
        on = turned_on.evaluate_all("all => all.map(one => one.dataset.question)")
        assert (switches[0].question_name in on) == (turned == "true")
        said |= {one.question_name: "yes" if one.question_name in on else "no" for one in switches}
    press_and_wait(page, "Enter")
    return said


@pytest.mark.slow  # alone: a file with two questions and twenty switches, from the upload to the import again
def test_two_questions_and_twenty_switches_from_the_file_to_the_next_tool(page: Any, server: Server) -> None:
    # bring it, and say what the columns are for
    upload(page, server, _letters(), "complaints.csv")
    choose_columns(page, 2, ("tone", "tags"))
    box = page.locator(".st-key-own-further-box")
    typed = box.get_by_role("textbox", name="Others, one a line")
    typed.fill("topic: refund, delivery")
    typed.press("Control+Enter")
    box.get_by_text("topic", exact=True).wait_for()
    page.click(".st-key-start-own button")
    page.wait_for_url("**/label*")
    at_the_desk(page)
    with store_of(server) as store:
        session = Session.open("complaints", store=store)
        assert session.questions == (
            "tone",
            *sorted(session.questions[1:-1], key=session.questions.index),
            "topic",
        )
        assert len(session.questions) == 22 and session.state.n_labelled == 30
        # label, one question of one row corrected later
        given: dict[str, dict[str, str]] = {}
        for _ in range(6):
            name = page.locator(".desk .title").inner_text()
            given[name] = _answer_by_keys(session, page)
        ids = [str(one) for one in session.pool.items.ids]
        for name, said in given.items():
            item = ids.index(name)
            assert {q: session.question(q).state.labels[item] for q in said} == said
        last = list(given)[-1]
        page.keyboard.press("ArrowLeft")
        page.locator(".desk .badge.back").wait_for()
        assert page.locator(".desk .title").inner_text() == last
        page.locator(".desk [data-question=topic] [data-class=delivery]").click()
        page.locator(".desk [data-command=save]").click()
        page.locator(".desk .badge.back").get_by_text("topic delivery").wait_for()
        page.wait_for_function(SAVED)
        page.keyboard.press("Escape")
        page.locator(".desk .badge.back").wait_for(state="hidden")
        assert session.question("topic").state.labels[ids.index(last)] == "delivery"
        # look at it again: History is of the question at the side
        page.get_by_role("link", name="History").click()
        page.get_by_role("combobox", name="Question").click()
        page.get_by_role("option", name="topic", exact=True).click()
        page.get_by_text("6 of 90 items labelled").wait_for()
        # know when it is enough, of that question too
        page.get_by_role("link", name="Finish").click()
        page.get_by_role("heading", name="Finish").first.wait_for()
        settled(page)
        assert not page.locator("[data-testid=stException]").count()
        # take it away: a column a question, and again into the program
        table = exported(page)
        assert list(table.columns)[:2] == ["id", "text"] and {"tone", "topic", "tags"} <= set(table.columns)
        cells = table.set_index("id")
        assert cells.loc[last, "topic"] == "delivery" and len(cells) >= 30
        for name, said in given.items():
            on = {q for q, answer in said.items() if answer == "yes"}
            listed = cells.loc[name, "tags"]
            assert on <= set(listed.split(";") if isinstance(listed, str) else ())
        again = Session.create(
            _letters_file(server),
            pool_options={"columns": {"id": "id", "text": "text"}},
            store=store,
            name="again",
            questions=[("tone", ["calm", "angry"]), *TAGS, ("topic", ["refund", "delivery"])],
            classifier="logistic-regression",
            policy="margin",
            annotator="root",
        )
        visit(page, f"{server.url}/history?project={again.id}")
        page.get_by_role("button", name="Import labels").click()
        file = {"name": "back.csv", "mimeType": "text/csv", "buffer": table.to_csv(index=False).encode()}
        page.set_input_files("[data-testid=stFileUploader] input", file)
        page.get_by_text("It would bring:").wait_for()
        page.click(".st-key-import button")
        n = session.question("tone").state.n_labelled
        page.get_by_text(f"{n} of 90 items labelled").wait_for()
        back = {one.question_name: one.state.labels for one in again.questions.sessions()}
        assert back == {one.question_name: one.state.labels for one in session.questions.sessions()}
