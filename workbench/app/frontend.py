"""The files of Streamlit's front end, sent in one piece.

A first visit asks for some ninety of them. Streamlit sends each through its routes, its session, its
compression (which leaves them as they are) and a thread a block: half of what a first visit costs the server.
"""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from workbench.app import streamlit_private


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
            content = await run_in_threadpool(file.read_bytes)
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


@cache
def _files() -> dict[str, Path]:
    """Streamlit's hashed files by the path they are asked by; none where it keeps them elsewhere."""
    folder = streamlit_private.static_folder()
    return {f"/{file.relative_to(folder).as_posix()}": file for file in folder.glob("static/*/*.*.*")}
