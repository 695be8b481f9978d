"""Memory that is free in this process and not yet given back to the system."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def give_back() -> bool:
    """Give the system what the C library keeps of freed memory; other threads go on meanwhile.

    A fit takes and frees arrays between small objects that stay (events, rounds), and glibc returns only what
    lies at the end of its heap: over thousands of fits the holes add up.

    Returns:
        Whether there was anything to give back; False where the C library is another one.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
