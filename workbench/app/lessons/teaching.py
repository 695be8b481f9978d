"""Shared parts of the Lessons page and the Calibration page's experiments, and the guesses of a class."""

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from workbench.app.access import joining
from workbench.app.lessons import lessons, prose
from workbench.app.lessons.lessons import AS_DRAWN, Stage
from workbench.app.serving.jobs import Job
from workbench.app.shell import widgets
from workbench.app.shell.downloads import button, figure_downloads
from workbench.app.words.text import explain, plural, refused, show_kept_error, used_in, verbatim
from workbench.errors import InputError
from workbench.figures.parts import enlarge
from workbench.figures.teaching import guess_tally


def key_of(lesson: lessons.Lesson, control: lessons.Control) -> str:
    """Key of a control's widget."""
    return f"lesson-{lesson.name}-{control.name}"


def controls(lesson: lessons.Lesson) -> lessons.Values:
    """Draw the controls in a row; their values go into the address."""
    wrong = _begun(lesson)
    values: lessons.Values = {}
    with widgets.row("lesson-controls", align="bottom", gap="medium"):
        for control in lesson.controls:
            values[control.name] = _control(control, key_of(lesson, control))
            st.query_params[control.name] = str(values[control.name])
    _say_wrong(wrong)
    return values


def controlled(lesson: lessons.Lesson) -> lessons.Values:
    """The values of controls that stand in the lesson's text; they go into the address."""
    # the page runs anew once the window has said how large it is: said until something moves
    wrong = st.session_state.setdefault(_wrong(lesson), [])
    wrong += _begun(lesson)
    values = {control.name: st.session_state[key_of(lesson, control)] for control in lesson.controls}
    for name, value in values.items():
        st.query_params[name] = str(value)
    _say_wrong(wrong)
    return values


def _wrong(lesson: lessons.Lesson) -> str:
    return f"lesson-{lesson.name}-unknown"


def _begun(lesson: lessons.Lesson) -> list[str]:
    """Give each control without a value that of the address; labels of those whose value there is unknown."""
    wrong = []
    for control in lesson.controls:
        key = key_of(lesson, control)
        if key not in st.session_state:
            st.session_state[key], is_known = control.parse(st.query_params.get(control.name))
            if not is_known:
                wrong.append(control.label)
    return wrong


def _say_wrong(wrong: list[str]) -> None:
    if wrong:
        st.info(
            f"The address asked for a value that {verbatim(wrong[0])} does not have; this is the preset.",
            icon=":material/info:",
        )


def tell(
    lesson: lessons.Lesson, which: str, values: lessons.Values | None = None, *, watch: bool = False
) -> None:
    """A text of the lesson, with what it says about the figures.

    Args:
        lesson: it belongs to.
        which: "story", "read" or "look".
        values: of the controls, where the text holds them.
        watch: whether it says how large the window is.
    """
    slots = {}
    for control in lesson.controls if values is not None else ():
        titles = tuple(control.options.values())
        at = list(control.options).index(values[control.name]) if values is not None else 0
        slots[control.name] = prose.Slot(control.label, titles, at, control.slider)

    def moved(name: str, at: int) -> None:
        st.session_state.pop(_wrong(lesson), None)
        control = next(candidate for candidate in lesson.controls if candidate.name == name)
        st.session_state[key_of(lesson, control)] = list(control.options)[at]

    def seen(width: int, height: int) -> None:
        st.session_state[lessons.WINDOW] = (width, height)

    prose.mount(
        f"lesson-{which}-text",
        getattr(lesson, which),
        chart=f"lesson-{lesson.name}",
        parts=lesson.parts,
        slots=slots,
        moved=moved,
        seen=seen if watch else None,
        known=st.session_state.get(lessons.WINDOW),
    )


def _control(control: lessons.Control, key: str) -> Any:
    options = list(control.options)
    arguments: dict[str, Any] = {"format_func": control.options.__getitem__, "key": key}
    if control.slider:
        return st.select_slider(control.label, options, width=340, **arguments)
    if len(options) > 3:
        return st.selectbox(control.label, options, width=220, **arguments)
    return st.segmented_control(control.label, options, required=True, **arguments)


def draw(lesson: lessons.Lesson, outcome: Any, values: lessons.Values, *, finished: bool = True) -> None:
    """Pictures, what came out, and the pictures to take away.

    Args:
        lesson: it belongs to.
        outcome: its result, or as much of it as there is.
        values: of its controls.
        finished: whether that is all.
    """
    if finished and (says := lessons.drawn(lesson, outcome, values).says):
        st.markdown(f"**{verbatim(says, 600)}**")
    words = pictures(lesson, outcome, values, finished=finished)
    if words and not finished:
        measured(words)


def numbers(lesson: lessons.Lesson, outcome: Any, values: lessons.Values) -> None:
    """Results in numbers, a row a model, and where they are from; folded."""
    import pandas as pd

    with st.expander("In numbers", key="experiment-numbers"):
        table = pd.DataFrame(lessons.drawn(lesson, outcome, values).table)
        st.table(table.set_index(table.columns[0]) if len(table) else table)
        source(lesson)


def measured(words: str) -> None:
    """Results, a line for each reading of a model; terms in them are explained."""
    lines = [verbatim(line, 600) for line in words.split(" · ")]
    st.markdown(
        "**Measured here.**" + ("  \n" if len(lines) > 1 else " ") + "  \n".join(lines),
        help=explain(*used_in(words)) or None,
    )


def pictures(
    lesson: lessons.Lesson,
    outcome: Any,
    values: lessons.Values,
    where: Stage = AS_DRAWN,
    *,
    finished: bool = True,
) -> str:
    """Pictures of a lesson, each to be taken away; what came out, in words.

    Args:
        lesson: it belongs to.
        outcome: its result, or as much of it as there is.
        values: of its controls.
        where: height and type that the figures have.
        finished: whether that is all.
    """
    display = lessons.drawn(lesson, outcome, values, where) if finished else lesson.draw(outcome, values)
    for place, picture in enumerate(display.pictures):
        key = f"lesson-{lesson.name}-{place}"
        widgets.figure(picture.figure, key, picture.alt)
        if finished:
            figure_downloads(picture.figure, f"workbench-{lesson.name}", f"save-{key}")
    return display.words


def source(lesson: lessons.Lesson) -> None:
    """The source of a lesson."""
    if lesson.source:
        st.caption(f"After {verbatim(lesson.source)}.")


def worksheet(lesson: lessons.Lesson) -> None:
    """The lesson as a page to print."""
    button(
        "Worksheet",
        lambda: lessons.worksheet(lesson).encode(),
        f"workbench-{lesson.name}.md",
        "lesson-worksheet",
        icon="description",
        kind="tertiary",
        help="To print for students: the question, a guess, what to try and what to write down (Markdown)",
    )


def who() -> str:
    """This browser tab, for the tally of guesses."""
    return str(st.session_state.setdefault("guesser", secrets.token_hex(8)))


def hidden(lesson: lessons.Lesson, values: lessons.Values) -> bool:
    """True if the picture waits for a guess: the preset of a lesson that asks one, until it was shown."""
    if lesson.guess is None or values != lesson.preset:
        return False
    return not st.session_state.get(f"shown-{lesson.name}", False)


def ask_guess(lesson: lessons.Lesson) -> None:
    """The question before the picture, with a way around it."""
    assert lesson.guess is not None
    key = f"guess-{lesson.name}"

    def show(typed: bool) -> None:
        with refused("guess-problem"):
            if typed:
                give_guess(lesson.name, who(), parse_guess(str(st.session_state.get(key) or "")))
            st.session_state[f"shown-{lesson.name}"] = True

    with st.container(border=True, key="guess"):
        st.markdown(f"**Guess first.** {verbatim(lesson.guess.ask)}")
        with widgets.row(align="bottom"):
            st.text_input(f"Your guess, {lesson.guess.unit}", key=key, width=220)
            st.button(
                "Show it",
                key="guess-show",
                type="primary",
                icon=":material/visibility:",
                on_click=show,
                args=(True,),
            )
            st.button("Show without a guess", key="guess-skip", type="tertiary", on_click=show, args=(False,))
        show_kept_error("guess-problem")


def answer(lesson: lessons.Lesson) -> float | None:
    """Answer of the guess, as it came out; None where nothing is asked or it is not computed."""
    outcome = None if lesson.guess is None else lessons.present(lesson, lesson.preset)[0]
    return None if outcome is None else lessons.drawn(lesson, outcome, lesson.preset).answer


def compare_guess(lesson: lessons.Lesson) -> None:
    """Guess of this browser beside what came out."""
    guess, came_out = guess_of(lesson.name, who()), answer(lesson)
    if lesson.guess is not None and guess is not None and came_out is not None:
        st.markdown(f"You guessed **{guess:g}**; it is **{came_out:.3g}** {lesson.guess.unit}.")


def tally(lesson: lessons.Lesson) -> None:
    """The guesses of a class beside what came out, live."""
    came_out = answer(lesson)
    if came_out is not None:
        _tally(lesson, came_out)


@st.fragment(run_every=2.0)
def _tally(lesson: lessons.Lesson, came_out: float) -> None:
    values = guesses_of(lesson.name)
    if not values or lesson.guess is None:
        st.caption("Nobody in this class has guessed yet.")
        return

    st.caption(f"{plural(len(values), 'guess', 'guesses')} of this class, and what came out")
    fig = guess_tally(values, came_out, unit=lesson.guess.unit)
    enlarge(fig, 1.4)
    widgets.figure(fig, f"tally-{lesson.name}", f"{len(values)} guesses beside the answer {came_out:.3g}")


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
        widgets.bar(job, "lesson-job", cancel=cancel)
        if job.partial is not None:
            draw(lesson, job.partial, values, finished=False)


def begin(lesson: lessons.Lesson, values: lessons.Values) -> None:
    """Compute a state, for a button."""
    lessons.start(lesson, values)


def failure(lesson: lessons.Lesson, values: lessons.Values, job: Job) -> None:
    """Say why a state could not be computed, and offer to try again."""
    st.error(f"This could not be computed: {verbatim(job.error)}", icon=":material/error:")
    st.button("Try again", key="lesson-retry", on_click=begin, args=(lesson, values))


def look(hints: Sequence[str]) -> None:
    """Hints of what to look for, a line each, below their heading."""
    st.header("What to look for")
    st.markdown("\n".join(f"- {hint}" for hint in hints))


def sketch(lesson: lessons.Lesson) -> None:
    """Drawing by hand of the lesson's subject: before the figures are shown."""
    with st.container(key="lesson-sketch"):
        prose.picture(lesson.name, lessons.sketch(lesson))


def wall_code(query: dict[str, str]) -> None:
    """The QR code as it stands on the wall, with the address in words.

    Args:
        query: of the address.
    """
    address = f"{joining.base_address()}?{urlencode(query)}"
    picture = joining.qr_code(address)
    with widgets.row("lesson-wall-code", gap="medium"):
        if picture:
            st.image(picture, alt=f"QR code of {address}")
        with st.container(gap="xsmall"):
            st.markdown("**Join** with your phone" if picture else "**Join** at this address")
            st.caption(verbatim(address.partition("?")[0].partition("//")[2]))


MOST_GUESSES = 500
"""Guesses kept of each lesson."""
_GUESSES: dict[str, OrderedDict[str, float]] = {}
_LOCK = threading.Lock()


def parse_guess(text: str) -> float:
    """The number somebody typed: "62", "62 %", "0,5".

    Raises:
        InputError: it is none.
    """
    match = re.fullmatch(
        r"(-?\d{1,12}(?:[.,]\d{1,12})?|-?[.,]\d{1,12})\s*(%|nats|of 100|sweeps)?", text.strip()
    )
    if match is None:
        raise InputError(f"A guess is a number, such as 62; got {text.strip()[:40]!r}.")
    return float(match[1].replace(",", "."))


def give_guess(lesson: str, who: str, value: float) -> None:
    """Count a guess; a second one of the same person replaces the first.

    Args:
        lesson: its name.
        who: one browser.
        value: of the guess.
    """
    with _LOCK:
        guesses = _GUESSES.setdefault(lesson, OrderedDict())
        guesses[who] = value
        guesses.move_to_end(who)
        while len(guesses) > MOST_GUESSES:
            guesses.popitem(last=False)


def guesses_of(lesson: str) -> list[float]:
    """All guesses of a lesson."""
    with _LOCK:
        return list(_GUESSES.get(lesson, {}).values())


def guess_of(lesson: str, who: str) -> float | None:
    """Guesses of one browser."""
    with _LOCK:
        return _GUESSES[lesson].get(who) if lesson in _GUESSES else None


def clear_guesses(lesson: str) -> None:
    """Begin anew, for the next class."""
    with _LOCK:
        _GUESSES.pop(lesson, None)
