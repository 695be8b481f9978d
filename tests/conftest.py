"""Fixtures that every test shares."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Three processes share two cores: further threads in them would wait for each other
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(threads, "1")
# Collection imports a million objects that stay; `pytest_collection_finish` turns it on again
gc.disable()

from tests.databases import database, new_project, newest_tables  # noqa: E402
from workbench import registry  # noqa: E402
from workbench.errors import InputError  # noqa: E402
from workbench.sessions import Session  # noqa: E402
from workbench.store import Store  # noqa: E402
from workbench.store import database as database_room  # noqa: E402
from workbench.writing import private_file  # noqa: E402

# no example fails because the machine is busy
settings.register_profile("any load", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")
settings.register_profile("few examples", settings(), max_examples=40)

FAKES = ("tests.sessions.fakes:NearestMean", "tests.studies.test_study:Deadly")

# Data sets for tests that need real ones, where a checkout has them beside it
_DATA = Path(__file__).resolve().parents[2] / "shared" / "datasets"
if _DATA.is_dir():
    os.environ.setdefault("WORKBENCH_DATA", str(_DATA))

# no process of the tests watches the checkout: each import of a package would be an event of it
os.environ.setdefault("STREAMLIT_SERVER_FILE_WATCHER_TYPE", "none")

# learnt features stay out of the cache of whoever runs the tests
os.environ.setdefault("WORKBENCH_FEATURES", tempfile.mkdtemp(prefix="workbench-features-"))

# a test that names no home never opens the projects of whoever runs the tests
os.environ["WORKBENCH_HOME"] = tempfile.mkdtemp(prefix="workbench-home-")

BROWSER = Path(__file__).resolve().parent / "browser"
# two halves of about equal length; whatever is new falls into the second
DESK = (
    "adversarial",
    "big_pool",
    "comparing",
    "finishing",
    "grid_and_classes",
    "images",
    "labelling",
    "log_in",
    "names",
    "palette",
    "proxy",
)
SHARING = {
    "desk": tuple(f"tests/browser/test_{name}.py" for name in DESK),
    "browser": ("tests/browser/",),
    "attacks": ("tests/attacks/", "tests/studies/test_attacks.py"),
    "clusters": ("tests/studies/test_study.py", "tests/policies/test_cluster.py"),
    # what one file has compiled, the next one does not compile again
    "classifiers": ("tests/classifiers/",),
    "engine": ("tests/engine/",),
    "sessions": ("tests/sessions/",),
    "shape": ("tests/test_architecture.py", "tests/test_docs.py"),
}
# minutes of tests that share little: each goes where there is room
ALONE = ("tests/test_docs_run.py", "tests/sessions/test_trials.py")
# the longest first; small files end the run, so that the processes end together
_FIRST = (
    "browser",
    "test_docs_run.py",
    "classifiers",
    "sessions",
    "app",
    "engine",
    "studies",
    "attacks",
    "benchmarks",
    "cli",
)
_ORDER = {name: place for place, name in enumerate(_FIRST)}


def pytest_configure(config: pytest.Config) -> None:
    """Fewer examples of each property where slow tests are left out; .ci/run tries a hundred."""
    if config.option.markexpr == "not slow":
        settings.load_profile("few examples")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest folders first."""
    items.sort(key=lambda item: _ORDER.get(_folder(item), len(_ORDER)))


def pytest_collection_finish() -> None:
    """Objects that collection imported stay: the garbage collector skips TensorFlow's objects."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests by process: a file stays in one, and each half of the browsers' tests shares a server.

    A process that drives a browser waits most of the time, so there is one more than a small machine has
    cores. The tests of attacks share fitted networks, and those of clusters two workers, in the same way.

    Marks of `--dist loadgroup` do not reach pytest 9's node ids; the ids themselves say enough. Playwright
    keeps an event loop running in the main thread until it is stopped, and a local Dask cluster cannot
    start beside one: fixtures of browsers end with their folder.
    """
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file in ALONE:
                return nodeid
            return next((name for name, files in SHARING.items() if file.startswith(files)), file)

    return ByFile(config, log)


def _folder(item: pytest.Item) -> str:
    return Path(item.path).relative_to(BROWSER.parent).parts[0]


@pytest.fixture(autouse=True, scope="session")
def _one_random_matrix() -> Iterator[None]:
    """Copies among texts are looked for through 33 million random numbers, the same each time: drawn once.

    Laid out as the product needs them, so that SciPy does not turn them round for every pool either.
    """
    from sklearn.random_projection import GaussianRandomProjection

    draw, drawn = GaussianRandomProjection._make_random_matrix, dict[tuple[Any, ...], Any]()

    def once(self: Any, n_components: int, n_features: int) -> Any:
        key = (self.random_state, n_components, n_features)
        if key not in drawn:
            drawn[key] = np.asfortranarray(draw(self, n_components, n_features))
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianRandomProjection, "_make_random_matrix", once)
        yield


@pytest.fixture(autouse=True)
def _quick_databases(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new SQLite file is a copy of one that was made once, and no transaction of it waits for the disk.

    Those of tests/store are made and kept as everybody's are.
    """
    if request.path.is_relative_to(BROWSER.parent / "store"):
        return
    tables, connect, settle = newest_tables(), database_room._connect, database_room._sqlite_settings

    def connect_to_copy(address: str) -> Any:
        scheme, _, path = address.partition(":///")
        file = Path(path)
        if scheme == "sqlite" and file.is_absolute() and not file.exists():
            try:
                private_file(file)
                file.write_bytes(tables)
            except (OSError, InputError):  # which the product meets, too, and says
                with suppress(OSError):
                    file.unlink()
        return connect(address)

    def settle_quickly(connection: Any, record: Any) -> None:
        settle(connection, record)
        connection.execute("PRAGMA synchronous = OFF")

    monkeypatch.setattr(database_room, "_connect", connect_to_copy)
    monkeypatch.setattr(database_room, "_sqlite_settings", settle_quickly)


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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty database of its own; folders that try both kinds have another fixture of this name."""
    with database("sqlite", tmp_path) as opened:
        yield opened


@pytest.fixture
def start(store: Store) -> Callable[..., Session]:
    """Starts a project with the fake classifier: `start(pool, **settings)`."""
    return partial(new_project, store)


@pytest.fixture(scope="session")
def scheduler() -> Iterator[str]:
    """Address of a cluster of two processes, started once for the tests of clusters."""
    from workbench.work.hosts import hosts

    with hosts(2) as address:
        yield address
