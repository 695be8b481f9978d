"""`python -m benchmarks.mutants`: small faults put into the code one at a time; do the tests notice?

A sample drawn by a seed, spread evenly over the folders: a comparison turned, + for -, "and" for "or", a
negation dropped, a number raised by one, True for False. Each is put into a copy of the checkout, where the
tests of its folder run until the first failure. What survived is for somebody to look at: a fault that nobody
could see (a limit of speed, the same result another way) survives rightly.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
# folder of the package -> tests that guard it
GUARDS = {
    "certificates": ("tests/certificates",),
    "metrics": ("tests/metrics",),
    "policies": ("tests/policies",),
    "sessions": ("tests/sessions",),
    "store": ("tests/store",),
}
# loaded once, before the first child; nothing of the package itself, and nothing that is a plug-in of pytest
SHARED = (
    "scipy.stats",
    "pandas",
    "sqlalchemy",
    "sklearn.metrics",
    "tensorflow",
    "gpflow",
)
LEFT_OUT = shutil.ignore_patterns(
    ".venv", "node_modules", "build", "dist", "*.egg-info", ".git", "__pycache__", ".*_cache", ".hypothesis"
)
TURNED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
}


class Mutant(NamedTuple):
    """One fault: where, and the source before and after."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def source(self) -> str:
        """The whole file with the fault in it."""
        text = self.path.read_bytes()
        return (text[: self.start] + self.after.encode() + text[self.end :]).decode()


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Mutants of a node."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in TURNED:
            new = copy.deepcopy(node)
            new.ops[0] = TURNED[type(op)]()  # type: ignore[call-overload]
            yield new
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in TURNED:
            new = copy.deepcopy(node)
            new.op = TURNED[type(op)]()
            yield new
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield inner
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)


def silent(tree: ast.AST) -> set[int]:
    """Ids of nodes in which no fault can show: annotations, and texts that people read."""
    quiet: set[int] = set()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Raise | ast.JoinedStr):
            parts.append(node)
        for part in parts:
            if part is not None:
                quiet.update(id(inner) for inner in ast.walk(part))
    return quiet


def mutants(path: Path) -> list[Mutant]:
    """Every fault that this file can be given, in its order."""
    text = path.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    quiet, found = silent(tree), []
    for node in ast.walk(tree):
        if id(node) in quiet or not isinstance(node, ast.expr):
            continue
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = text[start:end].decode()
        # brackets keep the meaning of what stands around it
        found += [
            Mutant(path, node.lineno, start, end, before, f"({ast.unparse(other)})")
            for other in changed(node)
        ]
    return sorted(found, key=lambda m: (m.start, m.end, m.after))


def sample(folders: Sequence[str], count: int, seed: int) -> list[tuple[str, Mutant]]:
    """As many of each folder, drawn evenly from all that its files can be given."""
    drawn = []
    for place, folder in enumerate(folders):
        place_of = ROOT / "workbench" / folder
        files = [place_of] if place_of.is_file() else sorted(place_of.glob("*.py"))
        every = [m for path in files for m in mutants(path)]
        share = count // len(folders) + (place < count % len(folders))
        chosen = random.Random(f"{seed} {folder}").sample(every, min(share, len(every)))
        print(f"{folder}: {len(chosen)} of {len(every)} possible faults in {len(files)} files", flush=True)
        drawn += [(folder, m) for m in sorted(chosen, key=lambda m: (str(m.path), m.start))]
    return drawn


def tested(folder: str, place: Path, module: str, limit: float | None = None) -> tuple[str, float]:
    """Outcome of the tests of a folder ("passed", "failed" or "hangs"), and the seconds that took."""
    guards = GUARDS[folder.partition("/")[0]]
    files = [path for guard in guards for path in sorted((ROOT / guard).glob("test_*.py"))]
    # those that speak of the module first: most faults fall to them
    ordered = sorted(files, key=lambda p: module not in p.name + p.read_text(encoding="utf-8"))
    return _forked(
        ["-q", "-x", "-p", "no:cacheprovider", *(str(p.relative_to(ROOT)) for p in ordered)], place, limit
    )


def _forked(arguments: list[str], place: Path, limit: float | None) -> tuple[str, float]:
    """Pytest in a child that finds the large libraries loaded: starting anew costs 10 s each time."""
    begun = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.chdir(place)
        os.environ |= {"PYTHONPATH": str(place), "WORKBENCH_FEATURES": str(place / "features")}
        sys.path.insert(0, str(place))
        code = 1
        try:
            code = int(pytest.main(arguments))
        finally:
            os._exit(code)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        spent = time.perf_counter() - begun
        if done:
            return "passed" if status == 0 else "failed", spent
        if limit is not None and spent > limit:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs", spent
        time.sleep(0.05)


def main(arguments: Sequence[str] = ()) -> int:
    """Draw the sample, try each, print a line a mutant and a sum a folder.

    Returns:
        0; what survived is for people to judge.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", default=",".join(GUARDS), help="or single files, as store/fold.py")
    parser.add_argument("--list", action="store_true", help="draw and show them, run nothing")
    options = parser.parse_args(list(arguments))
    folders = options.folders.split(",")
    drawn = sample(folders, options.count, options.seed)
    ended: dict[str, list[str]] = {folder: [] for folder in folders}
    with tempfile.TemporaryDirectory(prefix="workbench-mutants-") as folder_name:
        place = Path(folder_name) / "tree"
        shutil.copytree(ROOT, place, ignore=LEFT_OUT)
        usual: dict[str, float] = {}
        for library in () if options.list else SHARED:
            importlib.import_module(library)
        for folder in folders if not options.list else ():
            end, usual[folder] = tested(folder, place, "")
            if end != "passed":
                print(f"The tests of {folder} do not pass as they are.", file=sys.stderr)
                return 1
        for folder, mutant in drawn:
            where = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
            shown = f"{where}  {_short(mutant.before)}  ->  {_short(mutant.after)}"
            if options.list:
                print(shown)
                continue
            file = place / mutant.path.relative_to(ROOT)
            file.write_text(mutant.source(), encoding="utf-8")
            # a fault may make a loop endless; a machine that has become busy is given four times as long
            end, seconds = tested(folder, place, mutant.path.stem, 120 + 4 * usual[folder])
            shutil.copyfile(mutant.path, file)
            ended[folder].append(end)
            print(f"{'SURVIVED' if end == 'passed' else 'noticed '} {seconds:5.0f} s  {shown}", flush=True)
    for folder, ends in ended.items():
        if ends:
            print(f"{folder}: {len(ends) - ends.count('passed')} of {len(ends)} noticed")
    return 0


def _short(source: str) -> str:
    return " ".join(source.split())[:90]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
