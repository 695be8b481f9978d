"""Settings of runs; documents of rounds and saved models."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.documents.checking import (
    MOST_ITEMS,
    Closed,
    Count,
    Document,
    Item,
    Long,
    Measure,
    Name,
    Names,
    Options,
    Share,
    TestShare,
    Word,
)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings that a run has and a study, whose runs have them in common; commands take them as options.

    Attributes:
        target: the column that holds the classes, for files.
        pool_options: further options of `load_pool`.
        options: of the classifier; with "choice", "auto" for a new large-margin model.
        selector: how a batch is chosen: auto, a name or package.module:function.
        initial: first labels: one-per-class, diverse, diverse:N, random or random:N (N items, or twice the
            number of classes); none, with a guess.
        budget: labels to ask for, the first ones not counted.
        batch: labels to ask for at a time.
        test_fraction: share of items kept for measuring.
        uniform_share: share of the questions drawn uniformly, whatever the policy.
        measured: measure on at most so many of the items kept for it, always the same ones; 0 is all.
        asked_among: choose questions among at most so many open items, others each round; 0 is all.
        guess: what is known of the items before any label, as in `simulate`.
    """

    target: Word | None = None
    pool_options: Options = field(default_factory=dict)
    options: Options = field(default_factory=dict)
    selector: Name = "auto"
    initial: Name = "one-per-class"
    budget: Count = 60
    batch: Annotated[int, Field(ge=1, lt=MOST_ITEMS)] = 1
    test_fraction: TestShare = 0.2
    uniform_share: Share = 0.0
    measured: Count = 0
    asked_among: Count = 0
    guess: Names = ()

    @property
    def shared(self) -> dict[str, Any]:
        """These settings alone, without those of a run or a study beside them."""
        return {f.name: getattr(self, f.name) for f in fields(RunSettings)}

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `load_pool`."""
        return {**self.pool_options, **({} if self.target is None else {"target": self.target})}

    def to_json(self) -> dict[str, Any]:
        """A JSON document of all settings; `RunSpec.from_json` and `study_from` are the ways back."""
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}
        return plain | {"options": dict(self.options), "pool_options": dict(self.pool_options)}


class RoundRecord(Document):
    """A round: of a run, or with what it was made from, of a project."""

    number: Item
    n_labelled: Count
    n_test: Count
    error: Measure = None
    nll: Measure = None
    brier: Measure = None
    ece: Measure = None
    balanced_error: Measure = None
    macro_f1: Measure = None
    queried: list[Item]
    labels: list[Item]
    utilities: list[Measure]
    uniform: list[Item] = []
    initial: list[Item]
    initial_labels: list[Item]
    seconds: dict[str, float]
    signs: dict[str, float] = {}
    program: Word = ""


class ProjectRound(RoundRecord):
    """A fit of a project, with what it was made from."""

    classes: list[Name]
    keys: list[Name] = []
    classifier: Name
    options: Options
    policy: Name
    merged: dict[Name, Name] = {}
    stream: Count = 0
    events: Count = 0
    n_items: Count = 0
    training: Word = ""
    votes: Word = ""
    guess: Options = {}
    queue: list[Item] = []
    queue_utilities: list[Measure] = []


class StoredRound(Closed):
    """A line of a project's rounds."""

    number: Item
    record: ProjectRound


class PoolOfRun(Document):
    """Pool of a run, as its bundle describes it."""

    name: Word
    fingerprint: Word
    n_items: Item
    n_features: Count
    n_test: Count
    n_measured: Count | None = None
    classes: list[Name]


class RunBundle(Document):
    """run.json of a run."""

    kind: Literal["run"]
    spec: dict[str, Any]
    pool: PoolOfRun
    n_rounds: Annotated[int, Field(ge=1, lt=MOST_ITEMS)]
    n_labelled: Count
    neighbours: Name = "none"


class Model(Document):
    """spec.json of a saved model."""

    classifier: Name
    options: Options
    classes: Annotated[list[Name], Field(min_length=1, max_length=100_000)]
    n_labelled: Count
    pool: Word
    note: Long = ""
    id_column: Word = ""
    reading: Options = {}


class BegunSource(Closed):
    """A guess that a saved model begins with."""

    source: Name
    deviation: Annotated[float, Field(ge=0.0)]
    scale: Literal["", "shares", "per cent", "scores"] = ""
    mapping: dict[str, Word] = {}


class BegunWith(Closed):
    """guess.json of a saved model."""

    classes: Annotated[list[Name], Field(min_length=1, max_length=100_000)]
    sources: Annotated[list[BegunSource], Field(max_length=1_000)]
    guidance: dict[str, Word] = {}
