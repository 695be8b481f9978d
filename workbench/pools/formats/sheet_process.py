"""Process of limited memory and time that reads a sheet: a workbook in, a line of JSON a row out."""

import io
import json
import mmap
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from typing import Any

MEMORY, SECONDS = 2 << 30, 120
"""Most bytes of this process, and most seconds of the processor's."""


def limited() -> bool:
    """Limit this process; False where the system has no such limit, or has it and does not hold it."""
    try:
        import resource

        for kind, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, MEMORY)):
            with suppress(ValueError):  # it is limited to less
                resource.setrlimit(kind, (most, most))
        mmap.mmap(-1, MEMORY).close()
    except ImportError:
        return False
    except OSError:
        return True
    return False


def main(title: str | None, max_cells: int, max_bytes: int, limits_needed: bool) -> None:
    """Write the titles of all sheets, which one is read and how large it is; then its rows.

    Args:
        title: of the sheet; None takes the first that holds something, hidden ones last.
        max_cells: of a sheet with more only the size is written.
        max_bytes: most that is written.
        limits_needed: whether nothing is read where the system limits no process.
    """
    if not limited() and limits_needed:
        print('{"problem": "is read where the memory of a process can be limited, not here"}')
        return
    try:
        from python_calamine import CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum
    except ImportError:
        print('{"problem": "is read by the package python-calamine, which is not installed"}')
        return
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read()))
    except PasswordError:
        print('{"problem": "is locked with a password"}')
        return
    sheets = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    sheets.sort(key=lambda sheet: bool(sheet.visible != SheetVisibleEnum.Visible))
    titles = [sheet.name for sheet in sheets]
    head: dict[str, Any] = {"titles": titles, "size": [0, 0]}
    rows: Iterable[list[Any]] = ()
    for name in titles if title is None else [title] if title in titles else []:
        sheet = book.get_sheet_by_name(name)
        if sheet.end is not None:
            n_rows, n_columns = sheet.end[0] + 1, sheet.end[1] + 1
            head |= {"title": name, "size": [n_rows, n_columns]}
            rows = sheet.iter_rows() if n_rows * n_columns <= max_cells else ()
            break
    with open(1, "wb") as out:  # buffered also where Python is told to buffer nothing
        n_written = out.write(f"{json.dumps(head)}\n".encode())
        for row in rows:
            filled = row.count("") < len(row)
            line = json.dumps(row, default=_plain, ensure_ascii=False) if filled else ""
            n_written += out.write(f"{line}\n".encode())
            if n_written > max_bytes:
                raise MemoryError


def _plain(value: Any) -> Any:
    return {"date": value.isoformat()} if isinstance(value, date) else str(value)


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
