"""Policy that is suggested, policy that asks now, and the questions that are left to chance.

The default policy looks close to what it knows, so it can miss a class or a part of the pool for long. Two
things keep it from that: while a declared class has no label yet it looks for it where the model knows
least, and a share of all questions is drawn uniformly, whatever the policy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.pools.datasets.catalogue import bundled_file

if TYPE_CHECKING:
    from numpy.random import Generator

    from workbench.arrays import Ints
    from workbench.policies.belief import Belief, Query

DEFAULT_POLICY = "margin"
SEEKING_POLICY = "variance"
_LONGEST_SEARCH = 100  # labels, and ten more a class: a class may be declared that the pool has not


class EffectivePolicy(NamedTuple):
    """The policy that asks, and why where it is not the chosen one.

    Attributes:
        policy: as chosen, or "variance".
        reason: for people, "" where the chosen policy asks.
    """

    policy: Any
    reason: str = ""


def effective_policy(
    policy: Any, classes: Sequence[str], codes: Ints, *, has_latent: bool
) -> EffectivePolicy:
    """The policy that asks now.

    Args:
        policy: the chosen one; only the default gives way to another.
        classes: names of the C declared classes.
        codes: [n] class codes of the labels so far, -1 where there is none.
        has_latent: whether the model has the latent functions that looking for a class needs.

    Returns:
        The policy and the reason.
    """
    if policy != DEFAULT_POLICY or not has_latent or len(codes) >= _LONGEST_SEARCH + 10 * len(classes):
        return EffectivePolicy(policy)
    label_codes = np.asarray(codes, dtype=np.int64)
    counts = np.bincount(label_codes[label_codes >= 0], minlength=len(classes))[: len(classes)]
    missing = [classes[i] for i in np.flatnonzero(counts == 0).tolist()]
    if not missing:
        return EffectivePolicy(policy)
    listing = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return EffectivePolicy(SEEKING_POLICY, f"looking for {listing}: none seen yet")


def mix_uniform(answer: Query, belief: Belief, share: float, rng: Generator) -> Query:
    """A policy's answer with a share of its items put by ones drawn uniformly.

    Args:
        answer: of the policy.
        belief: says what may be asked.
        share: of the questions, 0 for none.
        rng: of these draws alone, so that the policy's own do not depend on the share.

    Returns:
        The answer; utilities of items drawn uniformly are NaN, and `uniform` tells them.
    """
    is_uniform = rng.random(len(answer.indices)) < share
    if not is_uniform.any():
        return answer
    # of all that may be asked, the policy's favourites too: an error estimated on these is that of the open
    # pool
    uniform = rng.choice(belief.askable, int(is_uniform.sum()), replace=False)
    indices, utilities = answer.indices.copy(), answer.utilities.copy()
    rest = answer.indices[~np.isin(answer.indices, uniform)]
    indices[is_uniform], indices[~is_uniform] = uniform, rest[: int((~is_uniform).sum())]
    utilities[uniform] = np.nan
    return answer._replace(indices=indices, utilities=utilities, uniform=is_uniform)


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
