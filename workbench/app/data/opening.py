"""Pools whose features are learnt: a job with stages that can be cancelled and gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import login
from workbench.app.serving.caching import computed, stamp
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import widgets
from workbench.errors import InputError
from workbench.pools.features.vectors import is_vectors
from workbench.progress import watched

if TYPE_CHECKING:
    from workbench.pools import Pool

_OWNER = "opening"


def learns(options: Mapping[str, Any]) -> bool:
    """True if a pool with these options learns its features, which takes a while."""
    uses = options.get("columns")
    of = {use if isinstance(use, str) else use.get("use") for use in uses.values()} if uses else set()
    features = options.get("features")
    return features == "shapes" or is_vectors(features) or bool(of & {"text", "picture"})


def pool_of(path: str, options: Mapping[str, Any]) -> Pool | None:
    """The pool behind a file or a name, or None while it is read; the page then shows how far it is.

    Args:
        path: what `load_pool` takes.
        options: of `load_pool`.

    Raises:
        InputError: as `load_pool`.
    """
    key = _key(path, options)
    job = manager().get(_OWNER, key)
    if job is None:
        job = _submit(path, options, key)
    if job.status == "done":
        pool, job.result = job.result, None  # kept with the others that were looked at, and let go with them
        return computed(load, path, options, at=key, known=pool)
    if job.status == "failed" and not job.details:
        manager().forget(job)  # what was wrong may be mended meanwhile
        raise InputError(job.error)
    widgets.job_panel(job, "opening-job", height=64)
    if job.active:
        st.caption(
            "What is learnt is kept: cancelled and opened again, it reads the items once more and goes on "
            "with their features where it was."
        )
    elif st.button("Go on", key="opening-go-on", icon=":material/play_arrow:"):
        _submit(path, options, key)
        st.rerun()
    return None


def _key(path: str, options: Mapping[str, Any]) -> str:
    inputs = path, stamp(path, options), sorted(options.items()), login.key_of_page()
    return sha256(repr(inputs).encode()).hexdigest()[:16]


def _submit(path: str, options: Mapping[str, Any], key: str) -> Job:
    pool_options = dict(options)

    def work(job: Job) -> Any:
        with watched(job.report):
            return load(path, pool_options)

    return manager().submit(_OWNER, key, work, title="Opening", lane="open", limit=DAY)


def load(path: str, options: Mapping[str, Any]) -> Pool:
    """The pool behind a file or a name, read now."""
    from workbench.pools import load_pool

    return load_pool(path, **options)
