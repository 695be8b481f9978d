"""The papers' tables and figures by name: `workbench reproduce NAME`, and the reports they are written to.

An experiment is a function of a `Report`, named in experiments.toml with what it costs and imported when
it is run. To add one: write the function and add a table. It asks the report for its limits and its parts,
and gives it findings (the paper's figure, ours, a verdict by a stated rule), tables and figures. The report
is written as Markdown with the tables as CSV and the figures as HTML, and as PNG where a browser is found.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeVar

import numpy as np

from workbench import work
from workbench.arrays import Floats
from workbench.csv_writing import csv_text
from workbench.errors import Cancelled, InputError
from workbench.exchange.manifests import json_text
from workbench.pools.datasets import known
from workbench.pools.datasets.catalogue import catalogue
from workbench.progress import OnProgress, duration, quiet
from workbench.reading import reading
from workbench.registry import Entry, Registry, written_entries
from workbench.studies.fits import POKER
from workbench.writing import alone_in, write_whole

Verdict = Literal["reproduced", "partly", "not reproduced"]

RULE = (
    "A claim is *reproduced* when all of its conditions hold in our run, *partly* when some do, *not "
    "reproduced* when none does, or where the one marked as its core (the number that the paper prints) does "
    "not. In a run that was capped (fewer sets, rows, seeds or another rival than "
    "the paper's) it is at most *partly*. The conditions are listed with each claim."
)


@dataclass(frozen=True)
class Finding:
    """One claim of a paper against what we measured.

    Attributes:
        claim: in our words.
        paper: the paper's figure.
        ours: ours.
        holds: what decides: condition, with its numbers -> whether it holds.
        core: the condition without which the claim is not reproduced; "" for none.
    """

    claim: str
    paper: str
    ours: str
    holds: Mapping[str, bool]
    core: str = ""

    def verdict(self, capped: bool) -> Verdict:
        """The word of `RULE`.

        Args:
            capped: whether the run was smaller than the paper's, or not like it.
        """
        if not any(self.holds.values()) or not self.holds.get(self.core, True):
            return "not reproduced"
        return "partly" if capped or not all(self.holds.values()) else "reproduced"


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


def write_report(report: Report, command: str, seconds: float) -> Path:
    """Write a report into its folder: report.md, report.json, tables/, figures/.

    Args:
        report: of the experiment.
        command: that made it.
        seconds: it took, as wall time; those of parts that an earlier run had finished are not among them.

    Returns:
        The path of report.md.
    """
    from workbench.figures import export

    place, counts = report.folder, report.part_counts
    (place / "tables").mkdir(parents=True, exist_ok=True)
    (place / "figures").mkdir(parents=True, exist_ok=True)
    lines = [f"# {report.title}", "", f"Verdict: **{report.verdict}**.", ""]
    there = counts["there"]
    before = f", with {there:,} of its {counts['asked']:,} parts there already" if there else ""
    lines += [f"Made by `{command}` in {duration(seconds)}{before}.", ""]
    if report.caps:
        lines += ["Not run in full:", "", *(f"- {cap}" for cap in report.caps), ""]
        if report.cost:
            lines += [f"A full run costs {report.cost}.", ""]
    lines += ["## What the paper says and what came out", ""]
    verdicts = [finding.verdict(bool(report.caps)) for finding in report.findings]
    cells = [
        (f.claim, f.paper, f.ours, verdict) for f, verdict in zip(report.findings, verdicts, strict=True)
    ]
    lines += [*_markdown(("claim", "paper", "ours", "verdict"), cells), "", RULE, ""]
    for finding in report.findings:
        lines.append(f"- {finding.claim}")
        lines += [
            f"    - {'holds' if holds else 'does not hold'}{', the core' * (text == finding.core)}: {text}"
            for text, holds in finding.holds.items()
        ]
    lines.append("")
    for table in report.tables:
        write_whole(place / "tables" / f"{table.name}.csv", csv_text(table.columns, table.rows))
        lines += [f"## {table.title}", "", *_markdown(table.columns, table.rows[: table.shown]), ""]
        if len(table.rows) > table.shown:
            lines += [f"{len(table.rows) - table.shown} more rows in tables/{table.name}.csv.", ""]
    undrawn = write_figures(report.figures, place / "figures") if report.figures else []
    for figure in report.figures:
        lines += [f"## {figure.title}", ""]
        if figure not in undrawn:
            lines += [f"![{figure.title}](figures/{figure.name}.png)", ""]
        lines += [f"[Interactive](figures/{figure.name}.html)", ""]
    if undrawn:
        names = ", ".join(figure.name for figure in undrawn)
        why = export.why_no_images() or "The browser could not draw it."
        report.notes.append(f"No picture as PNG of {names}. {why} HTML is there.")
    if report.notes:
        lines += ["## Notes", "", *(f"- {note}" for note in report.notes), ""]
    write_whole(place / "report.md", "\n".join(lines).rstrip() + "\n")
    document = {
        "name": report.name,
        "title": report.title,
        "verdict": report.verdict,
        "command": command,
        "caps": report.caps,
        "notes": report.notes,
        "findings": [
            {
                "claim": finding.claim,
                "paper": finding.paper,
                "ours": finding.ours,
                "conditions": [{"text": text, "holds": holds} for text, holds in finding.holds.items()],
                "verdict": verdict,
            }
            for finding, verdict in zip(report.findings, verdicts, strict=True)
        ],
    }
    write_whole(place / "report.json", json_text(document))
    return place / "report.md"


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Figure]:
    """Write figures as HTML, and as PNG where that can be done; Plotly lies beside, once a folder.

    Args:
        figures: of a report.
        folder: where they are written.

    Returns:
        Those of which there is no PNG.
    """
    from workbench.figures import export

    plotly, script = folder / export.SCRIPT, export.script().encode()
    if not plotly.is_file() or plotly.read_bytes() != script:
        write_whole(plotly, script)
    for figure in figures:
        write_whole(folder / f"{figure.name}.html", export.html(figure.figure, figure.name, shared=True))
    if export.why_no_images():
        return list(figures)
    try:
        pictures: list[bytes] = export.images([figure.figure for figure in figures], "png")
    except InputError:  # of one: each has a browser of its own
        pictures = [_png(figure) for figure in figures]
    for picture, figure in zip(pictures, figures, strict=True):
        if picture:
            write_whole(folder / f"{figure.name}.png", picture)
    return [figure for picture, figure in zip(pictures, figures, strict=True) if not picture]


def _png(figure: Figure) -> bytes:
    from workbench.figures import export

    try:
        return export.image(figure.figure, "png")
    except InputError:
        return b""


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a table."""
    cells = [map(_cell, columns), ("---" for _ in columns), *(map(_cell, row) for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in cells]


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


T = TypeVar("T")


@dataclass(frozen=True)
class Experiment(Entry):
    """One table or figure of a paper.

    Attributes:
        paper: which, such as "Wistuba & Rawat 2019, table 1".
        quick: what `--quick` costs.
        full: what a full run costs.
        limits: what options may cut: "rows", "seeds", "rows seeds" or nothing.
    """

    paper: str = ""
    quick: str = ""
    full: str = ""
    limits: str = ""


EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment", written_entries(Path(__file__).with_name("experiments.toml"), Experiment)
)


class Grid:
    """Results of parts over axes: `grid["error"]` is an array with a dimension for each axis.

    Args:
        axes: name -> values, outermost first.
        keys: the arguments of each part.
        results: of each part, in the same order.
    """

    def __init__(
        self, axes: Mapping[str, Sequence[Any]], keys: Sequence[dict[str, Any]], results: Sequence[Any]
    ):
        self.axes, self._keys, self._results = axes, keys, results

    def __getitem__(self, measure: str) -> Floats:
        """A measure as an array, [axis, axis, ...]; NaN where a part has no such number."""
        values = [np.nan if r.get(measure) is None else r[measure] for r in self._results]
        return np.array(values, dtype=np.float64).reshape([len(values) for values in self.axes.values()])

    def mean(self, measure: str, *over: str) -> Floats:
        """A measure averaged over some axes."""
        return self[measure].mean(axis=tuple(list(self.axes).index(name) for name in over))

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Arguments and result of each part."""
        return iter(zip(self._keys, self._results, strict=True))

    def rows(self, *columns: str | Callable[[Mapping[str, Any]], Any]) -> list[tuple[Any, ...]]:
        """A row a part: arguments and measures by name, or functions of both together."""
        return [
            tuple(column(record) if callable(column) else record[column] for column in columns)
            for record in (key | result for key, result in self)
        ]


@dataclass
class Report:
    """One run of an experiment: its limits, its parts, and what came out.

    Attributes:
        name: of the experiment.
        folder: of the report; files of the experiment's own may go there.
        cache: folder of finished parts, shared by experiments.
        quick: whether caps for a few minutes are wanted.
        max_rows: at most this many rows of any data set, or None.
        max_seeds: at most this many seeds, or None.
        workers: processes for parts that are independent.
        progress: (fraction, message) for whoever watches.
        should_stop: asked between parts.
        title: of the report.
        cost: of a full run.
        findings: claims and verdicts, the main one first.
        tables: in order.
        figures: in order.
        caps: in what the run was smaller than the paper's, or differed; empty for a full one.
        notes: what a reader must know.
        part_counts: how many parts were asked for, and how many of them were there already.
    """

    name: str
    folder: Path
    cache: Path
    quick: bool = False
    max_rows: int | None = None
    max_seeds: int | None = None
    workers: int = 1
    progress: OnProgress = quiet
    should_stop: Callable[[], bool] = lambda: False
    title: str = ""
    cost: str = ""
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    caps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    part_counts: Counter[str] = field(default_factory=Counter)

    def claim(self, claim: str, *, paper: str, ours: str, holds: Mapping[str, Any], core: str = "") -> None:
        """Add a finding.

        Args:
            claim: in our words.
            paper: the paper's figure.
            ours: ours.
            holds: condition, with its numbers -> whether it did.
            core: the condition that is the claim's core; none by default.
        """
        outcomes = {condition: bool(outcome) for condition, outcome in holds.items()}
        self.findings.append(Finding(claim, paper, ours, outcomes, core))

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

    def cap(self, what: str, full: T, quick: T) -> T:
        """A setting that is smaller in a quick run; says so in the report.

        Args:
            what: such as "seeds".
            full: the paper's value.
            quick: the value for `--quick`.

        Returns:
            The one to use.
        """
        return self.at_most(what, full, quick if self.quick else full)

    def at_most(self, what: str, full: T, used: T) -> T:
        """A setting that may be smaller than the paper's; where it is, the report says so."""
        if used != full:
            self.caps.append(f"{what}: {used} instead of {full}")
        return used

    def seeds(self, full: int, quick: int, what: str = "seeds") -> int:
        """Number of seeds: `--max-seeds`, else `quick` in a quick run, else `full`; said in the report.

        Args:
            full: of a run in full.
            quick: for `--quick`.
            what: the seeds are of.

        Returns:
            The number.
        """
        if self.max_seeds is None:
            return self.cap(what, full, quick)
        return self.at_most(what, full, min(full, self.max_seeds))

    def rows(self, quick: int) -> int | None:
        """The cap on rows: `--max-rows`, else `quick` in a quick run, else None; said in the report."""
        limit = self.max_rows if self.max_rows is not None else quick if self.quick else None
        note = f"at most {limit:,} rows of a data set" if limit else ""
        if note and note not in self.caps:
            self.caps.append(note)
        return limit

    def grid(
        self,
        group: str,
        function: Callable[..., Any],
        axes: Mapping[str, Sequence[Any]],
        describe: Callable[[Mapping[str, Any]], str] | None = None,
        **fixed: Any,
    ) -> Grid:
        """Compute a function for every combination of some of its arguments; see `parts`.

        Args:
            group: experiments that name the same group share parts.
            function: of JSON values, returning a mapping of measures.
            axes: argument -> its values; the first changes slowest.
            describe: a part in few words, for progress; the values of the axes unless given.
            fixed: arguments that are the same in every part.

        Returns:
            The results.
        """
        keys = [dict(zip(axes, values, strict=True)) | fixed for values in product(*axes.values())]

        def words(key: Mapping[str, Any]) -> str:
            return " ".join(str(key[name]) for name in axes)

        return Grid(axes, keys, self.parts(group, keys, function, describe or words))

    def parts(
        self,
        group: str,
        keys: Sequence[Mapping[str, Any]],
        function: Callable[..., Any],
        describe: Callable[[Mapping[str, Any]], str] = str,
    ) -> list[Any]:
        """Compute `function(**key)` for every key once: finished parts are kept on disk, with their program.

        A part of another version of the program, or of other files of data, is computed again.

        Args:
            group: experiments that name the same group share parts.
            keys: JSON documents, the arguments; all that a part depends on.
            function: at module level (it may run in another process), returning a JSON document.
            describe: a key in few words, for progress.

        Returns:
            A result a key, in order.

        Raises:
            Cancelled: `should_stop` said so; what is finished stays.
            InputError: the file of finished parts is damaged; says where.
        """
        store = _Cache(self.cache / f"{group}.jsonl")
        names = [json.dumps(dict(key), sort_keys=True) for key in keys]
        open_ones = [i for i, name in enumerate(names) if name not in store.values]
        done = len(keys) - len(open_ones)
        self.part_counts.update(asked=len(keys), there=done)

        def finished(index: int, result: Any, data: Mapping[str, str]) -> None:
            nonlocal done
            store.add(names[index], result, data)
            done += 1
            self.progress(done / max(len(keys), 1), describe(keys[index]))

        if self.workers > 1 and len(open_ones) > 1:
            jobs = [(function, dict(keys[i])) for i in open_ones]
            with work.cluster(min(self.workers, len(jobs))) as them:
                for at, output in work.spread(them, _call, jobs, should_stop=self.should_stop):
                    finished(open_ones[at], *output)
        else:
            for index in open_ones:
                if self.should_stop():
                    raise Cancelled(self.name)
                finished(index, function(**keys[index]), known.READ)
        return [store.values[name] for name in names]


def _call(function: Callable[..., Any], key: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """A part and the files of data that its process has read, in another process."""
    from workbench.engine.runtime import prepare

    prepare()
    return function(**key), dict(known.READ)


PACKAGE = Path(__file__).resolve().parents[1]


@cache
def code_hash(folder: Path = PACKAGE) -> str:
    """Twelve digits of a hash of the package's Python, JSON and TOML files: the program that a figure is of.

    Args:
        folder: of the package.
    """
    digest = sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".json", ".toml") and p.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:12]


class _Cache:
    """Finished parts of this program on these data, a JSON line each; a line cut by a kill is dropped.

    Args:
        path: of the file; parts of another program or of other data stay in it and are not taken over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file():
            return
        data = path.read_bytes()
        content = data[: data.rfind(b"\n") + 1]
        if content != data:
            path.write_bytes(content)
        same = cache(lambda files: known.same_files(dict(files)))
        for number, line in enumerate(content.splitlines(), 1):
            with reading(f"Line {number} of {path}", "a finished part", "Take the line out of the file."):
                part = json.loads(line)
                key, value = part["key"], part["value"]
                if part["code"] == code_hash() and same(tuple(part["data"].items())):
                    self.values[key] = value

    def add(self, key: str, value: Any, data: Mapping[str, str]) -> None:
        line = json.dumps({"key": key, "value": value, "code": code_hash(), "data": data})
        with self.path.open("ab") as file:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.values[key] = value


def reproduce(
    name: str,
    out: Path | str = "reproduction",
    *,
    quick: bool = False,
    max_rows: int | None = None,
    max_seeds: int | None = None,
    workers: int = 1,
    progress: OnProgress = quiet,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[Report, Path]:
    """Run one of the papers' experiments and write its report.

    Args:
        name: in `EXPERIMENTS`.
        out: folder; the report goes to a folder of its name in it, finished parts to `cache` in it,
            so that the same call goes on after a kill.
        quick: caps for a few minutes.
        max_rows: at most this many rows of any data set.
        max_seeds: at most this many seeds, where an experiment has several.
        workers: processes.
        progress: called with (fraction, message).
        should_stop: True ends it between two parts.

    Returns:
        The report and the path of report.md.

    Raises:
        InputError: no such experiment, or data that are not there (with how to get them).
        Cancelled: told to stop.
    """
    entry = EXPERIMENTS[name]
    if max_rows is not None and max_rows < 50:
        raise InputError(f"--max-rows must be at least 50; got {max_rows}.")
    if max_seeds is not None and max_seeds < 1:
        raise InputError(f"--max-seeds must be at least 1; got {max_seeds}.")
    for limit, maximum in (("rows", max_rows), ("seeds", max_seeds)):
        if maximum is not None and limit not in entry.limits.split():
            fitting = ", ".join(
                experiment.name for experiment in EXPERIMENTS.values() if limit in experiment.limits.split()
            )
            raise InputError(f"{name} has no {limit} to cut: --max-{limit} is for {fitting}.")
    work.check_workers(workers)
    place = Path(out)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; --out takes a folder.")
    report = Report(
        name,
        place / name,
        place / "cache",
        quick,
        max_rows,
        max_seeds,
        workers,
        progress,
        should_stop,
        f"{entry.title} ({entry.paper})",
        entry.full,
    )
    began = perf_counter()
    report.folder.mkdir(parents=True, exist_ok=True)
    with alone_in(report.folder, should_stop):  # a second program would compute every part again
        entry.load()(report)
    report.caps = list(dict.fromkeys(report.caps))
    command = f"workbench reproduce {name}" + (" --quick" if quick else "")
    command += f" --max-rows {max_rows}" if max_rows is not None else ""
    command += f" --max-seeds {max_seeds}" if max_seeds is not None else ""
    return report, write_report(report, command, perf_counter() - began)


def short(name: str) -> str:
    """A set's name without its group."""
    return name.partition(":")[2] or name


def paper_sets(report: Report) -> list[str]:
    """The 68 sets of the large-margin papers, small ones first; the missing ones are a cap.

    PMLB sets of 3 or more classes and 128 or more rows, MNIST left out; poker by its generator.

    Args:
        report: of the experiment.

    Returns:
        Names as `load_pool` takes them.

    Raises:
        InputError: not one of them is here.
    """
    entries = [e for e in catalogue() if e.group == "pmlb" and e.paper68]
    local_sets = sorted((e for e in entries if e.path is not None), key=lambda e: e.n_items * e.n_features)
    missing = [e for e in entries if e.path is None and e.name != POKER]
    if not local_sets:
        raise InputError(
            f"None of the {len(entries)} PMLB sets is on this machine. {entries[0].how} Or point "
            "WORKBENCH_DATA at a folder that holds pmlb/NAME/NAME.tsv.gz."
        )
    if missing:
        names = ", ".join(e.name for e in missing)
        report.caps.append(f"{len(missing)} set(s) not on this machine: {names}. {missing[0].how}")
    return [*(e.full_name for e in local_sets), POKER]
