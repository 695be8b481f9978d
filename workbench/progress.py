"""What long work is called back with: types that every floor shares."""

from __future__ import annotations

from collections.abc import Callable

FitCallback = Callable[[float, float], bool | None]
"""callback(fraction done in [0, 1], objective) -> True to stop a fit and keep the best state."""

OnProgress = Callable[[float, str], None]
"""report(fraction done in [0, 1], what is being done); it may raise to stop the work."""
