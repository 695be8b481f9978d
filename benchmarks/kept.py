"""Sources of kept and printed lines: commit, code, processor and load; which of them compare."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from workbench.papers.reproduce import code_hash

ROOT = Path(__file__).resolve().parent.parent
PRINTED = ROOT / "benchmarks" / "results" / "printed.jsonl"
"""What commands printed, whose lines have no file of their own."""
UNSHARED = ROOT / ".cache" / "benchmarks"
"""Parts of a long run that is gone on with; no part of the repository."""


@cache
def commit() -> str:
    """Eight digits of the checkout's commit; "" outside of a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


DEFAULT = tuple(f"workbench/{part}" for part in ("classifiers", "engine", "policies", "pools/neighbours"))
"""Files that the default model and its policy are made of."""


@cache
def is_of_default(commit: str) -> bool:
    """True where the default model and policy of a commit are those of the checkout, to the letter."""
    words = ["git", "diff", "--quiet", commit, "HEAD", "--", *DEFAULT]
    return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 0


@cache
def processor() -> str:
    """The processor's own name, or the kind of machine."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def lines(place: Path) -> list[dict[str, Any]]:
    """Content of a file of kept lines; nothing where there is none."""
    if not place.is_file():
        return []
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]


def keep(place: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a file of kept lines, with where it comes from."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps(dict(line) | stamp()) + "\n")


def once(place: Path, asked: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """Result that the same code gave for the same question; else what it gives now, which is kept.

    Args:
        place: file of kept lines.
        asked: what tells one result from another; plain JSON.
        make: finds it; plain JSON.
    """
    for line in lines(place):
        if line["asked"] == dict(asked) and line["code"] == code_hash():
            return line["found"]
    found = make()
    keep(place, {"asked": dict(asked), "found": found})
    return found


def keep_printed(place: Path, command: str, text: str) -> None:
    """Keep what a command printed, line by line, in the place of what it printed before.

    Args:
        place: file of kept lines.
        command: as a page prints it.
        text: what was printed.
    """
    others = [line for line in lines(place) if line["command"] != command]
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(json.dumps(line) + "\n" for line in others), encoding="utf-8")
    for line in filter(str.strip, text.splitlines()):
        keep(place, {"command": command, "line": line})


class Tee(io.TextIOBase):
    """Writes to stdout and remembers, while its block runs.

    Args:
        quiet: remember alone.
    """

    def __init__(self, quiet: bool = False) -> None:
        super().__init__()
        self._quiet = quiet

    def __enter__(self) -> Tee:
        """Take the place of stdout."""
        self._out, self._heard = sys.stdout, io.StringIO()
        sys.stdout = self
        return self

    def __exit__(self, *error: object) -> None:
        """Give it back."""
        sys.stdout = self._out

    def write(self, text: str) -> int:
        """To both."""
        self._heard.write(text)
        return len(text) if self._quiet else self._out.write(text)

    def flush(self) -> None:
        """The real one."""
        self._out.flush()

    def text(self) -> str:
        """Lines written so far."""
        return self._heard.getvalue()


def stamp() -> dict[str, str]:
    """Commit, hash of `workbench/` and processor, for a line that is kept."""
    return {"commit": commit(), "code": code_hash(), "processor": processor()}


def heading() -> str:
    """The same in one line, with the load, to print above figures that are not kept."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"[{commit() or 'no commit'}, code {code_hash()}, {processor()}, {os.cpu_count()} cores{load}]"


def origins(lines: Iterable[Mapping[str, Any]]) -> str:
    """Version of the code of kept lines, in a sentence: one, or several that are not to be compared.

    Args:
        lines: with `commit` and `code`, where they have them.

    Returns:
        Such as "72 lines of 1a2b3c4d (code 0123456789ab)." or a sentence that names several.
    """
    found = Counter((str(line.get("commit", "?")), str(line.get("code", "?"))) for line in lines)
    said = "; ".join(f"{n} of {c} (code {h})" for (c, h), n in sorted(found.items()))
    if len({h for _, h in found}) > 1:
        return f"Lines of several versions of the code, which compare with care: {said}."
    return f"Lines: {said}."
