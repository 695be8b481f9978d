"""Which policy to suggest: the one of best mean rank in `workbench reproduce lmgp-active`."""

from __future__ import annotations

import json
from functools import cache
from typing import NamedTuple

from workbench.pools.catalogue import bundled_file

FILE = "policy_ranks.json"


class Suggestion(NamedTuple):
    """A policy and what speaks for it.

    Attributes:
        policy: registry name.
        words: for people.
        n_sets: data sets it was measured on.
        mean_ranks: policy -> mean rank of the area under the error curve, 1 is best.
        full: whether the whole experiment was run, or a capped one.
    """

    policy: str
    words: str
    n_sets: int
    mean_ranks: dict[str, float]
    full: bool


@cache
def suggested() -> Suggestion:
    """The policy with the best mean rank at 64 inducing points, from the measured file.

    Raises:
        InputError: the installation lacks the file.
    """
    document = json.loads(bundled_file(FILE).read_text(encoding="utf-8"))
    ranks = {str(k): float(v) for k, v in document["mean_ranks"].items()}
    policy = min(ranks, key=lambda name: ranks[name])
    n_sets = int(document["n_sets"])
    words = f"usually the fewest labels: best mean rank on {n_sets} sets"
    return Suggestion(policy, words, n_sets, ranks, bool(document["full"]))
