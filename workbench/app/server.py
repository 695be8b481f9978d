"""The server: options, themes, headers, its log, the engine's warm-up, `serve`."""

import asyncio
import json
import logging
import os
import re
import socket
import threading
import tomllib
import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocketClose

from workbench.app.access import current, login
from workbench.app.serving import fit_process, frontend, jobs, streamlit_private
from workbench.app.serving.jobs import manager
from workbench.app.words.text import show_error
from workbench.errors import InputError
from workbench.reading import cut
from workbench.store.processes import serving
from workbench.work.memory import few_arenas
from workbench.writing import workbench_home

HERE = Path(__file__).resolve().parent
MAIN = HERE.parent / "main.py"
PATIENCE = 10.0
"""Seconds that the first page waits for a project where people are at work."""

# Streamlit's own bundle needs inline styles, and Vega compiles expressions; nothing may come from
# another host, and no other site may frame a page whose address carries a project id.
_POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' ws: wss: data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'self'",
    ]
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class SecurityHeaders(frontend.Layer):
    """ASGI middleware: the headers above on every response that does not set them itself."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, adding the headers to the start of its response."""

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = frontend.headers_of(message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


class Gate(frontend.Layer):
    """ASGI middleware: only names this server is known by, and only its own pages, reach anything.

    A page of another site, or of another port of this machine, can open a socket here or send a form
    from the person's browser; the browser tells its origin, and that must be the host it asked for. A name
    of another's that resolves to this machine (DNS rebinding) is no name of ours.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, or refuse it with 403 (a socket: before it is accepted)."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        refused = why_refused(
            scope, st.get_option("server.allowedHosts"), st.get_option("server.corsAllowedOrigins")
        )
        if not refused:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await WebSocketClose(1008, refused[:120])(scope, receive, send)
        else:
            await PlainTextResponse(f"{refused}\n", 403)(scope, receive, send)


class BelowBase(frontend.Layer):
    """ASGI middleware: the app's own routes stand below the server's prefix, where Streamlit puts its own."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, to a route of the app without the prefix."""
        if scope["type"] == "http":
            path = frontend.below_base(str(scope["path"]))
            scope = {**scope, "path": path} if path.startswith("/api/") else scope
        await self.app(scope, receive, send)


def why_refused(scope: Mapping[str, Any], hosts: Sequence[str], origins: Sequence[str]) -> str:
    """Why a request is no business of this server, or "".

    Args:
        scope: of ASGI, of type "http" or "websocket".
        hosts: names the server is known by; "*" for any.
        origins: further origins whose pages may use it ("https://label.example.org").

    Returns:
        A sentence for the log and the answer.
    """
    headers = frontend.headers_of(scope)
    host_headers, origins_told = headers.getlist("host"), headers.getlist("origin")
    host = host_headers[0] if len(host_headers) == 1 else ""
    if not frontend.is_known_host(host, hosts):
        return "This server does not go by that name (server.allowedHosts)."
    reads = scope["type"] == "http" and scope.get("method", "GET") in ("GET", "HEAD", "OPTIONS")
    if reads or not origins_told:
        return ""
    origin, *others = origins_told
    if not others and (urlsplit(origin).netloc.lower() == host.lower() or origin in origins):
        return ""
    return "Pages of another origin may not use this server (server.corsAllowedOrigins)."


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Warm the engine while the server starts; stop the jobs when it ends."""
    streamlit_private.leave_keras_alone()
    streamlit_private.deliver_before_the_next()
    streamlit_private.keep_to_what_the_browser_has()
    few_arenas()
    # what this process writes (uploads, exports, logs, the database) is for its owner only
    os.umask(0o077)
    log = start_log(workbench_home())
    if os.environ.get("WORKBENCH_WARM", "1") != "0":
        threading.Thread(target=fit_process.warm_up, name="warm-up", daemon=True).start()
        opening = threading.Thread(target=current.open_recent, name="recent", daemon=True)
        opening.start()
        await asyncio.to_thread(opening.join, PATIENCE)
    yield
    manager().shutdown(timeout=5.0)
    for process in (fit_process.fitter, jobs.long_work, jobs.short_work, jobs.file_work):
        process().end()
    if log is not None:
        logging.getLogger().removeHandler(log)
        log.close()


def on_script_error(error: Exception) -> bool:
    """Show an error a person can do something about as a message; leave the rest to Streamlit.

    Returns:
        True when the message has been shown.
    """
    if not isinstance(error, InputError):
        return False

    show_error(error)
    return True


def config() -> dict[str, Any]:
    """Streamlit's options as config.toml has them, flattened to dotted names."""
    with (HERE / "config.toml").open("rb") as file:
        document = tomllib.load(file)

    def flatten(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for key, value in table.items():
            name = f"{prefix}{key}"
            flat.update(flatten(value, name + ".") if isinstance(value, Mapping) else {name: value})
        return flat

    return flatten(document, "")


def options(*, configure: bool = True) -> dict[str, Any]:
    """Keyword arguments of `st.App`: lifespan, headers, error handling.

    Args:
        configure: also set our options where the person set none. A bare `streamlit run` finds no
            config file of ours beside the script, so themes must be put in place here.

    Returns:
        A dictionary for `st.App(script, **options())`.
    """
    if configure:
        for name, value in config().items():
            # server.* is read before this module is imported; setting it here would only mislead
            if not name.startswith("server.") and not streamlit_private.is_set(name):
                streamlit_private.set_option(name, value)
    from workbench.app import desk
    from workbench.app.programs.routes import routes as of_programs
    from workbench.app.shell import downloads

    return {
        "lifespan": lifespan,
        "routes": [*desk.routes(), *of_programs(), *downloads.routes()],
        "middleware": [
            Middleware(SecurityHeaders),
            Middleware(Gate),
            Middleware(login.Entrance),
            Middleware(login.WayBack),
            Middleware(frontend.FrontEnd),
            Middleware(frontend.Early),
            Middleware(BelowBase),
        ],
        "on_script_error": on_script_error,
    }


def serve(
    address: str = "127.0.0.1",
    port: int = 8501,
    *,
    open_browser: bool = True,
    max_upload_mb: int | None = None,
    share: bool = False,
    host_names: Sequence[str] = (),
    secrets: Path | None = None,
    base_path: str = "",
) -> None:
    """Run the app and block until it is stopped.

    Args:
        address: the interface to listen on; another one than this machine's own shows your projects to
            everyone who can reach it, and is refused without a log-in or `share`.
        port: to listen on, 1 to 65535.
        open_browser: whether to open a browser window (never done without a display).
        max_upload_mb: the largest upload, in megabytes.
        share: say plainly that others may reach it although there is no log-in.
        host_names: further names that people reach it by, such as a proxy's.
        secrets: the file that says how people log in (`workbench help teams`); where Streamlit looks
            unless given.
        base_path: the path of the address below which it answers ("/wb"); "" for the whole address.

    Raises:
        InputError: a port outside 1..65535, or one already taken; an upload of less than a megabyte; another
            address without a log-in or `share`; a name or a path that is none; a log-in that cannot work.
    """
    if not 1 <= port <= 65535:
        raise InputError(f"The port must lie between 1 and 65535; got {port}.")
    if max_upload_mb is not None and max_upload_mb < 1:
        raise InputError(f"The largest upload is at least 1 megabyte; got {max_upload_mb}.")
    local = address in login.LOOPBACK
    log_in = login.file_of(secrets)
    if not local and not share and log_in is None:
        raise InputError(
            f"Listening on {address} lets everyone who can reach this machine read and change your projects: "
            "there is no log-in. Set one up (--log-in FILE; workbench help teams), put a proxy with one in "
            "front and keep 127.0.0.1, or say --share."
        )
    for name in host_names:
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{cut(name)} is no name of a host: give label.example.org or 192.0.2.7, without a port."
            )
    if base_path.strip("/") and not _PATH.fullmatch(base_path.strip("/")):
        raise InputError(f"{cut(base_path)} is no path: give /wb or /lab/workbench.")
    _check_free(address, port)

    settings = config()
    settings |= {"server.address": address, "server.port": port, "server.baseUrlPath": base_path.strip("/")}
    hosts = [*settings["server.allowedHosts"], *host_names]
    if log_in is not None:
        login.lock(log_in)
        settings["secrets.files"] = [str(log_in)]
        hosts += login.names_in(log_in)
    if not local:
        hosts += own_names() if address in {"0.0.0.0", "::"} else [_in_brackets(address)]
    settings["server.allowedHosts"] = sorted(set(hosts))
    if not open_browser:
        settings["server.headless"] = True
    if max_upload_mb is not None:
        settings["server.maxUploadSize"] = max_upload_mb
    with serving():
        st.App(MAIN, **options(configure=False)).run(config=settings)


_PATH = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")


def own_names() -> list[str]:
    """The names and addresses of this machine, as a Host header has them."""
    host = socket.gethostname()
    names = {host, socket.getfqdn(), f"{host.partition('.')[0]}.local"}
    import psutil

    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family in (socket.AF_INET, socket.AF_INET6):
                names.add(_in_brackets(address.address.partition("%")[0]))
    return sorted(name for name in names if _NAME.fullmatch(name))


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _check_free(address: str, port: int) -> None:

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise InputError(
                f"Cannot listen on {address}:{port} ({error.strerror or error}). "
                f"Give another one, for example: workbench app --port {port % 65535 + 1}"
            ) from error


_BYTES, _FILES = 1_000_000, 3
# ids of projects, runs and questions are keys to them; the log of a machine may be handed around
_HIDDEN = (
    (re.compile(r"://[^/\s:@]*:[^/\s@]*@"), "://...@"),
    (re.compile(r"(?i)\b(password|passwd|secret|token|cookie|authorization)\b(\W{1,3})\S+"), r"\1\2..."),
    (re.compile(r"\b[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){1,7}[0-9a-fA-F]*\b"), "(id)"),
)


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message and, after an error, where it was raised."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": hidden(record.getMessage())[:2000],
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)[-8:]
            line["error"] = hidden(f"{type(error).__name__}: {error}")[:500]
            line["where"] = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
        return json.dumps(line, ensure_ascii=False)


def hidden(text: str) -> str:
    """A text without ids, passwords in addresses, tokens."""
    for pattern, instead in _HIDDEN:
        text = pattern.sub(instead, text)
    return text


def start_log(home: Path) -> logging.Handler | None:
    """Write warnings, and what the program itself tells, to logs/workbench.log of a home.

    Args:
        home: made where it is not there; files are for their owner only.

    Returns:
        The handler, or None where nothing can be written: the app runs without a log then.
    """
    with suppress(OSError):
        folder = home / "logs"
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        handler = RotatingFileHandler(
            folder / "workbench.log", maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8"
        )
        handler.setFormatter(JsonLines())
        handler.setLevel(logging.INFO)
        handler.addFilter(lambda r: r.levelno >= logging.WARNING or r.name.startswith("workbench"))
        logging.getLogger().addHandler(handler)
        return handler
    return None
