"""Versions of installed packages."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


# a study writes many bundles, and reading versions takes longer than all the rest of one
@cache
def version_of(package: str) -> str | None:
    """Version of a package; None where it is not installed.

    Args:
        package: by the name it is distributed under.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None
