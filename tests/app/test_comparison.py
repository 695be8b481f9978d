from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from workbench.app import comparison
from workbench.errors import InputError
from workbench.store import Store
from workbench.studies import StudySpec


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    yield tmp_path
    Store.open().close()


def small(**more: object) -> StudySpec:
    return StudySpec(name="app", pools=("wine",), seeds=2, budget=4, **more)  # type: ignore[arg-type]


def test_a_comparison_is_found_again_with_the_same_curves() -> None:
    token = comparison.start(small())
    job = comparison.job_of(token)
    assert job is not None and job.wait(240) and job.status == "done", job.error
    found = comparison.find(token)
    assert found.n_finished == 4
    assert found.spec == small()
    stored = comparison.results(found)
    assert stored == job.result
    assert stored["random"][1]["n_labelled"] == [3, 4, 5, 6, 7]
    curves = comparison.curves(stored, found.spec.policies, "error")
    assert [c.baseline for c in curves] == [False, True]
    rows = comparison.table(stored, found.spec.policies, "error")
    mean = np.mean([stored["variation-ratio"][s]["error"] for s in (0, 1)])
    assert rows[0]["average"] == pytest.approx(mean)
    assert rows[0]["pairs"] == 2 and rows[1]["won"] is None


def test_cancelled_keeps_what_was_finished_and_goes_on() -> None:
    spec = StudySpec(name="app", pools=("wine",), seeds=3, budget=6)
    token = comparison.start(spec)
    job = comparison.job_of(token)
    assert job is not None
    while job.active and job.fraction < 0.2:
        job.wait(0.02)
    job.cancel()
    assert job.wait(240) and job.status == "cancelled", job.error
    stopped = comparison.find(token)
    kept = comparison.results(stopped)
    assert kept and stopped.n_finished < 6
    again = comparison.resume(stopped)
    assert again.wait(240) and again.status == "done", again.error
    whole = comparison.results(comparison.find(token))
    assert comparison.find(token).n_finished == 6
    for policy, runs in kept.items():
        for seed, values in runs.items():
            n = len(values["error"])
            assert whole[policy][seed]["error"][:n] == values["error"]


def test_runs_cut_short_do_not_count_in_the_table() -> None:
    found: comparison.Results = {
        "variation-ratio": {
            0: {"n_labelled": [3.0, 5.0], "error": [0.2, 0.1]},
            1: {"n_labelled": [3.0], "error": [0.0]},
        },
        "random": {s: {"n_labelled": [3.0, 5.0], "error": [0.4, 0.2]} for s in (0, 1)},
    }
    rows = comparison.table(found, ("variation-ratio", "random"), "error")
    saved = rows[0].pop("saved")
    # 3 labels do what random needs 5 for
    assert (saved.target, saved.mean, saved.n_both) == (0.2, 2.0, 1) and rows[1]["saved"] is None
    assert comparison.between(found, ("variation-ratio", "random"), "error") == []
    assert rows[0] == {
        "policy": "variation-ratio",
        "end": 0.1,
        "average": pytest.approx(0.15),
        "won": 1,
        "pairs": 1,
        "seeds": 1,
        "p": 1.0,
        "verdict": "too few seeds to tell",
    }


def test_an_unknown_comparison_is_named() -> None:
    with pytest.raises(InputError, match="no comparison 'zzz'"):
        comparison.find("zzz")


def test_what_cannot_run_is_said_before_it_starts() -> None:
    with pytest.raises(InputError, match="needs latent"):
        comparison.start(small(classifiers=("logistic-regression",)))
    assert comparison.all_of() == []
