"""Sixty thousand images in the app: thumbnails, labels by key, a model behind them."""

from __future__ import annotations

from typing import Any

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.test_labelling import item_of, press_and_wait, wait_for_labelled
from tests.pools.helpers import needs


def test_fashion_mnist_is_labelled_image_by_image(page: Any, own_server: Server) -> None:
    file = needs("images/fashion_mnist.npz")
    own_server.environment["WORKBENCH_DATA"] = str(file.parent.parent)
    own_server.stop()
    own_server.start()
    visit(page, own_server.url)
    picker = page.locator(".st-key-known-set input")
    picker.click()
    picker.fill("fashion")
    page.locator("[role=option]", has_text="fashion mnist").click()
    settled(page)
    page.click(".st-key-start-known button")
    page.wait_for_selector(".st-key-answers", timeout=4 * PATIENCE)
    settled(page)
    sidebar = page.locator("[data-testid=stSidebar]").inner_text()
    assert "0 of 60,000 items labelled" in sidebar
    seen = set()
    # two classes at the start, so that fits over the whole pool run behind the rest
    for n, key in enumerate("12121", start=1):
        shown = page.locator(".st-key-item img").first
        shown.wait_for()
        # a picture of the item, large enough to be read
        assert shown.evaluate("image => image.complete && image.naturalWidth >= 28")
        seen.add(item_of(page))
        press_and_wait(page, key)
        wait_for_labelled(page, n)
    assert len(seen) == 5
    page.wait_for_function(
        "() => /Model:\\s+\\d+ labels/.test(document.body.innerText)", timeout=4 * PATIENCE
    )
