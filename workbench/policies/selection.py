"""From a belief to the items to ask about."""

from typing import Any

import numpy as np
from numpy.random import Generator

from workbench.arrays import Floats, Ints
from workbench.classifiers.argmax import check_moments
from workbench.errors import InputError
from workbench.policies.belief import Belief, PolicyFn, Query, Selector
from workbench.policies.registry import POLICIES, PolicyEntry, find, is_selector
from workbench.policies.variation import top_variation_ratio
from workbench.registry import load_target

# How many items of high utility a batch is spread over.
_CANDIDATES = 50
_CANDIDATES_PER_ITEM = 5


def query(
    policy: str | PolicyFn | Selector,
    belief: Belief,
    k: int,
    rng: Generator,
    selector: str | Selector = "auto",
) -> Query:
    """The k items a policy wants answered.

    Args:
        policy: a registry name, "package.module:function", the name of an installed package's entry
            point, or a function (belief, rng) -> utilities [N]; or a selector, by the same four ways:
            (belief, k, rng) -> indices.
        belief: what the model believes; its `labelled` items are never asked.
        k: how many; more than are left gives those that are left, and says so in `warnings`.
        rng: breaks ties, and drives policies that draw.
        selector: how a batch is chosen among items of high utility: a registry name of kind
            "selector", a function, or "auto": the best item for k = 1, k-means for more.

    Returns:
        Query(indices, utilities, warnings).

    Raises:
        InputError: nothing is left to ask, k < 1, an unknown name, a model without what the policy
            needs, a model that gives NaN (the item is named), or a policy that gives every item NaN, which
            is its word for an item that must not be asked.
    """
    if k < 1:
        raise InputError(f"At least one item must be asked for; got k={k}.")
    askable = belief.askable
    if askable.size == 0:
        raise InputError(
            f"All {len(belief)} items are labelled or set aside; there is nothing left to ask. "
            "Add items to the pool."
        )
    warnings: list[str] = []
    if k > askable.size:
        warnings.append(f"Asked for {k} items; only {askable.size} are left, so all of them are given.")
        k = int(askable.size)

    entry, function = find(policy)
    if entry is not None:
        check_needs(entry, belief)
        if entry.warning:
            warnings.append(entry.warning)
    if is_selector(function):
        indices = _checked(function(belief, k, rng), belief, askable, k)
        return Query(indices, _masked(belief, askable, belief.utilities), tuple(warnings))

    if selector == "auto":
        selector = "top" if k == 1 else entry.batch if entry is not None else "k-means"
        spread_by_policy = selector == "top"
    else:
        spread_by_policy = False
    pick_entry, pick = find(selector)
    if not is_selector(pick):
        raise InputError(f"{selector!r} is a policy, not a selector: give it as `policy`.")
    if pick_entry is not None:
        check_needs(pick_entry, belief)
        if pick_entry.warning and k > 1 and not spread_by_policy:
            warnings.append(pick_entry.warning)

    if pick_entry is not None and not pick_entry.uses_utilities:
        name = policy if isinstance(policy, str) else getattr(policy, "__name__", "the policy")
        warnings.append(f"{pick_entry.name} has a criterion of its own; {name} is not used.")
        indices = _checked(pick(belief, k, rng), belief, askable, k)
        return Query(indices, np.full(len(belief), np.nan), tuple(warnings))
    if entry is not None and entry.top and pick_entry is not None and pick_entry.few:
        n_candidates = k if pick_entry is POLICIES["top"] else candidate_count(k)
        best, values = load_target(entry.top)(belief, askable, n_candidates, rng)
        utilities = np.full(len(belief), np.nan)
        utilities[best] = values
    else:
        scores = _utilities(function, belief, rng)
        warnings += filter(None, [_left(scores, askable, k)])
        utilities = _masked(belief, askable, scores)
    indices = _checked(pick(belief.with_utilities(utilities), k, rng), belief, askable, k)
    return Query(indices, utilities, tuple(warnings))


def utilities(policy: str | PolicyFn, belief: Belief, rng: Generator) -> Floats:
    """Every item's utility, for maps and reports.

    Args:
        policy: as for `query`; no selector.
        belief: what the model believes.
        rng: drives policies that draw.

    Returns:
        [N], higher = ask first; also of items that may not be asked.

    Raises:
        InputError: as `query`.
    """
    entry, function = find(policy)
    if is_selector(function):
        raise InputError(f"{policy!r} selects batches and gives no utilities.")
    if entry is not None:
        check_needs(entry, belief)
    return _utilities(function, belief, rng)


def candidate_count(k: int) -> int:
    """Number of items of high utility from which a batch of k is chosen: max(50, 5k)."""
    return max(_CANDIDATES, _CANDIDATES_PER_ITEM * k)


def top_by_variation_ratio(belief: Belief, rows: Ints, k: int, rng: Generator) -> tuple[Ints, Floats]:
    """The k of `rows` with the largest exact variation ratio.

    Args:
        belief: with latents.
        rows: [M] indices in the running.
        k: how many at most.
        rng: breaks ties.

    Returns:
        indices [k] into the pool and variation ratios [k], best first.
    """
    latent = belief.latent
    assert latent is not None  # needs={"latent"} was checked
    mean, variance = latent
    everything = len(rows) == len(belief)
    try:
        best, values = top_variation_ratio(
            mean if everything else mean[rows], variance if everything else variance[rows], k, rng
        )
    except InputError:
        _name_bad_item(belief)
        check_moments(mean, variance)  # says the number in the pool, not among `rows`
        raise
    return rows[best], values


def check_needs(entry: PolicyEntry, belief: Belief) -> None:
    """Refuse a policy whose model lacks what it needs.

    Raises:
        InputError: says what is missing and which policies would do.
    """
    if "latent" in entry.needs and belief.latent is None:
        can = [e.name for e in POLICIES.values() if "latent" not in e.needs and e.kind == entry.kind]
        raise InputError(
            f"{entry.name} needs latent functions with uncertainty, and this classifier gives class "
            f"probabilities only. Use {', '.join(can)}; or a Bayesian classifier."
        )


def _utilities(function: Any, belief: Belief, rng: Generator) -> Floats:
    try:
        values = np.asarray(function(belief, rng))
    except InputError:
        _name_bad_item(belief)
        raise
    _name_bad_item(belief)  # by now the policy has made the belief compute what it looked at
    if values.shape != (len(belief),) or values.dtype.kind not in "fiub":
        raise InputError(
            f"A policy must give one number per item, {len(belief)} of them; "
            f"got {values.dtype} {values.shape}."
        )
    return values.astype(np.float64)


def _left(values: Floats, askable: Ints, k: int) -> str:
    """A warning where the policy leaves fewer items than are wanted: NaN is its word for not to be asked.

    Raises:
        InputError: it leaves none.
    """
    n_left = int((~np.isnan(values[askable])).sum())
    if not n_left:
        raise InputError(
            f"The policy gives none of the {askable.size} open items a number, so there is nothing to ask. "
            "A utility is a number, NaN only where an item must not be asked."
        )
    return f"The policy leaves {n_left} items to ask, fewer than the {k} wanted." if n_left < k else ""


def _masked(belief: Belief, askable: Ints, values: Floats | None) -> Floats:
    out = np.full(len(belief), np.nan)
    if values is not None:
        out[askable] = values[askable]
    return out


def _name_bad_item(belief: Belief) -> None:
    """Raise if the model says NaN or infinity about an item; only what is already computed is looked at."""
    arrays: list[tuple[str, Any]] = []
    if isinstance(belief._latent, tuple):
        arrays += [("latent mean", belief._latent[0]), ("latent variance", belief._latent[1])]
    if isinstance(belief._probabilities, np.ndarray):
        arrays.append(("class probabilities", belief._probabilities))
    for quantity, values in arrays:
        if not np.isfinite(values.sum()):
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if bad.size:
                raise InputError(
                    f"The model's {quantity} of item {belief.name_of(int(bad[0]))} is not a number "
                    f"({bad.size} such item(s)). Check that item's features, or fit the model again."
                )


def _checked(indices: Any, belief: Belief, askable: Ints, k: int) -> Ints:
    selection = np.asarray(indices)
    if selection.ndim != 1 or selection.dtype.kind not in "iu" or len(selection) > k:
        raise InputError(
            f"A selector must give at most {k} item numbers; got {selection.dtype} {selection.shape}."
        )
    selection = selection.astype(np.int64)
    allowed = np.isin(selection, askable)
    if not allowed.all():
        raise InputError(f"The selector chose item {int(selection[~allowed][0])}, which may not be asked.")
    if len(np.unique(selection)) != len(selection):
        raise InputError("The selector chose an item twice.")
    return selection
