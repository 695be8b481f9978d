"""Packages that an installation may lack: a sentence names what to install, and the rest works."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from workbench.engine.logistic_softmax_gibbs import sample
from workbench.errors import InputError
from workbench.studies import StudySpec, run_study


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extras `cluster` and `gibbs`."""
    for name in [*sys.modules, "dask", "distributed", "polyagamma"]:
        if name.partition(".")[0] in ("dask", "distributed", "polyagamma"):
            monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("bare")
def test_runs_beside_each_other_name_dask_and_one_after_the_other_do_without() -> None:
    spec = StudySpec(
        "two", pools=("iris",), classifiers=("logistic-regression",), policies=("margin",), seeds=1, budget=2
    )
    for given in ({"workers": 2}, {"scheduler": "tcp://127.0.0.1:1"}):
        with pytest.raises(InputError, match=r"pip install dask distributed.*One process does without"):
            run_study(spec, **given)
    assert len(run_study(spec).runs[0][1]) == 3


@pytest.mark.usefixtures("bare")
def test_the_gibbs_sampler_names_polyagamma() -> None:
    with pytest.raises(InputError, match=r"pip install polyagamma.*approximates the same model without it"):
        sample(np.eye(4), np.array([0, 0, 1, 1]), 2, draws=1, burn_in=0, chains=1, seed=0)
