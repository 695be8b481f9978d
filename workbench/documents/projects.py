"""Documents of projects: settings, questions, where the pool is; events, and their lines in a bundle."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SkipValidation,
    StrictBool,
    TypeAdapter,
    model_validator,
)

from workbench.documents.certificates import PromiseDocument
from workbench.documents.checking import (
    MOST_ITEMS,
    Closed,
    Count,
    Document,
    Identity,
    Item,
    Long,
    Measure,
    Name,
    Options,
    Seed,
    Share,
    TestShare,
    Time,
    Word,
    checked,
)
from workbench.errors import InputError
from workbench.reading import cut

_OF_PERSON = TypeAdapter(tuple[Word, Time, StrictBool])
"""Person and time of a file's label, and whether it decides."""


def _is_label(label: list[Any]) -> list[Any]:
    if len(label) not in (2, 5) or type(label[0]) is not int or not 0 <= label[0] < MOST_ITEMS:
        raise ValueError("it is no item with the key of a class")
    if not isinstance(label[1], str) or not label[1]:
        raise ValueError("it is no item with the key of a class")
    if len(label) == 5:
        _OF_PERSON.validate_python(label[2:])
    return label


def _is_guess(pair: list[Any]) -> list[Any]:
    if len(pair) != 2 or not isinstance(pair[0], str) or type(pair[1]) not in (int, float):
        raise ValueError("it is no class with its probability")
    return pair


def _is_picture(event: PictureKept) -> PictureKept:
    try:
        data = base64.b64decode(event.data, validate=True)
    except ValueError:
        raise ValueError("its data is no base64") from None
    sign = b"\x89PNG\r\n\x1a\n" if event.media == "image/png" else b"\xff\xd8\xff"
    if not data.startswith(sign) or hashlib.sha256(data).hexdigest()[:16] != event.picture:
        raise ValueError("it is not the picture that it is called")
    return event


class Payload(Document):
    """Fields that any event may hold: the origin of a question, and the time the person took."""

    operation: Identity | None = None
    act: Identity | None = None
    ask: Identity | None = None
    role: Word | None = None
    source: Word | None = None
    policy: Word | None = None
    utility: Measure = None
    round: int | None = None
    seconds: Measure = None
    n_labelled: Count | None = None
    n_items: Count = 0
    questions: list[Count] = []
    guess: list[Annotated[list[Any], AfterValidator(_is_guess)]] | None = None


class OfItem(Payload):
    """About one item."""

    item: Item


class Skip(OfItem):
    """An item that is set aside."""

    asks: list[Word] = []


class OfItems(Payload):
    """About many items."""

    items: list[Item]


class Label(OfItem):
    """An item's class."""

    key: Name = Field(alias="class")


def _names_items(payload: OneOrMore) -> OneOrMore:
    if (payload.item is None) == (payload.items is None):
        raise ValueError("it names one item, or several")
    return payload


class OneOrMore(Payload):
    """About one item, or about several at once."""

    item: Item | None = None
    items: list[Item] | None = None

    _named = model_validator(mode="after")(_names_items)


class Flag(OneOrMore):
    """An item needs attention, or does no longer."""

    on: bool
    reason: Long


class Note(OneOrMore):
    """A remark."""

    text: Long


class Resolved(OneOrMore):
    """The end of disagreements."""

    key: Name = Field(alias="class")


class OfClass(Payload):
    """About a class."""

    key: Name = Field(alias="class")
    guidance: Word | None = None
    shortcut: Word | None = None
    colour: Word | None = None


class Named(OfClass):
    """A class and its name."""

    name: Name


class Merged(OfClass):
    """A class that counts as another."""

    into: Name


class Ordered(Payload):
    """The order of the classes."""

    classes: list[Name]


class Imported(Payload):
    """Labels out of a file."""

    labels: list[Annotated[list[Any], AfterValidator(_is_label)]]
    source: Word = ""


class Many(OfItems):
    """The class of many items; those of a grid are the model's surest: learnt from and never measured on."""

    key: Name = Field(alias="class")
    rejected: list[Item] = []
    asks: list[Word] = []
    final: bool = False


class Wanted(OfItems):
    """Items that somebody wants to be asked about, in this order, or to look at again (`second`)."""

    how: Long = ""
    second: bool = False


class Undo(Payload):
    """Event that is taken back, or put back."""

    of: Count | None = None


class Question(Document):
    """A question."""

    id: Name
    item: Item
    role: Word = ""
    utility: Measure = None
    round: int | None = None
    policy: Word | None = None
    classifier: Word | None = None
    n_labelled: Count | None = None
    guess: list[Annotated[list[Any], AfterValidator(_is_guess)]] | None = None


class Asked(Payload):
    """Questions that were shown."""

    asks: list[Question]
    expires: float
    first: bool = False


class Released(Payload):
    """Questions that were given back."""

    asks: list[Word]


class Fit(Document):
    """A fit was finished."""

    number: Item
    n_labelled: Count = 0
    n_items: Count = 0
    n_test: Count = 0
    error: Measure = None
    nll: Measure = None
    brier: Measure = None
    ece: Measure = None


class Chosen(Payload):
    """Another model."""

    classifier: Name
    options: Options
    policy: Name


class InWords(Payload):
    """The question at the desk."""

    question: Word


class Hidden(Payload):
    """Setting: people are numbered where figures of each are shown."""

    on: bool


class PictureKept(Payload):
    """A picture of the instructions."""

    picture: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    media: Literal["image/png", "image/jpeg"]
    data: Long

    _is_one = model_validator(mode="after")(_is_picture)


class Written(Payload):
    """The instructions."""

    text: Annotated[str, Field(max_length=20_000)]


class Read(Payload):
    """Versions of the instructions that somebody has read."""

    version: Count


class Example(Label):
    """An item that shows what a class is."""

    on: bool


class Guesses(Payload):
    """Starting values of fits."""

    sources: Annotated[list[GuessSource], Field(max_length=1_000)]


class Packed(Document):
    """Numbers, one an item, as text."""

    items: str
    codes: str
    confidence: str


class ChecksStarted(Payload):
    """Labels that are checked, and in which order."""

    promise: PromiseDocument
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)]
    classes: Annotated[list[Name], Field(min_length=1)]
    frozen: Packed
    checksum: Word
    drawn_from: Word


class Certified(Payload):
    """Checks that sufficed."""

    started: Count
    certificate: Options


PAYLOADS: Mapping[str, type[BaseModel]] = {
    "label": Label,
    "skip": Skip,
    "unsure": OfItem,
    "flag": Flag,
    "note": Note,
    "class-added": Named,
    "class-renamed": Named,
    "class-merged": Merged,
    "class-removed": OfClass,
    "class-described": OfClass,
    "classes-ordered": Ordered,
    "imported": Imported,
    "confirmed": Many,
    "relabelled": Many,
    "cleared": OfItems,
    "requeued": OfItems,
    "wanted": Wanted,
    "resolved": Resolved,
    "undo": Undo,
    "redo": Undo,
    "asked": Asked,
    "released": Released,
    "round": Fit,
    "model-changed": Chosen,
    "guesses-changed": Guesses,
    "question-changed": InWords,
    "names-hidden": Hidden,
    "picture-kept": PictureKept,
    "instructions-written": Written,
    "instructions-read": Read,
    "example-picked": Example,
    "checks-started": ChecksStarted,
    "certified": Certified,
}
"""Kind of an event -> what it holds."""
NAMES_ITEMS = frozenset({"item", "items", "labels", "rejected", "asks"})
"""Fields of events that name items, each held only by the kinds that declare it."""


class EventLine(Closed):
    """An event as a line of a bundle; its payload is checked by its kind."""

    id: Count
    kind: Word
    payload: Options
    annotator: Word
    time: Time
    of_items: bool = False


def check_event(kind: str, payload: Any, what: str, advice: str = "") -> None:
    """Refuse what no event of this kind holds; the arguments are those of `checked`.

    Raises:
        InputError: no such kind, or another shape.
    """
    if kind not in PAYLOADS:
        raise InputError(f"{what} is damaged: there is no event of kind {cut(kind)}. {advice}".rstrip())
    schema = PAYLOADS[kind]
    checked(schema, payload, what, advice)
    # what names items is read wherever it stands, so it stands only where its shape was looked at
    if stray := (NAMES_ITEMS & payload.keys()) - schema.model_fields.keys():
        raise InputError(f"{what} is damaged: {kind} has no field {min(stray)}. {advice}".rstrip())


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


def _is_share_or_worth(value: Any) -> Any:
    is_share = type(value) in (int, float) and 0.0 <= value <= 1.0
    if not is_share and value != WORTH:
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
        float | str, BeforeValidator(_is_share_or_worth), Field(title="Items that several people label")
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
            cells are taken over as answers (`workbench.sessions.questions.questions_of`). The session is of
            the first one, which has the pool's classes where it names none; `question` gives others.
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
