"""`python -m benchmarks.release`: what must hold before a version is given away, one line a point.

Works on a fresh clone of what is committed. `--only NAME[,NAME]` runs some of the points.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from importlib.metadata import Distribution, distribution, requires
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# may be linked into an Apache-2.0 program and given away with it
GOOD = re.compile(
    r"apache|mit\b|bsd|isc|psf|python software|python-2|mpl|mozilla|hpnd|historical|zlib|unlicense|cc0"
    r"|0bsd|lgpl|lesser|boost",
    re.IGNORECASE,
)


# packages that carry no word about it, and what their repositories say
SILENT = {"namex": "Apache-2.0"}


def shell(command: str, where: Path) -> str:
    """Run a command; its last words if it fails, else ""."""
    done = subprocess.run(command, shell=True, cwd=where, capture_output=True, text=True)
    words = (done.stdout + done.stderr).strip()[-400:]
    return "" if done.returncode == 0 else words or f"exit {done.returncode}"


def licence(of: Distribution) -> str:
    """Licence of a package: its expression, classifiers or free text."""
    meta = of.metadata
    expression = meta.get("License-Expression") or ""
    classed = [c.rpartition(" :: ")[2] for c in meta.get_all("Classifier") or () if c.startswith("License")]
    free = (meta.get("License") or "").strip().partition("\n")[0][:80]
    return expression or ", ".join(classed) or free


def needed(name: str, found: dict[str, Distribution]) -> None:
    """Add what a package needs to run, and what that needs."""
    for text in requires(name) or ():
        requirement, _, marker = text.partition(";")
        other = re.split(r"[\s<>=!~\[(]", requirement.strip(), maxsplit=1)[0]
        if "extra" in marker or other.lower() in found:
            continue
        try:
            found[other.lower()] = distribution(other)
        except ModuleNotFoundError:  # for another system or Python
            continue
        needed(other, found)


def licences(_: Path) -> str:
    """Names of dependencies whose licence nobody here has agreed to."""
    found: dict[str, Distribution] = {}
    needed("workbench-labels", found)
    said = {name: licence(one) or SILENT.get(name, "?") for name, one in sorted(found.items())}
    odd = {name: words for name, words in said.items() if not GOOD.search(words)}
    print(f"    {len(found)} packages are needed to run")
    return ", ".join(f"{name}: {words}" for name, words in odd.items())


def version(clone: Path) -> str:
    """One version in the project, the package, the citation and on top of the changes, with a date."""
    project = tomllib.loads((clone / "pyproject.toml").read_text())["project"]["version"]
    package = re.search(r'__version__ = "(.*?)"', (clone / "workbench" / "__init__.py").read_text())
    cited = re.search(r'^version: "?([\d.]+)', (clone / "CITATION.cff").read_text(), re.MULTILINE)
    top = re.search(r"^## ([\d.]+) \((.*?)\)", (clone / "CHANGELOG.md").read_text(), re.MULTILINE)
    said = {
        "workbench/__init__.py": package and package[1],
        "CITATION.cff": cited and cited[1],
        "CHANGELOG.md": top and top[1],
    }
    wrong = [f"{where} says {what}" for where, what in said.items() if what != project]
    if top and not re.fullmatch(r"\d{4}-\d\d-\d\d", top[2]):
        wrong.append(f"CHANGELOG.md dates it {top[2]!r}")
    return f"pyproject.toml says {project}; " + ", ".join(wrong) if wrong else ""


def figures(_: Path) -> str:
    """Commands behind README's figures whose kept lines are of another version of the default model."""
    from benchmarks.pages import outdated
    from workbench.errors import InputError

    try:
        return "; ".join(outdated())
    except InputError as error:
        return str(error)


POINTS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "committed": ("nothing is uncommitted", lambda _: shell('test -z "$(git status --porcelain)"', ROOT)),
    "version": ("one version everywhere, dated", version),
    "licences": ("licences of the dependencies", licences),
    "figures": ("README's figures are of today's default model", figures),
    "container": ("the container file passes its linter", lambda c: shell("hadolint Containerfile", c)),
    "check": ("ruff and mypy", lambda c: shell("make check", c)),
    "docs": ("the site builds, warnings are errors", lambda c: shell("make docs", c)),
    "tests": ("the tests", lambda c: shell("make test", c)),
    "wheel": (
        "wheel and sdist work elsewhere",
        lambda c: shell(f"{sys.executable} -m benchmarks.packaging --styles pip,sdist,pipx", c),
    ),
}


def main(arguments: Sequence[str] = ()) -> int:
    """Go through the points on a fresh clone.

    Returns:
        0 when all hold, 1 otherwise.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks release")
    parser.add_argument("--only", default=",".join(POINTS))
    parser.add_argument("--quick", action="store_true", help="what takes seconds")
    options = parser.parse_args(list(arguments))
    chosen = options.only.split(",")
    if options.quick:
        chosen = ["version", "licences", "container"]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="workbench-release-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT.as_uri(), str(clone)], check=True)
        for name in chosen:
            title, work = POINTS[name]
            said = work(clone)
            failed += bool(said)
            print(f"{'fails' if said else 'holds'}  {name}: {title}{': ' + said if said else ''}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
