"""Paired measurements of speed, memory and quality; each prints the lines the docs quote."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

# Data sets, where a checkout has them beside it
_DATA = Path(__file__).resolve().parents[2] / "shared" / "datasets"
if _DATA.is_dir():
    os.environ.setdefault("WORKBENCH_DATA", str(_DATA))


def end(main: Callable[[list[str]], int | None]) -> NoReturn:
    """End the process with a benchmark's code; what a person can mend is a sentence and the code 2.

    Args:
        main: takes the arguments of the command line.
    """
    from workbench.errors import InputError

    try:
        code = main(sys.argv[1:])
    except InputError as error:
        print(error, file=sys.stderr)
        code = 2
    raise SystemExit(code)
