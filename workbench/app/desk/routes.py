"""Routes of the desk: answers in, acknowledgements and cards out; pictures; grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.app.access import tokens
from workbench.app.desk import (
    all_questions,
    cards,
    checking,
    finding,
    instruction_sheet,
    operations,
)
from workbench.app.desk.acknowledgements import MOST_CARDS, MOST_OPERATIONS, keep_fitting, perform, session_of
from workbench.app.desk.pictures import picture, picture_told
from workbench.app.desk.requests import ADDRESS, BASE, answered, pictured, threaded
from workbench.app.serving import limits
from workbench.app.words import acts
from workbench.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from workbench.sessions import Ask, Session
    from workbench.sessions.asking_items import ItemAsk
    from workbench.sessions.fitted_model import FittedModel

MOST_TOGETHER = 25  # operations of one person in a transaction
SURE_TILE = 0.9  # probability of its class below which an item of a grid is marked
MOST_SHOWN = 60  # found items with their faces


def routes() -> list[Any]:
    """Starlette routes for `st.App(routes=...)`."""
    from starlette.routing import Route

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
    from starlette.background import BackgroundTask

    async def work(holder: tokens.Bearer, body: dict[str, Any]) -> tuple[Any, Any]:
        ops = body.get("ops")
        limits.LIMITS.operations(holder.person, len(ops) if isinstance(ops, list) else 0)
        reply = await threaded(sync, holder.project, holder.person, body, tokens.for_pictures(holder))
        # whether a fit is due is looked at after the reply has left
        return reply, BackgroundTask(threaded, keep_fitting, holder.project, holder.person)

    return await answered(request, work)


def _posted(answer: Callable[[str, str, Mapping[str, Any], str], Any]) -> Callable[[Request], Any]:
    """A route that answers what is posted with one of the functions below."""

    async def handler(request: Request) -> Response:
        async def work(holder: tokens.Bearer, body: dict[str, Any]) -> tuple[Any, Any]:
            pictures = tokens.for_pictures(holder)
            return await threaded(answer, holder.project, holder.person, body, pictures), None

        return await answered(request, work)

    return handler


async def _image(request: Request) -> Response:
    text = str(request.query_params.get("side", "0"))
    side = min(int(text), 4096) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return await pictured(request, picture, request.path_params["item"], side)


async def _picture_told(request: Request) -> Response:
    return await pictured(request, picture_told, request.path_params["name"])


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
    """
    session = session_of(project, person)
    if body.get("mode") == checking.MODE:
        return _sync_checks(session, person, body, token)
    if body.get("mode") == all_questions.MODE and len(session.questions) > 1:
        return _sync_every(session, person, body, token)
    have = operations.ids(body, "have", most=4 * MOST_CARDS)
    want = operations.field(body, "want", most=MOST_CARDS, default=0)
    ops = body.get("ops", [])
    if not isinstance(ops, list):
        raise InputError("The field ops must be a list of operations.")
    with session.snapshot():
        acks: list[dict[str, Any]] = []
        ops = ops[:MOST_OPERATIONS]

        def exchange() -> _Exchanged:
            return _exchanged(session, body, ops, have, want)

        while len(ops) > MOST_TOGETHER:  # others come between
            before, ops = ops[:MOST_TOGETHER], ops[MOST_TOGETHER:]
            acks += session.together(partial(perform, session, before))
        # a page that only looks again writes nothing, and waits for nobody who does
        writes = ops or want or _is_newer(session.model, body.get("model"))
        outcome = session.together(exchange) if writes else exchange()
        model, number, asks, known_ids = outcome.model, outcome.number, outcome.asks, outcome.known
        acks += outcome.acks
        picture = f"{ADDRESS}/{project}/image/{{item}}?k={token}"
        queue = [cards.card(session, ask, picture) for ask in asks if ask.id not in known_ids]
        state = session.state
        numbers = {
            "labelled": len(state.codes),
            "total": int(session.pool.trainable.size),
            "left": session.n_left,
            "skipped": len(state.skipped),
            "unsure": len(state.unsure),
            **acts.steps(session),
            "model": number,
            "learned": 0 if model is None else model.n_labelled,
            "fitting": _fitting(session),
            **instruction_sheet.numbers(session),
        }
        plane = cards.plane(session) if number is None or body.get("model") != number else None
        classes, commands = class_keys(session)
    return {
        "plane": plane,
        "acks": acks,
        "queue": queue,
        "gone": outcome.gone,
        "released": outcome.released,
        "first": asks[0].id if asks else None,
        "numbers": numbers,
        "classes": classes,
        "commands": commands,
    }


def _is_newer(present: FittedModel | None, number: object) -> bool:
    return present is not None and number != present.number


@dataclass(frozen=True)
class _Exchanged:
    """Results of one transaction of the desk's: answers taken, questions given back and asked."""

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
    session: Session, body: Mapping[str, Any], ops: Sequence[Any], have: list[str], want: int
) -> _Exchanged:
    acks = perform(session, ops)
    model = session.model
    number = None if model is None else model.number
    closed_ids, released = _closed(session, have), []
    screen = str(body.get("screen") or "")
    if screen in have and screen not in closed_ids:
        # given back, or put behind others, while the browser turned to it: a reload shows it all the same
        session.reclaim([screen], first=bool(body.get("turned")))
    if number is not None and body.get("model") != number:
        # choices of an older model: all but the one on screen are given back and chosen anew
        old = [ask for ask in have if ask not in closed_ids and ask != screen]
        released = session.release(old) if old else []
        want += len(released)
        if not have and (leftovers := _left(session, number)):
            session.release(leftovers)
    asks_now = session.state.asks
    # questions given back because the person wanted others first
    returned_ids = [
        ask
        for ask in have
        if ask not in closed_ids and ask not in released and ask != screen and asks_now[ask].released
    ]
    released, want = released + returned_ids, want + len(returned_ids)
    known_ids = [ask for ask in have if ask not in closed_ids and ask not in released]
    asks = session.ask(max(1, min(len(known_ids) + want, 2 * MOST_CARDS))) if known_ids or want else []
    return _Exchanged(acks, model, closed_ids, released, known_ids, asks)


def _sync_checks(session: Session, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The same of the desk in check mode: cards in the frozen order, and what the checks say."""
    have = operations.ids(body, "have", most=4 * MOST_CARDS)
    want = operations.field(body, "want", most=MOST_CARDS, default=0)
    ops = body.get("ops", [])
    if not isinstance(ops, list):
        raise InputError("The field ops must be a list of operations.")
    with session.snapshot():
        acks = perform(session, ops[:MOST_OPERATIONS], check=True)
        state = session.finish_state()
        closed_ids = _closed(session, have)
        known_ids = [ask for ask in have if ask not in closed_ids]
        n = min(len(known_ids) + want, 2 * MOST_CARDS)
        asks = checking.next_cards(session, state, n, bool(body.get("on")))
        picture = f"{ADDRESS}/{session.id}/image/{{item}}?k={token}"
        classes, commands = class_keys(session)
        return {
            "plane": None,
            "acks": acks,
            "queue": [cards.card(session, ask, picture) for ask in asks if ask.id not in known_ids],
            "gone": closed_ids,
            "released": [],
            "first": asks[0].id if asks else None,
            "numbers": checking.numbers(session, state) | instruction_sheet.numbers(session),
            "classes": classes,
            "commands": commands,
        }


def _sync_every(session: Session, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The same of the desk that asks all questions about an item: a card is an item with those open."""
    have = operations.ids(body, "have", most=4 * MOST_CARDS)
    want = operations.field(body, "want", most=MOST_CARDS, default=0)
    ops = body.get("ops", [])
    if not isinstance(ops, list):
        raise InputError("The field ops must be a list of operations.")
    screen = str(body.get("screen") or "")
    sessions = session.asked()
    number = all_questions.model_number(sessions)
    newer = number is not None and body.get("model") != number

    def exchange() -> tuple[list[dict[str, Any]], list[ItemAsk]]:
        acks = perform(session, ops[:MOST_OPERATIONS])
        all_questions.reclaim(sessions, screen)
        if newer:
            all_questions.release_old(sessions, screen)
        n = min(len(have) + want, 2 * MOST_CARDS)
        return acks, session.ask_items(n) if n else []

    acks, asks = session.together(exchange) if ops or want or newer else exchange()
    ask_ids = [all_questions.first_of(ask) for ask in asks]
    closed_ids = all_questions.answered(sessions, have)
    by_name = {question.question_name: question for question in sessions}
    picture = f"{ADDRESS}/{session.id}/image/{{item}}?k={token}"
    known_ids = set(have)
    questions, commands = all_questions.asked(session)
    return {
        "plane": None,
        "acks": acks,
        "queue": [
            all_questions.card(by_name, ask, picture)
            for ask, id_ in zip(asks, ask_ids, strict=True)
            if id_ not in known_ids
        ],
        "gone": closed_ids,
        # the item on screen stays there, whatever was chosen anew meanwhile
        "released": [ask for ask in have if ask not in ask_ids and ask not in closed_ids],
        "first": ask_ids[0] if ask_ids else None,
        "numbers": all_questions.numbers(session, sessions, any(_fitting(question) for question in sessions))
        | instruction_sheet.numbers(session),
        "asked": questions,
        "classes": [],
        "commands": commands,
    }


def class_keys(session: Session) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The classes with their keys, and the commands' keys, as the component takes them."""
    from workbench.app.desk.keys import keys_for

    state = session.state
    about = {
        state.class_names[key]: details
        for key, details in state.class_about.items()
        if key in state.class_names
    }
    names = state.shown_classes
    shortcuts = {name: details["shortcut"] for name, details in about.items() if "shortcut" in details}
    keys = keys_for(names, shortcuts)
    letters = keys.classes or ("",) * len(names)
    classes = [
        {
            "name": name,
            "key": key,
            "help": about.get(name, {}).get("guidance", ""),
            "colour": about.get(name, {}).get("colour", ""),
        }
        for name, key in zip(names, letters, strict=True)
    ]
    return classes, dict(keys.commands)


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
    state = session.state
    of_all = session.asked() if body.get("mode") == all_questions.MODE and len(session.questions) > 1 else []
    n = operations.field(body, "n", most=MOST_SHOWN, default=24)
    if body.get("kind") == "seen":
        return cards.model_input(session.pool, _item(session, body))
    if body.get("kind") == "history" and of_all:
        return all_questions.history(session, n, f"{ADDRESS}/{project}/image/{{item}}?k={token}")
    if body.get("kind") == "history":
        hits = _own_answers(session, person, n)
        askable: set[int] = set()
    else:
        if body.get("kind") == "like":
            hits = finding.like(session, _item(session, body), n).tolist()
        else:
            hits = finding.find(session.pool, str(body.get("words", ""))).tolist()
        askable = all_questions.askable(of_all or [session])
    picture = f"{ADDRESS}/{project}/image/{{item}}?k={token}"
    items = []
    for item in hits[:n]:
        # one's own answers stand on the stage, found items among others
        face_of = cards.face if body.get("kind") == "history" else cards.thumbnail_face
        face = face_of(session.pool, item, picture)
        stands = acts.stands(state, item)
        vote = state.votes.get(item, {}).get(person)
        if vote:
            stands["class"] = state.class_names.get(state.resolve(vote.key), "")
        about = {"id": str(session.pool.items.ids[item]), "face": face, "open": item in askable}
        answers = all_questions.standing(of_all, item)
        if answers:
            about |= {"kind": "answers", "said": answers}
        items.append(stands | about)
    open_items = [item for item in hits if item in askable]
    at_once = open_items[: operations.MOST_ITEMS]
    return {"items": items, "open": at_once, "askable": len(open_items), "total": len(hits)}


def _own_answers(session: Session, person: str, n: int) -> list[int]:
    """The items a person decided about last, newest first, that still have a decision."""
    answered = session.state.answered
    items: dict[int, None] = {}
    for event in reversed(session.events):
        if event.annotator != person or event.item is None or event.kind not in ("label", "skip", "unsure"):
            continue
        if event.item in answered:
            items.setdefault(event.item)
        if len(items) == n:
            break
    return list(items)


def grid(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Items that the model takes for one class, to be confirmed together.

    Args:
        project: id of the project.
        person: who asks.
        body: class (the one of the most sure items unless given) and n; with mode "every" also question.
        token: for the addresses of pictures.
    """
    session = session_of(project, person)
    if body.get("mode") == all_questions.MODE and len(session.questions) > 1:
        of, name, about = all_questions.grid(session.asked(), body.get("question"), body.get("class"))
        return about | _grid(of, name, body, token, project)
    return _grid(session, str(body.get("class") or "") or session.grid_class(), body, token, project)


def _grid(session: Session, name: str, body: Mapping[str, Any], token: str, project: str) -> dict[str, Any]:
    asks = session.ask_grid(name, operations.field(body, "n", most=operations.MOST_IN_GRID, default=24))
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
    return {"class": name, "items": items, "measured": session.precision_of(name).words(name)}


def instructions(project: str, person: str, body: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Instructions that people read before they label, as `instruction_sheet.sheet` gives them.

    Args:
        project: id of the project.
        person: who reads it.
        body: mode, "check" while labels are checked: then without examples.
        token: for the addresses of pictures.
    """
    blind = body.get("mode") == checking.MODE
    return instruction_sheet.sheet(session_of(project, person), ADDRESS, token, examples=not blind)


def _fitting(session: Session) -> bool:
    """True if a model that knows more is on its way."""
    from workbench.app.access import current

    return session.stale and current.fit_comes(session)


def _closed(session: Session, have: Sequence[str]) -> list[str]:
    """Those questions of the browser that need no answer any more."""
    still = set(session.still_open(have))
    return [ask for ask in have if ask not in still]


def _left(session: Session, number: int) -> list[str]:
    """Questions of an earlier page, chosen by an older model, but for the one this page shows first."""
    asks = session.state.asks
    waiting = [i for i in session.state.waiting.get(session.annotator, ()) if not asks[i].released]
    behind = [asks[i] for i in session.still_open(waiting)[1:]]
    candidates = [ask for ask in behind if ask.role in ("policy", "uniform", "cold-start")]
    return [ask.id for ask in candidates if ask.details.get("round") != number]


def _item(session: Session, body: Mapping[str, Any]) -> int:
    item = operations.field(body, "item", most=2**53)
    if item >= len(session.pool):
        raise InputError(f"There is no item {item}; the pool has {len(session.pool)}.")
    return item
