"""Versions of installed packages, this program among them."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

import workbench

PROGRAM = "workbench-labels"


# a study writes many bundles, and reading versions takes longer than all the rest of one
@cache
def version_of(package: str) -> str | None:
    """Version of a package; None where it is not installed.

    Args:
        package: by the name it is distributed under. `PROGRAM` has the version of the code that runs, since a
            checkout that was updated has the metadata of its last installation.
    """
    if package == PROGRAM:
        return workbench.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None
