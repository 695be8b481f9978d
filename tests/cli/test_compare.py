"""`workbench compare`, and the comparison that the program is for."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calls import FAST, call, refused, table


def test_compare_is_paired_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "compare",
        *FAST,
        "--policy",
        "random",
        "--seeds",
        "3",
        "--budget",
        "6",
        "--out",
        tmp_path / "c",
    ]
    assert call(*arguments) == 0
    out, err = capsys.readouterr()
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0][:4] == ["pool", "classifier", "policy", "seeds"]
    assert [line[2] for line in lines[1:]] == ["margin", "random"] and lines[1][-1].endswith("of 3")
    assert lines[1][9] == "too few seeds to tell"
    assert "too few" in err
    rows = table((tmp_path / "c" / "comparison.csv").read_text())
    assert len(rows) == 2 * 3 * 7
    first = {(r["policy"], r["seed"]): r["error"] for r in rows if r["round"] == "0"}
    assert all(first["margin", s] == first["random", s] for s in "012")
    before = (tmp_path / "c" / "comparison.csv").read_bytes()
    assert call(*arguments) == 0
    assert (tmp_path / "c" / "comparison.csv").read_bytes() == before
    assert len(list((tmp_path / "c" / "runs").iterdir())) == 6


def test_a_run_that_fails_is_named_and_the_table_is_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = "tests.sessions.fakes:"
    command = [
        "compare",
        "--pool",
        "iris",
        "--classifier",
        f"{fake}NearestMean",
        "--classifier",
        f"{fake}Failing",
    ]
    command += ["--policy", "margin", "--policy", "random", "--seeds", "1", "--budget", "4"]
    assert call(*command, "--out", tmp_path / "c") == 1
    out, err = capsys.readouterr()
    assert [line.split("\t")[1] for line in out.splitlines()[1:]] == [f"{fake}NearestMean"] * 2
    assert f"2 of 4 runs failed, such as iris, {fake}Failing, margin, seed 0: ArithmeticError: no root" in err
    assert (tmp_path / "c" / "summary.csv").is_file()


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_study_that_is_no_file_is_not_waited_for(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "study"
    os.mkfifo(place) if where == "file" else place.mkdir()
    assert "a file of a few lines" in refused(capsys, "compare", "--study", place)


def test_a_study_takes_no_further_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text("pool = 'iris'\n")
    for option, value in (("--set", "n_inducing=8"), ("--asked-among", "50"), ("--pool", "iris")):
        words = refused(capsys, "compare", "--study", tmp_path / "s.toml", "--quiet", option, value)
        assert f"leave out {option}." in words


@pytest.mark.slow
def test_variation_ratio_beats_random_on_digits(tmp_path: Path) -> None:
    """4 seeds, 10 + 60 labels: mean error at most 0.05, and below random's on at least 3."""
    from workbench.studies import StudySpec, run

    last: dict[tuple[str, int], float] = {}
    for spec in StudySpec("digits", policies=("variation-ratio", "random"), seeds=4).runs():
        last[spec.policy, spec.seed] = run(spec).rounds[-1].error
    ours = np.asarray([last["variation-ratio", s] for s in range(4)])
    random = np.asarray([last["random", s] for s in range(4)])
    print(f"variation ratio {ours.mean():.4f}, random {random.mean():.4f}, better on {(ours < random).sum()}")
    assert ours.mean() <= 0.05
    assert (ours < random).sum() >= 3
