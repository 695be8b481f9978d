"""Documents of certificates and audits."""

from typing import Annotated, Literal

from pydantic import Field

from workbench.documents.checking import MOST_ITEMS, Closed, Item, Long, Name, Seed, Share, Time, Word


class PromiseDocument(Closed):
    """Promise that is fixed before the first check (`workbench.certificates.Promise`)."""

    size: Annotated[int, Field(ge=1, lt=MOST_ITEMS)]
    error: Annotated[float, Field(gt=0.0, lt=1.0)]
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    sizes: Annotated[list[Annotated[int, Field(ge=1, lt=MOST_ITEMS)]], Field(min_length=1, max_length=1_000)]
    attempt: Annotated[int, Field(ge=1, le=50)]
    of: Word
    per_class: bool


class CertificateCheck(Closed):
    """One label that a person looked at."""

    draw: Annotated[int, Field(ge=1, lt=MOST_ITEMS)]
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
    decided: Word = ""


class CertificateApart(Closed):
    """A frozen label that is no machine label of the delivered set, though nobody checked it."""

    item: Name
    label: Name
    rank: Item


class CertificateClass(Closed):
    """Result of the checks for one class."""

    name: Name
    size: Item
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
    made: Time
    promise: PromiseDocument
    delivered: Item
    beside: Item
    labels_sha256: Word
    people_sha256: Word
    seed: Seed
    drawn_from: Word
    classes: Annotated[list[CertificateClass], Field(max_length=100_000)]
    checks: Annotated[list[CertificateCheck], Field(max_length=10_000_000)]
    apart: Annotated[list[CertificateApart], Field(max_length=100_000_000)]
    versions: dict[str, Word]


class AuditAttempt(Closed):
    """Checks of one state of a column: (id, answer, time) each."""

    labels_sha256: Word
    promise: PromiseDocument
    answers: Annotated[
        list[Annotated[list[Word], Field(min_length=3, max_length=3)]], Field(max_length=10_000_000)
    ]


class AuditDocument(Closed):
    """Stored part of an audit (`workbench.exchange.auditing.Audit`)."""

    kind: Literal["audit"]
    column: Name
    attempts: Annotated[list[AuditAttempt], Field(max_length=50)]
