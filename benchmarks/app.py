"""The app against a bare Streamlit page: how soon something is seen, and how much memory it takes."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.driving import Server, chromium, visit

STREAMLIT = (
    "-m",
    "streamlit",
    "run",
    "{script}",
    "--server.port={port}",
    "--server.address=127.0.0.1",
    "--server.headless=true",
    "--server.fileWatcherType=none",
    "--browser.gatherUsageStats=false",
)


def bare_server(folder: Path, source: str) -> Server:
    folder.mkdir(parents=True)
    script = folder / "bare.py"
    script.write_text(source, encoding="utf-8")
    command = tuple(str(script) if part == "{script}" else part for part in STREAMLIT)
    return Server(folder, command=command)


class Paint(NamedTuple):
    """Seconds from an address to its sign being visible, in a browser without a cache.

    Attributes:
        wall: as a person waits.
        page: of processor, in the page's own thread of the browser.
        server: of processor, in the server.
    """

    wall: float
    page: float
    server: float


def _paint(browser: Any, server: Server, sign: str) -> Paint:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    inside = context.new_cdp_session(page)
    inside.send("Performance.enable", {"timeDomain": "threadTicks"})
    used, began = server.seconds, time.perf_counter()
    page.goto(server.url, wait_until="commit")
    page.wait_for_selector(sign, state="visible")
    wall = time.perf_counter() - began
    metrics = {one["name"]: one["value"] for one in inside.send("Performance.getMetrics")["metrics"]}
    paint = Paint(wall, metrics["TaskDuration"], server.seconds - used)
    context.close()
    return paint


def first_paint(*, quick: bool = False) -> bool:
    """First paint of the first page against a bare one-line page.

    Args:
        quick: fewer pairs.

    Returns:
        Whether the ratio of the medians is at most 1.25.
    """
    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        ours = Server(Path(folder) / "ours").start()
        bare = bare_server(Path(folder) / "bare", "import streamlit as st; st.title('Hello')\n").start()
        try:
            sides = {"ours": (ours, ".st-key-start-digits button"), "bare": (bare, "h1")}
            for server, sign in sides.values():
                _paint(browser, server, sign)  # the first visitor pays for imports
            paints: dict[str, list[Paint]] = {side: [] for side in sides}
            for turn in range(rounds):
                order = list(sides) if turn % 2 else list(reversed(sides))
                for side in order:
                    server, sign = sides[side]
                    paints[side].append(_paint(browser, server, sign))
        finally:
            ours.stop()
            bare.stop()
    app, plain = (
        Paint(*(statistics.median(column) for column in zip(*paints[side], strict=True))) for side in sides
    )
    ratio = app.wall / plain.wall
    print(
        f"first paint: {app.wall:.2f} s, a bare one-line page {plain.wall:.2f} s, "
        f"ratio {ratio:.2f} (at most 1.25), median of {rounds} alternated; "
        f"of processor: page {app.page:.2f} and {plain.page:.2f} s, "
        f"server {app.server:.2f} and {plain.server:.2f} s"
    )
    return ratio <= 1.25


def server_memory(*, quick: bool = False) -> bool:
    """Memory of the server after the first page, warm-up off, against bare Streamlit with pandas and Plotly.

    Args:
        quick: one server of each side.

    Returns:
        Whether the ratio of the medians is at most 1.3.
    """
    rounds = 1 if quick else 3
    source = "import pandas, plotly.graph_objects\nimport streamlit as st\nst.title('Hello')\n"
    sizes: dict[str, list[float]] = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for turn in range(rounds):
            for side in ("ours", "bare"):
                home = Path(folder) / f"{side}-{turn}"
                server = (Server(home) if side == "ours" else bare_server(home, source)).start()
                try:
                    page = browser.new_page()
                    visit(page, server.url)
                    sizes[side].append(server.megabytes)
                    page.close()
                finally:
                    server.stop()
    median = {side: statistics.median(values) for side, values in sizes.items()}
    ratio = median["ours"] / median["bare"]
    print(
        f"server memory, warm-up off: {median['ours']:.0f} MB, bare Streamlit with pandas and Plotly "
        f"{median['bare']:.0f} MB, ratio {ratio:.2f} (at most 1.3), median of {rounds}"
    )
    return ratio <= 1.3


def main(arguments: list[str] | None = None) -> int:
    """Run both; the exit code says whether both stayed within their bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks app", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args(arguments).quick
    within = [first_paint(quick=quick), server_memory(quick=quick)]
    return 0 if all(within) else 1


if __name__ == "__main__":
    raise SystemExit(main())
