"""Numbers are written with their leading zero, 0.05, wherever a person reads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import ROOT
from tests.test_docs import PAGES

# no format (`{x:.3f}`, `%{y:.1%}`), no member (`a.5`), no end of a name (`the .0 of whole numbers`)
NAKED = re.compile(r"(?<![\w.)\]}%*'\"/:{\\])[-−+]?\.(?!0 of|0\.)\d+(?![\d.]*[~%])(?!\d*(?:[a-zA-Z]|\.\d))")
# lengths and shares of style sheets
STYLE = re.compile(
    r"(?:opacity|flex|line-height): ?\.\d+|(?:rgba|cubic-bezier)\([^)]*\)|-?\.\d+(?:r?em|px|s)\b"
)
# what removes one
REMOVES = re.compile(r"""(?:replace\((?P<q>["'])0\.(?P=q)|(?:lstrip|removeprefix)\((?P<r>["'])0\.?(?P=r))""")
SOURCES = sorted(
    path for room in ("workbench", "pages", "benchmarks") for path in (ROOT / room).rglob("*.py")
)


def naked(text: str) -> list[str]:
    """Numbers of a text that begin with their point, with what stands around them."""
    text = STYLE.sub("", text)
    return [text[max(0, found.start() - 30) : found.end() + 10] for found in NAKED.finditer(text)]


def written(tree: ast.AST) -> Iterator[str]:
    """Strings of a program without the formats in them."""
    formats = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
        for inner in ast.walk(node.format_spec)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in formats:
            yield node.value


def test_what_is_found_and_what_is_none() -> None:
    for text in ("p = .0078", "at most .5", "from .1 to", "(-.25)", "AUC .84, Brier"):
        assert naked(text), text
    for text in ("%{x:.3f}", ".0%", "padding: .5rem", "0.05", "v1.5", "a[1].5", "3.03.2024", "opacity: .4;"):
        assert not naked(text), text


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_writes_its_zeros(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not naked(text)


@pytest.mark.slow  # alone: every string of the program
def test_the_program_writes_its_zeros() -> None:
    wrong = []
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        # most have none anywhere, and are not taken apart
        for text in written(ast.parse(source)) if naked(source) else ():
            # a suffix alone is no number: "3" + ".0"
            if not re.fullmatch(r"\.\d+", text):
                wrong += [f"{path.relative_to(ROOT)}: {found!r}" for found in naked(text)]
        wrong += [f"{path.relative_to(ROOT)}: {found.group()}" for found in REMOVES.finditer(source)]
    assert len(SOURCES) > 400 and wrong == []
