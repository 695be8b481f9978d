"""The end of the program: Ctrl-C and a closed pipe."""

import subprocess
import sys

import pytest

from workbench.cli import main


def test_ctrl_c_is_130_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.cli.runs.list_experiments", pressed)
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "--list"])
    assert ended.value.code == 130 and capsys.readouterr().err.startswith("Stopped. What was kept")


def test_a_reader_of_a_pipe_that_has_seen_enough_is_no_fault() -> None:
    command = [sys.executable, "-c", "from workbench.cli import main; main(['pools'])"]  # loads nothing
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 0
