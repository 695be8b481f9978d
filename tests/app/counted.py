"""Inputs and a computation for tests of jobs."""

from dataclasses import dataclass

from workbench.app.serving.jobs import Job


@dataclass(frozen=True)
class Counted:
    """Inputs of one number."""

    n: int


def failing(job: Job, inputs: Counted) -> None:
    """Fails, as a full disk would make it fail."""
    raise OSError(28, f"no space left for {inputs.n}")
