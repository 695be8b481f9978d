"""Runs of a file that has changed since are neither continued nor shown nor compared."""

from pathlib import Path

import numpy as np
import pytest

from tests.pools.images.test_images import png, zipped
from workbench.errors import InputError
from workbench.sessions.spec import RunSpec
from workbench.store import Store
from workbench.studies import StudySpec, read_study, run_study
from workbench.studies.runner import pool_of, pool_of_run


def table(path: Path, flipped: bool = False) -> None:
    rows = (f"{i},{i * 7 % 13},{'xy'[(i % 2) ^ (flipped and i % 3 == 0)]}" for i in range(40))
    path.write_text("a,b,label\n" + "\n".join(rows) + "\n")


def study(path: Path, *policies: str, seeds: int = 1) -> StudySpec:
    return StudySpec(
        "s",
        pools=(str(path),),
        classifiers=("logistic-regression",),
        policies=policies,
        seeds=seeds,
        target="label",
        budget=2,
    )


def test_a_comparison_in_a_folder_or_the_database_does_not_go_on_over_other_data(tmp_path: Path) -> None:
    path, store = tmp_path / "pool.csv", Store.open(tmp_path / "w.sqlite")
    places = ({"out": tmp_path / "out"}, {"store": store, "study": "s"})
    table(path)
    for place in places:
        assert run_study(study(path, "margin"), **place).status == "finished"
    [record] = store.runs.all(study="s")
    assert pool_of_run(record).fingerprint == record.fingerprint
    table(path, flipped=True)
    for place in places:
        with pytest.raises(InputError, match=r"has changed since the run of margin with seed 0"):
            run_study(study(path, "margin", "random"), **place)
    with pytest.raises(InputError, match=f"has changed since run {record.id}"):
        pool_of_run(record)
    table(path)
    for place in places:
        assert len(run_study(study(path, "margin", "random"), **place).runs) == 2


def test_runs_of_different_data_are_not_read_as_one_study(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    table(path)
    run_study(study(path, "margin"), out=tmp_path / "one")
    table(path, flipped=True)
    run_study(study(path, "margin", "random"), out=tmp_path / "two")
    [run] = (tmp_path / "one" / "runs").iterdir()
    other = tmp_path / "two" / "runs" / run.name
    other.rename(tmp_path / "away")
    run.rename(other)
    with pytest.raises(InputError, match="has changed since the run of random"):
        read_study(tmp_path / "two")


def test_runs_of_one_study_read_pictures_each_as_its_model_sees_them(tmp_path: Path) -> None:
    path, noise = tmp_path / "noise.zip", np.random.default_rng(0).integers(0, 256, (40, 24, 24), np.uint8)
    path.write_bytes(zipped({f"{i % 2}/{i:02}.png": png(image) for i, image in enumerate(noise)}))
    shapes = pool_of(RunSpec(str(path)))
    pixels = pool_of(RunSpec(str(path), classifier="softmax-net"))
    assert shapes.image_shape is None and pixels.image_shape == (24, 24)
    assert pool_of(RunSpec(str(path), seed=1)).features is shapes.features
