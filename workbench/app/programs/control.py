"""Keys of a project for programs, in a dialog of the Data page."""

import streamlit as st

from workbench.app.access import auditing, current, login
from workbench.app.programs import BASE
from workbench.app.serving.frontend import from_root
from workbench.app.shell import widgets
from workbench.app.words.text import refused, show_kept_error, verbatim
from workbench.store import ProjectSummary, Store

_MADE = "programs-made-keys"
"""State: the secrets of keys made since the dialog was opened, by the key's id."""
_PROBLEM = "programs-problem"


def _forget() -> None:
    st.session_state.pop(_MADE, None)


@st.dialog("Programs that label and ask", width="medium", on_dismiss=_forget)
def dialog(record: ProjectSummary) -> None:
    """Make and revoke keys.

    Args:
        record: the project; whoever may change it sees this.
    """
    store = Store.open()
    if not login.may_change(record):
        st.caption("Its owner opens it to programs.")
        return
    st.markdown(
        f"A key stands for one person in this project: what a program answers with it is theirs. "
        f"It is sent with each request; [openapi.json]({BASE.lstrip('/')}/openapi.json) says what there is."
    )
    st.code(from_root(f"{BASE}/projects/{record.id}"), language=None)
    _keys(store, record)


def _keys(store: Store, record: ProjectSummary) -> None:
    keys = store.keys.of(record.id)
    # a form is good for one key: a second press of it is of a form that is there no more
    key_ids = tuple(key.id for key in keys)
    form = f"new-key-{record.id}-{len(key_ids)}-{''.join(key_ids[:1])}"
    person = login.of_page()
    with st.form(form, border=False), widgets.row(align="bottom"):
        default = person.name if person is not None else current.person("")
        st.text_input(
            "Whose answers", default, max_chars=120, disabled=person is not None, key=f"{form}-name"
        )
        st.text_input("What for", max_chars=200, placeholder="nightly import", key=f"{form}-purpose")
        st.form_submit_button(
            "Make a key",
            icon=":material/key:",
            on_click=_make,
            args=(record, form, key_ids),
        )
    show_kept_error(_PROBLEM)
    secrets = st.session_state.get(_MADE, {})
    if new_keys := [key for key in keys if key.id in secrets]:
        st.success("Copy it now: it is shown until this is closed, and kept nowhere.", icon=":material/key:")
        for key in new_keys:
            st.code(secrets[key.id], language=None)
    for key in keys:
        with widgets.row(f"key-{key.id}"):
            use = "never used" if key.used is None else f"last used {key.used[:10]}"
            words = (
                f"**{verbatim(key.name, 40)}** · {verbatim(key.purpose or 'no purpose given', 60)} · {use}"
            )
            st.markdown(words)
            if st.button("Revoke", key=f"revoke-{key.id}", type="tertiary", icon=":material/key_off:"):
                store.keys.revoke(record.id, key.id)
                detail = f"key {key.id} of {key.name} revoked"
                auditing.record("opened to programs", record.id, record.name, detail)
                st.rerun(scope="fragment")


def _make(record: ProjectSummary, form: str, key_ids: tuple[str, ...]) -> None:
    """Make the key that a form asks for, unless one was made since the form was drawn.

    Args:
        record: the project.
        form: key of the form.
        key_ids: ids of the project's keys then.
    """
    store = Store.open()
    if tuple(key.id for key in store.keys.of(record.id)) != key_ids:
        return
    person = login.of_page()
    name, purpose = (str(st.session_state.get(f"{form}-{field}", "")) for field in ("name", "purpose"))
    with refused(_PROBLEM):
        api_key, secret = store.keys.make(
            record.id,
            name if person is None else person.name,
            person=login.key_of_page(),
            purpose=purpose,
        )
        st.session_state[_MADE] = st.session_state.get(_MADE, {}) | {api_key.id: secret}
        detail = f"key {api_key.id} for {api_key.name}"
        auditing.record("opened to programs", record.id, record.name, detail)
