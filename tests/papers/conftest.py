"""Fixtures of the tests of experiments."""

import pytest

from workbench.pools.datasets import known


@pytest.fixture(autouse=True)
def files_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are of the files of data that this test has read, not those of tests before it."""
    monkeypatch.setattr(known, "READ", {})
