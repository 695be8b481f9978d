"""The client against the real routes: what it sends is what they take."""

from __future__ import annotations

import io
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from workbench import client as module
from workbench.app.access import current
from workbench.app.programs.routes import routes
from workbench.client import Client, RefusedError
from workbench.sessions import ArrayOracle, Session
from workbench.store import Store


@pytest.fixture
def project(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, Client, list[int]]:
    session = Session.create(
        "iris", store=store, classifier="tests.sessions.fakes:NearestMean", policy="margin"
    )
    monkeypatch.setattr(Store, "open", classmethod(lambda cls, url=None: store))
    current.keep(session)
    web = TestClient(Starlette(routes=routes()), base_url="http://localhost")
    busy: list[int] = []

    def opened(request: Request, timeout: float) -> Any:
        if busy:
            raise HTTPError(request.full_url, busy.pop(), "", None, io.BytesIO(b'{"wait": 0}'))  # type: ignore[arg-type]
        reply = web.request(
            request.get_method(), request.full_url, content=request.data, headers=dict(request.header_items())
        )
        if reply.status_code != 200:
            body = io.BytesIO(reply.content)
            raise HTTPError(request.full_url, reply.status_code, "", None, body)  # type: ignore[arg-type]
        return io.BytesIO(reply.content)

    monkeypatch.setattr(module, "urlopen", opened)
    _, secret = store.keys.make(session.id, "robot")
    return session, Client("http://localhost", session.id, secret), busy


def test_a_program_labels_with_the_client(project: tuple[Session, Client, list[int]]) -> None:
    session, client, busy = project
    oracle = ArrayOracle(session.pool)
    with pytest.raises(RefusedError, match="no model"):
        client.predict([{"a": 1}])
    for question in client.questions(6):
        busy.append(503)  # once for each: sent again, and not twice labelled
        assert client.label(question, oracle(question["item"])) == "saved"
    [other] = client.questions()
    assert client.skip(other) == "saved" and client.unsure(other).startswith("conflict")
    assert client.progress()["labelled"] == 6 == len(list(client.labels(at_once=4)))
    before = sorted(session.state.labels)
    rows = client.labels(at_once=2)
    items = [next(rows)["item"]]
    meanwhile = next(item for item in range(before[1]) if item not in before)  # on the page that was read
    session.items.label(meanwhile, "setosa")
    assert [*items, *(row["item"] for row in rows)] == before
    assert client.label(client.questions()[0], "no such class").startswith("refused")


def test_a_program_answers_all_questions_about_an_item(project: tuple[Session, Client, list[int]]) -> None:
    session, client, _ = project
    [one] = client.items()
    assert list(one["questions"]) == [session.question_name]
    assert client.tell(one, {session.question_name: session.classes[0]}) == "saved"
    session.questions.add("large")
    session.questions.add(("tone", ["calm", "angry"]))
    one, other = client.items(2)
    assert one["questions"]["large"]["classes"] == ["yes", "no"] and "row" in one
    row = {"large": True, "tone": "calm", session.question_name: None}
    assert client.tell(one, {**row, "tone": "loud"}).startswith("refused")
    assert client.tell(one, row) == "saved" and client.tell(one, row) == "saved"
    assert client.tell(one, {**row, "tone": "angry"}).startswith("conflict")
    assert session.question("large").state.labels[one["item"]] == "yes"
    assert one["item"] in session.state.unsure
    assert client.skip(other) == "saved"
    assert other["item"] in session.question("tone").state.skipped
    amended = {"op": "x1", "kind": "amend", "item": one["item"], "answers": {"large": "no"}}
    assert [done["status"] for done in client.answer([amended])] == ["saved"]
    assert session.question("large").state.labels[one["item"]] == "no"


def test_what_the_server_refuses_is_an_error_with_its_words(
    project: tuple[Session, Client, list[int]],
) -> None:
    session, client, _ = project
    [key] = session.store.keys.of(session.id)
    session.store.keys.revoke(session.id, key.id)
    with pytest.raises(RefusedError, match="revoked") as refused:
        client.progress()
    assert refused.value.status == 401


def test_a_page_of_a_proxy_is_no_answer_and_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    page = HTTPError("u", 502, "Bad Gateway", Message(), io.BytesIO(b"<html>"))
    replies: list[Any] = [page, io.BytesIO(b'{"a": 1}')]

    def urlopen(*_: Any, **__: Any) -> Any:
        reply = replies.pop(0)
        if isinstance(reply, HTTPError):
            raise reply
        return reply

    monkeypatch.setattr(module, "urlopen", urlopen)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    assert Client("http://nowhere", "project", "key").progress() == {"a": 1} and not replies
