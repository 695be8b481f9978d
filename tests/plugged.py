"""A package of somebody else's that offers policies and a classifier by entry points."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workbench.registry import plugins

SOURCE = '''
import numpy as np
from sklearn.linear_model import LogisticRegression
from workbench.policies import PolicyEntry

def far_out(belief, rng):
    """How far out an item lies."""
    return np.abs(np.asarray(belief.features)).sum(axis=1)

def described(belief, rng):
    return np.exp(-far_out(belief, rng))

def first(belief, k, rng):
    """The first ones."""
    return belief.askable[:k]

DESCRIBED = PolicyEntry(
    "x", "farpackage:described", "Nearness", "Near the middle.", unit="shares", least=0.0, most=1.0,
    high="it lies in the middle", says="It lies {0:.2f} in the middle.",
)

class Mine(LogisticRegression):
    """A classifier of mine."""
'''
POINTS = """
[workbench.policies]
far-out = farpackage:far_out
nearness = farpackage:DESCRIBED
firsts = farpackage:first
margin = farpackage:far_out
broken = no_such_package:thing
[workbench.classifiers]
mine = farpackage:Mine
"""


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Within the block the package is installed in this folder."""
    (folder / "farpackage.py").write_text(SOURCE)
    info = folder / "farpackage-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: farpackage\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        plugins.cache_clear()
        yield
    plugins.cache_clear()
    sys.modules.pop("farpackage", None)
