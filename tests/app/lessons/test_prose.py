"""Prose that carries a figure: its marks, and that those of the lessons mean something."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.app.lessons import lessons, prose
from workbench.app.lessons.prose import Part, Run
from workbench.figures import parts
from workbench.figures.parts import resized


def test_marks_become_words_links_terms_and_controls() -> None:
    text = "Let *noise* be {noise}:\n[the last bar](last) grows.\n\nSecond <b>one</b>."
    first, second = prose.parsed(text)
    assert first == (
        Run("text", "Let "),
        Run("term", "noise"),
        Run("text", " be "),
        Run("control", "noise"),
        Run("text", ": "),
        Run("link", "the last bar", "last"),
        Run("text", " grows."),
    )
    assert second == (Run("text", "Second <b>one</b>."),)
    said = prose.plain(text, {"noise": "0.5"})
    assert said == "Let noise be 0.5: the last bar grows.\n\nSecond <b>one</b>."
    assert prose.named(text, "link") == ["last"] and prose.named(text, "control") == ["noise"]
    assert prose.parsed("") == ()


def meant(trace: Any, part: Part) -> bool:
    """As prose.js has it."""
    panel = int((trace.xaxis or "x")[1:] or 1)
    named = not part.traces or any((trace.name or "").startswith(one) for one in part.traces)
    return named and (not part.panels or panel in part.panels)


@pytest.mark.parametrize("lesson", lessons.LESSONS, ids=lambda lesson: lesson.name)
def test_a_lesson_tells_a_story_and_its_words_light_something(lesson: lessons.Lesson) -> None:
    assert len(prose.parsed(lesson.story)) == 2 and not prose.named(lesson.story, "control")
    assert sorted(prose.named(lesson.read, "control")) == sorted(one.name for one in lesson.controls)
    links = prose.named(lesson.read, "link")
    assert set(links) == set(lesson.parts), "each part has its words"
    drawing = lessons.sketch(lesson).read_text(encoding="utf-8")
    assert 'role="img" aria-label="' in drawing and "currentColor" in drawing and "<script" not in drawing
    made, _ = lessons.present(lesson, lesson.preset)
    assert made is not None
    pictures = lessons.drawn(lesson, made, lesson.preset).pictures
    for name, part in lesson.parts.items():
        traces = pictures[part.picture].figure.data
        lit = [trace for trace in traces if meant(trace, part)]
        assert lit and (len(lit) < len(traces) or len(pictures) > 1), name


def test_the_first_lesson_explains_robust_max_before_it_asks() -> None:
    lesson = lessons.find("over-confident")
    assert lesson.guess is not None and "robust-max" in lesson.guess.ask
    assert Run("term", "Robust-max") in [run for row in prose.parsed(lesson.story) for run in row]
    assert lessons.worksheet(lesson).index("the highest function wins") < lessons.worksheet(lesson).index(
        "Guess"
    )


def test_figures_get_the_room_that_a_window_leaves() -> None:
    wall = lessons.stage_of((1920, 1080), in_class=True)
    projector = lessons.stage_of((1020, 720), in_class=True)
    assert wall.height > 900 and wall.scale > 1.5 > projector.scale > 1
    assert projector.height < 720 - 70, "its lower axis is above the fold"
    assert lessons.stage_of((360, 840), in_class=True).height < 0.5 * 840, "pinned above the text"
    assert not lessons.stage_of((360, 840), in_class=True, pictures=2).height
    assert lessons.stage_of((1020, 720), in_class=False).scale == 1
    assert lessons.stage_of(None, in_class=False) == lessons.AS_DRAWN


def test_a_resized_figure_keeps_its_legend_and_what_is_below_at_their_distance() -> None:
    fig = parts.panels(["One", "Two"], height=430)
    fig.add_heatmap(z=[[1, 2]], colorbar={"y": -0.3}, row=1, col=1)
    top = fig.layout.margin.t

    def pixels(height: int) -> tuple[float, float]:
        unit = parts.plot_height(height, top)
        return (fig.layout.legend.y - 1) * unit, fig.data[0].colorbar.y * unit

    before = pixels(430)
    resized(fig, 860)
    assert fig.layout.height == 860 and pixels(860) == pytest.approx(before)
