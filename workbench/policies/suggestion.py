"""Suggested policy: the one of best mean rank in `workbench reproduce lmgp-active`."""

import json
from functools import cache
from typing import NamedTuple

from workbench.pools.datasets.catalogue import bundled_file

FILE = "policy_ranks.json"
_SHOWN = 0.05


class Suggestion(NamedTuple):
    """A policy and what speaks for it.

    Attributes:
        policy: registry name.
        words: for people.
        n_sets: data sets it was measured on.
        mean_ranks: policy -> mean rank of the area under the error curve, 1 is best.
        full: whether the whole experiment was run, or a capped one.
        of_default: whether the model that asked was the default one, which chooses its geometry.
    """

    policy: str
    words: str
    n_sets: int
    mean_ranks: dict[str, float]
    full: bool
    of_default: bool


@cache
def suggested() -> Suggestion:
    """The policy with the best mean rank, from the measured file.

    Raises:
        InputError: the installation lacks the file.
    """
    document = json.loads(bundled_file(FILE).read_text(encoding="utf-8"))
    ranks = {str(k): float(v) for k, v in document["mean_ranks"].items()}
    policy = min(ranks, key=lambda name: ranks[name])
    n_sets = int(document["n_sets"])
    words = f"best mean rank on {n_sets} sets"
    p = document["p_against_random"].get(policy)
    if p is not None and float(p) < _SHOWN:
        words = f"usually the fewest labels: {words}, fewer than random questions (p = {float(p):.2g})"
    elif policy != "random":
        words += ", not shown to need fewer labels than random questions"
    caps = [str(cap) for cap in document["caps"]]
    words += f"; the run was capped: {', '.join(caps)}" if caps else ""
    return Suggestion(policy, words, n_sets, ranks, bool(document["full"]), document["model"] == "chosen")
