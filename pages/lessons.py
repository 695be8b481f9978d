"""Lessons: a question, a picture that reacts to a slider, and what to look for."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from workbench.app import frame, lessons, widgets
from workbench.app.text import verbatim
from workbench.errors import InputError

CLASS = "class"
LARGE = (
    # a projector: no menu, large type
    "[data-testid=stSidebar], [data-testid=stExpandSidebarButton] { display: none; }"
    ".st-key-lesson-body p, .st-key-lesson-body li { font-size: 1.3rem; line-height: 1.5; }"
    ".st-key-lesson-body h3 { font-size: 2rem; } .st-key-lesson-body h4 { font-size: 1.5rem; }"
)


def go(name: str | None) -> None:
    """To a lesson's preset, or to the list."""
    for control in lessons.find(name).controls if name else ():
        st.session_state[f"lesson-{name}-{control.name}"] = control.default
    keep = {CLASS: "1"} if in_class() else {}
    st.query_params.from_dict(keep | ({"lesson": name} if name else {}))


def in_class() -> bool:
    return st.query_params.get(CLASS) == "1"


def toggle_class() -> None:
    if in_class():
        st.query_params.pop(CLASS, None)
    else:
        st.query_params[CLASS] = "1"


def values_of(lesson: lessons.Lesson) -> dict[str, Any]:
    """Draw the controls; their values go into the address."""
    values: dict[str, Any] = {}
    wrong = []
    columns = st.columns([3 if c.slider else 2 for c in lesson.controls], gap="large")
    for control, column in zip(lesson.controls, columns, strict=True):
        key = f"lesson-{lesson.name}-{control.name}"
        if key not in st.session_state:
            st.session_state[key], known = control.parse(st.query_params.get(control.name))
            if not known:
                wrong.append(control.label)
        options = list(control.options)
        with column:
            if control.slider:
                value = st.select_slider(
                    control.label, options, format_func=lambda v, c=control: c.options[v], key=key
                )
            elif len(options) > 3:
                value = st.selectbox(
                    control.label, options, format_func=lambda v, c=control: c.options[v], key=key
                )
            else:
                value = st.segmented_control(
                    control.label,
                    options,
                    format_func=lambda v, c=control: c.options[v],
                    key=key,
                    required=True,
                )
        values[control.name] = value
        st.query_params[control.name] = str(value)
    if wrong:
        st.info(
            f"The address asked for a value that {verbatim(wrong[0])} does not have; this is the preset.",
            icon=":material/info:",
        )
    return values


def draw(lesson: lessons.Lesson, made: Any, values: dict[str, Any]) -> None:
    pictures, words = lesson.draw(made, values)
    for place, picture in enumerate(pictures):
        widgets.figure(picture.figure, f"lesson-{lesson.name}-{place}", picture.alt)
    if words:
        st.markdown(f"**Measured here.** {verbatim(words, 1200)}")


@st.fragment(run_every=0.5)
def streaming(lesson: lessons.Lesson, values: dict[str, Any], job: Any) -> None:
    """The picture as far as it is computed, its place kept."""
    if not job.active:
        st.rerun()
    with st.container(height=lesson.height + 110, border=False, key="lesson-computing"):
        st.progress(job.fraction, text=verbatim(job.message or "Waiting for its turn"))
        if job.partial is not None:
            draw(lesson, job.partial, values)


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
        if place + 1 < len(lessons.LESSONS):
            following = lessons.LESSONS[place + 1]
            st.button(
                "Next lesson", key="lesson-next", icon=":material/arrow_forward:", on_click=go,
                args=(following.name,), help=following.title,
            )  # fmt: skip
    with st.container(key="lesson-body"):
        st.subheader(lesson.question)
        values = values_of(lesson)
        query = {"lesson": lesson.name} | {k: str(v) for k, v in values.items()}
        share.code(f"{base}?{urlencode(query)}", language=None)
        students.code(f"{base}?{urlencode(query | {CLASS: '1'})}", language=None)
        made, job = lessons.result(lesson, values)
        if made is not None:
            draw(lesson, made, values)
            lessons.prepare(lesson, values)
        elif job is not None and job.active:
            streaming(lesson, values, job)
        elif job is not None and job.status == "failed":
            st.error(f"This could not be computed: {verbatim(job.error)}", icon=":material/error:")
            st.button("Try again", key="lesson-retry", on_click=lessons.retry, args=(lesson, values))
        else:
            # it ended between the two looks
            st.rerun()
        st.markdown("#### What to look for")
        st.markdown("\n".join(f"- {line}" for line in lesson.look))


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
