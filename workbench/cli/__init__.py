"""The same verbs without a browser.

Errors: the first line on stderr is the message, saying what and what to do; exit 2 for bad input, 1
for what should not have happened, 130 when stopped. WORKBENCH_DEBUG=1 shows tracebacks and warnings.

Importing this module costs a tenth of a second: each command imports what it needs.
"""

import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from workbench.errors import Cancelled, InputError

STOPPED = 130
"""Exit code after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit.

    Args:
        arguments: without the program's name; the process's own unless given.
    """
    debug = bool(os.environ.get("WORKBENCH_DEBUG"))
    if arguments is None and not debug:
        _keep_stderr_to_ourselves()
    try:
        _quieten(debug)
        code = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except InputError as error:
        if debug:
            raise
        _say(str(error))
        code = 2
    except (Cancelled, KeyboardInterrupt, EOFError):  # also Ctrl-D at a question
        _say("Stopped. What was kept (--out, --keep, a project) stays; the same command goes on.")
        code = STOPPED
    except BrokenPipeError:
        # The reader of a pipe has seen enough; the interpreter must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if debug:
            raise
        refused = _of_the_machine(error)
        _say(refused or f"{type(error).__name__}: {error} (WORKBENCH_DEBUG=1 shows where.)")
        code = 2 if refused else 1
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line.

    Returns:
        The exit code.

    Raises:
        InputError: what the person gave cannot be used.
    """
    from typer import Abort, Exit
    from typer.main import get_command

    from workbench.cli.commands import app

    try:
        code = get_command(app).main(list(arguments), prog_name="workbench", standalone_mode=False)
    except Exit as ended:
        return ended.exit_code
    except SystemExit as ended:
        cause = ended.__context__  # the parser ends the program itself when a pipe is closed
        if isinstance(cause, OSError) and cause.errno == errno.EPIPE:
            raise BrokenPipeError from ended
        raise
    except Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        # Whatever the parser refuses knows how to say so, and nothing else has this method.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        context = getattr(error, "ctx", None)
        where = getattr(context, "command_path", "workbench")
        raise InputError(f"{describe()}\nSee: {where} --help") from error
    if code == STOPPED:  # the parser's way to hand on Ctrl-C
        raise KeyboardInterrupt
    return int(code) if isinstance(code, int) else 0


def _of_the_machine(error: Exception) -> str:
    """Meaning for a person of a full disk, a missing permission or a database out of reach, or ""."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _OF_THE_MACHINE:
            where = f"{cause.filename}: " if cause.filename else ""
            return f"{where}{cause.strerror}. {_OF_THE_MACHINE[cause.errno]}"
        if "home directory" in str(cause):  # of a path that begins with ~ and a name
            return f"{cause} Write the path without ~."
        message = str(getattr(cause, "orig", ""))  # SQLAlchemy's way of handing on the driver's error
        if message and type(cause).__name__ in ("OperationalError", "DatabaseError"):
            return f"The database cannot be used: {' '.join(message.split())[:300]}. {_SPACE}"
        cause = cause.__cause__
    return ""


_SPACE = "Make room, or see that it may be written (WORKBENCH_HOME, --out), and give the command again."
_OF_THE_MACHINE = dict.fromkeys(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS), _SPACE
) | dict.fromkeys(
    (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR), "Name another place, or change who may use it."
)


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _keep_stderr_to_ourselves() -> None:
    """Send what C++ libraries write to stderr nowhere: TensorFlow greets there whatever its settings.

    Python's own stderr (our messages, the server's log) goes on to where it went.
    """
    try:
        stderr = os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
    except OSError:
        return
    sys.stderr = os.fdopen(stderr, "w", buffering=1, encoding="utf-8", errors="backslashreplace")


def _quieten(debug: bool) -> None:
    """Set what must stand before the libraries are imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0" if debug else "3")
    # One thread unless told otherwise: results are the same bytes at one thread count only, and two
    # that spin against each other on a busy machine are slower than one.
    threads = os.environ.get("WORKBENCH_THREADS", "1")
    if not threads.isdecimal() or int(threads) < 1:
        raise InputError(f"WORKBENCH_THREADS must be a number of threads, at least 1; it is {threads!r}.")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, threads)
    if not debug:
        import warnings

        # The first line on stderr belongs to our message.
        warnings.simplefilter("ignore")
