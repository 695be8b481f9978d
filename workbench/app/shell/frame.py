"""Parts that every page shares: title, menu, sidebar, the error of a person in place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import streamlit as st

from workbench.app.access import auditing, current, joining, login
from workbench.app.serving import fit_process
from workbench.app.serving.frontend import component
from workbench.app.serving.jobs import Job, manager
from workbench.app.shell import labelling_speed, missing_pool, palette, widgets
from workbench.app.words.text import one_line, percent, plural, show_error, verbatim
from workbench.errors import InputError
from workbench.progress import NOTICE, duration

if TYPE_CHECKING:
    from workbench.sessions import Session

ICON = Path(__file__).resolve().parent / "icon.svg"
LOGO = Path(__file__).resolve().parent / "logo.svg"
_PAGES: dict[str, Any] = {}
BASE = (
    # the header floats over an empty strip; where the menu is folded away, its button stands there
    "[data-testid=stHeader] { pointer-events: none; }"
    # on a narrow screen the logo stands in it, and the page goes away beneath
    "@media (min-width: 769px) { [data-testid=stHeader] { background: transparent; } }"
    "[data-testid=stHeader] *:not(button, a, button *, a *) { pointer-events: none; }"
    "[data-testid=stHeader] :is(button, a) { pointer-events: auto; }"
    "@media (min-width: 769px) { [data-testid=stApp]:not(:has([data-testid=stExpandSidebarButton]))"
    " [data-testid=stMainBlockContainer] { padding-top: 1.25rem; } }"
    # no stop of the Tab key that nobody needs
    "[data-testid=stHeaderActionElements], .st-key-projects [data-testid=stElementToolbar] { display: none; }"
    # small text and the text of figures at 4.5 to 1 or better
    "[data-testid=stCaptionContainer], [data-testid=stCaptionContainer] p { color: inherit; opacity: 1; }"
    "[data-testid=stCaptionContainer] > p { opacity: 0.8; }"
    ".js-plotly-plot .hoverlayer text, .js-plotly-plot .bartext, .js-plotly-plot .infolayer text,"
    " .js-plotly-plot .textpoint text, .js-plotly-plot [class$=tick] text"
    " { fill: currentColor !important; }"
    # words that stand on a plate of their own: it is of the page's ground, as they are of its ink
    ".js-plotly-plot .annotation .bg { fill: #FFFFFF !important; }"
    # a number with its interval takes two lines where there is no room for one
    "[data-testid=stMetricValue] * { white-space: normal; overflow: visible; }"
    # each paragraph in the direction of its first letter: names of classes and texts may be Arabic or Hebrew
    "[data-testid=stMarkdownContainer] :is(p, li, td, th, h1, h2, h3) { unicode-bidi: plaintext; }"
    # what is not chosen has an edge of 3 to 1 or better
    ":is([data-testid=stCheckbox]:not([data-selected=true]) label > div:first-of-type,"
    " [data-testid=stRadioOption]:not([data-selected=true]) > div > div:first-child)"
    " { outline: 1px solid color-mix(in srgb, currentColor 60%, transparent); outline-offset: -1px; }"
    # there is no room for it beside a legend, and no pointer
    "@media (max-width: 640px) { .js-plotly-plot .modebar-container { display: none; } }"
)
DARK = (
    ".js-plotly-plot .annotation .bg { fill: #12161C !important; }"
    "[data-selected=true] p, [data-testid=stSliderThumbValue] p { color: #8FC0F5; }"
    # a button without a frame under the pointer, and while its popover is open
    "button[kind=tertiary]:is(:hover, :active, [aria-expanded=true]) { color: #8FC0F5; }"
)


VISIT = "visit"
"""In the session state: a number that grows whenever another page is entered."""


_OF_ONE = ("finish", "compare", "uncertainty", "calibration", "adversarial", "history")
"""Pages about one question of a project."""

_TITLE = "tab-title"
"""State: the title of the browser's tab as the last run left it."""


OPENING = "Opening the project, its pool and its model. The first time after a start takes some seconds."


class PageEndsError(Exception):
    """The page has said all it can; what the frame draws after it still comes."""


DESK = "desk-shown"
"""State: the path of a page that shows the desk now, whose keys must not wait for a redraw."""


def run(pages: Sequence[Any]) -> None:
    """Route to the page in the address and draw the sidebar.

    Args:
        pages: `st.Page` objects, in the order of the menu; the first is where people start.
    """
    # a run begins with the tab's title as it stands; the browser shows each title that comes, however short
    st.set_page_config(
        page_title=st.session_state.get(_TITLE, "Workbench"), page_icon=str(ICON), layout="wide"
    )
    if login.required() and login.of_page() is None:
        st.session_state.pop(_TITLE, None)
        st.set_page_config(page_title="Workbench")
        # it stands at every address, so that a link into a project leads there after it
        at = [
            st.Page(login.page, title="Log in", url_path=menu_page.url_path, default=menu_page is pages[0])
            for menu_page in pages
        ]
        st.navigation(at, position="hidden").run()
        return
    guest = joining.is_guest()
    if not guest:
        st.logo(str(LOGO), size="large", icon_image=str(ICON))  # a way to the first page
    current_page = st.navigation(list(pages), expanded=True, position="hidden" if guest else "sidebar")
    widgets.style(BASE + (DARK if st.context.theme.type == "dark" else ""))
    for menu_page in pages:
        # the default page has no path of its own, and comes first
        _PAGES[menu_page.url_path or "data"] = menu_page
    _PAGES["data"] = pages[0]
    if guest and current_page is _PAGES.get("lessons"):
        current_page.run()
        return
    opened, problem, refused, refused_project = None, None, None, None
    try:
        with st.spinner(OPENING):
            opened = current.session()
    except login.NotYoursError as error:
        refused, refused_project = str(error), current.project_id()
        current.choose(None)
    except InputError as error:
        problem = str(error)
    if st.session_state.get("page-shown") != current_page.url_path:
        st.session_state["page-shown"] = current_page.url_path
        st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1
    titles = [current_page.title, *([opened.project.name] if opened is not None else []), "Workbench"]
    st.session_state[_TITLE] = " · ".join(titles)
    st.set_page_config(page_title=st.session_state[_TITLE])
    if opened is not None:
        with st.sidebar.container(key="question-of"):
            _question(opened)
    side = st.sidebar.container(key="side")
    if login.required():
        with side:
            login.side()
    if refused is not None:
        st.error(refused, icon=":material/lock:")
        person = login.of_page()
        if person is not None and refused_project is not None:
            mount_kept_answers(refused_project, person)
    if problem is not None:
        _lost(problem)
        with side:
            st.caption("No project is open.")
        engine(side)
        st.stop()
    if opened is not None and current_page.url_path in _OF_ONE:
        _named(opened)
    try:
        with current.page_run():
            current_page.run()
    except InputError as error:
        show_error(error)
    except PageEndsError:
        pass
    # after the page, so that it shows what the page has just done
    with side:
        session = opened if opened is not None and opened.id == current.project_id() else _reopened()
        at_desk = current_page.url_path == "label" or st.session_state.get(DESK) == current_page.url_path
        # the Data page has dialogs and its tables of columns, which the end of a fit must not close; where
        # nothing moves it looks for nothing, as a look that is late finds another page in its place
        is_written = at_desk or (current_page.url_path == "" and session is not None and _moving())
        (_beside_what_is_written if is_written else _project)(session)
        palette.mount(session, {name: _PAGES[name] for name in _listed(pages)})
    if not is_written:
        engine(side)
    fit_process.page_shown()
    if opened is not None:
        auditing.opened(opened)


def _listed(pages: Sequence[Any]) -> list[str]:
    """Names of the pages in the menu: the default one is "data", others are called as in the address."""
    return [
        "data",
        *(menu_page.url_path for menu_page in pages[1:] if menu_page.url_path not in ("", "data")),
    ]


def first_page() -> None:
    """Send whoever asks for the first page by its name to where it answers."""
    go("data")


def go(name: str) -> None:
    """Go to a page, with the project kept in the address; a name as for `page`."""
    st.switch_page(page(name), query_params=current.in_address())


def _reopened() -> Session | None:
    try:
        return current.session()
    except InputError:
        return None


def page(name: str) -> Any:
    """The page with this address, for links.

    Args:
        name: "data", "label", "compare", "uncertainty", "history", ...
    """
    return _PAGES[name]


def link(name: str, label: str, icon: str | None = None, **more: str) -> None:
    """A link to a page that keeps the project in the address; `more` stands there as well."""
    st.page_link(page(name), label=label, icon=icon, query_params=current.in_address(**more))


EXAMPLES = {
    "error": "What you will see: how the error falls while you label.",
    "doubt": "What you will see: every item on a map, the doubtful ones bright, and which to label next.",
    "reliability": "What you will see: how often the model is right when it says how sure it is.",
    "answers": "What you will see: how many answers it takes to say how wrong the labels are at most.",
    "wrong_labels": "What you will see: labels that look wrong first, with the chance that each is right.",
}
"""Name of `figures.parts.example` -> what its figure is an example of."""


def needed(what: str, title: str | None = None, example: str = "") -> Session:
    """The current session; without one, say what to do, show an example and end the page.

    Args:
        what: what the page would show: "label items", "see where the model is unsure".
        title: of the page, where it has not been drawn yet.
        example: of `EXAMPLES`.
    """
    opened = current.session()
    if opened is None:
        if title is not None:
            st.title(title)
        with st.container(border=True, key="no-project"):
            st.markdown("**No project is open.**")
            st.markdown(f"Bring your own data, try a set that is here, or go on with a project to {what}.")
            link("data", "Choose what to label", ":material/arrow_forward:")
        if example:
            from workbench.figures import parts

            widgets.figure(parts.example(example), f"example-{example}", f"An example. {EXAMPLES[example]}")
            st.caption(EXAMPLES[example])
        end()
    return opened


def no_model(session: Any) -> NoReturn:
    """A page of a model, while the project has none: what is missing, and the way there."""
    with st.container(border=True, key="no-model"):
        st.markdown("**There is no model yet.**")
        st.markdown(labelling_speed.first_fit(session))
        if session.queue.n_left:
            link("label", "Label some items", ":material/arrow_forward:")
        else:
            link("history", "Look at the labels", ":material/arrow_forward:")
    end()


def end() -> NoReturn:
    """End the page here. `st.stop` would end the run, before the sidebar is drawn."""
    raise PageEndsError


def _lost(problem: str) -> None:
    project = current.project_id()
    if project is None or missing_pool.is_kept(project):
        st.title("This project cannot be opened")
        show_error(problem)
        st.markdown(
            "Nothing of the project is lost. If its file was moved, say where it is now; if it was changed, "
            "put it back as it was."
        )
        if project is not None:
            missing_pool.panel(project)
    else:
        st.title("There is no such project")
        st.error(
            f"No project here is called {verbatim(project, 40)}. It may have been deleted, or the "
            "address was cut on its way.",
            icon=":material/error:",
        )
    if st.button("Back to the projects", type="primary", key="leave-lost"):
        current.choose(None)
        go("data")


def _question(opened: Session) -> None:
    """Question of the project that the pages show; nothing where it asks one."""
    questions = [
        question for question in opened.questions.every if not question.aside or question.id == opened.id
    ]
    if len(questions) < 2:
        return
    ids = [question.id for question in questions]
    names = {question.id: one_line(question.question, 40) for question in questions}
    question_id = st.selectbox(
        "Question",
        ids,
        index=ids.index(opened.id),
        format_func=lambda id_: names[id_],
        key=f"question-{opened.id}",
        help="This project asks several. Labels, model, fits and figures are those of one.",
    )
    if question_id != opened.id:
        current.choose(question_id)
        st.rerun()


def _named(opened: Session) -> None:
    """Choice of the question of a page, where the side bar that says so is folded away."""
    if len(opened.questions) < 2:
        return
    widgets.style(
        "@media (min-width: 769px) { [data-testid=stLayoutWrapper]:has(> .st-key-question-named)"
        " { display: none; } }"
    )
    with st.container(key="question-named"):
        st.caption(f"Question: **{verbatim(opened.question_name, 60)}**")


def _project(opened: Session | None) -> None:
    if opened is None:
        st.caption("No project is open.")
        return
    with opened.log.snapshot():
        _facts(opened)


def _facts(opened: Session) -> None:
    state = opened.state
    total = int(opened.pool.trainable.size)
    st.markdown(f"**{verbatim(opened.project.name, 40)}**")
    st.progress(
        min(1.0, len(state.codes) / max(1, total)),
        text=f"{len(state.codes):,} of {plural(total, 'item')} labelled",
    )
    shares = labelling_speed.shares(state)
    if shares:
        st.caption(shares)
    sentence = labelling_speed.kept_apart(opened.pool)
    if sentence:
        st.caption(sentence)
    _error(opened)


@st.fragment(run_every=2.0)
def _beside_what_is_written(opened: Session | None) -> None:
    """Project and engine where a run of the page's script would be in the way.

    One look in two seconds for all of it, and never a whole page: what the browser draws, the keys of a desk
    wait for, and a dialog that somebody is writing in would be closed.
    """
    _project(opened)
    _engine_line()


def _error(opened: Session) -> None:
    from workbench.figures.curves import sparkline
    from workbench.sessions.measure import TOLD

    evaluation = opened.predictions.evaluation
    if opened.model is None:
        st.caption("Error: known after the first fit.")
        return
    if not evaluation.enough:
        st.caption(f"Error: {labelling_speed.error_so_far(evaluation)}.")
        return
    errors = [r.error for r in labelling_speed.measured_rounds(opened.rounds)]
    low, high = percent(evaluation.low, 0), percent(evaluation.high, 0)
    st.metric(
        f"Error on {plural(evaluation.n, 'measured item')}",
        # few items bear no figure, only its ends
        percent(evaluation.error) if evaluation.n >= TOLD else f"{low} to {high}",
        help=f"95\u00a0% interval {low} to {high}, on {evaluation.where}. Never trained on.",
    )
    picture = sparkline(errors)
    if picture is not None:
        st.image(picture, alt=f"Error after each fit, from {percent(errors[0])} to {percent(errors[-1])}")


@st.fragment(run_every=0.5)
def _watched_engine() -> None:
    if _engine_line() == "steady":
        st.rerun()


def engine(side: Any) -> None:
    """The engine's state at the foot of the sidebar; looks again by itself while something moves."""
    with side:
        if _moving():
            _watched_engine()
        else:
            _engine_line()


def _refit() -> Job | None:
    return manager().get(current.project_id() or "", "refit")


def _moving() -> bool:
    refit = _refit()
    return fit_process.engine_state()[0] == "loading" or (refit is not None and refit.active)


def _fitting(refit: Job) -> None:
    """A line for a fit, and for a long one how far it is and the way to end it."""
    words = refit.about or (f"{duration(refit.seconds)} so far" if refit.seconds >= NOTICE else "")
    if not words:
        st.caption(":blue[●] Fitting in the background")
        return
    words = "it ends after its present step" if refit.cancelling else words
    st.progress(refit.fraction, text=f"Fitting, {verbatim(words)}")
    st.button(
        "Cancel the fit",
        key="cancel-fit",
        icon=":material/stop:",
        disabled=refit.cancelling,
        on_click=refit.cancel,
    )


def _engine_line() -> str:
    (state, reason), refit = fit_process.engine_state(), _refit()
    if state == "failed":
        st.caption(f":red[●] Engine failed to load: {verbatim(reason, 200)}")
    elif refit is not None and refit.active:
        _fitting(refit)
    elif refit is not None and refit.status == "cancelled":
        st.caption(":gray[●] The last fit was cancelled; the next label begins another")
    elif refit is not None and refit.status == "failed":
        st.caption(f":red[●] The last fit failed: {verbatim(refit.error, 200)}")
    elif state == "loading":
        st.caption(":orange[●] Engine loading; you can start already")
    elif state == "ready":
        st.caption(":green[●] Engine ready")
    elif refit is not None and refit.status == "done":
        st.caption(":green[●] Ready; this model needs no engine")
    else:
        st.caption(":gray[●] Engine loads with the next fit")
    return "moving" if _moving() else "steady"


_HERE = Path(__file__).resolve().parent
_DESK = _HERE.parent / "desk"


def mount_kept_answers(project: str, person: login.Person) -> None:
    """Say how many answers wait, and offer them as a file; nothing where none do.

    Args:
        project: its id.
        person: whoever logged in.
    """
    data = {"project": project, "person": person.name, "account": person.account}
    scripts = _DESK / "parts.js", _HERE / "kept.js"
    kept = component("kept", *scripts, style=_DESK / "desk.css", html='<div class="desk-place"></div>')
    kept(key="kept-answers", data=data)
