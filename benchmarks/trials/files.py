"""Damaged and hostile files over every reader: tables, arrays, images, texts, label imports, feature maps.

A reader may answer with a pool or with one sentence for people (InputError). Everything else counts as
failed: another exception, a message that repeats the file, features that are not finite, more than ten
seconds or a gigabyte; and anything unpickled, imported because the file said so, started, connected to
or written, which an audit hook watches.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._hostile import MARK, hostile, mutated
from benchmarks.trials._sound import Reading, sound
from benchmarks.trials._watch import watched

MOST_SECONDS = 10.0
MOST_BYTES = 1 << 30
_LARGE = 500 << 20


class Outcome(NamedTuple):
    """Outcome for one file.

    Attributes:
        wrong: what went wrong, or "".
        seconds: it took.
        bytes: of memory above what the process held before, at most.
        said: the message, where it was refused.
    """

    wrong: str
    seconds: float
    bytes: int
    said: str = ""


def attempt(reading: Reading, data: bytes, *, limits: bool = True) -> Outcome:
    """Read one file and judge what comes of it.

    Args:
        reading: which reader.
        data: the file.
        limits: whether time and memory count.
    """
    from workbench.errors import InputError

    result, wrong, said = None, "", ""
    if limits and _memory("VmRSS") > _LARGE:
        _give_back()  # what an earlier file left with the allocators would hide what this one takes
    measured = limits and _reset_peak()
    before = _memory("VmRSS") if measured else 0
    began = time.process_time()  # the processor's seconds: what else the machine does is no fault of a file
    with watched() as events:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = reading.read(data)
            features = getattr(result, "features", None)
            if features is not None and not np.isfinite(np.asarray(features)).all():
                wrong = "features that are not finite"
        except InputError as error:
            said = str(error)
        except BaseException as error:
            wrong = f"{type(error).__name__}: {str(error)[:200]}"
            if isinstance(error, KeyboardInterrupt):
                raise
    seconds = time.process_time() - began
    result = None
    used = max(0, _memory("VmHWM") - before) if measured else 0
    if events:
        wrong = "; ".join(events[:3])
    elif said.count(MARK) > 100 or len(said) > 1100 or "\n" in said.strip():
        wrong = f"a message that repeats the file: {said[:100]!r} ..."
    elif limits and seconds > MOST_SECONDS:
        wrong = f"{seconds:.1f} s"
    elif limits and used > MOST_BYTES:
        wrong = f"{used / 2**20:,.0f} MB"
    return Outcome(wrong, seconds, used, said)


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) << 10
    return 0


def _give_back() -> None:
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def run(count: int = 10_000, seed: int = 0) -> Row:
    """Mutate sound files `count` times, one reader after the other, and try the hostile ones.

    Args:
        count: mutated files.
        seed: of the damage.
    """
    import platformdirs  # noqa: F401  readers import both on the way of some files alone
    import skimage.feature  # noqa: F401

    readings = sound()
    failures: list[str] = []
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")
    n_refused = 0
    for reading in readings:  # what a reader imports on first use is no fault of a file
        outcome = attempt(reading, reading.data, limits=False)
        if outcome.said or (outcome.wrong and "import " not in outcome.wrong):
            failures.append(f"sound {reading.name}: {outcome.wrong or outcome.said}")

    def files() -> Iterator[tuple[Reading, bytes, str]]:
        for i in range(count):
            reading = readings[i % len(readings)]
            yield reading, mutated(reading.data, np.random.default_rng([seed, i])), f"mutation {seed}, {i}"
        for reading in hostile():
            yield reading, reading.data, "hostile"

    tried = 0
    with TemporaryDirectory() as home, patch.dict(os.environ, WORKBENCH_FEATURES=home):
        for reading, data, which in files():
            tried += 1
            outcome = attempt(reading, data)
            n_refused += bool(outcome.said)
            slowest = max(slowest, (outcome.seconds, reading.name))
            largest = max(largest, (outcome.bytes, reading.name))
            if outcome.wrong:
                failures.append(f"{reading.name} ({which}): {outcome.wrong}")
    return Row.of(
        "damaged and hostile files, every reader",
        tried,
        failures,
        f"slowest {slowest[1]}, largest {largest[1]}",
        counts={"refused with a sentence": n_refused},
        most={"s the slowest": slowest[0], "MB the most": largest[0] / 2**20},
    )
