"""The record of a finished set: what is promised, what was checked, and all it takes to do so again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array
from workbench.certificates.promise import (
    Draws,
    Promise,
    Tally,
    facts_of,
    has_second_look,
    method_of,
    seed_of,
    sentence_of,
    tally,
)
from workbench.certificates.wealth import Bound, confidence_of, upper_bound
from workbench.errors import InputError
from workbench.reading import cut, parse_json

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6876; --line: #d9dfe5; --paper: #ffffff;
  --good: #1a7f4b; --good-paper: #edf7f1; --bad: #a3471f; --bad-paper: #fbf1ec; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6eaee; --soft: #9aa7b3; --line: #36414c; --paper: #151b21;
  --good: #5cc893; --good-paper: #16291f; --bad: #e69a75; --bad-paper: #2e1d15; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.5rem; }
h1 { font-size: 1.1rem; font-weight: 600; margin: 0 0 1rem; color: var(--soft); overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
.says { font-size: 1.35rem; line-height: 1.4; padding: 1.25rem 1.5rem; border-left: 4px solid var(--good);
  background: var(--good-paper); margin: 0; border-radius: 0 6px 6px 0; }
.not { border-color: var(--bad); background: var(--bad-paper); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 500; color: var(--soft); }
.facts th { width: 11rem; }
.checks { font-size: .875rem; }
.wrong td { color: var(--bad); font-weight: 600; }
code { font: .875em ui-monospace, monospace; overflow-wrap: anywhere; }
p { margin: .5rem 0; }
.soft { color: var(--soft); }
@media print { main { padding: 0; max-width: none; } thead { display: table-header-group; } }
"""


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{_value(value)}</td></tr>\n" for name, value in rows if value
    )
    return f'<table class="facts">\n{cells}</table>\n'


def _value(value: str) -> str:
    is_code = len(value) >= 16 and set(value) <= set("0123456789abcdef")
    return f"<code>{value}</code>" if is_code else escape(value)


def _grid(columns: Iterable[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> str:
    """A table with a head; rows say whether they are wrong, and their cells."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr{' class=wrong' if wrong else ''}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n"
        for wrong, cells in rows
    )
    return f'<table class="checks">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n'


_NONE = '<p class="soft">None yet.</p>\n'
WIDEST = 0.3
"""An interval above this is said to be of too few checks."""


@dataclass(frozen=True)
class ClassBounds:
    """Bounds of one class by the checks; all intervals of all classes hold together.

    Attributes:
        name: of the class.
        size: frozen labels of it.
        checks: draws among them.
        precision: (from, to), share of them that are right.
        recall: (from, to), share of the items of the class that have its label.
    """

    name: str
    size: int
    checks: int
    precision: tuple[float, float]
    recall: tuple[float, float]

    @property
    def too_few(self) -> tuple[bool, bool]:
        """True, for precision and for recall, where more checks are needed to say anything."""
        return tuple(high - low > WIDEST for low, high in (self.precision, self.recall))  # type: ignore[return-value]


def by_class(
    labels: Sequence[str], answers: Sequence[str], sizes: Mapping[str, int], confidence: float
) -> list[ClassBounds]:
    """Precision and recall of each class of the frozen labels, by random draws.

    Args:
        labels: [t] frozen labels of the draws, in their order.
        answers: [t] what people said; "" where nobody could tell, which counts against both.
        sizes: class -> frozen labels of it; of classes that only people named there are 0.
        confidence: of all intervals together, at all times.

    Returns:
        One a class, in the order of `sizes`.

    Raises:
        InputError: labels that `sizes` does not have, or lists of other lengths.
    """
    if len(labels) != len(answers):
        raise InputError("Give as many answers as labels.")
    unknown = set(labels) - {name for name, size in sizes.items() if size}
    if unknown:
        raise InputError(f"There are no frozen labels of {sorted(unknown)[0]!r}.")
    delta = (1.0 - confidence_of(confidence)) / (4 * max(1, len(sizes)))
    frozen, replies = np.array(labels, dtype=object), np.array(answers, dtype=object)
    total = sum(sizes.values())
    out = []
    for name, n in sizes.items():
        in_class = frozen == name
        wrong = replies[in_class] != name
        unsure, missed = replies[~in_class] == "", replies[~in_class] == name
        w_low, w_high = _between(wrong, wrong, n, delta)
        m_low, m_high = _between(missed, missed | unsure, total - n, delta)
        worst, best = n - w_high, n - w_low
        out.append(
            ClassBounds(
                name,
                n,
                int(in_class.sum()),
                (worst / n, best / n) if n else (0.0, 1.0),
                (
                    worst / (worst + m_high) if worst + m_high else 0.0,
                    best / (best + m_low) if best + m_low else 1.0,
                ),
            )
        )
    return out


def _between(lower: Array, upper: Array, size: int, delta: float) -> tuple[float, float]:
    """Numbers of marked items between which the truth lies, at delta each side."""
    if not size:
        return 0.0, 0.0
    if not len(upper):
        return 0.0, float(size)
    high = _highest(upper, size, delta)
    return min(size - _highest(~lower, size, delta), high), high


def _highest(marked: Array, size: int, delta: float) -> float:
    return float(upper_bound(marked, size, 1.0 - delta)[-1]) * size


@dataclass(frozen=True)
class Check:
    """One label that was drawn and looked at.

    Attributes:
        draw: from 1 on, in the order of the draws.
        item: id of the item.
        label: the label that was frozen.
        answer: what the first person said; "" where they could not tell, which counts as wrong.
        rank: of the frozen label by confidence, from 0 on, the surest first.
        person: who answered.
        time: when, ISO 8601.
        answers: (person, class) of everyone who answered, the first one first, where they are several.
        decided: the class that somebody decided on after people disagreed; "" where nobody did.
    """

    draw: int
    item: str
    label: str
    answer: str
    rank: int
    person: str = ""
    time: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    decided: str = ""

    @property
    def counted(self) -> str:
        """The class that counts; "" where nobody could tell, or people disagree and nobody has decided."""
        return self.decided if self.disputed else self.answer

    @property
    def wrong(self) -> bool:
        """True where the label counts as wrong."""
        return self.counted != self.label

    @property
    def disputed(self) -> bool:
        """True if several people answered, differently."""
        return len({answer for _, answer in self.answers}) > 1

    @property
    def named(self) -> set[str]:
        """All that the label may be after the check."""
        return {self.answer, *(answer for _, answer in self.answers), self.decided} - {""}


@dataclass(frozen=True)
class WithdrawnLabel:
    """A frozen label that was not checked and is no machine label of the delivered set.

    It lies beyond the set that was certified, or a person labelled or removed the item since.
    """

    item: str
    label: str
    rank: int


class SecondLooks(NamedTuple):
    """Checks answered "right" that were asked again of another person.

    Attributes:
        drawn: that the seed draws of them (`drawing.has_second_look`).
        made: checks that several people answered.
        disagreed: of these.
        open: disagreements that nobody has decided: they count as wrong.
    """

    drawn: int
    made: int
    disagreed: int
    open: int


@dataclass(frozen=True)
class Certificate:
    """Result of random checks of frozen labels; build it with `certificate_of`.

    The draws are positions in the listing of the frozen labels sorted by id (`listed_order`): check t is the
    item at `Draws(...).first(t)[t - 1]`, and all draws up to the last check are there.

    Attributes:
        project: its name.
        promise: what was fixed before the first check.
        delivered: size of the largest set that is certified; 0 where none is.
        beside: labels of the finished set that were not frozen, so that nobody checked them.
        labels_sha256: `checksum_of` the frozen labels.
        people_sha256: the same of all labels in the finished set that are not the machine's, checks included;
            "" where the set was not finished yet.
        seed: of the order of the draws, and of second looks.
        checks: all of them, in the order of the draws.
        drawn_from: checksum that the seed is made of: of the labels as classes were called then.
        apart: frozen labels that are neither checked nor machine labels of the finished set.
        class_sizes: (class, its labels in the certified set), where precision and recall of each class are
            stated.
        made: when, ISO 8601.
        versions: of the programs.
        sentence: what is promised.
        method: how it was found out.
        id: of this content.
    """

    project: str
    promise: Promise
    delivered: int
    beside: int
    labels_sha256: str
    people_sha256: str
    seed: int
    drawn_from: str
    checks: tuple[Check, ...]
    apart: tuple[WithdrawnLabel, ...] = ()
    class_sizes: tuple[tuple[str, int], ...] = ()
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    sentence: str = ""
    method: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        for name, make in (("sentence", sentence_of), ("method", method_of), ("id", id_of)):
            if not getattr(self, name):
                object.__setattr__(self, name, make(self))

    @property
    def holds(self) -> bool:
        """True if anything was certified."""
        return self.delivered > 0

    @property
    def is_single(self) -> bool:
        """True if all that was frozen is the only set, so that ranks say nothing."""
        return set(self.promise.sizes) == {self.promise.size}

    @property
    def aim(self) -> int:
        """Size of the certified set, or of the first one to be tested."""
        return self.delivered or self.promise.sizes[0]

    @property
    def within(self) -> list[Check]:
        """Checks of that set."""
        return [check for check in self.checks if check.rank < self.aim]

    @property
    def second_looks(self) -> SecondLooks:
        """Number of checks that several people answered, and what came of it."""
        return SecondLooks(
            sum(
                check.answer == check.label and has_second_look(self.seed, check.item)
                for check in self.checks
            ),
            sum(len(check.answers) > 1 for check in self.checks),
            sum(check.disputed for check in self.checks),
            sum(check.disputed and not check.decided for check in self.checks),
        )

    def tally(self) -> Tally:
        """The evidence again."""
        wrong, ranks = [check.wrong for check in self.checks], [check.rank for check in self.checks]
        return tally(self.promise, wrong, ranks)

    @cached_property
    def bound(self) -> float:
        """At most this share is wrong, of the certified set or of the first that was tested."""
        bound = Bound(self.aim, self.promise.confidence_here, [self.promise.error])
        for check in self.within:
            bound.add(check.wrong)
        return bound.curve[-1]

    @cached_property
    def classes(self) -> list[ClassBounds]:
        """Precision and recall of each class of the certified set; all intervals hold together.

        They are a statement of their own, at the confidence of this attempt, whichever of the sets it is that
        was certified.
        """
        if not self.class_sizes or not self.holds:
            return []
        return by_class(
            [check.label for check in self.within],
            [check.counted for check in self.within],
            dict(self.class_sizes),
            1.0 - self.promise.delta / len(set(self.promise.sizes)),
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "kind": "certificate",
            "id": self.id,
            "sentence": self.sentence,
            "method": self.method,
            "project": self.project,
            "made": self.made,
            "promise": self.promise.document(),
            "delivered": self.delivered,
            "beside": self.beside,
            "labels_sha256": self.labels_sha256,
            "people_sha256": self.people_sha256,
            "seed": self.seed,
            "drawn_from": self.drawn_from,
            "classes": [
                asdict(entry) | {"precision": list(entry.precision), "recall": list(entry.recall)}
                for entry in self.classes
            ],
            "checks": [_check_document(check) for check in self.checks],
            "apart": [asdict(entry) for entry in self.apart],
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        """The document, which `from_json` reads."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One page for people: self-contained, without scripts."""
        title = escape(f"Certificate of {self.project}" if self.project else "Certificate")
        classes = checks = ""
        if self.classes:
            columns = ["Class", "Labels", "Checks", "Precision", "Recall"]
            bounds = [
                (False, (b.name, f"{b.size:,}", f"{b.checks:,}", *(_interval(b, i) for i in range(2))))
                for b in self.classes
            ]
            classes = (
                '<h2>Each class</h2>\n<p class="soft">All of these intervals hold together, at the '
                f"confidence of this attempt, beside the promise above.</p>\n{_grid(columns, bounds)}"
            )
        if self.checks:
            people = ["Person"] * any(check.person for check in self.checks)
            rows = [
                (
                    check.wrong,
                    [
                        f"{check.draw:,}",
                        check.item,
                        check.label,
                        check.counted or ("nobody has decided" if check.disputed else "nobody could tell"),
                        *(check.person for _ in people),
                    ],
                )
                for check in self.checks
            ]
            checks = _grid(["Draw", "Item", "Label", "Answer", *people], rows)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<h1>{title}</h1>\n"
            f'<p class="says{"" if self.holds else " not"}">{escape(self.sentence)}</p>\n'
            f"<h2>What it rests on</h2>\n{_table(facts_of(self))}{classes}"
            f"<h2>Method</h2>\n<p>{escape(self.method)}</p>\n"
            "<h2>Check it again</h2>\n"
            "<p>With the JSON of this certificate and the labels it came with:</p>\n"
            "<p><code>workbench verify certificate.json labels.csv</code></p>\n"
            '<p class="soft">It recomputes the order of the draws, the evidence and the checksum from these '
            "two files alone. Whether people answered truly it cannot know.</p>\n"
            f"<h2>Checks</h2>\n{checks or _NONE}</main>\n</body>\n</html>\n"
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

        parsed = text if isinstance(text, Mapping) else parse_json(text, what, "a certificate", finite=True)
        advice = "Take the file as it was written."
        d = checked(CertificateDocument, parsed, what, advice, "is no certificate")
        plain = d.model_dump(exclude={"kind", "promise", "classes", "checks", "apart"})
        certificate = cls(
            # what is empty is not made anew: `verify` has to find it
            **plain | {name: plain[name] or "(none)" for name in ("sentence", "method", "id")},
            promise=Promise.from_document(d.promise.model_dump()),
            class_sizes=tuple((entry.name, entry.size) for entry in d.classes),
            checks=tuple(
                Check(
                    **entry.model_dump(exclude={"wrong", "answers"}),
                    answers=tuple((pair[0], pair[1]) for pair in entry.answers),
                )
                for entry in d.checks
            ),
            apart=tuple(WithdrawnLabel(entry.item, entry.label, entry.rank) for entry in d.apart),
        )
        for check, entry in zip(certificate.checks, d.checks, strict=True):
            if check.wrong != entry.wrong:
                raise InputError(
                    f"{what} is no certificate: check {check.draw} has wrong as {cut(entry.wrong)}, against "
                    f"its own label and answers. {advice}"
                )
        if certificate.document()["classes"] != [entry.model_dump() for entry in d.classes]:
            raise InputError(f"{what} is no certificate: bounds of classes are not what checks say. {advice}")
        return certificate


def certificate_of(
    promise: Promise,
    frozen: Mapping[str, str],
    ranks: Mapping[str, int],
    checks: Sequence[Check],
    *,
    project: str = "",
    labelled: Mapping[str, str] | None = None,
    apart: Iterable[str] = (),
    made: str = "",
    versions: Mapping[str, str] | None = None,
    drawn_from: str = "",
) -> Certificate:
    """The certificate of frozen labels, as their checks have it now.

    Args:
        promise: what was fixed before the first check.
        frozen: id -> label, all N that were frozen.
        ranks: id -> rank by confidence, 0 the surest; what is missing from a single set has rank 0.
        checks: answered draws, without a gap, in their order.
        project: its name.
        labelled: id -> label of all in the finished set that are not the machine's.
        apart: ids of frozen labels that were not checked and are no machine labels of the finished set.
        made: when.
        versions: of the programs.
        drawn_from: checksum that the order was made from, where classes were renamed since.

    Raises:
        InputError: the checks are not the draws of these labels, or are of another number of them.
    """
    if promise.size != len(frozen):
        raise InputError(f"The promise is of {promise.size:,} labels, and {len(frozen):,} are there.")
    order, checksum = listed_order(frozen), checksum_of(frozen)
    seed = seed_of(drawn_from or checksum)
    places = Draws(len(order), seed, promise.attempt).first(len(checks)).tolist()
    for number, (check, place) in enumerate(zip(checks, places, strict=False), 1):
        if check.draw != number or check.item != order[place] or check.label != frozen[check.item]:
            raise InputError(
                f"Check {number} is not the draw of these labels: {cut(order[place])} is, as "
                f"{cut(frozen[order[place]])}."
            )
    evidence = tally(promise, [check.wrong for check in checks], [check.rank for check in checks])
    delivered = evidence.delivered()
    away = set(apart) | ({item for item in order if ranks.get(item, 0) >= delivered} if delivered else set())
    away -= {check.item for check in checks}
    inside = {item for item in order if ranks.get(item, 0) < delivered}
    return Certificate(
        project=project,
        promise=promise,
        delivered=delivered,
        beside=len(set(labelled or ()) - frozen.keys()),
        labels_sha256=checksum,
        people_sha256="" if labelled is None else checksum_of(labelled),
        seed=seed,
        drawn_from=drawn_from or checksum,
        checks=tuple(checks),
        apart=tuple(WithdrawnLabel(item, frozen[item], ranks.get(item, 0)) for item in sorted(away)),
        class_sizes=class_sizes(frozen, inside, checks) if promise.per_class else (),
        made=made,
        versions=dict(versions or {}),
    )


def class_sizes(
    frozen: Mapping[str, str], inside: Collection[str], checks: Iterable[Check]
) -> tuple[tuple[str, int], ...]:
    """(class, its labels) of a set, with classes that only answers name at the end.

    Args:
        frozen: id -> label.
        inside: ids of the set.
        checks: whose answers may name other classes.
    """
    counts = Counter(frozen[item] for item in inside)
    class_names = set().union(*(check.named for check in checks if check.item in inside))
    return (*sorted(counts.items()), *((name, 0) for name in sorted(class_names - counts.keys())))


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
    checksum, text = hashlib.sha256(), json.encoder.encode_basestring_ascii  # a tenth of the time of dumps
    for item in listed_order(labels):
        checksum.update(f"[{text(item)},{text(labels[item])}]\n".encode("ascii"))
    return checksum.hexdigest()


def id_of(certificate: Certificate) -> str:
    """Name of this content: 16 hexadecimal digits of its SHA-256."""
    document = {key: value for key, value in certificate.document().items() if key != "id"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def _check_document(check: Check) -> dict[str, Any]:
    return {**asdict(check), "wrong": check.wrong, "answers": [list(pair) for pair in check.answers]}


def _interval(bounds: ClassBounds, which: int) -> str:
    low, high = (bounds.precision, bounds.recall)[which]
    return "too few checks" if bounds.too_few[which] else f"{100 * low:.3g} % to {100 * high:.3g} %"
