"""The HTTP API: who is let in, what it does, its description and its client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.app.access.test_login import ANN
from tests.app.desks import fitted
from workbench import cli
from workbench.app.access import login
from workbench.app.programs import BASE
from workbench.app.programs.routes import routes
from workbench.sessions import ArrayOracle, Session

HOST = "http://localhost:8501"


@pytest.fixture
def web(flowers: Session) -> TestClient:
    return TestClient(Starlette(routes=routes()), base_url=HOST)


@pytest.fixture
def key(flowers: Session) -> dict[str, str]:
    _, secret = flowers.store.keys.make(flowers.id, "ann", purpose="tests")
    return {"authorization": f"Bearer {secret}"}


def _at(session: Session, path: str = "") -> str:
    return f"{BASE}/projects/{session.id}{path}"


def _labelled(web: TestClient, session: Session, key: dict[str, str], n: int) -> list[dict[str, Any]]:
    oracle, acks = ArrayOracle(session.pool), []
    for k in range(n):
        [question] = web.post(_at(session, "/questions"), headers=key, json={"n": 1}).json()["questions"]
        answer = {"op": f"t{k}", "kind": "label", "class": oracle(question["item"])}
        body = {"answers": [answer | {name: question[name] for name in ("ask", "item")}]}
        acks += web.post(_at(session, "/answers"), headers=key, json=body).json()["answers"]
    return acks


def test_a_program_asks_answers_and_reads_as_its_person(
    web: TestClient, flowers: Session, key: dict[str, str]
) -> None:
    assert [ack["status"] for ack in _labelled(web, flowers, key, 8)] == ["saved"] * 8
    assert {vote.annotator for vote in flowers.state.standing.values()} == {"ann"}
    progress = web.get(_at(flowers), headers=key).json()
    assert progress["labelled"] == 8 and progress["classes"] == list(flowers.classes)
    start = sorted(flowers.state.labels)[6]
    page = web.get(_at(flowers, f"/labels?start={start}&limit=5"), headers=key).json()
    assert page["total"] == 8 and len(page["labels"]) == 2
    [taken] = flowers.store.audit.entries(project=flowers.id, what="exported")
    assert taken.name == "ann" and taken.detail.startswith("2 labels by key")
    assert page["labels"][0]["person"] == "ann" and page["labels"][0]["label"] in flowers.classes
    again = {"answers": [{"op": "t0", "kind": "undo"}]}
    assert (
        web.post(_at(flowers, "/answers"), headers=key, json=again).json()["answers"][0]["status"] == "saved"
    )
    assert len(flowers.state.standing) == 8  # an operation that was done before is not done again


def test_a_key_opens_all_questions_of_its_project(
    web: TestClient, flowers: Session, key: dict[str, str]
) -> None:
    added = flowers.questions.add("pretty")
    there = web.get(_at(flowers), headers=key).json()["questions"]
    assert there["pretty"] == added.id and len(there) == 2
    progress = web.get(_at(added), headers=key).json()
    assert progress["question"] == "pretty" and progress["classes"] == ["yes", "no"]
    [question] = web.post(_at(added, "/questions"), headers=key, json={"n": 1}).json()["questions"]
    answer = {"op": "p1", "kind": "label", "class": "yes", "ask": question["ask"], "item": question["item"]}
    done = web.post(_at(added, "/answers"), headers=key, json={"answers": [answer]}).json()["answers"]
    assert [ack["status"] for ack in done] == ["saved"] and not flowers.state.labels


def test_new_rows_are_predicted_as_the_model_does(
    web: TestClient, flowers: Session, key: dict[str, str]
) -> None:
    fitted(flowers, 12)
    rows = [dict(flowers.pool.items.show(i).row or {}) for i in range(4)]
    reply = web.post(_at(flowers, "/predict"), headers=key, json={"rows": rows}).json()
    model = flowers.model
    assert model is not None
    for given, p in zip(reply["predictions"], model.predict_proba(np.arange(4)), strict=True):
        assert given["probabilities"] == pytest.approx(p.tolist(), abs=1e-5)
        assert given["class"] == reply["classes"][int(p.argmax())]
    wrong = web.post(_at(flowers, "/predict"), headers=key, json={"rows": [{"width": 1.0}]})
    assert wrong.status_code == 409 and "column" in wrong.json()["why"]
    assert web.post(_at(flowers, "/predict"), headers=key, json={"rows": []}).status_code == 409
    assert web.post(_at(flowers, "/predict"), headers=key, json={"rows": [[1.0], "a"]}).status_code == 409


def test_who_has_no_key_of_this_project_is_told_so(
    web: TestClient, flowers: Session, key: dict[str, str]
) -> None:
    assert web.get(_at(flowers)).status_code == 401
    assert web.get(_at(flowers), headers={"authorization": "Bearer wb_nothing"}).status_code == 401
    other = Session.create("iris", store=flowers.store, annotator="ann")
    assert web.get(_at(other), headers=key).status_code == 403
    [kept] = flowers.store.keys.of(flowers.id)
    assert kept.used is not None and kept.purpose == "tests"
    flowers.store.keys.revoke(flowers.id, kept.id)
    refused = web.get(_at(flowers), headers=key)
    assert refused.status_code == 401 and "revoked" in refused.json()["why"]


def test_with_a_log_in_a_key_opens_what_its_person_may_open(
    web: TestClient, flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_secrets", lambda: {"auth": {"client_id": "a"}})
    flowers.store.share_project(flowers.id, "key-of-ann", "shared", ["key-of-ben"])
    replies = {}
    for person in ("ann", "ben", "eve", ""):
        name, of = person or "nobody", f"key-of-{person}" if person else ""
        _, secret = flowers.store.keys.make(flowers.id, name, person=of)
        replies[name] = web.get(_at(flowers), headers={"authorization": f"Bearer {secret}"}).status_code
    assert replies == {"ann": 200, "ben": 200, "eve": 403, "nobody": 403}


def test_a_key_of_somebody_who_left_the_list_of_people_is_refused_everywhere_at_once(
    web: TestClient, flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: dict[str, Any] = {"auth": {"client_id": "a"}, "workbench": {"people": ["*@example.org"]}}
    monkeypatch.setattr(login, "_secrets", lambda: held)
    monkeypatch.setattr(login, "_KNOWN", {})
    ann = login.person_of(ANN)
    assert ann is not None
    flowers.store.share_project(flowers.id, ann.key, "private")
    beside = flowers.questions.add("pretty")
    _, secret = flowers.store.keys.make(flowers.id, ann.name, person=ann.key)
    ways = [
        (route.path.replace("{project}", of.id).replace("{item:int}", "0"), method)
        for route in routes()
        for of in (flowers, beside)
        if isinstance(route, Route) and "{project}" in route.path
        for method in (route.methods or set()) - {"HEAD"}
    ]

    def statuses() -> set[int]:
        headers = {"authorization": f"Bearer {secret}"}
        replies = [
            web.request(method, path, headers=headers, json={} if method == "POST" else None)
            for path, method in ways
        ]
        assert all(reply.json()["why"] for reply in replies if reply.status_code == 403)
        return {reply.status_code for reply in replies}

    assert len(ways) == 14 and 403 not in statuses()
    held["workbench"]["people"] = ["bob@example.org"]
    assert login.person_of(ANN) is None and statuses() == {403}
    held["workbench"]["people"] = ["ann@*"]
    assert 403 not in statuses()
    # an address that she has now, and that nobody let in
    held["workbench"]["people"] = ["*@example.org", "ann@other.org"]
    assert login.person_of(ANN | {"email": "ann@other.org"}) == ann
    held["workbench"]["people"] = ["*@example.org"]
    assert statuses() == {403}


def test_a_second_press_makes_no_second_key_and_no_secret_hides_another(flowers: Session) -> None:
    def script(project: str) -> None:
        from workbench.app.programs import control
        from workbench.store import Store

        store = Store.open()
        record = store.summary(project)
        assert record is not None
        control._keys(store, record)

    page = AppTest.from_function(script, args=(flowers.id,), default_timeout=600).run()
    for box, words in zip(page.text_input, ("robot", "nightly"), strict=True):
        box.set_value(words)
    press = page.button[0]
    press.click().run()
    [first] = [one.value for one in page.code]
    press.click().run()
    assert [one.value for one in page.code] == [first] and len(flowers.store.keys.of(flowers.id)) == 1
    page.text_input[0].set_value("another")
    page.button[0].click().run()
    assert not page.exception and len(page.code) == 2 and first in [one.value for one in page.code]
    assert {flowers.store.keys.holder(one.value).name for one in page.code} == {"robot", "another"}  # type: ignore[union-attr]
    page.text_input[0].set_value("")
    page.button[0].click().run()
    assert "give a name" in page.error[0].value and len(page.code) == 2
    flowers.store.keys.revoke(flowers.id, flowers.store.keys.of(flowers.id)[0].id)
    assert len(page.run().code) == 1


def test_a_key_is_kept_nowhere_and_goes_with_its_project(flowers: Session) -> None:
    made, secret = flowers.store.keys.make(flowers.id, "ann")
    place = flowers.store.url.removeprefix("sqlite:///")
    with open(place, "rb") as file:  # noqa: PTH123
        assert secret.encode() not in file.read()
    assert flowers.store.keys.holder(secret) is not None
    flowers.store.delete_project(flowers.id)
    assert flowers.store.keys.holder(secret) is None
    assert made.name == "ann"


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b'{"answers": "x"}', "application/json", 409),
        (b'{"answers": [' + b'{"op": "a"},' * 300 + b'{"op": "b"}]}', "application/json", 409),
        (b'{"answers": "' + b"x" * 300_000 + b'"}', "application/json", 413),
    ],
)
def test_what_is_no_request_is_refused_with_a_sentence(
    web: TestClient, flowers: Session, key: dict[str, str], content: bytes, kind: str, status: int
) -> None:
    reply = web.post(_at(flowers, "/answers"), headers=key | {"content-type": kind}, content=content)
    assert reply.status_code == status and reply.json()["why"]


def test_answers_that_cannot_be_are_refused_one_by_one(
    web: TestClient, flowers: Session, key: dict[str, str]
) -> None:
    body = {"answers": [{"op": "a", "kind": "label", "ask": "none", "item": 10**6, "class": "rose"}, 7]}
    acks = web.post(_at(flowers, "/answers"), headers=key, json=body).json()["answers"]
    assert [ack["status"] for ack in acks] == ["refused", "refused"] and all(ack["why"] for ack in acks)
    assert not flowers.state.standing


def test_the_description_names_the_ways_there_are(web: TestClient, flowers: Session) -> None:
    document = web.get(f"{BASE}/openapi.json").json()
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    there = {
        (route.path.replace(":int", ""), method)
        for route in routes()
        if "{project}" in route.path
        for method in route.methods - {"HEAD"}
    }
    assert described == there
    for path, method in described:
        real = path.replace("{project}", flowers.id).replace("{item}", "0")
        assert web.request(method, real).status_code == 401
    refused = [("GET", "", 404), ("GET", "/nothing", 404), ("POST", f"/projects/{flowers.id}/progress", 404)]
    for method, path, status in [*refused, ("GET", f"/projects/{flowers.id}/questions", 405)]:
        reply = web.request(method, f"{BASE}{path}")
        assert reply.status_code == status and reply.json()["why"]
    assert reply.headers["allow"] == "POST"


def test_the_command_line_makes_lists_and_revokes_keys(
    flowers: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        cli.run([words[0], flowers.id, *words[1:]])
        return capsys.readouterr().out

    secret = run("key", "--person", "robot", "--for", "import").splitlines()[-1]
    made = flowers.store.keys.holder(secret)
    assert made is not None and made.name == "robot" and made.id in run("key")
    run("key", "--revoke", made.id)
    assert flowers.store.keys.holder(secret) is None


def test_a_page_without_a_head_passes_the_server_whole() -> None:
    from workbench.app.serving.frontend import Early

    text = "<!doctype html><title>A page</title><p>Without a head"
    web = TestClient(Early(Starlette(routes=[Route("/", lambda _: HTMLResponse(text))])), base_url=HOST)
    page = web.get("/", headers={"accept": "text/html"})
    assert page.status_code == 200 and page.text == text
