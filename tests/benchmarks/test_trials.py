"""The trials of docs/reliability.md, shortened: what fails here fails there."""

import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.driving import own_home
from benchmarks.trials import Row, added, damaged, fits, operations, postgresql, runs, studies, tables
from benchmarks.trials.__main__ import main
from benchmarks.trials._watch import watched
from tests.databases import needs_server
from workbench.app.serving.jobs import Job, manager
from workbench.writing import workbench_home


def assert_none_failed(row: Row) -> None:
    assert row.tried > 0 and row.failed == 0, "\n".join(row.failures)


@pytest.mark.slow  # alone: 200 damaged files of every kind that is saved
def test_damaged_models_bundles_studies_and_feature_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damaged, "CLASSIFIERS", ("logistic-regression", "large-margin"))
    assert_none_failed(damaged.run(200, seed=1))


@pytest.mark.slow  # more of them; tests/pools reads one of each kind
def test_tables_and_images_that_other_programs_wrote() -> None:
    assert_none_failed(tables.run(24, seed=1))


@pytest.mark.slow  # alone: data that hardly are any, in three families
def test_degenerate_fits() -> None:
    names = ("large-margin", "logistic-regression", "bayesian-svm-linear")
    assert_none_failed(fits.run(len(names) * len(fits.KINDS), seed=1, names=names))


@pytest.mark.slow  # alone: a run that is killed anywhere
def test_killed_runs() -> None:
    assert_none_failed(runs.run(1, seed=1))


@pytest.mark.slow  # alone: a study that is killed anywhere
def test_killed_studies() -> None:
    assert_none_failed(studies.run(1, seed=1))


@pytest.mark.slow  # alone: a server that ends connections: needs PostgreSQL
def test_connections_ended_by_a_database_server() -> None:
    needs_server()
    assert_none_failed(postgresql.run(15, seed=1))


@pytest.mark.slow  # random shapes over both databases; each rule has a fast test of its own
def test_operations_of_every_shape() -> None:
    needs_server()
    assert_none_failed(operations.run(60, seed=1))


def test_what_a_page_started_has_ended_when_its_home_goes(tmp_path: Path) -> None:
    running = threading.Event()

    def work(job: Job) -> None:
        running.set()
        while not job.should_stop():
            job.wait(0.01)
        (workbench_home() / "last").touch()

    with own_home(tmp_path):
        job = manager().submit("home", "writing", work, lane="short", limit=60)
        assert running.wait(60)
    assert not job.active
    assert (tmp_path / "last").exists(), "it wrote somewhere else"


def test_an_event_without_arguments_is_no_fault_of_what_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_FEATURES", "features")
    with watched() as noted:
        sys._current_frames()  # of any thread
    assert noted == []


def test_parts_add_up_and_are_not_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []

    def run(count: int = 5, seed: int = 0) -> Row:
        done.append(seed)
        return Row(
            "t", count, seed % 2, failures=("broken",) * (seed % 2), counts={"kept": seed}, most={"s": seed}
        )

    module = ModuleType("benchmarks.trials.runs")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "benchmarks.trials.runs", module)
    command = ["runs", "--count", "3", "--seed", "4", "--parts", "2", "--log", str(tmp_path / "log")]
    for _ in range(2):
        assert main(command) == 1
        assert "| t | 6 | 1 | 9 kept, 5.0 s |" in capsys.readouterr().out
    assert done == [4, 5]
    with pytest.raises(ValueError, match="not parts of one trial"):
        added([Row("a", 1, 0), Row("b", 1, 0)])
