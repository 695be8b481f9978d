"""The data sets of the large-margin papers, and names of sets and parts for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workbench.errors import InputError
from workbench.pools.datasets.catalogue import catalogue
from workbench.studies.fits import POKER

if TYPE_CHECKING:
    from workbench.papers.reproduce import Context


class PaperSets(NamedTuple):
    """The 68 sets of the large-margin papers.

    Attributes:
        names: what `load_pool` takes, small sets first.
        missing: those whose file is not here, with how to get it.
    """

    names: tuple[str, ...]
    missing: dict[str, str]


def paper_sets() -> PaperSets:
    """PMLB sets of 3 or more classes and 128 or more rows, MNIST left out; poker by its generator.

    Raises:
        InputError: not one of them is here.
    """
    entries = [e for e in catalogue() if e.group == "pmlb" and e.paper68]
    local_sets = sorted((e for e in entries if e.path is not None), key=lambda e: e.n_items * e.n_features)
    missing = {e.full_name: e.how for e in entries if e.path is None and e.name != POKER}
    if not local_sets:
        first = entries[0]
        raise InputError(
            f"None of the {len(entries)} PMLB sets is on this machine. {first.how} Or point WORKBENCH_DATA "
            "at a folder that holds pmlb/NAME/NAME.tsv.gz."
        )
    return PaperSets((*(e.full_name for e in local_sets), POKER), missing)


def short(name: str) -> str:
    """A set's name without its group."""
    return name.partition(":")[2] or name


def available(context: Context) -> list[str]:
    """The names of `paper_sets`; those that are missing are a cap of the report."""
    sets = paper_sets()
    if sets.missing:
        context.caps.append(
            f"{len(sets.missing)} set(s) not on this machine: {', '.join(map(short, sets.missing))}. "
            + next(iter(sets.missing.values()))
        )
    return list(sets.names)
