"""The files of Streamlit's front end, sent in one piece, and those asked for early that a page will need.

A first visit asks for some ninety of them. Streamlit sends each through its routes, its session, its
compression (which leaves them as they are) and a thread a block: half of what a first visit costs the server.
The browser learns of a widget's own file only once the page has run, and of what that one imports only once
it has come: three ways to the server and back, one after the other, before the page stands.
"""

from __future__ import annotations

import mimetypes
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from workbench.app.serving import streamlit_private

EVERYWHERE = ("Html", "Button", "BidiComponent", "Selectbox")
"""Widgets of each page, as the front end names their files."""
FIRST = ("FileUploader", "ImageList")
"""Further ones of the first page."""
_IMPORTED = re.compile(r"(?:\bfrom|\bimport)\"\./([\w.-]+\.js)\"")
_SMALL = 1 << 20
"""Octets of a file that stays in memory once it was asked for."""


def below_base(path: str) -> str:
    """The path of a request without the server's own prefix (server.baseUrlPath)."""
    base = st.get_option("server.baseUrlPath").strip("/")
    path = "/" + path.lstrip("/")
    return path[len(base) + 1 :] if base and path.startswith(f"/{base}/") else path


class FrontEnd:
    """ASGI middleware: answers for the front end's files whose names change with their content.

    Whatever it does not know (parts of a file, the index, another folder) is passed on to Streamlit.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the file, or pass the request on."""
        asked = scope["type"] == "http" and scope["method"] == "GET"
        path = below_base(str(scope["path"])) if asked else ""
        file = _files().get(path) if path.startswith("/static/") else None
        partly = (b"range", b"if-none-match", b"if-modified-since")
        if file is None or any(name.lower() in partly for name, _ in scope["headers"]):
            await self.app(scope, receive, send)
            return
        from starlette.concurrency import run_in_threadpool

        try:
            content = _HELD[file] if file in _HELD else await run_in_threadpool(_read, file)
        except OSError:
            await self.app(scope, receive, send)
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        kind += "; charset=utf-8" if kind.startswith("text/") else ""
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", b"%d" % len(content)),
            (b"cache-control", b"public, immutable, max-age=31536000"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


_HELD: dict[Path, bytes] = {}


def _read(file: Path) -> bytes:
    content = file.read_bytes()
    if len(content) <= _SMALL:
        _HELD[file] = content
    return content


def asked_early(index: str, path: str) -> str:
    """Links by which a browser asks for a page's files before the page has run; "" where it would anyway.

    Args:
        index: the page as Streamlit sends it.
        path: of the page, below the server's own prefix.
    """
    names = EVERYWHERE + (FIRST if path.strip("/") in ("", "start", "data") else ())
    return "".join(
        f'<link rel="modulepreload" crossorigin href="./static/js/{one}">'
        for one in _needed(names)
        if one not in index
    )


@lru_cache(maxsize=8)
def _needed(names: tuple[str, ...]) -> tuple[str, ...]:
    """Files of widgets and all that they import, by name; of a widget that is called otherwise none."""
    present = {file.name: file for path, file in _files().items() if path.startswith("/static/js/")}
    waiting = [file for file in present if file.partition(".")[0] in names]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in present:
            continue
        found[name] = None
        waiting += _IMPORTED.findall(present[name].read_text(encoding="utf-8"))
    return tuple(found)


@cache
def _files() -> dict[str, Path]:
    """Streamlit's hashed files by the path they are asked by; none where it keeps them elsewhere."""
    folder = streamlit_private.static_folder()
    return {f"/{file.relative_to(folder).as_posix()}": file for file in folder.glob("static/*/*.*.*")}
