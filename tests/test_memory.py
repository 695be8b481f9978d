"""What is free goes back to the system."""

import sys
from pathlib import Path

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
