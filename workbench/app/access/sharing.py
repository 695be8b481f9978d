"""Owner of a project and people who may open it, on its row of the Data page."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import streamlit as st

from workbench.app.access import auditing, login
from workbench.app.words.text import plural, refused, verbatim
from workbench.store import ProjectSummary, Store

R = TypeVar("R", bound="ProjectSummary")
WORDS = {
    "private": ("Private", ":material/lock:", "Only you see it."),
    "shared": ("Shared", ":material/group:", "You and the people you name see it and label in it."),
    "open": ("Open", ":material/public:", "Everybody who can log in sees it and labels in it."),
}


def visible(records: Iterable[R]) -> list[R]:
    """Those projects that whoever sits here may open; all of them without a log-in."""
    if not login.required():
        return list(records)
    person = login.of_page()
    if person is None or not login.who_may(person, None, "use"):
        return []
    return [record for record in records if record.lets_in(person.key)]


def names() -> dict[str, str]:
    """Names of the people of this server by their keys; without a log-in none."""
    return Store.open().people.names() if login.required() else {}


def facts(record: ProjectSummary, names: Mapping[str, str]) -> list[str]:
    """For the line below a project's name: whose it is, or whom it is shared with.

    Args:
        record: the project, as listed.
        names: of the people, by their keys; asked for once a page.
    """
    person = login.of_page()
    if person is None or not record.owner:
        return []
    if record.owner != person.key:
        return [f"of {verbatim(names.get(record.owner, 'somebody'), 40)}"]
    if record.access != "shared" or not record.members:
        return []
    first = ", ".join(verbatim(names.get(key, "somebody"), 20) for key in record.members[:2])
    return [
        f"shared with {first}" + (f" and {len(record.members) - 2} more" if len(record.members) > 2 else "")
    ]


def control(record: ProjectSummary, names: Mapping[str, str]) -> None:
    """Show who may open a project; its owner changes it here. Nothing without a log-in.

    Args:
        record: the project, as listed.
        names: of the people, by their keys; asked for once a page.
    """
    person = login.of_page()
    if person is None:
        return
    name, icon, _ = WORDS[record.access]
    # another key is another popover, which is shut
    n = st.session_state.get(_saved(record), 0)
    with (
        st.container(key=f"access-{record.id}", width="content"),
        st.popover(name, icon=icon, type="tertiary", key=f"access-{record.id}-{n}"),
    ):
        if not login.may_change(record):
            st.caption("Its owner says who may open it.")
            return
        _form(record, person, names)


def _saved(record: ProjectSummary) -> str:
    """State: how often this tab has saved who may open a project."""
    return f"access-saved-{record.id}"


def _form(record: ProjectSummary, person: login.Person, names: Mapping[str, str]) -> None:
    other_names = {key: name for key, name in names.items() if key != person.key}
    if not record.owner:
        st.caption("It belongs to nobody yet, and is open. Whoever saves this owns it.")
    access = st.radio(
        "Who may open it",
        list(WORDS),
        index=list(WORDS).index(record.access),
        format_func=lambda key: WORDS[key][0],
        captions=[words for _, _, words in WORDS.values()],
        key=f"access-kind-{record.id}",
    )
    members: list[str] = []
    if access == "shared":
        members = st.multiselect(
            "With",
            sorted(other_names, key=lambda key: other_names[key].casefold()),
            default=[key for key in record.members if key in other_names],
            format_func=lambda key: other_names[key],
            key=f"access-members-{record.id}",
            help="People who have logged in here at least once.",
            placeholder="Choose people",
        )
    saved = st.button("Save", type="primary", key=f"access-save-{record.id}")
    if saved:
        store = Store.open()
        summary = store.summary(record.id)
        if summary is None or not login.may_change(summary):
            st.error("The project is not yours to share.", icon=":material/error:")
            return
        with refused():
            store.share_project(record.id, person.key, access or "private", members)
            member_names = [names.get(key, key) for key in members] if access == "shared" else []
            words = " with ".join([access or "private", *([", ".join(member_names)] if member_names else [])])
            auditing.record("shared", record.id, record.name, words, by=person)
            st.session_state[_saved(record)] = st.session_state.get(_saved(record), 0) + 1
            st.toast(
                f"Saved: {WORDS[access or 'private'][0].lower()}"
                + (f", with {plural(len(members), 'person', 'people')}" if access == "shared" else "")
            )
            st.rerun()
