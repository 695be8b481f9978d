"""Checking a certificate again, from it and the labels alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.certificates.certificate import (
    Certificate,
    checksum_of,
    evidence_of,
    id_of,
    listed_order,
    method_of,
    sentence_of,
)
from workbench.certificates.drawing import Draws, confidence_at
from workbench.certificates.nested import nested
from workbench.errors import InputError
from workbench.reading import cut

MACHINE = "machine"
"""Source of a label that no person gave."""
_MOST = 20


@dataclass(frozen=True)
class Labelled:
    """A row of a finished set: an item, its label, and whether a machine gave it ("machine") or a person.

    Where the file has no column of sources, every row is the frozen label or what a check put in its place
    (source None).
    """

    item: str
    label: str
    source: str | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate holds for labels.

    Attributes:
        holds: nothing is broken, and something was certified.
        broken: where it breaks, a sentence each.
        remarks: what is not covered, or said beside.
        sentence: what is promised.
    """

    holds: bool
    broken: tuple[str, ...]
    remarks: tuple[str, ...]
    sentence: str

    def text(self) -> str:
        """The verdict in words, a line each."""
        head = (
            f"Yes: {self.sentence}" if self.holds else "No: the certificate does not hold for these labels."
        )
        return "\n".join([head, *(f"- {line}" for line in (*self.broken, *self.remarks))])


def verify(certificate: Certificate, labels: Iterable[Labelled]) -> Verdict:
    """Recompute everything that a certificate says.

    Args:
        certificate: as read; it need not be whole.
        labels: the finished set, in any order.

    Returns:
        The verdict. It cannot know whether people's answers are true.
    """
    c = certificate
    rows = list(labels)
    broken = [*_of_itself(c), *_of_draws_and_labels(c, rows)]
    remarks = []
    if not c.people_sha256:
        remarks.append("Labels that people gave beside the checks are not covered: the set was not finished.")
    since = sum(one.rank < c.delivered for one in c.apart)
    if since:
        remarks.append(f"Of the certified labels {since:,} were labelled by a person or removed afterwards.")
    if c.disputed:
        remarks.append(f"People disagreed about {c.disputed:,} of the checks; the first answer counts.")
    if not c.holds and not broken:
        broken.append(c.sentence)
    return Verdict(not broken, tuple(broken[:_MOST]), tuple(remarks), c.sentence)


def _of_itself(c: Certificate) -> list[str]:
    """What the certificate says against itself."""
    broken = []
    if c.id != id_of(c):
        broken.append(f"The certificate was changed: its id is {cut(c.id)}, its content has {id_of(c)}.")
    if any(size > c.size for size in c.sizes):
        return [*broken, f"A set is larger than the {c.size:,} labels that were frozen."]
    if [check.draw for check in c.checks] != list(range(1, len(c.checks) + 1)):
        broken.append("The checks are not numbered from 1 on: some were left out.")
    ranks = Counter([check.rank for check in c.checks])
    if (ranks and max(ranks) >= c.size) or (not c.whole and ranks and max(ranks.values()) > 1):
        broken.append("Ranks of checks are outside the frozen labels, or two checks have the same one.")
    try:
        wrong, places = evidence_of(c.checks)
        found = nested(wrong, places, c.sizes, c.error, confidence_at(c.confidence, c.attempt), bounds=False)
        best = found.largest()
        size = 0 if best is None else int(found.sizes[best])
        if size != c.delivered:
            broken.append(f"The checks certify {size:,} labels, the certificate says {c.delivered:,}.")
        for name, stated, made in (
            ("sentence", c.sentence, sentence_of(c)),
            ("method", c.method, method_of(c)),
        ):
            if stated != made:
                broken.append(f'The {name} is not what the checks say: "{made}"')
    except InputError as error:
        broken.append(str(error))
    return broken


def _of_draws_and_labels(c: Certificate, rows: list[Labelled]) -> list[str]:
    """Where labels, checks and draws do not meet."""
    twice = [item for item, count in Counter(row.item for row in rows).items() if count > 1]
    if twice:
        return [f"Item {cut(twice[0])} stands in the labels more than once."]
    checks = {check.item: check for check in c.checks}
    apart = {one.item: one for one in c.apart}
    if len(checks) < len(c.checks) or len(apart) < len(c.apart) or checks.keys() & apart.keys():
        return ["The certificate names an item twice."]
    broken: list[str] = []
    frozen = {item: check.label for item, check in checks.items()}
    frozen |= {item: one.label for item, one in apart.items()}
    by_people: dict[str, str] = {}
    for row in rows:
        check = checks.get(row.item)
        if row.source is None and check is not None:
            if row.label not in (check.label, check.answer):
                broken.append(_says(row, f"was checked as {cut(check.answer)}"))
        elif row.source is None or row.source == MACHINE:
            if check is not None:
                broken.append(_says(row, "was checked by a person, and counts as machine label"))
            elif row.item in apart and row.source == MACHINE:
                broken.append(_says(row, "is a machine label, which the certificate does not count as one"))
            else:
                frozen[row.item] = row.label
        else:
            by_people[row.item] = row.label
            if check is not None and check.answer and row.label != check.answer:
                broken.append(_says(row, f"was checked as {cut(check.answer)}"))
    if not any(row.source is not None for row in rows):
        frozen |= {item: one.label for item, one in apart.items() if item not in frozen}
    there = {row.item for row in rows}
    missing = [item for item in checks if item not in there]
    if missing and not c.people_sha256:
        broken.append(f"Item {cut(missing[0])} was checked and is not among the labels.")
    broken += _of_frozen(c, frozen)
    if c.people_sha256 and checksum_of(by_people) != c.people_sha256:
        broken.append("Labels that people gave are not what they were when the set was finished.")
    return broken


def _of_frozen(c: Certificate, frozen: dict[str, str]) -> list[str]:
    broken = []
    if len(frozen) != c.size:
        broken.append(f"{c.size:,} labels were frozen, and {len(frozen):,} are there.")
    elif checksum_of(frozen) != c.labels_sha256:
        broken.append("Labels were changed: the checksum of the frozen labels is another one.")
    order = listed_order(frozen)
    if len(frozen) == c.size and len(c.checks) <= c.size:
        for check, place in zip(
            c.checks, Draws(c.size, c.seed, c.attempt).first(len(c.checks)).tolist(), strict=True
        ):
            if check.item != order[place]:
                broken.append(
                    f"Check {check.draw} is {cut(check.item)}; the seed draws {cut(order[place])} there."
                )
                break
    if c.holds and not c.whole:
        away = sum(one.rank >= c.delivered for one in c.apart)
        away += sum(check.rank >= c.delivered for check in c.checks)
        if c.size - away != c.delivered:
            broken.append(f"{c.size - away:,} labels lie in the certified set, which has {c.delivered:,}.")
    return broken


def _says(row: Labelled, instead: str) -> str:
    return f"Item {cut(row.item)} is {cut(row.label)} in the labels; it {instead}."
