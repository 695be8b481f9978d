"""One process beside this one that calls functions by name, one at a time.

What it imports and holds stays out of this process; where it dies, only the call that it was at is lost. It
ends with this process, however that ends, and where it is told so once nobody has called for a while.
"""

import importlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import Cancelled, InputError
from workbench.writing import alone_in

NICE = 5
"""How much later than this process it comes where both want the processor."""
_HEAD = 8  # bytes that say how long a message is
_LOOK = 0.1  # seconds between two looks at whether a call is to stop
PATIENCE = 1.5
"""Seconds that a call which was asked to stop has for it; then the process is ended."""
BEAT = 2.0
"""Seconds between two signs of life of a process that is at a call."""
SILENCE = 60.0
"""Seconds without a sign of life after which the process is taken for dead, and ended."""


class DiedError(Exception):
    """The process ended while it was at a call; the message says how."""


class _WrongError(Exception):
    """Exception of a call, apart from what goes wrong between the processes."""


def child(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A Python process that runs a module, its standard input and output behind pipes.

    Args:
        module: that can be imported here; it can be there, wherever this program was started from.
        arguments: of its command line.
        environment: further variables for it.
    """
    path = os.pathsep.join(os.path.abspath(p) for p in sys.path)  # noqa: PTH100
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path} | dict(environment or {}),
        # Ctrl-C is this program's to answer
        start_new_session=True,
    )


class Companion:
    """A process that is started when it is first needed, and again after it died.

    Calls of several threads follow each other; `task` is what the present one said it is, for those who wait.

    Args:
        name: of what it does.
        environment: further variables for it.
        turns: a folder; of all companions of this name that have the same, one works at a time.
        idle: seconds without a call after which the process is ended, for its memory; None keeps it.
    """

    def __init__(
        self,
        name: str,
        environment: dict[str, str] | None = None,
        *,
        turns: Path | None = None,
        idle: float | None = None,
    ) -> None:
        self.name = name
        self._environment = dict(environment or {})
        self._turns = None if turns is None else turns / name
        self._idle = idle
        self._turn = threading.Lock()
        self._writing = threading.Lock()
        self.task, self._calls = "", 0
        self._timer: threading.Timer | None = None
        # how many messages came, and whether the thread of a call waits for the next one
        self._received, self._listening = 0, False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process; None where there is none."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    @property
    def busy(self) -> bool:
        """True if it is at a call, or one waits for it."""
        return self._turn.locked()

    def call(
        self,
        target: str,
        *given: Any,
        hear: Callable[[Any], bool | None] | None = None,
        stop: Callable[[], bool] | None = None,
        begin: Callable[[], str] | None = None,
    ) -> Any:
        """Call a function there.

        Args:
            target: "module:function"; its first argument is `say`, which gives `hear` something, of None
                nothing, and returns whether the work should stop.
            given: further arguments; they are pickled.
            hear: called in this thread with what the function says; True asks it to stop. What it raises ends
                the process.
            stop: asked again and again whether the call is to stop. It is told so, and has `PATIENCE` seconds
                for it; one that still waits for its turn does not begin.
            begin: called when its turn comes; returns the `task` that others wait for meanwhile.

        Returns:
            What the function returned.

        Raises:
            DiedError: the process ended meanwhile, or gave no sign of life for `SILENCE` seconds.
            Cancelled: `stop` said so before it was this call's turn, or the process was ended for it.
            Exception: whatever the function raised; of an error that cannot be pickled its words.
        """
        with self._in_turn(stop), self._alone(stop):
            self.task = "" if begin is None else begin()
            process = self._started()
            try:
                with self._watched(process, stop):
                    return self._called(process, (target, given), hear)
            except (EOFError, OSError) as error:
                self._stop(process)
                if stop is not None and stop():
                    raise Cancelled(target) from error
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

    @contextmanager
    def _in_turn(self, stop: Callable[[], bool] | None) -> Iterator[None]:
        while not self._turn.acquire(timeout=_LOOK if stop is not None else -1):
            if stop is not None and stop():
                raise Cancelled("before its turn")
        try:
            self._calls += 1
            if self._timer is not None:
                self._timer.cancel()
            yield
        finally:
            self._turn.release()
            if self._idle is not None:
                self._timer = timer = threading.Timer(self._idle, self._end_if_idle, (self._calls,))
                timer.daemon = True
                timer.start()

    @contextmanager
    def _alone(self, stop: Callable[[], bool] | None) -> Iterator[None]:
        """While no other program's companion of this name is at a call."""
        if self._turns is None:
            yield
            return
        self._turns.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone_in(self._turns, stop):
            yield

    def _end_if_idle(self, calls: int) -> None:
        """End the process unless it was called since, or is at a call now."""
        if self._calls == calls and self._turn.acquire(blocking=False):
            try:
                if self._process is not None:
                    self._stop(self._process)
            finally:
                self._turn.release()

    @contextmanager
    def _watched(self, process: subprocess.Popen[bytes], stop: Callable[[], bool] | None) -> Iterator[None]:
        """Tell the process to stop when `stop` says so; end it when it does not, or is silent."""
        ended = threading.Event()

        def watch() -> None:
            quiet, received = 0.0, -1
            while not ended.wait(_LOOK):
                # looks are counted: a machine that slept is no silence
                quiet = quiet + _LOOK if self._listening and self._received == received else 0.0
                received = self._received
                is_stopped = stop is not None and stop()
                if is_stopped:
                    with suppress(OSError, ValueError):
                        self._tell(process, None, PATIENCE)
                    if ended.wait(PATIENCE):
                        return
                if is_stopped or quiet > SILENCE:
                    process.kill()
                    process.wait()  # the next call sees that it is gone
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()  # it must not stop the next call

    def _tell(self, process: subprocess.Popen[bytes], message: Any, patience: float = -1) -> None:
        assert process.stdin is not None
        if not self._writing.acquire(timeout=patience):
            return  # it does not read what it is called with
        try:
            _send(process.stdin, message)
        finally:
            self._writing.release()

    def _called(
        self, process: subprocess.Popen[bytes], call: Any, hear: Callable[[Any], bool | None] | None
    ) -> Any:
        assert process.stdout is not None
        self._listening = True  # one that does not read is silent, too
        self._tell(process, call)
        while True:
            self._listening = True
            kind, value = _receive(process.stdout)
            self._received, self._listening = self._received + 1, False
            if kind == "done":
                return value
            if kind == "raised":
                raise _WrongError(value)
            if kind == "said" and hear is not None and _heard(hear, value):
                self._tell(process, None)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = child(__name__, environment=self._environment)
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


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"ended by signal {-code}" if code is not None and code < 0 else f"ended with {code}"


def _send(pipe: BinaryIO | Any, message: Any) -> None:
    octets = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(len(octets).to_bytes(_HEAD, "big") + octets)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> Any:
    """The next message, of the process that this one started, or that started this one."""
    # whole before it is read: what cannot be loaded leaves the pipe at the start of the next one
    return pickle.loads(_exactly(pipe, int.from_bytes(_exactly(pipe, _HEAD), "big")))


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
    pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    if hasattr(os, "nice"):
        os.nice(NICE)
    calls: list[Any] = []
    come, stop = threading.Semaphore(0), threading.Event()

    def listen() -> None:
        try:
            while True:
                message = _receive(pipe)
                if message is None:
                    stop.set()
                else:
                    calls.append(message)
                    come.release()
        except (EOFError, OSError):
            os._exit(0)  # whoever started this is gone, and with it everybody who waits for an answer

    threading.Thread(target=listen, daemon=True).start()

    sending, working = threading.Lock(), threading.Event()

    def send(message: tuple[str, Any]) -> None:
        with sending:
            _send(out, message)

    def say(value: Any) -> bool:
        if value is not None:
            send(("said", value))
        return stop.is_set()

    def beat() -> None:
        while working.wait():
            time.sleep(BEAT)
            if working.is_set():
                send(("beat", None))

    threading.Thread(target=beat, daemon=True).start()
    while True:
        come.acquire()
        target, arguments = calls.pop(0)
        stop.clear()
        working.set()
        answer = _answer(target, arguments, say)
        working.clear()
        send(answer)


def function_at(target: str) -> Callable[..., Any]:
    """A function by its place, "module:function"."""
    module, _, function = target.partition(":")
    return getattr(importlib.import_module(module), function)


def _answer(target: str, arguments: tuple[Any, ...], say: Callable[[Any], bool]) -> tuple[str, Any]:
    try:
        return "done", function_at(target)(say, *arguments)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return "raised", RuntimeError(f"{type(error).__name__}: {error}")
        return "raised", error


if __name__ == "__main__":
    main()
