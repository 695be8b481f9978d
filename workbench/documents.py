"""What each document that comes in must look like: one schema each, checked before anything is stored.

Pydantic does the checking (strict: nothing is converted on the way, NaN is no number). A document of another
shape is refused in one sentence that says which field, and what stands there.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from workbench.errors import InputError
from workbench.reading import cut

_MOST_ITEMS = 1 << 31


def _is_time(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


def _is_plain(document: dict[str, Any]) -> dict[str, Any]:
    """JSON all the way down, and not deeper than anybody writes it."""
    _check_plain(document, 0)
    return document


def _check_plain(value: Any, depth: int) -> None:
    if depth > 40:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        for part in value.values():
            _check_plain(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_plain(part, depth + 1)
    elif isinstance(value, float):
        if value - value != 0:
            raise ValueError("a number is not finite")
    elif isinstance(value, int) and abs(value) >= 1 << 63:
        raise ValueError("a number has too many digits")


def _is_label(pair: list[Any]) -> list[Any]:
    if len(pair) != 2 or type(pair[0]) is not int or not 0 <= pair[0] < _MOST_ITEMS:
        raise ValueError("it is no item with the key of a class")
    if not isinstance(pair[1], str) or not pair[1]:
        raise ValueError("it is no item with the key of a class")
    return pair


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


Item = Annotated[int, Field(ge=0, lt=_MOST_ITEMS)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Whole = Annotated[int, Field(gt=-_MOST_ITEMS, lt=1 << 53)]  # what reads it has a better sentence for the rest
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Word = Annotated[str, Field(max_length=1_000)]
Name = Annotated[str, Field(min_length=1, max_length=2_000)]
Long = Annotated[str, Field(max_length=1_000_000)]
Time = Annotated[str, Field(max_length=40), AfterValidator(_is_time)]
Options = Annotated[dict[str, Any], AfterValidator(_is_plain)]
Measure = float | None


class Document(BaseModel):
    """A document of which fields that are not named may hold any JSON."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, populate_by_name=True)


class Closed(BaseModel):
    """A document that has no other fields."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)


# --- runs -----------------------------------------------------------------------------------------


class Spec(Closed):
    """A run's specification (`workbench.sessions.RunSpec`)."""

    pool: Name = "digits"
    target: Word | None = None
    pool_options: Options = {}
    classifier: Name = "large-margin"
    options: Options = {}
    policy: Name = "random"
    selector: Name = "auto"
    initial: Name = "one-per-class"
    budget: Whole = 0
    batch: Whole = 1
    seed: Whole = 0
    test_fraction: float = 0.2
    uniform_share: float = 0.0
    measured: Whole = 0
    asked_among: Whole = 0
    guess: Annotated[list[Name] | tuple[Name, ...], Field(max_length=100)] = ()


class Study(Closed):
    """A study's specification (`workbench.studies.StudySpec`), "pool" and the like not yet made lists."""

    name: Word = ""
    pools: Annotated[list[Name] | tuple[Name, ...], Field(min_length=1, max_length=10_000)] = ()
    classifiers: list[Name] | tuple[Name, ...] = ()
    policies: list[Name] | tuple[Name, ...] = ()
    seeds: int = 1
    budget: Whole = 0
    batch: Whole = 1
    options: Options = {}
    target: Word | None = None
    pool_options: Options = {}
    selector: Name = "auto"
    initial: Name = "one-per-class"
    test_fraction: float = 0.2
    measured: Whole = 0
    asked_among: Whole = 0
    guess: Annotated[list[Name] | tuple[Name, ...], Field(max_length=100)] = ()


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
    training: Word = ""
    guess: Options = {}
    queue: list[Item] = []
    queue_utilities: list[Measure] = []


class StoredRound(Closed):
    """A line of a project's rounds."""

    number: Item
    record: ProjectRound


class PoolOfRun(Document):
    """What a run's bundle says of its pool."""

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
    n_rounds: Annotated[int, Field(ge=1, lt=_MOST_ITEMS)]
    n_labelled: Count
    neighbours: Name = "none"


class RunHead(Document):
    """head.json of a run that is not finished."""

    spec: dict[str, Any]
    fingerprint: Word


class Model(Document):
    """spec.json of a saved model."""

    classifier: Name
    options: Options
    classes: Annotated[list[Name], Field(min_length=1, max_length=100_000)]
    n_labelled: Count
    pool: Word
    note: Long = ""


class BegunSource(Closed):
    """A guess that a saved model begins with."""

    source: Name
    deviation: Annotated[float, Field(ge=0.0)]
    mapping: dict[str, Word] = {}


class BegunWith(Closed):
    """guess.json of a saved model."""

    classes: Annotated[list[Name], Field(min_length=1, max_length=100_000)]
    sources: Annotated[list[BegunSource], Field(max_length=1_000)]
    guidance: dict[str, Word] = {}


# --- certificates ---------------------------------------------------------------------------------


class CertificateCheck(Closed):
    """One label that a person looked at."""

    draw: Annotated[int, Field(ge=1, lt=_MOST_ITEMS)]
    item: Name
    label: Name
    answer: Word
    wrong: bool
    rank: Item
    person: Word = ""
    time: Time = ""
    answers: Annotated[
        list[Annotated[list[Word], Field(min_length=2, max_length=2)]], Field(max_length=1_000)
    ]


class CertificateApart(Closed):
    """A frozen label that is no machine label of the delivered set, though nobody checked it."""

    item: Name
    label: Name
    rank: Item


class CertificateAlso(Closed):
    """A further error that was asked about."""

    error: Annotated[float, Field(gt=0.0, lt=1.0)]
    sizes: Annotated[list[Annotated[int, Field(ge=1, lt=_MOST_ITEMS)]], Field(min_length=1, max_length=1_000)]
    delivered: Item


class CertificateCounts(Closed):
    """Labels of a set in each stratum."""

    size: Annotated[int, Field(ge=1, lt=_MOST_ITEMS)]
    labels: Annotated[list[Item], Field(max_length=100_000)]


class CertificateStrata(Closed):
    """How checks were drawn within strata."""

    by: Literal["", "class", "confidence"]
    names: Annotated[list[Name], Field(max_length=100_000)]
    bands: Annotated[str, Field(max_length=_MOST_ITEMS)]
    counts: Annotated[list[CertificateCounts], Field(max_length=10_000)]


class CertificateClass(Closed):
    """What the checks say of one class."""

    name: Name
    sizes: Annotated[list[Item], Field(max_length=100_000)]
    checks: Item
    precision: Annotated[list[Share], Field(min_length=2, max_length=2)]
    recall: Annotated[list[Share], Field(min_length=2, max_length=2)]


class CertificateDocument(Closed):
    """A certificate (`workbench.certificates.Certificate`)."""

    kind: Literal["certificate"]
    id: Word
    sentence: Long
    method: Long
    project: Word
    of: Word
    made: Time
    error: Annotated[float, Field(gt=0.0, lt=1.0)]
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    attempt: Annotated[int, Field(ge=1, le=50)]
    delta: Share
    size: Annotated[int, Field(ge=1, lt=_MOST_ITEMS)]
    sizes: Annotated[list[Annotated[int, Field(ge=1, lt=_MOST_ITEMS)]], Field(min_length=1, max_length=1_000)]
    delivered: Item
    people: Item
    labels_sha256: Word
    people_sha256: Word
    seed: Seed
    drawn_from: Word
    also: Annotated[list[CertificateAlso], Field(max_length=100)]
    whole: bool
    strata: CertificateStrata
    classes: Annotated[list[CertificateClass], Field(max_length=100_000)]
    checks: Annotated[list[CertificateCheck], Field(max_length=10_000_000)]
    apart: Annotated[list[CertificateApart], Field(max_length=100_000_000)]
    versions: dict[str, Word]


class AuditAttempt(Closed):
    """Checks of one state of a column: (id, answer, time) each."""

    labels_sha256: Word
    error: Annotated[float, Field(gt=0.0, lt=1.0)]
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    also: Annotated[list[Annotated[float, Field(gt=0.0, lt=1.0)]], Field(max_length=100)]
    strata: Literal["", "class"]
    answers: Annotated[
        list[Annotated[list[Word], Field(min_length=3, max_length=3)]], Field(max_length=10_000_000)
    ]


class AuditDocument(Closed):
    """What is kept of an audit (`workbench.exchange.auditing.Audit`)."""

    kind: Literal["audit"]
    column: Name
    attempts: Annotated[list[AuditAttempt], Field(max_length=50)]


# --- projects -------------------------------------------------------------------------------------


class Reference(Closed):
    """How a pool is loaded again."""

    name: Name
    options: Options = {}


class Split(Closed):
    """The items that are kept for measuring."""

    seed: Seed
    fraction: Share
    n: Count
    bits: Annotated[str, Field(max_length=1 << 28)]


class Overlap(Closed):
    """How many items several people label."""

    share: Share
    people: Annotated[int, Field(ge=2, le=1_000)]
    by: Literal["lot", "worth"] = "lot"


class SaidOfItems(Closed):
    """Predictions of items that lie in the project."""

    items: list[Item]
    classes: list[Word]
    confidence: list[float] | None = None


class GuessSource(Closed):
    """Where a guess at the classes comes from."""

    source: Name
    on: bool
    mapping: dict[str, Word] = {}
    checksum: Word = ""
    said: SaidOfItems | None = None


class TwinGroups(Document):
    """Groups of items that cannot be told apart, as `workbench.pools.twins` packs them."""

    n: Count
    sizes: Annotated[list[Annotated[int, Field(ge=2)]], Field(max_length=5_000_000)]
    items: str
    note: str = ""


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


def _are_apart(given: list[QuestionBeside]) -> list[QuestionBeside]:
    names = [one.question for one in given]
    if len(set(names)) != len(names):
        raise ValueError("two questions have one name")
    return given


class Project(QuestionBeside):
    """project.json of a project's bundle."""

    name: Annotated[str, Field(max_length=10_000)]
    pool: Reference
    feature_map: Options
    questions: Annotated[list[QuestionBeside], Field(max_length=1_000), AfterValidator(_are_apart)] = []


class ProjectBundle(Document):
    """run.json of a project."""

    kind: Literal["project"]


class Payload(Document):
    """What any event may hold beside: how a question came about, and what the person took."""

    operation: Word | None = None
    ask: Word | None = None
    role: Word | None = None
    source: Word | None = None
    policy: Word | None = None
    utility: Measure = None
    round: int | None = None
    seconds: Measure = None
    n_labelled: Count | None = None
    guess: list[Annotated[list[Any], AfterValidator(_is_guess)]] | None = None


class OfItem(Payload):
    """About one item."""

    item: Item


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

    on: bool = True
    reason: Long = ""


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
    """The class of many items."""

    key: Name = Field(alias="class")
    rejected: list[Item] = []
    asks: list[Word] = []
    final: bool = False


class Wanted(OfItems):
    """Items that somebody wants to be asked about."""

    how: Long = ""
    second: bool = False


class Undo(Payload):
    """What is taken back, or put back."""

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
    """Whether people are numbered where it is said how they do."""

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
    """What somebody has read of the instructions."""

    version: Count


class Example(Label):
    """An item that shows what a class is."""

    on: bool = True


class Guesses(Payload):
    """What fits start from."""

    sources: Annotated[list[GuessSource], Field(max_length=1_000)]


class Packed(Document):
    """Numbers, one an item, as text."""

    items: str
    codes: str
    confidence: str


class ChecksAlso(Closed):
    """A further error, and the sets that are tested at it."""

    error: float
    sizes: Annotated[list[Count], Field(min_length=1, max_length=1_000)]


class ChecksStarted(Payload):
    """Labels that are checked, and in which order."""

    of: Word
    error: float
    confidence: float
    attempt: Annotated[int, Field(strict=True, ge=1, le=50)]
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)]
    size: Count
    sizes: Annotated[list[Count], Field(min_length=1, max_length=1_000)]
    classes: Annotated[list[Name], Field(min_length=1)]
    frozen: Packed
    checksum: Word
    drawn_from: Word
    also: Annotated[list[ChecksAlso], Field(max_length=100)]
    whole: bool
    strata: Literal["", "class", "confidence"]
    per_class: bool
    twice: bool


class Certified(Payload):
    """Checks that sufficed."""

    started: Count
    certificate: Options


PAYLOADS: Mapping[str, type[BaseModel]] = {
    "label": Label,
    "skip": OfItem,
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


D = TypeVar("D", bound=BaseModel)


def checked(schema: type[D], document: Any, what: str, advice: str = "", wrong: str = "is damaged") -> D:
    """A document as its schema has it.

    Args:
        schema: one of this module.
        document: JSON, as parsed.
        what: for messages ("The bundle in runs/a: project.json").
        advice: what to do, a sentence.
        wrong: what is said of one of another shape.

    Returns:
        The same, typed; `document` itself stays what is stored.

    Raises:
        InputError: another shape; says which field, and what stands there.
    """
    try:
        found: D = _adapter(schema).validate_python(document)
    except (ValidationError, RecursionError) as error:
        raise InputError(f"{what} {wrong}: {_said(error)}. {advice}".rstrip()) from error
    return found


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


@cache
def _adapter(schema: type[BaseModel]) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _said(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the document"
    message = str(first["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if first["type"] in ("missing", "extra_forbidden"):
        return f"{cut(where, 80)}: {message}"
    return f"{cut(where, 80)} is {cut(first['input'])}: {message}"
