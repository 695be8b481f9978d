"""Damaged and hostile files through the uploader, in a real browser: told in words, the page unbroken."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driving import Server, chromium, settled, visit
from benchmarks.trials import Row
from benchmarks.trials._hostile import hostile, mutated
from benchmarks.trials._sound import sound
from benchmarks.trials.files import MOST_BYTES, MOST_SECONDS

_TICKS = os.sysconf("SC_CLK_TCK")
_TOLD = "[data-testid=stAlert], .st-key-problem-0, [data-testid=stException]"
# a file that is taken has the page for itself; one that is not leaves the uploader there
_ANSWERED = f"""() => document.querySelector('{_TOLD}')
    || !document.querySelector('[data-testid=stFileUploader]')"""
MOST_UPLOADED = 200 << 20


def run(count: int = 40, seed: int = 0) -> Row:
    """Give the uploader `count` files, one after the other: hostile ones first, then damaged ones.

    Args:
        count: files.
        seed: of the damage, and which slice of the hostile ones: parts with seeds from 0 on have them all.
    """
    from playwright.sync_api import TimeoutError

    failures: list[str] = []
    told = 0
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[float, str] = (0.0, "")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        server = Server(Path(folder) / "home").start()
        try:
            page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
            page.set_default_timeout(120_000)
            assert server.process is not None
            process = Path("/proc") / str(server.process.pid)
            visit(page, server.url)
            chosen = page.locator("[data-testid=stFileUploader] input").get_attribute("accept") or ""
            endings = tuple(one.strip() for one in chosen.split(",") if one.strip().startswith("."))
            for number, (name, data) in enumerate(_files(count, seed, endings or ("",))):
                visit(page, server.url)
                page.wait_for_selector("[data-testid=stFileUploader]")
                path = Path(folder) / f"n{number}-{name}"
                path.write_bytes(data)
                before, rest = _spent(process), _memory(process, "VmRSS")
                (process / "clear_refs").write_text("5")
                stuck = []
                try:
                    page.set_input_files("[data-testid=stFileUploader] input", str(path))
                    page.wait_for_function(_ANSWERED)
                    settled(page)
                except TimeoutError as error:
                    stuck = [f"not answered: {error}"]
                path.unlink()
                spent, used = _spent(process) - before, _memory(process, "VmHWM") - rest
                slowest, largest = max(slowest, (spent, name)), max(largest, (used, name))
                words = page.locator(_TOLD).all_inner_texts()
                told += bool(words)
                wrong = stuck + page.locator("[data-testid=stException]").all_inner_texts()
                wrong += [f"a message of {len(text):,} characters" for text in words if len(text) > 1500]
                wrong += [text for text in words if "Traceback" in text or "Error:" in text]
                wrong += [f"{spent:.1f} s"] if spent > MOST_SECONDS else []
                wrong += [f"{used / 2**20:,.0f} MB"] if used > MOST_BYTES else []
                failures += [f"{number} {name}: {line[:300]}" for line in wrong]
            if server.process.poll() is not None:
                failures.append("the server has ended")
        finally:
            server.stop()
    return Row(
        "damaged and hostile files through the uploader",
        count,
        len(failures),
        f"slowest {slowest[1]}, largest {largest[1]}",
        tuple(failures[:40]),
        {"told in words": told},
        {"s of the server's processor the slowest": slowest[0], "MB the most": largest[0] / 2**20},
    )


def _files(count: int, seed: int, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of what the uploader takes: a slice of the hostile ones, then damaged pools."""
    pools = {
        r.name: r.data
        for r in sound()
        if r.name.endswith(endings) and not r.name.startswith("labels.") and not r.name.endswith(".json")
    }
    fitting = (
        reading
        for reading in hostile()
        if len(reading.data) <= MOST_UPLOADED
        and reading.name.endswith(endings)
        and not reading.name.endswith((".json", ".jsonl"))
    )
    given = 0
    for reading in islice(fitting, seed * count, (seed + 1) * count):
        given += 1
        yield reading.name, reading.data
    names = list(pools)
    for number in range(count - given):
        name = names[number % len(names)]
        yield name, mutated(pools[name], np.random.default_rng([seed, number]))


def _spent(process: Path) -> float:
    """Seconds of the processor that a process has used."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(process: Path, key: str) -> Any:
    lines = (process / "status").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(key)), 0)
