"""History: every decision, every fit, and the way out of the program for both."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import streamlit as st

from workbench.app import frame
from workbench.app.text import plural, verbatim
from workbench.errors import InputError
from workbench.exchange import (
    FORMATS,
    export_labels,
    import_labels,
    label_table,
    write_project_bundle,
    zipped,
)
from workbench.exchange.imports import IMPORTS

NAMES = {
    "csv": "CSV",
    "parquet": "Parquet",
    "jsonl": "JSON lines",
    "npz": "NumPy (npz)",
    "label-studio": "Label Studio",
    "huggingface": "Hugging Face",
    "coco": "COCO",
}
WORDS = {
    "label": "labelled",
    "skip": "skipped",
    "unsure": "unsure",
    "flag": "flagged",
    "note": "note",
    "class-added": "class added",
    "class-renamed": "class renamed",
    "class-merged": "class merged",
    "imported": "imported",
    "resolved": "decided",
    "undo": "undo",
    "redo": "redo",
    "confirmed": "confirmed",
    "requeued": "to be asked again",
    "model-changed": "model changed",
    "round": "fit",
}
MOST = 5000


def bundle(session: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_project_bundle(Path(folder) / "bundle", session)
        return zipped(Path(folder) / "bundle")


def stem(session: Any) -> str:
    return (
        "".join(c if c.isalnum() or c in "-_" else "-" for c in session.project.name).strip("-") or "labels"
    )


def downloads(session: Any, state: Any) -> None:
    formats = [f for f in FORMATS if f != "coco" or session.pool.kind == "image"]
    with st.container(horizontal=True, vertical_alignment="bottom", key="downloads", gap="small"):
        chosen = st.selectbox(
            "Format",
            formats,
            format_func=lambda f: NAMES.get(f, f),
            key="format",
            width=190,
            persist_state="session",
        )
        st.download_button(
            "Download the labels",
            data=lambda: export_labels(session, chosen),
            file_name=f"{stem(session)}{FORMATS[chosen]}",
            key="download-labels",
            type="primary",
            icon=":material/download:",
            disabled=not state.codes,
            on_click="ignore",
        )
        st.download_button(
            "Download the run bundle",
            data=lambda: bundle(session),
            file_name=f"{stem(session)}-bundle.zip",
            mime="application/zip",
            key="download-bundle",
            icon=":material/folder_zip:",
            help="Settings, every event, every fit's figures and the model; `workbench predict` reads it.",
            on_click="ignore",
        )
        with st.popover("Import labels", icon=":material/upload:"):
            importer(session)


def importer(session: Any) -> None:
    st.caption("Labels made elsewhere, matched by id. One undo takes them all back.")
    kind = st.selectbox("Format", list(IMPORTS), format_func=lambda f: NAMES.get(f, f), key="import-format")
    file = st.file_uploader("File", key="import-file", label_visibility="collapsed", max_upload_size=200)
    if file is not None and st.button("Import", key="import", type="primary"):
        try:
            pairs = import_labels(file.getvalue(), session.pool, kind, session.classes)
            session.import_labels(pairs, file.name)
        except InputError as error:
            st.error(verbatim(error), icon=":material/error:")
        else:
            st.session_state["imported"] = len(pairs)
            st.rerun()


def class_of(session: Any, state: Any, key: str) -> str:
    return str(state.class_names.get(state.resolve(key), key))


def who(event: Any) -> str:
    if event.kind == "round":
        return "the machine"
    return (
        str(event.payload.get("source", event.annotator)) if event.kind == "label" else str(event.annotator)
    )


def events_table(session: Any, state: Any) -> None:
    import pandas as pd

    rows = []
    for event in reversed(session.events):
        if event.kind in ("asked", "released"):
            continue
        payload = event.payload
        what = ""
        if event.kind in ("label", "resolved"):
            what = class_of(session, state, str(payload["class"]))
        elif event.kind == "class-added":
            what = str(payload.get("name", payload["class"]))
        elif event.kind == "class-renamed":
            what = f"{payload['class']} → {payload['name']}"
        elif event.kind == "class-merged":
            what = f"{payload['class']} → {payload['into']}"
        elif event.kind == "imported":
            what = f"{plural(len(payload['labels']), 'label')} from {payload.get('source', 'a file')}"
        elif event.kind == "confirmed":
            what = (
                f"{class_of(session, state, str(payload['class']))}, {plural(len(payload['items']), 'item')}"
            )
        elif event.kind == "requeued":
            what = plural(len(payload["items"]), "item")
        elif event.kind == "model-changed":
            what = f"{payload['classifier']}, {payload['policy']}"
        elif event.kind == "note":
            what = str(payload["text"])
        elif event.kind == "round":
            error = payload.get("error")
            what = f"number {payload['number']}, {plural(payload['n_labelled'], 'label')}"
            what += f", error {error:.1%}" if error is not None else ""
        rows.append(
            {
                "Time (UTC)": event.time.replace("T", " ")[:19],
                "What": WORDS.get(event.kind, event.kind),
                "Item": "" if event.item is None else str(session.pool.items.ids[event.item]),
                "Class or change": what,
                "Who": str(payload.get("source", event.annotator))
                if event.kind == "label"
                else event.annotator,
                "Why asked": str(payload.get("role", "")),
                "Utility": payload.get("utility"),
                "Model had": payload.get("n_labelled") if event.kind != "round" else None,
            }
        )
        if len(rows) == MOST:
            st.caption(f"The newest {MOST:,}; the bundle has them all.")
            break
    with st.container(key="events"):
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key="events-table",
            height=460,
            column_config={
                "Utility": st.column_config.NumberColumn(format="%.3f"),
                "Model had": st.column_config.NumberColumn(
                    help="Labels the model had seen when the item was shown."
                ),
            },
            placeholder="",
            alt="Every decision, newest first",
        )


def labels_table(session: Any) -> None:
    import pandas as pd

    rows = label_table(session)
    if not rows:
        st.markdown("No item is labelled yet.")
        frame.link("label", "Label the first one", ":material/arrow_forward:")
        return
    table = pd.DataFrame(rows[:MOST])
    if len(rows) > MOST:
        st.caption(f"The first {MOST:,} of {len(rows):,}.")
    with st.container(key="labels"):
        st.dataframe(table, hide_index=True, key="labels-table", height=460, alt="The labelled items")


def fits_table(session: Any) -> None:
    import pandas as pd

    rounds = session.rounds
    if not rounds:
        st.markdown("The first fit comes with labels of two classes.")
        return
    rows = [
        {
            "Fit": r.number,
            "Labels": r.n_labelled,
            "Measured on": r.n_test,
            "Error": r.error,
            "NLL": r.nll,
            "Brier": r.brier,
            "ECE": r.ece,
            "Seconds": sum(r.seconds.values()),
        }
        for r in reversed(rounds)
    ]
    figures = {n: st.column_config.NumberColumn(format="%.3f") for n in ("NLL", "Brier", "ECE", "Seconds")}
    figures["Error"] = st.column_config.NumberColumn(format="percent")
    with st.container(key="fits"):
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key="fits-table",
            height=460,
            column_config=figures,
            alt="Every fit",
        )


session = frame.needed("see its history", "History")
state = session.state
st.title("History")
if "imported" in st.session_state:
    st.toast(f"Imported {plural(st.session_state.pop('imported'), 'label')}.", icon=":material/check:")
parts = [plural(len(state.codes), "item") + " labelled"]
parts += [
    f"{n:,} {word}" for n, word in ((len(state.skipped), "skipped"), (len(state.unsure), "unsure")) if n
]
parts += [f"{len(state.conflicts):,} in disagreement"] if state.conflicts else []
st.markdown(" · ".join(parts))
downloads(session, state)
decisions, labels, fits = st.tabs(["Decisions", "Labels", "Fits"])
with decisions:
    events_table(session, state)
with labels:
    labels_table(session)
with fits:
    fits_table(session)
