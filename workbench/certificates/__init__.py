"""Certifying a finished set: how many labels are wrong at most, by random checks, whenever one looks.

Pure: answers of checks and numbers in, evidence and documents out; no session, no store.
Equations and sources: docs/math.md, 14.
"""

from workbench.certificates.certificate import (
    Apart,
    Certificate,
    Check,
    certificate_of,
    checksum_of,
    listed_order,
)
from workbench.certificates.drawing import Draws, confidence_at, delta_of
from workbench.certificates.nested import Nested, nested
from workbench.certificates.planning import Option, Plan, plan
from workbench.certificates.verifying import Labelled, Verdict, verify
from workbench.certificates.wealth import Bound, first_reached, log_wealth, threshold, upper_bound

__all__ = [
    "Apart",
    "Bound",
    "Certificate",
    "Check",
    "Draws",
    "Labelled",
    "Nested",
    "Option",
    "Plan",
    "Verdict",
    "certificate_of",
    "checksum_of",
    "confidence_at",
    "delta_of",
    "first_reached",
    "listed_order",
    "log_wealth",
    "nested",
    "plan",
    "threshold",
    "upper_bound",
    "verify",
]
