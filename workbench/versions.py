"""Versions of installed packages, and the settings of threads: what results depend on beside their inputs."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = (
    "tensorflow",
    "gpflow",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "streamlit",
    "plotly",
    "sqlalchemy",
)
"""Packages whose versions are told."""
THREADS = ("WORKBENCH_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that say how many threads there are."""


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
