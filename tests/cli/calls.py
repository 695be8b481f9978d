"""Commands of tests, in this process or in one of its own, and what they print."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions.fakes import FAKE
from workbench import cli

ROOT = Path(__file__).resolve().parents[2]
FAST = ["--pool", "iris", "--classifier", FAKE, "--policy", "margin"]


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(a) for a in arguments])
    return int(ended.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The message of a call that must be refused: alone on stderr, exit 2."""
    assert call(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err and "│" not in err, err
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
