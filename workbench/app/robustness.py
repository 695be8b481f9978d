"""Attack experiments: started as a job, found again by the id in the address while the server runs."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from workbench.app.jobs import Job, manager

if TYPE_CHECKING:
    from workbench.studies.attacks import AttackSpec

PARAMETER = "attack"
KIND = "attack"


def start(spec: AttackSpec, pool: Any = None) -> str:
    """Start an experiment.

    Args:
        spec: what to attack, and how.
        pool: a pool that is open already; None loads the spec's.

    Returns:
        Its id.
    """
    token = secrets.token_hex(4)

    def work(job: Job) -> Any:
        from workbench.studies.attacks import attack_experiment

        return attack_experiment(spec, job.report, pool=pool)

    job = manager().submit(token, KIND, work, title="Attack", lane="study")
    job.about = spec
    return token


def job_of(token: str) -> Job | None:
    """The experiment's job in this process, if any."""
    return manager().get(token, KIND)


def pools() -> dict[str, str]:
    """Pools of images with known classes that are at hand: name -> title."""
    from workbench.pools import POOLS, known_sets

    found = {entry.name: entry.title for entry in POOLS.values() if entry.kind == "image"}
    for entry in known_sets():
        if entry.group == "images" and entry.path is not None:
            found[entry.full_name] = f"{entry.name.replace('_', ' ')} ({entry.n_items:,} images)"
    return found


def classifiers() -> list[str]:
    """Names of the classifiers that have gradients, quickest first."""
    from workbench.app.forms import classifiers_for

    known = (
        "large-margin",
        "large-margin-net",
        "softmax-net",
        "logistic-softmax",
        "svgp-softmax",
        "wasserstein",
    )
    possible = classifiers_for("image", 10)
    return [name for name in known if name in possible]
