"""Files that cannot be used: a clear message, nothing lost, the server still up."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import own_projects
from benchmarks.driving import Server, own_home, settled, visit
from tests.browser.test_labelling import at_the_desk
from workbench.store import Store

CASES = {
    "ragged": b"a,b,class\n1,2,x\n3,4,y,extra\n5,6,x\n",
    "empty": b"",
    "not-utf8": "a,b,class\n1,2,caf\u00e9\n3,4,th\u00e9\n".encode("latin-1"),
    "header-only": b"a,b,class\n",
    "one-row": b"a,b,class\n1,2,x\n",
    "binary": bytes(range(256)) * 20,
}


def upload(page: Any, server: Server, data: bytes, name: str = "own.csv") -> None:
    visit(page, server.url)
    page.wait_for_selector("[data-testid=stFileUploader]")
    page.set_input_files(
        "[data-testid=stFileUploader] input", {"name": name, "mimeType": "text/csv", "buffer": data}
    )


@pytest.fixture(scope="module")
def window(profile: Any) -> Iterator[Any]:
    """One window for all bad files; each starts at the first page, which the server still shows."""
    window = profile.new_page()
    yield window
    window.close()


@pytest.mark.parametrize(
    "case",  # of the others tests/pools/tables checks the sentences
    [pytest.param(case, marks=[pytest.mark.slow] * (case not in ("ragged", "binary"))) for case in CASES],
)
def test_a_bad_file_is_told_and_the_server_stays_up(window: Any, server: Server, case: str) -> None:
    page = window
    upload(page, server, CASES[case])
    told = page.locator("[data-testid=stAlert], .st-key-problem-0").first
    told.wait_for()
    settled(page)
    message = told.inner_text()
    assert len(message) > 20, message
    assert "Traceback" not in message
    assert page.locator("[data-testid=stException]").count() == 0
    with urllib.request.urlopen(server.url + "/_stcore/health") as answer:
        assert answer.status == 200


def test_offered_fixes_make_a_pool_of_a_broken_table(page: Any, server: Server) -> None:
    rows = "".join(f"{i},{i * 7 % 13},{'x' if i % 2 else '**y** <i>'}\n" for i in range(30))
    upload(page, server, ("a,b,class\n,5,x\n1,2\n" + rows).encode())
    page.wait_for_selector(".st-key-columns")
    settled(page)
    page.wait_for_selector("text=2 classes")
    fixes = page.locator("[class*=st-key-fix-]")
    fixes.first.wait_for()
    assert fixes.count() == 1
    page.get_by_role("button", name="Leave those lines out").click()
    page.wait_for_selector("text=/1 ragged line left out/")
    settled(page)
    page.click(".st-key-start-own button")
    at_the_desk(page)
    labels = page.locator(".desk .answer .name").all_inner_texts()
    assert any("**y** <i>" in text for text in labels), labels
    assert page.locator(".desk .answer i").count() == 0


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 200),
        ("/", {"Host": "evil.example"}, 403),
        ("/_stcore/health", {"Host": "evil.example"}, 403),
        ("/_stcore/stream", {"Origin": "http://{host}"}, 101),
        ("/_stcore/stream", {"Origin": "http://127.0.0.1:9"}, 403),
        ("/_stcore/stream", {"Origin": "http://evil.example", "Host": "evil.example"}, 403),
    ],
)
def test_other_hosts_and_pages_of_other_ports_reach_nothing(
    server: Server, path: str, headers: dict[str, str], status: int
) -> None:
    host = f"127.0.0.1:{server.port}"
    asked = {name: value.format(host=host) for name, value in headers.items()}
    if path.endswith("stream"):
        asked |= {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", path, headers=asked)
    assert connection.getresponse().status == status
    connection.close()


def test_a_pool_of_three_items_that_are_all_decided_says_so(page: Any, server: Server) -> None:
    with own_home(server.home):
        store = Store.open()
        identity = own_projects.project("three", server.home / "files", store, fit=False)
        store.close()
    visit(page, f"{server.url}/label?project={identity}")
    page.get_by_text("Nothing is left to ask.").wait_for()
    page.get_by_text("2 items labelled, 0 skipped, 0 unsure.").wait_for()
    visit(page, f"{server.url}/uncertainty?project={identity}")
    assert not page.locator("[data-testid=stException]").count()
