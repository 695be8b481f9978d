"""Labels and projects out of the program and labels in, as the History page offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import auditing
from workbench.app.shell import background_files, widgets
from workbench.app.shell.downloads import button
from workbench.app.words.text import one_line, plural, refused, verbatim
from workbench.errors import InputError
from workbench.exchange.answers import IMPORTS
from workbench.exchange.imports import ImportPlan
from workbench.exchange.labels import FORMATS, OF_IMAGES
from workbench.exchange.questions import CARRIED_BY as OF_QUESTIONS
from workbench.exchange.questions import PREDICTED, QUESTIONS
from workbench.exchange.rows import CARRIED_BY, HISTORY, PAIRS, SCOPES
from workbench.reading import listed

if TYPE_CHECKING:
    from workbench.studies.tasks import Looked

NAMES = {
    "": "As the file tells",
    "csv": "CSV",
    "csv-bom": "CSV for Excel (byte-order mark)",
    "xlsx": "Excel",
    "parquet": "Parquet",
    "jsonl": "JSON lines",
    "npz": "NumPy (npz)",
    "label-studio": "Label Studio",
    "huggingface": "Hugging Face",
    "coco": "COCO",
    "folders": "Class folders",
    "arrow": "Feather, Arrow",
    "arff": "ARFF",
    "stata": "Stata",
    "sas": "SAS",
}
_READ, _TAKEN = "import-read", "import-begun"
MOST_ADDED = 100  # questions that a file brings
MOST_NEW = 8  # new classes that are asked about, one by one
_WHAT = {
    PAIRS: "Id and label",
    "labels": "Labels, with all that is known of each",
    "everything": "Everything",
    "predictions": "With predictions",
    "finished": "Finished set",
    "history": "History",
    QUESTIONS: "All questions, a column each",
    PREDICTED: "All questions, with predictions",
}


def model_download(session: Any) -> None:
    """A button that downloads the present model for NumPy alone.

    Args:
        session: of whoever looks at the page.
    """
    button(
        "Download the model",
        background_files.of_project("predictor_written", session, "The model"),
        f"{stem(session)}-model.zip",
        "download-model",
        icon="deployed_code",
        disabled=session.model is None,
        taken=auditing.exported(session, "the model"),
        help="The present model as one NPZ and a short predict.py that needs NumPy alone, not Workbench.",
    )


def _rows(session: Any, state: Any, scope: str) -> int:
    """About how many rows an export holds."""
    if scope == HISTORY:
        return int(state.n_events)
    if scope == QUESTIONS:
        return max(len(question.state.codes) for question in session.questions.sessions())
    return len(state.codes) if scope in (PAIRS, "labels") else len(session.pool)


def stem(session: Any) -> str:
    """The beginning of the names of its files."""
    return (
        "".join(c if c.isalnum() or c in "-_" else "-" for c in session.project.name).strip("-") or "labels"
    )


def format_box(session: Any, key: str, **more: Any) -> str:
    """The format of a file with labels, to be chosen.

    Args:
        session: of the project.
        key: of the widget.
        more: of `st.selectbox`.
    """
    return str(
        st.selectbox(
            "Format",
            [f for f in FORMATS if f not in OF_IMAGES or session.pool.kind == "image"],
            format_func=NAMES.__getitem__,
            key=key,
            persist_state="session",
            **more,
        )
    )


def downloads(session: Any, state: Any) -> None:
    """Buttons that download labels and project, and take labels in.

    Args:
        session: of whoever looks at the page; labels taken in are theirs.
        state: of its project.
    """
    with widgets.row("downloads", horizontal_alignment="right", width="content"):
        with st.popover("Download", icon=":material/download:", key="export"):
            file_format = format_box(session, "format", width="stretch")
            barred_scopes = {
                "predictions": session.model is None,
                "history": file_format not in CARRIED_BY,
                "finished": not state.certified,
            }
            scopes = [scope for scope in SCOPES if not barred_scopes.get(scope)]
            if len(session.questions.every) > 1 and file_format in OF_QUESTIONS:
                has_model = any(question.model is not None for question in session.questions.sessions())
                scopes = [QUESTIONS, *([PREDICTED] if has_model else []), *scopes]
            export_scope = st.selectbox(
                "What",
                scopes,
                format_func=_WHAT.__getitem__,
                key="export-what",
                width="stretch",
                persist_state="session",
                help="Two columns; labels with who gave them and why; every item with its status; every "
                "item, those without a label with what the model predicts and its confidence; what a "
                "certificate covers; or everything that people did, with who and when, to be read.",
            )
            n_rows = _rows(session, state, export_scope)
            button(
                "Download the labels",
                background_files.of_project(
                    "labels_written",
                    session,
                    "The labels",
                    file_format,
                    export_scope,
                    rows=n_rows,
                ),
                f"{stem(session)}{FORMATS[file_format]}",
                "download-labels",
                disabled=not n_rows,
                taken=auditing.exported(session, f"{_WHAT[export_scope].lower()}, {NAMES[file_format]}"),
            )
            button(
                "Download the project",
                background_files.of_project("bundle_written", session, "The project", rows=state.n_events),
                f"{stem(session)}-bundle.zip",
                "download-bundle",
                icon="folder_zip",
                taken=auditing.exported(session, "the project"),
                help="Settings, every event, every fit, the model and the pool's file: it opens again as a "
                "project, here or elsewhere, and workbench predict reads it.",
            )
        with st.popover("Import labels", icon=":material/upload:", key="import-box"):
            _importer(session)


def _importer(session: Any) -> None:
    """Labels from a file."""
    st.caption("Labels made elsewhere, matched by id. One undo takes them all back.")
    kind = st.selectbox("Format", ["", *IMPORTS], format_func=NAMES.__getitem__, key="import-format")
    file = st.file_uploader(
        "File",
        key="import-file",
        label_visibility="collapsed",
    )
    if file is None:
        for name in (_READ, _TAKEN):
            st.session_state.pop(name, None)
        return
    key = f"take-{session.id}-{session.annotator}-{file.file_id}-{kind}"
    pending_import = st.session_state.get(_TAKEN)
    with refused():
        if pending_import is not None and pending_import[0] == key:
            _take_in(session, file, kind, *pending_import)
            return
        preview, column = _looked_at(session, file, kind, ""), ""
        if preview is not None and preview.columns:
            column = (
                st.selectbox("The labels stand in", preview.columns, index=None, key="import-column") or ""
            )
            preview = _looked_at(session, file, kind, column) if column else None
        if preview is None:
            return
        choice = _asked(session, preview)
        if st.button("Import", key="import", type="primary", disabled=choice is None) and choice is not None:
            st.session_state[_TAKEN] = key, choice, column
            _take_in(session, file, kind, key, choice, column)


def _looked_at(session: Any, file: Any, kind: str, column: str) -> Looked | None:
    """Changes that a file would bring, as of now; None while it is read."""
    n_events = session.state.n_events
    n_questions = len(session.questions.every)
    key = f"look-{session.id}-{session.annotator}-{file.file_id}-{kind}-{n_events}-{n_questions}"
    previews: dict[str, Looked]
    of, previews = st.session_state.get(_READ, ("", {}))
    if of != key:  # another file, or labels that came since
        previews = {}
    if column in previews:
        return previews[column]
    new_preview: Looked | None = background_files.read(
        session.id,
        f"{key}-{column}",
        "labels_looked_at",
        session.store.url,
        session.id,
        kind,
        column,
        file.name,
        title="Reading the labels",
        data=file.getvalue(),
        session=session,
    )
    if new_preview is not None:
        st.session_state[_READ] = key, previews | {column: new_preview}
    return new_preview


def _take_in(session: Any, file: Any, kind: str, key: str, choice: Mapping[str, Any], column: str) -> None:
    """Take the labels of a file in, or show how far that is."""
    try:
        outcome = background_files.read(
            session.id,
            key,
            "labels_taken_in",
            session.store.url,
            session.id,
            session.annotator,
            kind,
            file.name,
            choice,
            column,
            title="Taking the labels in",
            data=file.getvalue(),
            session=session,
            tries=1,
        )
    except InputError:
        st.session_state.pop(_TAKEN, None)
        raise
    if outcome is not None:
        st.session_state.pop(_TAKEN, None)
        _imported(*outcome)


def _asked(session: Any, preview: Looked) -> dict[str, Any] | None:
    """Choice for the odd rows of a file; None while something is open."""
    assert preview.plan is not None
    if preview.plan.several:
        return {"leave_out_unknown": True} if _several(session, preview.plan) else None
    return _choices(preview.plan, session.classes, session.pool.items.ids)


def _several(session: Any, plan: ImportPlan) -> bool:
    """Changes that answers to several questions would bring, and whether nothing is open."""
    st.markdown(f"**It would bring: {verbatim(plan.words(), 300)}.**")
    if plan.changed:
        st.caption(f"{plural(plan.changed, 'answer')} of the file: another than here, or a new class.")
    if plan.strange:
        st.caption(f"No yes / no question is called {verbatim(', '.join(plan.strange[:8]), 200)}.")
        words = f"Add {plural(len(plan.strange), 'question')} answered by yes or no"
        if st.button(words, key="import-add-questions", disabled=len(plan.strange) > MOST_ADDED):
            for question in plan.strange:
                session.questions.add(question)
            st.rerun()
    ready = not plan.strange
    if plan.unknown:
        words = f"Leave out {plural(len(plan.unknown), 'row')} of items that this pool has not"
        ready = st.checkbox(words, key="import-leave-out") and ready
    return ready


def _imported(n: int, act: int | None) -> None:
    """Say it on the page that comes, with the event that an undo there takes back."""
    st.session_state["imported"] = n, act
    st.rerun()


def _choices(plan: ImportPlan, classes: Sequence[str], ids: Sequence[object]) -> dict[str, Any] | None:
    """Plan of the import, and the choice for the odd rows; None while something is open."""
    st.markdown(f"**It would bring: {verbatim(plan.words(), 300)}.**")
    for note in plan.notes:
        st.caption(verbatim(note, 300))
    ready, mapping, keep = True, {}, False
    for number, (name, n) in enumerate(plan.classes.items()):
        if number == MOST_NEW:
            st.caption(f"and {plural(len(plan.classes) - MOST_NEW, 'more new class', 'more new classes')}")
            break
        add = f"a new class, {one_line(name, 40)}"
        options = [add, *classes]
        to = st.selectbox(
            f"{plural(n, 'row')} of the class {one_line(name, 40)}: count them as",
            options,
            # a slip is not added unseen: somebody says which is meant
            index=None if name in plan.alike else 0,
            placeholder=f"Is it {one_line(plan.alike.get(name, ''), 40)}? Choose",
            key=f"import-class-{number}-{name}",
        )
        ready = ready and to is not None
        if to is not None and to != add:
            mapping[name] = str(to)
    if plan.differ:
        (_, item), (own_label, file_label) = next(iter(plan.differ.items()))
        example = f"item {ids[item]} is {own_label} here and {file_label} in the file"
        keep = (
            st.radio(
                f"{plural(len(plan.differ), 'label')} differ: {verbatim(example, 160)}",
                ["Take those of the file", "Keep what is here"],
                key="import-differ",
            )
            == "Keep what is here"
        )
    out = False
    if plan.unknown:
        head = listed(plan.unknown, 3, quote=False)
        out = st.checkbox(
            f"Leave out {plural(len(plan.unknown), 'row')} of items that are not here: {verbatim(head, 120)}",
            key="import-leave-out",
        )
        ready = ready and out
    return {"leave_out_unknown": out, "keep_mine": keep, "named": mapping} if ready else None
