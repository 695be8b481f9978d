"""Free memory goes back to the system."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.work import memory


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, and malloc_trim is glibc's")
def test_holes_between_what_stays_are_given_back() -> None:
    if memory._trim() is None:
        assert memory.give_back() is False  # another C library
        return
    pieces = [bytearray(3000) for _ in range(40_000)]
    kept = pieces[::16]
    before = resident()
    del pieces
    memory.give_back()
    assert resident() < before - (40 << 20)
    assert len(kept) == 2500


def test_another_c_library_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_trim", lambda: None)
    assert memory.give_back() is False


def test_blocks_of_arrow_are_given_back_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    pool = SimpleNamespace(release_unused=lambda: told.append("released"))
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(default_memory_pool=lambda: pool))
    memory.give_back()
    assert told == ["released"]
    monkeypatch.delitem(sys.modules, "pyarrow")
    memory.give_back()
    assert told == ["released"] and "pyarrow" not in sys.modules


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's")
def test_threads_share_two_heaps() -> None:
    """In a process of its own: a heap that is there stays."""
    code = (
        "import ctypes, sys, threading\n"
        "from workbench.work import memory\n"
        "if memory._trim() is None: print('another C library'); sys.exit()\n"
        "assert memory.few_arenas()\n"
        "held, here = threading.Barrier(13), []\n"
        "def take():\n"
        "    here.append(bytearray(100_000)); held.wait(); held.wait()\n"
        "threads = [threading.Thread(target=take) for _ in range(12)]\n"
        "[one.start() for one in threads]; held.wait()\n"
        "ctypes.CDLL(None).malloc_stats(); held.wait()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "another" in done.stdout or 1 <= done.stderr.count("Arena ") <= 2, done.stderr
