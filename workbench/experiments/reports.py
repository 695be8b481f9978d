"""Results of a reproduced experiment, and the file they are written to.

A report holds findings (the paper's figure, ours, a verdict by a stated rule), tables and figures.
It is written as Markdown with the tables as CSV and the figures as HTML, and as PNG where a browser
is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workbench.csv_writing import csv_text
from workbench.errors import InputError
from workbench.exchange.files import json_text
from workbench.progress import duration
from workbench.writing import write_whole

Verdict = Literal["reproduced", "partly", "not reproduced"]

RULE = (
    "A claim is *reproduced* when all of its conditions hold in our run, *partly* when some do, *not "
    "reproduced* when none does, or where the one marked as its core (the number that the paper prints) does "
    "not. In a run that was capped (fewer sets, rows, seeds or another rival than "
    "the paper's) it is at most *partly*. The conditions are listed with each claim."
)


class Condition(NamedTuple):
    """One checkable half-sentence of a claim.

    Attributes:
        text: what must hold, with its numbers.
        holds: whether it did.
        core: whether the claim is not reproduced without it.
    """

    text: str
    holds: bool
    core: bool = False


@dataclass(frozen=True)
class Finding:
    """One claim of a paper against what we measured.

    Attributes:
        claim: in our words.
        paper: the paper's figure.
        ours: ours.
        conditions: what decides.
    """

    claim: str
    paper: str
    ours: str
    conditions: tuple[Condition, ...]

    def verdict(self, capped: bool) -> Verdict:
        """The word of `RULE`.

        Args:
            capped: whether the run was smaller than the paper's, or not like it.
        """
        count = sum(condition.holds for condition in self.conditions)
        if not count or any(criterion.core and not criterion.holds for criterion in self.conditions):
            return "not reproduced"
        return "partly" if capped or count < len(self.conditions) else "reproduced"


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        name: of its CSV file.
        title: above it.
        columns: their names.
        rows: numbers and texts.
        shown: rows printed in the Markdown; the CSV has all of them.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    shown: int = 80


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    Attributes:
        name: of its file.
        title: above it.
        figure: a Plotly figure.
    """

    name: str
    title: str
    figure: Any


@dataclass
class Report:
    """Result of an experiment.

    Attributes:
        title: of the report.
        findings: claims and verdicts, the main one first.
        tables: in order.
        figures: in order.
        caps: in what the run was smaller than the paper's, or differed; empty for a full one.
        notes: what a reader must know.
        cost: what a full run costs, where this one was not one.
    """

    title: str
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    caps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cost: str = ""

    def claim(self, claim: str, *, paper: str, ours: str, holds: Mapping[str, Any], core: str = "") -> None:
        """Add a finding.

        Args:
            claim: in our words.
            paper: the paper's figure.
            ours: ours.
            holds: condition, with its numbers -> whether it did.
            core: the condition that is the claim's core; none by default.
        """
        conditions = tuple(Condition(text, bool(outcome), text == core) for text, outcome in holds.items())
        self.findings.append(Finding(claim, paper, ours, conditions))

    def table(
        self, name: str, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], shown: int = 80
    ) -> None:
        """Add a table; arguments as `Table`."""
        self.tables.append(Table(name, title, tuple(columns), list(rows), shown))

    def figure(self, name: str, title: str, figure: Any) -> None:
        """Add a figure; arguments as `Figure`."""
        self.figures.append(Figure(name, title, figure))

    @property
    def verdict(self) -> Verdict:
        """The worst but one rule for several claims: all alike, or partly."""
        words = {finding.verdict(bool(self.caps)) for finding in self.findings}
        if not words:
            raise InputError(f"The report {self.title!r} has no finding to judge.")
        return words.pop() if len(words) == 1 else "partly"


def write_report(
    report: Report,
    folder: Path | str,
    *,
    name: str,
    command: str,
    seconds: float,
    there: int = 0,
    parts: int = 0,
) -> Path:
    """Write a report as a folder: report.md, report.json, tables/, figures/.

    Args:
        report: of the experiment.
        folder: made where it is not there.
        name: of the experiment.
        command: that made it.
        seconds: it took, as wall time.
        there: parts that an earlier run had finished, so that these seconds are without them.
        parts: of how many.

    Returns:
        The path of report.md.
    """
    place = Path(folder)
    (place / "tables").mkdir(parents=True, exist_ok=True)
    (place / "figures").mkdir(parents=True, exist_ok=True)
    lines = [f"# {report.title}", "", f"Verdict: **{report.verdict}**.", ""]
    before = f", with {there:,} of its {parts:,} parts there already" if there else ""
    lines += [f"Made by `{command}` in {duration(seconds)}{before}.", ""]
    if report.caps:
        lines += ["Not run in full:", "", *(f"- {cap}" for cap in report.caps), ""]
        if report.cost:
            lines += [f"A full run costs {report.cost}.", ""]
    lines += ["## What the paper says and what came out", ""]
    lines += ["| claim | paper | ours | verdict |", "| --- | --- | --- | --- |"]
    capped = bool(report.caps)
    for finding in report.findings:
        cells = (finding.claim, finding.paper, finding.ours, finding.verdict(capped))
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    lines += ["", RULE, ""]
    for finding in report.findings:
        lines.append(f"- {finding.claim}")
        lines += [
            f"    - {'holds' if c.holds else 'does not hold'}{', the core' if c.core else ''}: {c.text}"
            for c in finding.conditions
        ]
    lines.append("")
    for table in report.tables:
        write_whole(place / "tables" / f"{table.name}.csv", csv_text(table.columns, table.rows))
        lines += [f"## {table.title}", "", *_markdown(table), ""]
    without = []
    for figure in report.figures:
        stem = place / "figures" / figure.name
        images = write_figure(figure.figure, stem)
        lines += [f"## {figure.title}", ""]
        if "png" in images:
            lines += [f"![{figure.title}](figures/{figure.name}.png)", ""]
        else:
            without.append(figure.name)
        lines += [f"[Interactive](figures/{figure.name}.html)", ""]
    if without:
        report.notes.append(
            "No pictures as PNG: that needs the kaleido package and a Chrome or Chromium. HTML is there."
        )
    if report.notes:
        lines += ["## Notes", "", *(f"- {note}" for note in report.notes), ""]
    write_whole(place / "report.md", "\n".join(lines).rstrip() + "\n")
    document = {
        "name": name,
        "title": report.title,
        "verdict": report.verdict,
        "command": command,
        "caps": report.caps,
        "notes": report.notes,
        "findings": [
            {
                "claim": f.claim,
                "paper": f.paper,
                "ours": f.ours,
                "verdict": f.verdict(capped),
                "conditions": [{"text": c.text, "holds": bool(c.holds)} for c in f.conditions],
            }
            for f in report.findings
        ],
    }
    write_whole(place / "report.json", json_text(document))
    return place / "report.md"


def write_figure(figure: Any, stem: Path) -> list[str]:
    """Write a figure as HTML, and as PNG where that can be done; Plotly lies beside, once a folder.

    Args:
        figure: of Plotly.
        stem: path without an ending.

    Returns:
        The endings written.
    """
    from workbench.figures import export

    plotly, script = stem.with_name(export.SCRIPT), export.script().encode()
    if not plotly.is_file() or plotly.read_bytes() != script:
        write_whole(plotly, script)
    write_whole(stem.with_suffix(".html"), export.html(figure, stem.name, shared=True))
    try:
        image = export.image(figure, "png")
    except InputError:
        return ["html"]
    write_whole(stem.with_suffix(".png"), image)
    return ["html", "png"]


def _markdown(table: Table) -> list[str]:
    lines = ["| " + " | ".join(_cell(c) for c in table.columns) + " |"]
    lines.append("| " + " | ".join("---" for _ in table.columns) + " |")
    lines += ["| " + " | ".join(_cell(v) for v in row) + " |" for row in table.rows[: table.shown]]
    if len(table.rows) > table.shown:
        lines += ["", f"{len(table.rows) - table.shown} more rows in tables/{table.name}.csv."]
    return lines


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
