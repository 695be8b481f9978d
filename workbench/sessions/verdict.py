"""The verdict on a model: from what was measured, on how many, and what it says of itself.

Every sentence that judges a model comes from here. Below `TOLD` measured items none promises anything; from
there on none promises more than the upper end of what was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.sessions.measure import Evaluation

SURE = 0.25
"""Doubt above which an item is in doubt, and error above which no model is called sure."""
TOLD = 100
"""Measured items from which on a sentence may say that a model is good."""


@dataclass(frozen=True)
class ModelVerdict:
    """Verdict on a model.

    Attributes:
        measured: its error on items that it never learnt from.
        doubt: the share that the model itself expects to be wrong; NaN where it is not known.
    """

    measured: Evaluation
    doubt: float = math.nan

    @property
    def told(self) -> bool:
        """True where enough is measured to say that a model is good (100 items or more)."""
        return self.measured.n >= TOLD

    @property
    def boasts(self) -> bool:
        """True where the model expects less to be wrong than chance allows for what was measured."""
        return self.measured.hinted and self.doubt < self.measured.low

    @property
    def between(self) -> str:
        """The measured interval: "of 30 measured between 4 and 31 % wrong"."""
        found = self.measured
        if not found.n:
            return "nothing is measured yet"
        ends = f"{100 * found.low:.0f} and {100 * found.high:.0f} %"
        return f"of {found.n:,} measured between {ends} wrong"

    @property
    def at_most(self) -> str:
        """The upper end, which is all that is promised: "at most 8 % wrong, as 150 measured items tell"."""
        found = self.measured
        return f"at most {_upwards(found.high)} % wrong, as {found.n:,} measured items tell"

    @property
    def against_itself(self) -> str:
        """Sentence where the model expects less to be wrong than was measured; else ""."""
        if not self.boasts:
            return ""
        said = f"It expects {100 * self.doubt:.0f} % to be wrong"
        return f"{said}, but {self.between}: do not trust its doubts yet."

    def of_no_doubt(self, n: int) -> str:
        """A sentence for a model that doubts no open item.

        Args:
            n: open items.
        """
        if self.told and not self.boasts and self.measured.high <= SURE:
            return (
                f"The model is sure of all {n:,} open items: none has a doubt above 25 %, and {self.at_most}."
            )
        tells = "As far as measured" if self.told else "Too few to tell whether that is so"
        why = self.against_itself or f"{tells}: {self.between}."
        return f"The model has no doubt above 25 % about any of {n:,} open items. {why}"

    def of_no_change(self, fits: int, changed: float) -> str:
        """A few words for fits that changed hardly a prediction, so that labelling may end.

        Args:
            fits: number of fits.
            changed: the largest share of predictions that one of them changed.
        """
        said = f"the last {fits} fits changed at most {math.ceil(1_000 * changed)} of 1,000 predictions"
        if self.told:
            return f"{said}, and {self.at_most}: this may be enough"
        return f"{said}; {self.between}: too few to tell"

    def of_the_rest(self, n: int) -> str:
        """A few words on the number of wrong labels among those that the machine would give.

        Args:
            n: of the labels.
        """
        found = self.measured
        if not found.n:
            return "nobody has measured how many of them are wrong"
        low, high = math.floor(found.low * n), math.ceil(found.high * n)
        if self.told:
            return f"at most about {high:,} of them wrong, as {found.n:,} measured items tell"
        return f"between {low:,} and {high:,} of them wrong ({found.n:,} measured: too few to tell)"


def _upwards(share: float) -> str:
    """A share in per cent, rounded up, so that no sentence promises more than was measured."""
    up = math.ceil(100 * share - 1e-9) if share >= 0.1 else math.ceil(1_000 * share - 1e-9) / 10
    return f"{up:g}"
