"""Prose that carries a figure: words that light parts of it, and controls that stand in sentences.

A text is paragraphs apart by empty lines. In them `[words](part)` lights a part of the figure when it is
pointed at, `{name}` is the control of that name, `*words*` introduces a term.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from workbench.app.serving.frontend import component

_HERE = Path(__file__).resolve().parent
_MARKS = re.compile(r"\[([^\]]+)\]\(([\w-]+)\)|\{([\w-]+)\}|\*([^*]+)\*")
_PICTURE = (
    "svg { display: block; width: 100%; max-width: 30rem; height: auto; margin: 0 auto 1rem;"
    " color: var(--st-text-color); font-family: var(--st-font); }"
)
_HTML = '<div class="prose"></div><p class="said" aria-live="polite"></p>'


@dataclass(frozen=True)
class Part:
    """A part of a lesson's figures that words can light.

    Attributes:
        traces: beginnings of the names of the lines, bars or points; none is all of them.
        panels: numbers of the panels, from 1; none is all of them.
        points: places of single points or bars within each trace, from the end if negative; none is all.
        picture: number of the figure, from 0.
    """

    traces: tuple[str, ...] = ()
    panels: tuple[int, ...] = ()
    points: tuple[int, ...] = ()
    picture: int = 0


class Run(NamedTuple):
    """A piece of a sentence.

    Attributes:
        kind: "text", "term", "link" (to a part) or "control".
        words: as written; of a control, its name.
        part: name of the part of a link.
    """

    kind: str
    words: str
    part: str = ""


class Slot(NamedTuple):
    """A control as it stands in a sentence.

    Attributes:
        label: for screen readers.
        options: titles, in order.
        at: place of the chosen one.
        slider: whether they are an order.
    """

    label: str
    options: tuple[str, ...]
    at: int
    slider: bool


def parsed(text: str) -> tuple[tuple[Run, ...], ...]:
    """A text's paragraphs, each a row of runs."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip())]
    return tuple(tuple(_runs(paragraph)) for paragraph in paragraphs if paragraph)


def _runs(paragraph: str) -> list[Run]:
    runs, end = [], 0
    for mark in _MARKS.finditer(paragraph):
        if mark.start() > end:
            runs.append(Run("text", paragraph[end : mark.start()]))
        words, part, control, term = mark.groups()
        if words:
            runs.append(Run("link", words, part))
        else:
            runs.append(Run("control", control) if control else Run("term", term))
        end = mark.end()
    if end < len(paragraph):
        runs.append(Run("text", paragraph[end:]))
    return runs


def plain(text: str, titles: Mapping[str, str] | None = None) -> str:
    """A text without its marks, for paper: paragraphs apart by an empty line.

    Args:
        text: to be printed.
        titles: control -> what stands in its place; its name where there is none.
    """
    known_titles = titles or {}
    return "\n\n".join(
        "".join(known_titles.get(run.words, run.words) if run.kind == "control" else run.words for run in row)
        for row in parsed(text)
    )


def named(text: str, kind: str) -> list[str]:
    """The parts ("link") or controls ("control") that a text names, in order."""
    rows = [run for row in parsed(text) for run in row if run.kind == kind]
    return [run.part if kind == "link" else run.words for run in rows]


def mount(
    key: str,
    text: str | Sequence[str],
    *,
    chart: str = "",
    parts: Mapping[str, Part] | None = None,
    slots: Mapping[str, Slot] | None = None,
    moved: Callable[[str, int], None] | None = None,
    seen: Callable[[int, int], None] | None = None,
    known: tuple[int, int] | None = None,
) -> None:
    """Show a text.

    Args:
        key: of the element.
        text: to be shown; several are the lines of a list.
        chart: key of the figures without their number; "" where nothing can be lit.
        parts: of the figures, by the names that links have.
        slots: the controls, by their names in the text.
        moved: called with a control's name and the place of what was chosen, in a callback.
        seen: called with the window's width and height in pixels, when they are not the known ones.
        known: what `seen` was called with last.
    """
    rows = [run for line in ([text] if isinstance(text, str) else text) for run in parsed(line)]

    def acted() -> None:
        act = getattr(st.session_state.get(key), "act", None)
        if not isinstance(act, dict):
            return
        name, at, size = act.get("control"), act.get("at"), act.get("window")
        slot = (slots or {}).get(str(name))
        if moved and slot and isinstance(at, int) and 0 <= at < len(slot.options):
            moved(str(name), at)
        if seen and isinstance(size, list) and len(size) == 2 and all(isinstance(n, int) for n in size):
            seen(size[0], size[1])

    component("prose", _HERE / "prose.js", style=_HERE / "prose.css", html=_HTML)(
        key=key,
        data={
            "rows": [[run._asdict() for run in row] for row in rows],
            "list": not isinstance(text, str),
            "chart": chart,
            "parts": {name: vars(part) for name, part in (parts or {}).items()},
            "slots": {name: slot._asdict() for name, slot in (slots or {}).items()},
            "window": None if seen is None else list(known or (0, 0)),
        },
        on_act_change=acted,
    )


def picture(name: str, file: Path) -> None:
    """Show a drawing of ours in the page's own colour of text.

    Args:
        name: of the drawing.
        file: SVG; `currentColor` is the text's.
    """
    drawing = file.read_text(encoding="utf-8")
    component(f"sketch_{name.replace('-', '_')}", style=_PICTURE, html=drawing)(key=f"sketch-{name}")
