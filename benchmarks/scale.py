"""Rounds on a million rows and on a hundred thousand texts; the first item of whole sets of images.

Times are processor time of this process, and wall time beside it where somebody waits.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import high_water

GOAL_ROWS = 0.5  # seconds a round in the mean
GOAL_TEXTS = 1.0
GOAL_FIRST = 3.0  # seconds to the first item of images whose features are kept
PAIRS = 0.5  # of the drawn texts, how many are made of two questions of one class


def _peak() -> str:
    """Of the process so far: a line after others may show theirs; run one function alone for its own."""
    return f"peak memory of the process {high_water() / 1e3:.2f} GB"


def _rounds(what: str, pool: Any, budget: int, goal: float, initial: str = "one-per-class") -> bool:
    """Print what the rounds of a run cost; the first, which measures the geometry, lies outside."""
    from workbench.engine.runtime import prepare
    from workbench.sessions import simulate
    from workbench.sessions.drawing import ASKED_AMONG
    from workbench.sessions.latents import MANY
    from workbench.sessions.spec import MEASURED

    prepare()
    among = ASKED_AMONG if pool.trainable.size > MANY else 0  # as in a project
    run = iter(simulate(pool, budget=budget, seed=0, initial=initial, measured=MEASURED, asked_among=among))
    first = next(run)
    spent, parts, last = [], [], first
    began = time.process_time()
    for last in run:
        now = time.process_time()
        spent.append(now - began)
        parts.append([last.seconds[name] for name in ("fit", "score", "query")])
        began = now
    mean, wall = float(np.mean(spent)), np.mean(parts, axis=0)
    print(
        f"{what}: rounds {len(spent)}, labels {last.n_labelled}, mean {mean:.2f} s of processor "
        f"(median {np.median(spent):.2f}, most {np.max(spent):.2f}; wall, mean: fit {wall[0]:.2f}, measure "
        f"{wall[1]:.2f}, ask {wall[2]:.2f}), error {last.error:.3f} on {last.n_test:,} items; {_peak()}; "
        f"goal {goal:g} s {'met' if mean < goal else 'not met'}",
        flush=True,
    )
    return mean < goal


def rows(*, quick: bool = False) -> bool:
    """Rounds of the default on a million poker hands: goal 0.5 s in the mean."""
    from workbench.pools import load_pool

    pool = load_pool("poker", n_items=50_000 if quick else 1_025_010).split(0)
    return _rounds(f"{len(pool):,} poker hands", pool, 10 if quick else 100, GOAL_ROWS)


def many_labels(*, quick: bool = False) -> bool:
    """The same from 200 labels on, where the mean has points of its own."""
    from workbench.pools import load_pool

    pool = load_pool("poker", n_items=50_000 if quick else 1_025_010).split(0)
    what = f"{len(pool):,} poker hands from 200 labels on"
    return _rounds(what, pool, 5 if quick else 40, GOAL_ROWS, "random:200")


def written(n: int, path: Path, seed: int = 0) -> None:
    """Write a table of n texts of 77 classes: questions of banking77, half of them two of a class in one."""
    from workbench.pools.datasets.catalogue import find_file

    source = find_file("text/banking77/train.csv")
    if source is None:
        raise SystemExit("banking77 lies in no data folder; WORKBENCH_DATA names one.")
    with source.open(encoding="utf-8", newline="") as file:
        found = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    of: dict[str, list[str]] = {}
    for text, name in found:
        of.setdefault(name, []).append(text)
    rng = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("text", "category"))
        for row in rng.integers(0, len(found), n).tolist():
            text, name = found[row]
            if rng.random() < PAIRS:
                words, more = text.split(), of[name][int(rng.integers(len(of[name])))].split()
                text = " ".join([*words[: len(words) // 2 + 1], *more[len(more) // 2 :]])
            out.writerow((text, name))


def texts(*, quick: bool = False) -> bool:
    """Features of 100,000 texts and rounds with 77 classes on them: goal 1 s in the mean."""
    from workbench.pools import load_pool

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.csv"
        written(5_000 if quick else 100_000, path)
        os.environ["WORKBENCH_FEATURES"] = str(Path(folder) / "features")
        for words in ("features learnt", "features read again"):
            began, wall = time.process_time(), time.monotonic()
            pool = load_pool(path, text_column="text", target="category")
            spent, waited = time.process_time() - began, time.monotonic() - wall
            print(
                f"{len(pool):,} texts, {pool.n_features} features: {words}, {spent:.1f} s of processor, "
                f"{waited:.1f} s; {_peak()}",
                flush=True,
            )
        ok = _rounds(f"{len(pool):,} texts", pool.split(0), 10 if quick else 60, GOAL_TEXTS)
    return ok


def first(*, quick: bool = False) -> bool:
    """From the click to the first item of known images whose features are kept: goal 3 s."""
    from workbench.pools import load_pool, present_sets
    from workbench.sessions import Session
    from workbench.store import Store

    met = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBENCH_HOME"] = folder
        store = Store.open()
        for entry in present_sets():
            if entry.group != "images" or (quick and entry.name != "mnist"):
                continue
            options = {"features": "shapes"}
            for words in ("to learn", "kept"):  # the second time what a first one leaves is there
                began, wall = time.process_time(), time.monotonic()
                pool = load_pool(entry.full_name, **options)
                opened = time.process_time()
                session = Session.create(pool, source=entry.full_name, pool_options=options, store=store)
                pool.items.show(session.ask()[0].item)
                waited = time.monotonic() - wall
                print(
                    f"{entry.name}, {len(pool):,} images, {words}: first item after "
                    f"{time.process_time() - began:.2f} s of processor (opening {opened - began:.2f}), "
                    f"{waited:.2f} s; {_peak()}",
                    flush=True,
                )
            met = met and waited <= GOAL_FIRST
    return met


def clicked(*, quick: bool = False) -> bool:
    """From the click on the Data page to the first item drawn, of known sets whose features are kept."""
    from benchmarks.driving import PATIENCE, Server, chromium, settled, visit
    from workbench.pools import present_sets

    names = [entry.name for entry in present_sets() if entry.group == "images"]
    met = True
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        # as a person has it: the engine loads while the first page is looked at
        own = {"WORKBENCH_WARM": "1", "WORKBENCH_FEATURES": str(Path(folder) / "features")}
        server = Server(Path(folder), environment=own).start()
        try:
            for name in ["mnist"] if quick else names:
                for words in ("features to learn", "features kept", "once more"):
                    page = browser.new_page(viewport={"width": 1400, "height": 1000})
                    page.set_default_timeout(15 * PATIENCE)  # features to learn take their minutes
                    visit(page, server.url)
                    page.get_by_role("combobox", name="Set").click()
                    page.get_by_role("option", name=re.compile(f"^{name.replace('_', ' ')} ·")).click()
                    settled(page)
                    began = time.perf_counter()
                    page.click(".st-key-start-known button")
                    if words != "features to learn":  # there is a project of this set: the page asks
                        page.wait_for_selector(".st-key-start-a-new-one button")
                        began = time.perf_counter()
                        page.click(".st-key-start-a-new-one button")
                    page.locator(".desk .stage img").first.evaluate("picture => picture.decode()")
                    waited = time.perf_counter() - began
                    page.close()
                    load = os.getloadavg()[0]
                    print(
                        f"{name}, {words}: drawn {waited:.2f} s after the click, load {load:.0f}", flush=True
                    )
                met = met and waited <= GOAL_FIRST
        finally:
            server.stop()
    return met


ALL = (rows, many_labels, texts, first, clicked)


def main(flags: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small pools; no goal is meant")
    quick = parser.parse_args(flags).quick
    return 0 if all([work(quick=quick) for work in ALL]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
