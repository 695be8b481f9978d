"""`make bench`: a few costs that people feel, beside a yardstick, kept from one version to the next.

Each cost is processor time divided by that of the yardstick (matrix products and a loop of Python, measured
in turn with it), so entries of different days on one machine can be compared. An entry is appended to
`benchmarks/results/history.jsonl`; what grew since the last entry of a machine of the same shape, by more
than the noise of both, is said, and makes the command fail. `--dry` appends nothing, `--quick` repeats three
times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import kept

FILE = Path(__file__).resolve().parent / "results" / "history.jsonl"
# a cost has grown where it is this many times its noise, and this share, above the last entry
SIGMAS, SHARE = 3.0, 1.1
NOISIEST = 0.15  # of a cost: what is noisier is not measured, and cannot be found slower


def yardstick() -> None:
    """About a tenth of a second of products and of plain Python."""
    rng = np.random.default_rng(0)
    left = rng.normal(size=(500, 500))
    for _ in range(12):
        left = np.tanh(left @ left / 500)
    total = 0
    for number in range(400_000):
        total += number % 7


def costs(folder: Path) -> dict[str, Callable[[], Any]]:
    """Work to measure: name -> function, everything it needs made before."""
    from workbench import Session
    from workbench.classifiers import make_classifier
    from workbench.policies.scan import score_pool
    from workbench.pools import load_pool
    from workbench.store import Store

    digits = load_pool("digits")
    X, y = digits.features, digits.truth
    assert y is not None
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(10_000, 10))
    groups = rng.integers(0, 4, 10_000)
    wide[np.arange(10_000), groups] += 2.0
    model = make_classifier("large-margin", choice="fixed", random_state=0).fit(wide[:100], groups[:100])
    many = rng.normal(size=(100_000, 10))

    store = Store.open(folder / "labels.sqlite")

    def project(labels: int, **options: Any) -> Any:
        made = Session.create("digits", store=store, annotator="bench", options=options)
        for _ in range(labels // 20):
            for ask in made.ask(20):
                made.tell(ask.id, digits.classes[y[ask.item]])
        made.refit()
        return made

    session, fixed = project(200), project(200, choice="fixed")

    def answer(of: Any = session) -> None:
        """Ten answers, taken back again: the project is the same before every repetition."""
        for ask in of.ask(10):
            of.tell(ask.id, digits.classes[y[ask.item]])
        for _ in range(10):
            of.undo()

    def refitted(of: Any) -> None:
        """Ten answers of which one fit learns, taken back by another."""
        for ask in of.ask(10):
            of.tell(ask.id, digits.classes[y[ask.item]])
        of.refit()
        for _ in range(10):
            of.undo()
        of.refit()

    def opened() -> None:
        Session.open(session.id, store=store, annotator="bench").ask(1)

    return {
        "fit 1,000 digits": lambda: make_classifier("large-margin", choice="fixed", random_state=0).fit(
            X[:1000], y[:1000]
        ),
        "fit 100 of 10,000 x 10": lambda: make_classifier("large-margin", choice="fixed").fit(
            wide[:100], groups[:100]
        ),
        "score 100,000 rows": lambda: score_pool(many, model, top=100, threads=1),
        "ten questions, answers and undos": answer,
        "open a project of 200 labels": opened,
        "ten answers, two refits at 200 labels, the geometry chosen": lambda: refitted(session),
        "ten answers, two refits at 200 labels, the geometry fixed": lambda: refitted(fixed),
        "import workbench": lambda: subprocess.run(
            [sys.executable, "-c", "import workbench.cli"], check=True
        ),
    }


def spent(work: Callable[[], Any]) -> float:
    """Processor seconds of a call, those of its ended child processes included."""
    before, begun = os.times(), time.process_time()
    work()
    after = os.times()
    children = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return time.process_time() - begun + children


def measured(repeats: int) -> dict[str, tuple[float, float]]:
    """Name -> median ratio to the yardstick and the standard error of that median."""
    from workbench.engine.runtime import prepare

    prepare()
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, list[float]] = {}
        works = costs(Path(folder))
        for work in works.values():
            work()  # what is compiled or imported once
        for _ in range(repeats):
            for name, work in works.items():
                unit = spent(yardstick)
                found.setdefault(name, []).append(spent(work) / unit)
    return {name: _centre(np.array(ratios)) for name, ratios in found.items()}


def _centre(ratios: np.ndarray) -> tuple[float, float]:
    """Median and its standard error from the spread of the middle half."""
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return float(middle), float(1.25 * (high - low) / 1.35 / np.sqrt(len(ratios)))


def grown(now: dict[str, tuple[float, float]], before: dict[str, Sequence[float]]) -> dict[str, float]:
    """Costs that are above the last entry by more than the noise of both: name -> how many times."""
    found = {}
    for name, (value, noise) in now.items():
        if name in before and noise <= NOISIEST * value:
            last, last_noise = before[name]
            over = value - last > SIGMAS * np.hypot(noise, last_noise) and value > SHARE * last
            if over:
                found[name] = value / last
    return found


def shape() -> str:
    """Processors and kind of machine: entries of other shapes are not compared."""
    return f"{os.cpu_count()} x {kept.processor()}, Python {platform.python_version()}"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, compare with the last entry, append.

    Returns:
        0, or 1 when something got slower.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(list(arguments))
    now = measured(3 if options.quick else 15)
    entries = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.is_file() else []
    last = next((e for e in reversed(entries) if e["shape"] == shape()), {"ratios": {}, "date": "never"})
    slower = grown(now, last["ratios"])
    for name, (value, noise) in now.items():
        told = f"; {last['ratios'][name][0]:.2f} on {last['date']}" if name in last["ratios"] else ""
        print(
            f"{name}: {value:.2f} ± {noise:.2f} yardsticks{told}{'  SLOWER' if name in slower else ''}"
            f"{'  not measured: too noisy' if noise > NOISIEST * value else ''}"
        )
    if not options.dry:
        entry = {
            "date": datetime.now(UTC).date().isoformat(),
            **kept.stamp(),
            "shape": shape(),
            "ratios": {name: [round(v, 4), round(n, 4)] for name, (v, n) in now.items()},
        }
        with FILE.open("a") as file:
            file.write(json.dumps(entry) + "\n")
    return int(bool(slower))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
