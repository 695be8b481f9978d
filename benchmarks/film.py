"""Twenty seconds at the desk as a small silent GIF: what somebody sees who labels handwritten digits."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

from benchmarks.driving import PATIENCE, settled, visit
from workbench.pools import load_pool

WIDTH, HEIGHT = 1180, 700
# what is shown of it, in the document
SHOWN = (860, 510)
SECONDS, A_SECOND, COLOURS = 20, 4, 96
# seconds between two answers, as a person has them
PAUSE = 0.9
LARGEST = 3_000_000


def film(browser: Any, url: str, path: Path) -> None:
    """Label digits by key and keep what is seen.

    Args:
        browser: a Chromium.
        url: of the Label page of a project on the bundled digits.
        path: of the GIF.

    Raises:
        RuntimeError: it became larger than 3 MB.
    """
    pool = load_pool("digits")
    assert pool.truth is not None
    known = {str(name): pool.classes[code] for name, code in zip(pool.items.ids, pool.truth, strict=True)}
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    visit(page, url)
    page.wait_for_selector(".desk .guess .bar", timeout=6 * PATIENCE)
    page.wait_for_selector(".st-key-error-curve")
    settled(page)
    page.locator(".desk").scroll_into_view_if_needed()
    frames, answered = [], time.monotonic()
    for number in range(SECONDS * A_SECOND):
        due = time.monotonic() + 1 / A_SECOND
        frames.append(page.screenshot())
        if time.monotonic() - answered > PAUSE and number > 2 * A_SECOND:
            shown = page.locator(".desk .head .title").inner_text()
            if shown in known:  # else the next one is on its way
                page.keyboard.press(known[shown])
                answered = time.monotonic()
        page.wait_for_timeout(max(0.0, 1000 * (due - time.monotonic())))
    context.close()
    joined(frames, path)


def joined(frames: list[bytes], path: Path) -> None:
    """Pictures as a GIF of one palette, each frame only what changed.

    Args:
        frames: PNG files, in order.
        path: of the GIF.

    Raises:
        RuntimeError: it became larger than 3 MB.
    """
    from PIL import Image

    small = [
        Image.open(io.BytesIO(one)).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS) for one in frames
    ]
    # the greys of pictures would take all places: what else is there comes from a smooth copy
    sample = small[len(small) // 2].resize((SHOWN[0] // 2, SHOWN[1] // 2))
    palette = sample.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in small]
    few[0].save(
        path,
        save_all=True,
        append_images=few[1:],
        duration=1000 // A_SECOND,
        loop=0,
        optimize=True,
        disposal=1,
    )
    if path.stat().st_size > LARGEST:
        raise RuntimeError(f"{path.name} has {path.stat().st_size:,} bytes; at most {LARGEST:,} are wanted.")
