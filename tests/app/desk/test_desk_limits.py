"""One who sends too much waits, and is told how long; a slow project leaves the others their threads."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.app.desks import desk_sync, operation
from workbench.app.desk import requests, routes, tokens
from workbench.app.desk.requests import Limits, TooMuchError
from workbench.sessions import Session


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_person_waits_as_long_as_is_said_and_others_do_not() -> None:
    clock = Clock()
    found = Limits(clock)
    for _ in range(4):
        found.operations("ann", 100)
    with pytest.raises(TooMuchError, match="60 operations a second of one person") as told:
        found.operations("ann", 100)
    assert told.value.seconds == 2
    found.operations("bob", 100)
    found.requests("ann")
    clock.now += told.value.seconds
    found.operations("ann", 100)
    with pytest.raises(TooMuchError):
        found.operations("ann", 100)
    clock.now += 3600.0
    found.operations(
        "ann", 10_000
    )  # more than ever are there at once: it waits for all of these, not for ever


def test_a_project_works_on_a_few_requests_at_a_time_in_their_order() -> None:
    found, order = Limits(), []

    async def hall() -> None:
        go = asyncio.Event()

        async def one(n: int, project: str) -> None:
            async with found.turn(project, f"person {n}"):
                order.append((project, n))
                await go.wait()

        slow = [asyncio.create_task(one(n, "slow")) for n in range(requests.WORKING + 3)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert order == [("slow", n) for n in range(requests.WORKING)]
        other = asyncio.create_task(one(0, "other"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert order[-1] == ("other", 0)
        slow[requests.WORKING + 1].cancel()  # a tab that closed
        go.set()
        await asyncio.gather(*slow, other, return_exceptions=True)

    asyncio.run(hall())
    there = [n for project, n in order if project == "slow"]
    assert there == [n for n in range(requests.WORKING + 3) if n != requests.WORKING + 1]
    assert not found._turns and not found._there and not found._theirs


def test_one_person_and_one_project_have_so_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Limits()
    monkeypatch.setattr(requests, "WAITING", 2)

    async def hall() -> None:
        go = asyncio.Event()

        async def one(person: str) -> None:
            async with found.turn("p", person):
                await go.wait()

        tasks = [asyncio.create_task(one("ann")) for _ in range(requests.OF_ONE)]
        await asyncio.sleep(0)
        with pytest.raises(TooMuchError, match="of yours"):
            await one("ann")
        tasks += [asyncio.create_task(one(f"{n}")) for n in range(requests.WORKING - requests.OF_ONE + 2)]
        await asyncio.sleep(0)
        with pytest.raises(TooMuchError, match="too many people"):
            await one("last")
        go.set()
        await asyncio.gather(*tasks)

    asyncio.run(hall())


def test_the_desk_is_told_when_to_come_again_and_nothing_is_lost(
    flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(requests, "LIMITS", Limits(clock))
    client = TestClient(Starlette(routes=routes()), base_url="http://localhost:8501")
    headers = {"x-desk-token": tokens.issue(flowers.id, "ann"), "content-type": "application/json"}
    whose = {"person": "ann", "project": flowers.id}
    card = desk_sync(flowers)["queue"][0]

    def sent(ops: list[Any]) -> Any:
        body = {"ops": ops, "want": 0, "have": []}
        return client.post(f"/api/desk/{flowers.id}/sync", json=body, headers=headers)

    notes = [operation("note", card, text=f"n{n}") | whose for n in range(100)]
    for one in notes:
        one.pop("ask", None)
    first = sent(notes)
    assert [a["status"] for a in first.json()["acks"]] == ["saved"] * 100
    assert [a["op"] for a in first.json()["acks"]] == [n["op"] for n in notes]
    for _ in range(3):  # sent again they are told as they were
        assert sent(notes).status_code == 200
    label = operation("label", card, **{"class": "setosa"}) | whose
    told = sent([label])
    assert told.status_code == 429 and told.headers["retry-after"] == "1" and told.json()["wait"] == 1
    assert "never" not in told.json() and not flowers.state.labels
    clock.now += 1.0
    assert sent([label]).json()["acks"][0]["status"] == "saved" and len(flowers.state.labels) == 1
    assert len(flowers.state.notes[card["item"]]) == 100


def test_a_body_that_never_comes_takes_no_turn_and_ends(
    flowers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "LIMITS", found := Limits())
    app, replies = Starlette(routes=routes()), []

    def scope(person: str) -> dict[str, Any]:
        headers = {"x-desk-token": tokens.issue(flowers.id, person), "content-type": "application/json"}
        given = [(name.encode(), value.encode()) for name, value in headers.items()]
        given += [(b"host", b"localhost:8501"), (b"content-length", b"100")]
        path = f"/api/desk/{flowers.id}/sync"
        return {"type": "http", "method": "POST", "path": path, "headers": given, "query_string": b""}

    async def send(message: Any) -> None:
        replies.append(message.get("status"))

    async def hall() -> None:
        never = asyncio.Event()
        slow = [asyncio.create_task(app(scope(f"{n}"), never.wait, send)) for n in range(requests.WORKING)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not found._turns and not replies
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        monkeypatch.setattr(requests, "SECONDS", 0.0)
        await app(scope("ann"), never.wait, send)

    asyncio.run(hall())
    assert replies[0] == 408
