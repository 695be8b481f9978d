"""Lines and tokens of the package by room, and its longest functions: the table of docs/architecture.md."""

from __future__ import annotations

import argparse
import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# tokenize knows them, too, in ten times the time, and from Python 3.12 on it cuts f-strings into pieces
_TOKEN = re.compile(
    r"""
    (?P<end>\n)
    | (?P<comment>\#[^\n]*)
    | (?P<text>[rbufRBUF]{0,2}(?:
        \'{3}(?s:\\.|.)*?\'{3} | "{3}(?s:\\.|.)*?"{3} | '(?:\\(?s:.)|[^'\\\n])*' | "(?:\\(?s:.)|[^"\\\n])*"
      ))
    | 0[xXbBoO][0-9a-fA-F_]+
    | (?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d[\d_]*)?[jJ]?
    | \w+
    | -> | := | \.\.\. | (?:\*\*|//|>>|<<|[-+*/%&@|^=<>!~])=? | [()\[\]{},:;.]
    """,
    re.VERBOSE,
)


class Size(NamedTuple):
    """The size of one file.

    Attributes:
        code: lines with a word that is neither comment nor docstring.
        docstrings: lines of docstrings.
        longest: lines of code of its longest function.
        tokens: words, numbers, texts and signs on its lines of code, without comments.
    """

    code: int
    docstrings: int
    longest: int
    tokens: int


@cache
def parsed(source: str) -> ast.Module:
    """The syntax tree of a module, read once for all that walk through it."""
    return ast.parse(source)


@cache
def size_of(source: str) -> Size:
    """The size of a module.

    Args:
        source: its text.
    """
    starts: list[int] = []
    code: set[int] = set()
    line = 1
    for token in _TOKEN.finditer(source):
        kind = token.lastgroup
        if kind is None:
            starts.append(line)
        elif kind == "end":
            line += 1
        elif kind == "text":
            starts.append(line)
            more = token[0].count("\n")
            code.update(range(line, line + more + 1))
            line += more
    functions: list[ast.stmt] = []
    docstrings: set[int] = set()
    for node in statements(parsed(source).body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node)
        elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            docstrings.update(range(node.lineno, (node.end_lineno or 0) + 1))
    code = code.union(starts) - docstrings
    lines = sorted(code)
    lengths = (bisect_right(lines, f.end_lineno or 0) - bisect_left(lines, f.lineno) for f in functions)
    tokens = sum(start in code for start in starts)
    return Size(len(code), len(docstrings), max(lengths, default=0), tokens)


def statements(nodes: list[Any]) -> Iterator[Any]:
    """Each statement and all that it holds, in the order of the file."""
    for node in nodes:
        yield node
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from statements(getattr(node, field, []))


def rooms(root: Path) -> Iterator[tuple[str, list[Path]]]:
    """The rooms of a checkout with their modules: pages, folders (those of app/ too), single files, tests.

    Args:
        root: of the checkout.
    """
    package = root / "workbench"
    yield "`pages/`", sorted((root / "pages").glob("*.py"))
    for folder in sorted(path for path in package.iterdir() if path.is_dir()):
        if folder.name == "app":
            for inner in sorted(path for path in folder.iterdir() if any(path.glob("*.py"))):
                yield f"`app/{inner.name}/`", sorted(inner.rglob("*.py"))
            yield "`app/server.py`", sorted(folder.glob("*.py"))
        elif files := sorted(folder.rglob("*.py")):
            yield f"`{folder.name}/`", files
    yield "single files", sorted(package.glob("*.py"))
    yield "tests", sorted((root / "tests").rglob("*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Print the table.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rooms", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    root = parser.parse_args(arguments).root
    print("| room | modules | lines of code | of docstrings | longest function | tokens |")
    print("|---|---|---|---|---|---|")
    product: list[list[Size]] = []
    for name, files in rooms(root):
        sizes = [size_of(file.read_text(encoding="utf-8")) for file in files]
        print(_row(name, sizes))
        if name != "tests":
            product.append(sizes)
    print(_row("all but tests", [size for sizes in product for size in sizes]))
    return 0


def _row(name: str, sizes: list[Size]) -> str:
    code, docstrings, longest, tokens = zip(*sizes, strict=True)
    cells = (len(sizes), sum(code), sum(docstrings), max(longest), sum(tokens))
    return "| " + " | ".join([name, *(f"{number:,}" for number in cells)]) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
