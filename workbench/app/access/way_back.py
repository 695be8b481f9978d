"""The way back after a log-in: the page that somebody asked for, in a cookie until they are let in."""

import re
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from workbench.app.access import login
from workbench.app.serving.early import asks_for_page, is_page
from workbench.app.serving.frontend import Layer, below_base, from_root

COOKIE = "workbench-return"
_SECONDS = 900
_MOST = 1_000
_TARGET = re.compile(r"/[\w-]*(\?[\w=&%.~+*-]*)?", re.ASCII)
"""A page of this server, with what stands behind its path; nothing that leads to another one."""


class WayBack(Layer):
    """ASGI middleware: whoever asked for a page without a log-in comes to it after the log-in.

    Streamlit itself leads everybody to the first page, without the project.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on; the answer keeps the page in a cookie, or leads to the one that was kept."""
        from starlette.requests import cookie_parser

        changed = None
        if scope["type"] == "http" and scope["method"] == "GET" and login.required():
            path, query = below_base(str(scope["path"])), scope.get("query_string", b"").decode("latin-1")
            cookie_headers = [
                value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"cookie"
            ]
            cookies = cookie_parser("; ".join(cookie_headers))
            names = dict(parse_qsl(query))
            if path == login.CALLBACK and ("state" in names or "error" in names):
                changed = _led_back(cookies.get(COOKIE, ""), denied="error" in names)
            elif asks_for_page(scope) and is_page(path) and await _is_stranger(cookies):
                changed = _kept(path, query)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start" and changed is not None:
                message = {**message, "headers": changed(message["status"], list(message.get("headers", [])))}
            await send(message)

        await self.app(scope, receive, sent)


async def _is_stranger(cookies: dict[str, str]) -> bool:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(login.of_cookies, cookies) is None


def _kept(path: str, query: str) -> Any:
    """Headers of a page that is sent, with the page's address in a cookie."""
    further = urlencode([(name, value) for name, value in parse_qsl(query) if name != login.DENIED])
    target = f"{path}?{further}" if further else path

    def changed(status: int, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        keeps = target != "/" and len(target) <= _MOST
        return [*headers, _cookie(target if keeps else "")] if status == 200 else headers

    return changed


def _led_back(page: str, *, denied: bool) -> Any:
    """Headers of the answer that ends a log-in: it leads to the page that was kept."""
    target = unquote(page)
    target = target if _TARGET.fullmatch(target) else "/"
    if denied:
        target += f"{'&' if '?' in target else '?'}{login.DENIED}=denied"

    def changed(status: int, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        if status // 100 != 3:
            return headers
        to = (b"location", from_root(target).encode())
        other_headers = [(name, value) for name, value in headers if name.lower() != b"location"]
        return [*other_headers, to] if denied else [*other_headers, to, _cookie("")]

    return changed


def _cookie(target: str) -> tuple[bytes, bytes]:
    """The header that keeps an address, or with "" lets go of it."""
    secure = "; Secure" if login.is_encrypted() else ""
    seconds = _SECONDS if target else 0
    words = f"{COOKIE}={quote(target, safe='')}; Max-Age={seconds}; Path={from_root('/')}"
    words += f"; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", words.encode()
