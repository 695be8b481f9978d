"""A certificate in words: what is promised, how it was found out, and what it rests on."""

from __future__ import annotations

from typing import Any

from workbench.certificates.drawing import SECOND_LOOKS
from workbench.certificates.promise import MODEL, share
from workbench.certificates.wealth import BETS, WEIGHTS

Certificate = Any
"""`workbench.certificates.Certificate`, which makes its words when it is made."""


def sentence_of(certificate: Certificate) -> str:
    """The promise, in words."""
    c, within = certificate, certificate.within
    wrong = sum(check.wrong for check in within)
    checks = f"{_count(len(within), 'random check')}, {wrong:,} called wrong."
    if not c.holds:
        estimate = f"the estimate is {share(wrong / len(within))}, " if within else ""
        bound = c.promise.words(f"{c.aim:,} labels", c.bound)
        return f"Not certified at {share(c.promise.error)}: {estimate}{bound}; {checks}"
    which = "labels" if c.delivered == c.promise.size else f"labels, the surest of {c.promise.size:,}"
    whose = "machine " if c.promise.of == MODEL else ""
    return f"{c.delivered:,} {whose}{which}; {c.promise.words()}; {checks}"


def method_of(certificate: Certificate) -> str:
    """Method of the certificate, in words."""
    c, p = certificate, certificate.promise
    order = ", ".join(f"{size:,}" for size in p.sizes)
    nests = f" Sets of the surest {order} labels were tested in this order, up to the first that failed." * (
        len(p.sizes) > 1
    )
    bets = ", ".join(f"{bet:g} ({weight:g})" for bet, weight in zip(BETS, WEIGHTS, strict=True))
    return (
        f"{p.size:,} labels were frozen. Items were drawn uniformly without replacement, in an order fixed "
        "by the labels' checksum before the first check, and a person answered without seeing the label. "
        "Tested by betting (Waudby-Smith and Ramdas, 2024), which holds whenever one looks and stops, with "
        f"shares (weights) {bets}.{nests} This is attempt {p.attempt}, which spends {p.delta:.6g} of "
        f"{1 - p.confidence:.6g}. Wrong is what a checker called wrong, and what they could not tell. "
        f"One in {SECOND_LOOKS} of the checks that were answered right is asked again of another person, "
        f"where there is one: {second_looks(c)}."
    )


def second_looks(certificate: Certificate) -> str:
    """Words on the second looks, "3 of 9 were made, 1 disagreed and counts as wrong"."""
    looks = certificate.second_looks
    if not looks.disagreed:
        return f"{looks.made:,} of {looks.drawn:,} were made, none disagreed"
    counts = f", {looks.open:,} of these count as wrong until somebody decides" * bool(looks.open)
    return f"{looks.made:,} of {looks.drawn:,} were made, {looks.disagreed:,} disagreed{counts}"


def facts_of(certificate: Certificate) -> list[tuple[str, str]]:
    """Assumptions of the certificate, by name; "" where there is nothing to say."""
    c, p, within = certificate, certificate.promise, certificate.within
    n_outside = len(c.checks) - len(within)
    return [
        ("Certificate", c.id),
        ("Made", c.made),
        ("Labels of", "the model" if p.of == MODEL else p.of),
        ("Frozen labels", f"{p.size:,}"),
        ("Certified labels", f"{c.delivered:,}"),
        ("Labels beside, not checked", f"{c.beside:,}" if c.beside else ""),
        ("Allowed error", share(p.error)),
        ("Confidence", share(p.confidence)),
        ("Attempt", f"{p.attempt}, which spends {p.delta:.6g} of {1 - p.confidence:.6g}"),
        ("Checks", f"{len(within):,}, of which {sum(check.wrong for check in within):,} called wrong"),
        ("Checks beside the set", f"{n_outside:,}" if n_outside else ""),
        ("Second looks", second_looks(c)),
        ("Seed of the draws", f"{c.seed}"),
        ("Made of the checksum", "" if c.drawn_from == c.labels_sha256 else c.drawn_from),
        ("SHA-256 of the frozen labels", c.labels_sha256),
        ("SHA-256 of the other labels", c.people_sha256),
        *sorted(c.versions.items()),
    ]


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
