"""Names: whole at every width, and asked for before two browsers have the same one."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import answered, store_of
from tests.browser.test_labelling import at_the_desk, press_and_wait
from workbench.sessions import Session

TOPICS = (
    "card payment",
    "cash_withdrawal",
    "top up",
    "contactless",
    "identity verification",
    "exchange rate",
)
TROUBLES = ("not recognised", "fee_charged", "declined", "pending after a week")
# every text node of a name whose words do not end where its lines end
CUT = """() => { const found = [];
  const root = [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map(e => e.shadowRoot).find(r => r?.querySelector('.desk'));
  for (const node of root.querySelectorAll('.answer .name, .guess .name, .near figcaption')) {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
      for (const word of text.data.matchAll(/[^\\s_/.:-]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const lines = [...range.getClientRects()].filter(r => r.width > 1).map(r => Math.round(r.top));
        if (new Set(lines).size > 1) found.push(word[0]);
      }
    }
    if (node.scrollWidth > node.clientWidth + 1) found.push(`${node.innerText} is wider than its place`);
  }
  return found; }"""


# names of many words: few of them, and too many for buttons
NAMES = {
    "many": [f"{a} {b}" for a in TOPICS for b in TROUBLES],
    "few": ["internationalisation of a counterparty", "cash", "card payment not recognised"],
}


@pytest.mark.parametrize("which", [pytest.param("many", marks=pytest.mark.slow), "few"])
def test_no_name_is_cut_inside_a_word(page: Any, server: Server, which: str) -> None:
    names, path = NAMES[which], server.home / f"{which}.csv"
    lines = [f'"About {names[i % len(names)]}, number {i}",{names[i % len(names)]}' for i in range(120)]
    path.write_text("text,intent\n" + "\n".join(lines) + "\n", encoding="utf-8")
    with store_of(server) as store:
        session = Session.create(
            str(path),
            pool_options={"columns": {"text": "text", "intent": "class"}},
            store=store,
            classifier="logistic-regression",
            annotator="root",
            early_share=0.0,
        )
        truth = session.pool.truth
        assert truth is not None
        for item in session.pool.trainable[:60].tolist():
            session.items.label(item, session.classes[int(truth[item])])
        session.refit()
    visit(page, f"{server.url}/label?project={session.id}")
    at_the_desk(page)
    page.wait_for_selector(".desk .guess .name")
    page.wait_for_selector(".desk .near figcaption")
    for width in (1024, 1100, 1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("w => innerWidth === w", arg=width)
        assert page.evaluate(CUT) == [], width


@pytest.mark.slow  # alone: two browsers that open one project at the same moment
def test_of_two_browsers_that_both_opened_first_the_second_is_asked(
    browser: Any, page: Any, server: Server
) -> None:
    project = answered(server, "iris", 6, fit=False)
    contexts = [browser.new_context(user_agent=f"Browser of {name}") for name in ("Ann", "Bea")]
    try:
        first, second = (context.new_page() for context in contexts)
        for one in (first, second):
            one.set_default_timeout(PATIENCE)
        visit(first, f"{server.url}/label?project={project}")
        at_the_desk(first)
        visit(second, f"{server.url}/label?project={project}")
        second.locator(".st-key-who-are-you").wait_for()
        first.reload()  # who sat here first goes on without a question
        at_the_desk(first)
        assert first.locator(".st-key-who-are-you").count() == 0
    finally:
        for context in contexts:
            context.close()


@pytest.mark.slow  # alone: a name is asked for once, kept, and shown
def test_a_second_browser_is_asked_for_a_name(browser: Any, page: Any, server: Server) -> None:
    project = answered(server, "iris", 6, fit=False)
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    press_and_wait(page, "1")
    other = browser.new_context()
    try:
        theirs = other.new_page()
        theirs.set_default_timeout(PATIENCE)
        visit(theirs, f"{server.url}/label?project={project}")
        theirs.locator(".st-key-who-are-you").wait_for()
        assert theirs.locator(".desk").count() == 0
        theirs.locator(".st-key-first-name input").fill("Bea")
        theirs.locator(".st-key-first-name-form button, [data-testid=stFormSubmitButton] button").click()
        at_the_desk(theirs)
        press_and_wait(theirs, "2")
        # the browser is known from now on
        theirs.reload()
        at_the_desk(theirs)
        assert theirs.locator(".st-key-who-are-you").count() == 0
    finally:
        other.close()
    with store_of(server) as store:
        people = {e.annotator for e in Session.open(project, store=store).log.events if e.operation}
    assert len(people) == 2 and "Bea" in people
    settled(page)


@pytest.mark.parametrize(
    "width", [1024, *(pytest.param(width, marks=pytest.mark.slow) for width in (1280, 1500))]
)
def test_a_row_beside_its_plane_is_not_cut(page: Any, server: Server, width: int) -> None:
    path = server.home / "waves.csv"
    lines = [f"{(i * 37 % 100) / 7:.3f},{(i * 53 % 100) / 9:.3f}" for i in range(100)]
    path.write_text("amplitude,frequency\n" + "\n".join(lines) + "\n", encoding="utf-8")
    with store_of(server) as store:
        session = Session.create(
            str(path),
            classes=["calm", "storm"],
            store=store,
            classifier="logistic-regression",
            annotator="root",
        )
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, f"{server.url}/label?project={session.id}")
    at_the_desk(page)
    page.locator(".stage.two .plane").wait_for()
    wide, shown = page.locator(".stage.two .row").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert wide <= shown
