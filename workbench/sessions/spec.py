"""Everything a run depends on, as one JSON document; the answers to a question as the pool of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.arrays import items_and_codes
from workbench.documents.checking import Name, Seed, Word, checked_settings, plain
from workbench.documents.runs import RunSettings
from workbench.errors import InputError
from workbench.policies.default_policy import DEFAULT_POLICY
from workbench.pools.pool import Pool
from workbench.registry import from_file, typed
from workbench.sessions.drawing import parse_initial
from workbench.sessions.reopening import open_pool
from workbench.store import Store, fold

MEASURED = 20_000
"""Test items that a new project is measured on at most: then 95 % of an error lies within 0.007."""
_CHOOSER = "large-margin"
# options that say what a choice of the geometry would choose, or how it would be judged
_CHOSEN = (
    "kernel",
    "solver",
    "input_scaling",
    "select_length_scale",
    "hyperparameters",
    "calibration",
    "geometry",
)


def with_choice(classifier: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that say whether the model chooses its geometry: it does unless they leave nothing to choose.

    Args:
        classifier: a registry name, or anything else.
        options: of the classifier.
    """
    settings = dict(options)
    if classifier == _CHOOSER and "choice" not in settings:
        settings["choice"] = "fixed" if any(name in settings for name in _CHOSEN) else "auto"
    return settings


@dataclass(frozen=True)
class RunSpec(RunSettings):
    """Specification of a simulated run: the same spec gives the same rounds.

    Attributes:
        pool: a name or a file that `load_pool` knows.
        classifier: a registry name or "package.module:Class".
        policy: a registry name or "package.module:function".
        seed: of everything random.
    """

    pool: Word = "digits"
    classifier: Name = "large-margin"
    policy: Name = DEFAULT_POLICY
    seed: Seed = 0

    def __post_init__(self) -> None:
        vars(self).update(plain(vars(self)))
        checked_settings(RunSpec, vars(self), "The run", "cannot be made")
        parse_initial(self.initial)
        check_guess(self.guess, self.initial)
        object.__setattr__(self, "guess", tuple(self.guess))
        object.__setattr__(self, "options", with_choice(self.classifier, self.options))
        for name in ("classifier", "policy", "selector", "options"):  # what was vouched for is so in workers
            object.__setattr__(self, name, typed(getattr(self, name)))

    @property
    def n_rounds(self) -> int:
        """Number of rounds of the run if nothing runs out: one before any question, one a batch."""
        return 1 + -(-self.budget // self.batch)

    def read_with(self) -> dict[str, Any]:
        """Options of `load_pool` that this run reads its pool with: models of images see pixels."""
        from workbench.classifiers import sees_pixels
        from workbench.pools import seen_as_pixels

        pixels = sees_pixels(self.classifier) and not is_answered(self.pool)
        return seen_as_pixels(self.pool, self.reading) if pixels else self.reading

    def load_pool(self) -> Any:
        """The pool with its own test split, or with this seed's.

        Raises:
            InputError: no such pool, or one without truth for an oracle to answer from.
        """
        from workbench.pools import load_pool

        options = self.read_with()
        if is_answered(self.pool):
            return answered_pool(self.pool, options).split(self.seed, self.test_fraction)
        pool = load_pool(self.pool, **options)
        return pool if pool.test is not None else pool.split(self.seed, self.test_fraction)

    @classmethod
    def from_json(
        cls, document: Mapping[str, Any], *, where: str = "The run", trust_code: bool = False
    ) -> RunSpec:
        """The spec that `to_json` wrote; code it names is refused on use (`workbench.registry.from_file`).

        Args:
            document: what `to_json` gave.
            where: what held it, for messages.
            trust_code: let it name code that is neither registered nor installed.

        Raises:
            InputError: fields there are not, or values of the wrong kind.
        """
        settings = checked_settings(cls, document, where, "has another specification")
        return cls(**from_file(settings, where, trust_code=trust_code))


def check_guess(guess: Sequence[str], initial: str) -> None:
    """Refuse a guess that is named twice, and a run without first labels that has none.

    Raises:
        InputError: says so.
    """
    if len(set(guess)) != len(guess):
        raise InputError(f"A guess is named twice: {', '.join(guess)}.")
    if initial == "none" and not guess:
        raise InputError("A run without first labels (initial none) needs a guess to ask its questions by.")


PREFIX = "question:"
"""Of the name that such a pool has in a run's specification; the id of a question follows."""
FEWEST = 20
"""Answers without which nothing can be asked and measured again."""


def is_answered(name: str) -> bool:
    """True if a pool's name means the answers to a question."""
    return name.startswith(PREFIX)


def answered_source(question_id: str, store: Store | None = None) -> tuple[str, dict[str, Any]]:
    """The name and options by which runs find the answers that there are now, whatever is added later.

    Args:
        question_id: of a question of a project.
        store: the default database unless given.
    """
    events = (store or Store.open()).events(question_id)
    return PREFIX + question_id, {"events": events[-1].id if events else 0}


def answered_title(name: str) -> str:
    """Name of it for people: the project and the question, or that it was deleted."""
    question = Store.open().summary(name.removeprefix(PREFIX))
    return "a question of a deleted project" if question is None else f"{question.name}: {question.question}"


def answered_pool(name: str, options: Mapping[str, Any] | None = None, store: Store | None = None) -> Pool:
    """The pool of a question's project, its classes known where people agree on an answer.

    Args:
        name: "question:" and the id of the question.
        options: "events" is the number of the last event that counts; all of them unless given.
        store: the default database unless given.

    Returns:
        The pool without a test split; -1 in its truth where nobody answered.

    Raises:
        InputError: no such question, another option, or too few answers.
    """
    arguments = dict(options or {})
    last = arguments.pop("events", None)
    if arguments or not (last is None or (isinstance(last, int) and not isinstance(last, bool))):
        raise InputError(
            f"The answers to a question are read with the option events, a number; got {dict(options or {})}."
        )
    store = store or Store.open()
    record = store.project(name.removeprefix(PREFIX))
    state = fold(event for event in store.events(record.id) if last is None or event.id <= last)
    codes = {item: code for item, code in state.codes.items() if item not in state.undecided}
    items, answers = items_and_codes(codes)
    if len(items) < FEWEST or (np.bincount(answers, minlength=2) > 1).sum() < 2:
        raise InputError(
            f"Only {len(items)} items of the question {record.question!r} are answered: a comparison needs "
            f"{FEWEST}, and two of each of two classes. Answer more of them first."
        )
    pool = open_pool(store, record.family)[1]
    truth = np.full(len(pool), -1, dtype=np.int64)
    truth[items] = answers
    title = f"{record.name}: {record.question}"
    return replace(pool, name=title, classes=state.classes, truth=truth, test=None)
