"""Lessons: a question, a picture that reacts to a slider, and what to look for."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from workbench.app import frame, guesses, lessons, server, teaching, widgets
from workbench.app.text import verbatim
from workbench.errors import InputError

CLASS = "class"
LARGE = (
    # a projector: no menu, large type
    "[data-testid=stSidebar], [data-testid=stExpandSidebarButton] { display: none; }"
    ".st-key-lesson-body p, .st-key-lesson-body li { font-size: 1.3rem; line-height: 1.5; }"
    ".st-key-lesson-body h2 { font-size: 1.9rem; }"
)


def go(name: str | None) -> None:
    """To a lesson's preset, or to the list."""
    for control in lessons.find(name).controls if name else ():
        st.session_state[teaching.key_of(lessons.find(name), control)] = control.default
    keep = {CLASS: "1"} if in_class() else {}
    st.query_params.from_dict(keep | ({"lesson": name} if name else {}))


def base_address() -> str:
    """Where students find this page: this machine's address in its network, instead of 127.0.0.1."""
    base = (st.context.url or "").partition("?")[0]
    for own in ("//127.0.0.1", "//localhost"):
        if own in base:
            return base.replace(own, f"//{server.network_address()}")
    return base


def in_class() -> bool:
    return st.query_params.get(CLASS) == "1"


def toggle_class() -> None:
    if in_class():
        st.query_params.pop(CLASS, None)
    else:
        st.query_params[CLASS] = "1"


def show(lesson: lessons.Lesson) -> None:
    place = lessons.LESSONS.index(lesson)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson-bar"):
        st.button("All lessons", key="lesson-list", icon=":material/arrow_back:", on_click=go, args=(None,))
        st.button(
            "Reset", key="lesson-reset", icon=":material/restart_alt:", on_click=go, args=(lesson.name,)
        )
        st.button(
            "Leave class mode" if in_class() else "Class mode",
            key="lesson-class",
            icon=":material/co_present:",
            on_click=toggle_class,
            help="Large type and no menu, for a projector or for students",
        )
        with st.popover("Share", icon=":material/link:", key="lesson-share"):
            st.markdown("This state, for yourself:")
            query = {k: v for k, v in st.query_params.to_dict().items() if k not in (CLASS, "project")}
            base = (st.context.url or "").partition("?")[0]
            share = st.empty()
            st.markdown("For students: large type, no menu, and a copy of their own.")
            students = st.empty()
            if base_address() != base:
                st.caption("Students reach this machine only if the app was started with --address 0.0.0.0.")
            st.button(
                "Clear the guesses", key="clear-guesses", on_click=guesses.clear, args=(lesson.name,),
                help="Of everybody, for the next class",
            )  # fmt: skip
        if place + 1 < len(lessons.LESSONS):
            following = lessons.LESSONS[place + 1]
            st.button(
                "Next lesson", key="lesson-next", icon=":material/arrow_forward:", on_click=go,
                args=(following.name,), help=following.title,
            )  # fmt: skip
    with st.container(key="lesson-body"):
        st.header(lesson.question)
        values = teaching.controls(lesson)
        query = {"lesson": lesson.name} | {k: str(v) for k, v in values.items()}
        share.code(f"{base}?{urlencode(query)}", language=None)
        students.code(f"{base_address()}?{urlencode(query | {CLASS: '1'})}", language=None)
        made, job = lessons.result(lesson, values)
        if teaching.hidden(lesson, values):
            # computed meanwhile
            teaching.ask_guess(lesson)
            return
        if made is not None:
            teaching.draw(lesson, made, values, large=in_class())
            teaching.compare_guess(lesson, in_class())
            lessons.prepare(lesson, values)
        elif job is not None and job.active:
            teaching.streaming(lesson, values, job)
        elif job is not None and job.status == "failed":
            teaching.failure(lesson, values, job)
        else:
            # it ended between the two looks
            st.rerun()
        st.header("What to look for")
        teaching.look(lesson)


def choose() -> None:
    total = sum(lesson.minutes for lesson in lessons.LESSONS)
    st.markdown(
        f"{len(lessons.LESSONS)} lessons of about ten minutes, {total} minutes in all. Each opens ready: a "
        "question, a picture that answers to a slider, and what to look for. No project is needed."
    )
    with st.container(key="lessons"):
        for number, lesson in enumerate(lessons.LESSONS, start=1):
            with st.container(border=True, key=f"card-{lesson.name}"):
                st.markdown(f"**{number}. {lesson.title}**")
                st.markdown(lesson.question)
                st.button(
                    f"Open · {lesson.minutes} min",
                    key=f"open-{lesson.name}",
                    icon=":material/play_arrow:",
                    on_click=go,
                    args=(lesson.name,),
                )


wanted = st.query_params.get("lesson")
if in_class():
    widgets.style(LARGE)
widgets.style(
    ".st-key-lessons { display: grid; gap: 1rem;"
    " grid-template-columns: repeat(auto-fill, minmax(max(15rem, 30%), 1fr)); }"
    ".st-key-lessons > div, .st-key-lessons > div > div { width: 100%; height: 100%; }"
)
lesson = None
problem = ""
if wanted:
    try:
        lesson = lessons.find(wanted)
    except InputError as error:
        problem = str(error)
st.title(lesson.title if lesson is not None else "Lessons")
if problem:
    st.error(verbatim(problem), icon=":material/error:")
if lesson is not None:
    show(lesson)
else:
    choose()
frame.link("data", "Label a pool of your own", ":material/database:")
