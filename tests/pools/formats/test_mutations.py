"""The trial of damaged files in short, over every reader; and that the trial sees what is wrong."""

import gc
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.trials import __main__ as trials
from benchmarks.trials import _hostile, _sound, files
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.formats import FORMATS, format_of
from workbench.pools.formats.files import File


class Trap:
    def __reduce__(self) -> tuple:
        return (os.getcwd, ())


@pytest.mark.slow  # every format at once; each has tests beside this, and tables/test_fuzz.py damages four
def test_sound_files_open_and_damaged_ones_open_or_are_explained() -> None:
    gc.collect()  # folders that other tests left to the garbage collector go now
    readings, n = _sound.sound(), 460
    assert len(readings) > 50
    kinds = {
        format_of(File(r.data, r.name)).name for r in readings if getattr(r.read, "func", None) is load_pool
    }
    assert kinds == set(FORMATS), "each format has a sound file in benchmarks/trials/_sound.py"
    for reading in readings:
        assert files.attempt(reading, reading.data, limits=False)[::3] == ("", ""), reading.name
    wrong = []
    refused = 0
    for i in range(n):
        reading = readings[i % len(readings)]
        data = _hostile.mutated(reading.data, np.random.default_rng([20, i]))
        outcome = files.attempt(reading, data, limits=False)
        refused += bool(outcome.said)
        if outcome.wrong:
            wrong.append((i, reading.name, outcome.wrong))
    assert wrong == []
    assert n / 4 < refused < n, "damage must be damage, and some of it harmless"


def unpickle(data: bytes) -> None:
    pickle.loads(pickle.dumps(Trap()))


def write(data: bytes) -> None:
    Path(os.devnull).write_bytes(data)


def fail(data: bytes) -> None:
    raise KeyError("a")


def repeat(data: bytes) -> None:
    raise InputError(f"This is wrong: {_hostile.MARK * 500}")


def infinite(data: bytes) -> object:
    return type("Pool", (), {"features": np.array([[np.inf]])})()


def start(data: bytes) -> None:
    os.system("true")


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (unpickle, "pickle.find_class"),
        (write, "open for writing"),
        (fail, "KeyError"),
        (repeat, "repeats the file"),
        (infinite, "not finite"),
        (start, "os.system"),
    ],
)
def test_the_trial_notices(read, what) -> None:
    outcome = files.attempt(_sound.Reading("x", b"", read), b"", limits=False)
    assert what in outcome.wrong


def test_the_same_seed_does_the_same_damage() -> None:
    reading = _sound.sound()[0]
    one, two, other = (_hostile.mutated(reading.data, np.random.default_rng([seed, 5])) for seed in (1, 1, 2))
    assert one == two and one != other


def test_trials_are_listed_and_run_by_name(capsys, monkeypatch) -> None:
    assert "files" in trials.names()
    assert trials.main([]) == 0 and "files" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        trials.main(["nosuch"])
    monkeypatch.setattr(files, "run", lambda count=3, seed=0: trials.Row("t", count, seed, failures=("a",)))
    assert trials.main(["files"]) == 0 and "| t | 3 | 0 |" in capsys.readouterr().out
    assert trials.main(["files", "--count", "7", "--seed", "1"]) == 1
    assert sys.modules["benchmarks.trials.files"] is files
