"""The command line as people meet it: what it prints, where, and with which exit code."""

import csv
import filecmp
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pools.test_images import zipped
from tests.pools.test_shapes import photos
from tests.sessions.fakes import FAKE, PAUSING
from workbench import cli
from workbench.app import uploads
from workbench.cli.values import parse_settings
from workbench.errors import InputError
from workbench.sessions import Session
from workbench.store import Store

ROOT = Path(__file__).resolve().parents[1]
FAST = ["--pool", "iris", "--classifier", FAKE, "--policy", "margin"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WORKBENCH_DATABASE_URL", raising=False)
    monkeypatch.delenv("WORKBENCH_DEBUG", raising=False)
    return tmp_path / "home"


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(a) for a in arguments])
    return int(ended.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The message of a call that must be refused: alone on stderr, exit 2."""
    assert call(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err and "│" not in err
    return err


def process(*arguments: object, **more: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "workbench", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        **more,  # type: ignore[call-overload]
    )


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# --- help and lists ---------------------------------------------------------------------------


def test_help_is_there_for_every_command_and_loads_nothing() -> None:
    code = (
        "import sys; from workbench import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'tensorflow', 'sklearn', 'sqlalchemy', 'streamlit'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout
    for command in ("app", "run", "compare", "predict", "score", "export", "import", "doctor"):
        assert f"  {command} " in done.stdout


@pytest.mark.parametrize(
    "command",
    ["app", "run", "compare", "predict", "score", "export", "import", "projects", "pools", "doctor"],
)
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(command, "--help") == 0
    assert f"Usage: workbench {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["pools"], ["digits", "three-gaussians"]),
        (["pools", "iris"], ["setosa 50, versicolor 50, virginica 50"]),
        (["classifiers"], ["large-margin", "logistic-softmax"]),
        (["classifiers", "large-margin"], ["n_inducing", "Large-margin GP"]),
        (["policies"], ["variation-ratio", "entropy-of-means", "k-means"]),
        (["projects"], ["id\tname\tpool"]),
        (["--version"], ["0."]),
    ],
)
def test_lists(command: list[str], names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*command) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in names)


def test_without_a_command_the_app_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.app import server

    served: list[tuple[object, ...]] = []

    def serve(address: str, port: int, **more: object) -> None:
        served.append((address, port, more["open_browser"], more["max_upload_mb"], more["share"]))

    monkeypatch.setattr(server, "serve", serve)
    assert call() == 0
    assert (
        call(
            "app", "--port", "9000", "--address", "0.0.0.0", "--no-browser", "--max-upload-mb", "5", "--share"
        )
        == 0
    )
    assert served == [("127.0.0.1", 8501, True, None, False), ("0.0.0.0", 9000, False, 5, True)]


# --- run --------------------------------------------------------------------------------------


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
    assert "'nothing'" in refused(capsys, *arguments, "--target", "nothing")
    path.write_text("width,height\n" + "".join(f"{i},{i % 7}\n" for i in range(30)))
    assert "has no known classes" in refused(capsys, *arguments)


def test_a_run_kept_in_the_database_goes_on_there(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert call("run", *FAST, "--budget", 3, "--keep") == 0
    assert "; run " in capsys.readouterr().out
    store = Store.open(home / "workbench.sqlite")
    (record,) = store.runs()
    assert record.status == "finished" and record.n_rounds == 4
    store.end_run(record.id, "interrupted")
    assert call("run", *FAST, "--budget", 3, "--keep", "-q") == 0
    assert [r.id for r in store.runs()] == [record.id]
    store.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--pool", "digitz"], "There is no pool called 'digitz'. Did you mean 'digits'?"),
        (["run", "--pool", "no/such.csv"], "There is no file"),
        (["run", "--policy", "variation"], "There is no policy called 'variation'."),
        (["run", "--policy", "nosuch:thing"], "Cannot import 'nosuch'"),
        (["run", "--policy", "json:nothing"], "Module 'json' has nothing called 'nothing'."),
        (["run", "--classifier", "large-margins"], "There is no classifier called"),
        (["run", "--set", "n_inducin=3"], "Classifier 'large-margin' has no option 'n_inducin'. It has: "),
        (["run", "--set", "n_inducing"], "--set takes key=value"),
        (["run", "--set", "a=1", "--set", "a=2"], "--set gives a twice."),
        (["run", "--pool-set", "noise=1"], "Pool 'digits' has no option 'noise'."),
        (["run", "--budget", "-1"], "The budget must not be negative; got -1."),
        (["run", "--budget", "many"], "Invalid value for '--budget'"),
        (["run", "--batch", "0"], "The batch must be at least 1; got 0."),
        (["run", "--test-fraction", "2"], "The test fraction must lie between 0 and 1; got 2.0."),
        (["run", "--initial", "lots"], "Unknown initial labels 'lots'."),
        (["run", "--keep", "--out", "x"], "Give --out FOLDER or --keep, not both."),
        (
            ["run", "--classifier", "svm-platt", "--policy", "variation-ratio"],
            "variation-ratio needs latent functions",
        ),
        (["run", "--colour", "red"], "No such option: --colour"),
        (["dance"], "No such command 'dance'."),
        (["compare", "--seeds", "0"], "A comparison needs at least one seed; got 0."),
        (["compare", "--policy", "random", "--policy", "random"], "A policy is named twice"),
        (["predict", "x.csv", "--model", "nowhere"], "There is no saved model in nowhere"),
        (["predict", "x.csv"], "Missing option '--model'"),
        (["score", "--pool", "iris", "--model", "nowhere"], "There is no saved model in nowhere"),
        (["export", "nobody"], "There is no project 'nobody'. There are: none yet."),
        (["import", "nobody", "x.csv"], "There is no project 'nobody'."),
        (["pools", "nope"], "There is no pool called 'nope'."),
        (["classifiers", "nope"], "There is no classifier called 'nope'."),
    ],
)
def test_bad_input_is_one_message_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, *arguments).startswith(message) or message in ("There is no file",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"a,b,label\n", "header"),
        (b"a,b,label\n1,2,x\n", "a single row"),
        (b"a,b,label\n1,2,x\n1,2\n3,4,y\n5,6,x\n7,8,y\n", "line 3"),
        (b"a,b,label\n1,\xff,x\n3,4,y\n", "UTF-8"),
        (b"a,b,label\n1,2,x\n3,4,x\n5,6,x\n", "class"),
        (b"a,b,label\n1,2,x\n3,,y\n5,6,x\n7,8,y\n", "empty"),
        (b"a,b,label\n1,2,x\n3,nan,y\n5,inf,x\n7,8,y\n", "'b'"),
        (b"a,b,label\n1,2,x\n3,oops,y\n5,6,x\n7,8,y\n", "'b'"),
    ],
)
def test_bad_files_are_explained(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    said = refused(
        capsys, "run", "--pool", path, "--target", "label", "--classifier", FAKE, "--policy", "margin"
    )
    assert re.search(message, said), said


def test_what_should_not_happen_is_told_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("def policy(belief, rng):\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    arguments = ["run", "--pool", "iris", "--classifier", FAKE, "--policy", "broken:policy"]
    assert call(*arguments) == 1
    err = capsys.readouterr().err
    assert err == "ZeroDivisionError: division by zero (WORKBENCH_DEBUG=1 shows where.)\n"
    monkeypatch.setenv("WORKBENCH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(arguments)


def test_threads_must_be_a_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_THREADS", "all")
    assert "WORKBENCH_THREADS must be a number of threads" in refused(capsys, "policies")


def test_values_of_settings() -> None:
    given = ["a=1", "b=-.5", "c=1e-3", "d=true", "e=None", "f=[1, 2]", 'g="1"', "h=x=y", "with-dash=z", "i="]
    assert parse_settings(given) == {
        "a": 1,
        "b": -0.5,
        "c": 0.001,
        "d": True,
        "e": None,
        "f": [1, 2],
        "g": "1",
        "h": "x=y",
        "with_dash": "z",
        "i": "",
    }
    for wrong in (["a"], ["=1"], ["a b=1"], ["a=[1"]):
        with pytest.raises(InputError):
            parse_settings(wrong)


# --- places that cannot be used ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://u@h:notaport/x", "cannot be read.*postgresql://user@host:5432"),
        ("notaurl:x", "'notaurl:x' is no address of a database"),
        ("postgres://h/x", "names 'postgres'. Write postgresql:// in full"),
        ("postgres://", "names 'postgres'"),
        ("mysql://h/x", "SQLite or PostgreSQL"),
        ("sqlite://", "Give the SQLite database a file"),
    ],
)
def test_an_address_that_is_no_database_is_one_sentence(
    url: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", url)
    message = refused(capsys, "projects")
    assert re.search(says, message) and message.count("\n") == 1
    assert not list(tmp_path.glob("*:*")), "nothing was made in the present folder"


@pytest.mark.parametrize("home_is", ["a file", "below a file"])
def test_a_home_that_cannot_be_is_one_sentence(
    home_is: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    place = tmp_path / "taken" if home_is == "a file" else tmp_path / "taken" / "home"
    monkeypatch.setenv("WORKBENCH_HOME", str(place))
    assert "cannot be made or written" in refused(capsys, "projects")


@pytest.mark.parametrize("limit", [0, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_full_disk_is_one_sentence_and_nothing_half_is_left(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files stands for the disk: some files can be written, some cannot."""
    resource = pytest.importorskip("resource")

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    home = dict(os.environ, WORKBENCH_HOME=str(tmp_path / "full"))
    listed = process("projects", env=home, preexec_fn=small)
    assert listed.returncode == 2 and "Traceback" not in listed.stderr, listed.stderr
    assert listed.stderr.count("\n") == 1
    ran = process("run", *FAST, "--budget", 2, "--out", tmp_path / "out", "-q", preexec_fn=small)
    if limit == 0:
        assert ran.returncode == 2 and ("Make room" in ran.stderr or "cannot be written" in ran.stderr)
    # with room again the same commands work: what was cut short does not stand in the way
    assert call("run", *FAST, "--budget", 2, "--out", tmp_path / "out", "-q") == 0
    monkeypatch.setenv("WORKBENCH_HOME", home["WORKBENCH_HOME"])
    assert call("projects") == 0


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_study_that_is_no_file_is_not_waited_for(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "study"
    os.mkfifo(place) if where == "file" else place.mkdir()
    assert "a file of a few lines" in refused(capsys, "compare", "--study", place)


# --- killed, resumed, repeated ----------------------------------------------------------------


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


def test_a_killed_run_is_finished_by_the_same_command_with_the_same_bytes(tmp_path: Path) -> None:
    arguments = ["run", *FAST[:-1], PAUSING, "--budget", "12", "--seed", "2"]
    assert process(*arguments, "--out", tmp_path / "a").returncode == 0
    killed(arguments, tmp_path / "b", after=8)
    done = process(*arguments, "--out", tmp_path / "b")
    assert done.returncode == 0 and done.stderr == ""
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
def test_the_same_with_the_real_engine(tmp_path: Path) -> None:
    arguments = ["run", "--policy", PAUSING, "--budget", "25", "--seed", "1"]
    assert process(*arguments, "--out", tmp_path / "a").returncode == 0
    assert process(*arguments, "--out", tmp_path / "again").returncode == 0
    killed(arguments, tmp_path / "b", after=20)
    assert process(*arguments, "--out", tmp_path / "b").returncode == 0
    assert_same(tmp_path / "a", tmp_path / "again")
    assert_same(tmp_path / "a", tmp_path / "b")


def test_a_message_is_the_first_line_even_after_the_engine_has_loaded(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "from workbench.errors import InputError\n"
        "def policy(belief, rng):\n    raise InputError('late message')\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))
    done = process("run", "--pool", "iris", "--policy", "late:policy", env=environment)
    assert (done.returncode, done.stderr) == (2, "late message\n")


# --- compare, predict, score, export, import, doctor --------------------------------------------


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


def test_predict_and_score_by_a_saved_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.pools import load_pool

    out = tmp_path / "a"
    assert call("run", *FAST, "--budget", "20", "--out", out, "-q") == 0
    capsys.readouterr()
    iris = load_pool("iris")
    assert iris.truth is not None
    rows = tmp_path / "rows.csv"
    names = iris.feature_map.columns
    rows.write_text(
        ",".join(("extra", *names))
        + "\n"
        + "".join("x," + ",".join(map(str, r)) + "\n" for r in iris.features)
    )
    assert call("predict", rows, "--model", out, "--probabilities") == 0
    told = table(capsys.readouterr().out)
    right = np.mean([t["prediction"] == iris.classes[c] for t, c in zip(told, iris.truth, strict=True)])
    assert right > 0.85
    assert all(float(t["confidence"]) == max(float(t[f"p({c})"]) for c in iris.classes) for t in told)
    np.save(tmp_path / "rows.npy", iris.features)
    np.savez(tmp_path / "rows.npz", X=iris.features)
    for file in ("rows.npy", "rows.npz"):
        assert call("predict", tmp_path / file, "--model", out / "model", "--out", tmp_path / "p.csv") == 0
        same = table((tmp_path / "p.csv").read_text())
        assert [s["prediction"] for s in same] == [t["prediction"] for t in told]
    capsys.readouterr()
    rows.write_text("a,b\n1,2\n")
    assert "lack" in refused(capsys, "predict", rows, "--model", out)
    assert "no file" in refused(capsys, "predict", tmp_path / "none.csv", "--model", out)

    labelled = {int(e["item"]) for e in table((out / "events.csv").read_text())}
    assert call("score", "--pool", "iris", "--model", out, "--top", "8", "--policy", "margin") == 0
    best = table(capsys.readouterr().out)
    assert [int(b["rank"]) for b in best] == list(range(1, 9))
    assert not labelled & {int(b["row"]) for b in best}
    utilities = [float(b["utility"]) for b in best]
    assert utilities == sorted(utilities, reverse=True)
    assert (
        call("score", "--pool", tmp_path / "rows.npy", "--model", out, "--policy", "margin", "--top", "3")
        == 0
    )
    assert len(table(capsys.readouterr().out)) == 3
    assert "no policy" in refused(capsys, "score", "--pool", "iris", "--model", out, "--policy", "nope")


def test_photos_of_any_sizes_are_run_predicted_and_scored_by_their_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bars.zip").write_bytes(zipped(photos(40)))
    assert call("run", "--pool", "bars.zip", *FAST[2:], "--budget", "12", "--out", "out", "-q") == 0
    capsys.readouterr()
    assert json.loads(Path("out/run.json").read_text())["spec"]["pool_options"] == {"features": "shapes"}
    assert call("predict", "bars.zip", "--model", "out") == 0
    predicted = [row["prediction"] for row in table(capsys.readouterr().out)]
    truth = [path.split("/")[0] for path in sorted(photos(40))]
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) > 0.85
    assert call("score", "--pool", "bars.zip", "--model", "out", "--top", "5") == 0
    assert len(table(capsys.readouterr().out)) == 5
    message = refused(capsys, "run", "--pool", "bars.zip", "--pool-set", "features=pixels", *FAST[2:])
    assert "mixes" in message


def test_run_predict_and_score_agree_on_what_a_file_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    images = np.clip(rng.normal(80 + 90 * y[:, None, None], 10, size=(60, 3, 3)), 0, 255).astype(np.uint8)
    X = rng.normal(3.0 * y[:, None], 1, size=(60, 2))
    np.savez("rows.npz", features=-X, X=X, y=y)
    np.savez("images.npz", images=images, y=y)
    for name in ("rows", "images"):
        file, run = f"{name}.npz", f"run-{name}"
        assert call("run", "--pool", file, *FAST[2:], "--budget", "10", "--out", run, "-q") == 0
        capsys.readouterr()
        assert call("predict", file, "--model", run) == 0
        predicted = table(capsys.readouterr().out)
        assert np.mean([int(row["prediction"]) == code for row, code in zip(predicted, y, strict=True)]) > 0.9
        assert (
            call("score", "--pool", file, "--model", run, "--policy", "least-confident", "--top", "40") == 0
        )
        best = table(capsys.readouterr().out)
        confidence = [float(predicted[int(row["row"])]["confidence"]) for row in best]
        np.testing.assert_allclose([1 - float(row["utility"]) for row in best], confidence, atol=1e-5)
    (tmp_path / "iris").mkdir()
    assert call("run", "--pool", "iris", *FAST[2:], "--budget", "8", "--out", "run-iris", "-q") == 0
    capsys.readouterr()
    assert call("score", "--pool", "iris", "--model", "run-iris", "--policy", "margin", "--top", "3") == 0
    out, err = capsys.readouterr()
    assert len(table(out)) == 3 and "./iris is what lies here" in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_no_pool_and_a_pipe_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "Name a pool or a file" in refused(capsys, "run", *FAST[2:], "--pool", "", "--out", tmp_path / "a")
    pipe = ("--pool", tmp_path / "pipe.csv", "--out", tmp_path / "a")
    assert "a pipe or a device" in refused(capsys, "run", *FAST[2:], *pipe)


def test_a_project_is_started_for_people_with_items_that_several_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(40)))
    options = (
        "--name",
        "Rows",
        "--class",
        "good",
        "--class",
        "bad",
        "--classifier",
        FAKE,
        "--policy",
        "margin",
    )
    assert call("new", tmp_path / "rows.csv", *options, "--overlap", "0.25", "--people", "3") == 0
    (record,) = Store.open().projects()
    assert capsys.readouterr().out == f"Rows: 40 items, 2 classes, project {record.id}\n"
    made = Session.open(record.id)
    assert made.settings["overlap"] == {"share": 0.25, "people": 3} and made.classes == ("good", "bad")
    assert "at least two" in refused(
        capsys, "new", tmp_path / "rows.csv", "--overlap", "0.5", "--people", "1"
    )
    assert "nothing.csv" in refused(capsys, "new", "nothing.csv")


def test_export_and_import(tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path) -> None:
    session = Session.create("iris", name="flowers", classifier=FAKE, policy="margin", annotator="ann")
    items = session.pool.trainable[:4].tolist()
    for item, name in zip(items, ("setosa", "virginica", "setosa", "versicolor"), strict=True):
        session.label_item(item, name)
    assert call("export", "flowers") == 0
    text = capsys.readouterr().out
    assert [r["label"] for r in table(text)] == ["setosa", "virginica", "setosa", "versicolor"]
    for format in ("parquet", "jsonl", "npz", "label-studio", "huggingface"):
        assert call("export", session.id, "--format", format, "--out", tmp_path / "deep" / f"x.{format}") == 0
        assert (tmp_path / "deep" / f"x.{format}").stat().st_size > 0
    assert call("export", session.id, "--format", "bundle", "--out", tmp_path / "bundle") == 0
    assert json.loads((tmp_path / "bundle" / "run.json").read_text())["name"] == "flowers"
    capsys.readouterr()
    assert "--out" in refused(capsys, "export", session.id, "--format", "npz")
    assert "no format 'xml'" in refused(capsys, "export", session.id, "--format", "xml")
    assert "is there already" in refused(
        capsys, "export", session.id, "--format", "bundle", "--out", tmp_path
    )

    other = Session.create("iris", name="again", classifier=FAKE, policy="margin", annotator="ann")
    (tmp_path / "labels.csv").write_text(text)
    assert call("import", "again", tmp_path / "labels.csv") == 0
    assert "4 labels read, 4 items newly labelled, 4 in all" in capsys.readouterr().out
    assert other.state.labels == session.state.labels
    (tmp_path / "labels.csv").write_text("id,label\n99999,x\n")
    assert "has no item 99999" in refused(capsys, "import", "again", tmp_path / "labels.csv")
    assert "--format" in refused(capsys, "import", "again", tmp_path / "labels.json")
    Session.create("iris", name="again", classifier=FAKE, policy="margin", annotator="ann")
    assert "2 projects are called 'again'; give the id" in refused(capsys, "export", "again")
    Store.open().close()


def test_a_pool_that_changed_is_named_and_its_labels_are_exported_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.csv"
    rows = [f"{i},{i * i}" for i in range(30)]
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    session = Session.create(
        str(path), name="mine", classifier=FAKE, policy="margin", classes=["x", "y"], annotator="ann"
    )
    session.label_item(3, "x")
    rows.append("77,78")
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    assert call("export", "mine") == 0
    assert len(table(capsys.readouterr().out)) == 1
    rows[5] = "5,99"
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    assert call("export", "mine") == 0
    labels, message = capsys.readouterr()
    assert [row["label"] for row in table(labels)] == ["x"]
    assert "is not the one this project was made from" in message and "1 changed (5)" in message
    assert session.state.labels == {3: "x"}
    Store.open().close()


def test_doctor_fits_and_finds(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert call("doctor") == 0
    out = capsys.readouterr().out
    assert str(home) in out and "accuracy" in out and "tensorflow\t" in out
    Store.open().close()


# --- the figure the issue asks for --------------------------------------------------------------


@pytest.mark.slow
def test_variation_ratio_beats_random_on_digits(tmp_path: Path) -> None:
    """10 seeds, 10 + 60 labels: mean error at most .085, and below random's on at least 8."""
    from workbench.studies import StudySpec, run

    last: dict[tuple[str, int], float] = {}
    for spec in StudySpec("digits", policies=("variation-ratio", "random"), seeds=10).runs():
        last[spec.policy, spec.seed] = run(spec).rounds[-1].error
    ours = np.asarray([last["variation-ratio", s] for s in range(10)])
    random = np.asarray([last["random", s] for s in range(10)])
    print(f"variation ratio {ours.mean():.4f}, random {random.mean():.4f}, better on {(ours < random).sum()}")
    assert ours.mean() <= 0.085
    assert (ours < random).sum() >= 8


def test_access_shows_and_changes_whose_a_project_is(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    store = Store.open()
    session = Session.create("iris", name="petals", classifier=FAKE, policy="margin", annotator="ann")
    assert call("access", "petals") == 0
    assert capsys.readouterr().out == f"petals ({session.id}): open, of nobody\n"
    assert "belongs to nobody" in refused(capsys, "access", "petals", "private")
    assert "Nobody called 'Ann' has logged in; there are: nobody yet" in refused(
        capsys, "access", "petals", "--owner", "Ann"
    )
    store.known_as("id 1", "Ann")
    store.known_as("id 2", "Bob")
    assert call("access", "petals", "private", "--owner", "Ann") == 0
    assert "private, of Ann\n" in capsys.readouterr().out
    assert call("access", session.id, "--with", "Bob") == 0
    assert "shared, of Ann, with Bob\n" in capsys.readouterr().out
    found = store.summary(session.id)
    assert found is not None and (found.owner, found.members) == ("id 1", ("id 2",))
    assert "private, shared or open" in refused(capsys, "access", "petals", "secret")
    store.close()


def test_a_backup_holds_what_was_uploaded_and_projects_find_it_in_another_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = uploads.keep("mine.csv", b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(40)))
    session = Session.create(str(path), name="kept", classes=["x", "y"], classifier=FAKE, policy="margin")
    session.label_item(int(session.pool.trainable[0]), "x")
    (path.parent / "tmphalf").write_bytes(b"a,b\n")
    assert call("backup", tmp_path / "copy.sqlite") == 0
    assert "and 1 uploaded file(s)" in capsys.readouterr().out
    Store.open().close()
    home.rename(tmp_path / "gone")
    new = tmp_path / "elsewhere"
    monkeypatch.setenv("WORKBENCH_HOME", str(new))
    assert call("restore", tmp_path / "copy.sqlite") == 0
    again = Session.open(session.id)
    assert again.state.n_labelled == 1 and str(again.project.pool["name"]).startswith(str(new))
    assert [p.name for p in new.glob("uploads/*/*")] == ["mine.csv"]
    assert (new / "uploads").stat().st_mode & 0o077 == 0
    names = sqlite3.connect(new / "workbench.sqlite").execute("SELECT name FROM sqlite_master").fetchall()
    assert not [name for (name,) in names if "pool_files" in name]
    Store.open().close()


@pytest.mark.parametrize(
    ("column", "value"), [("data", b"other"), ("name", "../../evil"), ("folder", "/tmp"), ("name", "..")]
)
def test_a_file_in_a_damaged_copy_is_written_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path, column: str, value: Any
) -> None:
    uploads.keep("mine.csv", b"a,b\n1,2\n")
    assert call("backup", tmp_path / "copy.sqlite") == 0
    capsys.readouterr()
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        copy.execute(f"UPDATE pool_files SET {column} = ?", (value,))
        copy.commit()
    shutil.rmtree(home / "uploads")
    assert "a pool's file in it is not what was put there" in refused(
        capsys, "restore", tmp_path / "copy.sqlite"
    )
    assert not (home / "uploads").exists()
    Store.open().close()


def test_backup_and_restore_bring_projects_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.create("iris", name="kept", classifier=FAKE, policy="margin", annotator="ann")
    session.label_item(int(session.pool.trainable[0]), "setosa")
    assert call("backup", tmp_path / "copy.sqlite") == 0
    assert str(tmp_path / "copy.sqlite") in capsys.readouterr().out
    assert "is there already" in refused(capsys, "backup", tmp_path / "copy.sqlite")
    Store.open().close()
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "elsewhere"))
    assert call("restore", tmp_path / "copy.sqlite") == 0
    assert "Restored" in capsys.readouterr().out
    assert Session.open(session.id).state.n_labelled == 1
    assert "--replace" in refused(capsys, "restore", tmp_path / "copy.sqlite")
    assert call("restore", tmp_path / "copy.sqlite", "--replace") == 0
    assert "What was there before" in capsys.readouterr().out
    Store.open().close()
