"""Packages that an installation may lack: a sentence names what to install, and the rest works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.engine.logistic_softmax_gibbs import sample
from workbench.errors import InputError, install_command
from workbench.studies import StudySpec, run_study


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extras `cluster` and `gibbs`."""
    for name in [*sys.modules, "dask", "distributed", "polyagamma"]:
        if name.partition(".")[0] in ("dask", "distributed", "polyagamma"):
            monkeypatch.setitem(sys.modules, name, None)


def test_a_package_is_installed_for_the_python_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert install_command("psycopg[binary]") == "'my env/bin/python' -m pip install 'psycopg[binary]'"
    monkeypatch.chdir("/")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "my env")
    assert install_command("dask", "distributed") == "~/bin/python -m pip install dask distributed"


def test_a_python_without_the_dependencies_is_told_which_one_has_them() -> None:
    code = "import sys; sys.modules['numpy'] = None; from workbench import load_pool"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert (
        "ImportError: The package numpy is not installed for this Python" in last
        and ".venv/bin/python" in last
    )


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
