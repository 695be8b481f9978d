"""Documents of projects: settings, questions, where the pool is."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from workbench.documents.fields import Closed, Count, Document, Item, Name, Options, Seed, Share, Time, Word


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


class Overlap(Closed):
    """Share of the items that several people label."""

    share: Share
    people: Annotated[int, Field(ge=2, le=1_000)]
    by: Literal["lot", "worth"] = "lot"


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


class Settings(Document):
    """A project's settings."""

    classifier: Name
    options: Options
    policy: Name
    seed: Seed
    evaluation_share: Annotated[float, Field(ge=0.0, lt=1.0)]
    early_share: Share
    uniform_share: Share
    begun: Count
    test: Split | None
    measured: Count = 0
    asked_among: Count = 0
    overlap: Overlap | None = None
    archived: bool = False
    guesses: Annotated[list[GuessSource], Field(max_length=1_000)] = []
    twins: TwinGroups | None = None


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
