"""Data: choose a pool, bring your own, or go on with a project."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from workbench.app.access import auditing, current, login, sharing, uploads
from workbench.app.data import forms, questions, upload
from workbench.app.data.cards import face, picture, project_picture, thumbnail
from workbench.app.programs import control
from workbench.app.shell import frame, labelling_speed, missing_pool, widgets
from workbench.app.words.text import PER_CENT, explain, one_line, percent, plural, verbatim
from workbench.classifiers import sees_pixels
from workbench.documents.projects import ProjectSettings
from workbench.errors import InputError
from workbench.pools import POOLS, present_sets
from workbench.store import Store

UNITS = {"image": "image", "table": "row", "text": "text"}
MOST_PROJECTS = 60
CARDS = 6  # projects that are shown as cards; more are a list
CHOICES, CHOSEN = "data-choices", "data-chosen"  # what can be chosen, and what was


def facts(entry: Any) -> str:
    counts = (
        plural(entry.n_items, UNITS[entry.kind]),
        plural(entry.n_features, "feature"),
        plural(entry.n_classes, "class", "classes"),
    )
    # a number and its noun stay on one line
    return " · ".join(count.replace(" ", "\u00a0") for count in counts)


@st.dialog("New project", width="medium")
def options_of(source: str, title: str, words: str, kind: Any, n_classes: int) -> None:
    """Settings of a project on a pool that is here, before it starts.

    Args:
        source: name of the pool.
        title: of it.
        words: on it, Markdown.
        kind: of its items.
        n_classes: how many classes it has.
    """
    st.markdown(f"**{verbatim(title)}** · {words}")
    options: dict[str, Any] = {}
    if source == "three-gaussians":
        options["noise"] = st.slider(
            "Noise",
            0.05,
            2.0,
            0.5,
            0.05,
            key="noise",
            help="Variance of the three clusters: how far they overlap.",
        )
    if source.startswith("images:"):
        options["features"] = st.selectbox(
            "What the model sees",
            ("shapes", "pixels"),
            format_func=lambda name: {
                "shapes": "Shapes: gradients and patches, learnt from the images",
                "pixels": "Pixels: as they are",
            }[name],
            help="Shapes need far fewer labels. They are learnt once, in a minute or two, and kept. Networks "
            "and attacks need pixels.",
            key="known-features",
        )
    settings = forms.settings(f"new-{source}", title, kind, n_classes)
    if st.button("Start labelling", type="primary", key="start-with-options", icon=":material/play_arrow:"):
        start(source, settings, options)


def start(source: str, settings: ProjectSettings, options: Mapping[str, Any] | None = None) -> None:
    """Start a project on a pool that is here, of images on shapes unless its model sees pixels."""
    options = dict(options or {})
    if source.startswith("images:"):
        options = {"features": "shapes"} | options
        if sees_pixels(settings.classifier):
            options["features"] = "pixels"
    with st.spinner("Opening the pool"):
        forms.start(source, settings, options=options)


def card(name: str) -> None:
    entry = POOLS[name]
    with st.container(border=True, height="stretch", key=f"card-{name}"):
        # one element in the place of three: they are what the first visit waits for
        st.html(face(entry.title, picture(name, entry.kind), (entry.summary, facts(entry))))
        with st.container(horizontal=True, key=f"actions-{name}"):
            if st.button("Start labelling", key=f"start-{name}"):
                start(name, ProjectSettings(name=entry.title))
            if st.button("Options", key=f"options-{name}", type="tertiary", icon=":material/tune:"):
                ask_no_more()
                options_of(name, entry.title, verbatim(entry.summary), entry.kind, entry.n_classes)


def lead(opened: Any) -> None:
    """The open project before all others: how far it is, what that means, and the way on."""
    from workbench.figures.curves import sparkline

    with opened.log.snapshot():
        sentence, meaning = labelling_speed.progress(opened)
        rounds = labelling_speed.measured_rounds(opened.rounds)
        picture = sparkline([fit.error for fit in rounds], width=420, height=96)
    with st.container(border=True, key="card-open"):
        if picture is None:
            words = st.container()
        else:
            words, figure = widgets.split([3, 2], "open-columns", below=900)
            first_fit, last_fit = rounds[0], rounds[-1]
            with figure:
                caption = f"Error from {percent(first_fit.error)} to {percent(last_fit.error)}"
                st.image(picture, width="stretch", alt=f"{caption}, after each fit")
                st.caption(f"{caption}, with {first_fit.n_labelled:,} to {last_fit.n_labelled:,} labels.")
        with words:
            st.markdown(f"**{verbatim(opened.project.name, 80)}**: {sentence}")
            st.markdown(meaning)
            with widgets.row():
                if st.button("Go on labelling", key="go-on-open", type="primary"):
                    go_on(opened.id)
                frame.link("finish", "Let the machine finish", ":material/verified:")


def own_data() -> None:
    """The place for a file, above everything else, however many projects there are."""
    with st.container(border=True, key="card-own"):
        words, place = st.columns([3, 4], gap="medium", vertical_alignment="center")
        with words, st.container(gap="xxsmall"):
            st.markdown("**Your own data**")
            st.caption(
                "A table, texts a line each, a zip of images, another tool's export, or a project's bundle. "
                "It stays on this machine.",
                help="Tables: CSV, Excel, Parquet, JSON. Others: Label Studio, a Hugging Face folder, "
                f"arrays. Up to {uploads.most_bytes() >> 20} MB.",
            )
        with place, st.container(gap="xxsmall"):
            upload.drop_zone()


def ago(time: str) -> str:
    """Age of something, in words."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return "never"
    # another server's clock may be ahead
    minutes = max(0.0, (datetime.now(UTC) - moment).total_seconds() / 60)
    for limit, size, word in ((60, 1, "minute"), (60 * 36, 60, "hour"), (60 * 24 * 60, 60 * 24, "day")):
        if minutes < limit:
            n = int(minutes // size)
            return "just now" if n == 0 else f"{plural(n, word)} ago"
    return moment.date().isoformat()


@dataclass(frozen=True)
class About:
    """Facts about all projects of the list, each asked for once a page.

    Attributes:
        people: who decided something, by project.
        answers: items with a label and questions, by project.
        names: of the people of the server, by key.
        stages: the last fit, checks and certificate, by project.
        opened: id of the open project.
    """

    people: Mapping[str, list[str]]
    answers: Mapping[str, tuple[int, int]]
    names: Mapping[str, str]
    stages: Mapping[str, Mapping[str, Any]]
    opened: str | None


def next_step(record: Any, about: About) -> tuple[str, str, str]:
    """The next step in a project: a sentence, the words of a button, and the page that it leads to."""
    from workbench.sessions.measure import ENOUGH, Evaluation, ModelVerdict

    n, questions = about.answers[record.id]
    # of several questions nobody's stage is the project's
    stages = about.stages.get(record.id, {}) if questions == 1 else {}
    checks = [kind for kind in stages if kind != "round"][-1:]
    left = max(0, record.n_askable * questions - n)
    if checks == ["certified"]:
        return "Certified: take its labels away, or label the rest.", "See the certificate", "finish"
    if checks:
        return "Its labels are being checked.", "Go on checking", "finish"
    if n and not left:
        return "Everything is labelled.", "Look at the labels", "history"
    fit, words = stages.get("round", {}), f"{plural(left, 'answer')} to go"
    if (n_test := fit.get("n_test", 0)) >= ENOUGH:
        measured = Evaluation.of(n_test, round(fit["error"] * n_test), "")
        words = f"The model: {ModelVerdict(measured).between}"
    return f"{words}.".replace(" %", PER_CENT), "Go on" if n else "Start", "label"


def project_card(record: Any, about: About) -> None:
    n_labelled, n_questions = about.answers[record.id]
    with st.container(border=True, height="stretch", key=f"project-{record.id}"):
        st.image(str(project_picture(record)), width="stretch", alt=f"Items of {record.name}")
        with st.container(height="stretch", gap="xxsmall"):
            st.markdown(
                f"**{verbatim(record.name, 60)}**{mark(record, about)}  \n{next_step(record, about)[0]}"
            )
            if record.n_askable:
                share = min(1.0, n_labelled / (record.n_askable * n_questions))
                st.progress(share, text=how_far(record, n_labelled, n_questions))
            st.caption(" · ".join(facts_of(record, about)))
        project_actions(record, about)


def mark(record: Any, about: About) -> str:
    return " · open" if record.id == about.opened else ""


def how_far(record: Any, n: int, questions: int) -> str:
    """Progress of a project, of one question or of several."""
    if questions < 2:
        return f"{n:,} of {record.n_askable:,} labelled"
    return f"{plural(n, 'answer')} to {questions} questions about {record.n_askable:,}"


def facts_of(record: Any, about: About) -> list[str]:
    """The source of a project's items, when it was used and by whom."""
    source, people = source_of(record), about.people.get(record.id, [])
    facts = [verbatim(source, 40)] if source != record.name else []
    facts.append(f"last used {ago(record.changed or record.created)}")
    if people:
        more = f" and {len(people) - 3} more" if len(people) > 3 else ""
        facts.append(", ".join(verbatim(name, 20) for name in people[:3]) + more)
    return [*facts, *sharing.facts(record, about.names)]


def project_actions(record: Any, about: About) -> None:
    from workbench.sessions.reopening import is_gone

    with st.container(horizontal=True, key=f"project-actions-{record.id}", gap="small", width="content"):
        _, words, page = next_step(record, about)
        if st.button(words, key=f"open-{record.id}"):
            go_on(record.id, page)
        if is_gone(record):
            with st.popover("Its file is gone", icon=":material/warning:", key=f"gone-{record.id}"):
                missing_pool.panel(record.id)
        with st.container(key=f"more-{record.id}", width="content"):
            # another key is another popover, which is shut: one that stays open lies over the dialog
            key = f"{SHUT}{record.id}-{st.session_state.get(SHUT + record.id, 0)}"
            with st.popover("More", icon=":material/more_horiz:", type="tertiary", key=key):
                more_of(record)
        sharing.control(record, about.names)


SHUT = "shut-more-"
"""State, with a project behind it: how often its *More* was shut, as a dialog came."""


def shut_more(project: str) -> None:
    st.session_state[SHUT + project] = st.session_state.get(SHUT + project, 0) + 1


def go_on(project: str, page: str = "label") -> None:
    current.choose(project)
    frame.go(page)


def more_of(record: Any) -> None:
    """Acts on a project beside going on with it."""
    store = Store.open()
    if st.button("Duplicate", key=f"duplicate-{record.id}", icon=":material/content_copy:", width="stretch"):
        auditing.room_for_project()
        copy = store.duplicate_project(record.id, f"{record.name} (copy)"[:80], owner=login.key_of_page())
        auditing.record("copied", record.id, record.name, copy.name)
        st.rerun()
    if not login.may_change(record):
        return
    name = st.text_input("Name", value=record.name, key=f"name-{record.id}", max_chars=80)
    if st.button("Rename", key=f"rename-{record.id}", width="stretch") and name.strip():
        store.update_project(record.id, name=name.strip())
        current.forget(record.id)
        st.rerun()
    dialog: dict[str, Any] = {"width": "stretch", "on_click": shut_more, "args": (record.id,)}
    if st.button("Questions", key=f"questions-{record.id}", icon=":material/checklist:", **dialog):
        questions.dialog(record)
    if st.button("Programs", key=f"programs-{record.id}", icon=":material/api:", **dialog):
        control.dialog(record)
    words, icon = (
        ("Take back", ":material/unarchive:") if record.archived else ("Archive", ":material/archive:")
    )
    if st.button(words, key=f"archive-{record.id}", icon=icon, width="stretch"):
        store.archive_project(record.id, not record.archived)
        if record.id == current.family_id() and not record.archived:
            current.choose(None)
        st.rerun()
    if st.button("Delete", key=f"delete-{record.id}", icon=":material/delete:", **dialog):
        ask_no_more()
        delete(record)


@st.dialog("Delete this project?")
def delete(record: Any) -> None:
    n_labelled, _ = Store.open().n_answers([record.id])[record.id]
    st.markdown(
        f"**{verbatim(record.name, 60)}** and its {plural(n_labelled, 'label')} will be gone for good. "
        "Export them first on the History page if you may want them again, or archive the project."
    )
    with st.container(horizontal=True):
        if st.button("Delete for good", key="delete-for-good", icon=":material/delete_forever:"):
            if not login.may_change(Store.open().project(record.id)):
                raise InputError("Only its owner may delete a project.")
            if record.id == current.family_id():
                current.choose(None)
            current.forget(record.id)
            Store.open().delete_project(record.id)
            words = plural(n_labelled, "label")
            auditing.record("deleted", record.id, record.name, words)
            thumbnail(record.id).unlink(missing_ok=True)
            st.rerun()
        if st.button("Keep it", type="primary", key="keep-it"):
            st.rerun()


def ask_no_more() -> None:
    """The question about an existing project was closed, or another dialog takes its place."""
    st.session_state.pop(forms.EXISTING, None)


@st.dialog("There is a project on this data", on_dismiss=ask_no_more)
def which_project() -> None:
    """Asked before a second project is made on the same data."""
    project_id, source, settings, options, then, page = st.session_state[forms.EXISTING]
    record = next((p for p in Store.open().projects() if p.id == project_id), None)
    if record is None:
        ask_no_more()
        st.rerun()
        return
    n_labelled, _ = Store.open().n_answers([record.id])[record.id]
    last = ago(record.changed or record.created)
    st.markdown(
        f"**{verbatim(record.name, 60)}** has {plural(n_labelled, 'label')} and was last used {last}."
    )
    typed = settings.classes if settings.classes and login.may_change(record) else ()
    project_classes = current.opened(record.id).classes if typed else ()
    typed = [name for name in typed if name not in project_classes]
    if typed:
        class_names = ", ".join(verbatim(name, 30) for name in typed[:5]) + (" ..." if len(typed) > 5 else "")
        st.markdown(f"Going on with it adds the classes that you typed: {class_names}.")
    with st.container(horizontal=True):
        if st.button("Go on with it", type="primary", key="go-on-with-it"):
            own_session = current.mine(current.opened(record.id))
            for name in typed:
                own_session.classes.add(name)
            ask_no_more()
            upload.leave()
            go_on(record.id)
        if st.button("Start a new one", key="start-a-new-one"):
            ask_no_more()
            upload.leave()
            with st.spinner("Opening the pool"):
                forms.start(source, settings, options=options, again=True, then=then, page=page)


def source_of(record: Any) -> str:
    return name_of(record.pool["name"])


def name_of(source: object) -> str:
    name = str(source)
    return POOLS[name].title if name in POOLS else name.replace("\\", "/").rpartition("/")[2]


def projects() -> None:
    records = sharing.visible(Store.open().projects())
    records.sort(key=lambda record: record.changed or record.created, reverse=True)
    if not records:
        return
    store = Store.open()
    answers = store.n_answers(project.id for project in records)
    about = About(store.contributors(), answers, sharing.names(), store.stages(), current.family_id())
    active = [record for record in records if not record.archived]
    aside = [record for record in records if record.archived]
    if len(active) > CARDS:
        listed(active, about)
    elif active:
        st.header("Go on with a project")
        none_alone("projects", len(active))
        with st.container(key="projects"):
            for record in active:
                project_card(record, about)
    if aside:
        with st.expander("Archived", key="fold-archived"), st.container(key="projects-archived"):
            for record in aside[:MOST_PROJECTS]:
                project_card(record, about)


def none_alone(grid: str, n: int) -> None:
    """Four cards in a row, or two, where three would leave the last one alone."""
    if n > 3 and n % 3 == 1:
        columns = "repeat(auto-fill, minmax(max(13rem, 22%), 1fr))"
        widgets.style(f".st-key-{grid} {{ grid-template-columns: {columns} !important; }}")


def listed(records: list[Any], about: About) -> None:
    """Many projects: a line each, the last used first, and a field that finds some."""
    with widgets.row("projects-head", horizontal_alignment="distribute"):
        st.header("Go on with a project", width="content")
        words = st.text_input(
            "Find a project",
            key="projects-find",
            placeholder=f"Find among {len(records):,} projects",
            label_visibility="collapsed",
            width=280,
        )
    matches = [project for project in records if all(w in called(project) for w in words.lower().split())]
    if not matches:
        st.caption("No project has these words.")
    with st.container(key="projects-list", gap="xxsmall"):
        for record in matches[:MOST_PROJECTS]:
            project_line(record, about)
    if len(matches) > MOST_PROJECTS:
        st.caption(f"The {MOST_PROJECTS} used last of {len(matches):,}; type to find others.")


def called(record: Any) -> str:
    """Text that a project is searched by."""
    return f"{record.name} {source_of(record)}".lower()


def project_line(record: Any, about: About) -> None:
    n_labelled, n_questions = about.answers[record.id]
    with widgets.row(f"project-{record.id}"):
        share = how_far(record, n_labelled, n_questions) if record.n_askable else ""
        words = " · ".join(filter(None, [share, *facts_of(record, about)]))
        title = f"**{verbatim(record.name, 60)}**{mark(record, about)} · {next_step(record, about)[0]}"
        st.markdown(f"{title}  \n:small[{words}]", width="stretch")
        project_actions(record, about)


def pools() -> None:
    st.header("Try it on a pool that is here")
    none_alone("pools", len(POOLS))
    with st.container(key="pools"):
        for name in POOLS:
            card(name)


def known_sets() -> None:
    """Larger sets that lie on this machine."""
    present = {e.full_name: e for e in present_sets()}
    if not present:
        return

    def line(name: str) -> str:
        entry = present[name]
        words = f"{entry.name.replace('_', ' ')} · {entry.group} · {plural(entry.n_items, 'item')}"
        return one_line(f"{words}, {plural(entry.n_classes, 'class', 'classes')}")

    st.header("Known sets on this machine")
    order = sorted(present, key=lambda name: (present[name].group != "images", name))
    with widgets.row("known", align="bottom"):
        name = st.selectbox("Set", order, format_func=line, key="known-set", width="stretch")
        entry, title = present[name], present[name].name.replace("_", " ")
        if st.button("Start labelling", key="start-known"):
            start(name, ProjectSettings(name=title))
        if st.button("Options", key="options-known", type="tertiary", icon=":material/tune:"):
            ask_no_more()
            kind = "image" if entry.group == "images" else "table"
            options_of(name, title, plural(entry.n_items, UNITS[kind]), kind, entry.n_classes)


def learning() -> None:
    """A start whose features are learnt before its project is there."""
    source, settings, *_ = st.session_state[forms.WAITING]
    st.header(verbatim(settings.name or name_of(source).rpartition(":")[2].replace("_", " ")))
    if not forms.start_learnt():
        st.button("Choose something else", key="leave-known", type="tertiary", on_click=upload.leave)


cards = " grid-template-columns: repeat(auto-fill, minmax(max(13rem, 30%), 1fr)); }"
grids = "".join(
    # as many cards in a row as have room, all of one height
    f".st-key-{grid} {{ display: grid; gap: 1rem;{cards}"
    f" .st-key-{grid} > div, .st-key-{grid} > div > div {{ width: 100%; height: 100%; }}"
    for grid in ("pools", "projects", "projects-archived")
)
widgets.style(
    grids +
    # what was chosen stands in its place at once: until a run ends, the page before it is there as well
    f"[data-testid=stMain]:has(.st-key-{CHOSEN}) .st-key-{CHOICES} {{ display: none; }}"
    # a picture keeps its place until it comes, so that no button below it moves
    f".st-key-{CHOSEN} [data-testid=stImage] img {{ width: 100%; aspect-ratio: auto 6 / 1; }}"
    ".st-key-card-open [data-testid=stImage] img { width: 100%; aspect-ratio: auto 35 / 8; }"
    ".st-key-projects [data-testid=stImage] img { width: 100%; aspect-ratio: auto 20 / 9; }"
    # the buttons of all cards of a row stand on one line
    ".st-key-pools [class*=st-key-card-] > :first-child { flex: 1; }"
    # a line a project: its words give way to its buttons, and below them on a phone
    ".st-key-projects-list > div { padding-bottom: .35rem;"
    " border-bottom: 1px solid color-mix(in srgb, currentColor 12%, transparent); }"
    "@media (min-width: 641px) { .st-key-projects-list [class*=st-key-project-]:not([class*=actions])"
    " { flex-wrap: nowrap; } .st-key-projects-list [class*=st-key-project-] > div:first-child"
    " { min-width: 0; } .st-key-projects-list [class*=st-key-project-actions-] { flex: none; } }"
)
st.title("Data", help=explain("pool", "policy"))
st.markdown("Choose what to label. The machine asks about the items that teach it most; you answer.")
if upload.PLACE in st.session_state or forms.WAITING in st.session_state:
    with st.container(key=CHOSEN):
        if upload.PLACE in st.session_state:
            upload.page()
        else:
            learning()
else:
    with st.container(key=CHOICES):
        if (opened := current.session()) is not None:
            lead(opened)
        own_data()
        projects()
        pools()
        known_sets()
# last: whoever opened another dialog in this run does not want to be asked any more
if forms.EXISTING in st.session_state:
    which_project()
