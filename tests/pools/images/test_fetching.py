"""Pictures from the web: every address of a host, a proxy of the environment, a server that is busy."""

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from tests.pools.formats.test_more_formats import picture
from workbench.errors import InputError
from workbench.pools.images import fetching


class Handler(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    busy: ClassVar[list[str]] = []
    sent: ClassVar[list[bytes]] = []  # of each promised picture; the whole one where nothing is said

    def do_GET(self):
        self.asked.append(self.path)
        if self.busy:
            self.send_response(503)
            self.send_header("Retry-After", self.busy.pop())
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(picture(0))))
        self.end_headers()
        self.wfile.write(self.sent.pop() if self.sent else picture(0))

    def do_CONNECT(self):
        self.asked.append(f"CONNECT {self.path} {self.headers.get('Proxy-Authorization')}")
        self.send_response(403)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def web(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_MEDIA", str(tmp_path / "media"))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.asked, Handler.busy, Handler.sent = [], [], []
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def places(*hosts, port):
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in hosts]


def closed() -> int:
    """A port where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_the_next_address_is_tried_where_the_first_does_not_answer(web, monkeypatch):
    monkeypatch.setenv("WORKBENCH_FETCH_LOCAL", "1")
    found = [*places("127.0.0.1", port=closed()), *places("127.0.0.1", port=web)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert fetching.fetch_all(["http://pictures.example/a.png"]) == {}
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found[:1])
    assert "refused" in fetching.fetch_all(["http://pictures.example/b.png"])["http://pictures.example/b.png"]


def test_one_private_address_among_public_ones_is_enough_to_refuse(web, monkeypatch):
    found = [*places("8.8.8.8", port=80), *places("10.0.0.1", port=80)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    why = fetching.fetch_all(["http://pictures.example/a.png"])["http://pictures.example/a.png"]
    assert why == "pictures.example is no public address" and Handler.asked == []


def test_the_proxy_of_the_environment_passes_it_on(web, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{web}")
    monkeypatch.setenv("https_proxy", f"http://ann:p%40ss@127.0.0.1:{web}")
    real = socket.getaddrinfo

    def looked_up(host, *more, **named):
        if host.endswith(".example"):
            raise socket.gaierror("only the proxy knows it")
        return real(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    assert fetching.fetch_all(["http://pictures.example/a.png?x=1"]) == {}
    assert Handler.asked == ["http://pictures.example/a.png?x=1"]
    why = fetching.fetch_all(["https://pictures.example/a.png"])["https://pictures.example/a.png"]
    assert "proxy" in why and "403" in why
    assert Handler.asked[1:] == ["CONNECT pictures.example:443 Basic YW5uOnBAc3M="]
    monkeypatch.setenv("no_proxy", "pictures.example")
    assert fetching.fetch_all(["http://pictures.example/c.png"]) != {} and len(Handler.asked) == 2
    why = fetching.fetch_all(["http://127.0.0.1/c.png"])["http://127.0.0.1/c.png"]
    assert why == "127.0.0.1 is no public address", "not through a proxy either"


def test_a_busy_server_is_asked_once_more_when_it_says(web, monkeypatch):
    monkeypatch.setenv("WORKBENCH_FETCH_LOCAL", "1")
    waits = []
    monkeypatch.setattr(fetching, "sleep", waits.append)
    Handler.busy = ["7"]
    assert fetching.fetch_all([f"http://127.0.0.1:{web}/a.png"]) == {} and waits == [7.0]
    Handler.busy = ["no date", "7"]
    (why,) = fetching.fetch_all([f"http://127.0.0.1:{web}/b.png"]).values()
    assert "503" in why and waits == [7.0, 7.0]
    Handler.busy = ["3600"]
    (why,) = fetching.fetch_all([f"http://127.0.0.1:{web}/c.png"]).values()
    assert "503" in why and len(waits) == 2, "nobody waits for an hour"


def test_a_download_that_breaks_off_is_not_kept(web, monkeypatch):
    monkeypatch.setenv("WORKBENCH_FETCH_LOCAL", "1")
    address = f"http://127.0.0.1:{web}/a.png"
    Handler.sent = [b"<html>please log in</html>".ljust(len(picture(0))), picture(0)[:40]]
    assert "40 bytes read" in fetching.fetch_all([address])[address]
    assert fetching.fetch_all([address]) == {address: "what came is no image"}
    assert not fetching.kept(address).is_file()
    assert fetching.fetch_all([address]) == {} and fetching.kept(address).is_file()


def test_what_a_header_says_of_waiting():
    assert fetching._wait_of("12") == 12.0
    assert fetching._wait_of(None) == fetching._wait_of("soon") == 5.0
    assert fetching._wait_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert issubclass(fetching._BusyError, InputError)
