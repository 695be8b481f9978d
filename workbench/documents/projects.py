"""Documents of projects: settings, questions, where the pool is."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SkipValidation, model_validator

from workbench.documents.fields import (
    Closed,
    Count,
    Document,
    Item,
    Name,
    Options,
    Seed,
    Share,
    TestShare,
    Time,
    Word,
)

WORTH = "worth"
"""In place of a share of items that several people label: any, where another answer is worth more."""


class Reference(Closed):
    """Recipe by which a pool is loaded again."""

    name: Name
    options: Options = {}


class Split(Closed):
    """The items that are kept for measuring."""

    seed: Seed
    fraction: Share
    n: Count
    bits: Annotated[str, Field(max_length=1 << 28)]


class SaidOfItems(Closed):
    """Predictions of items that lie in the project."""

    items: list[Item]
    classes: list[Word]
    confidence: list[float] | None = None


class GuessSource(Closed):
    """The source of a guess at the classes."""

    source: Name
    on: bool
    mapping: dict[str, Word] = {}
    checksum: Word = ""
    said: SaidOfItems | None = None


class TwinGroups(Document):
    """Groups of items that cannot be told apart, as `workbench.pools.neighbours.twins` packs them."""

    n: Count
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(max_length=5_000_000)]
    items: str


def _is_share_or_worth(value: float | str) -> float | str:
    if value != WORTH and (isinstance(value, str) or not 0.0 <= value <= 1.0):
        raise ValueError(f"it is a share of the items, in [0, 1], or {WORTH!r}")
    return value


class QuestionSettings(Document):
    """Settings that a project is given, and that each of its questions keeps.

    Attributes:
        classifier: a registry name or package.module:Class.
        options: of the classifier.
        policy: a registry name or package.module:function.
        seed: of everything random: the same seed gives the same test split and the same random choices.
        uniform_share: share of the questions drawn uniformly whatever the policy, so that no part of the pool
            is overlooked; the model learns from them.
        evaluation_share: share of the questions drawn uniformly and kept for measuring, where the pool has no
            known classes: the model never learns from them; 0 for none.
        early_share: share kept for measuring until 20 questions of it are answered, where that is more, since
            before that no error can be told.
        overlap: share of the items that several people label, drawn uniformly, to see how far they agree; 0
            asks about every item once. Or "worth": any item is asked about again, of another person, where
            one more answer says more than one about a new item (as ActiveLab asks, Goh & Mueller 2023).
        people: how many people label one of the items that several people label, at most.
    """

    classifier: Name = "large-margin"
    options: Options = {}
    policy: Name = "margin"
    seed: Annotated[Seed, Field(title="Seed")] = 0
    uniform_share: Annotated[Share, Field(title="Random questions")] = 0.1
    evaluation_share: Annotated[float, Field(ge=0.0, lt=1.0, title="Measuring questions")] = 0.1
    early_share: Share = 0.25
    overlap: Annotated[
        float | str, AfterValidator(_is_share_or_worth), Field(title="Items that several people label")
    ] = 0.0
    people: Annotated[int, Field(ge=2, le=1_000, title="People for each of them")] = 2


class ProjectSettings(QuestionSettings, extra="forbid"):
    """Settings that a project begins with, by `Session.create`, by `workbench new` and on the Data page.

    A setting is one field here. Those with a title stand on the Data page under *More settings*.

    Attributes:
        name: what people call the project; the pool's name unless given.
        classes: names of the classes to start with; the pool's unless given.
        questions: what is asked about every item, where that is more than one class of it: each a `Question`,
            or (name, classes), or a name, which makes a yes / no question, or "column:NAME", whose filled
            cells are taken over as answers (`workbench.sessions.columns.questions_of`). The session is of the
            first one, which has the pool's classes where it names none; `question` gives others.
        test_fraction: share of the items kept for measuring, where the pool has known classes.
        guess: what is known of the items before any label: "names", "column:llm_label", "columns:p_*" (as in
            `workbench.guesses.guess_of`), or {"source", "on", "mapping"}. Left open, columns of a table whose
            names say that they hold predictions; () for none.
        twins: items that cannot be told apart are asked about once, their class is offered for the others,
            and none is measured on when another was learnt from.
    """

    name: str | None = None
    classes: SkipValidation[Sequence[str] | None] = None
    questions: SkipValidation[Sequence[Any] | None] = None
    test_fraction: TestShare = 0.2
    guess: SkipValidation[Sequence[str | Mapping[str, Any]] | None] = None
    twins: Annotated[bool, Field(title="Ask about copies once")] = True


class Settings(QuestionSettings):
    """Settings of a question as they are stored: all that it was given, and what follows from the pool."""

    begun: Count
    test: Split | None
    measured: Count = 0
    asked_among: Count = 0
    archived: bool = False
    guesses: Annotated[list[GuessSource], Field(max_length=1_000)] = []
    twins: TwinGroups | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if missing := QuestionSettings.model_fields.keys() - self.model_fields_set:
            raise ValueError(f"{min(missing)} is missing")
        return self


class QuestionBeside(Document):
    """A question of a project, its history apart."""

    created: Time
    settings: Settings
    state_of: Item | None = None
    question: Annotated[str, Field(max_length=100)] = "label"
    kind: Literal["one class", "yes / no"] = "one class"
    aside: bool = False


def _are_apart(questions: list[QuestionBeside]) -> list[QuestionBeside]:
    names = [question.question for question in questions]
    if len(set(names)) != len(names):
        raise ValueError("two questions have one name")
    return questions


class Project(QuestionBeside):
    """project.json of a project's bundle."""

    name: Annotated[str, Field(max_length=10_000)]
    pool: Reference
    feature_map: Options
    questions: Annotated[list[QuestionBeside], Field(max_length=1_000), AfterValidator(_are_apart)] = []


class ProjectBundle(Document):
    """run.json of a project."""

    kind: Literal["project"]
