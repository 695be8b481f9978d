from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.databases import database
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import Session
from workbench.store import Store

# the modules about what is recorded run over both kinds of database
BOTH = ("test_two_programs", "test_operations")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        both = metafunc.module.__name__.rpartition(".")[2] in BOTH
        server = [pytest.param("postgresql", marks=pytest.mark.slow)] if both else []
        metafunc.parametrize("store", ["sqlite", *server], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with database(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def iris() -> Pool:
    return load_pool("iris")


@pytest.fixture(scope="session")
def unknown(iris: Pool) -> Pool:
    """Iris as a person brings it: nobody has said what anything is."""
    return replace(iris, truth=None)


def answer(session: Session, pool: Pool, n: int) -> list[int]:
    """Let a person who knows the truth of `pool` answer n questions; returns the items."""
    items = []
    assert pool.truth is not None
    for _ in range(n):
        (ask,) = session.ask()
        assert session.tell(ask.id, pool.classes[int(np.asarray(pool.truth)[ask.item])])
        items.append(ask.item)
    return items
