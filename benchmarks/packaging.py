"""The built package, installed elsewhere: what a stranger gets.

`python -m benchmarks.packaging` builds wheel and sdist and installs them outside the checkout the way pip,
pipx and uv do; in each place `workbench doctor` passes, a run finishes and the app answers. `--platforms`
asks first whether every platform and Python has wheels of everything that `make run` installs.
`--styles pip,sdist,pipx,uv`, `--pythons 3.11,3.13` and `--dependencies locked,oldest,newest` choose;
a style may name its own Python (`uv@3.13`), and `--jobs 2` installs two at a time.
`--tests [PATH ...]` adds numeric tests of the checkout against each installation. Times are wall times, for
information.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STYLES = ("pip", "sdist", "pipx", "uv")
RUN = ("run", "--pool", "digits", "--policy", "margin", "--budget", "5", "--seed", "0", "--out", "run")
# as uv names them; an Intel Mac has no TensorFlow of this version
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
SUPPORTED = ("3.11", "3.12", "3.13")
SHOWN = ("numpy", "tensorflow", "gpflow", "streamlit", "pandas", "scikit-learn", "sqlalchemy")
TESTERS = ("pytest>=8.4", "pytest-timeout>=2.4", "hypothesis>=6.130")
# what answers within a few minutes and does not need a browser
TESTS = ("tests/metrics", "tests/policies", "tests/exchange", "tests/store")


@dataclass
class Tried:
    """One installation and what became of it."""

    style: str
    python: str
    dependencies: str
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    skipped: str = ""

    def row(self) -> str:
        """A line of the table in Markdown."""
        parts = ", ".join(f"{name} {spent:.0f} s" for name, spent in self.seconds.items())
        shown = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        end = self.failed or self.skipped or "works"
        return f"| {self.style} | {self.python} | {self.dependencies} | {shown} | {parts} | {end} |"


def called(arguments: Sequence[str | Path], where: Path, **variables: str) -> str:
    """Standard output of a command; raises RuntimeError with its last words if it fails."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(a) for a in arguments], cwd=where, env=environment | variables, capture_output=True, text=True
    )
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}".strip()
        # the line that names the package, or the test, stands far above the last ones
        named = [
            line.strip() for line in said.splitlines() if line.strip().startswith(("× ", "FAILED ", "ERROR "))
        ]
        raise RuntimeError(f"{Path(str(arguments[0])).name}: {' '.join(named)[:300] or said[-300:]}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist of what is committed (of the files, where git has none), made in `folder`."""
    source = folder / "source"
    try:
        called(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), source], folder)
    except (RuntimeError, OSError):
        shutil.copytree(
            ROOT,
            source,
            ignore=shutil.ignore_patterns(".venv", "node_modules", "build", "dist", "*.egg-info"),
        )
    called([sys.executable, "-m", "build", "--outdir", folder / "dist", source], folder)
    return next((folder / "dist").glob("*.whl")), next((folder / "dist").glob("*.tar.gz"))


def interpreter(version: str) -> str | None:
    """The path of a Python of that version that starts, or None."""
    if Path(version).is_file():
        return version
    for name in (f"python{version}", *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
        found = shutil.which(str(name))
        if found and subprocess.run([found, "-V"], capture_output=True).returncode == 0:
            return found
    return None


def install(style: str, python: str, package: Path, dependencies: str, place: Path) -> Path:
    """Install as `style` does; the folder of the scripts."""
    locked = ["-c", ROOT / "requirements.lock"] if dependencies == "locked" else []
    tools = Path(sys.executable).parent
    if style == "pipx":
        variables = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin")}
        extra = ["--pip-args", f"-c {ROOT / 'requirements.lock'}"] if locked else []
        called([tools / "pipx", "install", "--python", python, *extra, package], place, **variables)
        return place / "pipx" / "venvs" / "workbench-labels" / "bin"
    if style == "uv" or dependencies in ("oldest", "newest"):
        called([tools / "uv", "venv", "--python", python, place / "venv"], place)
        there = {"VIRTUAL_ENV": str(place / "venv"), "UV_PYTHON_DOWNLOADS": "never"}
        uv = [tools / "uv", "pip", "install"]
        if dependencies == "oldest":
            # asked for a wheel, only the wheel itself counts as direct, and what it needs would be the newest
            lowest = ["--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml"]
            called([*uv, *lowest], place, **there)
            called([*uv, "--no-deps", package], place, **there)
        else:
            newest = ["--upgrade"] if dependencies == "newest" else []
            called([*uv, *newest, *locked, package], place, **there)
        # afterwards and by themselves: the oldest of everything is not asked of what only tests
        called([*uv, *TESTERS], place, **there)
        return place / "venv" / "bin"
    called([python, "-m", "venv", place / "venv"], place)
    called([place / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", *locked, package], place)
    return place / "venv" / "bin"


def resolution(platform: str, python: str) -> str:
    """Table in Markdown of the wheels of everything that `make run` installs: a line a platform.

    Args:
        platform: one of `PLATFORMS`.
        python: a version.
    """
    uv = Path(sys.executable).parent / "uv"
    asked = [
        uv,
        *["pip", "compile", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-header", "--no-annotate"],
    ]
    there = ["--python-platform", platform, "--python-version", python]
    try:
        found = called([*asked, *there, ROOT / "requirements.lock"], ROOT)
    except RuntimeError as error:
        return f"| {platform} | {python} | fails: {' '.join(str(error).split())} |"
    return f"| {platform} | {python} | {len(found.splitlines())} wheels |"


def platforms() -> bool:
    """Print which platforms and Pythons find wheels of everything that is locked; whether all do."""
    print("| platform | Python | |\n|---|---|---|")
    with ThreadPoolExecutor(4) as pool:
        asked = [(platform, python) for platform in PLATFORMS for python in SUPPORTED]
        lines = list(pool.map(lambda pair: resolution(*pair), asked))
    print("\n".join(lines), flush=True)
    return not any("fails" in line for line in lines)


def answers(scripts: Path, place: Path) -> None:
    """Start the app on a free port and wait until it says that it is well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    app = subprocess.Popen(
        [scripts / "workbench", "app", "--port", str(port), "--no-browser"],
        cwd=place,
        env=environment | {"WORKBENCH_HOME": str(place / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            if app.poll() is not None:
                raise RuntimeError(f"the app ended with {app.returncode}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as reply:
                    if reply.status == 200:
                        return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError("the app does not answer")
    finally:
        app.terminate()
        app.wait()


def tried(style: str, version: str, dependencies: str, package: Path, tests: Sequence[str]) -> Tried:
    """Install one way and use it; what fails is in the record."""
    result = Tried(style, version, dependencies)
    python = interpreter(version)
    if python is None:
        result.skipped = "no such interpreter here"
        return result
    with tempfile.TemporaryDirectory(prefix="workbench-packaging-") as folder:
        place = Path(folder)
        home = {"WORKBENCH_HOME": str(place / "home"), "WORKBENCH_FEATURES": str(place / "features")}

        def step(name: str, work: object) -> None:
            begun = time.perf_counter()
            work()  # type: ignore[operator]
            result.seconds[name] = time.perf_counter() - begun

        try:
            scripts = place
            begun = time.perf_counter()
            scripts = install(style, python, package, dependencies, place)
            result.seconds["install"] = time.perf_counter() - begun
            code = f"from importlib.metadata import version as v\nfor n in {SHOWN}: print(n, v(n))"
            lines = called([scripts / "python", "-c", code], place).splitlines()
            result.versions = dict(line.split() for line in lines)
            step("doctor", lambda: called([scripts / "workbench", "doctor"], place, **home))
            step("run", lambda: called([scripts / "workbench", *RUN], place, **home))
            step("app", lambda: answers(scripts, place))
            if tests:
                chosen = [str(ROOT / path) for path in tests]
                command = [scripts / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
                step("tests", lambda: called(command, ROOT, **home))
        except (RuntimeError, OSError) as error:
            result.failed = f"fails: {' '.join(str(error).split())}"
    return result


def main(arguments: Sequence[str] = ()) -> int:
    """Build, install, use; prints a table.

    Returns:
        0 when every installation works, 1 otherwise.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packaging")
    parser.add_argument("--styles", default="pip,sdist,pipx,uv")
    parser.add_argument("--pythons", default="3.11")
    parser.add_argument("--dependencies", default="locked")
    parser.add_argument(
        "--tests", nargs="*", metavar="PATH", help="these tests of the checkout, or a selection"
    )
    parser.add_argument("--platforms", action="store_true", help="look for wheels on every platform first")
    parser.add_argument("--jobs", type=int, default=1, help="installations at a time")
    parser.add_argument("--quick", action="store_true", help="pip and the wheel alone")
    options = parser.parse_args(list(arguments))
    styles = ["pip"] if options.quick else [style for style in options.styles.split(",") if style]
    sound = platforms() if options.platforms else True
    print("\n| installed by | Python | dependencies | versions | seconds | |\n|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="workbench-build-") as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        wheel, sdist = built(Path(folder))
        tests = () if options.tests is None else options.tests or TESTS
        asked = [
            (*_style(style, version), dependencies)
            for version in options.pythons.split(",")
            for dependencies in options.dependencies.split(",")
            for style in styles
        ]
        running = [
            pool.submit(tried, style, version, dependencies, sdist if style == "sdist" else wheel, tests)
            for style, version, dependencies in asked
        ]
        results = []
        for waiting in running:
            results.append(waiting.result())
            print(results[-1].row(), flush=True)
    return int(not sound or any(result.failed for result in results))


def _style(style: str, version: str) -> tuple[str, str]:
    """A style may name its own Python: `uv@3.13`."""
    name, _, own = style.partition("@")
    return name, own or version


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
