"""What the desk speaks with: answers in, acknowledgements and cards out; pictures; grids."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from workbench.app import acts, host_names, login
from workbench.app.desk import (
    cards,
    checking,
    every,
    finding,
    limits,
    operations,
    preferences,
    telling,
    tokens,
)
from workbench.errors import InputError, StorageError
from workbench.reading import cut

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from workbench.sessions import Ask, Session
    from workbench.sessions.asking_items import ItemAsk
    from workbench.sessions.model import FittedModel
    from workbench.sessions.operations import Acknowledgement, Operation

BASE = "/api/desk"
_log = logging.getLogger(__name__)
MOST_BYTES = 256_000  # of a request
MOST_OPERATIONS = 200
MOST_TOGETHER = 25  # operations of one person in a transaction
MOST_CARDS = 16
MOST_SHOWN = 60  # found items with their faces


class RefusedError(Exception):
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
        Route(BASE + "/{project}/grid", _posted(grid), methods=["POST"]),
        Route(BASE + "/{project}/look", _posted(look), methods=["POST"]),
        Route(BASE + "/{project}/keys", _posted(keys), methods=["POST"]),
        Route(BASE + "/{project}/instructions", _posted(instructions), methods=["POST"]),
        Route(BASE + "/{project}/image/{item:int}", _image, methods=["GET"]),
        Route(BASE + f"/{{project}}/{telling.PLACE}/{{name}}", _picture_told, methods=["GET"]),
    ]


# --------------------------------------------------------------------------- requests


async def _sync(request: Request) -> Response:
    from starlette.background import BackgroundTask

    async def work(holder: tokens.Bearer) -> tuple[Any, Any]:
        body = await json_body(request) | {"guest": holder.guest}
        ops = body.get("ops")
        limits.LIMITS.operations(holder.person, len(ops) if isinstance(ops, list) else 0)
        reply = await _threaded(sync, holder.project, holder.person, body, tokens.for_pictures(holder))
        # whether a fit is due is looked at after the reply has left
        return reply, BackgroundTask(_threaded, keep_fitting, holder.project, holder.person)

    return await _answered(request, work)


def _posted(answer: Callable[[str, str, Mapping[str, Any], str], Any]) -> Callable[[Request], Any]:
    """A route that answers what is posted with one of the functions below."""

    async def handler(request: Request) -> Response:
        async def work(holder: tokens.Bearer) -> tuple[Any, Any]:
            body = await json_body(request)
            pictures = tokens.for_pictures(holder)
            return await _threaded(answer, holder.project, holder.person, body, pictures), None

        return await _answered(request, work)

    return handler


async def _image(request: Request) -> Response:
    given = str(request.query_params.get("side", "0"))
    side = min(int(given), 4096) if given.isascii() and given.isdigit() and len(given) < 6 else 0
    return await _pictured(request, picture, request.path_params["item"], side)


async def _picture_told(request: Request) -> Response:
    return await _pictured(request, picture_told, request.path_params["name"])


async def _pictured(request: Request, work: Callable[..., tuple[bytes, str]], *given: Any) -> Response:
    """A picture, for whoever holds a token of this project's pictures and may open it."""
    from starlette.responses import Response as Plain

    try:
        holder = _allowed(request, str(request.query_params.get("k", "")), "pictures")
        await _threaded(_admitted, dict(request.cookies), holder)
        octets, kind = await _threaded(work, holder.project, *given)
    except RefusedError as refused:
        return json_reply({"why": refused.why}, refused.status)
    except InputError as error:
        return json_reply({"why": str(error)}, 404)
    headers = {"cache-control": "private, max-age=3600", "x-content-type-options": "nosniff"}
    return Plain(octets, media_type=kind, headers=headers)


async def _answered(request: Request, work: Any) -> Response:
    from starlette.requests import ClientDisconnect

    try:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RefusedError(415, "The desk takes JSON only.")
        holder = _allowed(request, request.headers.get("x-desk-token", ""))
        limits.LIMITS.requests(holder.person)
        async with limits.LIMITS.turn(holder.project, holder.person):
            guest = await _threaded(_admitted, dict(request.cookies), holder)
            holder = replace(holder, guest=guest)
            reply, background = await work(holder)
            return json_reply(reply, 200, background)
    except limits.TooMuchError as error:
        # the browser keeps what it has, says so and comes again
        return json_reply({"why": str(error), "wait": error.seconds}, 429)
    except RefusedError as refused:
        # sent again it would be refused again, unlike what a person can do something about
        return json_reply({"why": refused.why, "never": refused.status in (400, 413)}, refused.status)
    except StorageError as error:
        # the browser keeps what it has and tries again
        return json_reply({"why": f"the server cannot store answers ({error})"}, 503)
    except InputError as error:
        return json_reply({"why": str(error)}, 409)
    except ClientDisconnect:
        # a tab that was closed while it sent: nobody reads this, and its answers wait in the browser
        return json_reply({"why": "The request ended before all of it had come."}, 400)
    except (
        Exception
    ) as error:  # a full disk, a database that is gone: the browser keeps what it has and tries again
        _log.exception("The desk could not answer")
        reason = cut(" ".join(str(getattr(error, "orig", None) or error).split()))
        return json_reply({"why": f"the server cannot store answers ({reason})"}, 503)


async def _threaded(work: Any, *given: Any) -> Any:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(work, *given)


def json_reply(document: Any, status: int = 200, background: Any = None) -> Response:
    """A document as the reply to a request; of 429 with the time to wait in its header.

    Args:
        document: JSON.
        status: of HTTP.
        background: done after the reply has left.
    """
    from starlette.responses import Response as Plain

    octets = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    headers = {"cache-control": "no-store"}
    if status == 429:
        headers["retry-after"] = str(document["wait"])
    return Plain(octets, status, headers, media_type="application/json", background=background)


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, within `MOST_BYTES`.

    Raises:
        RefusedError: it is none, or larger.
    """
    octets = b""
    async for part in request.stream():
        octets += part
        if len(octets) > MOST_BYTES:
            raise RefusedError(413, "That is more than the desk sends at once.")
    try:
        # a number of thousands of digits is no integer here, and refused where it stands
        found = json.loads(octets, parse_int=lambda digits: int(digits) if len(digits) < 40 else inf)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusedError(400, "The desk takes a JSON object.")
    return found


def _allowed(request: Request, token: str, use: str = "desk") -> tokens.Bearer:
    """Who asks: this server's own page, with a token for this project."""
    import streamlit as st

    host = request.headers.get("host")
    names = st.get_option("server.allowedHosts")
    if names and not host_names.is_known(host, names):
        raise RefusedError(403, "This server is not known by that name.")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise RefusedError(403, "Only this server's own pages may use the desk.")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise RefusedError(403, "Only this server's own pages may use the desk.")
    holder = tokens.bearer(token, use=use)
    if holder is None or holder.project != request.path_params["project"]:
        raise RefusedError(401, "This page must be opened anew.")
    return holder


def _admitted(cookies: Mapping[str, str], holder: tokens.Bearer) -> bool:
    """Where there is a log-in: whoever sends this is who the token was made for, and may open the project.

    Returns:
        Whether it is a guest.
    """
    if not login.required():
        return False
    person = login.of_cookies(cookies)
    if person is None:
        raise RefusedError(403, "You are not logged in any more: open this page anew.")
    if person.name != holder.person:
        raise RefusedError(403, f"This page is {holder.person}'s, and you are {person.name}: open it anew.")
    try:
        login.admit(holder.project, person)
    except InputError as error:
        raise RefusedError(403, str(error)) from error
    return person.guest is not None


# --------------------------------------------------------------------------- the work


def sync(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Take in what a person did, and give what they need next.

    Args:
        project: id of the project.
        person: whose operations these are.
        body: ops (`operations.checked`, in the order in which they were done), want (further cards), have
            (ask ids of the cards in the browser), screen (the one that is shown), turned (whether the browser
            turned to it since its last request), model (round of the browser's cards).
        token: for the addresses of pictures.

    Returns:
        acks (one an operation, in their order: op, status, why, for a grid also left_out, for an undo and a
        redo also about: what it took back or put back, see `acts.about`), queue (cards not
        in `have`), gone (of `have`, answered meanwhile), released (of `have`, given back for better ones; the
        card on screen stays, and its answer is taken), first (the question that a reload would show; None
        where none was asked for), numbers, classes, commands; plane for pools of two features, when the
        model is another than the browser's.

    Raises:
        InputError: no such project, or one that cannot be opened.
        RefusedError: a guest would check labels, which is for people of the project.
    """
    session = session_of(project, person)
    if body.get("mode") == checking.MODE:
        if _is_guest(body):
            raise RefusedError(403, operations.NOT_FOR_GUESTS)
        return _sync_checks(session, person, body, token)
    if body.get("mode") == every.MODE and len(session.questions) > 1:
        return _sync_every(session, person, body, token)
    have = operations.ids(body, "have", most=4 * MOST_CARDS)
    want = operations.field(body, "want", most=MOST_CARDS, default=0)
    given = body.get("ops", [])
    if not isinstance(given, list):
        raise InputError("The field ops must be a list of operations.")
    with session.snapshot():
        acks: list[dict[str, Any]] = []
        given = given[:MOST_OPERATIONS]

        def exchange() -> _Exchanged:
            return _exchanged(session, body, given, have, want)

        while len(given) > MOST_TOGETHER:  # others come between
            before, given = given[:MOST_TOGETHER], given[MOST_TOGETHER:]
            acks += session.together(partial(perform, session, before, guest=_is_guest(body)))
        # a page that only looks again writes nothing, and waits for nobody who does
        writes = given or want or _is_newer(session.model, body.get("model"))
        done = session.together(exchange) if writes else exchange()
        model, number, asks, known = done.model, done.number, done.asks, done.known
        acks += done.acks
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
            # the last act of theirs wherever they did it, so that a tab knows whether it was done there
            "last": acts.operation(state.undoable.get(person)),
            "put": acts.operation(state.redoable.get(person)),
            "model": number,
            "learned": 0 if model is None else model.n_labelled,
            "fitting": _fitting(session),
            **telling.numbers(session),
        }
        drawn = cards.plane(session) if number is None or body.get("model") != number else None
        classes, commands = class_keys(session, person)
    return {
        "plane": drawn,
        "acks": acks,
        "queue": queue,
        "gone": done.gone,
        "released": done.released,
        "first": asks[0].id if asks else None,
        "numbers": numbers,
        "classes": classes,
        "commands": commands,
    }


def _is_newer(present: FittedModel | None, known: object) -> bool:
    return present is not None and known != present.number


@dataclass(frozen=True)
class _Exchanged:
    """What one transaction of the desk's did: answers taken, questions given back and asked."""

    acks: list[dict[str, Any]]
    model: FittedModel | None
    gone: list[str]
    released: list[str]
    known: list[str]
    asks: list[Ask]

    @property
    def number(self) -> int | None:
        return None if self.model is None else self.model.number


def _exchanged(
    session: Session, body: Mapping[str, Any], given: Sequence[Any], have: list[str], want: int
) -> _Exchanged:
    acks = perform(session, given, guest=_is_guest(body))
    model = session.model
    number = None if model is None else model.number
    gone, released = _closed(session, have), []
    screen = str(body.get("screen") or "")
    if screen in have and screen not in gone:
        # given back, or put behind others, while the browser turned to it: a reload shows it all the same
        session.reclaim([screen], first=bool(body.get("turned")))
    if number is not None and body.get("model") != number:
        # choices of an older model: all but the one on screen are given back and chosen anew
        old = [ask for ask in have if ask not in gone and ask != screen]
        released = session.release(old) if old else []
        want += len(released)
        if not have and (left := _left(session, number)):
            session.release(left)
    asks_now = session.state.asks
    # questions given back because the person wanted others first
    others = [
        ask
        for ask in have
        if ask not in gone and ask not in released and ask != screen and asks_now[ask].released
    ]
    released, want = released + others, want + len(others)
    known = [ask for ask in have if ask not in gone and ask not in released]
    asks = session.ask(max(1, min(len(known) + want, 2 * MOST_CARDS))) if known or want else []
    return _Exchanged(acks, model, gone, released, known, asks)


def _sync_checks(session: Session, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The same of the desk in check mode: cards in the frozen order, and what the checks say."""
    have = operations.ids(body, "have", most=4 * MOST_CARDS)
    want = operations.field(body, "want", most=MOST_CARDS, default=0)
    given = body.get("ops", [])
    if not isinstance(given, list):
        raise InputError("The field ops must be a list of operations.")
    with session.snapshot():
        acks = perform(session, given[:MOST_OPERATIONS], check=True, guest=_is_guest(body))
        now = session.finish_state()
        gone = _closed(session, have)
        known = [ask for ask in have if ask not in gone]
        n = min(len(known) + want, 2 * MOST_CARDS)
        asks = checking.next_cards(session, now, n, bool(body.get("on")))
        picture = f"{BASE}/{session.id}/image/{{item}}?k={token}"
        classes, commands = class_keys(session, person)
        return {
            "plane": None,
            "acks": acks,
            "queue": [cards.card(session, ask, picture) for ask in asks if ask.id not in known],
            "gone": gone,
            "released": [],
            "first": asks[0].id if asks else None,
            "numbers": checking.numbers(session, person, now) | telling.numbers(session),
            "classes": classes,
            "commands": commands,
        }


def _sync_every(session: Session, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The same of the desk that asks all questions about an item: a card is an item with those open."""
    have = operations.ids(body, "have", most=4 * MOST_CARDS)
    want = operations.field(body, "want", most=MOST_CARDS, default=0)
    given = body.get("ops", [])
    if not isinstance(given, list):
        raise InputError("The field ops must be a list of operations.")
    screen = str(body.get("screen") or "")
    sessions = session.asked()
    number = every.model_number(sessions)
    newer = number is not None and body.get("model") != number

    def exchange() -> tuple[list[dict[str, Any]], list[ItemAsk]]:
        acks = perform(session, given[:MOST_OPERATIONS], guest=_is_guest(body))
        if newer:
            every.release_old(sessions, screen)
        n = min(len(have) + want, 2 * MOST_CARDS)
        return acks, session.ask_items(n) if n else []

    acks, asks = session.together(exchange) if given or want or newer else exchange()
    now = [every.first_of(ask) for ask in asks]
    named = {one.question_name: one for one in sessions}
    picture = f"{BASE}/{session.id}/image/{{item}}?k={token}"
    known = set(have)
    asked, commands = every.asked(session, person)
    return {
        "plane": None,
        "acks": acks,
        "queue": [
            every.card(named, ask, picture) for ask, id_ in zip(asks, now, strict=True) if id_ not in known
        ],
        "gone": [ask for ask in have if ask not in now],
        "released": [],
        "first": now[0] if now else None,
        "numbers": every.numbers(session, sessions, person, any(_fitting(one) for one in sessions))
        | telling.numbers(session),
        "asked": asked,
        "classes": [],
        "commands": commands,
    }


def class_keys(session: Session, person: str = "") -> tuple[list[dict[str, str]], dict[str, str]]:
    """The classes with their keys, and the commands' keys, as the component takes them.

    Args:
        session: of the project.
        person: whose own keys the commands have.
    """
    from workbench.app.keys import keys_for

    state = session.state
    about = {
        state.class_names[key]: said for key, said in state.class_about.items() if key in state.class_names
    }
    names = state.shown_classes
    shortcuts = {name: said["shortcut"] for name, said in about.items() if "shortcut" in said}
    found = keys_for(names, preferences.own_keys(person) if person else None, shortcuts)
    letters = found.classes or ("",) * len(names)
    classes = [
        {
            "name": name,
            "key": key,
            "help": about.get(name, {}).get("guidance", ""),
            "colour": about.get(name, {}).get("colour", ""),
        }
        for name, key in zip(names, letters, strict=True)
    ]
    return classes, dict(found.commands)


def keys(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Give a person's commands other keys; with nothing in it, back to how they come.

    Args:
        project: whose desk they sit at.
        person: whose keys.
        body: keys (name of a command -> key).
        token: not used.

    Raises:
        InputError: a key that is none, or one key for two commands; nothing is changed then.
    """
    given = body.get("keys")
    preferences.keep_keys(person, given if isinstance(given, dict) else {})
    classes, commands = class_keys(session_of(project, person), person)
    return {"classes": classes, "commands": commands}


def look(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Items to look at: a person's own answers, those with some words, or those like another one.

    Args:
        project: id of the project.
        person: who asks.
        body: kind ("history", "find", "like", or "seen": what the model sees of one item), words, item, n;
            of a history with mode "every" each item has `said`: name of a question -> class, or None.
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
    state = session.state
    n = operations.field(body, "n", most=MOST_SHOWN, default=24)
    if body.get("kind") == "seen":
        return cards.model_input(session.pool, _item(session, body))
    if body.get("kind") == "history" and body.get("mode") == every.MODE and len(session.questions) > 1:
        return every.history(session, n, f"{BASE}/{project}/image/{{item}}?k={token}")
    if body.get("kind") == "history":
        found = _own_answers(session, person, n)
        askable: set[int] = set()
    else:
        if body.get("kind") == "like":
            found = finding.like(session, _item(session, body), n).tolist()
        else:
            found = finding.find(session.pool, str(body.get("words", ""))).tolist()
        askable = set(session.pool.trainable.tolist()) - state.answered
    picture = f"{BASE}/{project}/image/{{item}}?k={token}"
    items = []
    for item in found[:n]:
        # one's own answers stand on the stage, found items among others
        drawn = cards.face if body.get("kind") == "history" else cards.thumbnail_face
        face = drawn(session.pool, item, picture)
        stands = acts.stands(state, item)
        vote = state.votes.get(item, {}).get(person)
        if vote:
            stands["class"] = state.class_names.get(state.resolve(vote.key), "")
        about = {"id": str(session.pool.items.ids[item]), "face": face, "open": item in askable}
        items.append(stands | about)
    wanted = [item for item in found if item in askable]
    at_once = wanted[: operations.MOST_ITEMS]
    return {"items": items, "open": at_once, "askable": len(wanted), "total": len(found)}


def _own_answers(session: Session, person: str, n: int) -> list[int]:
    """The items a person decided about last, newest first, that still have a decision."""
    answered = session.state.answered
    found: dict[int, None] = {}
    for event in reversed(session.events):
        if event.annotator != person or event.item is None or event.kind not in ("label", "skip", "unsure"):
            continue
        if event.item in answered:
            found.setdefault(event.item)
        if len(found) == n:
            break
    return list(found)


def grid(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Items that the model takes for one class, to be confirmed together.

    Args:
        project: id of the project.
        person: who asks.
        body: class (the one of the most sure items unless given) and n; with mode "every" also question.
        token: for the addresses of pictures.
    """
    session = session_of(project, person)
    if body.get("mode") == every.MODE and len(session.questions) > 1:
        of, name, about = every.grid(session.asked(), body.get("question"), body.get("class"))
        return about | _grid(of, name, body, token, project)
    return _grid(session, str(body.get("class") or "") or session.grid_class(), body, token, project)


def _grid(session: Session, name: str, body: Mapping[str, Any], token: str, project: str) -> dict[str, Any]:
    asks = session.ask_grid(name, operations.field(body, "n", most=operations.MOST_IN_GRID, default=24))
    picture = f"{BASE}/{project}/image/{{item}}?k={token}"
    items = [
        {
            "ask": ask.id,
            "item": ask.item,
            "id": str(session.pool.items.ids[ask.item]),
            "face": cards.thumbnail_face(session.pool, ask.item, picture),
        }
        for ask in asks
    ]
    return {"class": name, "items": items}


def picture(project: str, item: int, side: int = 0) -> tuple[bytes, str]:
    """A picture's bytes and media type.

    Args:
        project: id of the project.
        item: index into the pool.
        side: pixels of its longer side, at most; 0 for all.

    Raises:
        InputError: there is no such picture.
    """
    from workbench.app import current
    from workbench.pools.photos import PhotoItems

    pool = current.opened(project).pool
    inside = 0 <= item < len(pool)
    if inside and side and isinstance(pool.items, PhotoItems) and pool.items.photos.longest(item) > side:
        return cards.encoded(pool.items.photos.small(side)[item], "JPEG"), "image/jpeg"
    shown = pool.items.show(item) if inside else None
    if shown is None or shown.image is None:
        raise InputError(f"There is no picture of item {item}.")
    form = "PNG" if shown.image.size <= 200_000 else "JPEG"
    return cards.encoded(shown.image, form, side), f"image/{form.lower()}"


def picture_told(project: str, name: str) -> tuple[bytes, str]:
    """A picture of the instructions: its bytes and media type.

    Args:
        project: id of the project.
        name: that it is kept under.

    Raises:
        InputError: there is no such picture.
    """
    from workbench.app import current

    found = current.opened(project).picture(name)
    return found.data, found.media


def instructions(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """What people are told before they label, as `telling.sheet` gives it.

    Args:
        project: id of the project.
        person: who reads it.
        body: mode, "check" while labels are checked: then without examples.
        token: for the addresses of pictures.
    """
    blind = body.get("mode") == checking.MODE
    return telling.sheet(session_of(project, person), BASE, token, examples=not blind)


def session_of(project: str, person: str) -> Session:
    """The session of a person on a project that is open in this process."""
    from workbench.app import current

    return current.opened(project).as_annotator(person)


def keep_fitting(project: str, person: str) -> None:
    """See that a model which knows more is on its way, after somebody's answers."""
    from workbench.app import current

    current.keep_fitting_all(session_of(project, person))


def _fitting(session: Session) -> bool:
    """Whether a model that knows more is on its way."""
    from workbench.app import current

    return session.stale and current.fit_comes(session)


def _is_guest(body: Mapping[str, Any]) -> bool:
    return bool(body.get("guest"))


def perform(
    session: Session, given: Sequence[Any], *, check: bool = False, guest: bool = False
) -> list[dict[str, Any]]:
    """Acknowledgements of operations, in their order; runs of them go into one transaction each."""
    acks: list[dict[str, Any]] = []
    run: list[Operation] = []

    def finish() -> None:
        acks.extend(_told(session, run))
        run.clear()

    for one in given:
        try:
            operation = operations.checked(one, session.annotator, session.id)
        except InputError as error:
            finish()
            acks.append({"op": operations.named(one), "status": "refused", "why": str(error)})
            continue
        if guest and not operations.for_guests(operation):
            finish()
            acks.append({"op": operation.id, "status": "refused", "why": operations.NOT_FOR_GUESTS})
            continue
        if operation.kind == "requeue":
            finish()
            session.ask_again()
            acks.append({"op": operation.id, "status": "saved", "why": ""})
            continue
        if operation.kind in ("label", "skip", "unsure") and not operation.ask:
            # an item that was taken back and answered before its new question arrived
            finish()
            operation = replace(operation, ask=_question_of(session, operation.item, check))
        run.append(operation)
    finish()
    return acks


def _told(session: Session, run: Sequence[Operation]) -> list[dict[str, Any]]:
    """Acknowledgements of operations that go into one transaction; one that breaks it is refused alone."""
    if not run:
        return []
    try:
        done = session.tell_many(run)
    except InputError:
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        # not the place where things are kept, which is tried again, but what is to be kept there
        if len(run) > 1:
            return [ack for one in run for ack in _told(session, [one])]
        _log.exception("An operation could not be done")
        why = f"It could not be stored ({type(error).__name__})."
        return [{"op": run[0].id, "status": "refused", "why": why}]
    return [_acknowledged(session, one) for one in done]


def _acknowledged(session: Session, done: Acknowledgement) -> dict[str, Any]:
    more: dict[str, Any] = {"left_out": len(done.left_out)} if done.left_out else {}
    if done.about is not None:
        more["about"] = acts.about(session, done.about)
    return {"op": done.operation, "status": done.status, "why": done.why, **more}


def _question_of(session: Session, item: int, check: bool = False) -> str:
    asks = session.next_checks(MOST_CARDS) if check else session.ask(MOST_CARDS)
    waiting = [ask.id for ask in asks if ask.item == item]
    return waiting[0] if waiting else ""


def _closed(session: Session, have: Sequence[str]) -> list[str]:
    """Those questions of the browser that need no answer any more."""
    still = set(session.still_open(have))
    return [ask for ask in have if ask not in still]


def _left(session: Session, number: int) -> list[str]:
    """What waits since an earlier page, chosen by an older model, but for the one this page shows first."""
    asks = session.state.asks
    waiting = [i for i in session.state.waiting.get(session.annotator, ()) if not asks[i].released]
    behind = [asks[i] for i in session.still_open(waiting)[1:]]
    chosen = [ask for ask in behind if ask.role in ("policy", "uniform", "cold-start")]
    return [ask.id for ask in chosen if ask.details.get("round") != number]


def _item(session: Session, body: Mapping[str, Any]) -> int:
    item = operations.field(body, "item", most=2**53)
    if item >= len(session.pool):
        raise InputError(f"There is no item {item}; the pool has {len(session.pool)}.")
    return item
