"""The record of a finished set: what is promised, what was checked, and all it takes to do so again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from workbench.arrays import Array, Ints
from workbench.certificates.drawing import Draws, confidence_at, delta_of
from workbench.certificates.given import confidence_of, error_of, size_of
from workbench.certificates.nested import Nested, nested
from workbench.certificates.page import html_of
from workbench.certificates.wealth import BETS, WEIGHTS
from workbench.errors import InputError
from workbench.reading import cut, parse_json


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
class Apart:
    """A frozen label that was not checked and is no machine label of the delivered set.

    It lies beyond the set that was certified, or a person labelled or removed the item since.
    """

    item: str
    label: str
    rank: int


@dataclass(frozen=True)
class Certificate:
    """What is known of frozen labels by random checks; build it with `certificate_of`.

    The draws are positions in the listing of the frozen labels sorted by id (`listed_order`): check t is the
    item at `Draws(size, seed, attempt).first(t)[-1]`, and all draws up to the last check are there.

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
        apart: frozen labels that are neither checked nor machine labels of the finished set.
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
    checks: tuple[Check, ...]
    apart: tuple[Apart, ...] = ()
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
    def error_of_all(self) -> float:
        """At most this share of the whole set is wrong, once people have labelled what is not certified."""
        return self.error * self.delivered / (self.size + self.people) if self.holds else 1.0

    @property
    def whole(self) -> bool:
        """Whether all that was frozen is the only set, so that ranks say nothing."""
        return self.sizes == (self.size,)

    @property
    def within(self) -> list[Check]:
        """Checks of the certified set, or of the first one to be tested."""
        return [check for check in self.checks if check.rank < (self.delivered or self.sizes[0])]

    @property
    def disputed(self) -> int:
        """Checks that several people answered, differently."""
        return sum(check.disputed for check in self.checks)

    @cached_property
    def evidence(self) -> Nested:
        """What the checks say of every set."""
        wrong, ranks = evidence_of(self.checks)
        return nested(wrong, ranks, self.sizes, self.error, confidence_at(self.confidence, self.attempt))

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
            self.facts(),
            ("Draw", "Item", "Label", "Answer", *(["Person"] if several else [])),
            rows,
            holds=self.holds,
        )

    def facts(self) -> list[tuple[str, str]]:
        """What it rests on, by name; "" where there is nothing to say."""
        within = self.within
        wrong = sum(check.wrong for check in within)
        beside = len(self.checks) - len(within)
        disputed = f"People disagreed about {self.disputed:,} checks; the first answer counts."
        return [
            ("Certificate", self.id),
            ("Made", self.made),
            ("Labels of", "the model" if self.of == "model" else self.of),
            ("Frozen labels", f"{self.size:,}"),
            ("Certified labels", f"{self.delivered:,}"),
            ("Labelled by people before", f"{self.people:,}"),
            ("Allowed error", _share(self.error)),
            ("Confidence", _share(self.confidence)),
            ("Of all labels", self._of_all()),
            ("Attempt", f"{self.attempt}, which spends {self.delta:.6g} of {1 - self.confidence:.6g}"),
            ("Checks", f"{len(within):,}, of which {wrong:,} wrong"),
            ("Checks beside the set", f"{beside:,}" if beside else ""),
            ("Disagreements", disputed if self.disputed else ""),
            ("Seed of the draws", f"{self.seed}"),
            ("SHA-256 of the frozen labels", self.labels_sha256),
            ("SHA-256 of people's labels", self.people_sha256),
            *sorted(self.versions.items()),
        ]

    def _of_all(self) -> str:
        if not self.holds:
            return ""
        return (
            f"at most {_share(self.error_of_all)} of {self.size + self.people:,} are wrong, once people have "
            "labelled what is not certified"
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
        from workbench.documents import CertificateDocument, checked

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
            apart=tuple(Apart(one.item, one.label, one.rank) for one in d.apart),
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
        return made


def certificate_of(
    frozen: Mapping[str, str],
    ranks: Mapping[str, int],
    checks: Sequence[Check],
    *,
    seed: int,
    error: float,
    confidence: float,
    sizes: Sequence[int] | Ints,
    attempt: int = 1,
    project: str = "",
    of: str = "model",
    people: int = 0,
    labelled: Mapping[str, str] | None = None,
    apart: Iterable[str] = (),
    made: str = "",
    versions: Mapping[str, str] | None = None,
) -> Certificate:
    """The certificate of frozen labels, as their checks have it now.

    Args:
        frozen: id -> label, all N that were frozen.
        ranks: id -> rank by confidence, 0 the surest; what is missing from a single set has rank 0.
        checks: answered draws, without a gap, in their order.
        seed: of the draws.
        error: allowed share.
        confidence: of all attempts together.
        sizes: sets in the order of the test, as fixed before the first check.
        attempt: from 1 on.
        project: its name.
        of: whose labels.
        people: items that people had labelled when the labels were frozen.
        labelled: id -> class of everything in the finished set that a person labelled, checks included; None
            where people go on.
        apart: ids within the certified set that people labelled or removed since; those beyond it are added.
        made: when, ISO 8601.
        versions: of the programs.

    Returns:
        The certificate; `holds` says whether anything is certified.

    Raises:
        InputError: values outside their range, or checks that are not the draws of this seed.
    """
    error_of(error), confidence_of(confidence)
    size_of(len(frozen))
    order = listed_order(frozen)
    drawn = Draws(len(frozen), seed, attempt).first(len(checks)).tolist()
    for number, (check, place) in enumerate(zip(checks, drawn, strict=False), 1):
        if check.draw != number or check.item != order[place] or check.label != frozen[check.item]:
            raise InputError(
                f"Check {number} is not the draw of this seed: {cut(order[place])} is, as "
                f"{cut(frozen[order[place]])}."
            )
    wrong, places = evidence_of(checks)
    found = nested(wrong, places, sizes, error, confidence_at(confidence, attempt), bounds=False)
    best = found.largest()
    delivered = 0 if best is None else int(found.sizes[best])
    away = set(apart) | ({item for item in order if ranks.get(item, 0) >= delivered} if delivered else set())
    away -= {check.item for check in checks}
    return Certificate(
        project=project,
        of=of,
        error=float(error),
        confidence=float(confidence),
        attempt=int(attempt),
        size=len(frozen),
        sizes=tuple(int(size) for size in sizes),
        delivered=delivered,
        people=int(people),
        labels_sha256=checksum_of(frozen),
        people_sha256="" if labelled is None else checksum_of(labelled),
        seed=int(seed),
        checks=tuple(checks),
        apart=tuple(Apart(item, frozen[item], ranks.get(item, 0)) for item in sorted(away)),
        made=made,
        versions=dict(versions or {}),
    )


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


def evidence_of(checks: Sequence[Check]) -> tuple[Array, Ints]:
    """Answers and ranks of checks, each [t], as `nested` takes them."""
    import numpy as np

    return (
        np.array([check.wrong for check in checks], dtype=bool),
        np.array([check.rank for check in checks], dtype=np.int64),
    )


def id_of(certificate: Certificate) -> str:
    """What names this content: 16 hexadecimal digits of its SHA-256."""
    document = {key: value for key, value in certificate.document().items() if key != "id"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def sentence_of(certificate: Certificate) -> str:
    """What is promised, in words."""
    c = certificate
    within = c.within
    wrong = sum(check.wrong for check in within)
    checks = f"{_count(len(within), 'random check')}, {_count(wrong, 'error')}"
    if not c.holds:
        bound = float(c.evidence.bounds[0])
        estimate = f"the estimate is {_share(wrong / len(within))}, " if within else ""
        return (
            f"Not certified at {_share(c.error)}: {estimate}with {_share(c.confidence)} confidence at most "
            f"{_share(bound)} of {c.sizes[0]:,} labels are wrong; {checks}."
        )
    which = "labels" if c.delivered == c.size else f"labels, the surest of {c.size:,}"
    whose = "machine " if c.of == "model" else ""
    return (
        f"{c.delivered:,} {whose}{which}; with {_share(c.confidence)} confidence at most {_share(c.error)} "
        f"of them are wrong; {checks}."
    )


def method_of(certificate: Certificate) -> str:
    """How it was found out, in words."""
    c = certificate
    order = ", ".join(f"{size:,}" for size in c.sizes)
    nests = (
        f" Sets of the surest {order} labels were tested in this order, up to the first that failed." * (
            len(c.sizes) > 1
        )
    )  # fmt: skip
    bets = ", ".join(f"{bet:g} ({weight:g})" for bet, weight in zip(BETS, WEIGHTS, strict=True))
    return (
        f"{c.size:,} labels were frozen. Items were drawn uniformly without replacement, in an order fixed "
        "by the seed before the first check, and a person answered without seeing the label. Tested by "
        "betting (Waudby-Smith and Ramdas, 2024), which holds whenever one looks and stops, with shares "
        f"(weights) {bets}.{nests} This is attempt {c.attempt}, which spends {c.delta:.6g} of "
        f"{1 - c.confidence:.6g}. "
        "What a person says counts as right; what nobody could tell counts as wrong."
    )


def _check_document(check: Check) -> dict[str, Any]:
    return {**asdict(check), "wrong": check.wrong, "answers": [list(pair) for pair in check.answers]}


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"
