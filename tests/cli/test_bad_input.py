"""Whatever is wrong with a command, a file or a place: one sentence on stderr, exit 2."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.calls import FAST, call, process, refused
from tests.sessions.fakes import FAKE
from workbench import cli
from workbench.cli.operands import print_table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--pool", "digitz"], "There is no pool called 'digitz'. Did you mean 'digits'?"),
        (["run", "--pool", "no/such.csv"], "There is no file 'no/such.csv'. Check the path"),
        (["run", "--policy", "variation"], "There is no policy called 'variation'."),
        (["run", "--policy", "nosuch:thing"], "Cannot import 'nosuch'"),
        (["run", "--policy", "json:nothing"], "Module 'json' has nothing called 'nothing'."),
        (["run", "--classifier", "large-margins"], "There is no classifier called"),
        (["run", "--set", "n_inducin=3"], "Classifier 'large-margin' has no option 'n_inducin'. It has: "),
        (["run", "--set", "n_inducing"], "--set takes key=value"),
        (["run", "--set", "a=1", "--set", "a=2"], "--set gives a twice."),
        (["run", "--pool-set", "noise=1"], "Pool 'digits' has no option 'noise'."),
        (
            ["run", "--pool", "three-gaussians", "--pool-set", "noise=nan"],
            "Pool 'three-gaussians' cannot be read so: 'noise' is 'nan': input should be a valid number.",
        ),
        (
            ["run", "--pool", "three-gaussians", "--pool-set", "seed=-1"],
            "Pool 'three-gaussians' cannot be read so: 'seed' is -1: input should be greater than or equal",
        ),
        (["log", "--count", "0"], "Invalid value for '--count'"),
        (["log", "--count", "99999999999999999999"], "Invalid value for '--count'"),
        (["audit", "x.csv", "--column", "a", "--count", "-1"], "Invalid value for '--count'"),
        (
            ["run", "--budget", "-1"],
            "Invalid value for '--budget': Input should be greater than or equal to 0",
        ),
        (["run", "--budget", "many"], "Invalid value for '--budget'"),
        (["run", "--seed", "-1"], "Invalid value for '--seed'"),
        (["new", "iris", "--seed", "-1"], "Invalid value for '--seed'"),
        (["run", "--pool", "~nosuch/x"], "Could not determine home directory. Write the path without ~."),
        (
            ["export", "nobody", "--format", "bundle", "--what", "finished"],
            "A bundle holds all that there is",
        ),
        (["run", "--batch", "0"], "Invalid value for '--batch'"),
        (
            ["run", "--test-fraction", "2"],
            "The run cannot be made: 'test_fraction' is 2.0: input should be less than 1",
        ),
        (["run", "--initial", "lots"], "Unknown initial labels 'lots'."),
        (["run", "--keep", "--out", "x"], "Give --out FOLDER or --keep, not both."),
        (
            ["run", "--classifier", "svm-platt", "--policy", "variation-ratio"],
            "variation-ratio needs latent functions",
        ),
        (["run", "--colour", "red"], "No such option: --colour"),
        (["dance"], "No such command 'dance'."),
        (["compare", "--seeds", "0"], "The comparison cannot be made: 'seeds' is 0: input should be greater"),
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
    assert refused(capsys, *arguments).startswith(message)


def test_the_end_of_what_is_typed_is_a_stop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_: object) -> int:
        raise EOFError

    monkeypatch.setattr(cli, "run", asked)
    assert call("audit") == cli.STOPPED
    assert capsys.readouterr().err.startswith("Stopped.")


def test_a_tab_in_a_name_makes_no_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "labels"), [("a\tb", 3)])
    assert capsys.readouterr().out == "name\tlabels\na b\t3\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"a,b,label\n", "header"),
        (b"a,b,label\n1,2,x\n", "a single row"),
        (b"a,b,label\n1,2,x\n1,2\n3,4,y\n5,6,x\n7,8,y\n", "line 3"),
        (b"a,b,label\n1,2,x\n3,4,x\n5,6,x\n", "class"),
        (b"a,b,label\n1,2,x\n3,,y\n5,6,x\n7,8,y\n", "Empty cells of 'b'"),
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
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit on the size of files stands for the disk: some files can be written, some cannot."""
    resource = pytest.importorskip("resource")
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "full"))
    command = ("run", *FAST, "--budget", 2, "--out", tmp_path / "out", "-q")

    @contextmanager
    def small() -> Iterator[None]:
        before, most = (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.getrlimit(resource.RLIMIT_FSIZE),
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
            signal.signal(signal.SIGXFSZ, before)

    with small():
        message = refused(capsys, "projects")
        code = call(*command)
    assert message.count("\n") == 1
    err = capsys.readouterr().err
    if limit == 0:
        assert code == 2 and ("Make room" in err or "cannot be written" in err)
    # with room again the same commands work: what was cut short does not stand in the way
    assert call(*command) == 0
    assert call("projects") == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_no_pool_and_a_pipe_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "Name a pool or a file" in refused(capsys, "run", *FAST[2:], "--pool", "", "--out", tmp_path / "a")
    pipe = ("--pool", tmp_path / "pipe.csv", "--out", tmp_path / "a")
    assert "a pipe or a device" in refused(capsys, "run", *FAST[2:], *pipe)


@pytest.mark.slow  # alone: TensorFlow prints nothing before a command's message
def test_a_message_is_the_first_line_even_after_the_engine_has_loaded(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "from workbench.errors import InputError\n"
        "def policy(belief, rng):\n    raise InputError('late message')\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))
    done = process("run", "--pool", "iris", "--policy", "late:policy", env=environment)
    # on a busy machine the first fit may be long enough to be spoken of
    said = [line for line in done.stderr.splitlines() if not line.startswith("This fit takes long")]
    assert (done.returncode, said) == (2, ["late message"])
