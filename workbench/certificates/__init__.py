"""Certifying a finished set: how many labels are wrong at most, by random checks, whenever one looks.

Pure: answers of checks and numbers in, evidence and documents out; no session, no store.
Equations and sources: docs/math.md, 14.
"""

from workbench.certificates.certificate import (
    Certificate,
    Check,
    SecondLooks,
    certificate_of,
    checksum_of,
    listed_order,
)
from workbench.certificates.planning import Plan, plan
from workbench.certificates.promise import (
    MODEL,
    Draws,
    Promise,
    Tally,
    check_spent,
    confidence_at,
    has_second_look,
    least_checks,
    seed_of,
    tally,
)
from workbench.certificates.verifying import Labelled, verify
from workbench.certificates.wealth import (
    Bound,
    first_reached,
    log_wealth,
    looks_broken,
    range_to_go,
    threshold,
    upper_bound,
)

__all__ = [
    "MODEL",
    "Bound",
    "Certificate",
    "Check",
    "Draws",
    "Labelled",
    "Plan",
    "Promise",
    "SecondLooks",
    "Tally",
    "certificate_of",
    "check_spent",
    "checksum_of",
    "confidence_at",
    "first_reached",
    "has_second_look",
    "least_checks",
    "listed_order",
    "log_wealth",
    "looks_broken",
    "plan",
    "range_to_go",
    "seed_of",
    "tally",
    "threshold",
    "upper_bound",
    "verify",
]
