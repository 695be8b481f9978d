"""Small files of other kinds than text, as other programs write them, each with its right items.

Workbooks, Parquet, Arrow, JSON of whole tables, zips and folders of pictures: right cells, ids, classes,
uses and pixels; a column is lost only with a note that names it, and what is refused at first names an
option that then opens it.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.trials import Row
from benchmarks.trials._wild_file import WildFile
from benchmarks.trials._wild_images import arrays, pictures, zips
from benchmarks.trials._wild_tables import (
    of_arrow,
    of_labelling_tools,
    of_pandas,
    of_r,
    of_statistics_programs,
    workbooks,
)

PARTS: tuple[Callable[[], list[WildFile]], ...] = (
    *(workbooks, of_pandas, of_arrow, of_statistics_programs, of_r, of_labelling_tools),
    *(zips, pictures, arrays),
)


def files() -> list[WildFile]:
    """All files."""
    return [file for part in PARTS for file in part()]


def run(count: int = 1_000, seed: int = 0) -> Row:
    """Every file, `count` of them at most."""
    some = files()[:count]
    wrong = [f"{file.name}: {fault}" for file in some for fault in file.faults()]
    return Row.of("files of other kinds as other programs write them", len(some), wrong)
