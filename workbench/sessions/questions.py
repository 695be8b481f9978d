"""Start of a question about the items of a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.errors import InputError
from workbench.reading import cut, listed, valid_text
from workbench.sessions.taxonomy import class_names
from workbench.store import ONE_CLASS, QUESTION_KINDS, YES_NO

YES, NO = "yes", "no"
MOST_QUESTIONS = 300
"""Most questions of one project."""
LONGEST_NAME = 100
TAKEN = ("id", "item", "tags", "image")
"""What columns of files are called beside those of the questions."""


@dataclass(frozen=True)
class Question:
    """A question that is asked about every item of a pool.

    Attributes:
        name: of the question; no other of its project has it. Exports call a column so.
        classes: names of the classes that an item has one of; a yes / no question has its own two.
        kind: "one class", or "yes / no".
        words: how it is put at the desk; "" for the words that the pool suggests.
        classifier: of this question; the project's unless given.
        options: of that classifier.
        policy: of this question; the project's unless given.
    """

    name: str
    classes: Sequence[str] = ()
    kind: str = ""
    words: str = ""
    classifier: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None

    @classmethod
    def of(cls, given: Question | str | Sequence[Any] | Mapping[str, Any]) -> Question:
        """A question, checked.

        Args:
            given: one; or its name, which makes it a yes / no question; or (name, classes); or its fields.

        Raises:
            InputError: no name, no classes, a kind there is not, or something else than a question.
        """
        if isinstance(given, str):
            return cls(given, kind=YES_NO)._checked()
        if isinstance(given, Question):
            return given._checked()
        try:
            question = cls(**given) if isinstance(given, Mapping) else cls(*tuple(given))
        except TypeError:
            raise InputError(
                'A question is a name, as "fraud" (yes or no), or a name with classes, as '
                f'("topic", ["refund", "other"]); got {cut(given)}.'
            ) from None
        return question._checked()

    def _checked(self) -> Question:
        name = question_name(str(self.name))
        if isinstance(self.classes, str):
            raise InputError(f"The classes of {name!r} are a list of names; got {cut(self.classes)}.")
        names = class_names(self.classes)
        kind = self.kind or ONE_CLASS
        if kind not in QUESTION_KINDS:
            raise InputError(f"A question is {' or '.join(map(repr, QUESTION_KINDS))}; got {cut(self.kind)}.")
        if kind == YES_NO:
            if names and names != (YES, NO):
                raise InputError(f"{name!r} is answered by {YES} or {NO}, and has no classes of its own.")
            names = (YES, NO)
        return replace(self, name=name, classes=names, kind=kind)


def question_name(given: str) -> str:
    """A name for a question, without blanks around it.

    Raises:
        InputError: an empty or a long one, or one that files need for something else.
    """
    name = valid_text(given).strip()
    if not name or len(name) > LONGEST_NAME:
        raise InputError(f"A question needs a name of 1 to {LONGEST_NAME} characters; got {cut(name)}.")
    if name in TAKEN:
        raise InputError(f"Files call another column {name!r}: give the question another name.")
    return name


def several(given: Sequence[Any], there: Sequence[str] = ()) -> list[Question]:
    """The questions that a project begins with, or gets.

    Args:
        given: each as `Question.of` takes it.
        there: names that are taken.

    Raises:
        InputError: two of one name, too many, or one that is none.
    """
    if isinstance(given, str):
        raise InputError(f"Questions are a list; got the text {cut(given)}.")
    questions = [Question.of(question) for question in given]
    names = [*there, *(question.name for question in questions)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"Two questions are called {twice[0]!r}; each needs a name of its own.")
    if len(names) > MOST_QUESTIONS:
        raise InputError(f"A project has at most {MOST_QUESTIONS} questions; these are {len(names)}.")
    return questions


def unknown_question(name: str, names: Sequence[str]) -> InputError:
    """That a project asks no question of this name."""
    return InputError(f"There is no question {name!r}. Questions: {listed(names)}.")
