"""Shared parts of the tests of the desk: requests as its browser makes them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from workbench.app.access import current
from workbench.app.desk.routes import sync
from workbench.sessions import ArrayOracle, Session

_NUMBERS = count()


def desk_sync(session: Session, *ops: Any, person: str = "ann", **body: Any) -> dict[str, Any]:
    whose = {"person": person, "project": session.id}
    sent = [whose | op if isinstance(op, dict) else op for op in ops]
    given = {"ops": sent, "want": 4, "have": [], "screen": None, "model": None} | body
    return sync(session.id, person, given, "token")


def operation(kind: str, card: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    about = {} if card is None else {"ask": card["ask"], "item": card["item"]}
    if kind in ("label", "skip", "unsure"):
        about["ms"] = 900
    if kind == "grid":
        about["rejected"] = []
    return {"op": f"op-{next(_NUMBERS)}", "kind": kind, **about, **more}


def answer_next(session: Session, oracle: Callable[[int], str]) -> None:
    """Answer what the desk shows first, as a person would."""
    card = desk_sync(session)["queue"][0]
    reply = desk_sync(session, operation("label", card, **{"class": oracle(card["item"])}))
    assert [ack["status"] for ack in reply["acks"]] == ["saved"], reply["acks"]


def fitted(session: Session, n: int = 8) -> Session:
    oracle = ArrayOracle(session.pool)
    for _ in range(n):
        answer_next(session, oracle)
    session.refit()
    return session


def table(tmp_path: Path, classes: list[str], rows: int = 60) -> Session:
    path = tmp_path / "own.csv"
    path.write_text("a\n" + "".join(f"{i}.5\n" for i in range(rows)))
    session = Session.create(str(path), classes=classes, annotator="ann")
    current.keep(session)
    return session


def standing(session: Session) -> list[str]:
    """The questions a reload would show, in their order."""
    return [card["ask"] for card in desk_sync(session, want=16)["queue"]]
