"""A certificate in words: what is promised, how it was found out, and what it rests on."""

from __future__ import annotations

from typing import Any

from workbench.certificates.wealth import BETS, WEIGHTS

Certificate = Any
"""`workbench.certificates.Certificate`, which makes its words when it is made."""


def sentence_of(certificate: Certificate) -> str:
    """What is promised, in words."""
    c = certificate
    within = c.within
    wrong = sum(check.wrong for check in within)
    checks = f"{_count(len(within), 'random check')}, {_count(wrong, 'error')}"
    if not c.holds:
        estimate = f"the estimate is {share(wrong / len(within))}, " if within else ""
        others = [f"{_set(c, one.delivered)} at {share(one.error)}" for one in c.also if one.delivered]
        held = f" What holds: {'; '.join(others)}." if others else ""
        return (
            f"Not certified at {share(c.error)}: {estimate}with {share(c.confidence)} confidence at most "
            f"{share(c.bound)} of {c.sizes[0]:,} labels are wrong; {checks}.{held}"
        )
    which = "labels" if c.delivered == c.size else f"labels, the surest of {c.size:,}"
    whose = "machine " if c.of == "model" else ""
    said = (
        f"{c.delivered:,} {whose}{which}; with {share(c.confidence)} confidence at most {share(c.error)} "
        "of them are wrong"
    )
    others = [f"{_set(c, one.delivered)} at {share(one.error)}" for one in c.also if one.delivered]
    return f"{said}; {checks}." + (f" By the same checks: {'; '.join(others)}." if others else "")


def of_all(certificate: Certificate) -> str:
    """What is promised of the whole set, people's labels included; "" where nothing is."""
    c = certificate
    if not c.holds:
        return ""
    rest = "" if c.delivered == c.size else ", once people have labelled what is not certified"
    return f"at most {share(c.error_of_all)} of {c.total:,} labels are wrong{rest}"


def method_of(certificate: Certificate) -> str:
    """How it was found out, in words."""
    c = certificate
    order = ", ".join(f"{size:,}" for size in c.sizes)
    nests = f" Sets of the surest {order} labels were tested in this order, up to the first that failed." * (
        len(c.sizes) > 1
    )
    others = ", ".join(share(one.error) for one in c.also)
    also = (
        f" The same checks tested {others} as well; beside the first set, all further sets and errors share "
        "what this attempt spends." * bool(c.also)
    )
    where = {
        "": "Items were drawn uniformly without replacement",
        "class": "Items were drawn without replacement, uniformly among the labels of each class, half of "
        "the draws in equal parts",
        "confidence": "Items were drawn without replacement, uniformly within bands of confidence, half of "
        "the draws in equal parts",
    }.get(c.strata.by, "")
    product = " The product of the strata's wealths counts at its least over all splits." * bool(c.strata.by)
    bets = ", ".join(f"{bet:g} ({weight:g})" for bet, weight in zip(BETS, WEIGHTS, strict=True))
    return (
        f"{c.size:,} labels were frozen. {where}, in an order fixed "
        "by the labels' checksum before the first check, and a person answered without seeing the label. "
        "Tested by "
        "betting (Waudby-Smith and Ramdas, 2024), which holds whenever one looks and stops, with shares "
        f"(weights) {bets}.{product}{nests}{also} This is attempt {c.attempt}, which spends {c.delta:.6g} of "
        f"{1 - c.confidence:.6g}. "
        "What a person says counts as right; what nobody could tell counts as wrong."
    )


def facts_of(certificate: Certificate) -> list[tuple[str, str]]:
    """What it rests on, by name; "" where there is nothing to say."""
    c = certificate
    within = c.within
    wrong = sum(check.wrong for check in within)
    beside = len(c.checks) - len(within)
    disputed = f"People disagreed about {c.disputed:,} checks; the first answer counts."
    return [
        ("Certificate", c.id),
        ("Made", c.made),
        ("Labels of", "the model" if c.of == "model" else c.of),
        ("Frozen labels", f"{c.size:,}"),
        ("Certified labels", f"{c.delivered:,}"),
        ("Labelled by people before", f"{c.people:,}"),
        ("Allowed error", share(c.error)),
        ("Confidence", share(c.confidence)),
        ("Of all labels", of_all(c)),
        *(
            (f"At {share(one.error)}", _set(c, one.delivered) if one.delivered else "nothing is certified")
            for one in c.also
        ),
        ("Attempt", f"{c.attempt}, which spends {c.delta:.6g} of {1 - c.confidence:.6g}"),
        ("Checks", f"{len(within):,}, of which {wrong:,} wrong"),
        ("Checks beside the set", f"{beside:,}" if beside else ""),
        (
            "Checks are drawn within",
            {"class": "classes", "confidence": "bands of confidence"}.get(c.strata.by, ""),
        ),
        ("Disagreements", disputed if c.disputed else ""),
        ("Seed of the draws", f"{c.seed}"),
        ("Made of the checksum", "" if c.drawn_from == c.labels_sha256 else c.drawn_from),
        ("SHA-256 of the frozen labels", c.labels_sha256),
        ("SHA-256 of people's labels", c.people_sha256),
        *sorted(c.versions.items()),
    ]


def share(value: float) -> str:
    """A share as per cent."""
    return f"{100 * value:.3g} %"


def _set(c: Certificate, size: int) -> str:
    if size == c.size:
        return f"all {size:,}"
    return f"the surest {size:,} ({100 * size / c.size:.0f} %)"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
