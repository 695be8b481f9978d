"""Figures of the pages beside the kept lines that they are of.

A section of a page is measured where it holds a figure: a number with a decimal point, or one with a unit.
Its figures stand in what the commands of the section print out of kept lines, rounded as the page rounds. A
paragraph that says "no kept line", or a section with its subsections where the paragraph has no figure, is of
an earlier run, whose lines nobody kept.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from functools import cache
from typing import NamedTuple

from benchmarks.kept import PRINTED, ROOT, Tee, is_of_default, lines

UNKEPT = "no kept line"
MEASURED = ("README.md", "docs/results.md")
_NUMBER = r"(?<![\w.\-/])\d[\d,]*(?:\.\d+)?(?![\d.]*\.\d)"
_FIGURE = re.compile(
    rf"{_NUMBER}(?:\s?(?:ms|s|MB|GB|%|x|points)(?!\w)| times)"
    r"|(?<![\w.\-/])\d[\d,]*\.\d+(?![\d.]*\.\d)(?!\w)"
)
_GOAL = re.compile(
    r"\((?:[^()]*\b)?(?:goals?|at most|at least|under)\b[^()]*\)"
    r"|\bgoals? (?:(?:is|was|of|are|here:)[^.;:]*?)?[\d.]+(?: %| s)?"
)
_COMMAND = re.compile(r"python -m (benchmarks[^`]*?(?:--report|--seeds 0)\b[^`]*)")
_ANY_COMMAND = re.compile(r"`(python -m benchmarks[^`]*)`")


class Section(NamedTuple):
    """A heading and what stands under it.

    Attributes:
        page: path from the root.
        title: the heading; "" above the first one.
        text: what stands under it.
        above: the section that it is a part of.
    """

    page: str
    title: str
    text: str
    above: Section | None = None

    @property
    def commands(self) -> list[str]:
        """Commands that print out of kept lines."""
        joined = " ".join(self.text.split())
        return [" ".join(found.split()) for found in _COMMAND.findall(joined)]

    def blocks(self) -> list[str]:
        """Paragraphs and tables."""
        return [block for block in re.split(r"\n\s*\n", self.text) if block.strip()]

    @property
    def unkept(self) -> bool:
        """True if a paragraph of its own says that nothing of the section was kept."""
        said = any(UNKEPT in block.lower() and not figures(block) for block in self.blocks())
        return said or (self.above is not None and self.above.unkept)


def sections(page: str) -> list[Section]:
    """A page by its headings; README's only where a heading says that something was measured.

    Args:
        page: path from the root.
    """
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    parts = re.split(r"^(#+) +(.*)$", text, flags=re.M)
    found = [Section(page, "", parts[0])]
    chapter: Section | None = None
    for marks, title, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found.append(Section(page, title, body, chapter if len(marks) > 2 else None))
        chapter = found[-1] if len(marks) == 2 else chapter
    return [s for s in found if page != "README.md" or "measured" in s.title]


def figures(text: str) -> list[str]:
    """The figures of a text, without those in code, in addresses and of goals."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)
    return [found.group().strip() for found in _FIGURE.finditer(_GOAL.sub(" ", text))]


def missing(section: Section) -> list[str]:
    """Figures of a section that stand neither in kept lines nor in a paragraph that says so."""
    if section.unkept:
        return []
    wanted = [
        figure for block in section.blocks() if UNKEPT not in block.lower() for figure in figures(block)
    ]
    if not wanted:
        return []
    text = "".join(map(printed, section.commands))
    known = {re.sub(r"\s+", " ", line["command"]): "" for line in lines(PRINTED)}
    named = {command for command in _ANY_COMMAND.findall(" ".join(section.text.split())) if command in known}
    text += "\n".join(line["line"] for line in lines(PRINTED) if line["command"] in named)
    signs = re.sub(r"(?<!e)[+-]", " ", text)
    values = [float(v.replace(",", "")) for v in re.findall(r"\d+(?:\.\d+)?e-\d+|" + _NUMBER, signs)]
    return [figure for figure in wanted if not _stands(figure, values)]


def outdated(page: str = "README.md") -> list[str]:
    """Commands of a page whose kept lines are of another version of the default model, with the commits.

    Args:
        page: path from the root.
    """
    found = []
    for command in (command for section in sections(page) for command in section.commands):
        commits = re.findall(r"\d+ of ([0-9a-f]{7,8}) \(code [0-9a-f]{12}\)", printed(command))
        old = [commit for commit in commits if not is_of_default(commit)]
        if old or not commits:
            found.append(f"python -m {command}: {', '.join(old) or 'no kept line'}")
    return found


def _stands(figure: str, values: list[float]) -> bool:
    match = re.match(r"[\d,.]+", figure)
    assert match
    number = match.group().rstrip(".").replace(",", "")
    digits, wanted = len(number.partition(".")[2]), float(number)
    scales = (1.0, 100.0) if figure.endswith(("%", "points")) else (1.0,)
    half = 0.5 * 10.0**-digits + 1e-9
    return any(abs(scale * value - wanted) <= half for value in values for scale in scales)


@cache
def printed(command: str) -> str:
    """Output of a command out of kept lines."""
    module, *words = shlex.split(command.rstrip(".,;)"))
    if module == "benchmarks":
        module, words = f"benchmarks.{words[0]}", words[1:]
    with Tee(quiet=True) as heard:
        importlib.import_module(module).main(words)
    return heard.text()


def measured() -> list[Section]:
    """Sections that hold figures."""
    return [s for page in MEASURED for s in sections(page) if figures(s.text)]


def main(arguments: list[str] | None = None) -> int:
    """Print, section by section, which figures stand in no kept line and are not said to."""
    argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__).parse_args(arguments)
    found = {section: missing(section) for section in measured()}
    for section, left in found.items():
        if left:
            print(f"{section.page}, {section.title or 'head'}: {', '.join(left)}")
    kept = sum(not section.unkept for section in found)
    print(f"{kept} of {len(found)} measured sections have kept lines")
    return int(any(found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
