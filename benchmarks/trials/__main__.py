"""`python -m benchmarks.trials [NAME ...] [--count N]`: run trials, exit 1 where one failed."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from benchmarks.trials import Row, added


def names() -> list[str]:
    """Modules of trials."""
    here = Path(__file__).resolve().parent
    return sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_"))


def main(arguments: list[str]) -> int:
    """Run what is named; without a name, list what there is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trials", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="one of: " + ", ".join(names()))
    parser.add_argument("--count", type=int, help="how often (each trial has its own default)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1, help="times the count, each with the next seed")
    parser.add_argument("--log", type=Path, help="file of parts: those that are in it are not run again")
    given = parser.parse_args(arguments)
    for unknown in set(given.names) - set(names()):
        parser.error(f"there is no trial called {unknown!r}; there are: {', '.join(names())}")
    if not given.names:
        print(
            "python -m benchmarks.trials NAME [--count N] [--seed S]; NAME is one of:", *names(), sep="\n  "
        )
        return 0
    print("| trial | tried | failed | |", "|---|---|---|---|", sep="\n")
    failed = 0
    for name in given.names:
        module = importlib.import_module(f"benchmarks.trials.{name}")
        default = inspect.signature(module.run).parameters["count"].default
        count = default if given.count is None else given.count
        parts = [_part(module, name, count, given.seed + i, given.log) for i in range(given.parts)]
        row = added(parts)
        print(row, flush=True)
        for line in row.failures:
            print(line, file=sys.stderr)
        failed += row.failed
    return 1 if failed else 0


def _part(module: ModuleType, name: str, count: int, seed: int, log: Path | None) -> Row:
    """The row of one seed: out of the log where it is there, else run and written to it."""
    key = {"name": name, "count": count, "seed": seed}
    if log is not None and log.is_file():
        for line in log.read_text(encoding="utf-8").splitlines():
            known = json.loads(line)
            if {what: known[what] for what in key} == key:
                return Row.from_json(known["row"])
    row: Row = module.run(count, seed)
    if log is not None:
        day = datetime.now(UTC).date().isoformat()
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(key | {"date": day, "row": row.to_json()}) + "\n")
    return row


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
