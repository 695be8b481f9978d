"""A pool of 200,000 items is labelled like a small one: nobody waits for a fit or a scan."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import Server, visit
from tests.browser.test_labelling import at_the_desk, item_of, press_and_wait, wait_for_labelled

N_ITEMS = 200_000


@pytest.mark.slow  # alone: 200,000 items in a browser while fits run
def test_the_app_asks_on_two_hundred_thousand_hands_without_freezing(
    page: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.sessions import Session
    from workbench.store import Store

    monkeypatch.setenv("WORKBENCH_HOME", str(server.home))
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    store = Store.open()
    session = Session.create("poker", pool_options={"n_items": N_ITEMS}, store=store)
    store.close()

    visit(page, f"{server.url}/label?project={session.id}")
    at_the_desk(page)
    seen = {item_of(page)}
    # the first two hands get different classes, so that fits over the whole pool run behind the rest
    for n, key in enumerate("121121", start=1):
        press_and_wait(page, key)
        wait_for_labelled(page, n)
        assert item_of(page) not in seen
        seen.add(item_of(page))
    page.wait_for_function("() => /has learnt from (all )?\\d+ labels/.test(document.body.innerText)")
    with sqlite3.connect(Path(server.home) / "workbench.sqlite") as database:
        tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
        assert "events" in tables
        kept = database.execute(
            "select count(*) from events where kind = 'label' and project = ?", (session.id,)
        ).fetchone()[0]
    assert kept == 6
