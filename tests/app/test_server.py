import asyncio
import inspect
import json
import socket
import tomllib
from pathlib import Path

import pytest
from streamlit.config import _config_options_template as known_options

from workbench.app import server
from workbench.app.serving import streamlit_private
from workbench.errors import InputError
from workbench.figures import theme

ROOT = Path(__file__).resolve().parents[2]


def test_every_option_is_one_streamlit_knows() -> None:
    assert [name for name in server.config() if name not in known_options] == []


def test_it_listens_to_this_machine_and_tells_nobody() -> None:
    config = server.config()
    assert config["server.address"] == "127.0.0.1"
    assert config["browser.gatherUsageStats"] is False


def test_both_themes_are_given_in_full() -> None:
    config = server.config()
    light = {n.removeprefix("theme.light.") for n in config if n.startswith("theme.light.")}
    dark = {n.removeprefix("theme.dark.") for n in config if n.startswith("theme.dark.")}
    assert light == dark
    assert len(config["theme.chartSequentialColors"]) == 10


def test_the_page_and_the_figures_share_their_colours() -> None:
    assert tuple(server.config()["theme.chartCategoricalColors"]) == theme.CATEGORICAL


def test_the_repositorys_own_config_says_the_same() -> None:
    document = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    config = server.config()
    assert document["server"]["address"] == "127.0.0.1"
    assert document["browser"]["gatherUsageStats"] is False
    for section, options in document.items():
        for name, value in options.items():
            assert config[f"{section}.{name}"] == value


def test_streamlit_does_not_reset_keras_after_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.runtime.scriptrunner import script_runner

    # when Streamlit calls this differently, the page gets 0.3 s slower a run and nothing else says so
    original = script_runner._clean_problem_modules
    monkeypatch.setattr(script_runner, "_clean_problem_modules", original)
    assert streamlit_private.leave_keras_alone()
    assert script_runner._clean_problem_modules is not original
    assert server.config()["runner.postScriptGC"] is False


def test_headers_are_added_and_never_overwritten() -> None:
    sent: list[dict] = []

    async def app(scope: dict, receive: object, send: object) -> None:
        headers = [(b"Referrer-Policy", b"same-origin")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(server.SecurityHeaders(app)({"type": "http"}, None, send))
    headers = [(name.lower(), value) for name, value in sent[0]["headers"]]
    assert headers.count((b"referrer-policy", b"same-origin")) == 1
    assert b"referrer-policy" in dict(headers) and dict(headers)[b"referrer-policy"] == b"same-origin"
    assert dict(headers)[b"x-content-type-options"] == b"nosniff"
    assert b"frame-ancestors 'self'" in dict(headers)[b"content-security-policy"]


@pytest.mark.parametrize("port", [0, -1, 70000])
def test_an_impossible_port_is_refused(port: int) -> None:
    with pytest.raises(InputError, match="between 1 and 65535"):
        server.serve(port=port)


@pytest.mark.parametrize("path", ["/w b", "..", "https://a.example/wb", "/wb?x"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="is no path: give /wb"):
        server.serve(base_path=path, port=8599)


def test_a_taken_port_is_named_with_another_to_try() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"{port}.*--port"):
            server.serve(port=port)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5"])
def test_another_address_is_refused_unless_told_so_plainly(address: str) -> None:
    with pytest.raises(InputError, match=r"no log-in.*--share"):
        server.serve(address)


HOSTS = server.config()["server.allowedHosts"]


@pytest.mark.parametrize(
    ("kind", "method", "host", "origin", "fine"),
    [
        ("http", "GET", "localhost:8501", None, True),
        ("http", "GET", "[::1]:8501", None, True),
        ("http", "GET", "127.0.0.1", "https://evil.example", True),  # reading is guarded by the browser
        ("http", "GET", "evil.example:8501", None, False),
        ("http", "GET", "127.0.0.1.evil.example", None, False),
        ("http", "GET", "", None, False),
        ("http", "GET", "[::1].evil.example", None, False),
        ("http", "GET", "[::1]evil.example:80", None, False),
        ("http", "GET", "127.0.0.1:8501.evil.example", None, False),
        ("http", "GET", "evil.example@127.0.0.1", None, False),
        ("http", "PUT", "127.0.0.1:8501", "http://127.0.0.1:8501", True),
        ("http", "PUT", "127.0.0.1:8501", "http://127.0.0.1:9000", False),
        ("websocket", "", "127.0.0.1:8501", "http://127.0.0.1:8501", True),
        ("websocket", "", "127.0.0.1:8501", None, True),  # no browser at all
        ("websocket", "", "127.0.0.1:8501", "http://127.0.0.1:9000", False),
        ("websocket", "", "127.0.0.1:8501", "http://localhost:8501", False),
        ("websocket", "", "127.0.0.1:8501", "null", False),
        ("websocket", "", "127.0.0.1:8501", "https://label.example.org", True),  # allowed by the person
        ("websocket", "", "evil.example:8501", "http://evil.example:8501", False),
    ],
)
def test_only_its_own_names_and_pages_reach_the_server(
    kind: str, method: str, host: str, origin: str | None, fine: bool
) -> None:
    headers = [(b"host", host.encode())] + ([] if origin is None else [(b"Origin", origin.encode())])
    scope = {"type": kind, "method": method, "headers": headers}
    assert (server.why_refused(scope, HOSTS, ["https://label.example.org"]) == "") == fine


def test_two_hosts_or_two_origins_are_none() -> None:
    twice = [(b"host", b"127.0.0.1"), (b"host", b"evil.example")]
    assert server.why_refused({"type": "http", "headers": twice}, HOSTS, [])
    origins = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1"), (b"origin", b"http://evil.example")]
    assert server.why_refused({"type": "websocket", "headers": origins}, HOSTS, [])


def test_the_gate_answers_before_the_app_hears_of_it() -> None:
    async def app(scope: dict, receive: object, send: object) -> None:
        raise AssertionError("the app was asked")

    sent: list[dict] = []

    async def receive() -> dict:
        return {"type": "websocket.connect"}

    async def send(message: dict) -> None:
        sent.append(message)

    for kind in ("http", "websocket"):
        scope = {"type": kind, "method": "GET", "headers": [(b"host", b"evil.example")]}
        asyncio.run(server.Gate(app)(scope, receive, send))
    assert [m["type"] for m in sent] == ["http.response.start", "http.response.body", "websocket.close"]
    assert sent[0]["status"] == 403 and sent[2]["code"] == 1008


def test_the_container_listens_to_itself_unless_told_and_runs_without_rights() -> None:
    """Lines of the process: there may be no engine here to build it with."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    said = {
        word: [line.partition(" ")[2] for line in lines if line.startswith(f"{word} ")]
        for word in ("FROM", "USER", "ENTRYPOINT", "CMD")
    }
    assert json.loads(said["ENTRYPOINT"][-1]) + json.loads(said["CMD"][-1]) == [
        "workbench",
        "app",
        "--no-browser",
    ]
    assert inspect.signature(server.serve).parameters["address"].default == "127.0.0.1"
    last = text[text.rindex("\nFROM ") :]
    assert last.count("\nUSER ") == 1 and said["USER"] == ["1000:1000"]
    assert last.index("USER 1000") < last.index("ENTRYPOINT")
