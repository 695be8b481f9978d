"""Sixty thousand images in the app: thumbnails, labels by key, a model behind them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.test_labelling import at_the_desk, item_of, press_and_wait, wait_for_labelled
from tests.pools.helpers import needs


@pytest.fixture
def data_server(browser: Any, tmp_path: Path) -> Iterator[Server]:
    """A server of its own that knows where the data sets are."""
    data = needs("images/fashion_mnist.npz").parent.parent
    server = Server(tmp_path / "home", environment={"WORKBENCH_DATA": str(data)}).start()
    yield server
    server.stop()


@pytest.mark.slow  # alone: 60,000 pictures from the menu, drawn and labelled in a browser
def test_fashion_mnist_is_labelled_image_by_image(page: Any, data_server: Server) -> None:
    visit(page, data_server.url)
    picker = page.locator(".st-key-known-set input")
    picker.click()
    picker.fill("fashion")
    page.locator("[role=option]", has_text="fashion mnist").click()
    settled(page)
    # its pixels: shapes of seventy thousand images are learnt for minutes before the first one is shown
    page.click(".st-key-options-known button")
    page.locator(".st-key-known-features input").click()
    page.locator("[role=option]", has_text="Pixels").click()
    settled(page)
    page.click(".st-key-start-with-options button")
    page.wait_for_selector(".desk .title:not(:empty)", timeout=4 * PATIENCE)
    sidebar = page.locator("[data-testid=stSidebar]").inner_text()
    assert "0 of 60,000 items labelled" in sidebar
    seen = set()
    # labels of one class: fits beside a large pool are test_big_pool.py's
    for n, key in enumerate("11111", start=1):
        shown = page.locator(".desk .stage img").first
        shown.wait_for()
        # a picture of the item, large enough to be read
        assert shown.evaluate("async image => (await image.decode(), image.naturalWidth)") >= 28
        seen.add(item_of(page))
        press_and_wait(page, key)
        wait_for_labelled(page, n)
    assert len(seen) == 5


@pytest.mark.slow  # alone: a folder of photos from its upload to a label
def test_images_of_ones_own_are_looked_at_resized_on_request_and_labelled(page: Any, server: Server) -> None:
    rng, stream = np.random.default_rng(0), io.BytesIO()
    with zipfile.ZipFile(stream, "w") as folder:
        for i in range(12):
            picture, side = io.BytesIO(), 20 if i else 24
            Image.fromarray(rng.integers(0, 256, size=(side, side), dtype=np.uint8)).save(picture, "PNG")
            folder.writestr(f"{('cat', 'dog')[i % 2]}/{i}.png", picture.getvalue())
    visit(page, server.url)
    page.wait_for_selector(".st-key-upload")
    file = {"name": "pets.zip", "mimeType": "application/zip", "buffer": stream.getvalue()}
    page.locator(".st-key-upload input[type=file]").set_input_files([file])
    # shapes take any sizes; pixels need one
    page.wait_for_selector("text=/shapes learnt from small copies/", timeout=4 * PATIENCE)
    settled(page)
    seen = page.inner_text("[data-testid=stMain]")
    assert "12 images" in seen and "**" not in seen
    page.locator(".st-key-images-features input").click()
    page.locator("[role=option]", has_text="Raw pixels").click()
    told = page.locator("[data-testid=stAlert]", has_text="Bring them together")
    told.wait_for()
    page.locator(".st-key-images-size input").click()
    page.locator("[role=option]", has_text="28 x 28").click()
    page.wait_for_selector("text=/12 grey images of 28 x 28 pixels/")
    told.wait_for(state="detached")
    for words in ("2 classes: cat, dog", "brought to 28 x 28"):
        page.get_by_text(words).first.wait_for()
    settled(page)
    page.click(".st-key-start-own button")
    at_the_desk(page)
    assert page.locator(".desk .answer .name").all_inner_texts() == ["cat", "dog"]
