"""The layout of a lesson: beside its text on a screen, filling a wall, pinned above the text on a phone."""

from pathlib import Path
from typing import NamedTuple

from workbench.app.shell import widgets

# as in stage.css: pixels from which text and figure stand side by side, and up to which it is a phone
WIDE, PHONE = 1000, 700
WINDOW = "lesson-window"
_HERE = Path(__file__).resolve().parent
# pixels of a window that are not the figure's: what stands above it, and a rest below
_ABOVE, _ABOVE_IN_CLASS = 190, 90
_BETWEEN = 24
_LEAST = 300


class Stage(NamedTuple):
    """Room of a window for figures.

    Attributes:
        height: of all figures together, in pixels; 0: as each is drawn.
        scale: of their type.
    """

    height: int = 0
    scale: float = 1.0


AS_DRAWN = Stage()


def stage_of(window: tuple[int, int] | None, *, in_class: bool, pictures: int = 1) -> Stage:
    """Room of a window for a lesson's figures.

    Args:
        window: its width and height in pixels; None while nobody has said.
        in_class: whether a hall looks at it.
        pictures: how many figures there are, one below another.
    """
    if window is None:
        return Stage(scale=1.3 if in_class else 1.0)
    width, height = window
    if width < PHONE:
        # pinned above the text, which needs the rest; several are not pinned
        return Stage(round(0.45 * height), 0.85) if pictures == 1 else Stage(scale=0.85)
    if width < WIDE:
        return Stage()
    room = max(_LEAST, height - (_ABOVE_IN_CLASS if in_class else _ABOVE) - _BETWEEN * (pictures - 1))
    if not in_class:
        return Stage(min(room, 680))
    return Stage(room, min(2.0, max(1.15, round(width / 1050, 1))))


def unpin() -> None:
    """On a phone let the figures move with the text: several leave it no room."""
    figures = ".st-key-lesson-panes > div:has(> .st-key-lesson-figure)"
    widgets.style(f"@media (max-width: {PHONE}px) {{ {figures} {{ position: static !important; }} }}")


def style(*, in_class: bool) -> None:
    """The rules of the page that shows a lesson."""
    sheets = ("stage.css", "stage-class.css") if in_class else ("stage.css",)
    widgets.style("".join((_HERE / name).read_text(encoding="utf-8") for name in sheets))
