"""The help pages, read from the wheel or the checkout: what they are called and what they say."""

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from workbench.app.words.text import PER_CENT, words_of
from workbench.errors import InputError

FIRST = "index"
_HERE = Path(__file__).resolve().parent
# docs/ lies beside the package in the repository and inside it in a wheel
FOLDER = next(
    (f for f in (_HERE.parents[2] / "docs", _HERE.parents[1] / "help") if (f / "index.md").is_file()), _HERE
)
GROUPS: dict[str, list[str]] = words_of("help")
_LINK = re.compile(r"\[((?:[^\[\]`]|`[^`\n]*`)+)\]\(([^()\s]+)\)")


class Page(NamedTuple):
    """A page of help.

    Attributes:
        name: in addresses, such as "recipes/my-csv".
        title: its heading.
        text: Markdown below the heading, with links that the app can follow and without pictures.
    """

    name: str
    title: str
    text: str


@cache
def pages() -> dict[str, tuple[Page, ...]]:
    """Group -> its pages, of those that are there."""
    return {
        group: tuple(read(name) for name in names if (FOLDER / f"{name}.md").is_file())
        for group, names in GROUPS.items()
    }


def read(name: str) -> Page:
    """One page.

    Args:
        name: of `GROUPS`, or `FIRST`.

    Raises:
        InputError: there is no such page.
    """
    page_names = {FIRST, *(page_name for names in GROUPS.values() for page_name in names)}
    path = FOLDER / f"{name}.md"
    if name not in page_names or not path.is_file():
        raise InputError(f"There is no page of help called {name!r}.")
    heading, _, text = path.read_text(encoding="utf-8").partition("\n")
    text = re.sub(r"^ *(?:!\[[^\]]*\]\([^)]*\)|<!--.*?-->)\n*", "", text, flags=re.MULTILINE)
    return Page(name, heading.removeprefix("# ").strip(), _linked(text, name, page_names).strip())


def _linked(text: str, name: str, page_names: set[str]) -> str:
    """Links between pages as addresses of the app, those that lead out of the help as their words.

    No line ends between a number and its sign of per cent.
    """

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2].partition("#")[0]
        if re.match(r"[a-z]+:", target):
            return match[0]
        page_name = posixpath.normpath(posixpath.join(posixpath.dirname(name), target)).removesuffix(".md")
        if not target or page_name not in page_names or not (FOLDER / f"{page_name}.md").is_file():
            return words
        return f"[{words}](help?{urlencode({'page': page_name})})"

    blocks = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    blocks[::2] = (_LINK.sub(link, re.sub(r"(?<=\d)[ \n]%", PER_CENT, block)) for block in blocks[::2])
    return "".join(blocks)


def found(words: str) -> list[Page]:
    """Pages that have all of these words, those with them in the title first.

    Args:
        words: in any order; case does not count.
    """
    terms = words.lower().split()
    every = [page for group in pages().values() for page in group]
    matches = [page for page in every if all(word in f"{page.title} {page.text}".lower() for word in terms)]
    return sorted(matches, key=lambda page: not all(word in page.title.lower() for word in terms))
