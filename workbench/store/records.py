"""Projects, runs, studies and rounds as they are stored: plain records."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.store.events import Event

ACCESS = ("private", "shared", "open")
ONE_CLASS, YES_NO = "one class", "yes / no"
QUESTION_KINDS = (ONE_CLASS, YES_NO)
"""Of questions: an item has one of several classes, or it has something or not."""
LABEL = "label"
"""Name of the question of a project that asks one."""
RUN_STATES = ("running", "finished", "interrupted", "cancelled", "failed")


@dataclass(frozen=True)
class ProjectSummary:
    """Entry of a list of projects: a project by its first question, or one of its questions.

    Attributes:
        id: what URLs and commands name it by.
        name: what people call it.
        pool: how to load the pool again: {"name", "options"}.
        settings: classifier, policy, seed, ...; JSON.
        created: UTC, ISO 8601.
        n_labelled: items with a label; None where it is not known without folding the events.
        changed: when something was last recorded, UTC, ISO 8601; "" for never.
        owner: key of the person it belongs to; "" for nobody.
        access: who may open it: "private" (the owner), "shared" (the owner and `members`), "open".
        members: keys of people, for "shared".
        n_items: of its pool when it was last accepted.
        family: id of the first question, which the project is known by; that of this one unless given.
        question: name of the question.
        kind: one of `QUESTION_KINDS`.
        position: of the question among those of the project, from 0.
        aside: whether the question is asked no more.
    """

    id: str
    name: str
    pool: Mapping[str, Any]
    settings: Mapping[str, Any]
    created: str
    n_labelled: int | None = None
    changed: str = ""
    owner: str = ""
    access: str = "open"
    members: tuple[str, ...] = ()
    n_items: int = 0
    family: str = ""
    question: str = LABEL
    kind: str = ONE_CLASS
    position: int = 0
    aside: bool = False

    @property
    def n_askable(self) -> int:
        """Items that may be asked about: those outside of the test split."""
        bits = (self.settings.get("test") or {}).get("bits", "")
        return self.n_items - int.from_bytes(b64decode(bits), "big").bit_count()

    def __post_init__(self) -> None:
        if not self.family:
            object.__setattr__(self, "family", self.id)

    @property
    def archived(self) -> bool:
        """True if it was put aside; nothing of it is lost."""
        return bool(self.settings.get("archived"))

    def lets_in(self, key: str) -> bool:
        """True if the person with this key may open it."""
        return (
            self.access == "open"
            or key == self.owner != ""
            or (self.access == "shared" and key in self.members and key != "")
        )


@dataclass(frozen=True, eq=False)
class ProjectRecord(ProjectSummary):
    """A project as stored.

    Attributes:
        fingerprints: [N] uint64 of the pool's items when it was last accepted.
        feature_map: JSON document of the pool's feature map.
    """

    fingerprints: Array = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    feature_map: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewQuestion:
    """A question over a project's pool, as it begins.

    Attributes:
        name: of the question; no other of its project has it.
        kind: one of `QUESTION_KINDS`.
        settings: as those of a project.
        events: recorded with it; those without a number come after all of the project's.
        created: UTC, ISO 8601; "" for now.
        aside: whether it is asked no more.
    """

    name: str
    kind: str
    settings: Mapping[str, Any]
    events: Sequence[Event] = ()
    created: str = ""
    aside: bool = False


@dataclass(frozen=True)
class RunRecord:
    """A run as stored.

    Attributes:
        id: of the run.
        spec: the RunSpec as JSON.
        fingerprint: of the pool it ran on.
        status: "running", "finished", "interrupted", "cancelled" or "failed".
        message: why, where it did not finish.
        project: id of the project it belongs to, if any.
        study: id of the study it belongs to, if any.
        n_rounds: how many rounds are stored.
        created: UTC, ISO 8601.
        updated: UTC, ISO 8601.
    """

    id: str
    spec: Mapping[str, Any]
    fingerprint: str
    status: str
    message: str
    project: str | None
    study: str | None
    n_rounds: int
    created: str
    updated: str


@dataclass(frozen=True)
class StudyRecord:
    """A study as stored; its runs name it.

    Attributes:
        id: of the study.
        spec: the StudySpec as JSON.
        workers: processes it was started with.
        project: id of the project it belongs to, if any.
        created: UTC, ISO 8601.
        owner: key of the person who started it, where people log in.
    """

    id: str
    spec: Mapping[str, Any]
    workers: int
    project: str | None
    created: str
    owner: str | None = None


@dataclass(frozen=True)
class RoundRecord:
    """A round as stored: its number and its JSON record."""

    number: int
    record: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class WholeProject:
    """All that is stored of a project, as of one moment.

    Attributes:
        record: what it is.
        events: of the question, oldest first; of the first question also those about items.
        rounds: the finished fits, in order.
        state: number of the fit whose posterior is kept, and its arrays; None where there is none.
        item_ids: [N] the source's ids, of the first question; () of the others.
        others: the further questions of the project, of which these are the first.
    """

    record: ProjectRecord
    events: tuple[Event, ...]
    rounds: tuple[RoundRecord, ...] = ()
    state: tuple[int, Mapping[str, Array]] | None = None
    item_ids: tuple[str, ...] = ()
    others: tuple[WholeProject, ...] = ()
