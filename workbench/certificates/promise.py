"""Promise about frozen labels, made before the first check: one object that everybody reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from workbench.certificates.drawing import confidence_at, delta_of
from workbench.certificates.validation import error_of, size_of, too_many
from workbench.errors import InputError

MODEL = "model"
"""Source of a model's own labels; others are somebody's column, file or other source."""


@dataclass(frozen=True)
class Promise:
    """All that is fixed before the first check, but for the labels and their order.

    Pages, the desk, the command line, a certificate and `verify` read this.

    Attributes:
        size: N, frozen labels.
        error: allowed share of wrong labels, in the words of `words`.
        confidence: of all attempts together.
        sizes: [K] sets to be certified, in the order of the test: so many of the surest.
        attempt: from 1 on; what each spends is `delta`.
        of: "model", or the column or file that the labels come from.
        per_class: whether precision and recall of each class are stated, too.

    Raises:
        InputError: values outside their range, or sets larger than what is frozen.
    """

    size: int
    error: float
    confidence: float
    sizes: tuple[int, ...]
    attempt: int = 1
    of: str = MODEL
    per_class: bool = False

    def __post_init__(self) -> None:
        size_of(self.size), error_of(self.error), delta_of(self.confidence, self.attempt)
        if not self.sizes or any(not 1 <= size_of(size) <= self.size for size in self.sizes):
            raise InputError(f"A set to certify has from 1 to {self.size:,} labels.")

    @property
    def delta(self) -> float:
        """The part of 1 - confidence that this attempt spends."""
        return delta_of(self.confidence, self.attempt)

    @property
    def confidence_here(self) -> float:
        """Confidence that this attempt has to reach, so that all of them together keep `confidence`."""
        return confidence_at(self.confidence, self.attempt)

    def forbidden(self, size: int) -> int:
        """The smallest number of wrong labels that breaks the promise for a set of `size`."""
        return too_many(size, self.error)

    def words(self, of: str = "them", bound: float | None = None) -> str:
        """The promise in words, "with 95 % confidence a checker calls at most 5 % of them wrong".

        Args:
            of: of which labels.
            bound: what the checks say now, in the place of the allowed error.
        """
        limit = self.error if bound is None else bound
        return (
            f"with {share(self.confidence)} confidence a checker calls at most {share(limit)} of {of} wrong"
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it (`workbench.documents.certificates.PromiseDocument`)."""
        return {**asdict(self), "sizes": list(self.sizes)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Promise:
        """A promise out of its checked document."""
        return cls(**{**document, "sizes": tuple(document["sizes"])})


def share(value: float) -> str:
    """A share as per cent."""
    return f"{100 * value:.3g} %"
