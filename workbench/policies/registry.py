"""Names of the policies and of the batch selectors; listing them imports nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

from workbench.errors import InputError
from workbench.registry import Entry, Registry, load_target, signature_of

Need = Literal["latent", "probabilities", "features"]


@dataclass(frozen=True)
class PolicyEntry(Entry):
    """A registered policy or batch selector.

    Attributes:
        needs: what the belief must hold. A policy that can do with either of two says neither and
            checks by itself.
        rowwise: an item's utility depends on that item alone, so the policy can stream over chunks.
        kind: "policy" (belief -> utilities) or "selector" (belief, k -> items).
        warning: why one should think twice, or "".
        top: "module:function" (belief, rows, k, rng) -> (indices, utilities), for policies whose
            best k can be found without computing the rest; or "".
        batch: the selector that "auto" takes for more than one item.
        few: a selector that looks at the max(50, 5k) items of largest utility alone.
        uses_utilities: a selector that spreads a policy's favourites; else it has its own criterion.
        shared_draws: its draws must be the same for every chunk of a pool.
        source: the paper.
    """

    needs: frozenset[Need] = frozenset()
    rowwise: bool = True
    kind: Literal["policy", "selector"] = "policy"
    warning: str = ""
    top: str = ""
    batch: str = "k-means"
    shared_draws: bool = False
    few: bool = False
    uses_utilities: bool = True
    source: str = ""


_U = "workbench.policies.rowwise:"
_B = "workbench.policies.batches:"

POLICIES: Registry[PolicyEntry] = Registry(
    "policy",
    [
        PolicyEntry(
            "variation-ratio",
            _U + "variation_ratio",
            "Variation ratio",
            "How often a draw of the model's latent functions names another class than the usual one; exact.",
            needs=frozenset({"latent"}),
            top="workbench.policies.choose:top_by_variation_ratio",
            source="Freeman 1965; Wenzel et al. 2017",
        ),
        PolicyEntry(
            "variation-ratio-mc",
            _U + "variation_ratio_sampled",
            "Variation ratio, 100 draws",
            "The papers' estimate: multiples of 1/100, most clear items tie at 0.",
            needs=frozenset({"latent"}),
            warning="100 draws cannot rank the most uncertain items; variation-ratio is exact and faster.",
            source="Wenzel et al. 2017",
        ),
        PolicyEntry(
            "margin",
            _U + "margin",
            "Margin",
            "The two best classes are close: gap of the latent means, or of the probabilities.",
            source="Scheffer et al. 2001",
        ),
        PolicyEntry(
            "entropy",
            _U + "entropy",
            "Entropy",
            "Entropy of the calibrated class probabilities.",
            needs=frozenset({"probabilities"}),
            source="Shannon 1948",
        ),
        PolicyEntry(
            "entropy-of-means",
            _U + "entropy_of_means",
            "Entropy of the means",
            "Entropy of softmax(latent means): ignores how sure the model is of them.",
            needs=frozenset({"latent"}),
        ),
        PolicyEntry(
            "least-confident",
            _U + "least_confident",
            "Least confident",
            "One minus the largest class probability.",
            needs=frozenset({"probabilities"}),
            source="Lewis and Gale 1994",
        ),
        PolicyEntry(
            "bald",
            _U + "bald",
            "BALD",
            "What the label would tell about the latent functions.",
            needs=frozenset({"latent"}),
            shared_draws=True,
            source="Houlsby et al. 2011",
        ),
        PolicyEntry(
            "variance",
            _U + "variance",
            "Predictive variance",
            "Where the model knows least, whatever the classes.",
            needs=frozenset({"latent"}),
        ),
        PolicyEntry(
            "random",
            _U + "random_order",
            "Random",
            "Uniformly at random: the baseline every policy must beat.",
            batch="top",
        ),
        PolicyEntry(
            "k-means",
            _B + "k_means",
            "Diverse best (k-means)",
            "Clusters the max(50, 5k) items of largest utility and takes the best of each cluster.",
            needs=frozenset({"features"}),
            rowwise=False,
            kind="selector",
            few=True,
            source="Bodó et al. 2011; Zhdanov 2019",
        ),
        PolicyEntry(
            "covariance",
            _B + "covariance",
            "Greedy by posterior covariance",
            "Among the best items, each next one where the model would still know least after the others.",
            needs=frozenset({"features"}),
            rowwise=False,
            kind="selector",
            few=True,
            source="Krause et al. 2008",
        ),
        PolicyEntry(
            "determinantal",
            _B + "determinantal",
            "Determinantal",
            "Utility times unlikeness: the greedy batch of largest determinant.",
            needs=frozenset({"features"}),
            rowwise=False,
            kind="selector",
            source="Kulesza and Taskar 2012",
        ),
        PolicyEntry(
            "core-set",
            _B + "core_set",
            "Core-set",
            "Farthest first from what is labelled, in feature space.",
            needs=frozenset({"features"}),
            rowwise=False,
            kind="selector",
            uses_utilities=False,
            source="Sener and Savarese 2018",
        ),
        PolicyEntry(
            "core-set-latent",
            _B + "core_set_latent",
            "Core-set of latents",
            "Farthest first from what is labelled, in the space of the latent means.",
            needs=frozenset({"latent"}),
            rowwise=False,
            kind="selector",
            uses_utilities=False,
            source="Sener and Savarese 2018",
        ),
        PolicyEntry(
            "badge",
            _B + "badge",
            "BADGE",
            "k-means++ on the gradients an answer would cause.",
            needs=frozenset({"probabilities", "features"}),
            rowwise=False,
            kind="selector",
            uses_utilities=False,
            source="Ash et al. 2020",
        ),
        PolicyEntry(
            "batch-bald",
            _B + "batch_bald",
            "BatchBALD",
            "What the labels of the batch tell together about the latent functions; for small batches.",
            needs=frozenset({"latent", "features"}),
            rowwise=False,
            kind="selector",
            source="Kirsch et al. 2019",
        ),
        PolicyEntry(
            "top",
            _B + "top",
            "Plain top k",
            "The k items of largest utility, near duplicates and all.",
            rowwise=False,
            kind="selector",
            few=True,
            warning="Plain top-k asks for near duplicates: with batches of 10 it was worse than random in "
            "19 of 20 trial runs. Use k-means.",
        ),
    ],
)

ENTRY_POINT_GROUP = "workbench.policies"


@cache
def plugins() -> dict[str, str]:
    """Policies that other installed packages offer: name -> "module:function"."""
    return {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


def find(policy: str) -> tuple[PolicyEntry | None, Any]:
    """A policy or selector by registry name, by another package's entry point, or by "module:function".

    Args:
        policy: the name.

    Returns:
        Its entry (None for a foreign one) and the function.

    Raises:
        InputError: no such name, or nothing to import there.
    """
    if policy in POLICIES:
        entry = POLICIES[policy]
        return entry, entry.load()
    target = policy if ":" in policy else plugins().get(policy)
    if target is None:
        POLICIES[policy]  # raises, with the nearest name
    assert target is not None
    function = load_target(target)
    if not _takes_a_belief(function):
        raise InputError(f"{target!r} is not a function of (belief, rng), nor of (belief, k, rng).")
    return None, function


def _takes_a_belief(function: Any) -> bool:
    """Whether something may be called as a policy or a selector; a class would be made, not asked."""
    if not callable(function) or isinstance(function, type):
        return False
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):  # compiled code without a signature
        return True
    for given in (2, 3):
        try:
            signature.bind(*range(given))
        except TypeError:
            continue
        return True
    return False
