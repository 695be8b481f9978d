"""The teaching pages: sliders, first paint and maps beside bare pages with the same figures."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.app import bare_server
from benchmarks.driving import PATIENCE, Server, chromium, own_home, settled, visit

BARE = """
import json
from pathlib import Path
import plotly.graph_objects as go
import streamlit as st

@st.cache_resource
def figures():
    text = (Path(__file__).parent / "figures.json").read_text(encoding="utf-8")
    return [[go.Figure(one) for one in place] for place in json.loads(text)]

st.set_page_config(layout="wide")
st.title("Bare")
place = st.select_slider("Place", [0, 1], key="place")
for number, fig in enumerate(figures()[place]):
    st.plotly_chart(fig, key=f"figure-{number}")
"""
FIGURES = "[data-testid=stMain] .js-plotly-plot"
# a figure of the run before stays hidden in the page for a while
SIGNATURE = """
window.figureSignature = () => JSON.stringify(
  [...document.querySelectorAll('FIGURES')].filter(g => g.offsetParent).map(
  g => (g._fullData || []).map(d => [d.name, ...['x', 'y', 'z'].map(a => d[a] && d[a].length
    ? [d[a].length, ...Array.from(d[a]).slice(0, 40).map(String)] : 0),
    d.marker && d.marker.color && d.marker.color.length ? Array.from(d.marker.color).slice(0, 40).map(String)
    : 0])));
""".replace("FIGURES", FIGURES)
# items of the map that lie well within it, on the screen
PLACES = """
n => { const g = document.querySelector('FIGURES'), l = g._fullLayout, box = g.getBoundingClientRect();
  const d = g._fullData.filter(t => t.mode === 'markers').sort((a, b) => b.x.length - a.x.length)[0];
  const found = [];
  for (let i = 0; i < d.x.length && found.length < n; i += 97) {
    const x = l.xaxis.d2p(d.x[i]), y = l.yaxis.d2p(d.y[i]);
    if (x > 80 && x < l.xaxis._length - 80 && y > 80 && y < l.yaxis._length - 80)
      found.push([box.left + l.xaxis._offset + x, box.top + l.yaxis._offset + y]); }
  return found; }
""".replace("FIGURES", FIGURES)
POINTED = """
() => { const g = document.querySelector('FIGURES'); let began = null;
  document.addEventListener('mousemove', () => { began = performance.now(); }, {once: true, capture: true});
  window.pointed = new Promise(done => { const answer = () => { g.removeListener('plotly_hover', answer);
    requestAnimationFrame(() => done(performance.now() - began)); }; g.on('plotly_hover', answer); }); }
""".replace("FIGURES", FIGURES)
# places of lessons that are stored and ask for no guess
LINKS = {
    "likelihoods": "/lessons?lesson=likelihoods&noise=0.25",
    "inducing": "/lessons?lesson=inducing&points=16",
    "over-confident": "/lessons?lesson=over-confident&noise=0.25",
}
CAPTURE = """
() => [...document.querySelectorAll('FIGURES')].filter(g => g.offsetParent).map(g => {
  const plain = (_, v) => ArrayBuffer.isView(v) ? Array.from(v) : v;
  const layout = Object.assign({}, g.layout); delete layout.template; delete layout.width;
  return JSON.parse(JSON.stringify({data: g.data, layout}, plain)); })
""".replace("FIGURES", FIGURES)
WATCH = """
target => { const before = figureSignature(); window.answered = new Promise(done => {
  document.addEventListener('keydown', () => { const began = performance.now();
    const there = () => { const now = figureSignature(); return target ? now === target : now !== before; };
    const look = () => there() ? done(performance.now() - began) : requestAnimationFrame(look);
    requestAnimationFrame(look); }, {once: true, capture: true}); }); }
"""
DRAG = """
() => { window.frames_ = []; window.waits = []; let last = null;
  const frame = t => { if (last !== null) frames_.push(t - last); last = t;
    window.dragging = requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  document.addEventListener('mousemove', e => requestAnimationFrame(() =>
    waits.push(performance.now() - e.timeStamp)), {capture: true}); }
"""
# the sliders of the pages: name -> (address, the slider)
SLIDERS = {
    "Lessons, noise": (
        # not its preset, which asks for a guess first
        "/lessons?lesson=over-confident&noise=0.25",
        ".st-key-lesson-read-text",
    ),
    "Calibration, bins": ("/calibration?project={project}", ".st-key-cal-bins"),
    "Uncertainty, round": ("/uncertainty?project={project}", "[class*=st-key-round-]"),
}


def project(home: Path, pool: str, counts: tuple[int, ...] = (20, 30), **options: Any) -> tuple[str, int]:
    """A project with labels and a fit after so many of them.

    Args:
        home: of the server.
        pool: a registry name.
        counts: labels at each fit.
        options: of the pool.

    Returns:
        Its id and how many items may be asked about.
    """
    from workbench.sessions import Session
    from workbench.store import Store

    with own_home(home):
        store = Store.open()
        session = Session.create(pool, pool_options=options, store=store)
        truth = session.pool.truth
        assert truth is not None
        items = np.random.default_rng(0).permutation(session.pool.trainable)[: counts[-1]]
        done = 0
        for count in counts:
            for item in items[done:count]:
                session.label_items([int(item)], session.classes[int(truth[item])])
            session.refit()
            done = count
        store.close()
    return session.id, len(session.pool.trainable)


def _slider(page: Any, where: str) -> Any:
    return page.locator(f"{where} input[type=range]").first


def _move(page: Any, where: str, key: str, target: str = "") -> float:
    """Milliseconds from a key on the slider until all figures are those of the target."""
    thumb = _slider(page, where)
    thumb.focus()
    page.evaluate(WATCH, target)
    thumb.press(key)
    took = float(page.evaluate("window.answered"))
    settled(page)
    return took


def _both_places(page: Any, where: str, keys: tuple[str, str]) -> list[tuple[str, Any]]:
    """Go to a place and another: what the figures are there, as a signature and as JSON."""
    found = []
    for key in keys:
        _move(page, where, key)
        _drawn(page)
        found.append((page.evaluate("figureSignature()"), page.evaluate(CAPTURE)))
    return found


def _opened(browser: Any, address: str, where: str = "", folded: str = "") -> Any:
    page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
    page.set_default_timeout(3 * PATIENCE)
    page.add_init_script(SIGNATURE)
    visit(page, address)
    _drawn(page)
    if folded:
        page.click(folded)
    if where:
        page.wait_for_selector(f"{where} input[type=range]")
    return page


def _drawn(page: Any) -> None:
    page.wait_for_selector(f"{FIGURES} .main-svg:visible")
    settled(page)
    # figures that stand below others come a little later
    page.wait_for_timeout(1500)


def sliders(*, quick: bool = False) -> bool:
    """A slider of each page between two computed places, against a bare slider with the same figures.

    Args:
        quick: fewer moves.

    Returns:
        Whether every ratio of medians is at most 1.5.
    """
    turns = 6 if quick else 20
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder) / "ours"
        home.mkdir()
        made, _ = project(home, "digits")
        ours = Server(home, {"WORKBENCH_WARM": "1"}).start()
        try:
            for number, (name, (address, where)) in enumerate(SLIDERS.items()):
                folded = ".st-key-cal-controls summary" if name.startswith("Calibration") else ""
                page = _opened(browser, ours.url + address.format(project=made), where, folded)
                if name.startswith("Uncertainty"):
                    # two components stand in until the map is laid out
                    laid = page.get_by_text("Neighbours stay neighbours")
                    laid.or_(page.get_by_text("neighbour map needs")).first.wait_for(
                        state="attached"
                    )  # folded
                    _drawn(page)
                # there and back: the first visit computes
                ours_at = _both_places(page, where, ("ArrowLeft", "ArrowRight"))
                place = Path(folder) / f"bare-{number}"
                bare = bare_server(place, BARE)
                captured = [figures for _, figures in ours_at]
                (place / "figures.json").write_text(json.dumps(captured), encoding="utf-8")
                bare.start()
                try:
                    plain = _opened(browser, bare.url, ".st-key-place")
                    bare_at = _both_places(plain, ".st-key-place", ("ArrowRight", "ArrowLeft"))
                    sides = {"ours": (page, where, ours_at), "bare": (plain, ".st-key-place", bare_at[::-1])}
                    times: dict[str, list[float]] = {"ours": [], "bare": []}
                    at = {"ours": 1, "bare": 0}
                    for turn in range(turns):
                        for side in list(sides) if turn % 2 else list(reversed(sides)):
                            there, slider, places = sides[side]
                            key = "ArrowLeft" if at[side] else "ArrowRight"
                            at[side] = 1 - at[side]
                            times[side].append(_move(there, slider, key, places[at[side]][0]))
                finally:
                    bare.stop()
                median = {side: statistics.median(values) for side, values in times.items()}
                ratio = median["ours"] / median["bare"]
                worst = max(worst, ratio)
                print(
                    f"{name}: {median['ours']:.0f} ms, bare slider with the same {len(captured[0])} "
                    f"figure(s) {median['bare']:.0f} ms, ratio {ratio:.2f} (at most 1.5), median of {turns} "
                    "alternated moves",
                    flush=True,
                )
                page.context.close()
                plain.context.close()
        finally:
            ours.stop()
    return worst <= 1.5


def maps(*, quick: bool = False) -> bool:
    """Drag the map of 20,000 points, and see that a larger one is thinned and says so.

    Args:
        quick: a shorter drag.

    Returns:
        Whether a frame of the drag took at most 200 ms in the mean, and the thinned map says so.
    """
    steps = 40 if quick else 120
    good = True
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder)
        # a fifth of the items is kept for measuring
        made = [project(home, "overlapping", (40,), n_items=n) for n in (24_999, 50_000)]
        server = Server(home, {"WORKBENCH_WARM": "1"}).start()
        try:
            for identity, n_items in made:
                page = _opened(browser, f"{server.url}/uncertainty?project={identity}")
                drawn = page.evaluate(
                    f"document.querySelector('{FIGURES}')._fullData.filter(d => d.mode === 'markers')"
                    ".reduce((n, d) => n + d.x.length, 0)"
                )
                kinds = page.evaluate(
                    f"[...new Set(document.querySelector('{FIGURES}')._fullData.map(d => d.type))].join(', ')"
                )
                words = page.evaluate(
                    f"(document.querySelector('{FIGURES}').layout.annotations || []).map(a => a.text).join()"
                )
                place = Path(folder) / f"bare-{n_items}"
                bare = bare_server(place, BARE)
                captured = page.evaluate(CAPTURE)
                (place / "figures.json").write_text(json.dumps([captured, captured]), encoding="utf-8")
                bare.start()
                try:
                    plain = _opened(browser, bare.url)
                    theirs, _, _ = _dragged(plain, steps)
                    frames, waits, moved = _dragged(page, steps)
                    hovers = {"ours": _hovered(page), "bare": _hovered(plain)}
                    plain.context.close()
                finally:
                    bare.stop()
                ratio = statistics.median(frames) / statistics.median(theirs)
                print(
                    f"map of {n_items:,} items beside plain Plotly with the same points: a frame of the drag "
                    f"takes {statistics.median(frames):.0f} ms against {statistics.median(theirs):.0f} ms, "
                    f"ratio {ratio:.2f}; pointing at an item answers after {hovers['ours']:.0f} ms (at "
                    f"most 100) against {hovers['bare']:.0f} ms",
                    flush=True,
                )
                print(
                    f"map of {n_items:,} items: {drawn:,} points drawn ({kinds}), says: {words}; a drag of "
                    f"{steps} moves shifts it by {moved:.1f} units: {1000 / np.mean(frames):.0f} frames a "
                    f"second, a frame takes {statistics.median(frames):.0f} ms in the median and "
                    f"{np.quantile(frames, 0.95):.0f} ms at 95 %, from mouse to frame "
                    f"{statistics.median(waits):.0f} ms",
                    flush=True,
                )
                # a browser without a GPU draws WebGL in software
                good &= float(np.mean(frames)) <= 200 and moved > 0 and "scattergl" in kinds
                good &= (drawn < n_items) == ("drawn" in words)
                page.context.close()
        finally:
            server.stop()
    return good


def _hovered(page: Any, times: int = 12) -> float:
    """Milliseconds, in the median, from a move of the mouse onto an item until the chart has it."""
    places = page.evaluate(PLACES, times)
    took = []
    for x, y in places:
        page.mouse.move(x + 60, y + 45)
        page.wait_for_timeout(150)
        page.evaluate(POINTED)
        page.mouse.move(x, y)
        found = page.evaluate("Promise.race([pointed, new Promise(no => setTimeout(() => no(null), 3000))])")
        if found is not None:
            took.append(float(found))
    return statistics.median(took) if took else float("nan")


def _dragged(page: Any, steps: int) -> tuple[list[float], list[float], float]:
    """Milliseconds of each frame and from each move to its frame, and how far the x axis went."""
    axis = f"document.querySelector('{FIGURES}')._fullLayout.xaxis.range[0]"
    box = page.locator(f"{FIGURES} .nsewdrag").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = page.evaluate(axis)
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(DRAG)
    for step in range(steps):
        page.mouse.move(x + 1.5 * step, y + 0.5 * step)
    frames, waits = page.evaluate("(cancelAnimationFrame(dragging), [frames_, waits])")
    page.mouse.up()
    page.wait_for_timeout(500)
    return frames, waits, abs(page.evaluate(axis) - before)


def paint(*, quick: bool = False) -> bool:
    """A lesson's first paint, in a new browser each time, in turn with a bare page with the same figures.

    Args:
        quick: fewer visits.

    Returns:
        Whether every ratio of medians is at most 1.5.
    """
    turns = 4 if quick else 12
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder) / "ours"
        home.mkdir()
        ours = Server(home, {"WORKBENCH_WARM": "0"}).start()
        try:
            for number, (name, link) in enumerate(LINKS.items()):
                address = ours.url + link
                page = _opened(browser, address)
                captured = page.evaluate(CAPTURE)
                page.context.close()
                place = Path(folder) / f"bare-{number}"
                bare = bare_server(place, BARE)
                (place / "figures.json").write_text(json.dumps([captured, captured]), encoding="utf-8")
                bare.start()
                times: dict[str, list[float]] = {"ours": [], "bare": []}
                try:
                    for _ in range(turns):
                        for side, where in (("ours", address), ("bare", bare.url)):
                            times[side].append(_first_paint(browser, where))
                finally:
                    bare.stop()
                median = {side: statistics.median(values) for side, values in times.items()}
                ratio = median["ours"] / median["bare"]
                worst = max(worst, ratio)
                print(
                    f"lesson {name}: first paint {median['ours']:.2f} s, bare page with the same "
                    f"{len(captured)} figure(s) {median['bare']:.2f} s, ratio {ratio:.2f} (at most 1.5), "
                    f"median of {turns} alternated visits",
                    flush=True,
                )
        finally:
            ours.stop()
    return worst <= 1.5


def _first_paint(browser: Any, address: str) -> float:
    """Seconds until a figure stands, in a browser that knows nothing yet."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(3 * PATIENCE)
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(f"{FIGURES} .main-svg:visible")
    took = time.perf_counter() - began
    context.close()
    return took


def embedding(*, quick: bool = False) -> bool:
    """Neighbour maps on one core: seconds of the processor, what they keep, new rows.

    Fashion-MNIST is looked for where the known sets are (WORKBENCH_DATA).

    Args:
        quick: digits alone.

    Returns:
        Whether no map took more than 90 seconds of one core.
    """
    from threadpoolctl import threadpool_limits

    from workbench.errors import InputError
    from workbench.pools import load_pool
    from workbench.sessions.embedding import neighbour_map

    worst = 0.0
    for name, options, most in (
        ("digits", {}, None),
        ("images:fashion_mnist", {"features": "pixels"}, 20_000),
        ("images:fashion_mnist", {"features": "pixels"}, 60_000),
    )[: 1 if quick else 3]:
        try:
            pool = load_pool(name, **options)
        except InputError as error:
            print(f"{name}: not measured: {error}", flush=True)
            continue
        pool = _part(pool, most)
        with threadpool_limits(1):
            began = time.process_time()
            made = neighbour_map(pool)
            took = time.process_time() - began
            began = time.process_time()
            some = np.asarray(pool.features[: min(2_000, len(pool))]) + 1e-3
            made.place(some)
            placed = time.process_time() - began
        worst = max(worst, took)
        print(
            f"{name}, {len(pool):,} items: {took:.1f} s of one core (at most 90), trustworthiness "
            f"{made.trust:.3f}, two components {made.trust_of_components:.3f}, on {made.n_judged} items; "
            f"{len(some):,} further rows placed in {placed:.1f} s",
            flush=True,
        )
    return worst <= 90


def _part(pool: Any, most: int | None) -> Any:
    """The first items of a pool in a fixed random order."""
    from workbench.pools.building import number_pool

    if most is None or len(pool) <= most:
        return pool
    rows = np.sort(np.random.default_rng(0).choice(len(pool), most, replace=False))
    X = np.asarray(pool.features[rows], dtype=np.float32)
    return number_pool(
        pool.name, X, None, (), tuple(map(str, pool.feature_map.columns)), common_scale=pool.common_scale
    )


PARTS = {"sliders": sliders, "paint": paint, "maps": maps, "embedding": embedding}


def main(arguments: list[str] | None = None) -> int:
    """Run them; the exit code says whether all stayed within their bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks teaching", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer moves, small pools")
    parser.add_argument("--only", choices=PARTS, help="one part")
    given = parser.parse_args(arguments)
    parts = [given.only] if given.only else list(PARTS)
    within = [PARTS[part](quick=given.quick) for part in parts]
    return 0 if all(within) else 1


if __name__ == "__main__":
    raise SystemExit(main())
