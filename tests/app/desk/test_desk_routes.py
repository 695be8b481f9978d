"""The desk's routes: who may ask, and what a full disk or a closed tab does."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.app.desks import desk_sync, operation
from workbench.app.access import current
from workbench.app.desk import routes, tokens
from workbench.errors import InputError, StorageError
from workbench.sessions import Session


def test_a_token_is_for_one_project_one_person_and_half_a_day(home: Path) -> None:
    token = tokens.issue("p", "ann", now=1000.0)
    held = tokens.bearer(token, now=1000.0 + 11 * 3600)
    assert held is not None and (held.project, held.person) == ("p", "ann")
    assert tokens.bearer(token, now=1000.0 + 13 * 3600) is None
    assert tokens.bearer(token[:-2] + "xx", now=1000.0) is None
    body, _, signature = token.partition(".")
    forged = base64.urlsafe_b64encode(json.dumps(["p", "bob", 10**12]).encode()).decode().rstrip("=")
    assert tokens.bearer(f"{forged}.{signature}", now=1000.0) is None
    assert all(tokens.bearer(wrong) is None for wrong in ("", ".", body, "é.é", "a.b.c"))
    assert (home / "desk.key").stat().st_mode & 0o077 == 0


def test_an_address_of_a_picture_opens_pictures_alone(client: TestClient, flowers: Session) -> None:
    token = tokens.issue(flowers.id, "ann")
    held = tokens.bearer(token)
    assert held is not None
    pictures = tokens.for_pictures(held)
    read = tokens.bearer(pictures, use="pictures")
    assert read is not None and read.expires == held.expires and tokens.for_pictures(held) == pictures
    assert tokens.bearer(pictures) is None and tokens.bearer(token, use="pictures") is None
    assert post(client, flowers, **{"x-desk-token": pictures}).status_code == 401
    where = f"/api/desk/{flowers.id}/image/0?k="
    # iris has no pictures: who may look is told that, who may not is not
    assert client.get(where + pictures).status_code == 404 and client.get(where + token).status_code == 401


def test_a_key_that_was_cut_short_signs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    (tmp_path / "desk.key").write_bytes(b"")
    with pytest.raises(InputError, match="cut short"):
        tokens.issue("p", "ann")
    (tmp_path / "desk.key").unlink()
    assert tokens.bearer(tokens.issue("p", "ann")) is not None
    assert [file.name for file in tmp_path.iterdir()] == ["desk.key"]


@pytest.fixture
def client(flowers: Session) -> TestClient:
    return TestClient(Starlette(routes=routes()), base_url="http://localhost:8501")


def post(client: TestClient, session: Session, **headers: str) -> Any:
    given = {"x-desk-token": tokens.issue(session.id, "ann"), "content-type": "application/json"} | headers
    body = json.dumps({"ops": [], "want": 1, "have": []})
    return client.post(f"/api/desk/{session.id}/sync", content=body, headers=given)


def test_the_page_itself_is_answered(client: TestClient, flowers: Session) -> None:
    answered = post(client, flowers, origin="http://localhost:8501", **{"sec-fetch-site": "same-origin"})
    assert answered.status_code == 200 and len(answered.json()["queue"]) == 1
    assert answered.headers["cache-control"] == "no-store"


def test_a_fit_that_an_answer_starts_is_of_whoever_answered(
    client: TestClient, flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(current, "keep_fitting", lambda session: started.append(session.annotator))
    assert post(client, flowers, **{"x-desk-token": tokens.issue(flowers.id, "bob")}).status_code == 200
    assert started == ["bob"]


def test_a_tab_that_closes_while_it_sends_is_no_fault_of_the_server(
    flowers: Session, caplog: pytest.LogCaptureFixture
) -> None:
    token = tokens.issue(flowers.id, "ann")
    headers = {"x-desk-token": token, "content-type": "application/json", "host": "localhost"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/api/desk/{flowers.id}/sync",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Starlette(routes=routes())(scope, receive, send))
    assert sent[0]["status"] == 400
    assert not caplog.records


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), StorageError("No space left on device.")]
)
def test_a_full_disk_is_said_and_the_answers_are_taken_once_there_is_room(
    client: TestClient, flowers: Session, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    card = desk_sync(flowers)["queue"][0]
    whose = {"person": "ann", "project": flowers.id}
    body = {"ops": [operation("label", card, **{"class": "setosa"}) | whose], "want": 0, "have": []}
    headers = {"x-desk-token": tokens.issue(flowers.id, "ann"), "content-type": "application/json"}

    def full(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Session, "apply", full)
        told = client.post(f"/api/desk/{flowers.id}/sync", json=body, headers=headers)
    assert told.status_code == 503 and "No space left on device" in told.json()["why"]
    assert not flowers.state.labels
    kept = client.post(f"/api/desk/{flowers.id}/sync", json=body, headers=headers)
    assert kept.json()["acks"][0]["status"] == "saved" and len(flowers.state.labels) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://localhost:9999"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"x-desk-token": "forged.token"}, 401),
        ({"x-desk-token": ""}, 401),
    ],
)
def test_anybody_else_is_refused(
    client: TestClient,
    flowers: Session,
    headers: dict[str, str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamlit.get_option", lambda name: {"server.allowedHosts": ["localhost"]}[name])
    refused = post(client, flowers, **headers)
    assert refused.status_code == status and refused.json()["why"]
    assert not flowers.state.asks


def test_a_token_of_another_project_and_a_flood_are_refused(client: TestClient, flowers: Session) -> None:
    assert post(client, flowers, **{"x-desk-token": tokens.issue("other", "ann")}).status_code == 401
    headers = {"x-desk-token": tokens.issue(flowers.id, "ann"), "content-type": "application/json"}
    where = f"/api/desk/{flowers.id}/sync"
    assert client.post(where, content=b"[" * 300_000, headers=headers).status_code == 413
    assert client.post(where, content=b"[" * 100_000, headers=headers).status_code == 400
    assert client.post(where, content=b"[1]", headers=headers).status_code == 400
    assert client.get(f"/api/desk/{flowers.id}/image/0").status_code == 401
