"""What the Lessons page and the Calibration page's experiments both draw."""

from __future__ import annotations

from typing import Any

import streamlit as st

from workbench.app import lessons, widgets
from workbench.app.downloads import figure_downloads
from workbench.app.jobs import Job
from workbench.app.text import verbatim


def key_of(lesson: lessons.Lesson, control: lessons.Control) -> str:
    """Key of a control's widget."""
    return f"lesson-{lesson.name}-{control.name}"


def controls(lesson: lessons.Lesson) -> lessons.Values:
    """Draw the controls; their values go into the address."""
    values: lessons.Values = {}
    wrong = []
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="lesson-controls"):
        for control in lesson.controls:
            key = key_of(lesson, control)
            if key not in st.session_state:
                st.session_state[key], known = control.parse(st.query_params.get(control.name))
                if not known:
                    wrong.append(control.label)
            values[control.name] = _control(control, key)
            st.query_params[control.name] = str(values[control.name])
    if wrong:
        st.info(
            f"The address asked for a value that {verbatim(wrong[0])} does not have; this is the preset.",
            icon=":material/info:",
        )
    return values


def _control(control: lessons.Control, key: str) -> Any:
    options = list(control.options)
    named: dict[str, Any] = {"format_func": control.options.__getitem__, "key": key}
    if control.slider:
        return st.select_slider(control.label, options, width=340, **named)
    if len(options) > 3:
        return st.selectbox(control.label, options, width=220, **named)
    return st.segmented_control(control.label, options, required=True, **named)


def draw(lesson: lessons.Lesson, made: Any, values: lessons.Values, *, finished: bool = True) -> None:
    """Pictures, what came out, and the pictures to take away.

    Args:
        lesson: it belongs to.
        made: its result, or as much of it as there is.
        values: of its controls.
        finished: whether that is all.
    """
    pictures, words, _ = lesson.draw(made, values)
    for place, picture in enumerate(pictures):
        key = f"lesson-{lesson.name}-{place}"
        widgets.figure(picture.figure, key, picture.alt)
        if finished:
            figure_downloads(picture.figure, f"workbench-{lesson.name}", f"save-{key}")
    if words:
        st.markdown(f"**Measured here.** {verbatim(words, 1200)}")


@st.fragment(run_every=0.5)
def streaming(lesson: lessons.Lesson, values: lessons.Values, job: Job, *, cancel: bool = False) -> None:
    """The picture as far as it is computed, its place kept.

    Args:
        lesson: it belongs to.
        values: of its controls.
        job: that computes it.
        cancel: whether there is a button to stop it.
    """
    if not job.active:
        st.rerun()
    with st.container(height=lesson.height + 150, border=False, key="lesson-computing"):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            words = "Stopping…" if job.cancelling else job.message or "Waiting for its turn"
            st.progress(job.fraction, text=verbatim(words))
            if cancel:
                st.button(
                    "Cancel",
                    key="lesson-cancel",
                    icon=":material/stop:",
                    disabled=job.cancelling,
                    on_click=job.cancel,
                )
        if job.partial is not None:
            draw(lesson, job.partial, values, finished=False)


def begin(lesson: lessons.Lesson, values: lessons.Values) -> None:
    """Compute a state, for a button."""
    lessons.start(lesson, values)


def failure(lesson: lessons.Lesson, values: lessons.Values, job: Job) -> None:
    """Say why a state could not be computed, and offer to try again."""
    st.error(f"This could not be computed: {verbatim(job.error)}", icon=":material/error:")
    st.button("Try again", key="lesson-retry", on_click=begin, args=(lesson, values))


def look(lesson: lessons.Lesson) -> None:
    """What to look for."""
    st.markdown("\n".join(f"- {line}" for line in lesson.look))
