"""Routes of the desk: answers in, acknowledgements and cards out; pictures; grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from workbench.app.desk import cards, finding, instruction_sheet, operations, questions, requests, tokens
from workbench.app.desk.operations import (
    MOST_CARDS,
    MOST_OPERATIONS,
    DeskRequest,
    keep_fitting,
    perform,
    session_of,
)
from workbench.app.desk.requests import ADDRESS, BASE, answered, pictured
from workbench.errors import InputError
from workbench.sessions import Session

MOST_TOGETHER = 25  # operations of one person in a transaction
SURE_TILE = 0.9  # probability of its class below which an item of a grid is marked
MOST_SHOWN = 60  # found items with their faces


def routes() -> list[Any]:
    """Starlette routes for `st.App(routes=...)`."""
    return [
        Route(BASE + "/{project}/sync", _sync, methods=["POST"]),
        Route(BASE + "/{project}/grid", _posted(grid), methods=["POST"]),
        Route(BASE + "/{project}/look", _posted(look), methods=["POST"]),
        Route(BASE + "/{project}/instructions", _posted(instructions), methods=["POST"]),
        Route(BASE + "/{project}/image/{item:int}", _image, methods=["GET"]),
        Route(BASE + f"/{{project}}/{instruction_sheet.PLACE}/{{name}}", _picture_told, methods=["GET"]),
    ]


# --------------------------------------------------------------------------- requests


async def _sync(request: Request) -> Response:
    async def work(holder: tokens.Bearer, body: dict[str, Any]) -> tuple[Any, Any]:
        ops = body.get("ops")
        requests.LIMITS.operations(holder.person, len(ops) if isinstance(ops, list) else 0)
        reply = await run_in_threadpool(
            sync, holder.project, holder.person, body, tokens.for_pictures(holder)
        )
        # whether a fit is due is looked at after the reply has left
        return reply, BackgroundTask(keep_fitting, holder.project, holder.person)

    return await answered(request, work)


def _posted(answer: Callable[[str, str, Mapping[str, Any], str], Any]) -> Callable[[Request], Any]:
    """A route that answers what is posted with one of the functions below."""

    async def handler(request: Request) -> Response:
        async def work(holder: tokens.Bearer, body: dict[str, Any]) -> tuple[Any, Any]:
            pictures = tokens.for_pictures(holder)
            return await run_in_threadpool(answer, holder.project, holder.person, body, pictures), None

        return await answered(request, work)

    return handler


async def _image(request: Request) -> Response:
    text = str(request.query_params.get("side", "0"))
    side = min(int(text), 4096) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return await pictured(request, cards.picture, request.path_params["item"], side)


async def _picture_told(request: Request) -> Response:
    return await pictured(request, cards.picture_told, request.path_params["name"])


# --------------------------------------------------------------------------- the work


def sync(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Take in what a person did, and give what they need next.

    Args:
        project: id of the project.
        person: whose operations these are.
        body: ops (`operations.checked`, in the order in which they were done), want (further cards), have
            (ask ids of the cards in the browser), screen (the one that is shown), turned (whether the browser
            turned to it since its last request), model (number of the browser's cards), mode (see
            `questions.Desk.of`), on (whether checks go on).
        token: for the addresses of pictures.

    Returns:
        acks (one an operation, in their order: op, status, why, for a grid also left_out, for an undo and a
        redo also about: what it took back or put back, see `acts.about`), queue (cards not
        in `have`), gone (of `have`, answered meanwhile), released (of `have`, given back for better ones; the
        card on screen stays, and its answer is taken), first (the question that a reload would show; None
        where none was asked for), numbers, asked, commands; plane for pools of two features, when the
        model is another than the browser's.

    Raises:
        InputError: no such project, or one that cannot be opened.
    """
    session = session_of(project, person)
    desk = questions.Desk.of(session, body)
    lists = operations.shaped(DeskRequest, body)
    have, want = lists.have[: 4 * MOST_CARDS], min(lists.want, MOST_CARDS)

    def is_newer(number: int | None) -> bool:
        """True if there is another model than that of the browser's cards."""
        return number not in (None, body.get("model"))

    screen, turned = str(body.get("screen") or ""), bool(body.get("turned"))
    with session.log.snapshot():
        acks: list[dict[str, Any]] = []
        ops = lists.ops[:MOST_OPERATIONS]

        def exchange() -> tuple[list[dict[str, Any]], questions.Given, int | None]:
            # the model is looked at here, where the project is read once
            last, number = perform(session, ops, check=desk.checking), desk.number
            newer = is_newer(number)
            return last, desk.exchange(have, want, screen, turned=turned, newer=newer), number

        while len(ops) > MOST_TOGETHER:  # others come between
            before, ops = ops[:MOST_TOGETHER], ops[MOST_TOGETHER:]
            acks += session.log.together(partial(perform, session, before, check=desk.checking))
        # a page that only looks again writes nothing, and waits for nobody who does; checks take time
        writes = not desk.checking and (ops or want or is_newer(desk.number))
        last, reply, number = session.log.together(exchange) if writes else exchange()
        picture = f"{ADDRESS}/{project}/image/{{item}}?k={token}"
        asks = {questions.first_of(ask): ask for ask in reply.asks}
        known = set(reply.known)
        queue = [cards.card(desk.sessions, ask, picture) for name, ask in asks.items() if name not in known]
        numbers = desk.numbers(number, reply.checks) | instruction_sheet.numbers(session)
        alone = len(desk.sessions) == 1 and not desk.checking
        plane = cards.plane(session) if alone and (number is None or is_newer(number)) else None
        documents, commands = desk.asked()
    return {
        "plane": plane,
        "acks": [*acks, *last],
        "queue": queue,
        "gone": reply.gone,
        "released": reply.released,
        "first": next(iter(asks), None),
        "numbers": numbers,
        "asked": documents,
        "commands": commands,
    }


def look(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Items to look at: a person's own answers, those with some words, or those like another one.

    Args:
        project: id of the project.
        person: who asks.
        body: kind ("history", "find", "like", or "seen": what the model sees of one item), words, item, n;
            with mode "every" each item has `said`: name of a question -> class, or None for unsure, and can
            be asked about while one of its questions is open.
        token: for the addresses of pictures.

    Returns:
        Of "seen" what `cards.model_input` gives; of the others
        items (newest, or nearest, first; each with face, what stands about it, and whether it can be asked
        about), open (what can be asked about, also beyond those shown: as many as go into one operation),
        askable (how many there are), total.

    Raises:
        InputError: words that find nothing by themselves, or no such item.
    """
    session = session_of(project, person)
    desk = questions.Desk.of(session, body)
    n = min(operations.shaped(DeskRequest, body).n, MOST_SHOWN)
    picture = f"{ADDRESS}/{project}/image/{{item}}?k={token}"
    if body.get("kind") == "seen":
        return cards.model_input(session.pool, _item(session, body))
    if body.get("kind") == "history":
        items = desk.history(n, picture)
        return {"items": items, "open": [], "askable": 0, "total": len(items)}
    if body.get("kind") == "like":
        hits = finding.like(session, _item(session, body), n).tolist()
    else:
        hits = finding.find(session.pool, str(body.get("words", ""))).tolist()
    askable = desk.askable()
    items = [
        desk.stands(item)
        | {"open": item in askable, "face": cards.thumbnail_face(session.pool, item, picture)}
        for item in hits[:n]
    ]
    open_items = [item for item in hits if item in askable]
    at_once = open_items[: operations.MOST_ITEMS]
    return {"items": items, "open": at_once, "askable": len(open_items), "total": len(hits)}


def grid(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Items that the model takes for one class, to be confirmed together.

    Args:
        project: id of the project.
        person: who asks.
        body: class (the one of the most sure items unless given) and n; with mode "every" also question.
        token: for the addresses of pictures.
    """
    desk = questions.Desk.of(session_of(project, person), body)
    session, name, about = desk.grid(body.get("question"), body.get("class"))
    n = min(operations.shaped(DeskRequest, body).n, operations.MOST_IN_GRID)
    asks = session.predictions.grid(name, n)
    picture = f"{ADDRESS}/{project}/image/{{item}}?k={token}"
    items = [
        {
            "ask": ask.id,
            "item": ask.item,
            "id": str(session.pool.items.ids[ask.item]),
            "face": cards.thumbnail_face(session.pool, ask.item, picture),
            "doubtful": bool(ask.guess) and ask.guess[0][1] < SURE_TILE,
        }
        for ask in asks
    ]
    return about | {
        "class": name,
        "items": items,
        "measured": session.predictions.precision(name).words(name),
    }


def instructions(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Instructions that people read before they label, as `instruction_sheet.sheet` gives them.

    Args:
        project: id of the project.
        person: who reads it.
        body: mode, "check" while labels are checked: then without examples.
        token: for the addresses of pictures.
    """
    blind = body.get("mode") == cards.CHECK_MODE
    return instruction_sheet.sheet(session_of(project, person), ADDRESS, token, examples=not blind)


def _item(session: Session, body: Mapping[str, Any]) -> int:
    item = operations.shaped(DeskRequest, body).item
    if not 0 <= item < len(session.pool):
        raise InputError(f"There is no item {item}; the pool has {len(session.pool)}.")
    return item
