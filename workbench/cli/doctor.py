"""`workbench doctor`: what is installed, where things lie, and whether a fit works."""

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from typer import Exit

_Finding = tuple[str, str]
"""A value, and the problem with it."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def doctor() -> None:
    """Check this installation: versions, folders, browser, threads, one tiny fit."""
    from workbench import __version__
    from workbench.versions import LIBRARIES, THREADS, version_of
    from workbench.work.companion import Companion

    problems, companion, fits = [], Companion("doctor"), SimpleQueue[_Finding]()

    def say(subject: str, value: object, problem: str = "") -> None:
        problems.append(problem)
        _print_line(subject, value, problem or "ok")

    def fit() -> None:
        fits.put(_tried(partial(companion.call, f"{__name__}:tiny_fit")))

    _print_line("what", "found", "verdict")
    # the engine is imported there while the rest is looked at; nobody waits for it who has seen enough
    Thread(target=fit, daemon=True).start()
    is_known = (3, 11) <= sys.version_info[:2] < (3, 14)
    try:
        say("workbench", __version__)
        say("python", sys.version.split()[0], "" if is_known else "needs 3.11, 3.12 or 3.13")
        say("system", platform.platform())
        for name in (*LIBRARIES, "setuptools"):
            installed = version_of(name)
            say(name, installed or "-", "" if installed else "not installed: run `make run` again")
        for subject, check in _CHECKS.items():
            say(subject, *_tried(check))
        say("processors", os.cpu_count())
        settings = [f"{name}={os.environ[name]}" for name in THREADS if os.environ.get(name)]
        say("threads set", ", ".join(settings) or "none (one for fits)")
        say("tiny fit", *fits.get())
    finally:
        companion.end()
    if any(problems):
        raise Exit(1)


def _tried(check: Callable[[], _Finding]) -> _Finding:
    """A check's finding; of one that fails how it failed, as the others are to be seen then."""
    try:
        return check()
    except Exception as error:  # also the end of a process whose processor lacks what TensorFlow wants
        return "-", " ".join(f"failed: {type(error).__name__}: {error}".split())


def _print_line(*cells: object) -> None:
    name = str(cells[0])
    print(name.ljust(14) if sys.stdout.isatty() else name, *cells[1:], sep="\t", flush=True)


def _import_name() -> _Finding:
    """True if another distribution brings a package that is called as ours is when imported."""
    from importlib.metadata import distributions, packages_distributions

    packages = {name.lower() for name in packages_distributions().get("workbench", ())}
    packages |= {distribution.metadata["Name"].lower() for distribution in distributions(name="workbench")}
    other_packages = sorted(packages - {"workbench-labels"})
    if not other_packages:
        return "workbench", ""
    way = f"another package is imported by the same name: pip uninstall {' '.join(other_packages)}"
    return ", ".join(other_packages), way


def _home() -> _Finding:
    from workbench.store import workbench_home

    home = workbench_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe = home / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return str(home), f"cannot be written ({error.strerror}): set WORKBENCH_HOME"
    return str(home), ""


def _database() -> _Finding:
    from workbench.errors import InputError
    from workbench.store import Store

    try:
        store = Store.open()
        return f"{len(store.projects())} projects, {len(store.runs.all())} runs", ""
    except InputError as error:
        return "-", str(error)


def _data() -> _Finding:
    from workbench.pools.datasets.catalogue import catalogue

    n_present = sum(entry.path is not None for entry in catalogue())
    folder = os.environ.get("WORKBENCH_DATA", "WORKBENCH_DATA is not set")
    return f"{n_present} of {len(catalogue())} known ones at hand ({folder})", ""


def _browser() -> _Finding:
    # Only the screenshots and the browser tests need one of their own.
    path = next((p for p in map(shutil.which, _BROWSERS) if p), None)
    return path or "none on the PATH (needed for tests and screenshots only)", ""


def tiny_fit(say: Any) -> _Finding:
    """One fit on iris, with the import of the engine apart; `say` is not used."""
    import numpy as np

    from workbench.classifiers import make_classifier
    from workbench.pools import load_pool

    began = time.perf_counter()
    pool = load_pool("iris")
    model = make_classifier("large-margin", random_state=0, n_inducing=16)
    model.fit(pool.features, pool.truth)
    cold = time.perf_counter() - began
    began = time.perf_counter()
    model.fit(pool.features, pool.truth)
    warm = time.perf_counter() - began
    accuracy = float(np.mean(model.predict(pool.features) == pool.truth))
    text = f"{accuracy:.2f} accuracy; first {cold:.1f} s (with import), again {warm * 1000:.0f} ms"
    return text, "" if accuracy > 0.9 else "the accuracy is too low"


_CHECKS = {
    "import name": _import_name,
    "data folder": _home,
    "database": _database,
    "data sets": _data,
    "browser": _browser,
}
