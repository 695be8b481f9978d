"""Memory that is free in this process and not yet given back to the system."""

import ctypes
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any


def give_back() -> bool:
    """Give the system what the C library keeps of freed memory; other threads go on meanwhile.

    A fit takes and frees arrays between small objects that stay (events, rounds), and glibc returns only what
    lies at the end of its heap: over thousands of fits the holes add up.

    Returns:
        Whether there was anything to give back; False where the C library is another one.
    """
    arrow = sys.modules.get("pyarrow")  # a table was read with it: its allocator keeps blocks of its own
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _trim()
    return trim is not None and bool(trim(0))


def few_arenas() -> bool:
    """Have the C library keep two heaps for all threads of this process, and not eight a core.

    What one thread has freed then serves the others: a server of many people has forty threads, of which
    one runs at a time.

    Returns:
        Whether the C library knows of heaps; False where it is another one.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, 2))
    except (OSError, AttributeError, TypeError):
        return False


def machine() -> int:
    """Bytes that this process may take: the machine's, or its container's where these are fewer."""
    import psutil

    limit = ""
    with suppress(OSError):
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    total = int(psutil.virtual_memory().total)
    return min(total, int(limit)) if limit.isdigit() else total


def is_above(octets: int) -> bool:
    """True if this process holds more than so many bytes."""
    import psutil

    return int(psutil.Process().memory_info().rss) > octets


_ARENA_MAX = -8
"""M_ARENA_MAX of glibc's malloc.h."""


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
