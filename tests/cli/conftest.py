"""A home of its own for every test of a command."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    monkeypatch.delenv("WORKBENCH_DEBUG", raising=False)
    return tmp_path / "home"
