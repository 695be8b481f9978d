"""Documents of certificates and audits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workbench.documents.fields import MOST_ITEMS, Closed, Item, Long, Name, Seed, Share, Time, Word


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


class CertificateApart(Closed):
    """A frozen label that is no machine label of the delivered set, though nobody checked it."""

    item: Name
    label: Name
    rank: Item


class CertificateAlso(Closed):
    """A further error that was asked about."""

    error: Annotated[float, Field(gt=0.0, lt=1.0)]
    sizes: Annotated[list[Annotated[int, Field(ge=1, lt=MOST_ITEMS)]], Field(min_length=1, max_length=1_000)]
    delivered: Item


class CertificateCounts(Closed):
    """Labels of a set in each stratum."""

    size: Annotated[int, Field(ge=1, lt=MOST_ITEMS)]
    labels: Annotated[list[Item], Field(max_length=100_000)]


class CertificateStrata(Closed):
    """How checks were drawn within strata."""

    by: Literal["", "class", "confidence"]
    names: Annotated[list[Name], Field(max_length=100_000)]
    bands: Annotated[str, Field(max_length=MOST_ITEMS)]
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
    size: Annotated[int, Field(ge=1, lt=MOST_ITEMS)]
    sizes: Annotated[list[Annotated[int, Field(ge=1, lt=MOST_ITEMS)]], Field(min_length=1, max_length=1_000)]
    delivered: Item
    people: Item
    labels_sha256: Word
    people_sha256: Word
    seed: Seed
    drawn_from: Word
    also: Annotated[list[CertificateAlso], Field(max_length=100)]
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
