"""Lessons: presets of a question, a picture that reacts to a slider, and what to look for.

Their texts and controls are data, in lessons.toml. A lesson's state is its controls' values, all of
them in the address. What a state shows is computed once in a process, by whoever comes first; a class
of thirty shares it while each keeps a state of their own.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.app.lessons import lesson_figures
from workbench.app.lessons.lesson_figures import Drawn, Values
from workbench.app.lessons.prose import Part, plain
from workbench.app.serving import jobs
from workbench.app.serving.caching import computed
from workbench.app.serving.jobs import DAY, HOUR, Job, manager
from workbench.app.shell import widgets
from workbench.arrays import Cache
from workbench.errors import InputError
from workbench.figures import records as figures
from workbench.figures.parts import enlarge, resized
from workbench.metrics import ReliabilityTable
from workbench.policies.registry import POLICIES
from workbench.reading import cut

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


def unpin_figures() -> None:
    """On a phone let the figures move with the text: several leave it no room."""
    figures = ".st-key-lesson-panes > div:has(> .st-key-lesson-figure)"
    widgets.style(f"@media (max-width: {PHONE}px) {{ {figures} {{ position: static !important; }} }}")


def stage_style(*, in_class: bool) -> None:
    """The rules of the page that shows a lesson."""
    sheets = ("stage.css", "stage-class.css") if in_class else ("stage.css",)
    widgets.style("".join((_HERE / name).read_text(encoding="utf-8") for name in sheets))


__all__ = ["Drawn", "Values"]
OWNER = "lessons"
TEXTS = _HERE / "lessons.toml"
_DRAWN = Cache[tuple[Any, Drawn]](96)


@dataclass(frozen=True)
class Control:
    """A slider, or a choice of names.

    Attributes:
        name: in the address.
        label: for people.
        options: value -> title, in order.
        default: one of the values.
        slider: whether the values are an order.
        mark: whether it only moves a mark, so that nothing is computed anew.
        argument: of the function that computes; the name unless it says otherwise.
    """

    name: str
    label: str
    options: Mapping[Any, str]
    default: Any
    slider: bool = True
    mark: bool = False
    argument: str = ""

    def parse(self, text: str | None) -> tuple[Any, bool]:
        """The value in an address, and whether it was one of ours; else the default."""
        if text is None:
            return self.default, True
        for value in self.options:
            if str(value) == text:
                return value, True
        return self.default, False


class Guess(NamedTuple):
    """Question that students answer before they see.

    Attributes:
        ask: the question.
        unit: of the answer.
    """

    ask: str
    unit: str


@dataclass(frozen=True)
class Lesson:
    """One lesson.

    Attributes:
        name: in the address.
        title: in a few words.
        question: it asks.
        look: what to look for, a sentence each.
        controls: what can be moved.
        compute: (values, job) -> result; without Streamlit, in another thread.
        draw: (result, values) -> pictures, what came out, and the answer to the guess.
        minutes: of class time; 0 outside of a class.
        height: of its pictures, in pixels.
        guess: asked before the picture is shown, or None.
        source: paper and section.
        experiment: its name among the Calibration page's experiments; "" where it is none.
        lead: of an experiment, what is compared and how to read it.
        story: what it is about, before the guess; see `workbench.app.lessons.prose`.
        read: how to read its pictures, with the controls in sentences.
        parts: of its pictures, by the names that links in the texts have.
    """

    name: str
    title: str
    question: str
    look: tuple[str, ...]
    controls: tuple[Control, ...]
    compute: Callable[[Values, Job], Any]
    draw: Callable[[Any, Values], Drawn]
    minutes: int
    height: int = 560
    guess: Guess | None = None
    source: str = ""
    experiment: str = ""
    lead: str = ""
    story: str = ""
    read: str = ""
    parts: Mapping[str, Part] = field(default_factory=dict)

    @property
    def preset(self) -> Values:
        """The controls' values it opens with."""
        return {control.name: control.default for control in self.controls}


def _options(options: Any) -> dict[Any, str]:
    """Value -> title of a control in the file."""
    if options == "policies":
        # those that say something about every item
        return {
            e.name: e.title
            for e in POLICIES.values()
            if e.kind == "policy" and e.measure and not (e.warning or e.broken)
        }
    if isinstance(options, Mapping):
        return dict(options)
    return {v[0]: v[1] for v in options} if isinstance(options[0], list) else {v: f"{v:,g}" for v in options}


def _controls(entries: list[dict[str, Any]], shared: Mapping[str, Any]) -> Iterator[Control]:
    for entry in entries:
        use = entry.pop("use", "")
        fields = {"name": use} | (shared[use] if use else {}) | entry
        yield Control(**fields | {"options": _options(fields["options"])})


def _part(entry: Mapping[str, Any]) -> Part:
    rows = {name: tuple(v) for name, v in entry.items() if name != "picture"}
    return Part(picture=int(entry.get("picture", 0)), **rows)


def _compute(function: str, controls: tuple[Control, ...], long: bool, values: Values, job: Job) -> Any:
    """Have a function of the studies called; one that yields shows each result so far."""
    arguments = {c.argument or c.name: values[c.name] for c in controls if not c.mark}
    where = jobs.long_work if long else jobs.short_work
    return jobs.compute(job, "lesson", function, arguments, where=where)


def _read(path: Path = TEXTS) -> tuple[Lesson, ...]:
    with path.open("rb") as file:
        document = tomllib.load(file)
    lessons = []
    for entry in document["lesson"]:
        controls = tuple(_controls(entry.pop("control"), document["control"]))
        guess, parts = entry.pop("guess", None), entry.pop("parts", {})
        compute = partial(_compute, entry.pop("compute"), controls, not entry["minutes"])
        draw = getattr(lesson_figures, entry.pop("draw"))
        lessons.append(
            Lesson(
                **entry | {"look": tuple(entry["look"])},
                controls=controls,
                compute=compute,
                draw=draw,
                guess=Guess(**guess) if guess else None,
                parts={n: _part(part) for n, part in parts.items()},
            )
        )
    return tuple(lessons)


EVERY = _read()
LESSONS = tuple(lesson for lesson in EVERY if lesson.minutes)
EXPERIMENTS = {lesson.name: lesson for lesson in EVERY if lesson.experiment}
"""Those of the Calibration page: like lessons, but started by a button, in a lane of their own."""


def present(lesson: Lesson, values: Values) -> tuple[Any, Job | None]:
    """Result of a state and the newest job that computes it, None where there is none; starts nothing.

    Args:
        lesson: it belongs to.
        values: of its controls.
    """
    name = name_of(lesson, values)
    return computed(stored_result, name), manager().get(OWNER, name)


def start(lesson: Lesson, values: Values) -> Job:
    """Compute a state in the background, also one that failed before."""
    name = name_of(lesson, values)

    def work(job: Job) -> Any:
        return computed(stored_result, name, known=lesson.compute(values, job))

    # an experiment may wait for the process of long work
    return manager().submit(
        OWNER,
        name,
        work,
        title=lesson.title,
        lane="short" if lesson.minutes else "study",
        limit=HOUR if lesson.minutes else DAY,
    )


def result(lesson: Lesson, values: Values) -> tuple[Any, Job | None]:
    """Result of a state, or the job that is computing it.

    Args:
        lesson: it belongs to.
        values: of its controls.

    Returns:
        (result, None), or (None, job); a failed job stays until the state is started again.
    """
    outcome, job = present(lesson, values)
    if outcome is not None:
        return outcome, None
    if job is not None and (job.active or job.status == "failed"):
        return None, job
    return None, start(lesson, values)


def drawn(lesson: Lesson, outcome: Any, values: Values, stage: Stage = AS_DRAWN) -> Drawn:
    """Pictures of a result, drawn once in a process: its figures are to be shown, not changed.

    Args:
        lesson: it belongs to.
        outcome: its whole result.
        values: of its controls.
        stage: height and type that its figures have.
    """

    def draw() -> tuple[Any, Drawn]:
        display = lesson.draw(outcome, values)
        for picture in display.pictures:
            if stage.scale != 1:
                enlarge(picture.figure, stage.scale)
            if stage.height:
                resized(picture.figure, stage.height // len(display.pictures))
        return outcome, display

    # the result lives as long as its pictures, so that no other has its id
    return _DRAWN.ask((id(outcome), lesson.name, *values.values(), stage), draw)[1]


def places(lesson: Lesson) -> list[Values]:
    """The preset, then the other places of the first slider that computes anything."""
    first = next((c for c in lesson.controls if c.slider and not c.mark), None)
    changes = [] if first is None else [{first.name: v} for v in first.options if v != first.default]
    return [lesson.preset | change for change in ({}, *changes)]


def name_of(lesson: Lesson, values: Values) -> str:
    """A state's name, of its inputs: of its job, and in the file of stored states."""
    return "/".join(map(str, (lesson.name, *(values[c.name] for c in lesson.controls if not c.mark))))


def written(lesson: Lesson) -> tuple[str, ...]:
    """All that a lesson says in words: what its title has to explain."""
    choices = [title for control in lesson.controls for title in (control.label, *control.options.values())]
    texts = [
        lesson.title,
        lesson.question,
        lesson.story,
        lesson.read,
        lesson.source,
        lesson.lead,
        *lesson.look,
        *choices,
    ]
    return (*texts, lesson.guess.ask) if lesson.guess is not None else tuple(texts)


def find(name: str) -> Lesson:
    """A lesson by name.

    Raises:
        InputError: there is none.
    """
    for lesson in LESSONS:
        if lesson.name == name:
            return lesson
    raise InputError(f"There is no lesson {cut(name, 40)}. Choose one of those below.")


def thumbnail(lesson: Lesson) -> Path:
    """The address of a lesson's small picture."""
    return _HERE / f"lesson-{lesson.name}.svg"


def sketch(lesson: Lesson) -> Path:
    """The address of a lesson's sketch."""
    return _HERE / f"sketch-{lesson.name}.svg"


def worksheet(lesson: Lesson) -> str:
    """A lesson as a page to print: the question, a guess, what to try, what to write down; Markdown.

    Args:
        lesson: one of `LESSONS`.
    """
    blank, unit = "\\_" * 12, "" if lesson.guess is None else lesson.guess.unit
    lines = f"{blank * 5}\n\n{blank * 5}"
    parts = [f"Name: {blank * 2}  Date: {blank}  ({lesson.minutes} minutes)", plain(lesson.story)]
    parts.append(f"**{lesson.question}**")
    tasks = []
    if lesson.guess is not None:
        tasks.append(
            f"Guess before you look\n\n{lesson.guess.ask}\n\n"
            f"My guess: {blank} {unit}\n\nIt was: {blank} {unit}"
        )
    slider = next((c for c in lesson.controls if c.slider), None)
    if slider is not None:
        rows = "\n".join(f"| {option} | | |" for option in slider.options.values())
        head = f"| {slider.label} | what I see | what is printed below the picture |\n| --- | --- | --- |"
        tasks.append(f"Move “{slider.label}”\n\n{head}\n{rows}")
    tasks += [f"Is it so? Say why\n\n{task}\n\n{lines}" for task in lesson.look]
    tasks.append(f"In one sentence: what will you remember?\n\n{lines}")
    parts += [f"## {number}. {task}" for number, task in enumerate(tasks, start=1)]
    source = f"After {lesson.source}. " if lesson.source else ""
    parts = [f"# {lesson.title}", *parts, f"{source}In Workbench: `/lessons?lesson={lesson.name}`"]
    return "\n\n".join(parts) + "\n"


STORED = "lessons.npz"


def stored_kinds() -> dict[str, Any]:
    """The kinds of record a result is made of, by name."""
    from workbench.studies import lessons

    kinds = (
        figures.CalibrationReport,
        figures.Scores,
        figures.SweepCurve,
        ReliabilityTable,
        lessons.Grid,
        lessons.Inducing,
        lessons.Measures,
        lessons.Looked,
        lessons.Rivals,
        lessons.Outvoted,
        lessons.Promises,
        lessons.Unlabelled,
    )
    return {kind.__name__: kind for kind in kinds}


def unpacked(tree: Any, arrays: Any) -> Any:
    """The result behind what `benchmarks.lessons` packed."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        array = np.asarray(arrays[tree["array"]])
        return array.astype(np.float64) if array.dtype == np.float16 else array
    if "record" in tree:
        fields = {name: unpacked(part, arrays) for name, part in tree["fields"].items()}
        return stored_kinds()[tree["record"]](**fields)
    if "dict" in tree:
        return {name: unpacked(part, arrays) for name, part in tree["dict"].items()}
    return tuple(unpacked(part, arrays) for part in tree["tuple"])


@cache
def _index() -> tuple[dict[str, Any], dict[str, Any]]:
    """(key -> tree, arrays) of the file; empty where it is missing."""
    from workbench.pools.datasets.catalogue import bundled_file

    try:
        path = bundled_file(STORED)
    except InputError:
        return {}, {}
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "index"}
        return json.loads(str(file["index"])), arrays


def stored_result(key: str) -> Any:
    """The stored result of a lesson's state, or None: arrays and plain records of `make lessons`, no pickle.

    Args:
        key: the lesson's name and its values, as `lessons` makes it.
    """
    trees, arrays = _index()
    return unpacked(trees[key], arrays) if key in trees else None
