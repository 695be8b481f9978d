"""Help and version of the command line."""

import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from tests.cli.calls import ROOT, call
from workbench.cli.commands import COMMANDS, app
from workbench.cli.operands import parse_settings
from workbench.documents.runs import RunSettings
from workbench.errors import InputError
from workbench.store import Store
from workbench.work.companion import Companion, DiedError


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["pools"]], ids=" ".join)
def test_what_only_tells_loads_nothing(words: list[str]) -> None:
    code = (
        "import sys; from workbench import cli\n"
        f"try: cli.main({words})\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'rich', 'tensorflow', 'sklearn', 'sqlalchemy', 'streamlit'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout and len(done.stdout) > 500


def test_help_is_there_for_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    out = capsys.readouterr().out
    for command in ("app", "run", "compare", "predict", "score", "export", "import", "doctor"):
        assert f"  {command} " in out
    # each below the title of its group, in the groups' order
    expected = [word for title, group in COMMANDS.items() for word in (f"{title}:", *group)]
    lines = out[out.index(expected[0]) :].splitlines()
    assert [line if line.endswith(":") else line.split()[0] for line in lines if line] == expected


@pytest.mark.parametrize(
    "command",
    ["app", "run", "compare", "predict", "score", "export", "import", "projects", "pools", "doctor"],
)
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(command, "--help") == 0
    assert f"Usage: workbench {command}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["run", "compare"])
def test_settings_of_runs_are_options_of_both_commands(name: str) -> None:
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    options = {p.name: p for p in command.params}
    settings = [f for f in fields(RunSettings) if isinstance(f.default, str | int | float)]
    assert len(settings) == 8
    for setting in settings:
        option = options[setting.name]
        assert option.default == setting.default and option.opts == [f"--{setting.name.replace('_', '-')}"]
        assert option.help[:1].isupper() and option.help.endswith(".") and "Attributes" not in option.help


def test_an_option_is_a_switch_or_takes_a_value_in_all_commands() -> None:
    kinds: dict[str, set[bool]] = {}
    for command in get_command(app).commands.values():  # type: ignore[attr-defined]
        for option in (p for p in command.params if p.param_type_name == "option"):
            for name in (*option.opts, *option.secondary_opts):
                kinds.setdefault(name, set()).add(option.is_flag)
    assert len(kinds) > 50 and [name for name, flags in kinds.items() if len(flags) > 1] == []


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


@pytest.mark.slow  # alone: the fit of `workbench doctor`, in a process of its own
def test_doctor_fits_and_finds(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert call("doctor") == 0
    out = capsys.readouterr().out
    assert str(home) in out and "accuracy" in out and "tensorflow\t" in out
    Store.open().close()


def test_doctor_goes_on_where_the_fit_ends_its_process(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call_there(*_: object) -> None:
        raise DiedError("ended by signal 4")

    monkeypatch.setattr(Companion, "call", call_there)
    assert call("doctor") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "what\tfound\tverdict" and lines[-2].startswith("threads set\t")
    assert lines[-1] == "tiny fit\t-\tfailed: DiedError: ended by signal 4"


def test_doctor_goes_on_where_a_check_fails(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ImportError("numpy\nis broken")

    monkeypatch.setattr(Companion, "call", fail)
    monkeypatch.setattr("workbench.store.workbench_home", fail)
    assert call("doctor") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "data folder\t-\tfailed: ImportError: numpy is broken" in lines
    assert lines[-1] == "tiny fit\t-\tfailed: ImportError: numpy is broken"


def test_doctor_that_is_stopped_waits_for_no_fit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over, fits = threading.Event(), []

    def fit_until_over(*_: object) -> None:
        is_over.wait(30)
        fits.append("ended")

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Companion, "call", fit_until_over)
    monkeypatch.setattr("workbench.versions.version_of", stop)
    try:
        assert call("doctor") == 130
        assert not fits
    finally:
        is_over.set()


def test_doctor_sees_another_package_of_our_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.cli.doctor import _import_name

    assert _import_name()[1] == ""
    info = tmp_path / "bench_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-tools\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("workbench\n")
    other = tmp_path / "workbench-3.1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: workbench\nVersion: 3.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert _import_name() == (
        "bench-tools, workbench",
        "another package is imported by the same name: pip uninstall bench-tools workbench",
    )
