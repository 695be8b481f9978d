"""The errors a person can do something about."""

import shlex
import sys
from pathlib import Path


def install_command(*packages: str) -> str:
    """Command that installs packages for the Python that runs this program.

    Args:
        packages: names as an index knows them.

    Returns:
        Such as ".venv/bin/python -m pip install kaleido". A Python below the working folder is named from
        there, below the home folder from `~`.
    """
    python = sys.executable or "python"
    for folder, start in ((Path.cwd(), ""), (Path.home(), "~/")):
        if folder != Path(folder.anchor) and Path(python).is_relative_to(folder):
            python = start + Path(python).relative_to(folder).as_posix()
            break
    python = python if " " not in python else shlex.quote(python)
    return " ".join([python, "-m pip install", *map(shlex.quote, packages)])


class InputError(ValueError):
    """Something given by a person cannot be used; the message says what and what to do.

    The command line prints the message alone and exits with 2; a page shows it in place.
    """


class StorageError(InputError):
    """The place where things are kept cannot be used now: full, read-only, locked. What was saved is kept."""


class OutgrownError(StorageError):
    """The pool of a project has grown since it was opened here; opened again, the project goes on."""


class Cancelled(Exception):
    """A job was told to stop; whatever it had finished is kept."""
