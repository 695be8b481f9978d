"""Memory that an export of a million rows takes, in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST = 500_000_000
"""Bytes of memory at most."""
ROWS = 1_000_000
FORMATS = ("csv", "jsonl", "parquet", "huggingface")


def memory_of_exports(
    *,
    quick: bool = False,
    labelled: int = 10_000,
    formats: tuple[str, ...] = FORMATS,
    what: str = "everything",
) -> bool:
    """Peak memory of `workbench export` of a table of three columns, of which some rows are labelled.

    Args:
        quick: 20,000 rows.
        labelled: rows with a label, a tenth of them single decisions, the others imported.
        formats: which.
        what: of `SCOPES`.

    Returns:
        Whether each stayed below 500 MB.
    """
    rows = 20_000 if quick else ROWS
    with tempfile.TemporaryDirectory() as folder:
        _child("prepare", folder, str(rows), str(min(labelled, rows)))
        before = _child("open", folder)
        print(f"opened, nothing exported: {before[0] / 1e6:.0f} MB, {before[1]:.0f} s")
        fine = True
        for form in formats:
            peak, seconds, size = _child("export", folder, form, what)
            fine = fine and peak < MOST
            print(
                f"{form}, {what}: {rows:,} rows, {size / 1e6:.0f} MB of file, "
                f"peak {peak / 1e6:.0f} MB, {seconds:.0f} s"
            )
    return fine


def _child(*what: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.exports", "--child", *what]
    environment = os.environ | {"WORKBENCH_HOME": str(Path(what[1]) / "home")}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _work(what: str, folder: str, *given: str) -> list[float]:
    """One step in this process; its peak memory in bytes, seconds, and bytes of the file."""
    from workbench.sessions import Session
    from workbench.store import Store

    began, place, size = time.monotonic(), Path(folder), 0
    if what == "prepare":
        _prepare(place, int(given[0]), int(given[1]))
    else:
        session = Session.open(Store.open().projects()[0].id)
        if what == "export":
            from workbench.exchange import write_labels

            with (place / "out").open("wb") as out:
                write_labels(out, session, given[0], given[1])
            size = (place / "out").stat().st_size
        else:
            assert session.state.n_labelled
    from benchmarks.timing import high_water

    peak = 1e6 * high_water()
    return [peak, time.monotonic() - began, size]


def _prepare(place: Path, rows: int, labelled: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from workbench.sessions import Session
    from workbench.sessions.operations import Operation

    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=rows).round(4) for i in range(3)}
    pq.write_table(pa.table({"id": [f"item-{i}" for i in range(rows)], **columns}), place / "t.parquet")
    session = Session.create(
        str(place / "t.parquet"), classes=["a", "b", "c"], annotator="ann", early_share=0.0
    )
    names = rng.integers(0, 3, labelled)
    single = labelled // 10
    session.import_labels(((i, "abc"[names[i]]) for i in range(single, labelled)), "file")
    for start in range(0, single, 500):
        asks = session.ask(min(500, single - start))
        told = [Operation(f"o{start}-{k}", "label", ask=a.id, label="abc"[k % 3]) for k, a in enumerate(asks)]
        session.apply(told)


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code says whether it stayed within its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks exports", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 rows")
    parser.add_argument("--labelled", type=int, default=10_000, help="rows with a label")
    parser.add_argument("--formats", default=",".join(FORMATS), help="separated by commas")
    parser.add_argument("--what", default="everything", help="what the export holds")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        print(json.dumps(_work(*given.child)))
        return 0
    formats = tuple(given.formats.split(","))
    done = memory_of_exports(quick=given.quick, labelled=given.labelled, formats=formats, what=given.what)
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
