"""The record of a finished set: what is promised, what was checked, and all it takes to do so again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Ints
from workbench.certificates.drawing import Draws, confidence_at, delta_of, seed_of
from workbench.certificates.page import html_of
from workbench.certificates.strata import ClassBounds, by_class, draws_of_strata
from workbench.certificates.tally import AuditDesign, Promise, SequentialBound, Tally, tally
from workbench.certificates.validation import confidence_of, error_of, size_of
from workbench.certificates.words import facts_of, method_of, sentence_of
from workbench.errors import InputError
from workbench.reading import cut, parse_json

BY_CLASS, BY_CONFIDENCE = "class", "confidence"
"""What checks may be drawn within: labels of one class, or of one band of confidence."""


@dataclass(frozen=True)
class Check:
    """One label that was drawn and looked at.

    Attributes:
        draw: from 1 on, in the order of the draws.
        item: id of the item.
        label: the label that was frozen.
        answer: what a person said; "" where nobody could tell, which counts as wrong.
        rank: of the frozen label by confidence, from 0 on, the surest first.
        person: who answered.
        time: when, ISO 8601.
        answers: (person, class) of everyone who answered, where they are several.
    """

    draw: int
    item: str
    label: str
    answer: str
    rank: int
    person: str = ""
    time: str = ""
    answers: tuple[tuple[str, str], ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether the answer is another class."""
        return self.answer != self.label

    @property
    def disputed(self) -> bool:
        """Whether several people answered, differently."""
        return len({said for _, said in self.answers}) > 1


@dataclass(frozen=True)
class WithdrawnLabel:
    """A frozen label that was not checked and is no machine label of the delivered set.

    It lies beyond the set that was certified, or a person labelled or removed the item since.
    """

    item: str
    label: str
    rank: int


@dataclass(frozen=True)
class FurtherError:
    """A further error that was asked about, and the largest set that keeps it; 0 where none does."""

    error: float
    sizes: tuple[int, ...]
    delivered: int = 0


@dataclass(frozen=True)
class Strata:
    """How draws were made within strata.

    Attributes:
        by: "class" or "confidence"; "" where draws were uniform over all.
        names: [G] of the strata; of "class", the classes.
        bands: of "confidence", the stratum of each frozen label as a digit, in the order of the listing.
        counts: (size, labels in each stratum) of each set that is tested.
    """

    by: str = ""
    names: tuple[str, ...] = ()
    bands: str = ""
    counts: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def of(self, frozen: Mapping[str, str]) -> Ints:
        """[N] the stratum of each frozen label, in the order of the listing; -1 where it has none.

        Args:
            frozen: id -> label.
        """
        if self.by == BY_CLASS:
            place = {name: g for g, name in enumerate(self.names)}
            return np.array([place.get(frozen[item], -1) for item in listed_order(frozen)], dtype=np.int64)
        found = np.array([int(digit) if digit.isdecimal() else -1 for digit in self.bands], dtype=np.int64)
        return np.where(found < len(self.names), found, -1)


@dataclass(frozen=True)
class Certificate:
    """What is known of frozen labels by random checks; build it with `certificate_of`.

    The draws are positions in the listing of the frozen labels sorted by id (`listed_order`): check t is the
    item at `drawn(...)[t - 1]`, and all draws up to the last check are there.

    Attributes:
        project: its name.
        of: whose labels: "model", or the column or file they come from.
        error: allowed share of wrong labels.
        confidence: of all attempts together.
        attempt: from 1 on; what each spends is `delta_of`.
        size: N, labels that were frozen.
        sizes: sets to be certified, in the order of the test: so many of the surest.
        delivered: size of the largest set that is certified; 0 where none is.
        people: items that people had labelled when the labels were frozen.
        labels_sha256: `checksum_of` the frozen labels.
        people_sha256: the same of what people labelled in the finished set, checks included; "" where the set
            was not finished yet.
        seed: of the order of the draws.
        checks: all of them, in the order of the draws.
        drawn_from: checksum that the seed is made of: of the labels as classes were called then.
        apart: frozen labels that are neither checked nor machine labels of the finished set.
        also: further errors, and what is certified at them by the same checks.
        strata: how draws were made, where not uniformly over all.
        class_sizes: (class, its labels in each stratum of the certified set), where precision and recall of
            each class are stated.
        made: when, ISO 8601.
        versions: of the programs.
        sentence: what is promised.
        method: how it was found out.
        id: of this content.
    """

    project: str
    of: str
    error: float
    confidence: float
    attempt: int
    size: int
    sizes: tuple[int, ...]
    delivered: int
    people: int
    labels_sha256: str
    people_sha256: str
    seed: int
    drawn_from: str
    checks: tuple[Check, ...]
    apart: tuple[WithdrawnLabel, ...] = ()
    also: tuple[FurtherError, ...] = ()
    strata: Strata = Strata()
    class_sizes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    sentence: str = ""
    method: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        for name, found in (("sentence", sentence_of), ("method", method_of), ("id", id_of)):
            if not getattr(self, name):
                object.__setattr__(self, name, found(self))

    @property
    def delta(self) -> float:
        """What this attempt spends."""
        return delta_of(self.confidence, self.attempt)

    @property
    def holds(self) -> bool:
        """Whether anything was certified."""
        return self.delivered > 0

    @property
    def total(self) -> int:
        """All labels, people's included."""
        return self.size + self.people

    @property
    def error_of_all(self) -> float:
        """At most this share of the whole set is wrong, once people have labelled what is not certified."""
        if not self.holds:
            return 1.0
        return self.error * self.delivered / self.total

    @property
    def is_single(self) -> bool:
        """Whether all that was frozen is the only set, so that ranks say nothing."""
        return {size for promise in self.design.promises for size in promise.sizes} == {self.size}

    @property
    def within(self) -> list[Check]:
        """Checks of the certified set, or of the first one to be tested."""
        return [check for check in self.checks if check.rank < (self.delivered or self.sizes[0])]

    @property
    def disputed(self) -> int:
        """Checks that several people answered, differently."""
        return sum(check.disputed for check in self.checks)

    @cached_property
    def design(self) -> AuditDesign:
        """What was fixed before the first check."""
        return AuditDesign(
            self.size,
            self.error,
            self.sizes,
            confidence_at(self.confidence, self.attempt),
            tuple(Promise(one.error, one.sizes) for one in self.also),
            dict(self.strata.counts),
        )

    def tally(self, strata: Sequence[int] | Ints | None = None) -> Tally:
        """The evidence again.

        Args:
            strata: [t] of the checks, where they were drawn within strata; looked up by `verify`.
        """
        where = self.stratum_of_checks if strata is None else strata
        wrong, ranks = [check.wrong for check in self.checks], [check.rank for check in self.checks]
        return tally(self.design, wrong, ranks, where)

    @property
    def stratum_of_checks(self) -> list[int] | None:
        """[t] the stratum of each check; None where draws were uniform."""
        if not self.strata.by:
            return None
        if self.strata.by == BY_CLASS:
            place = {name: g for g, name in enumerate(self.strata.names)}
            return [place.get(check.label, 0) for check in self.checks]
        bands = self.strata.bands
        return [int(bands[place]) for place in self._drawn.tolist()]

    @property
    def _drawn(self) -> Ints:
        bands = np.array([int(digit) for digit in self.strata.bands], dtype=np.int64)
        return draws_of_strata(bands, self.seed, len(self.checks), self.attempt)

    @cached_property
    def bound(self) -> float:
        """At most this share is wrong, of the certified set or of the first that was tested."""
        size = self.delivered or self.sizes[0]
        made, where = SequentialBound(self.design, size, self.design.confidence), self.stratum_of_checks
        for t, check in enumerate(self.checks):
            if check.rank < size:
                made.add(check.wrong, 0 if where is None else where[t])
        return made.curve[-1]

    @cached_property
    def classes(self) -> list[ClassBounds]:
        """Precision and recall of each class of the certified set; all intervals hold together.

        They are a statement of their own, at the confidence of this attempt, whichever of the sets it is that
        was certified.
        """
        if not self.class_sizes or not self.holds:
            return []
        where = self.stratum_of_checks
        inside = [(t, check) for t, check in enumerate(self.checks) if check.rank < self.delivered]
        return by_class(
            [check.label for _, check in inside],
            [check.answer for _, check in inside],
            dict(self.class_sizes),
            1.0 - self.delta / len(set(self.sizes)),
            None if where is None else [where[t] for t, _ in inside],
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "kind": "certificate",
            "id": self.id,
            "sentence": self.sentence,
            "method": self.method,
            "project": self.project,
            "of": self.of,
            "made": self.made,
            "error": self.error,
            "confidence": self.confidence,
            "attempt": self.attempt,
            "delta": self.delta,
            "size": self.size,
            "sizes": list(self.sizes),
            "delivered": self.delivered,
            "people": self.people,
            "labels_sha256": self.labels_sha256,
            "people_sha256": self.people_sha256,
            "seed": self.seed,
            "drawn_from": self.drawn_from,
            "also": [asdict(one) | {"sizes": list(one.sizes)} for one in self.also],
            "strata": {
                "by": self.strata.by,
                "names": list(self.strata.names),
                "bands": self.strata.bands,
                "counts": [{"size": size, "labels": list(one)} for size, one in self.strata.counts],
            },
            "classes": [
                {
                    "name": one.name,
                    "sizes": list(sizes),
                    "checks": one.checks,
                    "precision": list(one.precision),
                    "recall": list(one.recall),
                }
                for one, (_, sizes) in zip(self.classes, self.class_sizes, strict=True)
            ],
            "checks": [_check_document(check) for check in self.checks],
            "apart": [asdict(one) for one in self.apart],
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        """The document, which `from_json` reads."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One page for people: self-contained, without scripts."""
        several = any(check.person for check in self.checks)
        rows = [
            (
                check.wrong,
                [
                    f"{check.draw:,}",
                    check.item,
                    check.label,
                    check.answer or "nobody could tell",
                    *([check.person] if several else []),
                ],
            )
            for check in self.checks
        ]
        return html_of(
            f"Certificate of {self.project}" if self.project else "Certificate",
            self.sentence,
            self.method,
            facts_of(self),
            ("Draw", "Item", "Label", "Answer", *(["Person"] if several else [])),
            rows,
            holds=self.holds,
            classes=[
                (one.name, f"{one.labels:,}", f"{one.checks:,}", *(_interval(one, i) for i in range(2)))
                for one in self.classes
            ],
        )

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any], what: str = "The certificate") -> Certificate:
        """Read a certificate; `verify` says whether it holds.

        Args:
            text: the document, or what it was parsed to.
            what: for messages, the file's name.

        Raises:
            InputError: no certificate; says which field.
        """
        from workbench.documents.certificates import CertificateDocument
        from workbench.documents.checking import checked

        found = text if isinstance(text, Mapping) else parse_json(text, what, "a certificate", finite=True)
        advice = "Take the file as it was written."
        d = checked(CertificateDocument, found, what, advice, "is no certificate")
        made = cls(
            project=d.project,
            of=d.of,
            error=d.error,
            confidence=d.confidence,
            attempt=d.attempt,
            size=d.size,
            sizes=tuple(d.sizes),
            delivered=d.delivered,
            people=d.people,
            labels_sha256=d.labels_sha256,
            people_sha256=d.people_sha256,
            seed=d.seed,
            drawn_from=d.drawn_from,
            also=tuple(FurtherError(one.error, tuple(one.sizes), one.delivered) for one in d.also),
            strata=Strata(
                d.strata.by,
                tuple(d.strata.names),
                d.strata.bands,
                tuple((one.size, tuple(one.labels)) for one in d.strata.counts),
            ),
            class_sizes=tuple((one.name, tuple(one.sizes)) for one in d.classes),
            checks=tuple(
                Check(
                    one.draw,
                    one.item,
                    one.label,
                    one.answer,
                    one.rank,
                    one.person,
                    one.time,
                    tuple((pair[0], pair[1]) for pair in one.answers),
                )
                for one in d.checks
            ),
            apart=tuple(WithdrawnLabel(one.item, one.label, one.rank) for one in d.apart),
            made=d.made,
            versions=d.versions,
            sentence=d.sentence or "(none)",
            method=d.method or "(none)",
            id=d.id or "(none)",
        )
        for check, one in zip(made.checks, d.checks, strict=True):
            if check.wrong != one.wrong:
                raise InputError(
                    f"{what} is no certificate: check {check.draw} has wrong as {cut(one.wrong)}, against "
                    f"its own label and answer. {advice}"
                )
        if made.delta != d.delta:
            raise InputError(f"{what} is no certificate: delta is {cut(d.delta)}. {advice}")
        try:
            stated = made.document()["classes"]
        except (IndexError, ValueError) as error:
            raise InputError(f"{what} is no certificate: its strata fit no checks. {advice}") from error
        if stated != [one.model_dump() for one in d.classes]:
            raise InputError(f"{what} is no certificate: bounds of classes are not what checks say. {advice}")
        return made


def certificate_of(
    frozen: Mapping[str, str],
    ranks: Mapping[str, int],
    checks: Sequence[Check],
    *,
    error: float,
    confidence: float,
    sizes: Sequence[int] | Ints,
    also: Sequence[Promise] = (),
    strata: Strata | None = None,
    per_class: bool = False,
    attempt: int = 1,
    project: str = "",
    of: str = "model",
    people: int = 0,
    labelled: Mapping[str, str] | None = None,
    apart: Iterable[str] = (),
    made: str = "",
    versions: Mapping[str, str] | None = None,
    drawn_from: str = "",
) -> Certificate:
    """The certificate of frozen labels, as their checks have it now.

    Args:
        frozen: id -> label, all N that were frozen.
        ranks: id -> rank by confidence, 0 the surest; what is missing from a single set has rank 0.
        checks: answered draws, without a gap, in their order.
        error: allowed share.
        confidence: of all attempts together.
        sizes: sets in the order of the test, as fixed before the first check.
        also: further errors with their sets, fixed as well.
        strata: how draws were made; uniformly over all unless given.
        per_class: state precision and recall of each class, too.
        attempt: from 1 on.
        project: its name.
        of: whose labels.
        people: items that people had labelled when the labels were frozen.
        labelled: id -> class of everything in the finished set that a person labelled, checks included; None
            where people go on.
        apart: ids within the certified set that people labelled or removed since; those beyond it are added.
        made: when, ISO 8601.
        versions: of the programs.
        drawn_from: checksum that the seed is made of, where classes were renamed since.

    Returns:
        The certificate; `holds` says whether anything is certified.

    Raises:
        InputError: values outside their range, or checks that are not the draws of these labels.
    """
    error_of(error), confidence_of(confidence)
    size_of(len(frozen))
    order, checksum = listed_order(frozen), checksum_of(frozen)
    how = Strata() if strata is None else strata
    seed = seed_of(drawn_from or checksum)
    places = drawn(frozen, how, seed, len(checks), attempt)
    for number, (check, place) in enumerate(zip(checks, places.tolist(), strict=False), 1):
        if check.draw != number or check.item != order[place] or check.label != frozen[check.item]:
            raise InputError(
                f"Check {number} is not the draw of these labels: {cut(order[place])} is, as "
                f"{cut(frozen[order[place]])}."
            )
    where = how.of(frozen) if how.by else np.zeros(len(order), dtype=np.int64)
    design = AuditDesign(
        len(frozen),
        float(error),
        tuple(int(size) for size in sizes),
        confidence_at(confidence, attempt),
        tuple(also),
        dict(how.counts),
    )
    found = tally(design, [check.wrong for check in checks], [check.rank for check in checks], where[places])
    delivered = found.delivered()
    away = set(apart) | ({item for item in order if ranks.get(item, 0) >= delivered} if delivered else set())
    away -= {check.item for check in checks}
    inside = {
        item: g for item, g in zip(order, where.tolist(), strict=True) if ranks.get(item, 0) < delivered
    }
    return Certificate(
        project=project,
        of=of,
        error=float(error),
        confidence=float(confidence),
        attempt=int(attempt),
        size=len(frozen),
        sizes=design.sizes,
        delivered=delivered,
        people=int(people),
        labels_sha256=checksum,
        people_sha256="" if labelled is None else checksum_of(labelled),
        seed=seed,
        drawn_from=drawn_from or checksum,
        checks=tuple(checks),
        apart=tuple(WithdrawnLabel(item, frozen[item], ranks.get(item, 0)) for item in sorted(away)),
        also=tuple(FurtherError(p.error, p.sizes, found.delivered(j)) for j, p in enumerate(also, 1)),
        strata=how,
        class_sizes=class_sizes(frozen, inside, max(1, len(how.names)), checks) if per_class else (),
        made=made,
        versions=dict(versions or {}),
    )


def drawn(frozen: Mapping[str, str], strata: Strata, seed: int, count: int, attempt: int) -> Ints:
    """[count] positions in the listing, in the order of the checks.

    Args:
        frozen: id -> label.
        strata: how draws are made.
        seed: `seed_of` the labels.
        count: how many.
        attempt: from 1 on.
    """
    if strata.by:
        return draws_of_strata(strata.of(frozen), seed, count, attempt)
    return Draws(len(frozen), seed, attempt).first(count)


def class_sizes(
    frozen: Mapping[str, str], inside: Mapping[str, int], groups: int, checks: Iterable[Check]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """(class, its labels in each stratum) of a set, with classes that only answers name at the end.

    Args:
        frozen: id -> label.
        inside: id -> stratum of what lies in the set.
        groups: G.
        checks: whose answers may name other classes.
    """
    found: dict[str, list[int]] = {}
    for name in sorted({frozen[item] for item in inside}):
        found[name] = [0] * groups
    for item, stratum in inside.items():
        found[frozen[item]][stratum] += 1
    for name in sorted({check.answer for check in checks if check.item in inside and check.answer}):
        found.setdefault(name, [0] * groups)
    return tuple((name, tuple(counts)) for name, counts in found.items())


def listed_order(ids: Iterable[str]) -> list[str]:
    """Ids in the order of the listing, of which draws are positions: sorted by their characters."""
    return sorted(ids)


def checksum_of(labels: Mapping[str, str]) -> str:
    """SHA-256 of labels, whatever order or file they come in.

    Args:
        labels: id -> class.

    Returns:
        Of a JSON list [id, class] a line, sorted by id, in ASCII.
    """
    found = hashlib.sha256()
    for item in listed_order(labels):
        found.update((json.dumps([item, labels[item]], separators=(",", ":")) + "\n").encode("ascii"))
    return found.hexdigest()


def id_of(certificate: Certificate) -> str:
    """What names this content: 16 hexadecimal digits of its SHA-256."""
    document = {key: value for key, value in certificate.document().items() if key != "id"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def _check_document(check: Check) -> dict[str, Any]:
    return {**asdict(check), "wrong": check.wrong, "answers": [list(pair) for pair in check.answers]}


def _interval(bounds: ClassBounds, which: int) -> str:
    low, high = (bounds.precision, bounds.recall)[which]
    return "too few checks" if bounds.too_few[which] else f"{100 * low:.3g} % to {100 * high:.3g} %"
