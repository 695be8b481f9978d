"""What the desk speaks with: answers in, acknowledgements and cards out; pictures; grids."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.app.desk import cards, tokens
from workbench.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from workbench.sessions import Session

BASE = "/api/desk"
MOST_BYTES = 256_000  # of a request
MOST_OPERATIONS = 200
MOST_CARDS = 16
MOST_IN_GRID = 48
_LARGEST_NOTE = 2000


class _RefusedError(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def routes() -> list[Any]:
    """Starlette routes for `st.App(routes=...)`."""
    from starlette.routing import Route

    return [
        Route(BASE + "/{project}/sync", _sync, methods=["POST"]),
        Route(BASE + "/{project}/grid", _grid, methods=["POST"]),
        Route(BASE + "/{project}/image/{item:int}", _image, methods=["GET"]),
    ]


# --------------------------------------------------------------------------- requests


async def _sync(request: Request) -> Response:
    from starlette.background import BackgroundTask

    async def work(holder: tokens.Bearer) -> tuple[Any, Any]:
        body = await _body(request)
        reply = await _threaded(sync, holder.project, holder.person, body, request.headers["x-desk-token"])
        # whether a fit is due is looked at after the reply has left
        return reply, BackgroundTask(_threaded, _keep_fitting, holder.project)

    return await _answered(request, work)


async def _grid(request: Request) -> Response:
    async def work(holder: tokens.Bearer) -> tuple[Any, Any]:
        body = await _body(request)
        token = request.headers["x-desk-token"]
        return await _threaded(grid, holder.project, holder.person, body, token), None

    return await _answered(request, work)


async def _image(request: Request) -> Response:
    from starlette.responses import Response as Plain

    try:
        holder = _allowed(request, str(request.query_params.get("k", "")))
        octets, kind = await _threaded(picture, holder.project, request.path_params["item"])
    except _RefusedError as refused:
        return _json({"why": refused.why}, refused.status)
    except InputError as error:
        return _json({"why": str(error)}, 404)
    return Plain(octets, media_type=kind, headers={"cache-control": "private, max-age=3600"})


async def _answered(request: Request, work: Any) -> Response:
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise _RefusedError(415, "The desk takes JSON only.")
        reply, background = await work(_allowed(request, request.headers.get("x-desk-token", "")))
        return _json(reply, 200, background)
    except _RefusedError as refused:
        return _json({"why": refused.why}, refused.status)
    except InputError as error:
        return _json({"why": str(error)}, 409)


async def _threaded(work: Any, *given: Any) -> Any:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(work, *given)


def _json(document: Any, status: int, background: Any = None) -> Response:
    from starlette.responses import Response as Plain

    octets = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    headers = {"cache-control": "no-store"}
    return Plain(octets, status, headers, media_type="application/json", background=background)


async def _body(request: Request) -> dict[str, Any]:
    octets = b""
    async for part in request.stream():
        octets += part
        if len(octets) > MOST_BYTES:
            raise _RefusedError(413, "That is more than the desk sends at once.")
    try:
        found = json.loads(octets)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _RefusedError(400, "The desk takes a JSON object.")
    return found


def _allowed(request: Request, token: str) -> tokens.Bearer:
    """Who asks: this server's own page, with a token for this project."""
    from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

    host = request.headers.get("host")
    if not is_host_allowed(host):
        raise _RefusedError(403, "This server is not known by that name.")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise _RefusedError(403, "Only this server's own pages may use the desk.")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise _RefusedError(403, "Only this server's own pages may use the desk.")
    holder = tokens.bearer(token)
    if holder is None or holder.project != request.path_params["project"]:
        raise _RefusedError(401, "This page must be opened anew.")
    return holder


# --------------------------------------------------------------------------- the work


def sync(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Take in what a person did, and give what they need next.

    Args:
        project: id of the project.
        person: whose operations these are.
        body: ops (in the order in which they were done), want (further cards), have (ask ids of the
            cards in the browser), screen (the one that is shown), model (round of the browser's cards).
        token: for the addresses of pictures.

    Returns:
        acks, queue (cards not in `have`), gone (of `have`, answered meanwhile), released (of `have`, given
        back for better ones; the card on screen stays, and its answer is taken), numbers, classes,
        commands; plane for pools of two features, when the model is another than the browser's.

    Raises:
        InputError: no such project, or one that cannot be opened.
    """
    session = _session(project, person)
    acks = _perform(session, _listed(body.get("ops"), MOST_OPERATIONS))
    have = [str(ask) for ask in _listed(body.get("have"), 4 * MOST_CARDS)]
    want = min(_whole(body.get("want")), MOST_CARDS)
    with session.snapshot():
        model = session.model
        number = None if model is None else model.number
        gone, released = _closed(session, have), []
        if number is not None and body.get("model") != number:
            # choices of an older model: all but the one on screen are given back and chosen anew
            old = [ask for ask in have if ask not in gone and ask != body.get("screen")]
            released = session.release(old) if old else []
            want += len(released)
        known = [ask for ask in have if ask not in gone and ask not in released]
        asks = session.ask(max(1, min(len(known) + want, 2 * MOST_CARDS))) if known or want else []
        picture = f"{BASE}/{project}/image/{{item}}?k={token}"
        queue = [cards.card(session, ask, picture) for ask in asks if ask.id not in known]
        state = session.state
        numbers = {
            "labelled": len(state.codes),
            "total": int(session.pool.trainable.size),
            "left": session.n_left,
            "skipped": len(state.skipped),
            "unsure": len(state.unsure),
            "undoable": person in state.undoable,
            "redoable": person in state.redoable,
            "model": number,
            "learned": 0 if model is None else model.n_labelled,
        }
        drawn = cards.plane(session) if number is None or body.get("model") != number else None
    classes, commands = class_keys(session)
    return {
        "plane": drawn,
        "acks": acks,
        "queue": queue,
        "gone": gone,
        "released": released,
        "numbers": numbers,
        "classes": classes,
        "commands": commands,
    }


def class_keys(session: Session) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The classes with their keys, and the commands' keys, as the component takes them."""
    from workbench.app.keys import keys_for

    keys = keys_for(session.classes)
    letters = keys.classes or ("",) * len(session.classes)
    guidance = getattr(session, "guidance", {})
    classes = [
        {"name": name, "key": key, "help": str(guidance.get(name, ""))}
        for name, key in zip(session.classes, letters, strict=True)
    ]
    return classes, dict(keys.commands)


def grid(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Items that the model takes for one class, to be confirmed together.

    Args:
        project: id of the project.
        person: who asks.
        body: class (the one of the most sure items unless given) and n.
        token: for the addresses of pictures.
    """
    session = _session(project, person)
    name = str(body.get("class") or "") or _surest_class(session)
    asks = session.ask_grid(name, min(_whole(body.get("n")) or 24, MOST_IN_GRID))
    picture = f"{BASE}/{project}/image/{{item}}?k={token}"
    items = [
        {
            "ask": ask.id,
            "item": ask.item,
            "id": str(session.pool.items.ids[ask.item]),
            "face": cards.face(session.pool, ask.item, picture),
        }
        for ask in asks
    ]
    return {"class": name, "items": items}


def picture(project: str, item: int) -> tuple[bytes, str]:
    """A picture's bytes and media type.

    Raises:
        InputError: there is no such picture.
    """
    from workbench.app import current

    pool = current.opened(project).pool
    shown = pool.items.show(item) if 0 <= item < len(pool) else None
    if shown is None or shown.image is None:
        raise InputError(f"There is no picture of item {item}.")
    form = "PNG" if shown.image.size <= 200_000 else "JPEG"
    return cards.encoded(shown.image, form), f"image/{form.lower()}"


def _session(project: str, person: str) -> Session:
    from workbench.app import current

    return current.opened(project).as_annotator(person)


def _keep_fitting(project: str) -> None:
    from workbench.app import current

    current.keep_fitting(current.opened(project))


def _perform(session: Session, operations: Sequence[Any]) -> list[dict[str, Any]]:
    """Acknowledgements of operations, in their order; runs of them go into one transaction each."""
    acks: list[dict[str, Any]] = []
    run: list[Any] = []

    def finish() -> None:
        if run:
            acks.extend(
                {"op": done.operation, "status": done.status, "why": done.why}
                for done in session.tell_many(run)
            )
            run.clear()

    for given in operations:
        if not isinstance(given, dict) or not isinstance(given.get("op"), str):
            continue
        if given.get("kind") == "requeue":
            finish()
            session.ask_again()
            acks.append({"op": given["op"], "status": "saved", "why": ""})
            continue
        if given.get("kind") in ("label", "skip", "unsure") and not given.get("ask"):
            # an item that was taken back and answered before its new question arrived
            finish()
            given = given | {"ask": _question_of(session, _whole(given.get("item")))}
        run.append(_operation(given))
    finish()
    return acks


def _operation(given: Mapping[str, Any]) -> Any:
    from workbench.sessions.operations import Operation

    kind = str(given.get("kind", ""))
    more: dict[str, Any] = {"source": "grid"} if kind == "grid" else {"source": "desk"}
    if isinstance(given.get("ms"), int | float):
        more["seconds"] = round(min(max(float(given["ms"]), 0.0), 86_400_000.0) / 1000.0, 3)
    return Operation(
        id=given["op"],
        kind="confirm" if kind == "grid" else kind,
        ask=str(given.get("ask") or ""),
        item=_whole(given.get("item")),
        label=str(given.get("class", "")),
        text=str(given.get("text", ""))[:_LARGEST_NOTE],
        asks=tuple(str(ask) for ask in _listed(given.get("asks"), MOST_IN_GRID)),
        rejected=tuple(str(ask) for ask in _listed(given.get("rejected"), MOST_IN_GRID)),
        takes=str(given.get("target") or ""),
        more=more,
    )


def _question_of(session: Session, item: int) -> str:
    waiting = [ask.id for ask in session.ask(MOST_CARDS) if ask.item == item]
    return waiting[0] if waiting else ""


def _closed(session: Session, have: Sequence[str]) -> list[str]:
    """Those questions of the browser that need no answer any more."""
    state = session.state
    asks = state.asks
    return [ask for ask in have if ask not in asks or asks[ask].answered or asks[ask].item in state.answered]


def _surest_class(session: Session) -> str:
    """The class of which the model is sure of the most open items."""
    import numpy as np

    from workbench.app.seeing import open_of

    model = session.model
    if model is None:
        raise InputError("There is no model yet: label items of two classes first.")
    p = model.probabilities[open_of(session.pool, session.state)]
    if not len(p):
        raise InputError("Nothing is left to ask.")
    surest = np.bincount(p.argmax(axis=1), weights=p.max(axis=1) ** 4, minlength=p.shape[1])
    return model.classes[int(surest.argmax())]


def _listed(value: Any, most: int) -> list[Any]:
    return value[:most] if isinstance(value, list) else []


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
