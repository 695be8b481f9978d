"""The store's tests run over both kinds of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import KINDS, address
from workbench.store import Store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with address(request.param, tmp_path) as url:
        opened = Store.open(url)
        yield opened
        opened.close()


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    with address("sqlite", tmp_path) as url:
        opened = Store.open(url)
        yield opened
        opened.close()


@pytest.fixture
def server_store(tmp_path: Path) -> Iterator[Store]:
    with address("postgresql", tmp_path) as url:
        opened = Store.open(url)
        yield opened
        opened.close()
