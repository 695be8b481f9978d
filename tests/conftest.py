"""What every test shares."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench import registry

FAKES = ("tests.sessions.fakes:NearestMean", "tests.studies.test_study:Deadly")

# Data sets for tests that need real ones, where a checkout has them beside it
_DATA = Path(__file__).resolve().parents[2] / "shared" / "datasets"
if _DATA.is_dir():
    os.environ.setdefault("WORKBENCH_DATA", str(_DATA))

# learnt features stay out of the cache of whoever runs the tests
os.environ.setdefault("WORKBENCH_FEATURES", tempfile.mkdtemp(prefix="workbench-features-"))

BROWSER = Path(__file__).resolve().parent / "browser"
_ORDER = {name: place for place, name in enumerate(("browser", "classifiers", "app", "engine", "studies"))}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browsers first, in one process; then the longest folders, so that two processes end together.

    Playwright keeps an event loop running in the main thread until it is stopped, and a local Dask cluster
    cannot start beside one: fixtures of browsers end with their folder.
    """
    for item in items:
        browser = Path(item.path).is_relative_to(BROWSER)
        item.add_marker(pytest.mark.xdist_group("browser" if browser else str(item.path)))
    items.sort(key=lambda item: _ORDER.get(_folder(item), len(_ORDER)))


def _folder(item: pytest.Item) -> str:
    return Path(item.path).relative_to(BROWSER.parent).parts[0]


@pytest.fixture(autouse=True)
def _trusted_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own stand-ins may be named by files; no other code may, and no test vouches for another."""
    monkeypatch.setattr(registry, "_trusted", set(FAKES))


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    # Streamlit puts the page's script in the place of __main__, and a worker process that is spawned
    # later would begin by running it
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Address of a cluster of two processes, started once for the tests of a module."""
    from workbench.work.hosts import hosts

    with hosts(2) as address:
        yield address
