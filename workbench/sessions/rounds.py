"""One round of the loop and what was known when it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.sessions.notebooks import round_html, round_words

METRICS = ("error", "nll", "brier", "ece", "balanced_error", "macro_f1")
SIGNS = {
    "left_out_error": "error on each label, left out in turn",
    "uncertainty": "mean uncertainty of the pool",
    "changed": "predictions changed by the last fit",
}
"""What tells how a fit goes where nothing is measured yet, and what each is called."""

_ITEMS = ("queried", "labels", "uniform", "initial", "initial_labels")
_RARE = ("neighbours", "program")
_DEFAULTS: dict[str, Any] = {"uniform": [], "signs": {}, "neighbours": "none", "program": ""}
"""Fields that a document leaves out where they are these."""

# Shared by all rounds: a project has thousands, and each has several that are empty.
_NO_ITEMS = np.empty(0, dtype=np.int64)
_NO_NUMBERS = np.empty(0)
_NO_ITEMS.flags.writeable = _NO_NUMBERS.flags.writeable = False


@dataclass(frozen=True, eq=False, slots=True)
class Round:
    """Fit, score, ask, tell: one turn of the loop.

    Attributes:
        number: 0 is the fit on the initial labels.
        n_labelled: size of the training set of this round's fit.
        n_test: how many items the measures below were taken on; 0 means they are NaN.
        error: share of wrong predictions on the test items.
        nll: mean negative log-likelihood there, nats.
        brier: multi-class Brier score there, 0 to 2.
        ece: expected calibration error there, 15 bins.
        balanced_error: mean over classes of their error.
        macro_f1: mean over classes of F1.
        queried: [k] items asked about after the fit; in a person's project, the items whose labels
            this fit saw first. Empty in the last round of a run.
        labels: [k] codes of their answers.
        utilities: [k] the policy's utilities when they were chosen, NaN where it was not asked.
        uniform: [j] those of `queried` that were drawn uniformly, whatever the policy; mostly none.
        initial: [n] the items labelled before round 0; empty in other rounds.
        initial_labels: [n] their codes.
        seconds: wall time of "fit", "score" and "query".
        signs: some of `SIGNS`, in a person's project; shares, none of them an estimate of the test error:
            the labels were chosen for being hard.
        neighbours: how much the model leans on its items' neighbours, of `pools.neighbours.graph.STRENGTHS`.
        state: the posterior as plain arrays, or None where it was not kept.
        made_with: classifier and policy of a fit in a person's project, which may change; of a run, whose
            spec says it, two empty texts.
        program: version of this program that made a round of a run.
    """

    number: int
    n_labelled: int
    n_test: int = 0
    error: float = float("nan")
    nll: float = float("nan")
    brier: float = float("nan")
    ece: float = float("nan")
    balanced_error: float = float("nan")
    macro_f1: float = float("nan")
    queried: Ints = field(default_factory=lambda: _NO_ITEMS)
    labels: Ints = field(default_factory=lambda: _NO_ITEMS)
    utilities: Floats = field(default_factory=lambda: _NO_NUMBERS)
    uniform: Ints = field(default_factory=lambda: _NO_ITEMS)
    initial: Ints = field(default_factory=lambda: _NO_ITEMS)
    initial_labels: Ints = field(default_factory=lambda: _NO_ITEMS)
    seconds: Mapping[str, float] = field(default_factory=dict)
    signs: Mapping[str, float] = field(default_factory=dict)
    neighbours: str = "none"
    state: Mapping[str, Array] | None = None
    made_with: tuple[str, str] = ("", "")
    program: str = ""

    def __repr__(self) -> str:
        return f"<{round_words(self)}>"

    def _repr_html_(self) -> str:
        return round_html(self)

    def to_json(self) -> dict[str, Any]:
        """Everything but `state`; floats survive exactly, NaN is null."""
        document = {
            **{name: getattr(self, name) for name in ("number", "n_labelled", "n_test", *_RARE)},
            **{name: _plain(getattr(self, name)) for name in METRICS},
            **{name: getattr(self, name).tolist() for name in _ITEMS},
            "utilities": [_plain(u) for u in self.utilities.tolist()],
            "seconds": dict(self.seconds),
            "signs": dict(self.signs),
        }
        return {k: value for k, value in document.items() if k not in _DEFAULTS or value != _DEFAULTS[k]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], state: Mapping[str, Array] | None = None) -> Round:
        """The round that `to_json` wrote.

        Raises:
            InputError: a document of another shape.
        """
        try:
            fields = {**_DEFAULTS, "classifier": "", "policy": "", **document}
            plain: dict[str, Any] = {name: _number(fields[name]) for name in METRICS}
            plain |= {name: _items(fields[name]) for name in _ITEMS}
            plain |= {name: intern(str(fields[name])) for name in _RARE}
            return cls(
                number=int(fields["number"]),
                n_labelled=int(fields["n_labelled"]),
                n_test=int(fields["n_test"]),
                **plain,
                utilities=np.asarray([_number(u) for u in fields["utilities"]], dtype=np.float64),
                seconds={intern(k): float(v) for k, v in fields["seconds"].items()},
                signs={intern(k): float(v) for k, v in fields["signs"].items()},
                state=state,
                made_with=(intern(str(fields["classifier"])), intern(str(fields["policy"]))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is not a saved round: {error!r}.") from error


def labelled_at(rounds: Sequence[Round], number: int) -> tuple[Ints, Ints]:
    """The training set of a round of a run.

    Args:
        rounds: of the run, in order, from round 0 to at least `number`.
        number: of the round.

    Returns:
        items [n] in the order they were labelled, and their codes [n].
    """
    before = [r for r in rounds if r.number < number]
    first = [r for r in rounds if r.number == 0]
    items = [r.initial for r in first] + [r.queried for r in before]
    codes = [r.initial_labels for r in first] + [r.labels for r in before]
    if not items:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate(items), np.concatenate(codes)


def _items(values: Any) -> Ints:
    return np.asarray(values, dtype=np.int64) if len(values) else _NO_ITEMS


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
