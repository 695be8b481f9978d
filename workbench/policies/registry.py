"""Names of the policies and of the batch selectors, and what pages, lists and docs say about each.

Listing them imports nothing but the policies of other packages.
"""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, Literal

from workbench.errors import InputError
from workbench.registry import Entry, Registry, load_code, plugins, signature_of, written_entries

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


def _policy(name: str, *, needs: Iterable[Need] = (), **fields: Any) -> PolicyEntry:
    return PolicyEntry(name, needs=frozenset(needs), **fields)


POLICIES: Registry[PolicyEntry] = Registry(
    "policy",
    written_entries(Path(__file__).with_name("policies.toml"), _policy),
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


def find(policy: Any) -> tuple[PolicyEntry | None, Any]:
    """A policy or selector by registry name (another package's, too), by "module:function", or itself.

    Args:
        policy: the name, or the function.

    Returns:
        Its entry (None for code of one's own) and the function.

    Raises:
        InputError: no such name, nothing to import there, or no function.
    """
    if not isinstance(policy, str):
        if callable(policy):
            return None, policy
        raise InputError(f"A policy is a name, 'package.module:function' or a function; got {policy!r}.")
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
