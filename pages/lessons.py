"""Lessons: a question, a picture that reacts to a slider, and what to look for."""

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from workbench.app.access import joining
from workbench.app.access.joining import CLASS, ROOM
from workbench.app.data import cards
from workbench.app.lessons import lessons, teaching, together
from workbench.app.shell import frame, widgets
from workbench.app.words.text import explain, show_error, used_in
from workbench.errors import InputError


def go(name: str | None) -> None:
    """To a lesson's preset, or to the list."""
    if name and name != together.NAME:
        lesson = lessons.find(name)
        for control in lesson.controls:
            st.session_state[teaching.key_of(lesson, control)] = control.default
    keep = {CLASS: "1"} if in_class() else {}
    st.query_params.from_dict(keep | ({"lesson": name} if name else {}))


def in_class() -> bool:
    return st.query_params.get(CLASS) == "1"


def toggle_class() -> None:
    if in_class():
        st.query_params.pop(CLASS, None)
    else:
        st.query_params[CLASS] = "1"


@st.fragment
def show(lesson: lessons.Lesson) -> None:
    """A lesson. Its controls run this anew, not the page."""
    share, students = head(lesson)
    with st.container(key="lesson-body"):
        values = teaching.controlled(lesson)
        query = {"lesson": lesson.name} | {k: str(v) for k, v in values.items()}
        if share is not None:
            address = (st.context.url or "").partition("?")[0]
            share.code(f"{address}?{urlencode(query)}", language=None, wrap_lines=True)
        with students:
            joining.join(query | {CLASS: "1"})
        with st.container(key="lesson-panes"):
            outcome, job = lessons.result(lesson, values)
            story, figure = st.container(key="lesson-story"), st.container(key="lesson-figure")
            reading, code = st.container(key="lesson-read"), st.container(key="lesson-code")
            story.header(lesson.question)
            if teaching.hidden(lesson, values):
                # computed meanwhile
                with story:
                    teaching.tell(lesson, "story", watch=True)
                with figure:
                    teaching.sketch(lesson)
                    teaching.ask_guess(lesson)
            else:
                with figure:
                    words = shown(lesson, values, outcome, job)
                with reading:
                    beside(lesson, values, words, is_computed=outcome is not None)
            if in_class():
                with code:
                    teaching.wall_code(query | {CLASS: "1"})


def shown(lesson: lessons.Lesson, values: lessons.Values, outcome: Any, job: Any) -> str:
    """The figures, as far as they are computed; what came out, in words."""
    if outcome is not None:
        window = st.session_state.get(lessons.WINDOW)
        n = len(lessons.drawn(lesson, outcome, values).pictures)
        if n > 1:
            lessons.unpin_figures()
        return teaching.pictures(
            lesson, outcome, values, lessons.stage_of(window, in_class=in_class(), pictures=n)
        )
    if job is not None and job.active:
        teaching.streaming(lesson, values, job)
    elif job is not None and job.status == "failed":
        teaching.failure(lesson, values, job)
    else:
        # it ended between the two looks
        st.rerun()
    return ""


def beside(lesson: lessons.Lesson, values: lessons.Values, words: str, *, is_computed: bool) -> None:
    """Words beside the figures: how to read them, what came out, and what to look for."""
    if is_computed:
        teaching.compare_guess(lesson)
    teaching.tell(lesson, "read", values, watch=True)
    if is_computed and in_class():
        teaching.tally(lesson)
    if words:
        teaching.measured(words)
    st.header("What to look for")
    teaching.tell(lesson, "look")
    with st.expander("The story before the guess", key="lesson-before"):
        teaching.tell(lesson, "story")
    teaching.source(lesson)


def head(lesson: lessons.Lesson) -> tuple[Any, Any]:
    """The title and what stands beside it; returns as `bar`."""
    with widgets.row("lesson-head", horizontal_alignment="distribute"):
        # the link to data of one's own speaks of a pool
        terms = used_in(*lessons.written(lesson), "pool")
        st.title(lesson.title, width="content", help=explain(*terms))
        return bar(lesson)


def bar(lesson: lessons.Lesson) -> tuple[Any, Any]:
    """Header of a lesson: places for this state's address, None in class mode, and for the students'.

    Buttons here leave the lesson or change its frame, so that they run the whole page.
    """
    place, share = lessons.LESSONS.index(lesson), None
    with widgets.row("lesson-bar"):
        if st.button("All lessons", key="lesson-list", type="tertiary", icon=":material/arrow_back:"):
            go(None)
            st.rerun()
        if st.button("Reset", key="lesson-reset", type="tertiary", icon=":material/restart_alt:"):
            go(lesson.name)
            st.rerun()
        if st.button(
            "Leave class mode" if in_class() else "Class mode",
            key="lesson-class",
            type="tertiary",
            icon=":material/co_present:",
            help="Large type and no menu, for a projector or for students",
        ):
            toggle_class()
            st.rerun()
        with st.popover(
            "Join" if in_class() else "Share",
            icon=":material/qr_code_2:" if in_class() else ":material/link:",
            key="lesson-share",
            type="tertiary",
        ):
            if not in_class():
                st.markdown("This state, for yourself:")
                share = st.empty()
            st.markdown("For students: large type, no menu, and a copy of their own.")
            students = st.container()
            st.button(
                "Clear the guesses",
                key="clear-guesses",
                on_click=teaching.clear_guesses,
                args=(lesson.name,),
                help="Of everybody, for the next class",
            )
        if not in_class():
            teaching.worksheet(lesson)
        if place + 1 < len(lessons.LESSONS):
            following = lessons.LESSONS[place + 1]
            if st.button(
                "Next",
                key="lesson-next",
                type="tertiary",
                icon=":material/arrow_forward:",
                help=following.title,
            ):
                go(following.name)
                st.rerun()
    return share, students


def choose() -> None:
    total = sum(lesson.minutes for lesson in lessons.LESSONS)
    st.markdown(
        f"{len(lessons.LESSONS)} lessons of about ten minutes, {total} minutes in all, and one that a class "
        "does together. Each tells a short story, asks for a guess, and shows a figure that answers to the "
        "sliders in its text. No project is needed."
    )
    with st.container(key="lessons"):
        for number, lesson in enumerate(lessons.LESSONS, start=1):
            with st.container(border=True, key=f"card-{lesson.name}"):
                picture = lessons.thumbnail(lesson)
                if picture.is_file():
                    st.image(str(picture), width="stretch", alt=f"What the lesson shows: {lesson.title}")
                card(number, lesson.name, lesson.title, lesson.question, lesson.minutes)
        with st.container(border=True, key=f"card-{together.NAME}"):
            st.image(str(cards.picture(together.POOL, "image")), width="stretch", alt="Handwritten digits")
            number = len(lessons.LESSONS) + 1
            card(number, together.NAME, together.TITLE, together.QUESTION, together.MINUTES)


def card(number: int, name: str, title: str, question: str, minutes: int) -> None:
    st.markdown(f"**{number}. {title}**")
    st.markdown(question)
    st.button(
        f"Open · {minutes} min",
        key=f"open-{name}",
        icon=":material/play_arrow:",
        on_click=go,
        args=(name,),
    )


def show_together() -> None:
    """A pool that the class labels: everybody's desk, one curve."""
    try:
        shared = together.shared_project()
    except InputError as error:
        show_error(error)
        shared = None
    with widgets.row("lesson-bar"):
        if not joining.is_guest():
            st.button(
                "All lessons",
                key="lesson-list",
                type="tertiary",
                icon=":material/arrow_back:",
                on_click=go,
                args=(None,),
            )
        if shared is not None and in_class():
            with st.popover("Join", icon=":material/qr_code_2:", key="lesson-share"):
                st.markdown("Everybody labels at a desk of their own:")
                joining.join({"lesson": together.NAME, ROOM: shared.id, CLASS: "1"})
        elif shared is not None:
            st.button(
                "A new room",
                key="new-room",
                icon=":material/restart_alt:",
                on_click=together.begin,
                help="Begins with no labels; this one stays among the projects on Data",
            )
    with st.container(key="lesson-body"):
        st.header(together.QUESTION)
        if shared is None:
            together.before()
            return
        if in_class():
            together.label(shared)
            together.curve(shared)
        else:
            figure, code = widgets.split([1.8, 1], "together-panes", below=900)
            with figure:
                together.curve(shared)
            with code, st.container(key="room-code"):
                st.markdown("**Point your phone here**, and leave this page on the wall.")
                widgets.style(".st-key-room-code img { width: clamp(10rem, 17vw, 24rem) !important; }")
                joining.join({"lesson": together.NAME, ROOM: shared.id, CLASS: "1"})
        teaching.look(together.LOOK)


lesson_name = st.query_params.get("lesson")
lessons.stage_style(in_class=in_class())
widgets.style(
    ".st-key-lessons { display: grid; gap: 1rem;"
    " grid-template-columns: repeat(auto-fill, minmax(max(15rem, 30%), 1fr)); }"
    ".st-key-lessons > div, .st-key-lessons > div > div { width: 100%; height: 100%; }"
)
lesson = None
problem = ""
if lesson_name and lesson_name != together.NAME:
    try:
        lesson = lessons.find(lesson_name)
    except InputError as error:
        problem = str(error)
title = together.TITLE if lesson_name == together.NAME else "Lessons"
TERMS = ("pool", "policy", "inducing point", "argmax frequency")
if lesson is None:
    st.title(title, help=explain(*TERMS))
if problem:
    show_error(problem)
if lesson is not None:
    show(lesson)
elif lesson_name == together.NAME:
    show_together()
else:
    choose()
if not joining.is_guest():
    with st.container(key="go-data"):
        frame.link("data", "Label a pool of your own", ":material/database:")
