"""Real data for tests lies in the folder WORKBENCH_DATA; where it is absent tests skip, except under CI."""

import os
from pathlib import Path

import pytest

from workbench.pools.datasets.catalogue import find_file


def needs(file: str) -> Path:
    """The path of a shared data file; skips with a reason where it is absent."""
    path = find_file(file)
    if path is None:
        message = f"no {file} in the folder WORKBENCH_DATA"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{message}, and CI does not skip")
        pytest.skip(message)
    return path
