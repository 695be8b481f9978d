"""The oldest versions that `pyproject.toml` allows of a few packages, under the tests that lean on them.

`python -m benchmarks.floors` lays them over the packages of the environment it runs in, in an environment of
their own (`build/floors`), and runs `TESTS` there: other packages are the locked ones. What is measured is
whether they pass. `--versions pandas==3.0.1` tries another version; paths of tests take the place of `TESTS`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "floors"
# what old ones need that new ones do not
BESIDE = ("pytz", "tzdata")
PACKAGES = ("pandas", "scikit-learn", "sqlalchemy", "streamlit")
# tables, classifiers, the store, log-in and desk: what leans on these packages, in about two minutes
TESTS = (
    "tests/store",
    "tests/classifiers/test_contract.py",
    "tests/classifiers/test_fits.py",
    "tests/pools/tables/test_tables.py",
    "tests/pools/test_uses.py",
    "tests/pools/test_texts.py",
    "tests/exchange/test_labels.py",
    "tests/sessions/test_from_python.py",
    "tests/app/access/test_login.py",
    "tests/app/test_server.py",
    "tests/browser/test_grid_and_classes.py",
)
# of the classifiers those of scikit-learn: ours need it for their interface, which these have as well
CHOSEN = "not (test_contract or test_fits) or logistic-regression or svm-platt or gp-laplace"


def floors() -> dict[str, str]:
    """Package -> the oldest version that `pyproject.toml` allows."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    found = {}
    for line in asked:
        name, _, rest = line.partition(">=")
        if name in PACKAGES:
            version = re.split("[,;]", rest)[0]
            # 3 is 3.0.0 where an index knows no 3
            found[name] = version + ".0" * (2 - version.count("."))
    return found


def laid(versions: Sequence[str]) -> Path:
    """An environment with these versions above the packages of this one.

    Args:
        versions: requirements, "pandas==3.0.0".

    Returns:
        Its Python.
    """
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, PLACE], check=True)
    python = next(PLACE.glob("[bS]*/python*"))
    packages = next(PLACE.glob("[lL]ib/**/site-packages"))
    (packages / "below.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    install = [uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*install, *versions, *BESIDE], check=True)
    return python


def main(arguments: Sequence[str] = ()) -> int:
    """Install and test.

    Returns:
        Of pytest: 0 where all tests pass.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floors")
    parser.add_argument("--versions", nargs="*", default=(), metavar="NAME==VERSION")
    parser.add_argument("tests", nargs="*", metavar="PATH")
    options = parser.parse_args(list(arguments))
    wanted = floors() | dict(version.split("==") for version in options.versions)
    python = laid([f"{name}=={version}" for name, version in wanted.items()])
    print("oldest:", ", ".join(f"{name} {version}" for name, version in wanted.items()), flush=True)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    chosen = options.tests or [*TESTS, "-k", CHOSEN]
    return subprocess.run([*command, *chosen], cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
