"""Instructions as people write and read them: a picture by drop, the panel by its key, what is new."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from benchmarks.driving import Server, visit
from tests.browser.homes import answered, store_of
from tests.browser.test_labelling import SAVED, at_the_desk, press_and_wait
from workbench.sessions import Session
from workbench.sessions.instructions import examples_of_all

HTML = "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script>"
TEXT = f"## Pick by petals\n\nLook **closely**.\n\n{HTML}"


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (60, 40), "red").save(out, "PNG")
    return out.getvalue()


@pytest.mark.slow  # alone: instructions from the editor to the reader, and what is new in them
def test_instructions_are_written_read_and_told_to_have_changed(page: Any, server: Server) -> None:
    project = answered(server, "iris", 12, fit=False)
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    page.locator(".st-key-instructions button").click()
    box = page.get_by_role("textbox", name="Markdown")
    box.fill(TEXT)
    box.press("Control+Enter")
    page.locator(".preview strong", has_text="closely").wait_for()
    drop = page.locator(".st-key-instructions-upload input[type=file]")
    drop.set_input_files({"name": "a petal.png", "mimeType": "image/png", "buffer": png()})
    page.locator(".preview img[alt='a petal']").wait_for()
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator("[data-testid=stDialog]").wait_for(state="detached")

    with store_of(server) as store:
        session = Session.open(project, store=store)
        assert (
            session.instructions.latest is not None
            and "![a petal](picture:" in session.instructions.latest.text
        )
        writer = session.instructions.latest.annotator
        assert session.state.version_read(writer) == 1

        # beside the item, and the keys go on
        page.keyboard.press("h")
        sheet = page.locator(".desk .sheet")
        sheet.locator("h3", has_text="Pick by petals").wait_for()
        width = sheet.locator(".told-picture").evaluate("async one => (await one.decode(), one.naturalWidth)")
        assert width == 60
        assert sheet.locator(".told").inner_text().count("<script>") == 1
        assert page.evaluate("window.ran") is None
        assert sheet.locator(".told-class").count() == 3
        press_and_wait(page, "1")
        assert sheet.locator("h3", has_text="Pick by petals").is_visible()

        # an example that is kept is everybody's
        sheet.locator(".told-class .keep").first.click()
        sheet.locator(".keep[aria-pressed=true]").wait_for()
        page.wait_for_function(SAVED)
        assert any(one.picked for name in session.classes for one in examples_of_all(session).get(name, ()))
        page.keyboard.press("h")
        sheet.wait_for(state="detached")

        # another version says that it is new, and marks what is
        other = session.as_annotator("somebody else")
        other.instructions.write(session.instructions.latest.text.replace("closely", "twice"), after=1)
        page.locator(".desk [data-command=instructions] .badge", has_text="changed").wait_for()
        page.keyboard.press("h")
        sheet.locator(".fresh", has_text="Look twice.").wait_for()
        assert sheet.locator(".fresh").count() == 1
        page.locator(".desk [data-command=instructions] .badge").wait_for(state="detached")
        page.wait_for_function(SAVED)
        assert session.state.version_read(writer) == 2


@pytest.mark.slow  # alone: the sheet opens by itself for who has not read it, until they say so
def test_who_has_never_read_them_finds_them_open(page: Any, server: Server) -> None:
    project = answered(server, "iris", 4, fit=False)
    with store_of(server) as store:
        session = Session.open(project, store=store, annotator="the owner")
        session.instructions.write("Petals first.")
        visit(page, f"{server.url}/label?project={project}")
        at_the_desk(page)
        page.locator(".desk .sheet", has_text="new to you").wait_for()
        page.get_by_role("button", name="I have read them").click()
        page.wait_for_function(SAVED)
        page.locator(".desk .sheet .badge").wait_for(state="detached")
        assert [
            version for _, version in next(v for k, v in session.state.read.items() if k != "the owner")
        ] == [1]
