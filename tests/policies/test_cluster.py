"""A scan on Dask is the local scan: same answer, lost workers and silent schedulers included."""

import os
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.policies.test_scan import Bumps, C, D, parquet, same
from workbench.classifiers.latent import Latent
from workbench.errors import Cancelled, InputError
from workbench.policies.belief import as_scored_model
from workbench.policies.scan import score_pool
from workbench.registry import CodeName


class Deadly(Bumps):
    """Kills the process it runs in, once: the first worker that scores a chunk leaves a file and dies."""

    def __init__(self, centres: np.ndarray, mark: str) -> None:
        super().__init__(centres)
        self.mark = mark

    def __call__(self, X: np.ndarray) -> Latent:
        if os.environ.get("DASK_PARENT") != str(os.getpid()) and not Path(self.mark).exists():
            Path(self.mark).touch()
            os._exit(1)
        return super().__call__(X)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"centres": self.centres, "mark": np.asarray(self.mark)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Deadly":
        return cls(arrays["centres"], str(arrays["mark"]))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(4_000, D)) * 2


@pytest.fixture(scope="module")
def centres() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(C, D))


@pytest.mark.parametrize("policy", ["variation-ratio", "margin", "entropy"])
def test_a_cluster_gives_the_local_answer(
    scheduler: str, X: np.ndarray, centres: np.ndarray, tmp_path: Path, policy: str
) -> None:
    folder = parquet(tmp_path / "parts", X, (900, 2_500))
    options: dict[str, Any] = {"top": 30, "chunk_rows": 400, "exclude": np.arange(0, 4_000, 7)}
    local = score_pool(folder, Bumps(centres), policy, **options)
    same(score_pool(folder, Bumps(centres), policy, scheduler=scheduler, **options), local)
    same(score_pool(X, Bumps(centres), policy, scheduler=scheduler, **options), local)


def test_custom_policies_and_progress_travel(scheduler: str, X: np.ndarray, centres: np.ndarray) -> None:
    name = CodeName("workbench.policies.rowwise:variance")
    seen: list[float] = []
    result = score_pool(
        X, Bumps(centres), name, top=5, scheduler=scheduler, progress=lambda share: seen.append(share)
    )
    same(result, score_pool(X, Bumps(centres), name, top=5))
    assert seen[-1] == pytest.approx(1.0)
    with pytest.raises(Cancelled):
        score_pool(X, Bumps(centres), scheduler=scheduler, progress=lambda share: True)


def test_errors_of_workers_name_the_row(scheduler: str, X: np.ndarray, centres: np.ndarray) -> None:
    holed = X.copy()
    holed[1_234] = np.nan
    with pytest.raises(InputError, match="row 1234"):
        score_pool(holed, Bumps(centres), scheduler=scheduler)


def test_a_worker_lost_on_the_way_changes_nothing(
    scheduler: str, X: np.ndarray, centres: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_PARENT", str(os.getpid()))  # this process looks at one row too, and lives
    folder = parquet(tmp_path / "parts", X, (1_000, 2_000, 3_000))
    mark = tmp_path / "died"
    model = Deadly(centres, str(mark))
    mark.touch()
    local = score_pool(folder, model)
    mark.unlink()
    same(score_pool(folder, model, scheduler=scheduler), local)
    assert mark.exists()


@pytest.mark.slow  # alone: the same scores from processes as from one
def test_local_processes(X: np.ndarray, centres: np.ndarray, tmp_path: Path) -> None:
    folder = parquet(tmp_path / "parts", X, (2_000,))
    same(
        score_pool(folder, Bumps(centres), scheduler="processes", threads=1),
        score_pool(folder, Bumps(centres)),
    )


def test_a_scheduler_that_does_not_answer() -> None:
    with socket.socket() as taken:  # listens, says nothing
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match="does not answer"):
            score_pool(np.zeros((10, D)), Bumps(np.zeros((C, D))), scheduler=where, timeout=1.0)
    with pytest.raises(InputError, match="does not answer"):
        score_pool(np.zeros((10, D)), Bumps(np.zeros((C, D))), scheduler=where, timeout=1.0)


def test_a_scheduler_without_workers(centres: np.ndarray) -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(InputError, match="has no worker"),
    ):
        score_pool(np.zeros((10, D)), Bumps(centres), scheduler=cluster.scheduler_address, timeout=0.5)


class TestShipping:
    def test_a_predictor_travels_as_arrays(self, centres: np.ndarray) -> None:
        shipped = as_scored_model(Bumps(centres), 0.7).ship()
        assert shipped.function is None and list(shipped.arrays) == ["centres"]
        again = shipped.unpack()
        assert again.temperature == 0.7
        np.testing.assert_array_equal(again.predictor.centres, centres)

    def test_a_classifier_travels_as_options_and_state(self, X: np.ndarray) -> None:
        from workbench.classifiers import make_classifier

        model = make_classifier("large-margin", n_inducing=8, random_state=0)
        model.fit(X[:60], np.digitize(X[:60, 0], [-1, 1]))
        shipped = as_scored_model(model).ship()
        assert all(isinstance(value, np.ndarray) for value in shipped.arrays.values())
        again = shipped.unpack()
        np.testing.assert_array_equal(again.classifier.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.latent(X).mean, model.predict_latent(X).mean)  # type: ignore[union-attr]
