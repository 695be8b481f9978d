"""One's own data: one file or folder in, a table of choices filled in, one button that starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from workbench.app.access import auditing, current, login, uploads
from workbench.app.data import forms, questions
from workbench.app.data.column_uses import (
    CHOICES,
    GUESSES,
    VERSION,
    chips,
    editor,
    guessed_columns,
    is_told,
    summary,
)
from workbench.app.serving.caching import computed, stamp
from workbench.app.shell import background_files, frame, widgets
from workbench.app.words.text import for_people, plural, show_error, verbatim
from workbench.errors import InputError, install_command
from workbench.pools.encoders import ENCODERS
from workbench.pools.features.vectors import PREFIX
from workbench.pools.formats import endings_of, format_of
from workbench.pools.formats.files import File
from workbench.store import LABEL, Store

if TYPE_CHECKING:
    from workbench.pools import Pool
    from workbench.pools.tables.report import TableReport

PLACE, OPENING = "brought", "bundle-opening"
INPUTS = "brought-inputs"  # what was typed and chosen when a table began to be read again
MARKS = {
    "error": ("error", "red"),
    "choice": ("help", "orange"),
    "guess": ("help", "orange"),
    "note": ("info", "blue"),
}
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
    "vectors": (
        "A file of vectors",
        "Of an encoder you ran yourself (NPZ with embeddings and ids, or Parquet with a column of lists): at "
        "no cost here; a good encoder needs the fewest labels.",
    ),
    "encoder": (
        "An encoder",
        "A network that others trained on millions of pictures, run here once, nothing downloaded: a tenth "
        "of a second a picture; fewest labels for photos of everyday things.",
    ),
}


def drop_zone() -> None:
    """Takes a file, or the path of a folder on this machine, and shows it from then on."""
    file = st.file_uploader(
        "A file of yours",
        type=list(endings_of()),
        key="upload",
        label_visibility="collapsed",
    )
    if file is not None:
        try:
            bring(str(uploads.keep(file.name, file.getvalue())))
        except InputError as error:
            show_error(error)
    if not login.may_name_paths():
        return  # the machine's files are not for everybody who reaches the server
    with st.popover("A folder on this machine", icon=":material/folder_open:", type="tertiary", key="folder"):
        path = st.text_input("Path", key="folder-path", placeholder="/home/me/photos", max_chars=4_000)
        # never disabled: the press that follows the typing would meet the button before it knows of the text
        if st.button("Open", key="open-folder"):
            place = place_of(path.strip()) if path.strip() else None
            if place is not None:
                bring(place)
            elif not path.strip():
                st.error("Type the path of a folder or a file.", icon=":material/error:")
            else:
                st.error(f"There is nothing at {verbatim(path, 200)}.", icon=":material/error:")


def place_of(path: str) -> str | None:
    """The file or folder of a path that was typed; None where nothing is, or it is no path at all."""
    try:
        place = Path(path).expanduser()
        return str(place.resolve()) if place.exists() else None
    except (OSError, RuntimeError, ValueError):
        return None


def bring(path: str) -> None:
    """Show this file or folder instead of the pools."""
    leave()
    st.session_state[PLACE] = path
    st.rerun()


def leave() -> None:
    """Forget what was brought."""
    for name in (PLACE, CHOICES, OPENING, VERSION, GUESSES, INPUTS, forms.WAITING):
        st.session_state.pop(name, None)


def page() -> None:
    """Upload: its table of choices or its images, and the button that starts."""
    path = st.session_state[PLACE]
    file = File.of(path)
    with widgets.row("brought-head"):
        st.header(verbatim(file.name, 60), width="stretch")
        if st.button("Back to the pools", key="leave-upload", type="tertiary", icon=":material/arrow_back:"):
            leave()
            st.rerun()
    try:
        if file.is_folder or file.plain_name.endswith(".zip"):
            from workbench.exchange.projects import is_project_bundle

            if is_project_bundle(path):
                bundle(path)
                return
        entry = format_of(file)
        if entry.reader.inspect is not None:
            table(path, file)
        elif entry.name in ("images", "idx"):
            images(path, file)
        else:
            whole(path, file)
    except InputError as error:
        show_error(error)


def bundle(path: str) -> None:
    """The bundle of a project: one button opens it."""
    from workbench.exchange.projects import wanted_by

    st.markdown("This is a project with all its history: labels, events, fits and settings.")
    needs, place = wanted_by(path), None
    options: dict[str, Any] = {}
    if login.may_name_paths() and needs.pool:
        st.markdown("Its pool, a file or a folder, is not in it.")
        place = st.text_input("Where its pool lies here", key="bundle-pool", max_chars=4_000).strip()
    if needs.fetch:
        fetch = "Fetch its pictures from the web addresses in its table"
        options["fetch"] = st.checkbox(fetch, key="bundle-fetch")
    arguments = Store.open().url, place or None, options, login.key_of_page()
    pressed = st.button("Open the project", type="primary", key="open-bundle", icon=":material/folder_open:")
    key = f"bundle-{path}-{arguments!r}"
    if pressed:
        auditing.room_for_project()
        st.session_state[OPENING] = key, token_hex(8)
    pressed_key, press = st.session_state.get(OPENING, ("", ""))
    if pressed_key != key:
        return
    try:
        project = background_files.read(
            "files",
            f"bundle-{press}",
            "bundle_opened",
            path,
            *arguments,
            title="Reading the bundle and its pool",
            tries=1,
        )
    except InputError:
        st.session_state.pop(OPENING, None)
        raise
    if project is not None:
        auditing.record("made", project[0], project[1], "from a bundle")
        leave()
        current.choose(project[0])
        frame.go("label")


# --- tables ---------------------------------------------------------------------------------------


def table(path: str, file: File) -> None:
    """A table: what each column is used for, what stands in the way, and the start."""
    if CHOICES not in st.session_state:
        st.session_state[CHOICES], st.session_state[VERSION] = first_choices(path), 0
    options: dict[str, Any] = dict(st.session_state[CHOICES])
    report = looked_at(path, options)
    if report.columns:
        head = st.container()
        options["columns"] = editor(report, path)
        report = looked_at(path, options)
        further_questions = questions.chosen("own-further", report)
        if columns := questions.columns_of(further_questions):
            options["columns"] = {**options["columns"], **{name: {"use": "leave out"} for name in columns}}
            report = looked_at(path, options)
        with head:
            summary(report)
        guesses = guessed_columns(report)
    else:
        guesses, further_questions = [], questions.chosen("own-further")
    problems(report, options)
    begins = st.container()  # what starts stands above what is only said: it does not move as that comes
    notes(report)
    with begins:
        begin(path, file, report, options, guesses, further_questions)


def begin(
    path: str,
    file: File,
    report: TableReport,
    options: dict[str, Any],
    guesses: Sequence[str],
    further_questions: Sequence[Any] | None,
) -> None:
    """The choices about a table that are left, and the start."""
    widgets.held(own_encoder=widgets.CHECKBOX, own_vectors=widgets.CHECKBOX)
    pictured = any(column.use is not None and column.use.use == "picture" for column in report.columns)
    if any(problem.code in ("folder", "files") for problem in report.problems) or options.get("folder"):
        folder_of_pictures(options)
    uses = [column.use.use for column in report.columns if column.use is not None]
    of_text = not pictured and uses.count("text") == 1 and not {"number", "category", "date"} & set(uses)
    if of_text and st.checkbox("Read the texts with an encoder", key="own-encoder", width="stretch"):
        encoder = own_encoder("text")
        if encoder is None:
            return
        options["features"] = encoder
    vectors = "features" not in options and st.checkbox(
        "Use vectors of my own in place of these columns", key="own-vectors", width="stretch"
    )
    if vectors:
        source = own_vectors()
        if source is None:
            return
        options["features"] = source
    if not report.ready:
        st.caption("Decide the points above to go on.")
        return
    kind = "image" if pictured else "text" if of_text else "table"
    start(
        kind,
        file.stem,
        len(report.classes),
        "class" not in uses,
        "good\nbad",
        path,
        options,
        guesses=guesses,
        further_questions=further_questions,
        votes=report.votes,
        called=next((c.name for c in report.columns if c.use and c.use.use == "class"), ""),
    )


def first_choices(path: str) -> dict[str, Any]:
    """Guesses for everything: the columns' uses, and the encoding of a text that is not UTF-8."""
    report, options = _table_beside(path, None)
    if report.columns and options.get("columns") == report.columns_option:
        # the same uses, said instead of guessed: the same report, which ten thousand columns make dear
        looked_at(path, options, report)
    return options


def looked_at(path: str, options: Mapping[str, Any], known: TableReport | None = None) -> TableReport:
    """The table under these options; read once for the same ones, and not at all where it is known."""
    return computed(_report, path, options, at=stamp(path, options), known=known)


def _report(path: str, options: Mapping[str, Any]) -> TableReport:
    return _table_beside(path, options)[0]


def _table_beside(path: str, options: Mapping[str, Any] | None) -> tuple[TableReport, dict[str, Any]]:
    """Content of a table, and the options that were guessed; the page ends while it is read."""
    inputs = path, stamp(path, options or {}), options, login.key_of_page()
    kind = sha256(repr(inputs).encode()).hexdigest()[:16]
    contents = background_files.read(
        "files", f"table-{kind}", "table_looked_at", path, options, title="Reading the table"
    )
    if contents is None:
        # the browser forgets what is not drawn in this run
        names = [str(name) for name in st.session_state if str(name).startswith("own-")]
        st.session_state.setdefault(INPUTS, {name: st.session_state[name] for name in names})
        st.stop()
    for name, value in st.session_state.pop(INPUTS, {}).items():
        with suppress(StreamlitAPIException):  # one that this run has drawn already
            st.session_state[name] = value
    report, guessed = contents
    return report, guessed or {}


def problems(report: TableReport, options: dict[str, Any]) -> None:
    """Findings that a person should decide; each way out is a button."""
    for number, problem in enumerate(problem for problem in report.problems if not is_told(problem)):
        icon, colour = MARKS[problem.severity]
        with st.container(border=True, key=f"problem-{number}", gap="xsmall"):
            st.markdown(f":{colour}[:material/{icon}:] {verbatim(for_people(problem.message))}")
            if problem.fixes:
                with st.container(horizontal=True, key=f"fixes-{number}", gap="small"):
                    for which, fix in enumerate(problem.fixes):
                        if st.button(verbatim(fix.label, 70), key=f"fix-{number}-{which}-{problem.code}"):
                            decide(merged(options, fix.options))


def notes(report: TableReport) -> None:
    """Findings that a person should know; how many rows are unlabelled the summary says."""
    notes = [problem for problem in report.problems if is_told(problem) and problem.code != "unlabelled"]
    # the table says of each column what its empty cells become
    said_above = [problem for problem in notes if problem.message.startswith("Empty cells of ")]
    if len(said_above) > 1:
        notes = [problem for problem in notes if problem not in said_above]
        names = {problem.column for problem in said_above}
        n = sum(column.n_missing for column in report.columns if column.name in names)
        st.caption(
            f":material/info: {n:,} cells of {len(names)} columns are empty; what they become is said above."
        )
    for problem in notes:
        st.caption(f":material/info: {verbatim(for_people(problem.message))}")


def decide(options: dict[str, Any]) -> None:
    """Go on under these options."""
    st.session_state[CHOICES] = options
    st.session_state[VERSION] += 1
    st.rerun()


def merged(options: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Reading options with a further decision; columns to leave out and uses of columns add up."""
    merged_options = {**options, **more}
    if "exclude" in more:
        merged_options["exclude"] = sorted({*options.get("exclude", ()), *more["exclude"]})
    if isinstance(more.get("columns"), Mapping) and isinstance(options.get("columns"), Mapping):
        merged_options["columns"] = {**options["columns"], **more["columns"]}
    return merged_options


def folder_of_pictures(options: dict[str, Any]) -> None:
    """The place of the files that a column names: a zip that is uploaded, or a folder on this machine."""
    with st.container(border=True, key="pictures"):
        st.markdown("**The pictures**: a zip of them, or their folder on this machine")
        file = st.file_uploader(
            "Pictures",
            type=["zip"],
            key="upload-pictures",
            label_visibility="collapsed",
        )
        path = ""
        if login.may_name_paths():
            path = st.text_input(
                "Folder", key="pictures-folder", max_chars=4_000, placeholder="/home/me/photos"
            )
        place = str(uploads.keep(file.name, file.getvalue())) if file is not None else path.strip()
        if place and place != options.get("folder"):
            decide(options | {"folder": place})


# --- everything else ------------------------------------------------------------------------------


def own_vectors() -> str | None:
    """The option of features that names an uploaded file of vectors; None where there is none yet."""
    file = st.file_uploader(
        "Vectors",
        type=["npz", "parquet", "pq"],
        key="upload-vectors",
    )
    return None if file is None else f"{PREFIX}{uploads.keep(file.name, file.getvalue())}"


def own_encoder(kind: str) -> str | None:
    """The option of features that names an encoder; None where the chosen one is not installed."""
    entries = [entry for entry in ENCODERS.values() if entry.kind == kind and not entry.name.endswith(":")]
    entry = st.selectbox(
        "Encoder",
        entries,
        format_func=lambda entry: entry.name,
        key=f"encoder-{kind}",
        help="Others by name on the command line: --pool-set features=NAME.",
    )
    st.caption(entry.sentence)
    if not entry.installed:
        st.warning(
            f"It is not installed here: `{install_command(entry.package)}`, then load this page again."
        )
        return None
    learnt = "shapes" if kind == "image" else "pieces"
    is_beside = st.toggle(
        "Beside features made from the pool",
        value=True,
        key=f"encoder-{kind}-both",
        help="Both sets of features count alike.",
    )
    return f"{learnt}+{entry.name}" if is_beside else str(entry.name)


def images(path: str, file: File) -> None:
    """Images: a look at them, what the model sees of them, and the start."""
    place = st.container(key="images-seen")  # first, though they are read by what is chosen below
    features = st.selectbox(
        "Features", list(FEATURES), format_func=lambda key: FEATURES[key][0], key="images-features"
    )
    st.caption(FEATURES[features][1])
    sources = {"vectors": own_vectors, "encoder": lambda: own_encoder("image")}
    source = sources[features]() if features in sources else features
    if source is None:
        return
    options: dict[str, Any] = {"features": source}
    if file.plain_name.endswith(".zip") or file.is_folder:
        choices: dict[str, Any] = {}
        if features == "pixels":
            left, middle = st.columns(2, gap="medium", vertical_alignment="bottom")
            size = left.selectbox("Size", list(SIZES), key="images-size", help="Networks like small images.")
            mode = middle.selectbox("Colours", list(MODES), key="images-mode")
            choices = {"resize": SIZES[size], "mode": MODES[mode]}
        options |= {name: value for name, value in choices.items() if value is not None}
    try:
        if forms.learns(options):
            pool = forms.pool_of(path, options)
            if pool is None:
                return  # how far it is stands in its place
        else:
            with st.spinner("Reading the images"):
                pool = read_whole(path, options)
    except InputError as error:
        show_error(error)
        if "resize=" in str(error) or "mode=" in str(error):
            st.caption("Size and colours above bring all images to one; shapes take them as they are.")
        return
    with place:
        preview(pool)
    start("image", file.stem, len(pool.classes), not pool.has_truth, "cat\ndog", path, options, pool)


def whole(path: str, file: File) -> None:
    """A file whose columns need no decisions, such as arrays: it is opened, shown and started."""
    with st.spinner("Reading the file"):
        pool = read_whole(path, {})
    if pool.kind == "image":
        images(path, file)
        return
    preview(pool)
    start(pool.kind, file.stem, len(pool.classes), not pool.has_truth, "good\nbad", path, {})


def read_whole(path: str, options: Mapping[str, Any]) -> Pool:
    """The pool behind a file or a folder, read once while nothing in it changes."""
    return computed(forms.load, path, options, at=stamp(path, options))


def preview(pool: Any) -> None:
    """A pool before it is started: some of its items, their classes, what was done to them."""
    from workbench.figures.parts import sheet, tile

    names = ", ".join(verbatim(name, 30) for name in pool.classes[:12])
    names += f" and {len(pool.classes) - 12} more" if len(pool.classes) > 12 else ""
    classes = f"{plural(len(pool.classes), 'class', 'classes')}: {names}" if pool.has_truth else ""
    if pool.kind == "image":
        shape = verbatim(pool.description.rstrip("."))
        st.markdown(f"**{shape}**" + (f"; {classes}." if classes else "."))
        step = max(1, len(pool) // 24)
        tiles = [tile(pool.items.show(i).image, 96) for i in range(0, len(pool), step)[:24]]
        st.image(
            sheet(tiles, 12, gap=4, ground=128),
            alt="Some of the images",
            output_format="PNG",
            width="stretch",
        )
    else:
        import pandas as pd

        st.markdown(f"**{verbatim(pool.title, 60)}** · {verbatim(pool.description)}")
        rows = pd.DataFrame(pool.features[:8, :40], columns=list(pool.feature_map.columns[:40]))
        widgets.grid(rows, "preview", "First rows")
        if classes:
            st.caption(classes)
    for note in pool.notes:
        st.caption(f":material/info: {verbatim(note)}")


def start(
    kind: Any,
    stem: str,
    n_classes: int,
    ask_classes: bool,
    example: str,
    path: str,
    options: dict[str, Any],
    pool: Pool | None = None,
    guesses: Sequence[str] = (),
    further_questions: Sequence[Any] | None = None,
    called: str = "",
    votes: tuple[str, str, str] | None = None,
) -> None:
    """The last part: class names where the data has none, settings, and the one green button."""
    from workbench.guesses import names_speak

    then = partial(_begun, path, votes, options)
    source, _, waiting_options, _ = st.session_state.get(forms.WAITING, (None,) * 4)
    if (source, waiting_options) == (path, options):
        forms.start_learnt()
        return
    if further_questions is None:
        try:
            further_questions = questions.chosen("own-further")
        except InputError as error:
            show_error(error)
            return
    typed = typed_classes(example, bool(further_questions), bool(guesses)) if ask_classes else ""
    of_vectors = kind != "text" and pool is not None and names_speak(pool)
    uses_names = (kind == "text" or of_vectors) and begins_with_names(of_vectors)
    with st.expander("Model, policy and seed", icon=":material/tune:", key="own-settings"):
        settings = forms.settings("new-own", stem, kind, n_classes, measures=ask_classes)
    checks = any(source.startswith("column:") for source in guesses)
    with st.container(horizontal=True, key="begin-own"):
        labels = st.button("Start labelling", type="primary", key="start-own", icon=":material/play_arrow:")
        audits = checks and st.button(
            "Check these labels",
            key="audit-own",
            icon=":material/fact_check:",
            help="Is the column good? Random items are labelled without seeing what it says, until it is "
            "known how many of its labels are wrong at most. No model is needed.",
        )
    if labels or audits:
        page = "finish" if audits else "label"
        try:
            classes = None
            if ask_classes:
                classes = forms.class_names(typed) if typed.strip() else ()
            by_names = uses_names and (of_vectors or speaking(classes, path, options))
            sources = [*guesses, *(["names"] if by_names else [])]
            values: dict[str, Any] = {"classes": classes, "guess": guesses_for(settings.classifier, sources)}
            if further_questions:
                # the question about the data's own classes stands before those that were chosen beside it
                has_own = not ask_classes or classes or guesses
                own_question = [(called or LABEL, list(classes or ()))] if has_own else []
                values |= {"classes": None, "questions": (*own_question, *further_questions)}
            project_settings = settings.model_copy(update=values)
            with st.status("Opening", expanded=True) as stages:
                forms.start(
                    path, project_settings, options=options, stages=stages, pool=pool, then=then, page=page
                )
        except InputError as error:
            show_error(error)


def _begun(path: str, votes: tuple[str, str, str] | None, options: Mapping[str, Any]) -> None:
    """End of a start: the votes of the table are taken into its project."""
    project = current.project_id()
    if votes is not None and project is not None:
        from workbench.exchange.imports import table_of_votes, take_votes

        _, answers, _ = table_of_votes(path, *votes, options)
        take_votes(current.opened(project), answers, File.of(path).name)
    leave()


def typed_classes(example: str, has_questions: bool, has_guesses: bool) -> str:
    """The names of the classes, as they were typed."""
    typed = st.text_area(
        "Classes, one a line",
        key="typed-classes",
        placeholder="Left empty: those that the guess names"
        if has_guesses
        else "Left empty: only the questions above are asked"
        if has_questions
        else example,
        height=120,
        max_chars=20_000,
        help="May stay empty: classes can be named while labelling, and more can be added then."
        + (" Left empty, they are those that the guess names." if has_guesses else ""),
    )
    with suppress(InputError):  # what is wrong with them is said at the start
        chips(dict.fromkeys(forms.class_names(typed)))
    return typed


def begins_with_names(of_vectors: bool) -> bool:
    """True if the first guess comes from the classes: of texts from their names, else from their vectors."""
    widgets.held(names_guess=widgets.CHECKBOX)
    likeness = (
        "an item is to each class's vector" if of_vectors else "a text is to each name and its guidance"
    )
    return st.checkbox(
        f"Begin with the {'vectors' if of_vectors else 'names'} of the classes as a guess",
        value=True,
        key="names-guess",
        width="stretch",
        help=f"How alike {likeness}. Your labels decide how far it is trusted; it can be switched off on the "
        "Label page.",
    )


def speaking(classes: Sequence[str] | None, path: str, options: Mapping[str, Any]) -> bool:
    """True if at least two of the classes have names that say something; of none named yet, it may come."""
    from workbench.guesses import names_say_something

    names = list(looked_at(path, options).classes) if classes is None else classes
    return len(names) < 2 or sum(names_say_something(names)) >= 2


def guesses_for(classifier: str, sources: Sequence[str]) -> tuple[str, ...]:
    """The sources, where the classifier takes any; names are no reason not to start with another."""
    from workbench.sessions.guessing import takes_guess

    other_sources = [source for source in sources if source != "names"]
    return tuple(sources if other_sources or takes_guess(classifier) else ())
