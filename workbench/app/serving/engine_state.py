"""The engine's state: TensorFlow costs seconds to import, so that is begun while people read."""

import gc
import os
import sys
import threading
import warnings
from typing import Literal

from workbench.app.serving import fit_process
from workbench.work.companion import DiedError

State = Literal["cold", "loading", "ready", "failed"]

_lock = threading.Lock()
_state: State = "cold"
_reason = ""
_shown = threading.Event()
_PATIENCE = 3.0


def engine_state() -> tuple[State, str]:
    """The state of the engine, and why when it failed.

    Returns:
        ("cold" | "loading" | "ready" | "failed", reason). "cold" means it loads with the first fit.
    """
    with _lock:
        if _state == "cold" and "gpflow" in sys.modules and "tensorflow" in sys.modules:
            return "ready", ""
        return _state, _reason


def page_shown() -> None:
    """A page has been drawn: from here on the import is in nobody's way."""
    _shown.set()


def warm_up() -> None:
    """Have what a fit needs imported where fits are made; safe to call more than once and from any thread.

    Waits for the first page, up to three seconds: both would compete for the interpreter.
    """
    global _state, _reason
    _shown.wait(_PATIENCE)
    with _lock:
        if _state in ("loading", "ready"):
            return
        _state = "loading"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # GPflow 2.9 imports pkg_resources; nothing a person labelling can do about it
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    try:
        fit_process.load_engine()
    except DiedError:  # the first fit starts the process again
        with _lock:
            _state = "cold"
        return
    except Exception as error:  # the page says so; labelling by other models still works
        with _lock:
            _state, _reason = "failed", f"{type(error).__name__}: {error}"
        return
    # half a million objects that live as long as the process: no collection need look at them again
    gc.collect()
    gc.freeze()
    with _lock:
        _state = "ready"
