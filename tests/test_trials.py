"""The trials of docs/reliability.md, shortened: what fails here fails there."""

import pytest

from benchmarks.trials import Row, damaged, fits, postgresql, runs
from tests.databases import needs_server


def assert_none_failed(row: Row) -> None:
    assert row.tried > 0 and row.failed == 0, "\n".join(row.failures)


def test_damaged_models_bundles_studies_and_feature_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damaged, "CLASSIFIERS", ("logistic-regression", "large-margin"))
    assert_none_failed(damaged.run(200, seed=1))


def test_degenerate_fits() -> None:
    names = ("large-margin", "logistic-regression", "bayesian-svm-linear")
    assert_none_failed(fits.run(len(names) * len(fits.KINDS), seed=1, names=names))


@pytest.mark.slow
def test_killed_runs() -> None:
    assert_none_failed(runs.run(1, seed=1))


@pytest.mark.slow
def test_connections_ended_by_a_database_server() -> None:
    needs_server()
    assert_none_failed(postgresql.run(15, seed=1))
