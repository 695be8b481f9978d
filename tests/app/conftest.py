"""A home of its own for the tests of a file, and no engine warmed up before it is needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.app.access import current
from workbench.app.serving.streamlit_private import leave_keras_alone
from workbench.sessions import Session
from workbench.store import Store


@pytest.fixture(scope="session", autouse=True)
def _as_the_server_runs_pages() -> None:
    """Without it every run of a page ends with a search through all objects of the process."""
    leave_keras_alone()


@pytest.fixture(scope="session", autouse=True)
def _computed_here() -> Iterator[None]:
    """What a test puts in the way of a fit or a lesson is in this process."""
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
