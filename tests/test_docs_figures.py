"""Figures of the pages are those of the kept lines, or the page says that there are none."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmark
from benchmarks import kept, reports
from benchmarks.pages import Section, figures, measured, missing, outdated
from workbench.errors import InputError

KEPT = [section for section in measured() if not section.unkept]


@pytest.mark.parametrize(
    "place", sorted((kept.ROOT / "benchmarks" / "results").glob("*.json*")), ids=lambda p: p.name
)
def test_every_kept_line_says_where_it_comes_from(place: Path) -> None:
    for line in kept.lines(place):
        assert re.fullmatch(r"[0-9a-f]{7,8}", line["commit"]) and re.fullmatch(r"[0-9a-f]{12}", line["code"])
        assert line["processor"]


@pytest.mark.parametrize("section", measured(), ids=lambda s: f"{s.page}: {s.title}")
def test_a_measured_section_has_kept_lines_or_says_that_it_has_none(section: Section) -> None:
    kept_lines = any(line["command"] in section.text for line in kept.lines(kept.PRINTED))
    assert section.unkept or section.commands or kept_lines, (
        'keep what the command prints (--keep), or say below: "*No kept lines: printed by an earlier run.*"'
    )


@pytest.mark.slow  # alone: each figure of the docs against the lines that were kept
@pytest.mark.parametrize("section", KEPT, ids=lambda s: f"{s.page}: {s.title}")
def test_figures_of_a_page_are_those_of_the_kept_lines(section: Section) -> None:
    try:
        figures_without_line = missing(section)
    except InputError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"a command of this section needs a data set: {error}")
    assert figures_without_line == []


def test_the_table_of_the_papers_claims_is_that_of_the_kept_reports() -> None:
    page = reports.PAGE.read_text(encoding="utf-8")
    made = reports.table()
    assert made in page, "python -m benchmarks.reports prints it again"
    assert reports.with_table(page, made) == page and made.count("lmgp-") >= 7
    for name in ("lsm-fig3", "lsm-fig4", "lsm-fig8"):
        assert re.search(rf"\[{name}\].* Ours: .*instead of.*\| partly \|", made)


def test_figures_of_the_front_page_are_outdated_once_the_default_model_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = {
        "a": "12 of 0123abcd (code 0123456789ab)",
        "b": "3 of 89abcdef (code 0123456789ab)",
        "c": "nothing",
    }
    page = Section("README.md", "t", "".join(f"`python -m benchmarks.{name} --report`\n" for name in old))
    monkeypatch.setattr("benchmarks.pages.sections", lambda page_: [page])
    monkeypatch.setattr("benchmarks.pages.printed", lambda command: old[command.split(".")[1][0]])
    monkeypatch.setattr("benchmarks.pages.is_of_default", lambda commit: commit == "89abcdef")
    assert outdated() == [
        "python -m benchmarks.a --report: 0123abcd",
        "python -m benchmarks.c --report: no kept line",
    ]
    monkeypatch.undo()
    assert not kept.is_of_default("0" * 8)


def test_a_figure_that_no_kept_line_has_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "printed.jsonl"
    command = "python -m benchmarks made"
    kept.keep_printed(place, command, "error 0.1234, 41.2x in 12 ms, p = 8.8e-05\n")
    monkeypatch.setattr("benchmarks.pages.PRINTED", place)

    def left(words: str) -> list[str]:
        return missing(Section("page", "title", f"`{command}`\n\n{words}\n"))

    assert left("error 0.123 (12.3 %), 41x (goal 50x), p = 0.00009, 12 ms, with NumPy 2.4.6") == []
    assert left("error 0.124, 42x, 13 ms") == ["0.124", "42x", "13 ms"]
    assert left("error 0.124: no kept line\n\nand 0.5") == ["0.5"]
    assert left("error 0.124\n\n*No kept lines.*") == []
    kept.keep_printed(place, command, "error 0.2\n")
    assert [line["line"] for line in kept.lines(place)] == ["error 0.2"]
    assert left("error 0.123") == ["0.123"]
    assert figures("`0.5` of [a page](results.md#1.5) in 3 s") == ["3 s"]


def test_what_a_command_prints_is_kept_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "printed.jsonl"
    monkeypatch.setattr(benchmark, "PRINTED", place)
    monkeypatch.setattr("benchmarks.guess.main", lambda words: print("12 ms", *words))
    assert benchmark.main(["guess", "--seeds", "1", "--keep"]) == 0
    found = [json.loads(line) for line in place.read_text().splitlines()]
    assert [line["line"] for line in found][1:] == ["12 ms --seeds 1"]
    assert {line["command"] for line in found} == {"python -m benchmarks guess --seeds 1"}
    assert "12 ms --seeds 1" in capsys.readouterr().out
    assert benchmark.main(["nothing", "--keep"]) == 2 and len(place.read_text().splitlines()) == len(found)
