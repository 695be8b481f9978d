"""Messages of `make run` where it cannot go on: the cause, and what to do."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def checkout() -> Iterator[Path]:
    """Folders that make looks at, where another user may enter as well."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
            shutil.copy(ROOT / name, place / name)
        yield place


def program(path: Path, body: str) -> Path:
    """A stand-in for an interpreter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def environment() -> dict[str, str]:
    """Ours without what a make around these tests hands on: its flags, and what was set for it."""
    settable = re.findall(r"^(\w+) *[:?]?=", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return {
        k: v
        for k, v in os.environ.items()
        if k not in settable and not re.fullmatch(r"(GNU)?MAKE\w*|MFLAGS", k)
    }


def said(checkout: Path, *arguments: str, user: int | None = None) -> str:
    """Messages of `make run` as it fails."""
    done = subprocess.run(
        ["make", "run", *arguments],
        cwd=checkout,
        capture_output=True,
        text=True,
        user=user,
        timeout=800,
        env=environment(),
    )
    assert done.returncode, done.stdout
    return done.stderr


def test_no_python_or_a_wrong_one_is_told(checkout: Path) -> None:
    assert "needs Python 3.11, 3.12 or 3.13 and found none" in said(checkout, "PYTHONS=python0.0")
    old = program(checkout / "python3.9", "exit 1")
    assert f"{old} is not Python 3.11, 3.12 or 3.13" in said(checkout, f"PYTHON={old}")
    assert not (checkout / ".venv").exists()


def test_a_folder_that_cannot_be_written_is_told(checkout: Path) -> None:
    good = program(checkout / "python3.12", "exit 0")
    checkout.chmod(0o555)
    words = said(checkout, f"PYTHON={good}", user=NOBODY if os.geteuid() == 0 else None)
    checkout.chmod(0o755)
    assert (
        f"cannot be written to, and the environment of Workbench would lie in it: {checkout}/.venv" in words
    )
    assert "Copy or clone it" in words


def test_an_environment_of_another_python_is_told(checkout: Path) -> None:
    program(
        checkout / ".venv" / "bin" / "python",
        'case "$1" in -V) echo Python 3.9.18;; *) test "$2" = "";; esac',
    )
    words = said(checkout)
    assert "The folder .venv holds Python 3.9.18" in words and "make clean" in words


def test_an_installation_that_fails_names_the_ways_round(checkout: Path) -> None:
    program(checkout / ".venv" / "bin" / "python", 'case "$*" in *pip*) echo no route >&2; exit 1;; esac')
    words = said(checkout)
    assert "no route" in words and "HTTPS_PROXY" in words and "PIP_NO_INDEX=1" in words
    assert not (checkout / ".venv" / "run.stamp").exists()


def test_an_installation_resolves_nothing(checkout: Path) -> None:
    # what GPflow asks for on Apple silicon has no version that goes with ours
    calls = checkout / "calls"
    program(checkout / ".venv" / "bin" / "python", f'echo "$*" >> {calls}')
    for goal, lock in (("run", "requirements.lock"), (".venv/dev.stamp", "requirements-dev.lock")):
        calls.unlink(missing_ok=True)
        subprocess.run(["make", goal], cwd=checkout, check=True, capture_output=True, env=environment())
        installed = [line for line in calls.read_text(encoding="utf-8").splitlines() if " install " in line]
        assert len(installed) == 1 and "--no-deps" in installed[0] and installed[0].endswith(f"-r {lock}")


def test_the_flags_of_a_make_around_the_tests_stay_outside(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", " -- PYTHONS=python0.0 ARGS=-x")
    for name in ("PYTHON", "ARGS", "PIP", "GNUMAKEFLAGS"):  # what stands on the command line of a make
        monkeypatch.setenv(name, "--no-such")
    program(checkout / ".venv" / "bin" / "python", 'case "$*" in *pip*) echo no route >&2; exit 1;; esac')
    assert "no route" in said(checkout)


def test_what_was_installed_for_a_python_that_is_gone_or_another_place_is_installed_again(
    checkout: Path,
) -> None:
    calls = checkout / "calls"
    makes = 'mkdir -p .venv/bin; cp "$0" .venv/bin/python'
    program(checkout / "python3.12", f'echo "$*" >> {calls}; case "$*" in *venv*) {makes};; esac')

    def run() -> list[str]:
        calls.write_text("", encoding="utf-8")
        command = ["make", "run", "PYTHON=./python3.12"]
        subprocess.run(command, cwd=checkout, check=True, capture_output=True, env=environment())
        return [line for line in calls.read_text(encoding="utf-8").splitlines() if not line.startswith("-c ")]

    made = ["-m venv --clear .venv", "-m pip --disable-pip-version-check install", "-m workbench app"]
    assert [line[: len(m)] for line, m in zip(run(), made, strict=True)] == made
    assert run() == ["-m workbench app"]
    shutil.rmtree(checkout / ".venv" / "bin")
    assert len(run()) == 3
    (checkout / ".venv" / "run.stamp").write_text("/another/place\n", encoding="utf-8")
    assert len(run()) == 2
    assert run() == ["-m workbench app"]
