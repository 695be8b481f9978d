"""Many runs: one runner for a run, studies of many, and the papers' experiments by name."""

from workbench.studies.runner import RunResult, run
from workbench.studies.study import StudyResult, StudySpec, load_study, read_study, run_study

__all__ = ["RunResult", "StudyResult", "StudySpec", "load_study", "read_study", "run", "run_study"]
