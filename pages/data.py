"""Data: choose a pool, bring your own, or go on with a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from workbench.app import current, forms, frame, login, lost, sharing, uploads, widgets
from workbench.app.cards import picture
from workbench.app.text import for_people, plural, verbatim
from workbench.errors import InputError
from workbench.pools import POOLS
from workbench.pools.formats import endings_of

UNITS = {"image": "image", "table": "row", "text": "text"}
MARKS = {"error": ("error", "red"), "choice": ("help", "orange"), "note": ("info", "blue")}


def facts(entry: Any) -> str:
    return (
        f"{plural(entry.n_items, UNITS[entry.kind])} · {plural(entry.n_features, 'feature')} · "
        f"{plural(entry.n_classes, 'class', 'classes')}"
    )


@st.dialog("New project", width="medium")
def options_of(name: str) -> None:
    entry = POOLS[name]
    st.markdown(f"**{verbatim(entry.title)}** · {verbatim(entry.summary)}")
    loading: dict[str, Any] = {}
    if name == "three-gaussians":
        loading["noise"] = st.slider(
            "Noise",
            0.05,
            2.0,
            0.5,
            0.05,
            key="noise",
            help="Variance of the three clusters: how far they overlap.",
        )
    chosen = forms.settings(f"new-{name}", entry.title, entry.kind, entry.n_classes)
    if st.button("Start labelling", type="primary", key="start-with-options", icon=":material/play_arrow:"):
        with st.spinner("Opening the pool"):
            forms.start(name, chosen, options=loading)


def card(name: str) -> None:
    entry = POOLS[name]
    with st.container(border=True, height="stretch", key=f"card-{name}"):
        st.image(str(picture(name, entry.kind)), width="stretch", alt=f"Items of {entry.title}")
        with st.container(height="stretch", gap="xxsmall"):
            st.markdown(f"**{verbatim(entry.title)}**")
            st.caption(f"{verbatim(entry.summary)}  \n{facts(entry)}")
        with st.container(horizontal=True, key=f"actions-{name}"):
            kind = "primary" if name == next(iter(POOLS)) else "secondary"
            if st.button("Start labelling", key=f"start-{name}", type=kind):
                with st.spinner("Opening the pool"):
                    forms.start(name, forms.Settings(name=entry.title))
            if st.button("Options", key=f"options-{name}", type="tertiary", icon=":material/tune:"):
                options_of(name)


def own_card() -> None:
    with st.container(border=True, height="stretch", key="card-own"):
        st.image(str(picture("own", "table")), width="stretch", alt="A table")
        with st.container(height="stretch", gap="xxsmall"):
            st.markdown("**Your own table**")
            st.caption(
                "CSV, Parquet or arrays, a row an item; with classes, or without.  \n"
                f"up to {uploads.MAX_BYTES // 2**20} MB · checked first"
            )
        with st.container(horizontal=True, key="actions-own"):
            if st.button("Choose a file", key="choose-file", icon=":material/upload:"):
                st.session_state["uploading"] = True
                st.rerun()


def images_card() -> None:
    with st.container(border=True, height="stretch", key="card-images"):
        st.image(str(picture("images", "image")), width="stretch", alt="Images")
        with st.container(height="stretch", gap="xxsmall"):
            st.markdown("**Your own images**")
            st.caption(
                "A zip of folders, a folder a class or without classes; or an NPZ of arrays.  \n"
                f"up to {uploads.MAX_BYTES // 2**20} MB · checked first"
            )
        with st.container(horizontal=True, key="actions-images"):
            if st.button("Choose a file", key="choose-images", icon=":material/upload:"):
                st.session_state["uploading"] = "images"
                st.rerun()


def project_row(record: Any) -> None:
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"project-{record.id}", gap="medium"
    ):
        here = record.id == current.project_id()
        n_labelled, last = progress(record)
        with st.container(width="stretch", gap=None):
            st.markdown(f"**{verbatim(record.name, 60)}**" + (" · open" if here else ""))
            source = source_of(record)
            facts = [plural(n_labelled, "label"), f"last change {verbatim(last)}"]
            if source != record.name:
                facts.insert(0, verbatim(source, 50))
            st.caption(" · ".join([*facts, *sharing.facts(record)]))
        if st.button(
            "Go on" if n_labelled else "Start",
            key=f"open-{record.id}",
            type="primary" if here else "secondary",
        ):
            current.choose(record.id)
            st.switch_page(frame.page("label"), query_params={current.PARAMETER: record.id})
        if lost.is_gone(record):
            with st.popover("Its file is gone", icon=":material/warning:", key=f"gone-{record.id}"):
                lost.panel(record.id)
        sharing.control(record)
        if login.may_change(record) and st.button(
            "Delete", key=f"delete-{record.id}", type="tertiary", icon=":material/delete:"
        ):
            delete(record)


@st.dialog("Delete this project?")
def delete(record: Any) -> None:
    n_labelled, _ = progress(record)
    st.markdown(
        f"**{verbatim(record.name, 60)}** and its {plural(n_labelled, 'label')} will be gone for good. "
        "Export them first on the History page if you may want them again."
    )
    with st.container(horizontal=True):
        if st.button("Delete for good", key="delete-for-good", icon=":material/delete_forever:"):
            from workbench.store import Store

            if not login.may_change(Store.open().project(record.id)):
                raise InputError("Only its owner may delete a project.")
            if record.id == current.project_id():
                current.choose(None)
            current.forget(record.id)
            Store.open().delete_project(record.id)
            st.rerun()
        if st.button("Keep it", type="primary", key="keep-it"):
            st.rerun()


def source_of(record: Any) -> str:
    name = str(record.pool["name"])
    return POOLS[name].title if name in POOLS else name.replace("\\", "/").rpartition("/")[2]


def progress(record: Any) -> tuple[int, str]:
    from workbench.store import Store

    last = record.changed.replace("T", " ")[:16]
    return Store.open().n_labelled(record), f"{last} UTC" if last else "–"


def projects() -> None:
    from workbench.store import Store

    records = sharing.visible(Store.open().projects())
    if not records:
        return
    st.header("Go on with a project")
    for record in records[:4]:
        project_row(record)
    if len(records) > 4:
        with st.expander(f"{len(records) - 4} older"):
            for record in records[4:50]:
                project_row(record)


def pools() -> None:
    st.header("Start with a pool")
    with st.container(key="pools"):
        for name in POOLS:
            card(name)
        own_card()
        images_card()


def known_sets() -> None:
    """Larger sets that lie on this machine."""
    from workbench.pools import known_sets as known

    present = {e.full_name: e for e in known() if e.path is not None}
    if not present:
        return

    def line(name: str) -> str:
        entry = present[name]
        words = f"{entry.name.replace('_', ' ')} · {entry.group} · {plural(entry.n_items, 'item')}"
        return verbatim(f"{words}, {plural(entry.n_classes, 'class', 'classes')}")

    st.header("Known sets on this machine")
    order = sorted(present, key=lambda name: (present[name].group != "images", name))
    with st.container(horizontal=True, vertical_alignment="bottom", key="known"):
        name = st.selectbox("Set", order, format_func=line, key="known-set", width="stretch")
        if st.button("Start labelling", key="start-known"):
            with st.spinner("Opening the pool"):
                forms.start(name, forms.Settings(name=present[name].name.replace("_", " ")))
        if st.button("Options", key="options-known", type="tertiary", icon=":material/tune:"):
            options_of_known(present[name])


@st.dialog("New project", width="medium")
def options_of_known(entry: Any) -> None:
    kind = "image" if entry.group == "images" else "table"
    st.markdown(f"**{verbatim(entry.name.replace('_', ' '))}** · {plural(entry.n_items, UNITS[kind])}")
    chosen = forms.settings(f"known-{entry.full_name}", entry.name.replace("_", " "), kind, entry.n_classes)
    if st.button("Start labelling", type="primary", key="start-known-options", icon=":material/play_arrow:"):
        with st.spinner("Opening the pool"):
            forms.start(entry.full_name, chosen)


def problems(report: Any, options: dict[str, Any]) -> None:
    # what names the classes comes first: it settles some of the others
    ordered = sorted(report.problems, key=lambda p: not any("target" in fix.options for fix in p.fixes))
    for number, problem in enumerate(ordered):
        icon, colour = MARKS[problem.severity]
        with st.container(border=True, key=f"problem-{number}", gap="xsmall"):
            st.markdown(f":{colour}[:material/{icon}:] {verbatim(for_people(problem.message))}")
            if problem.fixes:
                with st.container(horizontal=True, key=f"fixes-{number}", gap="small"):
                    for which, fix in enumerate(problem.fixes):
                        label = verbatim(fix.label, 70)
                        if st.button(label, key=f"fix-{number}-{which}-{problem.code}"):
                            st.session_state["reading"] = uploads.merged(options, fix.options)
                            st.rerun()


def columns_of(report: Any) -> None:
    import pandas as pd

    table = pd.DataFrame(
        [
            {
                "Column": c.name,
                "Kind": c.type,
                "Used as": c.role,
                "Empty": c.n_missing,
                "Different": c.n_unique,
                "For example": ", ".join(c.examples),
            }
            for c in report.columns
        ]
    )
    with st.container(key="columns"):
        st.dataframe(table, hide_index=True, key="columns-table", alt="Columns")


def way_back() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("The file stays on this machine.")
        if st.button("Back to the pools", key="leave-upload", type="tertiary", icon=":material/arrow_back:"):
            for name in ("uploading", "reading", "reading-of"):
                st.session_state.pop(name, None)
            st.rerun()


AS_THEY_ARE = "As they are"
SIZES = {AS_THEY_ARE: None, "28 x 28": 28, "32 x 32": 32, "64 x 64": 64, "128 x 128": 128}
MODES = {AS_THEY_ARE: None, "Grey": "grey", "Colour": "colour"}


FEATURES = {
    "shapes": (
        "Shapes made from the pool (recommended)",
        "Gradients and patches learnt from these images, of any sizes: about 4 seconds a thousand images, "
        "once; usually half the labels or fewer.",
    ),
    "pixels": (
        "Raw pixels",
        "The images as they are, all of one size: at no cost; needed for attacks on the model.",
    ),
    "pca": (
        "Principal components",
        "50 directions of the pixels, all of one size: seconds; as good as pixels, and quicker to fit.",
    ),
    "vectors": (
        "A file of vectors",
        "Of an encoder you ran yourself (NPZ with embeddings and ids, or Parquet with a column of lists): at "
        "no cost here; a good encoder needs the fewest labels.",
    ),
}


def own_vectors() -> str | None:
    """The option of features that names an uploaded file of vectors; None where there is none yet."""
    from workbench.pools.features.vectors import PREFIX

    file = st.file_uploader(
        "Vectors", type=["npz", "parquet", "pq"], key="upload-vectors", max_upload_size=200
    )
    return None if file is None else f"{PREFIX}{uploads.keep(file.name, file.getvalue())}"


def upload_images() -> None:
    st.header("Your own images")
    way_back()
    file = st.file_uploader(
        "Images",
        type=list(endings_of("image")),
        key="upload-images",
        label_visibility="collapsed",
        max_upload_size=200,
    )
    if file is None:
        return
    features = st.selectbox(
        "Features", list(FEATURES), format_func=lambda key: FEATURES[key][0], key="images-features"
    )
    st.caption(FEATURES[features][1])
    source = own_vectors() if features == "vectors" else features
    if source is None:
        return
    options: dict[str, Any] = {"features": source}
    if file.name.lower().endswith(".zip"):
        left, middle, right = st.columns(3, gap="medium", vertical_alignment="bottom")
        chosen: dict[str, Any] = {}
        if features in ("pixels", "pca"):
            size = left.selectbox("Size", list(SIZES), key="images-size", help="Networks like small images.")
            mode = middle.selectbox("Colours", list(MODES), key="images-mode")
            chosen = {"resize": SIZES[size], "mode": MODES[mode]}
        if right.toggle("Leave out files that cannot be read", key="images-drop"):
            chosen["corrupt"] = "drop"
        options |= {name: value for name, value in chosen.items() if value is not None}
    from workbench.app.seeing import cached
    from workbench.pools import load_pool

    try:
        path = str(uploads.keep(file.name, file.getvalue()))
        with st.spinner("Reading the images"):
            pool = cached(("upload", path, *sorted(options.items())), lambda: load_pool(path, **options))
        if pool.kind != "image":
            raise InputError(f"{file.name} holds a table of {plural(len(pool), 'row')}, no images.")
    except InputError as error:
        st.error(verbatim(for_people(error)), icon=":material/error:")
        if "resize=" in str(error) or "mode=" in str(error):
            st.caption("Size and colours above bring all images to one; shapes take them as they are.")
        return
    seen(pool)
    stem = file.name.rpartition(".")[0]
    choose("images", "image", stem, len(pool.classes), not pool.has_truth, "cat\ndog", lambda: path, options)


def choose(
    key: str,
    kind: str,
    stem: str,
    n_classes: int,
    ask_classes: bool,
    example: str,
    kept: Callable[[], str],
    options: dict[str, Any],
) -> None:
    """The last part of an upload: class names where the file has none, settings, and the start."""
    typed = ""
    if ask_classes:
        typed = st.text_area(
            "Classes, one a line", key="typed-classes", placeholder=example, height=120, max_chars=20_000
        )
    settings = forms.settings(f"new-{key}", stem, kind, n_classes, measures=ask_classes)
    if st.button("Start labelling", type="primary", key=f"start-{key}", icon=":material/play_arrow:"):
        try:
            classes = forms.class_names(typed) if ask_classes else None
        except InputError as error:
            st.error(verbatim(for_people(error)), icon=":material/error:")
            return
        with st.spinner("Opening the pool"):
            forms.start(kept(), replace(settings, classes=classes), options=options)


def seen(pool: Any) -> None:
    """A pool before it is started: some of its items, their classes, what was done to them."""
    from workbench.figures.thumbnails import sheet, tile

    st.markdown(f"**{verbatim(pool.title, 60)}** · {verbatim(pool.description)}")
    if pool.kind == "image":
        step = max(1, len(pool) // 24)
        images = [tile(pool.items.show(i).image, 96) for i in range(0, len(pool), step)[:24]]
        st.image(
            sheet(images, 12, gap=4, ground=128),
            alt="Some of the images",
            output_format="PNG",
            width="stretch",
        )
    else:
        import pandas as pd

        rows = pd.DataFrame(pool.features[:8, :40], columns=list(pool.feature_map.columns[:40]))
        st.dataframe(rows, hide_index=True, key="preview", alt="First rows")
    if pool.has_truth:
        names = ", ".join(verbatim(name, 30) for name in pool.classes[:12])
        more = f" and {len(pool.classes) - 12} more" if len(pool.classes) > 12 else ""
        st.caption(f"{plural(len(pool.classes), 'class', 'classes')}: {names}{more}")
    for note in pool.notes:
        st.caption(f":material/info: {verbatim(note)}")


def upload() -> None:
    st.header("Your own table")
    way_back()
    file = st.file_uploader(
        "A table",
        type=list(endings_of("table")),
        key="upload",
        label_visibility="collapsed",
        max_upload_size=200,
    )
    if file is None:
        return
    data = file.getvalue()
    try:
        uploads.check(file.name, data)
        if not uploads.is_examined(file.name):
            upload_whole(file.name, data)
            return
    except InputError as error:
        st.error(verbatim(for_people(error)), icon=":material/error:")
        return
    if st.session_state.get("reading-of") != file.file_id:
        st.session_state["reading-of"], st.session_state["reading"] = file.file_id, {}
    options: dict[str, Any] = dict(st.session_state["reading"])
    from workbench.pools import inspect_table, with_learnt_features

    report = inspect_table(data, file_name=file.name, **options)
    names = [c.name for c in report.columns]
    if names:
        nobody = "People label (no column of classes)"
        choices = [nobody, *names]
        present = options.get("target")
        picked = st.selectbox(
            "Which column holds the classes?",
            choices,
            index=choices.index(present) if present in choices else 0,
            key=f"target-{file.file_id}",
        )
        target = None if picked == nobody else picked
        if target != options.get("target"):
            options = {k: v for k, v in options.items() if k != "target"} | (
                {"target": target} if target else {}
            )
            st.session_state["reading"] = options
            st.rerun()
    decided = {k: v for k, v in options.items() if k != "target"}
    if decided:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                "Decided: " + ", ".join(f"{verbatim(k)} = {verbatim(v, 40)}" for k, v in decided.items())
            )
            if st.button("Take back", key="take-back", type="tertiary", icon=":material/undo:"):
                st.session_state["reading"] = {k: v for k, v in options.items() if k == "target"}
                st.rerun()
    if report.columns:
        st.markdown(f"**{verbatim(report.name, 60)}** · {plural(report.n_rows, 'row')}")
        left, right = st.columns(2, gap="medium")
        with left:
            columns_of(report)
        with right:
            import pandas as pd

            st.dataframe(
                pd.DataFrame(list(report.preview)),
                hide_index=True,
                key="preview",
                alt="First rows",
            )
    if report.classes:
        most = sorted(report.classes.items(), key=lambda pair: -pair[1])
        st.caption(
            f"{plural(len(most), 'class', 'classes')}: "
            + ", ".join(f"{verbatim(name, 30)} ({n:,})" for name, n in most[:8])
            + (f" and {len(most) - 8} more" if len(most) > 8 else "")
        )
    problems(report, options)
    if not report.ready:
        st.caption("Decide the points above to go on.")
        return
    stem = file.name.rpartition(".")[0] or file.name
    chosen = with_learnt_features(data, options, file_name=file.name)
    choose(
        "own",
        "table",
        stem,
        len(report.classes),
        not options.get("target"),
        "good\nbad",
        lambda: str(uploads.keep(file.name, data)),
        chosen,
    )


def upload_whole(name: str, data: bytes) -> None:
    """A file whose columns need no decisions, such as arrays: it is opened, shown and started."""
    from workbench.app.seeing import cached
    from workbench.pools import load_pool

    path = str(uploads.keep(name, data))
    with st.spinner("Reading the file"):
        pool = cached(("upload", path), lambda: load_pool(path))
    seen(pool)
    stem = name.rpartition(".")[0] or name
    choose("own", pool.kind, stem, len(pool.classes), not pool.has_truth, "good\nbad", lambda: path, {})


widgets.style(
    # as many cards in a row as have room, all of one height
    ".st-key-pools { display: grid; gap: 1rem;"
    " grid-template-columns: repeat(auto-fill, minmax(max(13rem, 30%), 1fr)); }"
    ".st-key-pools > div, .st-key-pools > div > div { width: 100%; height: 100%; }"
)
st.title("Data")
st.markdown("Choose what to label. The machine asks about the items that teach it most; you answer.")
if st.session_state.get("uploading") == "images":
    upload_images()
elif st.session_state.get("uploading"):
    upload()
else:
    projects()
    pools()
    known_sets()
