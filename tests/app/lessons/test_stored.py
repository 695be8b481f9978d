"""Lessons open with stored values: the same as a fresh computation, and read without an engine."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.lessons import packed
from workbench.app.lessons import lessons, teaching
from workbench.app.serving.jobs import Job
from workbench.errors import InputError
from workbench.pools.datasets.catalogue import bundled_file

ROOT = Path(__file__).resolve().parents[3]
QUICK = [
    pytest.param(
        lesson,
        id=lesson.name,
        marks=[pytest.mark.slow] * (lesson.name in ("over-confident", "useless", "unlabelled", "outvoted")),
    )
    for lesson in lessons.LESSONS
    if lesson.name not in ("likelihoods", "looking")
]


def numbers(value: Any) -> list[float]:
    """All numbers of a result, in order."""
    tree, arrays = packed(value, found := {}), found

    def walk(part: Any) -> list[float]:
        if isinstance(part, dict):
            if "array" in part:
                return np.ravel(arrays[part["array"]]).astype(float).tolist()
            return [n for inner in part.values() for n in walk(inner)]
        if isinstance(part, list):
            return [n for inner in part for n in walk(inner)]
        return [float(part)] if isinstance(part, (int, float)) else []

    return walk(tree)


@pytest.mark.parametrize("lesson", QUICK)
def test_a_stored_preset_is_what_a_fresh_computation_gives(lesson: lessons.Lesson) -> None:
    kept = lessons.stored_result(lessons.name_of(lesson, lesson.preset))
    fresh = lesson.compute(lesson.preset, Job("test", "test", "test"))
    ours, theirs = np.array(numbers(kept)), np.array(numbers(fresh))
    assert type(kept) is type(fresh) and len(ours) == len(theirs)
    # kernels differ between processors, and a bin's border may fall between two of them
    near = np.isclose(ours, theirs, rtol=0.01, atol=0.01, equal_nan=True)
    assert near.mean() > 0.97, (ours[~near][:5], theirs[~near][:5])
    drawn, again = lesson.draw(kept, lesson.preset), lesson.draw(fresh, lesson.preset)
    assert drawn.answer is not None and drawn.answer == pytest.approx(again.answer, rel=0.05, abs=2)
    assert len(drawn.pictures) == len(again.pictures) >= 1


def test_stored_likelihoods_are_those_of_the_sweep() -> None:
    from workbench.studies.calibration import NOISES, scores_of

    curves = lessons.stored_result(lessons.name_of(lesson := lessons.find("likelihoods"), lesson.preset))
    assert len(curves) == 8
    for name in ("bayes", "large-margin"):
        curve = next(c for c in curves if c.name == name)
        at = NOISES.index(0.5)
        fresh = scores_of(name, 0.5, 0)
        assert [curve.error[0, at], curve.nll[0, at], curve.ece[0, at]] == pytest.approx(fresh, abs=0.01)


def test_a_stored_run_asks_what_the_same_run_asks() -> None:
    from workbench.studies.lessons import looked

    kept = lessons.stored_result(lessons.name_of(lesson := lessons.find("looking"), lesson.preset))
    fresh = looked("variation-ratio", 0, budget=5)
    assert np.array_equal(kept.codes, fresh.codes) and np.array_equal(kept.initial, fresh.initial)
    assert len(kept.asked["variation-ratio"]) == 40 and set(kept.asked) == set(fresh.asked)
    assert np.array_equal(kept.asked["random"][:5], fresh.asked["random"][:5])
    assert kept.asked["variation-ratio"][0] == fresh.asked["variation-ratio"][0]


@pytest.mark.slow  # alone: what is stored for lessons is what their code computes today
def test_every_stored_state_is_fresh() -> None:
    for lesson in lessons.LESSONS:
        # the preset itself is computed by a test of its own
        for values in lessons.places(lesson)[1::3]:
            kept = lessons.stored_result(lessons.name_of(lesson, values))
            fresh = lesson.compute(values, Job("test", "test", "test"))
            ours, theirs = np.array(numbers(kept)), np.array(numbers(fresh))
            near = np.isclose(ours, theirs, rtol=0.02, atol=0.02, equal_nan=True)
            assert len(ours) == len(theirs) and near.mean() > 0.9, (lesson.name, values)


@pytest.mark.slow  # alone: no lesson's first view loads an engine, in a process of its own
def test_every_lesson_opens_without_an_engine() -> None:
    code = (
        "import sys; from workbench.app.lessons import lessons\n"
        "for one in lessons.LESSONS:\n"
        "    made, job = lessons.result(one, one.preset)\n"
        "    assert made is not None and job is None, one.name\n"
        "    one.draw(made, one.preset)\n"
        "print([m for m in ('tensorflow', 'gpflow', 'sklearn', 'sqlalchemy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]", run.stdout


def test_the_file_holds_arrays_and_no_objects() -> None:
    with np.load(bundled_file(lessons.STORED), allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fiuU" for name in file.files)
    assert bundled_file(lessons.STORED).stat().st_size < 2_000_000


def test_a_result_comes_back_as_it_went_in() -> None:
    from workbench.studies.lessons import Grid

    given = (Grid(np.arange(2.0), np.arange(3.0), np.ones((6, 2))), {"a": np.array([1, 2])}, 0.5, "word")
    arrays: dict[str, Any] = {}
    back = lessons.unpacked(packed(given, arrays), arrays)
    assert isinstance(back[0], Grid) and np.array_equal(back[0].points, np.ones((6, 2)))
    assert back[1]["a"].tolist() == [1, 2] and back[2:] == (0.5, "word")
    assert lessons.stored_result("no-such-lesson/1") is None


@pytest.mark.parametrize(("text", "value"), [("62", 62), (" 62 % ", 62), ("0,5", 0.5), ("-3.25", -3.25)])
def test_a_guess_is_read_as_people_write_it(text: str, value: float) -> None:
    assert teaching.parse_guess(text) == value


@pytest.mark.parametrize("text", ["", "many", "1e400", "nan", "62 of them", "9" * 40])
def test_a_guess_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="A guess is a number"):
        teaching.parse_guess(text)


def test_a_browser_has_one_guess_and_a_class_begins_anew() -> None:
    teaching.clear_guesses("test")
    for who, value in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        teaching.give_guess("test", who, value)
    assert sorted(teaching.guesses_of("test")) == [2.0, 3.0] and teaching.guess_of("test", "a") == 3.0
    teaching.clear_guesses("test")
    assert teaching.guesses_of("test") == [] and teaching.guess_of("test", "a") is None
