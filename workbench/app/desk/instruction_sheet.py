"""The instructions at the desk: their Markdown, what of them is new to a person, examples of the classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from workbench.app.desk import cards
from workbench.app.serving.caching import computed
from workbench.pools.instructions import KEPT
from workbench.sessions.instructions import examples_of_all

if TYPE_CHECKING:
    from workbench.sessions import Session

PLACE = "told"
"""The last part but one of the address of a picture of the instructions."""


def picture_addresses(session: Session, base: str, token: str) -> dict[str, str]:
    """Kept pictures: name in the text -> address from which it is fetched.

    Args:
        session: of the project.
        base: of the desk's routes.
        token: for the addresses of pictures.
    """
    names = session.state.pictures
    return {f"{KEPT}{name}": f"{base}/{session.id}/{PLACE}/{name}?k={token}" for name in names}


def blocks(session: Session, version: int, base: str, token: str) -> list[dict[str, Any]]:
    """A version as `markdown.nodes` has it; none of version 0."""
    if not version:
        return []
    text = session.state.instructions[version - 1].text
    return nodes(text, picture_addresses(session, base, token))


def numbers(session: Session) -> dict[str, int]:
    """The version in force, 0 where there are no instructions, and the one that the person has read."""
    instructions = session.instructions.latest
    version = 0 if instructions is None else instructions.version
    return {"told": version, "read": session.state.version_read(session.annotator)}


def sheet(session: Session, base: str, token: str, *, examples: bool = True) -> dict[str, Any]:
    """All that the panel at the desk shows.

    Args:
        session: of the person it is for.
        base: of the desk's routes.
        token: for the addresses of pictures.
        examples: False while labels are checked, which nothing may lead.

    Returns:
        version (0 for none), read (the version that the person has read), author, time, blocks (each with
        "fresh" where it was not in the version they read), and classes: name, help, colour and examples
        (item, id, face, picked).
    """
    state = session.state
    instructions = session.instructions.latest
    about = numbers(session)
    document: dict[str, Any] = {
        "version": about["told"],
        "read": about["read"],
        "author": "" if instructions is None else instructions.annotator,
        "time": "" if instructions is None else instructions.time,
        "blocks": blocks(session, about["told"], base, token),
    }
    if 0 < about["read"] < about["told"]:
        before = blocks(session, about["read"], base, token)
        document["blocks"] = [entry | {"fresh": entry not in before} for entry in document["blocks"]]
    at = session.annotator, state.last_event
    all_examples = computed(examples_of_all, session, at=at) if examples else {}
    picture = f"{base}/{session.id}/image/{{item}}?k={token}"
    keys = {name: key for key, name in state.class_names.items()}
    document["classes"] = [
        {
            "name": name,
            "help": state.class_about.get(keys[name], {}).get("guidance", ""),
            "colour": state.class_about.get(keys[name], {}).get("colour", ""),
            "examples": [
                {
                    "item": entry.item,
                    "id": str(session.pool.items.ids[entry.item]),
                    "face": cards.thumbnail_face(session.pool, entry.item, picture),
                    "picked": entry.picked,
                }
                for entry in all_examples.get(name, ())
            ],
        }
        for name in state.shown_classes[:MOST_CLASSES]
    ]
    document["more"] = len(state.shown_classes) - len(document["classes"])
    return document


MOST_CLASSES = 60
"""Classes whose examples are shown; nobody reads more."""


Node = dict[str, Any]

_DEEPEST = 6  # marks within each other; further ones are left out, their words stay
_BARE = re.compile(r"https?://[^\s<>()\[\]\"']+", re.IGNORECASE)
_SCHEMES = ("http://", "https://", "mailto:")
_MARKS = {"strong": "strong", "em": "em", "link": "link"}


def _parser(pictures: Mapping[str, str]) -> MarkdownIt:
    """A reader of Markdown whose targets are addresses that a browser may open, or pictures of the text."""

    def is_known(url: str) -> bool:
        return url in pictures or url.lower().startswith((*_SCHEMES, KEPT))

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.validateLink = is_known  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return parser


def nodes(text: str, pictures: Mapping[str, str]) -> list[Node]:
    """A text's blocks, as plain nodes that a browser draws with text alone: nothing is taken for HTML.

    markdown-it-py reads it (CommonMark and tables). Drawn are headings, paragraphs, lists, quotes, tables,
    blocks of code, rules; strong and emphasised words, code, links to http, https and mailto, and
    pictures that the project keeps. Whatever else stands in the text, tags and
    scripts among it, is shown as it was typed.

    Args:
        text: Markdown.
        pictures: name of a picture, as the text has it, -> the address it is drawn from.

    Returns:
        JSON: each {"kind": "heading" (level 1 to 4), "paragraph", "list" (ordered, start, items), "quote",
        "code", "table" (head, rows), or "rule"}; what a line holds is a list of runs: "text", "strong", "em",
        "code", "link" (to), "picture" (src, alt) and "break".
    """
    blocks = _blocks(iter(_parser(pictures).parse(text)), pictures)
    below = 0
    for block in blocks:
        if block["kind"] == "heading":  # no step is left out, or a reader that reads aloud loses its place
            below = block["level"] = min(block["level"], below + 1)
    return blocks


def _blocks(tokens: Iterator[Token], pictures: Mapping[str, str]) -> list[Node]:
    """The blocks up to the end of the one that holds them; the parser limits how deep they lie."""
    blocks: list[Node] = []
    for token in tokens:
        if token.nesting < 0:
            break
        kind = token.type.removesuffix("_open")
        if kind in ("fence", "code_block"):
            blocks.append({"kind": "code", "text": token.content.removesuffix("\n")})
        elif kind == "hr":
            blocks.append({"kind": "rule"})
        elif kind in ("heading", "paragraph"):
            level = {"level": min(int(token.tag[1]), 4)} if kind == "heading" else {}
            blocks.append({"kind": kind, **level, "runs": _line(tokens, pictures)})
        elif kind == "blockquote":
            blocks.append({"kind": "quote", "blocks": _blocks(tokens, pictures)})
        elif kind in ("bullet_list", "ordered_list"):
            items = [_blocks(tokens, pictures) for _ in _until_closed(tokens)]
            start = int(token.attrs.get("start", 1))
            blocks.append({"kind": "list", "ordered": kind == "ordered_list", "start": start, "items": items})
        elif kind == "table":
            rows = [
                [_line(tokens, pictures) for _ in _until_closed(tokens)]
                for part in _until_closed(tokens)
                for _ in _until_closed(tokens)
            ]
            blocks.append({"kind": "table", "head": rows[0], "rows": rows[1:]})
    return blocks


def _until_closed(tokens: Iterator[Token]) -> Iterator[Token]:
    """The tokens that open a part, up to the end of the whole; the caller takes what lies within."""
    for token in tokens:
        if token.nesting < 0:
            return
        yield token


def _line(tokens: Iterator[Token], pictures: Mapping[str, str]) -> list[Node]:
    """The runs of a heading, paragraph or cell, whose end is taken as well."""
    runs: list[Node] = []
    for token in _until_closed(tokens):
        runs = _runs(token.children or (), pictures)
    return runs


def _runs(tokens: Sequence[Token], pictures: Mapping[str, str]) -> list[Node]:
    runs: list[Node] = []
    places = [runs]  # where runs go: the last is the innermost mark's
    for token in tokens:
        if token.nesting < 0:
            places.pop()
        elif token.nesting > 0:
            kind, to = _MARKS[token.type.removesuffix("_open")], str(token.attrs.get("href", ""))
            is_allowed = kind != "link" or to.lower().startswith(_SCHEMES)
            if is_allowed and len(places) <= _DEEPEST:
                inner: list[Node] = []
                places[-1].append({"kind": kind, **({"to": to} if kind == "link" else {}), "runs": inner})
                places.append(inner)
            else:
                places.append(places[-1])
        elif token.type == "code_inline":
            places[-1].append({"kind": "code", "text": token.content})
        elif token.type == "hardbreak":
            places[-1].append({"kind": "break"})
        elif token.type == "image":
            _add_picture(places[-1], token, pictures)
        else:
            _add_words(places[-1], " " if token.type == "softbreak" else token.content)
    return runs


def _add_picture(runs: list[Node], token: Token, pictures: Mapping[str, str]) -> None:
    source, words = str(token.attrs.get("src", "")), token.content
    if address := pictures.get(source):
        runs.append({"kind": "picture", "src": address, "alt": words})
    elif source.startswith(KEPT):
        _add_words(runs, words)
    else:  # nothing is fetched from elsewhere: it would tell others who reads this
        runs.append({"kind": "link", "to": source, "runs": [{"kind": "text", "text": words or source}]})


def _add_words(runs: list[Node], text: str) -> None:
    """Words, and links where addresses stand among them."""
    end = 0
    for address in _BARE.finditer(text):
        to = address[0].rstrip(".,;:!?")
        _add_text(runs, text[end : address.start()])
        runs.append({"kind": "link", "to": to, "runs": [{"kind": "text", "text": to}]})
        end = address.start() + len(to)
    _add_text(runs, text[end:])


def _add_text(runs: list[Node], text: str) -> None:
    if text and runs and runs[-1]["kind"] == "text":
        runs[-1] = {"kind": "text", "text": runs[-1]["text"] + text}
    elif text:
        runs.append({"kind": "text", "text": text})
