"""A project whose pool was moved or changed: its labels, and the way back to its file."""

import streamlit as st

from workbench.app.access import auditing, current, login
from workbench.app.shell import downloads
from workbench.app.shell.background_files import Making
from workbench.app.words.text import plural, refused
from workbench.errors import InputError, StorageError
from workbench.store import Store


def is_kept(project: str) -> bool:
    """True if a project of this id is stored; a store that cannot be read may hold it."""
    try:
        store = Store.open()
    except InputError:
        return True
    try:
        store.project(project)
    except StorageError:
        return True
    except InputError:
        return False
    return True


def panel(project: str) -> None:
    """Offer the labels of a project without its pool, and ask where its file lies now.

    Args:
        project: its id.
    """
    from workbench.exchange.rows import StoredLabels
    from workbench.sessions.opening import relocate

    store = Store.open()
    try:
        record = store.project(project)
    except InputError:
        return
    labels = StoredLabels.of(project, store)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in record.name) or "labels"
    with st.container(key=f"lost-{project}", gap="small"):
        # a path of the server's is not for people who come over the network
        local, place = login.may_name_paths(), ""
        if local:
            place = st.text_input(
                "Where its file or folder lies now",
                key=f"new-place-{project}",
                placeholder=str(record.pool["name"]),
                max_chars=4_000,
            )
        with st.container(horizontal=True, gap="small"):
            if local and st.button("Use this file", key=f"relocate-{project}", type="primary"):
                with refused():
                    if not place.strip():
                        raise InputError("Type where its file or folder lies.")
                    relocate(project, place.strip(), store=store)
                    current.forget(project)
                    st.rerun()
            downloads.button(
                f"Download the {plural(labels.state.n_labelled, 'label')} without it",
                Making(
                    "stored_labels_written", (store.url, project), "The labels", rows=labels.state.n_labelled
                ),
                f"{name}.csv",
                f"labels-alone-{project}",
                disabled=not labels.state.n_labelled,
                taken=lambda who: auditing.record(
                    "exported", project, record.name, "labels, without the pool", by=who
                ),
                help="Item, id, label, annotator, time and note; not the items' own columns.",
            )
