"""What every test shares."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest folders first, so that the processes end together."""
    items.sort(key=lambda item: _ORDER.get(_folder(item), len(_ORDER)))


def pytest_collection_finish() -> None:
    """What collection imported stays: no garbage collection looks through TensorFlow's objects again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who runs what: a file stays in one process, and all browsers share one server in one process.

    Marks of `--dist loadgroup` do not reach pytest 9's node ids; the ids themselves say enough. Playwright
    keeps an event loop running in the main thread until it is stopped, and a local Dask cluster cannot
    start beside one: fixtures of browsers end with their folder.
    """
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "browser" if file.startswith("tests/browser/") else file

    return ByFile(config, log)


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
