"""Copies at the desk: after a label one key gives the others the same, and another takes that back."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.driving import Server, visit
from tests.browser.homes import store_of
from tests.browser.test_labelling import SAVED, at_the_desk, press_and_wait
from workbench.sessions import Session


@pytest.mark.slow  # alone: copies labelled by one key
def test_one_key_labels_the_copies_of_the_item_before(page: Any, server: Server) -> None:
    texts = [f"Letter {word * 12} of the alphabet, said {word * 9}." for word in "abcdefghijklmnop"]
    others = [f"Number {number}, which is {number * number} squared." for number in range(40)]
    path = server.home / "letters.csv"
    path.write_text(
        "text\n" + "\n".join(f'"{t}"' for t in [*texts, *texts, texts[0], *others]) + "\n", encoding="utf-8"
    )
    with store_of(server) as store:
        session = Session.create(
            str(path),
            pool_options={"columns": {"text": "text"}},
            store=store,
            classes=["early", "late"],
            classifier="logistic-regression",
            annotator="root",
            evaluation_share=0.0,
            guess=(),
        )
        assert session.items.twins.n_groups == 16 and session.queue.n_left == 56
        session.items.want([3], "to begin with")
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        assert page.locator("[data-command=twins]").count() == 0
        press_and_wait(page, "1")
        [first] = session.state.standing
        assert first == 3
        offered = len(session.items.twins.of(first))
        words = "Same for its 1 copy" if offered == 1 else f"Same for its {offered} copies"
        assert words in page.locator("[data-command=twins]").inner_text()
        page.keyboard.press("=")
        page.wait_for_function(SAVED)
        page.wait_for_function("() => !document.querySelector('[data-command=twins]')")
        given = {item: vote.role for item, vote in session.state.standing.items()}
        assert given == {first: given[first]} | dict.fromkeys(session.items.twins.of(first), "twin")
        page.keyboard.press("z")
        page.wait_for_function(SAVED)
        assert set(session.state.standing) == {first}
