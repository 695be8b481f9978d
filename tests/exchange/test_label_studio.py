"""A real Label Studio, started on this machine: it takes our tasks, and we read what it gives back.

`make label-studio` installs it into an environment of its own and names it in WORKBENCH_LABEL_STUDIO.
"""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.exchange import of_other_programs
from tests.exchange.test_scopes import photos, project
from workbench.exchange.imports import import_labels, take_import
from workbench.exchange.labels import export_labels
from workbench.exchange.questions import read_answers

__all__ = ["photos"]

PROGRAM = os.environ.get("WORKBENCH_LABEL_STUDIO", "")
TOKEN = "0123456789abcdef0123456789abcdef01234567"
START = 1_200.0  # its first start makes a database of some 400 steps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(not PROGRAM, reason="make label-studio runs it with a real Label Studio"),
]


def call(url: str, data: Any = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Token {TOKEN}"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=300) as answer:
        return json.loads(answer.read() or b"null")


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("label-studio")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = ["--no-browser", "--port", str(port), "--internal-host", "127.0.0.1", "--data-dir", str(home)]
    told += ["--username", "a@example.org", "--password", "a-long-password", "--user-token", TOKEN]
    env = {**os.environ, "LABEL_STUDIO_BASE_DATA_DIR": str(home), "COLLECT_ANALYTICS": "false"}
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            [PROGRAM, "start", *told, "--enable-legacy-api-token"], env=env, stdout=log, stderr=log
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_up(server, url, home / "log")
            yield url
        finally:
            server.terminate()
            server.wait(60)


def wait_until_up(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + START
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()[-2_000:]
        try:
            call(f"{url}/api/projects")
        except (urllib.error.URLError, ConnectionError):
            time.sleep(1)
        else:
            return
    raise AssertionError(log.read_text()[-2_000:])


@pytest.mark.parametrize("kind", ["image", "text", "table"])
def test_label_studio_takes_our_tasks_and_gives_them_back(
    kind: str, label_studio: str, store: Any, photos: Path, tmp_path: Path
) -> None:
    session = project(kind, store, photos, tmp_path)
    with zipfile.ZipFile(io.BytesIO(export_labels(session, "label-studio", "predictions"))) as packed:
        config, tasks = packed.read("config.xml").decode(), json.loads(packed.read("tasks.json"))
    made = call(f"{label_studio}/api/projects", {"title": kind, "label_config": config})
    taken = call(f"{label_studio}/api/projects/{made['id']}/import", tasks)
    n = session.state.n_labelled
    assert (taken["task_count"], taken["annotation_count"]) == (len(session.pool), n)
    assert taken["prediction_count"] == len(session.pool) - n
    back = call(f"{label_studio}/api/projects/{made['id']}/export?exportType=JSON&download_all_tasks=true")
    labels = import_labels(json.dumps(back).encode(), session.pool, "label-studio", session.classes)
    assert dict(labels) == dict(session.state.labels)


def test_two_questions_and_twenty_switches_go_there_and_come_back(label_studio: str, store: Any) -> None:
    session = of_other_programs.answered(store)
    with zipfile.ZipFile(io.BytesIO(export_labels(session, "label-studio", "questions"))) as packed:
        config, tasks = packed.read("config.xml").decode(), json.loads(packed.read("tasks.json"))
    made = call(f"{label_studio}/api/projects", {"title": "letters", "label_config": config})
    taken = call(f"{label_studio}/api/projects/{made['id']}/import", tasks)
    assert (taken["task_count"], taken["annotation_count"]) == (len(tasks), len(tasks))
    back = call(f"{label_studio}/api/projects/{made['id']}/export?exportType=JSON&download_all_tasks=true")
    other = of_other_programs.begun(store, "again")
    take_import(other, read_answers(json.dumps(back).encode(), other, "label-studio"), "there")
    assert of_other_programs.labels_of(other) == of_other_programs.labels_of(session)
