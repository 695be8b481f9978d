"""Bundles and certificates hold the version of the code that runs, as `workbench --version` prints it."""

import pytest

import workbench
from workbench import versions


def test_the_programs_version_is_that_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    versions.version_of.cache_clear()
    # a checkout that was updated has the metadata of its last installation
    monkeypatch.setattr(versions, "version", lambda package: "0.0.1")
    assert versions.version_of(versions.PROGRAM) == workbench.__version__
    assert versions.version_of("numpy") == "0.0.1"
    versions.version_of.cache_clear()
