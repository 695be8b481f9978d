"""`python -m benchmarks.trials [NAME ...] [--count N] [--seed S]`: run trials, exit 1 where one failed."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from benchmarks.trials import Row


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
        row: Row = module.run(default if given.count is None else given.count, given.seed)
        print(row, flush=True)
        for line in row.failures:
            print(line, file=sys.stderr)
        failed += row.failed
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
