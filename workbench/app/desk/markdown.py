"""Markdown as plain nodes that a browser draws with text alone: nothing in it is ever taken for HTML.

What is drawn: headings, paragraphs, lists, quotes, tables, blocks of code, rules; strong and emphasised
words, code, links to http, https and mailto, and pictures that the project keeps. Whatever else stands in
the text, tags and scripts among it, is shown as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench.pools.instructions import KEPT

Node = dict[str, Any]

_DEEPEST = 6  # lists and quotes within each other
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_RULE = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"^( {0,3})([-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_QUOTE = re.compile(r"^ {0,3}> ?")
_CELLS = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_INLINE = re.compile(
    r"(?P<escape>\\[\\`*_{}\[\]()#+.!|>~-])"
    r"|(?P<code>`[^`\n]{1,2000}`)"
    r"|!\[(?P<alt>[^\]\n]{0,300})\]\((?P<src>[^()\s]{1,300})\)"
    r"|\[(?P<words>[^\[\]\n]{1,500})\]\((?P<target>[^()\s]{1,2000})\)"
    r"|(?P<bare><?https?://[^\s<>()\[\]\"']{1,2000}[^\s<>()\[\]\"'.,;:!?]>?)"
    r"|\*\*(?P<strong>(?=\S)[^\n]{1,2000}?(?<=\S))\*\*"
    r"|\*(?P<em>(?=[^\s*])[^*\n]{0,2000}[^\s*]|[^\s*])\*"
    r"|(?<![^\W_])_(?P<under>(?=[^\s_])[^_\n]{0,2000}[^\s_]|[^\s_])_(?![^\W_])"
    r"|(?P<line> {2,}\n|\\\n)"
)
_SAFE = re.compile(r"(?:https?://|mailto:)[^\s]+$", re.IGNORECASE)


def nodes(text: str, pictures: Mapping[str, str]) -> list[Node]:
    """A text's blocks.

    Args:
        text: Markdown.
        pictures: name of a picture, as the text has it, -> the address it is drawn from.

    Returns:
        JSON: each {"kind": "heading" (level 1 to 4), "paragraph", "list" (ordered, items), "quote", "code",
        "table" (head, rows), or "rule"}; what a line holds is a list of runs: "text", "strong", "em", "code",
        "link" (to), "picture" (src, alt) and "break".
    """
    found = _blocks(text.split("\n"), pictures, 0)
    below = 0
    for one in found:
        if one["kind"] == "heading":  # no step is left out, or a reader that reads aloud loses its place
            below = one["level"] = min(one["level"], below + 1)
    return found


def _blocks(lines: list[str], pictures: Mapping[str, str], depth: int) -> list[Node]:
    found: list[Node] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif fence := _FENCE.match(line):
            end = next(
                (i for i in range(at + 1, len(lines)) if lines[i].strip().startswith(fence[1])), len(lines)
            )
            found.append({"kind": "code", "text": "\n".join(lines[at + 1 : end])})
            at = end + 1
        elif heading := _HEADING.match(line):
            level = min(len(heading[1]), 4)
            found.append({"kind": "heading", "level": level, "runs": _runs(heading[2], pictures)})
            at += 1
        elif _RULE.match(line):
            found.append({"kind": "rule"})
            at += 1
        elif depth < _DEEPEST and _QUOTE.match(line):
            end = _while(lines, at, lambda one: bool(_QUOTE.match(one)))
            inner = [_QUOTE.sub("", one, count=1) for one in lines[at:end]]
            found.append({"kind": "quote", "blocks": _blocks(inner, pictures, depth + 1)})
            at = end
        elif depth < _DEEPEST and _ITEM.match(line):
            made, at = _list(lines, at, pictures, depth)
            found.append(made)
        elif "|" in line and at + 1 < len(lines) and "|" in lines[at + 1] and _CELLS.match(lines[at + 1]):
            end = _while(lines, at, lambda one: "|" in one)
            rows = [_row(one, pictures) for one in (line, *lines[at + 2 : end])]
            found.append({"kind": "table", "head": rows[0], "rows": rows[1:]})
            at = end
        else:
            end = at + 1
            while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
                end += 1
            found.append({"kind": "paragraph", "runs": _runs("\n".join(lines[at:end]).strip(), pictures)})
            at = end
    return found


def _begins(line: str) -> bool:
    """Whether a line begins another block than the paragraph it would go on with."""
    return any(mark.match(line) for mark in (_HEADING, _FENCE, _RULE, _ITEM, _QUOTE))


def _while(lines: list[str], at: int, belongs: Any) -> int:
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return at


def _list(lines: list[str], at: int, pictures: Mapping[str, str], depth: int) -> tuple[Node, int]:
    """A list from line `at` on, and the line after it."""
    first = _ITEM.match(lines[at])
    assert first is not None
    ordered = first[2][0].isdigit()
    items: list[list[Node]] = []
    while at < len(lines):
        mark = _ITEM.match(lines[at])
        if mark is None or mark[2][0].isdigit() != ordered or _RULE.match(lines[at]):
            break
        inside = mark.end()
        own = [lines[at][inside:]]
        at += 1
        while at < len(lines):
            line = lines[at]
            indent = len(line) - len(line.lstrip(" "))
            if not line.strip():
                after = lines[at + 1] if at + 1 < len(lines) else ""
                if not after.strip() or len(after) - len(after.lstrip(" ")) < 2:
                    break
                own.append("")
            elif indent >= 2:
                own.append(line[min(indent, inside) :])
            elif _begins(line) or not own[-1].strip():
                break
            else:
                own.append(line)
            at += 1
        items.append(_blocks(own, pictures, depth + 1))
        # a blank line between two items does not end the list
        if at + 1 < len(lines) and not lines[at].strip() and _ITEM.match(lines[at + 1]):
            at += 1
    start = int(first[2][:-1]) if ordered else 1
    return {"kind": "list", "ordered": ordered, "start": start, "items": items}, at


def _row(line: str, pictures: Mapping[str, str]) -> list[list[Node]]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [_runs(cell.strip(), pictures) for cell in cells]


def _runs(text: str, pictures: Mapping[str, str], depth: int = 0) -> list[Node]:
    found: list[Node] = []
    plain: list[str] = []

    def close() -> None:
        words = re.sub(r"[ \t]*\n[ \t]*", " ", "".join(plain))
        plain.clear()
        if words:
            found.append({"kind": "text", "text": words})

    end = 0
    for mark in _INLINE.finditer(text):
        plain.append(text[end : mark.start()])
        end = mark.end()
        run = _run(mark, pictures, depth)
        if isinstance(run, str):
            plain.append(run)
        else:
            close()
            found.append(run)
    plain.append(text[end:])
    close()
    return found


def _run(mark: re.Match[str], pictures: Mapping[str, str], depth: int) -> Node | str:
    """What a mark stands for; a text where it stands for nothing."""
    kind = mark.lastgroup
    if kind == "escape":
        return mark[0][1:]
    if kind == "code":
        return {"kind": "code", "text": mark[0][1:-1]}
    if kind == "line":
        return {"kind": "break"}
    if kind == "src":
        src = pictures.get(mark["src"])
        if src is not None:
            return {"kind": "picture", "src": src, "alt": mark["alt"]}
        # nothing is fetched from elsewhere: it would tell others who reads this
        return (
            mark["alt"]
            if mark["src"].startswith(KEPT) or not _SAFE.match(mark["src"])
            else {
                "kind": "link",
                "to": mark["src"],
                "runs": [{"kind": "text", "text": mark["alt"] or mark["src"]}],
            }
        )
    if kind == "bare":
        to = mark["bare"].strip("<>")
        return {"kind": "link", "to": to, "runs": [{"kind": "text", "text": to}]}
    if kind == "target":
        if not _SAFE.match(mark["target"]):
            return mark[0]
        return {"kind": "link", "to": mark["target"], "runs": _inner(mark["words"], pictures, depth)}
    name = "strong" if kind == "strong" else "em"
    return {"kind": name, "runs": _inner(mark[str(kind)], pictures, depth)}


def _inner(text: str, pictures: Mapping[str, str], depth: int) -> list[Node]:
    return _runs(text, pictures, depth + 1) if depth < _DEEPEST else [{"kind": "text", "text": text}]
