"""Attack experiments: started as a job, found again by the id in the address while the server runs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.app.access import login
from workbench.app.serving import jobs
from workbench.app.serving.jobs import DAY, Countdown, Job, manager
from workbench.classifiers import protocols
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.studies.attacks import AttackSpec

PARAMETER = "attack"
KIND = "attack"
_OF: dict[str, tuple[str | None, str]] = {}  # id -> the project that is attacked, and who started it


def start(spec: AttackSpec, session: Session | None = None, fresh: Session | None = None) -> str:
    """Start an experiment.

    Args:
        spec: what to attack, and how.
        session: of the project whose published model is attacked as it is; None fits one for the purpose.
        fresh: of the project on whose pool to fit it; None loads the spec's.

    Returns:
        Its id.

    Raises:
        InputError: the project has no model yet.
    """
    token = secrets.token_hex(8)
    _OF[token] = (None if session is None else session.id, login.key_of_page())
    if session is not None and session.model is None:
        raise InputError("This project has no model yet. Label some images first.")
    of = session or fresh
    arguments = (spec, "", None) if of is None else (spec, of.store.url, of.id)

    def work(job: Job) -> Any:
        countdown = Countdown(job)
        return jobs.compute(
            job,
            "attacked",
            *arguments,
            session is None,
            where=jobs.long_work,
            hear=lambda report: countdown(*report[:2]),
            session=of,
        )

    job = manager().submit(token, KIND, work, title="Attack", lane="study", limit=7 * DAY)
    job.about = spec
    return token


def job_of(token: str) -> Job | None:
    """The experiment's job in this process, if any.

    With a log-in it is for those who may open the project that is attacked, else for whoever started it.
    """
    if not login.required():
        return manager().get(token, KIND)
    project, owner = _OF.get(token, (None, ""))
    person = login.of_page()
    if project is None:
        may_see = person is not None and person.key == owner
    else:
        may_see = login.who_may(person, project, "open")
    return manager().get(token, KIND) if may_see else None


def pools() -> dict[str, str]:
    """Pools of images with known classes that are at hand: name -> title."""
    from workbench.pools import POOLS, present_sets

    titles = {entry.name: entry.title for entry in POOLS.values() if entry.kind == "image"}
    for entry in present_sets():
        if entry.group == "images":
            titles[entry.full_name] = f"{entry.name.replace('_', ' ')} ({entry.n_items:,} images)"
    return titles


OWN = "project:"
"""Begins the name of a pool that is a project's own."""


def own_pools(first: str | None, bundled: Mapping[str, str]) -> dict[str, str]:
    """The person's projects whose pools are images, uploads included: name -> title.

    Args:
        first: id of the open project, which comes first.
        bundled: names that are offered anyway.
    """
    from workbench.app.access import current, sharing
    from workbench.app.serving.uploads import is_of_images
    from workbench.app.words.text import verbatim
    from workbench.store import Store

    titles = {}
    for record in sorted(sharing.visible(Store.open().projects())[:50], key=lambda r: r.id != first):
        name = str(record.pool["name"])
        if name in bundled:
            continue
        image = is_of_images(record.pool)
        if record.id == first:
            opened = current.session()
            image = opened is not None and opened.pool.kind == "image"
        if image:
            suffix = " (this project)" if record.id == first else " (project)"
            titles[f"{OWN}{record.id}"] = verbatim(record.name, 40) + suffix
    return titles


def classifiers() -> list[str]:
    """Names of the classifiers that are offered for attacks."""
    from workbench.app.data.forms import classifiers_for
    from workbench.classifiers import CLASSIFIERS

    return [name for name in classifiers_for("image", 10) if CLASSIFIERS[name].gradients]


def gives_gradients(session: Session) -> bool:
    """True if a project's published model is a function that an attacker can follow downhill."""
    model = session.model
    if model is None:
        return False
    estimator = model.estimator
    return protocols.predictor_of(estimator) is not None or protocols.supports_network(estimator)
