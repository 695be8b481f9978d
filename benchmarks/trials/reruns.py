"""Many rounds and many page reruns in one process: memory, files and threads stay where they are."""

from __future__ import annotations

import gc
import tempfile
import threading
from pathlib import Path

from benchmarks.driving import own_home
from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT

MEGABYTES = 50
WARM = 20


def run(count: int = 200, seed: int = 0) -> Row:
    """Do `count` rounds and a fifth as many page reruns, after a few that fill what is kept for good.

    Args:
        count: rounds; the trial of record does 10,000 and with them 2,000 reruns.
        seed: of the pool.
    """
    with tempfile.TemporaryDirectory() as folder, own_home(folder):
        return _run(count, seed)


def _run(count: int, seed: int) -> Row:
    from streamlit.testing.v1 import AppTest

    from workbench.app.access import current
    from workbench.registry import trust
    from workbench.sessions import Session

    trust(CONSTANT)
    # a fifth is kept to measure on and never asked about
    options = {"n_items": 400 + 4 * count // 3, "seed": seed}
    session = Session.create(
        "three-gaussians", pool_options=options, classifier=CONSTANT, policy="margin", annotator="ann"
    )
    current.keep(session)
    page = AppTest.from_file(str(Path(__file__).resolve().parents[2] / "workbench" / "main.py"))
    page.default_timeout = 120
    page.run()
    page.switch_page(str(Path(__file__).resolve().parents[2] / "pages" / "label.py"))
    page.query_params["project"] = session.id
    failures: list[str] = []

    def rounds(n: int) -> None:
        for number in range(n):
            (ask,) = session.ask()
            session.tell(ask.id, session.classes[number % len(session.classes)])
            session.refit()
            if number % 5 == 0:
                page.run()
                if page.exception:
                    failures.append(str(page.exception[0].value))
                elif not any(title.value == "Label" for title in page.title):
                    failures.append("the Label page was not drawn")

    rounds(WARM)
    before = _resources()
    rounds(count)
    after = _resources()
    grown = {name: after[name] - before[name] for name in after}
    if grown["MB"] > MEGABYTES:
        failures.append(f"memory grew by {grown['MB']:.0f} MB")
    failures += [f"{grown[name]:+.0f} {name}" for name in ("files", "threads") if grown[name] > 4]
    notes = ", ".join(f"{grown[name]:+.0f} {name}" for name in grown)
    label = f"{count:,} rounds and {count // 5:,} page reruns in one process"
    return Row.of(label, count, failures, notes)


def _resources() -> dict[str, float]:
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return {
        "MB": int(resident.split()[1]) / 1024,
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
    }
