"""Small things several pages show."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st

from workbench.app.serving.jobs import Job, manager
from workbench.app.words.text import verbatim

POLL_SECONDS = 0.4
CHECKBOX = "1.5rem"


def switch(
    label: str, key: str, stored: Callable[[], bool], write: Callable[[bool], object], **named: Any
) -> bool:
    """A switch of something that is stored: a press writes a difference, and nothing else writes.

    Streamlit takes a dialog that comes back after a run without it for a change, and calls back. So what
    the switch shows is read, and compared with what it was drawn with and with what is stored by then.

    Args:
        label: beside the switch.
        key: of the widget; what is stored is added, so that what another tab changed is shown.
        stored: reads what is stored now.
        write: stores the new value.
        named: further arguments of `st.toggle`.

    Returns:
        What was stored when the switch was drawn.
    """
    is_on = stored()
    key = f"{key}-{is_on}"
    st.toggle(label, value=is_on, key=key, on_change=_switched, args=(key, is_on, stored, write), **named)
    return is_on


def _switched(key: str, was_on: bool, stored: Callable[[], bool], write: Callable[[bool], object]) -> None:
    is_on = bool(st.session_state.get(key, was_on))
    if is_on != was_on and is_on != stored():
        write(is_on)


def job_panel(job: Job, key: str, *, height: int = 96, again: bool = False) -> None:
    """A job's progress and a button to cancel it; looks again by itself while it runs.

    The panel keeps its height, so that nothing below jumps. When the job ends the whole page runs
    once more in this tab, also when it ended after the page looked for its result.

    Args:
        job: to watch, which was not done a moment ago.
        key: makes widget keys unique.
        height: in pixels.
        again: offer *Try again* where it failed or was cancelled; the page then asks for the job anew.
    """
    # the status is read once: a job may end between two reads
    status = job.status
    if status == "done":
        st.rerun()
    watch = _panel if status in ("failed", "cancelled") else _running_panel
    watch(job, key, height, again)


def _panel(job: Job, key: str, height: int, again: bool) -> None:
    with st.container(height=height, border=False, key=f"{key}-panel"):
        if job.active:
            bar(job, key, titled=True)
        elif job.status in ("failed", "cancelled"):
            with row(gap="medium"):
                if job.status == "failed":
                    st.error(f"{verbatim(job.title)}: {verbatim(job.error)}", icon=":material/error:")
                else:
                    st.info(
                        f"{verbatim(job.title)}: cancelled. What was finished is kept.",
                        icon=":material/stop:",
                    )
                if again:
                    try_again(job, f"{key}-again")


def bar(job: Job, key: str, *, titled: bool = False, cancel: bool = True) -> None:
    """Progress of a job, and the button that cancels it.

    Args:
        job: under way.
        key: makes widget keys unique.
        titled: its title goes before its message, where that says more.
        cancel: whether there is the button.
    """
    waits = f"Waiting for another job to end: {job.waits_for}" if job.waits_for else job.message
    words = "Stopping…" if job.cancelling else waits or "Waiting for its turn"
    if titled and words.lower() != job.title.lower():
        words = f"{job.title} · {words}"
    with row(f"{key}-bar", gap="medium"):
        st.progress(job.fraction, text=verbatim(words))
        if cancel:
            st.button(
                "Cancel",
                key=f"{key}-cancel",
                icon=":material/stop:",
                disabled=job.cancelling,
                on_click=job.cancel,
            )


def try_again(job: Job, key: str) -> None:
    """A button that lets go of a job that has ended, so that the page's next run asks for it anew."""
    st.button("Try again", key=key, icon=":material/replay:", on_click=manager().forget, args=(job,))


@st.fragment(run_every=POLL_SECONDS)
def _running_panel(job: Job, key: str, height: int, again: bool) -> None:
    _panel(job, key, height, again)
    if not job.active:
        st.rerun()


def figure(fig: Any, key: str, alt: str, **more: Any) -> Any:
    """A figure with a text for those who cannot see it; its tools have no names, so they are not shown.

    Args:
        fig: a Plotly figure.
        key: of the element.
        alt: what it shows, in a sentence.
        more: further arguments of `st.plotly_chart`.
    """
    return st.plotly_chart(fig, key=key, alt=alt, **{"config": {"displayModeBar": False}} | more)


def grid(rows: Any, key: str, alt: str, **more: Any) -> None:
    """A table of rows, with a text for those who cannot see it; further arguments are of `st.dataframe`."""
    import pandas as pd

    st.dataframe(pd.DataFrame(rows), hide_index=True, key=key, alt=alt, **{"placeholder": ""} | more)


def table(rows: Any, key: str, alt: str, **more: Any) -> None:
    """A table whose sentences break into lines, as a grid's do not; further arguments are of `st.table`."""
    import pandas as pd

    with st.container(key=key):
        st.table(pd.DataFrame(rows), border="horizontal", hide_index=True, alt=alt, **more)


def style(css: str) -> None:
    """A few rules no option covers; selectors start with one of our own keys."""
    st.html(f"<style>{css}</style>")


def folded(label: str, key: str, draw: Callable[..., object], *arguments: Any) -> None:
    """A box that draws its content while it is open: what is closed is neither computed nor sent."""
    with st.expander(label, key=key, on_change="rerun") as box:
        if box.open:
            draw(*arguments)


def row(key: str | None = None, *, align: Literal["center", "bottom"] = "center", **more: Any) -> Any:
    """A container whose elements stand side by side; further arguments are those of `st.container`."""
    return st.container(horizontal=True, vertical_alignment=align, key=key, **more)


def held(**heights: str) -> None:
    """Keep the place of parts whose script the browser has yet to fetch, so that no button below them moves.

    A press that was aimed at a button before it moved is lost; the first visit of a browser is when they do.

    Args:
        heights: key of an element or a container -> its height once it stands, as CSS.
    """
    for key, height in heights.items():
        waiting = f".st-key-{key.replace('_', '-')}:has([data-testid=stSkeleton])"
        style(f"{waiting} {{ min-height: {height}; max-height: {height}; overflow: hidden; }}")


def split(spec: Sequence[float], key: str, *, below: int = 1150) -> Sequence[Any]:
    """Columns that stand below each other on a narrow screen.

    Args:
        spec: relative widths.
        key: of the container around them.
        below: width of the window, in pixels, under which they do.
    """
    style(
        f"@media (max-width: {below}px) {{ .st-key-{key} > [data-testid=stLayoutWrapper] >"
        " [data-testid=stHorizontalBlock] { flex-wrap: wrap; row-gap: 1rem; }"
        f" .st-key-{key} > [data-testid=stLayoutWrapper] > [data-testid=stHorizontalBlock] >"
        " [data-testid=stColumn] { min-width: 100%; } }"
    )
    with st.container(key=key):
        return st.columns(spec, gap="large")
