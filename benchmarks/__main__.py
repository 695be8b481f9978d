"""`python -m benchmarks [FILE[.FUNCTION]] [--quick]`: one benchmark, or a list of them.

Every file here that has a `main` is a benchmark; its public functions that take `quick` or nothing can
be run alone.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOT_MEASURED = {
    "__init__", "__main__", "driving", "screenshots", "cards", "history", "packaging", "release", "mutants",
    "fresh", "reports",
}  # fmt: skip


def names() -> list[str]:
    """Files of benchmarks."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_MEASURED)


def main(arguments: list[str]) -> int:
    """Run what is named; without a name, list what there is."""
    named = [a for a in arguments if not a.startswith("-")]
    flags = [a for a in arguments if a.startswith("-")]
    if not named:
        print("python -m benchmarks NAME [--quick]; NAME is one of:", *names(), sep="\n  ")
        return 0
    worst = 0
    for name in named:
        file, _, function = name.partition(".")
        if file not in names():
            print(f"There is no benchmark called {file!r}. There are: {', '.join(names())}.", file=sys.stderr)
            return 2
        module = importlib.import_module(f"benchmarks.{file}")
        if not function:
            worst = max(worst, int(module.main(flags) or 0))
            continue
        work = getattr(module, function, None)
        if work is None or function.startswith("_"):
            print(f"benchmarks/{file}.py has no function {function!r}.", file=sys.stderr)
            return 2
        takes_quick = "quick" in inspect.signature(work).parameters
        result = work(**({"quick": "--quick" in flags} if takes_quick else {}))
        worst = max(worst, int(result is False))
    return worst


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
