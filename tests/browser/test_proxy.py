"""The recipe of docs/teams.md: nginx in front, TLS, a log-in, and a person who labels through it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, ROOT, Server
from tests.browser.test_labelling import at_the_desk, exported, press_and_wait
from tests.browser.test_log_in import PEOPLE, SERVE, secrets
from workbench.store import Store

NAME = "workbench.localhost"  # Chromium takes it for this machine

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def nginx(folder: Path, port: int, behind: int, base: str = "") -> Iterator[None]:
    """The recipe's own text, with other ports, names and a certificate made here."""
    (recipe,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "teams.md").read_text(), re.DOTALL)
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("label.example.org;", f"{NAME};"),
        ("/etc/ssl/label.example.org", str(folder / "tls")),
        ("127.0.0.1:8501", f"127.0.0.1:{behind}"),
        ("location / {", f"location {base}/ {{"),
    ):
        assert old in recipe
        recipe = recipe.replace(old, new)
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={NAME}",
    ]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.pem")]
    subprocess.run([*command, *files], check=True, capture_output=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid;\nerror_log {folder}/error.log;\ndaemon off;\nworker_processes 1;\n"
        + ("user root;\n" if os.getuid() == 0 else "")
        + f"events {{}}\nhttp {{\naccess_log off;\n{places}\n{recipe}\n}}\n"
    )
    program = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        for _ in range(600):
            assert program.poll() is None, (folder / "error.log").read_text()
            with socket.socket() as probe:
                probe.settimeout(0.1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        yield
    finally:
        program.terminate()
        program.wait(20)


@pytest.mark.parametrize("base", ["", "/wb"])
def test_a_person_labels_through_the_proxy_of_the_docs(browser: Any, tmp_path: Path, base: str) -> None:
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs nginx and openssl on the PATH")
        pytest.skip("needs nginx and openssl on the PATH")
    mock = pytest.importorskip("oidc_provider_mock")
    outside = free_port()
    people = [mock.User(sub="ann", claims={"name": PEOPLE["ann"], "email": "ann@example.org"})]
    with mock.run_server_in_thread(user_claims=people) as provider:
        file = secrets(tmp_path / "secrets.toml", outside, provider.server_port)
        text = file.read_text().replace("http://127.0.0.1", f"https://{NAME}")
        file.write_text(text.replace("/oauth2callback", f"{base}/oauth2callback"))
        serve = [part.replace("secrets=", f"base_path='{base}', secrets=") for part in SERVE]
        server = Server(tmp_path / "home", command=(*serve, str(file)), base=base).start()
        try:
            with nginx(tmp_path, outside, server.port, base):
                label_through(browser, f"https://{NAME}:{outside}{base}", server)
        finally:
            server.stop()


def label_through(browser: Any, address: str, server: Server) -> None:
    context = browser.new_context(ignore_https_errors=True, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    context.route("**/*.css", lambda r: r.abort() if "jsdelivr" in r.request.url else r.continue_())
    page = context.new_page()
    # another name for this machine is none of the server's
    assert page.request.get(server.url, headers={"host": "evil.example"}).status == 403
    page.goto(f"{address}/")
    page.click(".st-key-log-in-default button")
    page.fill("input[name=sub]", "ann")
    page.click("text=Authorize >> nth=-1")
    page.click(".st-key-start-digits button")
    at_the_desk(page)
    project = page.url.partition("project=")[2]
    page.locator(".desk .picture").evaluate("one => one.decode()")
    for key in "123":
        press_and_wait(page, key)
    assert page.url.startswith(address)
    assert len(exported(page)) == 3
    # a deep link stands in a tab of its own, and leads nowhere else
    page.goto(f"{address}/label?project={project}")
    at_the_desk(page)
    store = Store.open(server.home / "workbench.sqlite")
    labels = [e for e in store.events(project) if e.kind == "label"]
    assert [e.annotator for e in labels] == ["Ann Lee"] * 3
    store.close()
    context.close()
