"""The store's tests run over both kinds of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import KINDS, database
from workbench.store import Store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with database(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    with database("sqlite", tmp_path) as opened:
        yield opened
