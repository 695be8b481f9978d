"""Pages with much on them, beside a bare page that shows nothing but their figure."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.app import bare_server
from benchmarks.driving import PATIENCE, Server, chromium, own_home, visit
from benchmarks.teaching import CAPTURE, FIGURES, project

GOAL = 2.0
"""First useful paint of a page, at most, over that of its figure alone."""
PLOT = f"{FIGURES} .main-svg"
TILES = "[data-testid=stMain] .gallery .tile:first-child"
BARE_FIGURES = """
import json
from pathlib import Path
import plotly.graph_objects as go
import streamlit as st

@st.cache_resource
def figures():
    text = (Path(__file__).parent / "shown.json").read_text(encoding="utf-8")
    return [go.Figure(one) for one in json.loads(text)]

st.set_page_config(layout="wide")
st.title("Bare")
for number, fig in enumerate(figures()):
    st.plotly_chart(fig, key=f"figure-{number}")
"""
BARE_TILES = """
import json
from pathlib import Path
import streamlit as st

tiles = json.loads((Path(__file__).parent / "shown.json").read_text(encoding="utf-8"))
st.set_page_config(layout="wide")
st.title("Bare")
words = "".join(f"<span class='tile'>{one['id']} {one['face']} {one['class']}</span> " for one in tiles)
st.html(f"<div class='gallery'>{words}</div>")
"""


class Page(NamedTuple):
    """A page that is measured.

    Attributes:
        address: of the page, with what it is about.
        ready: a selector of what is there once everything is computed.
        sign: a selector of what makes the page useful.
        bare: source of the page beside it.
        shown: what the bare page shows, as JSON; None takes the figures from the page itself.
    """

    address: str
    ready: str
    sign: str
    bare: str
    shown: str | None = None


def history(home: Path, *, quick: bool) -> Page:
    """Ten thousand answers to look through, some of them wrong."""
    import numpy as np

    from workbench.app.history import decisions
    from workbench.sessions import Operation, Session
    from workbench.store import Store

    most = 2_000 if quick else 10_000
    with own_home(home):
        store = Store.open()
        session = Session.create(
            "overlapping",
            pool_options={"n_items": int(1.3 * most)},
            store=store,
            classifier="logistic-regression",
            policy="random",
        )
        truth, rng = session.pool.truth, np.random.default_rng(0)
        assert truth is not None
        done = 0
        while done < most:
            asks = session.ask(min(250, most - done))
            wrong = rng.random(len(asks)) < 0.03
            codes = [int(truth[a.item] + w) % len(session.classes) for a, w in zip(asks, wrong, strict=True)]
            session.apply(
                [
                    Operation(f"o{done}-{n}", "label", ask=a.id, label=session.classes[code])
                    for n, (a, code) in enumerate(zip(asks, codes, strict=True))
                ]
            )
            done += len(asks)
        session.refit()
        shown = decisions.tiles(session.pool, decisions.decisions(session)[:200], {}, "")
        store.close()
    compared = ".st-key-review-verdict strong:has-text('look')"
    return Page(f"/history?project={session.id}", compared, TILES, BARE_TILES, json.dumps(shown))


def compare(home: Path, *, quick: bool) -> Page:
    """A comparison of two policies, ten runs each."""
    from workbench.app.compare import comparison
    from workbench.app.serving import background
    from workbench.store import Store
    from workbench.studies import StudySpec

    with own_home(home):
        Store.open()
        seeds, budget = (3, 10) if quick else (10, 40)
        spec = StudySpec(
            "app", ("wine",), ("logistic-regression",), ("margin", "random"), seeds=seeds, budget=budget
        )
        token = comparison.start(spec)
        job = comparison.job_of(token)
        if job is None or not job.wait(3_600) or job.status != "done":
            raise RuntimeError(f"The comparison did not end: {job and job.error}")
        Store.open().close()
        for process in (background.long_work, background.short_work):
            process().end()
    return Page(f"/compare?comparison={token}", PLOT, PLOT, BARE_FIGURES)


def uncertainty(home: Path, *, quick: bool) -> Page:
    """A map of a hundred thousand items."""
    made, _ = project(home, "overlapping", (40,), n_items=10_000 if quick else 124_999)
    return Page(f"/uncertainty?project={made}", PLOT, PLOT, BARE_FIGURES)


PAGES: dict[str, tuple[str, Callable[..., Page]]] = {
    "history": ("History of 10,000 labels", history),
    "compare": ("Compare of 20 runs", compare),
    "uncertainty": ("Uncertainty of 100,000 points", uncertainty),
}


def _paint(browser: Any, address: str, sign: str) -> float:
    """Seconds from an address to its sign being visible, in a browser without a cache."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(3 * PATIENCE)
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(f"{sign}:visible")
    took = time.perf_counter() - began
    context.close()
    return took


def paints(only: str | None = None, *, quick: bool = False) -> bool:
    """First useful paint of each page in a new browser, in turn with its figure alone.

    Everything that the page computes was computed by a visit before: what is compared is showing it.

    Args:
        only: one of `PAGES`.
        quick: small pages, few visits.

    Returns:
        Whether every ratio of medians is at most `GOAL`.
    """
    turns = 3 if quick else 9
    within = True
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, (title, make) in PAGES.items():
            if only not in (None, name):
                continue
            home, place = Path(folder) / name, Path(folder) / f"bare-{name}"
            home.mkdir()
            made = make(home, quick=quick)
            ours = Server(home, {"WORKBENCH_WARM": "0"}).start()
            bare = bare_server(place, made.bare)
            try:
                page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
                page.set_default_timeout(3 * PATIENCE)
                visit(page, ours.url + made.address)
                page.wait_for_selector(f"{made.ready}:visible")
                page.wait_for_timeout(3_000)
                shown = made.shown if made.shown is not None else json.dumps(page.evaluate(CAPTURE))
                page.context.close()
                (place / "shown.json").write_text(shown, encoding="utf-8")
                bare.start()
                sides = {"ours": ours.url + made.address, "bare": bare.url}
                for address in sides.values():
                    _paint(browser, address, made.sign)
                times: dict[str, list[float]] = {side: [] for side in sides}
                for turn in range(turns):
                    for side in list(sides) if turn % 2 else list(reversed(sides)):
                        times[side].append(_paint(browser, sides[side], made.sign))
            finally:
                ours.stop()
                bare.stop()
            median = {side: statistics.median(values) for side, values in times.items()}
            ratio = median["ours"] / median["bare"]
            within &= ratio <= GOAL
            print(
                f"{title}{', small' if quick else ''}: {median['ours']:.2f} s, its figure alone "
                f"{median['bare']:.2f} s, ratio {ratio:.2f} (at most {GOAL:g}), "
                f"median of {turns} alternated visits",
                flush=True,
            )
    return within


def main(arguments: list[str] | None = None) -> int:
    """Run them; the exit code says whether all stayed within their bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks big_pages", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small pages, few visits")
    parser.add_argument("--only", choices=PAGES, help="one page")
    given = parser.parse_args(arguments)
    return 0 if paints(given.only, quick=given.quick) else 1


if __name__ == "__main__":
    raise SystemExit(main())
