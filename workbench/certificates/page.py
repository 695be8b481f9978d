"""A certificate as one page: self-contained, without scripts, in print as on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6876; --line: #d9dfe5; --paper: #ffffff;
  --good: #1a7f4b; --good-paper: #edf7f1; --bad: #a3471f; --bad-paper: #fbf1ec; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6eaee; --soft: #9aa7b3; --line: #36414c; --paper: #151b21;
  --good: #5cc893; --good-paper: #16291f; --bad: #e69a75; --bad-paper: #2e1d15; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.5rem; }
h1 { font-size: 1.1rem; font-weight: 600; margin: 0 0 1rem; color: var(--soft); overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
.says { font-size: 1.35rem; line-height: 1.4; padding: 1.25rem 1.5rem; border-left: 4px solid var(--good);
  background: var(--good-paper); margin: 0; border-radius: 0 6px 6px 0; }
.not { border-color: var(--bad); background: var(--bad-paper); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 500; color: var(--soft); }
.facts th { width: 11rem; }
.checks { font-size: .875rem; }
.wrong td { color: var(--bad); font-weight: 600; }
code { font: .875em ui-monospace, monospace; overflow-wrap: anywhere; }
p { margin: .5rem 0; }
.soft { color: var(--soft); }
@media print { main { padding: 0; max-width: none; } thead { display: table-header-group; } }
"""


def html_of(
    title: str,
    sentence: str,
    method: str,
    facts: Iterable[tuple[str, str]],
    columns: Sequence[str],
    checks: Sequence[tuple[bool, Sequence[str]]],
    *,
    holds: bool,
    classes: Sequence[Sequence[str]] = (),
) -> str:
    """The page.

    Args:
        title: its head.
        sentence: what is promised.
        method: how it was found out.
        facts: names and values.
        columns: of the checks.
        checks: whether it is wrong, and its cells, each.
        holds: whether anything is certified.
        classes: name, labels, checks, precision and recall of each class, where they are stated.

    Returns:
        A whole HTML document.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n"
        f'<p class="says{"" if holds else " not"}">{escape(sentence)}</p>\n'
        f"<h2>What it rests on</h2>\n{_table(facts)}"
        f"{_classes(classes)}"
        f"<h2>Method</h2>\n<p>{escape(method)}</p>\n"
        "<h2>Check it again</h2>\n"
        "<p>With the JSON of this certificate and the labels it came with:</p>\n"
        "<p><code>workbench verify certificate.json labels.csv</code></p>\n"
        '<p class="soft">It recomputes the order of the draws, the evidence and the checksum from these two '
        "files alone. Whether people answered truly it cannot know.</p>\n"
        f"<h2>Checks</h2>\n{_checks(columns, checks)}"
        "</main>\n</body>\n</html>\n"
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{_value(value)}</td></tr>\n" for name, value in rows if value
    )
    return f'<table class="facts">\n{cells}</table>\n'


def _classes(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in ("Class", "Labels", "Checks", "Precision", "Recall"))
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        '<h2>Each class</h2>\n<p class="soft">All of these intervals hold together, at the confidence of '
        "this attempt, beside the promise above.</p>\n"
        f'<table class="checks">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n'
    )


def _value(value: str) -> str:
    is_code = len(value) >= 16 and set(value) <= set("0123456789abcdef")
    return f"<code>{value}</code>" if is_code else escape(value)


def _checks(columns: Sequence[str], checks: Sequence[tuple[bool, Sequence[str]]]) -> str:
    if not checks:
        return '<p class="soft">None yet.</p>\n'
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        f"<tr{' class=wrong' if wrong else ''}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n"
        for wrong, cells in checks
    )
    return f'<table class="checks">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n'
