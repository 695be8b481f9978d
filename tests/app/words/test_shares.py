"""No line ends between a number and its sign of per cent, in whatever the pages say by themselves."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEXTS = sorted(
    path
    for folder in (ROOT / "pages", ROOT / "workbench" / "app")
    for path in folder.rglob("*")
    if path.suffix in (".py", ".js", ".toml", ".html")
)
# behind a number, behind what is written in its place, or behind what a field asks for
BREAKS = re.compile(r"(?:\d|^|\}|,) %(?!%)")


def texts_of(path: Path) -> list[str]:
    """Texts that a file's code writes: literals of Python without docstrings, else lines without comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [line for line in text.splitlines() if not line.strip().startswith(("//", "#", "*"))]
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    replaced = {
        id(argument)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "replace"
        for argument in call.args
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings | replaced
    ]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_ends_before_a_sign_of_per_cent(path: Path) -> None:
    assert [text for text in texts_of(path) if BREAKS.search(text)] == []
