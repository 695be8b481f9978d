"""Facts for a page before its scripts have come: that Ctrl+K was pressed, and its server.

The palette's script arrives with the first run of a page, a second or more after the page itself. Until
then these few lines, in the head of the index, keep the browser's own Ctrl+K away and remember that it was
asked for.

Streamlit asks for its server below the page's own address first, and is told that there is none. The server
knows which part of the address is a page; what stands before it, a proxy's own path too, is said here.
"""

import json
import re
from typing import Any

from workbench.app.serving.frontend import Layer, below_base, prepared
from workbench.app.serving.streamlit_private import is_known

SCRIPT = (
    "<script>window.addEventListener('keydown',function(e){"
    "if(window.workbenchPalette||!(e.ctrlKey||e.metaKey)||e.altKey||e.shiftKey||e.key.toLowerCase()!=='k'&&!(e.code==='KeyK'&&e.key>'\\u02ff'))return;"
    "e.preventDefault();window.workbenchWanted=true},true)</script>"
)
BACKEND = (
    "<script>(function(p,l){{if(l.slice(-p.length)===p)l=l.slice(0,-p.length);else if(p!=='/')return;"
    "window.__streamlit={{...window.__streamlit,BACKEND_BASE_URL:location.origin+l}}}})"
    "({page},location.pathname)</script>"
)
"""With the path of a page; a proxy that takes its own path away leaves that in the address."""
_PLAIN = re.compile(r"/[\w-]*", re.ASCII)
_HEAD = b"<head>"
_LEFT_OUT = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
_MOST = 1 << 20
"""Octets of an index; what is larger is none, and is passed on as it is."""


class Early(Layer):
    """ASGI middleware: puts `SCRIPT` and `BACKEND` into the head of the app's own pages."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on; of a page the whole answer is held until its head has come."""
        if scope["type"] != "http" or scope["method"] != "GET" or not asks_for_page(scope):
            await self.app(scope, receive, send)
            return
        # in plain letters and whole: what is compressed, or kept by the browser, has no head to write into
        scope = {**scope, "headers": [h for h in scope["headers"] if h[0].lower() not in _LEFT_OUT]}
        messages: list[Any] = []
        size = 0

        async def watched(message: Any) -> None:
            nonlocal size
            if message["type"] == "http.response.start" and _is_html(message) and not messages:
                messages.append(message)
                return
            if not messages:
                await send(message)
                return
            messages.append(message)
            size += len(message.get("body", b""))
            if message.get("more_body") and size <= _MOST:
                return
            waiting, messages[:] = _with_script(messages, below_base(str(scope["path"]))), []
            for event in waiting:
                await send(event)

        await self.app(scope, receive, watched)


def asks_for_page(scope: Any) -> bool:
    """True if a browser asks for something that it will show as a page."""
    return any(name.lower() == b"accept" and b"text/html" in value for name, value in scope["headers"])


def is_page(path: str) -> bool:
    """True if a path, below the server's own prefix, may be a page of the app."""
    return _PLAIN.fullmatch(path) is not None


def _is_html(start: Any) -> bool:
    headers = {name.lower(): value for name, value in start.get("headers", [])}
    html = headers.get(b"content-type", b"").startswith(b"text/html")
    return bool(html and start["status"] == 200 and b"content-encoding" not in headers)


def backend_of(path: str) -> str:
    """The script that says where the server of a page is; "" for a path that is no page's."""
    return BACKEND.format(page=json.dumps(path)) if is_page(path) and is_known() else ""


def _with_script(messages: list[Any], path: str) -> list[Any]:
    """An answer's messages, its head with what a page must know; as they are where no head is in them."""
    start, bodies = messages[0], messages[1:]
    body = b"".join(message.get("body", b"") for message in bodies)
    if _HEAD not in body or bodies[-1].get("more_body"):
        return list(messages)
    if is_page(path):
        body = prepared(body.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    body = body.replace(_HEAD, _HEAD + (SCRIPT + backend_of(path)).encode(), 1)
    headers = [(n, v) for n, v in start.get("headers", []) if n.lower() not in (b"content-length", b"etag")]
    headers.append((b"content-length", b"%d" % len(body)))
    return [{**start, "headers": headers}, {**bodies[-1], "body": body}]
