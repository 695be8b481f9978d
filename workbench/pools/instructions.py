"""Instructions for people who label, out of files: Markdown, HTML, Label Studio, Hugging Face."""

import html
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

from workbench.errors import InputError
from workbench.members import FolderMembers, Members
from workbench.pools.formats.files import METADATA, File
from workbench.reading import cut, listed, parse_json, reading, valid_text

LONGEST = 20_000
"""Most characters of the instructions."""
MOST_OCTETS = 10 << 20
"""Most bytes of a picture's file."""
KEPT = "picture:"
"""Before the name of a kept picture in the text."""
PICTURE = re.compile(r"!\[([^\]\n]{0,300})\]\(([^()\s]{1,300})\)")
"""A picture in the text: its words, and its file or the name it is kept under."""
FILE = "instructions.md"
PICTURES = "pictures"
"""The folder of pictures beside it."""
_MOST_TEXT = 4 << 20
_CARD = "readme.md"
_NAMES = (FILE, _CARD, "config.xml", "dataset_info.json")
_SECTION = re.compile(
    r"(?:\d{1,9}[.)]? ?)?(?:(?:annotation|labell?ing|annotator|expert) )?(?:instructions?|guidelines?)",
    re.IGNORECASE,
)
_OURS = "labelled with Workbench: `datasets.load_dataset"
_UNSAID = ("[More Information Needed]", "[Needs More Information]")


class Told(NamedTuple):
    """Instructions for labelling in a file.

    Attributes:
        text: Markdown.
        pictures: those it names, by the names it has for them.
    """

    text: str
    pictures: Mapping[str, bytes]


def pictures_named(text: str) -> list[str]:
    """The pictures that a text names, each once: files, and kept ones as `picture:NAME`."""
    return list(dict.fromkeys(match[2] for match in PICTURE.finditer(text)))


def is_file(name: str) -> bool:
    """True if a picture is a file that must be given, neither kept nor at a web address."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", name) is None


def read_instructions(source: File | str | bytes, file_name: str | None = None) -> Told:
    """Instructions for labelling in a file or folder.

    Args:
        source: Markdown or a plain text, HTML, a project or tasks of Label Studio (expert_instruction, else
            the headers of its labelling configuration), the card of a Hugging Face dataset, or a folder or
            zip with one of these; pictures beside it that the text names come with it.
        file_name: of an upload.

    Returns:
        The text and its pictures.

    Raises:
        InputError: another form, a text that is missing, or a picture that is not there.
    """
    file = File.of(source, file_name)
    with reading(file.name, "a file of instructions", "Give Markdown (.md)."):
        members, prefix, text = _text(file)
        if not text.strip():
            raise InputError(
                f"{file.name} holds no instructions. Markdown (.md), HTML, a Label Studio project, or a "
                f"folder or zip with {FILE} or README.md is read."
            )
        return Told(text, dict(_pictures(text, members, prefix, file.name)))


def carried_instructions(source: File | str) -> Told | None:
    """Instructions that the source of a pool holds; None where it holds none that can be shown.

    A text that is too long ends after the last paragraph that fits; pictures that are not there are words.

    Args:
        source: a file or a folder, as `load_pool` takes it.
    """
    try:
        file = File.of(source)
        if not _may_carry(file):
            return None
        members, prefix, text = _text(file, asked=False)
        if len(text) > LONGEST:
            text = text[:LONGEST].rpartition("\n\n")[0] or text[:LONGEST]
        if not text.strip():
            return None
        pictures = dict(_pictures(text, members, prefix))
        missing = [name for name in pictures_named(text) if is_file(name) and name not in pictures]
        return Told(without_pictures(text, missing), pictures)
    except InputError:
        return None  # the pool itself opens, and says what is wrong where it does not


def without_pictures(text: str, missing: list[str]) -> str:
    """The text with the words of these pictures in their place."""
    return PICTURE.sub(lambda match: match[1] if match[2] in missing else match[0], text)


def _may_carry(file: File) -> bool:
    """True if a pool's source is of a kind that holds instructions: no folder that just has a README."""
    if file.is_folder or file.plain_name.endswith(".zip"):
        members = file.members()
        names = [PurePosixPath(name).name.lower() for name in members.sizes]
        dataset = any(n in METADATA or n.endswith((".parquet", ".arrow")) for n in names)
        return FILE in names or (dataset and not {_CARD, "dataset_info.json"}.isdisjoint(names))
    if not file.plain_name.endswith(".json") or file.size() > 64 << 20:
        return False
    data = file.content()
    return b'"expert_instruction"' in data or b'"label_config"' in data


def _text(file: File, *, asked: bool = True) -> tuple[Members | None, str, str]:
    """The place of pictures (members and the folder within them), and the text; "" where there is none."""
    if file.is_folder or file.plain_name.endswith(".zip"):
        members = file.members()
        for file_name in _NAMES:
            paths = [n for n in members.sizes if PurePosixPath(n).name.lower() == file_name]
            for name in sorted(paths, key=lambda n: (n.count("/"), n))[:1]:
                text = _of(file_name, members.read(name, _MOST_TEXT), name, asked=asked)
                if text.strip():
                    return members, name.rpartition("/")[0], text
        return members, "", ""
    name = file.plain_name
    if file.size() > (64 << 20 if name.endswith(".json") else _MOST_TEXT):
        raise InputError(f"{file.name} has {file.size():,} bytes, too many for instructions.")
    siblings = None if file.is_upload else FolderMembers(file.path.parent, file.name)
    return siblings, "", _of(name, file.content(), file.name, asked=asked)


def _of(name: str, data: bytes, label: str, *, asked: bool) -> str:
    if name.endswith(".json"):
        return _of_json(parse_json(data, label))
    text = valid_text(data.decode("utf-8-sig", "replace")).replace("\r\n", "\n")
    if name.endswith(".xml"):
        return _of_config(text)
    if name.endswith((".html", ".htm")):
        return markdown_of(text)
    if name.endswith((".md", ".markdown", ".txt")):
        card = PurePosixPath(name).name == _CARD or text.startswith("---\n")
        return _of_card(text, asked=asked) if card else text.strip()
    raise InputError(f"{label} is no file of instructions. Give Markdown (.md).")


def _of_card(text: str, *, asked: bool) -> str:
    """A dataset card's section on how to label, else its body where somebody asked for it."""
    if text.startswith("---\n"):
        text = text.partition("\n---")[2].partition("\n")[2]
    lines = text.split("\n")
    levels = [_heading(line) for line in lines]
    for at, (level, title) in enumerate(levels):
        if 1 <= level <= 4 and _SECTION.fullmatch(title):
            end = next((i for i in range(at + 1, len(lines)) if 1 <= levels[i][0] <= level), None)
            return "\n".join(lines[at + 1 : end]).strip()
    return (
        ""
        if _OURS in text or not asked
        else "\n".join(x for x in lines if not any(y in x for y in _UNSAID)).strip()
    )


def _heading(line: str) -> tuple[int, str]:
    """The level of a line that is a heading, and its words; 0 of any other line."""
    words = line.lstrip("#")
    return len(line) - len(words), " ".join(words.strip().rstrip("#").split())


def _of_json(document: Any) -> str:
    """Of a project or tasks of Label Studio, or of what a dataset says of itself."""
    first = document[0] if isinstance(document, list) and document else document
    heads = [first, first.get("project")] if isinstance(first, dict) else []
    for head in heads:
        if not isinstance(head, dict):
            continue
        for name, reader in (("expert_instruction", markdown_of), ("label_config", _of_config)):
            text = reader(head[name]) if isinstance(head.get(name), str) else ""
            if text:
                return text
    description = first.get("description") if isinstance(first, dict) and "features" in first else None
    return description.strip() if isinstance(description, str) else ""


def _of_config(text: str) -> str:
    """The headers of a labelling configuration of Label Studio, but those that a task fills in."""
    parser = _Headers()
    _feed(parser, text)
    return "\n\n".join(value for value in parser.values if value and not value.startswith("$"))


def _pictures(
    text: str, members: Members | None, prefix: str, strict: str = ""
) -> Iterator[tuple[str, bytes]]:
    """The files that a text names, of those beside it; with `strict`, what messages call it, all must be."""
    missing = []
    for name in filter(is_file, pictures_named(text)):
        path = str(PurePosixPath(prefix) / unquote(name)) if prefix else unquote(name).removeprefix("./")
        if members is None or name.startswith("/") or ".." in PurePosixPath(path).parts:
            missing.append(name)
            continue
        try:
            if members.size(path) > MOST_OCTETS:
                raise InputError(
                    f"{cut(name)} has {members.size(path):,} bytes; the limit is {MOST_OCTETS:,}."
                )
            yield name, members.read(path, MOST_OCTETS)
        except InputError as error:
            if strict and "limit" in str(error):
                raise
            missing.append(name)
    if strict and missing:
        raise InputError(f"{strict} names pictures that are not beside it: {listed(missing)}.")


# --- HTML -----------------------------------------------------------------------------------------

_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`"}
_BLOCKS = frozenset(
    ("p", "div", "section", "article", "ul", "ol", "table", "tr", "blockquote", "pre", "h1", "h2", "h3", "h4")
)
_DEEPEST = 8  # lists within each other that are indented further
_UNSEEN = frozenset(("script", "style", "head", "template", "iframe", "object", "svg", "noscript"))


class _Markdown(HTMLParser):
    """Text of a page, as Markdown; scripts, styles and frames are left out with all that they hold."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0
        self._lists: list[int] = []  # number of the next item; 0 where they have none
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        about = dict(attrs)
        if tag in _BLOCKS:
            self.parts.append("\n\n")
        if tag in _MARKS:
            self.parts.append(_MARKS[tag])
        elif re.fullmatch("h[1-6]", tag):
            self.parts.append("\n\n" + "#" * min(int(tag[1]), 4) + " ")
        elif tag == "br":
            self.parts.append("  \n")
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else 0)
        elif tag == "li":
            number = self._lists[-1] if self._lists else 0
            mark = f"{number}. " if number else "- "
            self.parts.append("\n" + "  " * min(max(0, len(self._lists) - 1), _DEEPEST) + mark)
            if number:
                self._lists[-1] += 1
        elif tag == "a":
            target = about.get("href") or ""
            self._links.append(target if re.match(r"(?:https?|mailto):[^\s()]+$", target) else "")
            self.parts.append("[" if self._links[-1] else "")
        elif tag == "img" and about.get("alt"):
            self.parts.append(str(about["alt"]))

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        if tag in _MARKS:
            self.parts.append(_MARKS[tag])
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "a" and self._links and (target := self._links.pop()):
            self.parts.append(f"]({target})")
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(re.sub(r"\s+", " ", data))


class _Headers(HTMLParser):
    """The values of the tags `Header` of a labelling configuration."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.values: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "header":
            self.values.append((dict(attrs).get("value") or "").strip())


def _feed(parser: HTMLParser, page: str) -> None:
    """Read a page with a parser, in a time that grows with its length alone.

    The parser looks for the end of every tag that has none through all of the page; behind the last `>` there
    is none, so nothing there is a tag.
    """
    end = page.rfind(">") + 1
    parser.feed(page[:end] + page[end:].replace("<", "&lt;"))
    parser.close()


def markdown_of(page: str) -> str:
    """HTML as Markdown: headings, lists, strong and emphasised words, links; nothing that could run."""
    if not re.search(r"<[a-zA-Z!/]", page):
        return html.unescape(page).strip()
    parser = _Markdown()
    _feed(parser, page)
    lines = [line.rstrip() if not line.endswith("  ") else line for line in "".join(parser.parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
