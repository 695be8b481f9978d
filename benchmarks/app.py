"""The app against a bare Streamlit page: how soon something is seen, and how much memory it takes."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.driving import Server, chromium, visit
from benchmarks.timing import tree_memory

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


def _paint(browser: Any, server: Server, path: str, sign: str) -> Paint:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    inside = context.new_cdp_session(page)
    inside.send("Performance.enable", {"timeDomain": "threadTicks"})
    used, began = server.seconds, time.perf_counter()
    page.goto(server.url + path, wait_until="commit")
    page.wait_for_selector(sign, state="visible")
    wall = time.perf_counter() - began
    metrics = {one["name"]: one["value"] for one in inside.send("Performance.getMetrics")["metrics"]}
    paint = Paint(wall, metrics["TaskDuration"], server.seconds - used)
    context.close()
    return paint


def first_paint(*, quick: bool = False) -> bool:
    """First paint of the first page and of the desk's first item against a bare one-line page.

    Args:
        quick: fewer pairs.

    Returns:
        Whether both ratios of the medians are at most 1.25.
    """
    from benchmarks.teaching import project

    rounds = 5 if quick else 15
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder) / "project"
        home.mkdir()
        made, _ = project(home, "digits")
        ours, labelling = Server(Path(folder) / "ours").start(), Server(home).start()
        bare = bare_server(Path(folder) / "bare", BARE).start()
        try:
            sides = {
                "first": (ours, "/", ".st-key-start-digits button"),
                "desk": (labelling, f"/label?project={made}", ".desk .title:not(:empty)"),
                "bare": (bare, "/", "h1"),
            }
            for server, path, sign in sides.values():
                _paint(browser, server, path, sign)  # the first visitor pays for imports
            paints: dict[str, list[Paint]] = {side: [] for side in sides}
            for turn in range(rounds):
                order = list(sides) if turn % 2 else list(reversed(sides))
                for side in order:
                    paints[side].append(_paint(browser, *sides[side]))
        finally:
            for server, _, _ in sides.values():
                server.stop()
    first, desk, plain = (
        Paint(*(statistics.median(column) for column in zip(*paints[side], strict=True))) for side in sides
    )
    for what, app in (("first paint", first), ("first item at the desk", desk)):
        print(
            f"{what}: {app.wall:.2f} s, a bare one-line page {plain.wall:.2f} s, "
            f"ratio {app.wall / plain.wall:.2f} (at most 1.25), median of {rounds} alternated; "
            f"of processor: page {app.page:.2f} and {plain.page:.2f} s, "
            f"server {app.server:.2f} and {plain.server:.2f} s"
        )
    return max(first.wall, desk.wall) <= 1.25 * plain.wall


BARE = "import streamlit as st; st.title('Hello')\n"
WITH_ENGINE = "import gpflow, tensorflow\n" + BARE


def server_memory(*, quick: bool = False) -> bool:
    """Memory of the server and its processes as a person has it, against a bare one-line Streamlit page.

    Warm-up is on, as it is unless somebody turns it off: after the first page, with a project of digits
    under way, and once the engine is loaded. The last stands beside a bare page that imports TensorFlow and
    GPflow too.

    Args:
        quick: one server of each side.

    Returns:
        Whether the first page, before the engine, takes at most 1.3 times the bare page.
    """
    rounds = 1 if quick else 3
    sizes: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for turn in range(rounds):
            for side in ("first page, no warm-up", "as a person has it", "bare", "bare with the engine"):
                home = Path(folder) / f"{side.replace(' ', '-')}-{turn}"
                if side.startswith("bare"):
                    server = bare_server(home, WITH_ENGINE if "engine" in side else BARE)
                else:
                    warm = "0" if "no warm-up" in side else "1"
                    server = Server(home, environment={"WORKBENCH_WARM": warm})
                server.start()
                try:
                    page = browser.new_page()
                    visit(page, server.url)
                    assert server.process is not None
                    if side == "as a person has it":
                        page.locator(".st-key-start-digits button").click()
                        page.wait_for_selector(".desk .title:not(:empty)")
                        sizes.setdefault("a project under way", []).append(tree_memory(server.process.pid))
                        _steady(server.process.pid)
                    sizes.setdefault(side, []).append(tree_memory(server.process.pid))
                    page.close()
                finally:
                    server.stop()
    median = {side: statistics.median(values) for side, values in sizes.items()}
    bare = median["bare"]
    for side, value in median.items():
        print(f"server memory, {side}: {value:.0f} MB, {value / bare:.2f} of the bare page")
    ratio = median["first page, no warm-up"] / bare
    print(
        f"the engine loaded, beside a bare page that imports it: "
        f"{median['as a person has it'] / median['bare with the engine']:.2f}; the first page before it: "
        f"{ratio:.2f} of the bare page (at most 1.3), median of {rounds}, processes of the server included"
    )
    return ratio <= 1.3


def _steady(pid: int) -> None:
    """Wait until the memory of a server stands still: what warms up has come."""
    last, since, end = 0.0, time.monotonic(), time.monotonic() + 120
    while time.monotonic() < end and time.monotonic() - since < 8:
        now = tree_memory(pid)
        if abs(now - last) > 5:
            last, since = now, time.monotonic()
        time.sleep(0.5)


def main(arguments: list[str] | None = None) -> int:
    """Run both; the exit code says whether both stayed within their bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks app", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args(arguments).quick
    within = [first_paint(quick=quick), server_memory(quick=quick)]
    return 0 if all(within) else 1


if __name__ == "__main__":
    raise SystemExit(main())
