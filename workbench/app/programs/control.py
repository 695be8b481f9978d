"""Keys and the webhook of a project, in a dialog of the Data page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import auditing, current, login
from workbench.app.programs import description
from workbench.app.serving import webhooks
from workbench.app.words.text import verbatim
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.store import ProjectSummary, Store

_MADE = "programs-made-keys"
"""State: the secrets of keys made since the dialog was opened, by the key's id."""
_PROBLEM = "programs-problem"


def _forget() -> None:
    st.session_state.pop(_MADE, None)


@st.dialog("Programs that label and ask", width="medium", on_dismiss=_forget)
def dialog(record: ProjectSummary) -> None:
    """Make and revoke keys, and say which address is told of fits and of the finish.

    Args:
        record: the project; whoever may change it sees this.
    """
    from workbench.store import Store

    store = Store.open()
    if not login.may_change(record):
        st.caption("Its owner opens it to programs.")
        return
    st.markdown(
        f"A key stands for one person in this project: what a program answers with it is theirs. "
        f"[How to use it]({description.BASE.lstrip('/')}/docs)."
    )
    st.code(f"{description.BASE}/projects/{record.id}", language=None)
    _keys(store, record)
    st.subheader("Tell an address")
    _webhook(store, record)


def _keys(store: Store, record: ProjectSummary) -> None:
    keys = store.keys_of(record.id)
    # a form is good for one key: a second press of it is of a form that is there no more
    there = tuple(key.id for key in keys)
    form = f"new-key-{record.id}-{len(there)}-{''.join(there[:1])}"
    person = login.of_page() if login.required() else None
    with st.form(form, border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        default = person.name if person is not None else current.person("")
        st.text_input(
            "Whose answers", default, max_chars=120, disabled=person is not None, key=f"{form}-name"
        )
        st.text_input("What for", max_chars=200, placeholder="nightly import", key=f"{form}-purpose")
        st.form_submit_button(
            "Make a key",
            icon=":material/key:",
            on_click=_make,
            args=(record, form, there),
        )
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error(verbatim(problem), icon=":material/error:")
    secrets = st.session_state.get(_MADE, {})
    if shown := [key for key in keys if key.id in secrets]:
        st.success("Copy it now: it is shown until this is closed, and kept nowhere.", icon=":material/key:")
        for key in shown:
            st.code(secrets[key.id], language=None)
    for key in keys:
        with st.container(horizontal=True, vertical_alignment="center", key=f"key-{key.id}"):
            used = "never used" if key.used is None else f"last used {key.used[:10]}"
            words = (
                f"**{verbatim(key.name, 40)}** · {verbatim(key.purpose or 'no purpose given', 60)} · {used}"
            )
            st.markdown(words)
            if st.button("Revoke", key=f"revoke-{key.id}", type="tertiary", icon=":material/key_off:"):
                store.revoke_key(record.id, key.id)
                detail = f"key {key.id} of {key.name} revoked"
                auditing.record("opened to programs", project=record.id, called=record.name, detail=detail)
                st.rerun(scope="fragment")


def _make(record: ProjectSummary, form: str, there: tuple[str, ...]) -> None:
    """Make the key that a form asks for, unless one was made since the form was drawn.

    Args:
        record: the project.
        form: key of the form.
        there: ids of the project's keys then.
    """
    from workbench.store import Store

    store = Store.open()
    if tuple(key.id for key in store.keys_of(record.id)) != there:
        return
    person = login.of_page() if login.required() else None
    name, purpose = (str(st.session_state.get(f"{form}-{field}", "")) for field in ("name", "purpose"))
    try:
        made, secret = store.make_key(
            record.id,
            name if person is None else person.name,
            person="" if person is None else person.key,
            purpose=purpose,
        )
    except InputError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state[_MADE] = st.session_state.get(_MADE, {}) | {made.id: secret}
    detail = f"key {made.id} for {made.name}"
    auditing.record("opened to programs", project=record.id, called=record.name, detail=detail)


def _webhook(store: Store, record: ProjectSummary) -> None:
    hook = store.webhook(record.id)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        url = st.text_input(
            "Address",
            value="" if hook is None else hook.url,
            placeholder="https://example.org/workbench",
            max_chars=1000,
            key=f"hook-url-{record.id}",
            help="Is posted to after each fit, and when the project is finished. Empty: nobody is told.",
        )
        saved = st.button("Save", key=f"hook-save-{record.id}")
    if saved:
        try:
            hook = store.set_webhook(record.id, webhooks.checked_url(url) if url.strip() else "")
        except InputError as error:
            st.error(verbatim(error), icon=":material/error:")
        else:
            detail = "tells nobody" if hook is None else f"tells {hook.url}"
            auditing.record("opened to programs", project=record.id, called=record.name, detail=detail)
    if hook is None:
        return
    st.caption(f"Each message is signed (`{webhooks.SIGNATURE}`) with this secret:")
    st.code(hook.secret, language=None)
    for one in hook.tries[:5]:
        st.caption(f"{verbatim(one['time'][:16])} · {verbatim(one['event'])} · {verbatim(one['said'], 80)}")
