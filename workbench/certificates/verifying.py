"""Checking a certificate again, from it and the labels alone."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.certificates.certificate import (
    Certificate,
    checksum_of,
    class_sizes,
    id_of,
    listed_order,
)
from workbench.certificates.promise import Draws, method_of, second_looks, seed_of, sentence_of, share
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
    """Verification that a certificate holds for labels.

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
    if c.drawn_from != c.labels_sha256:
        remarks.append(
            "The order of the draws is made from the labels as classes were called when they were frozen; "
            "they were renamed since, so that these labels cannot show it."
        )
    if not c.people_sha256:
        remarks.append("Labels beside the frozen ones are not covered: the set was not finished.")
    since = sum(label.rank < c.delivered for label in c.apart)
    if since:
        remarks.append(f"Of the certified labels {since:,} were labelled by a person or removed afterwards.")
    if c.second_looks.disagreed:
        remarks.append(f"Second looks: {second_looks(c)}.")
    if not c.holds and not broken:
        broken.append(c.sentence)
    return Verdict(not broken, tuple(broken[:_MOST]), tuple(remarks), c.sentence)


def _of_itself(c: Certificate) -> list[str]:
    """Contradictions inside a certificate."""
    broken = []
    if c.id != id_of(c):
        broken.append(f"The certificate was changed: its id is {cut(c.id)}, its content has {id_of(c)}.")
    if [check.draw for check in c.checks] != list(range(1, len(c.checks) + 1)):
        broken.append("The checks are not numbered from 1 on: some were left out.")
    ranks = Counter([check.rank for check in c.checks])
    if (ranks and max(ranks) >= c.promise.size) or (not c.is_single and ranks and max(ranks.values()) > 1):
        broken.append("Ranks of checks are outside the frozen labels, or two checks have the same one.")
    if not broken or c.id == id_of(c):
        try:
            broken += _of_evidence(c)
        except InputError as error:
            broken.append(str(error))
    return broken


def _of_evidence(c: Certificate) -> list[str]:
    """Comparison of the checks with the numbers of the certificate."""
    broken = []
    if c.seed != seed_of(c.drawn_from):
        broken.append("The order of the draws was not made from the labels.")
    for check in c.checks:
        if check.answers and (check.person, check.answer) != check.answers[0]:
            broken.append(f"Check {check.draw} has another first answer than its answers say.")
        if check.decided and not check.disputed:
            broken.append(f"Check {check.draw} was decided, and nobody disagreed.")
    size = c.tally().delivered()
    if size != c.delivered:
        broken.append(
            f"The checks certify {size:,} labels at {share(c.promise.error)}, the certificate says "
            f"{c.delivered:,}."
        )
    for name, stated, expected in (
        ("sentence", c.sentence, sentence_of(c)),
        ("method", c.method, method_of(c)),
    ):
        if stated != expected:
            broken.append(f'The {name} is not what the checks say: "{expected}"')
    return broken


def _of_draws_and_labels(c: Certificate, rows: list[Labelled]) -> list[str]:
    """Labels, checks and draws that do not meet."""
    twice = [item for item, count in Counter(row.item for row in rows).items() if count > 1]
    if twice:
        return [f"Item {cut(twice[0])} stands in the labels more than once."]
    checks = {check.item: check for check in c.checks}
    withdrawn = {label.item: label for label in c.apart}
    if len(checks) < len(c.checks) or len(withdrawn) < len(c.apart) or checks.keys() & withdrawn.keys():
        return ["The certificate names an item twice."]
    broken: list[str] = []
    frozen = {item: check.label for item, check in checks.items()}
    frozen |= {item: label.label for item, label in withdrawn.items()}
    other_labels: dict[str, str] = {}
    for row in rows:
        check = checks.get(row.item)
        if row.source is None and check is not None:
            if row.label not in {check.label, *check.named}:
                broken.append(_says(row, f"was checked as {cut(check.answer)}"))
        elif row.source is None or row.source == MACHINE:
            if check is not None:
                broken.append(_says(row, "was checked by a person, and counts as machine label"))
            elif row.item in withdrawn and row.source == MACHINE:
                broken.append(_says(row, "is a machine label, which the certificate does not count as one"))
            else:
                frozen[row.item] = row.label
        else:
            other_labels[row.item] = row.label
            if check is not None and check.named and row.label not in check.named:
                broken.append(_says(row, f"was checked as {cut(check.answer)}"))
    if not any(row.source is not None for row in rows):
        frozen |= {item: label.label for item, label in withdrawn.items() if item not in frozen}
    items = {row.item for row in rows}
    missing = [item for item in checks if item not in items]
    if missing and not c.people_sha256:
        broken.append(f"Item {cut(missing[0])} was checked and is not among the labels.")
    broken += _of_frozen(c, frozen)
    if c.people_sha256 and checksum_of(other_labels) != c.people_sha256:
        broken.append("Labels that are not the machine's are not what they were when the set was finished.")
    n_others = len(other_labels.keys() - frozen.keys()) if c.people_sha256 else 0
    if c.beside != n_others:
        broken.append(f"{n_others:,} labels stand beside the frozen ones, the certificate says {c.beside:,}.")
    return broken


def _of_frozen(c: Certificate, frozen: dict[str, str]) -> list[str]:
    if len(frozen) != c.promise.size:
        return [f"{c.promise.size:,} labels were frozen, and {len(frozen):,} are there."]
    broken = []
    if checksum_of(frozen) != c.labels_sha256:
        broken.append("Labels were changed: the checksum of the frozen labels is another one.")
    ranks = {check.item: check.rank for check in c.checks} | {label.item: label.rank for label in c.apart}
    # what is neither checked nor apart is a machine label of the certified set
    inside = {item for item in frozen if ranks.get(item, 0) < c.delivered}
    if c.class_sizes and c.class_sizes != class_sizes(frozen, inside, c.checks):
        broken.append("The sizes of the classes are not those of the labels.")
    if not broken and len(c.checks) <= c.promise.size:
        order = listed_order(frozen)
        places = Draws(c.promise.size, c.seed, c.promise.attempt).first(len(c.checks))
        for check, place in zip(c.checks, places.tolist(), strict=True):
            if check.item != order[place]:
                broken.append(
                    f"Check {check.draw} is {cut(check.item)}; the seed draws {cut(order[place])} there."
                )
                break
    if c.holds and not c.is_single and len(inside) != c.delivered:
        broken.append(f"{len(inside):,} labels lie in the certified set, which has {c.delivered:,}.")
    return broken


def _says(row: Labelled, instead: str) -> str:
    return f"Item {cut(row.item)} is {cut(row.label)} in the labels; it {instead}."
