"""Lessons without a browser: their states, who computes them, and the page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.lessons import thumbnail
from tests.app.pages import ROOT, application, place
from workbench.app.access import current, joining
from workbench.app.lessons import lessons
from workbench.app.serving.jobs import Job
from workbench.errors import InputError


@pytest.mark.parametrize("lesson", lessons.LESSONS, ids=lambda lesson: lesson.name)
def test_every_value_of_a_control_survives_the_address(lesson: lessons.Lesson) -> None:
    assert len(lesson.look) >= 3 and lesson.question.endswith("?")
    for control in lesson.controls:
        assert control.default in control.options
        for value in control.options:
            assert control.parse(str(value)) == (value, True)
        assert control.parse("no such value") == (control.default, False)
        assert control.parse(None) == (control.default, True)


def test_the_lessons_fill_a_class_of_90_minutes() -> None:
    assert 90 <= sum(lesson.minutes for lesson in lessons.LESSONS) <= 110
    with pytest.raises(InputError, match=r"no lesson 'y+\.\.\.y+'"):
        lessons.find("y" * 2_000)
    with pytest.raises(InputError, match="no lesson 'x'"):
        lessons.find("x")


def test_a_state_is_computed_once_and_a_mark_computes_nothing() -> None:
    made: list[lessons.Values] = []

    def compute(values: lessons.Values, job: Job) -> str:
        made.append(values)
        return "result"

    both = {1: "1", 2: "2"}
    lesson = lessons.Lesson(
        "test-once",
        "",
        "",
        (),
        (lessons.Control("a", "", both, 1), lessons.Control("m", "", both, 1, mark=True)),
        compute,
        lambda result, values: lessons.Drawn([], ""),
        1,
    )
    found, job = lessons.result(lesson, {"a": 1, "m": 1})
    assert found is None and job is not None and job.wait(600)
    assert lessons.result(lesson, {"a": 1, "m": 2}) == ("result", None)
    assert len(made) == 1


def test_a_lesson_that_fails_says_so_and_can_be_tried_again() -> None:
    tries: list[int] = []

    def compute(values: lessons.Values, job: Job) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise InputError("not today")
        return "now"

    lesson = lessons.Lesson("test-fail", "", "", (), (), compute, lambda r, v: lessons.Drawn([], ""), 1)
    _, job = lessons.result(lesson, {})
    assert job is not None and job.wait(600)
    found, job = lessons.result(lesson, {})
    assert found is None and job is not None and job.error == "not today"
    lessons.start(lesson, {})
    again = lessons.manager().get(lessons.OWNER, "test-fail")
    assert again is not None and again.wait(600)
    assert lessons.result(lesson, {})[0] == "now"


def test_the_sweep_shows_its_first_curve_before_the_second_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.studies import calibration

    job, seen = Job("t", "t", "t"), []

    def scores(name: str, noise: float, seed: int) -> calibration.Scores:
        seen.append((name, len(job.partial or ())))
        return calibration.Scores(0.1, 0.2, 0.3)

    monkeypatch.setattr("workbench.studies.lessons.scores_of", scores)
    lesson = lessons.find("likelihoods")
    values = lesson.preset
    curves = lesson.compute(values, job)
    assert [shown for name, shown in seen if name == "logistic-softmax"] == [1] * len(calibration.NOISES)
    pictures, words, *_ = lesson.draw(curves[:1], values)
    assert "1 of 8 curves" in str(pictures[0].figure.to_dict()) and "Exact Bayes" in words


def test_the_page_needs_no_project_and_says_what_is_wrong_with_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_WARM", "0")
    test = application().run()
    test.switch_page(place("lessons"))
    test.query_params["lesson"] = "nothing"
    test.run()
    assert not test.exception and test.title[0].value == "Lessons"
    assert "There is no lesson" in test.error[0].value
    assert sum(str(b.label).startswith("Open") for b in test.button) == len(lessons.LESSONS) + 1
    # links in buttons' clothes draw their icon by its bare name
    test.query_params["lesson"] = "over-confident"
    test.run()
    links = [str(one.proto.body) for one in test.get("html") if "wb-download" in str(one.proto.body)]
    assert not test.exception and any(">Worksheet" in one for one in links)
    assert not [one for one in links if ":material" in one]


def test_lessons_import_no_engine() -> None:
    code = (
        "import sys; import workbench.app.lessons.lessons, workbench.app.uncertainty.mapping;"
        "import workbench.figures.teaching;"
        "print([m for m in ('tensorflow', 'gpflow', 'sklearn', 'sqlalchemy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]", run.stdout


@pytest.mark.parametrize("lesson", lessons.LESSONS, ids=lambda lesson: lesson.name)
def test_the_small_pictures_are_those_of_the_stored_figures(lesson: lessons.Lesson) -> None:
    def shapes(svg: str) -> str:
        # pixels are packed a little differently by each version of Pillow
        return re.sub(r'href="[^"]*"', "", svg)

    kept = lessons.thumbnail(lesson).read_text(encoding="utf-8")
    assert shapes(kept) == shapes(thumbnail(lesson)), "make lessons draws them anew"


def test_a_worksheet_asks_what_the_lesson_asks() -> None:
    lesson = lessons.find("useless")
    sheet = lessons.worksheet(lesson)
    assert lesson.guess is not None and lesson.guess.ask in sheet and lesson.question in sheet
    assert all(line in sheet for line in lesson.look) and "lesson=useless" in sheet
    assert all(f"| {option} | | |" in sheet for option in lesson.controls[0].options.values())
    numbers = [int(line.split()[1].rstrip(".")) for line in sheet.splitlines() if line.startswith("## ")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_class_gets_a_code_an_address_and_a_room_of_its_own(home: Path) -> None:
    from workbench.app.lessons import together
    from workbench.sessions.drawing import ArrayOracle

    pytest.importorskip("segno", reason="the extra `qr` is not installed")
    assert joining.qr_code("http://192.0.2.7:8501/lessons?class=1").startswith("<svg")
    test = application()
    test.run()
    test.switch_page(place("lessons"))
    test.query_params["lesson"] = "together"
    test.run()
    # what will happen and what will be seen stand beside the button
    assert "1. Press **Begin**" in " ".join(str(one.value) for one in test.markdown)
    assert len(test.get("plotly_chart")) == 1
    test.button(key="begin-room").click().run()
    assert not test.exception
    room = "".join(test.query_params["room"])
    shared = current.opened(room)
    assert shared.pool.name == "digits" and shared.state.codes == {}
    # two browsers, two names: nobody is asked what another is asked
    oracle, asked = ArrayOracle(shared.pool), []
    for name in ("student 1a", "student 2b"):
        mine = shared.as_annotator(name)
        asked.append(mine.ask()[0].item)
        mine.tell(mine.ask()[0].id, oracle(asked[-1]))
    assert asked[0] != asked[1]
    test.run()
    said = " ".join(str(one.value) for one in test.markdown)
    assert "**2 labels** of 2 people" in said
    # the wall needs no press: where to point a phone stands beside the curve
    assert "Point your phone here" in said and room in test.code[0].value
    assert (
        together.random_words([([10, 20], [0.4, 0.2]), ([10, 18], [0.6, 0.3])], 12)
        == "; random questions: 50\u00a0%"
    )
    assert together.random_words([([10], [0.4])], 12) == ""
    # the phones of the class get a desk, and no way to other pages and projects
    assert test.sidebar.children and test.button(key="lesson-list") and test.get("page_link")
    test.query_params["class"] = "1"
    test.run()
    assert not test.exception and any("You are " in one.value for one in test.caption)
    assert not test.sidebar.children and not test.get("page_link")
    assert not [one.key for one in test.button if one.key == "lesson-list"]
    test.text_input(key="student-name").set_value(" Kim ").run()
    assert any(re.match(r"You are Kim [0-9a-f]{4}\.", one.value) for one in test.caption)
    test.query_params["class"] = ""
    test.query_params["room"] = "gone"
    test.run()
    assert "This room is not here" in test.error[0].value and test.button(key="begin-room")


def test_labels_outvote_the_wrong_guess() -> None:
    lesson = lessons.find("outvoted")
    made = lessons.result(lesson, lesson.preset)[0]
    assert made is not None and made.weights[0].tolist() == [0.5, 0.5]
    assert (made.weights[2:, 1] == 0).all() and (made.weights[2:, 0] > 0).all()
    assert made.error[-1] < made.alone[0] < made.without[-1]
    drawn = lesson.draw(made, {"given": 0, "split": 0})
    assert "beginning with nothing" not in drawn.words and len(drawn.pictures) == 2


def test_peeking_breaks_a_fixed_test_and_not_betting() -> None:
    lesson = lessons.find("promises")
    made = lessons.result(lesson, lesson.preset)[0]
    assert made is not None and made.wrong == 0.05
    assert made.peeked[-1] > 0.1 and made.fooled == round(1000 * made.peeked[-1])
    assert made.once.max() < 0.08
    assert "five times as many" in lesson.look[0] and 5 <= made.peeked[-1] / made.once[-1] < 6
    assert made.anytime[-1] <= 0.05
    assert made.rule == 59 and 59 < made.needed <= 83
    drawn = lesson.draw(made, lesson.preset)
    assert drawn.answer == made.fooled and "by betting" in drawn.words
