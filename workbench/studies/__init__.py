"""Many runs, one runner."""

from workbench.studies.runner import RunResult, run
from workbench.studies.spec import StudySpec

__all__ = ["RunResult", "StudySpec", "run"]
