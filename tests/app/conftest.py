"""A home of its own for the tests of a file, and no engine warmed up before it is needed."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit import config, delta_generator
from streamlit.components.v2 import manifest_scanner

from workbench.app import server
from workbench.app.access import current
from workbench.app.serving.streamlit_private import leave_keras_alone
from workbench.sessions import Session
from workbench.store import Store


@pytest.fixture(scope="session", autouse=True)
def _as_the_server_runs_pages() -> Iterator[None]:
    """The server's own options of a run; what AppTest asks of the computer anew for each page, asked once.

    Without it every run of a page ends with a search through all objects of the process, begins with another
    syntax tree of its script, and each test reads what every installed package is.
    """
    leave_keras_alone()
    options = tomllib.loads(Path(server.__file__).with_name("config.toml").read_text(encoding="utf-8"))
    for name, value in options["runner"].items():
        config.set_option(f"runner.{name}", value)
    config.set_option("server.address", options["server"]["address"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests)
        )
        # the search for an interactive shell, which goes through the source of every module
        patch.setattr(delta_generator, "_use_warning_has_been_displayed", True)
        yield


@pytest.fixture(scope="session", autouse=True)
def _computed_here() -> Iterator[None]:
    """Obstacles that a test puts in the way of a fit or a lesson stay in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_FIT", "inline")
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("WORKBENCH_HOME", str(folder))
        patch.setenv("WORKBENCH_WARM", "0")
        patch.delenv("WORKBENCH_DATABASE_URL", raising=False)
        yield folder
        Store.open().close()


@pytest.fixture
def flowers(home: Path) -> Session:
    """Iris at the desk."""
    session = Session.create("iris", annotator="ann")
    current.keep(session)
    return session
