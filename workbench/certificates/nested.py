"""Sets within sets, one list of checks for all of them.

Machine labels are ranked by confidence, and frozen. Draws from all of them that fall into the surest k are
uniform in these, so the same checks test every k. The sets are tested in an order that is fixed beforehand,
each at the whole delta, up to the first that is not certified: a wrong certificate has to begin at the first
set that breaks the promise.
Bauer, "Multiple testing in clinical trials", 1991; Angelopoulos et al., "Learn then test", 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.certificates.validation import checks_of, confidence_of, error_of, size_of
from workbench.certificates.wealth import first_reached, log_wealth, upper_bound
from workbench.errors import InputError


@dataclass(frozen=True)
class Nested:
    """What the checks say of each set, in the order of the test."""

    sizes: Ints
    """[K]."""
    errors: Floats
    """[J], allowed shares; each is tested at delta / J."""
    checks: Ints
    """[K], draws that fell into the set."""
    wrong: Ints
    """[K], of these."""
    at: Ints
    """[J, K], draws (of all) after which the set was certified, 0 where it is not."""
    bounds: Floats
    """[K], upper bounds on the share of wrong labels that hold together, at delta / K each."""

    @property
    def certified(self) -> Array:
        """[J, K]."""
        return self.at > 0

    def largest(self, of_error: int = 0) -> int | None:
        """Place of the largest set that is certified at `errors[of_error]`; None where there is none."""
        held = np.flatnonzero(self.certified[of_error])
        return int(held[np.argmax(self.sizes[held])]) if len(held) else None


def nested(
    wrong: ArrayLike,
    inside: ArrayLike,
    sizes: ArrayLike,
    error: float | list[float] | Floats,
    confidence: float,
    *,
    bounds: bool = True,
) -> Nested:
    """Test sets within sets by the same checks, in the order they are given.

    Args:
        wrong: [t] of 0 and 1, in the order of the draws from the largest set.
        inside: [t, K], whether the draw lies in the set; or [t], its rank from 0 on, the surest first: then
            set k is the first `sizes[k]` ranks.
        sizes: [K] in the order of the test, fixed before the first check: begin with the one that is most
            likely to hold and is still large enough to be drawn from, as what the plan chose.
        error: allowed share, or several; several share delta equally.
        confidence: as 0.95, of everything together.
        bounds: whether to work out the bounds (they are 1 otherwise).

    Returns:
        Certified sets and bounds.

    Raises:
        InputError: shapes that do not go together, or values outside their range.
    """
    order = np.array([size_of(size) for size in np.asarray(sizes).ravel().tolist()], dtype=np.int64)
    if not len(order):
        raise InputError("Give at least one set to test.")
    allowed = np.array([error_of(float(one)) for one in np.atleast_1d(np.asarray(error)).tolist()])
    delta = 1.0 - confidence_of(confidence)
    found = checks_of(wrong, int(order.max()))
    member = _members(np.asarray(inside), order, len(found))
    at = np.zeros((len(allowed), len(order)), dtype=np.int64)
    limits = np.ones(len(order))
    for k, size in enumerate(order.tolist()):
        drawn = np.flatnonzero(member[:, k])
        for j, share in enumerate(allowed.tolist()):
            reached = int(first_reached(log_wealth(found[drawn], size, share), 1.0 - delta / len(allowed)))
            at[j, k] = drawn[reached - 1] + 1 if reached else 0
        if bounds and len(drawn):
            limits[k] = upper_bound(found[drawn], size, 1.0 - delta / len(order), allowed.tolist())[-1]
    return Nested(
        order,
        allowed,
        member.sum(axis=0),
        (member & found[:, None]).sum(axis=0),
        _in_sequence(at),
        limits,
    )


def _in_sequence(at: Ints) -> Ints:
    """A set counts as certified once it and all before it are."""
    held = np.logical_and.accumulate(at > 0, axis=1)
    return np.where(held, np.maximum.accumulate(at, axis=1), 0)


def _members(inside: Array, sizes: Ints, count: int) -> Array:
    if inside.shape == (count,) and inside.dtype.kind in "iu":
        if len(inside) and inside.min() < 0:
            raise InputError("Ranks count from 0 on, the surest first.")
        member = inside[:, None] < sizes
    elif inside.shape == (count, len(sizes)):
        member = inside.astype(bool)
    elif not count:
        member = np.zeros((0, len(sizes)), dtype=bool)
    else:
        raise InputError(
            f"{count} checks of {len(sizes)} sets need ranks [{count}] or members [{count}, {len(sizes)}]; "
            f"got {inside.shape}."
        )
    if (member.sum(axis=0) > sizes).any():
        raise InputError("More draws lie in a set than it has items.")
    return member
