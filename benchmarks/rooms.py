"""Lines of the package by room, and its longest functions: what docs/architecture.md says of its size."""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


class Lines(NamedTuple):
    """Lines of one file.

    Attributes:
        code: lines with a word that is neither comment nor docstring.
        docstrings: lines of docstrings.
        longest: lines of code of its longest function.
    """

    code: int
    docstrings: int
    longest: int


def lines_of(source: str) -> Lines:
    """What the lines of a module hold.

    Args:
        source: its text.
    """
    tree = ast.parse(source)
    told: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for one in body:
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and _is_text(one.value):
                    told.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= told
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    longest = max((sum(n.lineno <= at <= (n.end_lineno or 0) for at in code) for n in functions), default=0)
    return Lines(len(code), len(told), longest)


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


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
    print("| room | modules | lines of code | of docstrings | longest function |")
    print("|---|---|---|---|---|")
    whole = []
    for name, files in rooms(root):
        found = [lines_of(file.read_text(encoding="utf-8")) for file in files]
        row = (len(found), sum(f.code for f in found), sum(f.docstrings for f in found))
        longest = max(f.longest for f in found)
        print("| " + " | ".join([name, *(f"{n:,}" for n in (*row, longest))]) + " |")
        if name != "tests":
            whole.append((*row, longest))
    sums = [sum(column) for column in list(zip(*whole, strict=True))[:3]]
    print("| all but tests | " + " | ".join(f"{n:,}" for n in (*sums, max(r[3] for r in whole))) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
