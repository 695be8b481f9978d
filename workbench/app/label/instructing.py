"""The editor of instructions: a text, its pictures, how it will look at the desk, and its versions."""

from __future__ import annotations

import base64
import re
from typing import Any

import streamlit as st

from workbench.app.shell import widgets
from workbench.app.words.text import one_line, plural, refused, show_kept_error, verbatim
from workbench.errors import InputError
from workbench.pools.instructions import LONGEST, MOST_OCTETS, PICTURE, read_instructions
from workbench.sessions import Session
from workbench.sessions.instruction_texts import MOST_PICTURES, as_kept
from workbench.sessions.people import labelled_here
from workbench.store import Instructions

OPEN = "label-dialog"
"""State: name of the dialog of the Label page that is open, and the session it is of."""
NAME = "instructions"
_DRAFT, _TEXT, _PROBLEM = "instructions-draft", "instructions-text", "instructions-problem"
_UPLOAD, _FILE = "instructions-upload", "instructions-file"
_HIGH = 380  # pixels of the text and of what it will look like
_EXAMPLE = """## What to look for

- **One rule a line.** Say first what decides.
- Two classes that are mixed up: what tells them apart?

| when | then |
|---|---|
| you cannot tell | press U |
"""


def begin(session: Session) -> None:
    """Open the editor, with what was begun before and not saved."""
    st.session_state[OPEN] = NAME, session.id
    st.session_state.pop(_TEXT, None)
    draft = st.session_state.get(_DRAFT)
    if draft is None or draft["project"] != session.id:
        _fresh(session)


def close() -> None:
    """The dialog of the Label page was closed; what was typed as instructions is kept until the next time."""
    st.session_state.pop(OPEN, None)


def _fresh(session: Session) -> None:
    versions = session.state.instructions
    st.session_state[_DRAFT] = {
        "project": session.id,
        "text": versions[-1].text if versions else "",
        "after": len(versions),
        "pictures": {},  # name -> (file, address)
        "taken": set(),
    }
    st.session_state.pop(_TEXT, None)


def dialog(session: Session) -> None:
    """Write the instructions of a project.

    Args:
        session: of the person who writes.
    """
    if st.session_state.get(OPEN) != (NAME, session.id):
        st.rerun()  # it was saved: the page is drawn anew, without the dialog
    draft = st.session_state[_DRAFT]
    versions = session.state.instructions
    st.caption(
        "What people should look for, beside the item at the desk (key H). Whoever has read an earlier "
        "version is told that it changed, and each label remembers which version was in force."
    )
    if _TEXT not in st.session_state:
        st.session_state[_TEXT] = draft["text"]
    left, right = st.columns(2, gap="medium")
    with left:
        st.text_area(
            "Markdown",
            key=_TEXT,
            height=_HIGH,
            max_chars=LONGEST,
            placeholder=_EXAMPLE,
            help="`# heading`, `- list`, `**strong**`, `| table |`, `[words](https://...)`. HTML is shown as "
            "it is typed, and never run.",
        )
        draft["text"] = st.session_state[_TEXT]
    with right:
        st.caption("At the desk")
        with st.container(height=_HIGH, border=True, key="instructions-preview"):
            _preview(session, draft)
    _bring(draft)
    show_kept_error(_PROBLEM)
    unsaved = draft["text"].strip() != (versions[-1].text if versions else "")
    with widgets.row("instructions-actions", align="bottom"):
        words = "Save as a new version" if versions else "Save"
        st.button(words, type="primary", key="instructions-save", on_click=_save, args=(session, draft))
        if unsaved:
            st.button(
                "Start over", key="instructions-anew", type="tertiary", on_click=_fresh, args=(session,)
            )
        if len(versions) > (0 if unsaved else 1):
            _earlier(versions, unsaved)
    if versions and versions[-1].text:
        st.caption(verbatim(_who_read(session)))


def _preview(session: Session, draft: dict[str, Any]) -> None:
    from workbench.app import desk
    from workbench.app.desk import instruction_sheet

    pictures = desk.told_pictures(session) | {
        name: address for name, (_, address) in draft["pictures"].items()
    }
    desk.mount_told(instruction_sheet.nodes(draft["text"].strip(), pictures), key=f"told-{session.id}")


def _bring(draft: dict[str, Any]) -> None:
    """Pictures by drag, and another tool's file."""
    with widgets.row("instructions-bring", align="bottom"):
        st.file_uploader(
            "Pictures: drop them here",
            type=["png", "jpg", "jpeg", "gif", "webp", "bmp"],
            accept_multiple_files=True,
            key=_UPLOAD,
            max_upload_size=MOST_OCTETS >> 20,
            on_change=_pictures,
            args=(draft,),
            help=f"PNG or JPEG, at most 10 MB each and {MOST_PICTURES} in all. They are made small, and lose "
            "what the camera wrote into them.",
        )
        st.file_uploader(
            "Or take a file's text",
            type=["md", "txt", "html", "json", "xml", "zip"],
            key=_FILE,
            on_change=_from_file,
            args=(draft,),
            help="Markdown, HTML, a Label Studio project, a Hugging Face card, or a zip of one.",
        )


def _pictures(draft: dict[str, Any]) -> None:
    for file in st.session_state.get(_UPLOAD) or ():
        if file.file_id in draft["taken"]:
            continue
        draft["taken"].add(file.file_id)
        with refused(_PROBLEM):
            name = _put(draft, file.name, file.getvalue())
            if f"]({name})" in st.session_state[_TEXT]:
                continue  # the text has a place for it already
            words = re.sub(r"[\[\]\n]", " ", file.name.rpartition(".")[0])[:80]
            text = f"{st.session_state[_TEXT].rstrip()}\n\n![{words}]({name})\n"
            st.session_state[_TEXT] = text.lstrip()


def _put(draft: dict[str, Any], filename: str, data: bytes) -> str:
    """Take a picture into the draft; the name that the text has for it."""
    picture = as_kept(data, filename)
    plain = re.sub(r"[^\w./-]+", "-", filename).strip("-.") or "picture"
    address = f"data:{picture.media};base64,{base64.b64encode(picture.data).decode()}"
    name, number = plain, 2
    while name in draft["pictures"] and draft["pictures"][name][1] != address:
        stem, dot, ending = plain.rpartition(".")
        name, number = f"{stem or ending}-{number}{dot}{ending if stem else ''}", number + 1
    draft["pictures"][name] = (picture.data, address)
    return name


def _from_file(draft: dict[str, Any]) -> None:
    file = st.session_state.get(_FILE)
    if file is None or file.file_id in draft["taken"]:
        return
    draft["taken"].add(file.file_id)
    with refused(_PROBLEM):
        document = read_instructions(file.getvalue(), file.name)
        names = {filename: _put(draft, filename, data) for filename, data in document.pictures.items()}
        text = PICTURE.sub(lambda match: f"![{match[1]}]({names.get(match[2], match[2])})", document.text)
        st.session_state[_TEXT] = text[:LONGEST]
        if len(text) > LONGEST:
            raise InputError(f"{file.name} has {len(text):,} characters; {LONGEST:,} can be shown.")


def _save(session: Session, draft: dict[str, Any]) -> None:
    files = {name: data for name, (data, _) in draft["pictures"].items()}
    with refused(_PROBLEM):
        session.instructions.write(st.session_state[_TEXT], files, after=draft["after"])
        st.session_state.pop(_DRAFT, None)
        close()


def _earlier(versions: tuple[Instructions, ...], unsaved: bool) -> None:
    """Go back to a version: its text comes into the editor."""
    revisions = versions if unsaved else versions[:-1]

    def line(version: int) -> str:
        revision = versions[version - 1]
        words = " ".join(revision.text.split())[:40] or "none"
        return one_line(f"{version}, by {revision.annotator}, {revision.time[:10]}: {words}")

    st.selectbox(
        "An earlier version",
        [revision.version for revision in reversed(revisions)],
        index=None,
        format_func=line,
        key="instructions-version",
        placeholder="Take its text",
        on_change=_take,
        args=(versions,),
        width=320,
    )


def _take(versions: tuple[Instructions, ...]) -> None:
    version = st.session_state.get("instructions-version")
    if version:
        st.session_state[_TEXT] = versions[version - 1].text
        st.session_state["instructions-version"] = None


def _who_read(session: Session) -> str:
    state = session.state
    people = labelled_here(state)
    latest = state.instructions[-1]
    by = f"Version {latest.version}, by {latest.annotator}, {latest.time[:16].replace('T', ' ')} UTC"
    if not people:
        return f"{by}."
    n = sum(state.version_read(person) >= latest.version for person in people)
    return f"{by}; {n} of {plural(len(people), 'person', 'people')} who labelled here have read it."
