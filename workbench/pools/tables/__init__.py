"""Tables with names on their columns: what is in them, what is wrong with them, and the pool they make.

Inspecting and loading share one examination: whatever the first lists as a problem without an answer,
the second refuses with the same words. What is guessed, dropped or filled in is a finding with a cell of
the table and its ways out, and stands in the pool's notes; strict refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.pools.formats import Reader
from workbench.pools.formats.files import File
from workbench.pools.tables.building import table_pool
from workbench.pools.tables.examination import Examination
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Fix, Problem, TableReport, refusal
from workbench.pools.tables.source_table import RawTable

if TYPE_CHECKING:
    from workbench.pools.pool import Pool


def table_reader(
    read: Callable[[File, TableOptions], RawTable],
    ways_out: Callable[[str], tuple[Fix, ...]] = lambda _: (),
    stream: Any = None,
) -> Reader:
    """The reader of a format of tables.

    Args:
        read: the cells as they stand.
        ways_out: of a file that cannot be read, from the message that says why.
        stream: as `Reader.stream`.

    Returns:
        The reader; its options are those of `TableOptions`.
    """

    def raw_table(file: File, options: TableOptions) -> RawTable:
        """The table, with the folder that it lies in where it was read from disk."""
        raw = read(file, options).accounted()
        if raw.folder or file.is_upload:
            return raw
        return replace(raw, folder=str(file.path if file.is_folder else file.path.parent))

    def inspect(file: File, preview: int = 10, **options: Any) -> TableReport:
        """Report on the table; a file that cannot be read gives a report with one problem."""
        settings = TableOptions.of(options)
        try:
            raw = raw_table(file, settings)
        except InputError as error:
            fixes = ways_out(str(error))
            problem = Problem("unreadable", "choice" if fixes else "error", str(error), fixes=fixes)
            return TableReport(file.name, problems=(problem,))
        return Examination(raw, settings).report(preview)

    def load(file: File, **options: Any) -> Pool:
        """The pool the table makes under these options."""
        settings = TableOptions.of(options)
        return table_pool(Examination(raw_table(file, settings), settings), file.stem)

    def rows(file: File, **options: Any) -> Any:
        """The rows as a DataFrame, with what is to be told in `attrs["notes"]`; cells of a CSV are texts."""
        settings = TableOptions.of(options)
        raw = raw_table(file, settings)
        for problem in raw.problems:
            if problem.severity == "choice" and problem.code != "header":
                raise InputError(refusal([problem]))
        messages = [problem.message for problem in raw.problems if problem.severity in ("guess", "note")]
        raw.frame.attrs["notes"] = (*raw.notes, *messages)
        return raw.frame

    return Reader(load, rows, inspect, stream)
