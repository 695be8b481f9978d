"""`workbench run`: its curve, its bundle, its options; killed and gone on with."""

import filecmp
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cli.calls import FAST, ROOT, call, process, refused, table
from tests.sessions.fakes import FAKE, PAUSING
from workbench.cli import runs
from workbench.store import Store


def test_run_prints_its_curve_and_writes_its_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("run", *FAST, "--budget", 4, "--out", tmp_path / "a") == 0
    out = capsys.readouterr().out
    assert out.startswith("round\tlabels\terror\tNLL\tBrier\tECE\n0\t3\t")
    assert f"after 7 labels; bundle in {tmp_path / 'a'}" in out
    assert len(table((tmp_path / "a" / "rounds.csv").read_text())) == 5
    assert call("run", *FAST, "--budget", 4, "--quiet") == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_options_reach_the_classifier_the_pool_and_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("def first(belief, rng):\n    return -1.0 * belief.features[:, 0]\n")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "a"
    arguments = ["run", "--pool", "three-gaussians", "--pool-set", "n_items=60", "--pool-set", "noise=.1"]
    arguments += ["--classifier", FAKE, "--set", "sharpness=2.5", "--policy", "mine:first", "--batch", "2"]
    arguments += ["--initial", "random:5", "--budget", "4", "--seed", "3", "--test-fraction", ".5"]
    assert call(*arguments, "--selector", "top", "--out", out) == 0
    spec = json.loads((out / "run.json").read_text())["spec"]
    assert spec["options"] == {"sharpness": 2.5} and spec["pool_options"] == {"n_items": 60, "noise": 0.1}
    events = table((out / "events.csv").read_text())
    assert [e["role"] for e in events] == ["initial"] * 5 + ["policy"] * 4
    assert json.loads((out / "model" / "spec.json").read_text())["options"] == {"sharpness": 2.5}
    # the policy asks for the smallest first coordinate, and the table says by how much
    utilities = [float(e["utility"]) for e in events[5:]]
    assert utilities == sorted(utilities, reverse=True)


def test_a_file_with_a_target_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flowers.csv"
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal(3 * (i % 2)):.3f},{rng.normal():.3f},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("width,height,tall\n" + "\n".join(rows) + "\n")
    arguments = ["run", "--pool", path, "--classifier", FAKE, "--policy", "margin", "--budget", "5"]
    assert call(*arguments, "--target", "tall", "--out", tmp_path / "a") == 0
    assert "flowers" in capsys.readouterr().out
    assert {e["class"] for e in table((tmp_path / "a" / "events.csv").read_text())} == {"yes", "no"}
    assert "--target COLUMN" in refused(capsys, *arguments)
    assert call(*arguments[:-1], "60", "--target", "tall", "--batch", "10") == 0
    assert "Only 48 items of flowers can be asked about." in capsys.readouterr().err
    assert "'nothing'" in refused(capsys, *arguments, "--target", "nothing")
    path.write_text("width,height\n" + "".join(f"{i}.5,{i % 7}.5\n" for i in range(30)))
    assert "has no known classes" in refused(capsys, *arguments)


def test_a_run_kept_in_the_database_goes_on_there(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert call("run", *FAST, "--budget", 3, "--keep") == 0
    assert "; run " in capsys.readouterr().out
    store = Store.open(home / "workbench.sqlite")
    (record,) = store.runs.all()
    assert record.status == "finished" and record.n_rounds == 4
    store.runs.end(record.id, "interrupted")
    assert call("run", *FAST, "--budget", 3, "--keep", "-q") == 0
    assert [r.id for r in store.runs.all()] == [record.id]
    store.close()


def assert_same(a: Path, b: Path) -> None:
    files = sorted(p.relative_to(a).as_posix() for p in a.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(b).as_posix() for p in b.rglob("*") if p.is_file())
    assert set(filecmp.cmpfiles(a, b, files, shallow=False)[1]) <= {"timings.csv", "environment.json"}


def killed(arguments: list[str], out: Path, after: int) -> None:
    """Start a run and kill its process while it looks for the next question at `after` labels."""
    running = subprocess.Popen(
        [sys.executable, "-m", "workbench", *arguments, "--out", str(out)],
        cwd=ROOT,
        env=dict(os.environ, PAUSE_AT=str(after)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdin is not None and running.stdout is not None
    with running.stdin, running.stdout:
        assert running.stdout.readline() == "paused\n"
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert not (out / "run.json").exists()
    assert (out / ".partial" / "rounds.jsonl").read_bytes().count(b"\n") > 1


def test_a_stopped_run_is_finished_by_the_same_command_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    arguments = ["run", *FAST[:-1], PAUSING, "--budget", "12", "--seed", "2"]
    assert call(*arguments, "--out", tmp_path / "a") == 0
    monkeypatch.setenv("PAUSE_AT", "8")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(readline=stop))
    assert call(*arguments, "--out", tmp_path / "b") == 130
    assert not (tmp_path / "b" / "run.json").exists()
    monkeypatch.undo()
    assert call(*arguments, "--out", tmp_path / "b") == 0
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow  # a process that is killed instead; studies/test_runner.py ends runs anywhere in this one
def test_a_killed_run_is_finished_by_the_same_command_with_the_same_bytes(tmp_path: Path) -> None:
    arguments = ["run", *FAST[:-1], PAUSING, "--budget", "12", "--seed", "2"]
    assert call(*arguments, "--out", tmp_path / "a") == 0
    killed(arguments, tmp_path / "b", after=8)
    done = process(*arguments, "--out", tmp_path / "b")
    assert done.returncode == 0 and done.stderr == ""
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow  # alone: a killed run of the default model goes on to the same bytes
def test_the_same_with_the_real_engine(tmp_path: Path) -> None:
    arguments = ["run", "--policy", PAUSING, "--budget", "12", "--seed", "1"]
    assert process(*arguments, "--out", tmp_path / "a").returncode == 0
    killed(arguments, tmp_path / "b", after=14)
    assert process(*arguments, "--out", tmp_path / "b").returncode == 0
    assert_same(tmp_path / "a", tmp_path / "b")


def test_the_bar_moves_where_colours_are_asked_for_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with runs._progress(2, quiet=False) as progress:
        progress.round(SimpleNamespace(n_labelled=5, error=0.1, n_test=30))  # type: ignore[arg-type]
    assert "5 labels" in capsys.readouterr().err
