from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit import file_util
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from workbench.app import server
from workbench.app.serving import frontend
from workbench.app.serving.frontend import Early

STATIC = Path(file_util.get_static_dir())
ENTRY = next(file for file in STATIC.glob("static/js/index.*.js"))
INNER = (299, {}, b"passed on")


def asked(
    app: Any, path: str, *, method: str = "GET", headers: tuple = (), client: str = "127.0.0.1"
) -> tuple[int, dict, bytes]:
    """Answer of an app: status, headers, body."""
    sent: list[dict] = []

    async def send(message: dict) -> None:
        sent.append(message)

    async def receive() -> dict:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": list(headers),
        "root_path": "",
        "client": (client, 50_000),
    }
    # an older version of the protocol has Starlette wait for the client to hang up
    asyncio.run(app(scope | {"asgi": {"spec_version": "2.4"}}, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), body


async def inner(scope: dict, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": INNER[0], "headers": []})
    await send({"type": "http.response.body", "body": INNER[2]})


def test_the_files_of_the_front_end_arrive_as_streamlit_sends_them() -> None:
    theirs = create_streamlit_static_handler(directory=str(STATIC), base_url="")
    css = next(STATIC.glob("static/css/*.css"))
    font = next(STATIC.glob("static/media/*.woff2"))
    for file in (ENTRY, css, font):
        path = "/" + file.relative_to(STATIC).as_posix()
        status, headers, body = asked(frontend.FrontEnd(inner), path)
        expected = asked(theirs, path)
        assert (status, body) == (expected[0], expected[2])
        for name in (b"content-type", b"content-length", b"cache-control"):
            assert headers[name] == expected[1][name], (path, name)


def test_scripts_go_compressed_through_a_network_and_as_they_are_on_one_machine() -> None:
    app = frontend.FrontEnd(inner)
    path = "/" + ENTRY.relative_to(STATIC).as_posix()
    reads = (b"Accept-Encoding", b"gzip, deflate, br")
    plain = ENTRY.read_bytes()
    for client, headers in (
        ("192.0.2.7", (reads,)),
        ("127.0.0.1", (reads, (b"X-Forwarded-Proto", b"https"))),
    ):
        _, answered, body = asked(app, path, client=client, headers=headers)
        assert answered[b"content-encoding"] == b"gzip" and answered[b"vary"] == b"accept-encoding"
        assert len(body) < len(plain) / 2 and answered[b"content-length"] == b"%d" % len(body)
        assert gzip.decompress(body) == plain
    for client, headers in (("127.0.0.1", (reads,)), ("::1", (reads,)), ("192.0.2.7", ())):
        _, answered, body = asked(app, path, client=client, headers=headers)
        assert b"content-encoding" not in answered and body == plain
    font = "/" + next(STATIC.glob("static/media/*.woff2")).relative_to(STATIC).as_posix()
    assert b"content-encoding" not in asked(app, font, client="192.0.2.7", headers=(reads,))[1]


def test_what_it_does_not_know_is_passed_on() -> None:
    app = frontend.FrontEnd(inner)
    path = "/" + ENTRY.relative_to(STATIC).as_posix()
    for other in ("/", "/label", "/index.html", "/static/js/none.00000000.js", "/static/js/../../index.html"):
        assert asked(app, other) == INNER
    assert asked(app, path, method="HEAD") == INNER
    assert asked(app, path, headers=((b"Range", b"bytes=0-9"),)) == INNER
    assert asked(app, path, headers=((b"if-none-match", b'"x"'),)) == INNER


def test_a_server_below_a_prefix_finds_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "get_option", lambda name: "/lab/" if name == "server.baseUrlPath" else None)
    path = "/" + ENTRY.relative_to(STATIC).as_posix()
    assert asked(frontend.FrontEnd(inner), f"/lab{path}")[2] == ENTRY.read_bytes()


def test_a_front_end_kept_elsewhere_is_left_to_streamlit(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr("workbench.app.serving.streamlit_private.STATIC", tmp_path / "elsewhere")
    cached = (frontend._files, frontend._needed, frontend._little)
    for one in cached:
        one.cache_clear()
    try:
        path = "/" + ENTRY.relative_to(STATIC).as_posix()
        assert asked(frontend.FrontEnd(inner), path) == INNER
        assert frontend.prepared("<head></head>") == "<head></head>"
    finally:
        for one in cached:
            one.cache_clear()


def test_the_app_serves_them_behind_its_own_headers() -> None:
    order = [layer.cls for layer in server.options(configure=False)["middleware"]]
    assert order.index(server.SecurityHeaders) < order.index(server.Gate) < order.index(frontend.FrontEnd)


def head_of(path: str) -> str:
    """The head of the index as the app sends it at a path."""
    index = (STATIC / "index.html").read_bytes()

    async def streamlit(scope: dict, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(index))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": index})

    _, headers, body = asked(Early(streamlit), path, headers=((b"accept", b"text/html"),))
    assert headers[b"content-length"] == b"%d" % len(body)
    return body.decode().partition("</head>")[0]


def little(path: str) -> dict[str, str]:
    """The files that come with others, by name."""
    found = re.search(r'<head>.*?<script src="\.(/static/js/little\.\w+\.js)">', head_of(path), re.DOTALL)
    assert found is not None
    status, headers, script = asked(frontend.FrontEnd(inner), found[1])
    assert status == 200 and headers[b"cache-control"].startswith(b"public, immutable")
    assert headers[b"content-type"].startswith(b"text/javascript")
    return json.loads(script[script.index(b'({"') + 1 : -1])


def test_little_files_come_together_as_they_are() -> None:
    together = little("/")
    assert len(together) > 40 and little("/label") == together
    assert not [name for name in together if f'href="./static/js/{name}"' in head_of("/")], "nothing twice"
    assert all(len(text) <= 8192 for text in together.values())
    for name, text in together.items():
        assert text == (STATIC / "static" / "js" / name).read_text(encoding="utf-8")
        # a module that asks where it stands, or for another by itself, is left where it is
        assert not re.search(r"import\.meta|import\(", text)


def test_another_front_ends_script_is_none_of_ours() -> None:
    assert asked(frontend.FrontEnd(inner), "/static/js/little.00000000.js") == INNER


def test_a_widget_that_is_called_otherwise_has_no_address() -> None:
    assert frontend.address_of("NoSuchWidget") == ""
    (plotly,) = map(frontend.address_of, frontend.FIGURES)
    assert (STATIC / plotly).is_file()
