"""`python -m benchmarks.fresh`: how long a newcomer waits, part by part.

Clones what is committed and does what `make run` does, with its parts apart: download of the packages into an
empty cache, installation from there, start of the app, and the first picture on screen after *Start
labelling* of the digits is pressed, in a headless Chromium. `--tests` adds those of `make test`: what the
extra `dev` downloads and installs on top, and the tests. Wall times, for information: the network and what
else runs on the machine are in them.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.driving import PATIENCE, ROOT, chromium, visit

# what builds the editable package; pip fetches it into an environment of its own
BUILDER = "setuptools>=77,<82"


class Parts:
    """Seconds of each part, printed as they are known."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        begun = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begun
        print(f"{name:42s} {self.seconds[name]:7.1f} s", flush=True)


def called(arguments: Sequence[str | Path], where: Path, environment: dict[str, str]) -> None:
    """Run a command.

    Raises:
        RuntimeError: it failed; its last words.
    """
    done = subprocess.run(
        [str(a) for a in arguments], cwd=where, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{arguments[0]}: {(done.stdout + done.stderr).strip()[-800:]}")


def packages(parts: Parts, clone: Path, lock: str, stamp: str, environment: dict[str, str]) -> None:
    """Download what a lock names, then let make install it without the network."""
    wheels = clone.parent / "wheels"
    python = clone / ".venv" / "bin" / "python"
    with parts.part(f"download ({lock})"):
        called(
            [
                python,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-cache-dir",
                "--no-deps",
                "-r",
                lock,
                "-d",
                wheels,
                BUILDER,
                "wheel",
            ],
            clone,
            environment,
        )
    with parts.part(f"install ({lock})"):
        offline = environment | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_NO_CACHE_DIR": "1"}
        called(["make", f".venv/{stamp}.stamp"], clone, offline)


def started(clone: Path, environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], str]:
    """`make run` until the server answers; the process and its address.

    Raises:
        RuntimeError: it ended, or does not answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = subprocess.Popen(
        ["make", "run", f"ARGS=--no-browser --port {port}"],
        cwd=clone,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and app.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
                return app, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.05)
    ended(app)
    raise RuntimeError("make run does not answer")


def ended(app: subprocess.Popen[bytes]) -> None:
    """End make and what it started."""
    if app.poll() is None:
        os.killpg(app.pid, signal.SIGTERM)
        app.wait()


def main(arguments: Sequence[str] = ()) -> int:
    """Print a line a part and the sum.

    Returns:
        0 when everything worked.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fresh")
    parser.add_argument("--tests", action="store_true", help="make test, too")
    options = parser.parse_args(list(arguments))
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )
    kept_out = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "WORKBENCH_DATABASE_URL")
    environment = {k: v for k, v in os.environ.items() if k not in kept_out}
    with tempfile.TemporaryDirectory(prefix="workbench-fresh-") as folder:
        place = Path(folder)
        environment |= {"WORKBENCH_HOME": str(place / "home"), "WORKBENCH_FEATURES": str(place / "features")}
        clone, run = place / "clone", Parts()
        with run.part("clone"):
            called(["git", "clone", "--quiet", ROOT.as_uri(), clone], place, environment)
        with run.part("environment"):
            called(["make", ".venv/bin/python"], clone, environment)
        packages(run, clone, "requirements.lock", "run", environment)
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(PATIENCE)
            with run.part("start, until the server answers"):
                app, address = started(clone, environment)
            try:
                with run.part("first page"):
                    visit(page, address)
                with run.part("first picture, after Start labelling"):
                    page.click(".st-key-start-digits button")
                    page.locator(".desk .stage img").first.evaluate("picture => picture.decode()")
            finally:
                ended(app)
        print(f"{'make run to the first picture':42s} {sum(run.seconds.values()):7.1f} s")
        if options.tests:
            tests = Parts()
            packages(tests, clone, "requirements-dev.lock", "dev", environment)
            with tests.part("the tests"):
                called(["make", "test"], clone, environment)
            print(f"{'make test after make run':42s} {sum(tests.seconds.values()):7.1f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
