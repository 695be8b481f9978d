"""Names of the policies and of the batch selectors, and what pages, lists and docs say about each.

Listing them imports nothing but the policies of other packages.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from math import log
from typing import Any, Literal

from workbench.errors import InputError
from workbench.registry import Entry, Registry, load_code, plugins, signature_of

Need = Literal["latent", "probabilities", "features"]
Most = Literal["1 - 1/C", "log C"]


@dataclass(frozen=True)
class PolicyEntry(Entry):
    """A registered policy or batch selector. A utility's high values always mean "ask first".

    Attributes:
        needs: what the belief must hold. A policy that can do with either of two says neither and
            checks by itself.
        rowwise: an item's utility depends on that item alone, so the policy can stream over chunks.
        kind: "policy" (belief -> utilities) or "selector" (belief, k -> items).
        unit: of the utility; "" for none.
        least, most: range of the utility; None where there is no limit. Of C classes where it says so.
        high: what a high value means, in a few words, for maps and lists.
        says: a sentence about one item, with {0} for its utility; "" takes the title.
        shares: the same where its two largest probabilities are known, {0} and {1}; "" takes `says`.
        measure: the utility says something about every item by itself: it can colour a map.
        warning: why one should think twice, or "".
        top: "module:function" (belief, rows, k, rng) -> (indices, utilities), for policies whose
            best k can be found without computing the rest; or "".
        batch: the selector that "auto" takes for more than one item.
        few: a selector that looks at the max(50, 5k) items of largest utility alone.
        uses_utilities: a selector that spreads a policy's favourites; else it has its own criterion.
        shared_draws: its draws must be the same for every chunk of a pool.
        source: the paper.
        advice: of those to begin with: when to take it, in a line for people.
    """

    needs: frozenset[Need] = frozenset()
    rowwise: bool = True
    kind: Literal["policy", "selector"] = "policy"
    unit: str = ""
    least: float | None = None
    most: float | Most | None = None
    high: str = ""
    says: str = ""
    shares: str = ""
    measure: bool = True
    warning: str = ""
    top: str = ""
    batch: str = "k-means"
    shared_draws: bool = False
    few: bool = False
    uses_utilities: bool = True
    source: str = ""
    advice: str = ""

    @property
    def detects(self) -> bool:
        """True if the utility can tell attacked images from clean ones: each image judged by itself."""
        return self.kind == "policy" and self.measure and self.rowwise and not (self.warning or self.broken)

    def range_for(self, n_classes: int) -> tuple[float, float] | None:
        """Least and largest utility there can be with C classes; None where one has no limit."""
        C = max(n_classes, 2)
        largest = {"1 - 1/C": 1.0 - 1.0 / C, "log C": log(C)}.get(str(self.most), self.most)
        return None if self.least is None or largest is None else (float(self.least), float(largest))

    def sentence(self, utility: float, best: tuple[float, float] | None = None) -> str:
        """Meaning of a utility for its item, for people.

        Args:
            utility: of the item.
            best: its two largest class probabilities, where they are known.
        """
        if best is not None and self.shares:
            return self.shares.format(*best)
        return (self.says or self.title + " is {0:.3f}.").format(utility, -utility)


_U = "workbench.policies.rowwise:"
_F = "workbench.policies.lookahead:"
_B = "workbench.policies.batches:"

ENTRY_POINT_GROUP = "workbench.policies"


def _described(name: str, target: str, thing: Any) -> PolicyEntry:
    """The entry of another package's policy that brings none."""
    text = (inspect.getdoc(thing) or "").partition("\n")[0] if thing is not None else ""
    selector = thing is not None and is_selector(thing)
    return PolicyEntry(
        name,
        target,
        name,
        text or f"A policy of {target.partition('.')[0].partition(':')[0]}.",
        rowwise=not selector,
        kind="selector" if selector else "policy",
        measure=thing is not None,
        warning="" if thing is not None else "This policy of another package cannot be imported.",
        source=target,
    )


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
            least=0.0,
            most="1 - 1/C",
            high="the model's own draws disagree about the class",
            says="Asked many times, the model names another class {0:.0%} of the time.",
        ),
        PolicyEntry(
            "variation-ratio-mc",
            _U + "variation_ratio_sampled",
            "Variation ratio, 100 draws",
            "The papers' estimate: multiples of 1/100, most clear items tie at 0.",
            needs=frozenset({"latent"}),
            warning="100 draws cannot rank the most uncertain items; variation-ratio is exact and faster.",
            source="Wenzel et al. 2017",
            least=0.0,
            most="1 - 1/C",
            high="100 draws of the model disagree, as in the papers",
            says="Asked many times, the model names another class {0:.0%} of the time.",
        ),
        PolicyEntry(
            "margin",
            _U + "margin",
            "Margin",
            "The two best classes are close: gap of the latent means, or of the probabilities.",
            source="Scheffer et al. 2001",
            most=0.0,
            high="the two best classes are close",
            says="Its two best classes are {1:.2f} apart: the closest come first.",
            shares="The model gives its two best classes {0:.0%} and {1:.0%}: the closest come first.",
            advice="The one to begin with: asks where two classes are close.",
        ),
        PolicyEntry(
            "margin-in-deviations",
            _U + "margin_in_deviations",
            "Margin in deviations",
            "How often a draw of the two leading classes' latent functions puts the second one first.",
            needs=frozenset({"latent"}),
            least=0.0,
            most=0.5,
            high="the two best classes are close for what the model knows of them",
            says="Asked many times, the model puts its second class first {0:.0%} of the time.",
            source="Wenzel et al. 2017, of two classes",
        ),
        PolicyEntry(
            "expected-error-reduction",
            _F + "expected_error_reduction",
            "Expected error reduction",
            "Which answer would lower the error on other items most; among the 50 of smallest margin.",
            needs=frozenset({"latent"}),
            rowwise=False,
            measure=False,
            high="the answer would put other items right",
            says="Its answer would lower the expected error by {0:.2%}.",
            source="Roy and McCallum 2001",
        ),
        PolicyEntry(
            "epig",
            _F + "epig",
            "EPIG",
            "What the label would tell about the labels of other items, among the 50 of smallest margin.",
            needs=frozenset({"latent"}),
            rowwise=False,
            measure=False,
            unit="nats",
            high="the label tells about the labels of others",
            says="Its label tells much about those of other items ({0:.4f} nats each).",
            source="Bickford Smith et al. 2023",
        ),
        PolicyEntry(
            "entropy",
            _U + "entropy",
            "Entropy",
            "Entropy of the calibrated class probabilities.",
            needs=frozenset({"probabilities"}),
            source="Shannon 1948",
            unit="nats",
            least=0.0,
            most="log C",
            high="the class probabilities are spread",
            says="The model's percentages are spread over its classes ({0:.2f}; 0 is sure).",
        ),
        PolicyEntry(
            "entropy-of-means",
            _U + "entropy_of_means",
            "Entropy of the means",
            "Entropy of softmax(latent means): ignores how sure the model is of them.",
            needs=frozenset({"latent"}),
            unit="nats",
            least=0.0,
            most="log C",
            high="the latent means are alike, however sure the model is of them",
        ),
        PolicyEntry(
            "least-confident",
            _U + "least_confident",
            "Least confident",
            "One minus the largest class probability.",
            needs=frozenset({"probabilities"}),
            source="Lewis and Gale 1994",
            least=0.0,
            most="1 - 1/C",
            high="no class is probable",
            says="The model takes itself to be wrong here with a chance of {0:.0%}.",
        ),
        PolicyEntry(
            "bald",
            _U + "bald",
            "BALD",
            "What the label would tell about the latent functions.",
            needs=frozenset({"latent"}),
            shared_draws=True,
            source="Houlsby et al. 2011",
            unit="nats",
            least=0.0,
            most="log C",
            high="the label would tell much about the latent functions",
            says="Its label would teach the model much ({0:.2f} nats).",
            advice="Asks what the model would learn most from.",
        ),
        PolicyEntry(
            "variance",
            _U + "variance",
            "Predictive variance",
            "Where the model knows least, whatever the classes.",
            needs=frozenset({"latent"}),
            least=0.0,
            high="the model has seen little like it",
            says="The model has seen little like it yet.",
        ),
        PolicyEntry(
            "random",
            _U + "random_order",
            "Random",
            "Uniformly at random: the baseline.",
            batch="top",
            least=0.0,
            most=1.0,
            measure=False,
            high="drawn at random",
            says="Drawn at random, as the random policy does.",
            advice="Asks at random: to compare the others with.",
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
    lambda: plugins(ENTRY_POINT_GROUP, _described),
)


def is_selector(function: Any) -> bool:
    """True if a function takes (belief, k, rng) rather than (belief, rng)."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters) == 3


def find(policy: str) -> tuple[PolicyEntry | None, Any]:
    """A policy or selector by registry name (another package's, too) or by "module:function".

    Args:
        policy: the name.

    Returns:
        Its entry (None for "module:function") and the function.

    Raises:
        InputError: no such name, or nothing to import there.
    """
    entry = None if ":" in policy else POLICIES[policy]
    function = load_code(policy) if entry is None else entry.load()
    if isinstance(function, PolicyEntry):  # what an entry point may name
        entry, function = function, function.load()
    if not _takes_a_belief(function):
        raise InputError(f"{policy!r} is not a function of (belief, rng), nor of (belief, k, rng).")
    return entry, function


def _takes_a_belief(function: Any) -> bool:
    """True if something may be called as a policy or a selector; a class would be made, not asked."""
    if not callable(function) or isinstance(function, type):
        return False
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):  # compiled code without a signature
        return True
    for n_arguments in (2, 3):
        try:
            signature.bind(*range(n_arguments))
        except TypeError:
            continue
        return True
    return False


def title_of(policy: str) -> str:
    """A policy's title for people; one that has no entry is called as it was named."""
    entry = POLICIES.get(policy)
    return policy if entry is None else entry.title


def markdown_table(kind: Literal["policy", "selector"] = "policy") -> str:
    """The table of the documentation: name, what, range and unit (selectors: the paper), needs."""
    third = "range" if kind == "policy" else "from"
    rows = [f"| name | what | {third} | needs |", "|---|---|---|---|"]
    for e in POLICIES.values():
        if e.kind == kind:
            cell = " ".join(filter(None, (_ends(e), e.unit))) if kind == "policy" else e.source
            rows.append(f"| `{e.name}` | {e.summary} | {cell} | {', '.join(sorted(e.needs))} |")
    return "\n".join(rows)


def _ends(entry: PolicyEntry) -> str:
    """A utility's range in words."""
    largest = f"{entry.most:g}" if isinstance(entry.most, float) else entry.most
    if entry.least is None:
        return "" if largest is None else f"at most {largest}"
    return f"at least {entry.least:g}" if largest is None else f"{entry.least:g} to {largest}"
