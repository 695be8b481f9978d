"""One process beside this one that calls functions by name, one at a time.

What it imports and holds stays out of this process; where it dies, only the call that it was at is lost. It
ends with this process, however that ends.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import InputError
from workbench.writing import alone_in

NICE = 5
"""How much later than this process it comes where both want the processor."""
_HEAD = 8  # bytes that say how long a message is


class DiedError(Exception):
    """The process ended while it was at a call; the message says how."""


class _WrongError(Exception):
    """What a call raised, apart from what goes wrong between the processes."""


class Companion:
    """A process that is started when it is first needed, and again after it died.

    Calls of several threads follow each other. Of all companions of a machine and a user one works at a time.

    Args:
        name: of what it does.
        environment: further variables for it.
    """

    def __init__(self, name: str, environment: dict[str, str] | None = None) -> None:
        self.name = name
        self._environment = dict(environment or {})
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process; None where there is none."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def call(self, target: str, *given: Any, hear: Callable[[Any], bool | None] | None = None) -> Any:
        """Call a function there.

        Args:
            target: "module:function"; its first argument is `say`, which gives `hear` something and returns
                whether the work should stop.
            given: further arguments; they are pickled.
            hear: called in this thread with what the function says; True asks it to stop. What it raises ends
                the process.

        Returns:
            What the function returned.

        Raises:
            DiedError: the process ended meanwhile.
            Exception: whatever the function raised; of an error that cannot be pickled its words.
        """
        with self._turn, alone_in(_meeting_place(self.name)):
            process = self._started()
            try:
                return self._called(process, (target, given), hear)
            except (EOFError, OSError) as error:
                self._stop(process)
                raise DiedError(_how(process)) from error
            except _WrongError as wrong:
                raise wrong.args[0] from None
            except BaseException:
                self._stop(process)
                raise

    def end(self) -> None:
        """End the process; a call that is under way raises."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    @staticmethod
    def _called(
        process: subprocess.Popen[bytes], call: Any, hear: Callable[[Any], bool | None] | None
    ) -> Any:
        assert process.stdin is not None and process.stdout is not None
        _send(process.stdin, call)
        while True:
            kind, value = _receive(process.stdout)
            if kind == "done":
                return value
            if kind == "raised":
                raise _WrongError(value)
            if hear is not None and _heard(hear, value):
                _send(process.stdin, None)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # what can be imported here can be there, wherever this was started from
            path = os.pathsep.join(os.path.abspath(p) for p in sys.path)  # noqa: PTH100
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path} | self._environment,
                # Ctrl-C is this program's to answer
                start_new_session=True,
            )
        return self._process

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self._process is process:
            self._process = None


def _heard(hear: Callable[[Any], bool | None], value: Any) -> bool | None:
    try:
        return hear(value)
    except (EOFError, OSError) as error:  # the caller's own, not of a pipe
        raise InputError(f"{type(error).__name__}: {error}") from error


def _meeting_place(name: str) -> Path:
    """A folder of this user's on this machine, whatever their home folders are."""
    user = os.getuid() if hasattr(os, "getuid") else "me"
    folder = Path(tempfile.gettempdir()) / f"workbench-{name}-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"ended by signal {-code}" if code is not None and code < 0 else f"ended with {code}"


def _send(pipe: BinaryIO | Any, message: Any) -> None:
    octets = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(len(octets).to_bytes(_HEAD, "big") + octets)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> Any:
    octets = _exactly(pipe, int.from_bytes(_exactly(pipe, _HEAD), "big"))
    return pickle.loads(octets)  # from the process that this one started, or that started this one


def _exactly(pipe: BinaryIO | Any, n: int) -> bytes:
    octets = pipe.read(n)
    if len(octets) < n:
        raise EOFError
    return bytes(octets)


# --------------------------------------------------------------------------- the other side


def main() -> None:
    """Call what standard input asks for until it ends."""
    # the pipe is for answers alone: what is printed goes where errors go
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    given = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    if hasattr(os, "nice"):
        os.nice(NICE)
    calls: list[Any] = []
    come, stop = threading.Semaphore(0), threading.Event()

    def listen() -> None:
        try:
            while True:
                message = _receive(given)
                if message is None:
                    stop.set()
                else:
                    calls.append(message)
                    come.release()
        except (EOFError, OSError):
            os._exit(0)  # whoever started this is gone, and with it everybody who waits for an answer

    threading.Thread(target=listen, daemon=True).start()

    def say(value: Any) -> bool:
        _send(out, ("said", value))
        return stop.is_set()

    while True:
        come.acquire()
        target, arguments = calls.pop(0)
        stop.clear()
        _send(out, _answer(target, arguments, say))


def _answer(target: str, arguments: tuple[Any, ...], say: Callable[[Any], bool]) -> tuple[str, Any]:
    module, _, function = target.partition(":")
    try:
        return "done", getattr(importlib.import_module(module), function)(say, *arguments)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return "raised", RuntimeError(f"{type(error).__name__}: {error}")
        return "raised", error


if __name__ == "__main__":
    main()
