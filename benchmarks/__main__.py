"""`python -m benchmarks [FILE[.FUNCTION]] [options]`: one benchmark, or a list of them.

Every file here that has a `main` is a benchmark; its public functions that take `quick` or nothing can
be run alone. A benchmark has the options that `--help` after its name tells. With `--keep` what it prints is
kept, too, in benchmarks/results/printed.jsonl, in the place of what the same command printed before.
"""

from __future__ import annotations

import importlib
import inspect
import shlex
import sys
from pathlib import Path

from benchmarks import end
from benchmarks.kept import PRINTED, Tee, heading, keep_printed

HERE = Path(__file__).resolve().parent
# commands of their own, and what benchmarks share
NOT_MEASURED = {
    "__init__",
    "__main__",
    "driving",
    "screenshots",
    "cards",
    "packaging",
    "release",
    "mutants",
    "fresh",
    "reports",
    "pages",
    "rooms",
}


def names() -> list[str]:
    """Files of benchmarks: those with a `main`."""
    return sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem not in NOT_MEASURED and "\ndef main(" in path.read_text(encoding="utf-8")
    )


def main(arguments: list[str]) -> int:
    """Run what is named; without a name, list what there is.

    Args:
        arguments: a name, then the options of that benchmark.

    Returns:
        0, or 1 where a goal was missed, or 2 where the words make no sense.
    """
    if "--keep" in arguments and arguments[0] != "--keep":
        arguments = [word for word in arguments if word != "--keep"]
        with Tee() as heard:
            code = main(arguments)
        if code < 2:
            keep_printed(PRINTED, shlex.join(["python", "-m", "benchmarks", *arguments]), heard.text())
        return code
    if not arguments or arguments[0].startswith("-"):
        print("python -m benchmarks NAME [options]; NAME is one of:", *names(), sep="\n  ")
        return 0
    name, options = arguments[0], arguments[1:]
    file, _, function = name.partition(".")
    if file not in names():
        print(f"There is no benchmark called {file!r}. There are: {', '.join(names())}.", file=sys.stderr)
        return 2
    module = importlib.import_module(f"benchmarks.{file}")
    if not function:
        if not {"-h", "--help"} & set(options):
            print(heading(), flush=True)
        return int(module.main(options) or 0)
    work = getattr(module, function, None)
    if work is None or function.startswith("_"):
        print(f"benchmarks/{file}.py has no function {function!r}.", file=sys.stderr)
        return 2
    takes = inspect.signature(work).parameters
    if {"-h", "--help"} & set(options):
        print(inspect.getdoc(work))
        return 0
    unknown = [option for option in options if option != "--quick" or "quick" not in takes]
    if unknown:
        print(f"{name} takes {'--quick alone' if 'quick' in takes else 'no options'}.", file=sys.stderr)
        return 2
    print(heading(), flush=True)
    result = work(**({"quick": "--quick" in options} if "quick" in takes else {}))
    return int(result is False)


if __name__ == "__main__":
    end(main)
