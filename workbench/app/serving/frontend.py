"""The files of Streamlit's front end, as they are sent, and the little ones in one piece.

A first visit asks for some ninety of them. Streamlit sends each through its routes, its session, its
compression (which leaves them as they are) and a thread a block: half of what a first visit costs the server.

Most of the files have less than eight kilobytes, and a browser takes as long to ask for such a one as for a
large one. They come in one script, which makes a module of each where it arrived and names them in an
import map; a browser that knows no such map asks for them one by one.

Through a network scripts go compressed, at a third of their size.
"""

import gzip
import hashlib
import json
import mimetypes
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.responses import Response

from workbench.app.serving import streamlit_private
from workbench.app.serving.streamlit_private import is_known

WIDGETS = ("Html", "Button", "BidiComponent", "Selectbox", "FileUploader", "ImageList", "Progress", "Metric")
"""Widgets that pages begin with, as the front end names their files."""
FIGURES = ("PlotlyChart",)
"""Those of a figure: five megabytes, which come when one is shown."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/@\s]+)(?::[0-9]{1,5})?")
_IMPORTED = re.compile(r"(?:\bfrom|\bimport)\"\./([\w.-]+\.js)\"")
_LINKED = re.compile(r'\s*<link rel="modulepreload" crossorigin href="\./static/js/([\w.-]+\.js)">')
_MOST_LITTLE = 1 << 13
"""Octets of a file that comes with others; what a browser compiled of a larger one is worth keeping."""
_ELSEWHERE = re.compile(r"\bimport\.meta\b|\bimport\(|\bWorker\(|(?:\bfrom|\bimport)\s*(?:['`]|\"(?!\./))")
"""What a module may not do that stands at an address of its own."""
_UNPACK = """(function(m){
if(!(HTMLScriptElement.supports&&HTMLScriptElement.supports('importmap')))return;
var own=document.currentScript,at=new URL('.',own.src).href,found={},map=document.createElement('script');
for(var name in m)found[at+name]=URL.createObjectURL(new Blob(
[m[name].replace(/\\b(from|import)"\\.\\//g,'$1"'+at)],{type:'text/javascript'}));
map.type='importmap';map.textContent=JSON.stringify({imports:found});own.after(map)})("""
_COMPRESSED = (".js", ".css", ".svg")
_SMALL = 1 << 20
"""Octets of a file that stays in memory once it was asked for."""


def below_base(path: str) -> str:
    """The path of a request without the server's own prefix (server.baseUrlPath)."""
    base = st.get_option("server.baseUrlPath").strip("/")
    path = "/" + path.lstrip("/")
    return path[len(base) + 1 :] if base and path.startswith(f"/{base}/") else path


def hostname(host: str) -> str:
    """A Host header without its port, in small letters; "" where it is not a name and a port alone.

    Args:
        host: "labels.example:443", "[::1]:8501".
    """
    match = _HOST.fullmatch(host.lower())
    return match[1] if match else ""


def is_known_host(host: str | None, names: Iterable[str]) -> bool:
    """True if a request names this server by a name it is known by.

    Args:
        host: the Host header.
        names: the option `server.allowedHosts`; "*" for any.
    """
    known_names = {str(name).lower() for name in names}
    name = hostname(host or "")
    return "*" in known_names or (bool(name) and name in known_names)


def from_root(path: str) -> str:
    """The path by which a program asks for what has this path below the server's own prefix."""
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}{path}" if base else path


def headers_of(message: Mapping[str, Any]) -> MutableHeaders:
    """Headers of a request or of an answer's beginning, in small letters; a copy.

    Args:
        message: scope of a request, or a message of ASGI.
    """
    return MutableHeaders(raw=[(name.lower(), value) for name, value in message.get("headers", [])])


class Layer:
    """ASGI middleware around an app."""

    def __init__(self, app: Any) -> None:
        self.app = app


class FrontEnd(Layer):
    """ASGI middleware: answers for the front end's files whose names change with their content.

    Whatever it does not know (parts of a file, the index, another folder) is passed on to Streamlit.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the file, or pass the request on."""
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        path = below_base(str(scope["path"])) if is_get else ""
        content = None
        if path.startswith("/static/") and not any(name in headers_of(scope) for name in _PARTLY):
            content = await _content(path)
        if content is None:
            await self.app(scope, receive, send)
            return
        headers = {"cache-control": "public, immutable, max-age=31536000"}
        if path.endswith(_COMPRESSED):
            headers["vary"] = "accept-encoding"
            if _comes_far(scope):
                content = await _in_few_octets(path, content)
                headers["content-encoding"] = "gzip"
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        await Response(content, media_type=kind, headers=headers)(scope, receive, send)


def _comes_far(scope: Any) -> bool:
    """True if an answer goes through a network, to a browser that reads what was compressed.

    On one machine the browser would take longer to unpack than is won; a proxy says for whom it asks.
    """
    headers = headers_of(scope)
    host = str((scope.get("client") or ("127.0.0.1",))[0])
    near = host in ("::1", "localhost", "testclient") or host.startswith(("127.", "::ffff:127."))
    through = any(name in ("forwarded", "via") or name.startswith("x-forwarded-") for name in headers)
    return "gzip" in headers.get("accept-encoding", "") and (through or not near)


async def _in_few_octets(path: str, content: bytes) -> bytes:
    """A file as gzip has it, made once; its path changes with its content."""
    if path not in _FEW:
        _FEW[path] = await run_in_threadpool(gzip.compress, content, 6, mtime=0)
    return _FEW[path]


_FEW: dict[str, bytes] = {}
_HELD: dict[Path, bytes] = {}


async def _content(path: str) -> bytes | None:
    """A file of the front end, or its little ones together; None for what is neither."""
    file = _files().get(path)
    try:
        if file is not None:
            return _HELD[file] if file in _HELD else await run_in_threadpool(_read, file)
        if path.startswith("/static/js/little."):
            little = await run_in_threadpool(_little)
            return little.script if path == little.path else None
        return _PICTURES.get(path)
    except OSError:
        pass
    return None


def _read(file: Path) -> bytes:
    content = file.read_bytes()
    if len(content) <= _SMALL:
        _HELD[file] = content
    return content


_PICTURES: dict[str, bytes] = {}


@cache
def picture_address(file: Path) -> str:
    """The address of a picture of ours, which a browser keeps; within a page it would come with each run.

    Args:
        file: an SVG file of the package.
    """
    content = file.read_bytes()
    path = f"/static/cards/{file.stem}.{hashlib.sha256(content).hexdigest()[:8]}.svg"
    _PICTURES[path] = content
    return f".{path}"


@cache
def component(name: str, *scripts: Path, style: Path | str, html: str = "<div></div>") -> Any:
    """A component of ours, registered once.

    Args:
        name: of the component.
        scripts: its files of JavaScript, one after the other.
        style: its file of CSS, or the rules.
        html: what it begins with.
    """
    return st.components.v2.component(
        f"workbench_{name}",
        html=html,
        css=style if isinstance(style, str) else style.read_text(encoding="utf-8"),
        js="\n".join(script.read_text(encoding="utf-8") for script in scripts) or None,
    )


def prepared(index: str) -> str:
    """The page as it is sent: with its little files in one piece.

    Args:
        index: the page as Streamlit sends it.
    """
    try:
        little = _little()
    except OSError:
        return index
    if not little.names:
        return index
    index = _LINKED.sub(lambda link: "" if link[1] in little.names else link[0], index)
    # before all modules: a map that comes after the first of them is none in some browsers
    return index.replace("<head>", f'<head><script src=".{little.path}"></script>', 1)


class _Little(NamedTuple):
    """The little files together.

    Attributes:
        path: that the script is asked by; it changes with the content.
        script: makes a module of each, and the map.
        names: of the files in it.
    """

    path: str
    script: bytes
    names: frozenset[str]


@cache
def _little() -> _Little:
    """Those of the files that pages begin with which are little, and whose imports are plain.

    Raises:
        OSError: the front end cannot be read.
    """
    index = (streamlit_private.STATIC / "index.html").read_text(encoding="utf-8")
    texts = {}
    for name in dict.fromkeys([*_LINKED.findall(index), *_needed(WIDGETS)]):
        file = _files().get(f"/static/js/{name}")
        text = "" if file is None else file.read_text(encoding="utf-8")
        if text and len(text) <= _MOST_LITTLE and not _ELSEWHERE.search(text):
            texts[name] = text
    script = (_UNPACK + json.dumps(texts) + ")").encode()
    path = f"/static/js/little.{hashlib.sha256(script).hexdigest()[:8]}.js"
    return _Little(path, script, frozenset(texts))


def address_of(widget: str) -> str:
    """The address of a widget's file, from a page; "" for one that is called otherwise."""
    paths = [path for path in _files() if path.startswith(f"/static/js/{widget}.")]
    return f".{paths[0]}" if len(paths) == 1 else ""


@lru_cache(maxsize=8)
def _needed(names: tuple[str, ...]) -> tuple[str, ...]:
    """Files of widgets and all that they import, by name; of a widget that is called otherwise none."""
    present = {file.name: file for path, file in _files().items() if path.startswith("/static/js/")}
    waiting = [file for file in present if file.partition(".")[0] in names]
    file_names: dict[str, None] = {}
    while waiting:
        name = waiting.pop(0)
        if name in file_names or name not in present:
            continue
        file_names[name] = None
        waiting += _IMPORTED.findall(present[name].read_text(encoding="utf-8"))
    return tuple(file_names)


@cache
def _files() -> dict[str, Path]:
    """Streamlit's hashed files by the path they are asked by; none of a version that is not known."""
    folder = streamlit_private.STATIC
    files = folder.glob("static/*/*.*.*") if streamlit_private.is_known() else ()
    return {f"/{file.relative_to(folder).as_posix()}": file for file in files}


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
_PARTLY = ("range", "if-none-match", "if-modified-since")
"""Headers of who wants a part of a file, or none of one that they have."""
_MOST = 1 << 20
"""Octets of an index; what is larger is none, and is passed on as it is."""


class Early(Layer):
    """ASGI middleware: puts `SCRIPT` and `BACKEND` into the head of the app's own pages.

    The palette's script arrives with the first run of a page, a second or more after the page itself. Until
    then these few lines keep the browser's own Ctrl+K away and remember that it was asked for. Streamlit asks
    for its server below the page's own address first, and is told that there is none: the server knows which
    part of the address is a page; what stands before it, a proxy's own path too, is said here.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on; of a page the whole answer is held until its head has come."""
        if scope["type"] != "http" or scope["method"] != "GET" or not asks_for_page(scope):
            await self.app(scope, receive, send)
            return
        # in plain letters and whole: what is compressed, or kept by the browser, has no head to write into
        headers = headers_of(scope)
        for name in ("accept-encoding", *_PARTLY):
            del headers[name]
        scope = {**scope, "headers": headers.raw}
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
    return any("text/html" in value for value in headers_of(scope).getlist("accept"))


def is_page(path: str) -> bool:
    """True if a path, below the server's own prefix, may be a page of the app."""
    return _PLAIN.fullmatch(path) is not None


def _is_html(start: Any) -> bool:
    headers = headers_of(start)
    html = headers.get("content-type", "").startswith("text/html")
    return html and start["status"] == 200 and "content-encoding" not in headers


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
    headers = headers_of(start)
    del headers["etag"]
    headers["content-length"] = str(len(body))
    return [{**start, "headers": headers.raw}, {**bodies[-1], "body": body}]
