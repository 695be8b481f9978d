"""A server in its own process and a Chromium to look at it: for benchmarks, screenshots and tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORKBENCH = (
    "-c",
    "import sys; from workbench.app.server import serve; serve(port=int(sys.argv[1]), open_browser=False)",
    "{port}",
)
# milliseconds; generous, because the machine may be busy
HOST = (
    "[...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]"
    ".find(e => e.shadowRoot?.querySelector('.desk'))"
)
"""The desk's component, in the page's own language; other components of a page are of its kind."""
PATIENCE = 300_000
UNANSWERED = 1_000
"""Milliseconds after which a message that no run followed counts as one that asks for none."""
QUIET = 150
"""Milliseconds without a change after which what a run gave counts as drawn."""
PICTURES = 4
"""Pictures without a change that the browser has shown by then; where it is slow, they take longer."""
DRAWN_WITHOUT_END = 60
"""Pictures since a run ended after which what is still drawn counts as drawn without end."""


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome on the PATH; one without windows of its own costs least."""
    names = (
        *("chromium-headless-shell", "chromium", "chromium-browser"),
        *("google-chrome", "google-chrome-stable", "chrome"),
    )
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser.

    Raises:
        RuntimeError: there is no Chromium or Chrome.
    """
    path = find_chromium()
    if path is None:
        raise RuntimeError("no Chromium or Chrome on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # the sandbox, /dev/shm and a GPU are often missing in containers
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


@dataclass
class Server:
    """A server in its own process with its own home.

    Attributes:
        home: its WORKBENCH_HOME; its log lies there too.
        environment: further variables.
        command: arguments of Python; "{port}" is filled in.
        port: where it listens; a free one is taken at the first start and kept for the next.
        base: the path below which it answers.
    """

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = WORKBENCH
    port: int = 0
    base: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}{self.base}"

    @property
    def log(self) -> str:
        """Lines that it has printed."""
        return (self.home / "server.log").read_text(encoding="utf-8", errors="replace")

    @property
    def megabytes(self) -> float:
        """Resident memory of the process."""
        assert self.process is not None
        kilobytes = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True, check=True
        ).stdout
        return int(kilobytes) / 1024

    @property
    def seconds(self) -> float:
        """Processor time of the process so far."""
        assert self.process is not None
        import psutil

        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def start(self) -> Server:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: it ended or does not answer; the message holds its log.
        """
        if not self.port:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *(part.format(port=self.port) for part in self.command)],
                cwd=ROOT,
                env=os.environ
                | {"WORKBENCH_HOME": str(self.home), "WORKBENCH_WARM": "0", "PYTHONUNBUFFERED": "1"}
                | self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"The server ended with {self.process.returncode}:\n{self.log}")
            try:
                with urllib.request.urlopen(self.url + "/_stcore/health", timeout=2) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"The server did not answer:\n{self.log}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        self.process = None

    def kill(self) -> None:
        """End it as a power cut would."""
        self.stop(signal.SIGKILL)


def tell_runs(context: Any) -> Any:
    """The browser context; its pages note when they asked for a run of the script, and when one began.

    A press is answered by a run that begins a moment later: `settled` waits for that run only where it can
    see that one was asked for.
    """
    context.add_init_script(
        """(() => {
            const runs = { asked: 0, began: 0, ended: 0, drawn: 0, still: 0, since: 0 };
            window.workbenchRuns = runs;
            const send = WebSocket.prototype.send;
            WebSocket.prototype.send = function (...given) {
                runs.asked = performance.now();
                return send.apply(this, given);
            };
            new MutationObserver(seen => {
                const now = performance.now();
                if (seen.some(one => one.type === "childList")) { runs.drawn = now; runs.still = 0; }
                const states = seen.filter(one => one.type === "attributes");
                if (!states.length) return;
                runs.still = runs.since = 0;
                const running = states[0].target.dataset.testScriptState === "running";
                if (running || states.length > 1) runs.began = now;
                if (!running) runs.ended = now;
            }).observe(document, {
                subtree: true, childList: true, attributeFilter: ["data-test-script-state"],
            });
        })()"""
    )
    return context


def settled(page: Any) -> None:
    """Wait until the script has run, and what it gave is drawn.

    Where `tell_runs` listens, a run that was asked for has begun too, and nothing was drawn for a moment
    after its end, nor for some pictures of the browser in a row: it draws what a run gave after it says
    that the run is over, and where it is slow a moment passes without a single picture. A run that is
    stopped by the next one has ended for a moment, too. Not every message asks for a run, and some pages
    draw without end, so that neither is waited for longer than UNANSWERED.
    """
    # no promise: Playwright takes one for true without awaiting it
    page.wait_for_function(
        """([unanswered, quiet, pictures, endless]) => {
            const runs = window.workbenchRuns, now = performance.now();
            if (document.querySelector("[data-testid=stApp]")?.dataset.testScriptState !== "notRunning"
                || document.querySelector("[data-testid=stSkeleton]")) return false;
            if (!runs) return true;
            if (runs.asked > runs.began && now - runs.asked < unanswered) return false;
            runs.since += 1;
            if (runs.since > endless && now - runs.ended > unanswered) return true;
            const draws = now - Math.max(runs.ended, runs.drawn) < quiet
                || document.querySelector("[data-stale=true]");
            runs.still = draws ? 0 : runs.still + 1;
            return runs.still > pictures;
        }""",
        arg=[UNANSWERED, QUIET, PICTURES, DRAWN_WITHOUT_END],
    )


def visit(page: Any, address: str) -> None:
    """Open an address and wait until its page stands."""
    page.goto(address)
    page.wait_for_selector("h1")
    settled(page)


@contextmanager
def own_home(folder: Path | str) -> Iterator[None]:
    """The package's own view of a server's home, while a block runs. Jobs that pages started end with it."""
    from workbench.app.serving.jobs import manager

    before = {name: os.environ.get(name) for name in ("WORKBENCH_HOME", "WORKBENCH_DATABASE_URL")}
    os.environ["WORKBENCH_HOME"] = str(folder)
    os.environ.pop("WORKBENCH_DATABASE_URL", None)
    try:
        yield
    finally:
        # what a page began may write to a home that is about to go
        jobs = manager().active()
        for job in jobs:
            job.cancel()
        for job in jobs:
            job.wait()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
