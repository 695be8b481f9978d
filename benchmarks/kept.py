"""Where kept and printed lines come from: commit, code, processor and load; which of them compare."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@cache
def code_hash(folder: Path = ROOT / "workbench") -> str:
    """Twelve digits of a hash of all Python and JSON files of the package: the code that a figure is of.

    Args:
        folder: of the package.
    """
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".json") and p.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:12]


@cache
def commit() -> str:
    """Eight digits of the checkout's commit; "" outside of a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def processor() -> str:
    """The processor's own name, or the kind of machine."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def stamp() -> dict[str, str]:
    """Commit, hash of `workbench/` and processor, for a line that is kept."""
    return {"commit": commit(), "code": code_hash(), "processor": processor()}


def heading() -> str:
    """The same in one line, with the load, to print above figures that are not kept."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"[{commit() or 'no commit'}, code {code_hash()}, {processor()}, {os.cpu_count()} cores{load}]"


def origins(lines: Iterable[Mapping[str, Any]]) -> str:
    """What code kept lines are of, in one sentence: one version, or several that are not to be compared.

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
