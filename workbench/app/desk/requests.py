"""Gate of every request of the desk: who asks, how much at a time, how a refusal is said."""

import asyncio
import json
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from workbench.app.access import login
from workbench.app.desk.tokens import Bearer, bearer
from workbench.app.serving.frontend import is_known_host
from workbench.errors import InputError, StorageError
from workbench.reading import cut
from workbench.store import Store

BASE = "/api/desk"
ADDRESS = f".{BASE}"
"""As a page asks: each stands one step below the app, wherever that is (`--base-path`, a proxy's path)."""
MOST_BYTES = 256_000  # of a request
SECONDS = 10.0  # that its body may take
_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, why: str, *, shut: bool = False) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.shut = shut  # the project is not theirs any more: asking again is of no use


async def pictured(request: Request, work: Callable[..., tuple[bytes, str]], *arguments: Any) -> Response:
    """A picture, for whoever holds a token of this project's pictures and may open it."""
    try:
        holder = _allowed(request, str(request.query_params.get("k", "")), "pictures")
        await run_in_threadpool(_admitted, dict(request.cookies), holder)
        octets, kind = await run_in_threadpool(work, holder.project, *arguments)
    except RefusedError as refused:
        return json_reply({"why": refused.why}, refused.status)
    except InputError as error:
        return json_reply({"why": str(error)}, 404)
    headers = {"cache-control": "private, max-age=3600", "x-content-type-options": "nosniff"}
    return Response(octets, media_type=kind, headers=headers)


async def answered(request: Request, work: Any) -> Response:
    """The reply to what a page of the desk sends.

    Args:
        request: JSON, with a token.
        work: bearer of the token and the body -> the reply, and what is done after it has left.
    """

    async def attempt() -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RefusedError(415, "The desk takes JSON only.")
        holder = _allowed(request, request.headers.get("x-desk-token", ""))
        LIMITS.requests(holder.person)
        # before a turn is taken: whoever sends slowly keeps nobody else waiting
        body = await json_body(request)
        async with LIMITS.turn(holder.project, holder.person):
            await run_in_threadpool(_admitted, dict(request.cookies), holder)
            reply, background = await work(holder, body)
            return json_reply(reply, 200, background)

    return await guarded(attempt)


async def guarded(attempt: Callable[[], Awaitable[Response]]) -> Response:
    """The reply of an attempt, or what is wrong with the request and whether to send it again."""
    try:
        return await attempt()
    except TooMuchError as error:
        # whoever sent it keeps what they have, says so and comes again
        return json_reply({"why": str(error), "wait": error.seconds}, 429)
    except RefusedError as refused:
        # sent again it would be refused again, unlike what a person can do something about
        refusal = {"why": refused.why, "never": refused.status in (400, 413), "shut": refused.shut}
        return json_reply(refusal, refused.status)
    except StorageError as error:
        return json_reply({"why": f"the server cannot store answers ({error})"}, 503)
    except InputError as error:
        return json_reply({"why": str(error)}, 409)
    except ClientDisconnect:
        # a tab that was closed while it sent: nobody reads this, and its answers wait in the browser
        return json_reply({"why": "The request ended before all of it had come."}, 400)
    except Exception as error:  # a full disk, a database that is gone: it is kept and sent again
        _log.exception("A request could not be answered")
        reason = cut(" ".join(str(getattr(error, "orig", None) or error).split()))
        return json_reply({"why": f"the server cannot answer ({reason})"}, 503)


def json_reply(document: Any, status: int = 200, background: Any = None) -> Response:
    """A document as the reply to a request; of 429 with the time to wait in its header.

    Args:
        document: JSON.
        status: of HTTP.
        background: done after the reply has left.
    """
    octets = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    headers = {"cache-control": "no-store"}
    if status == 429:
        headers["retry-after"] = str(document["wait"])
    return Response(octets, status, headers, media_type="application/json", background=background)


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, within `MOST_BYTES` and `SECONDS`.

    Raises:
        RefusedError: it is none, or larger, or takes longer.
    """
    octets = b""
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                octets += part
                if len(octets) > MOST_BYTES:
                    raise RefusedError(413, "That is more than the desk sends at once.")
    except TimeoutError:
        raise RefusedError(408, f"The request did not come within {SECONDS:.0f} seconds.") from None
    try:
        # a number of thousands of digits is no integer here, and refused where it stands
        body = json.loads(octets, parse_int=lambda digits: int(digits) if len(digits) < 40 else inf)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise RefusedError(400, "The desk takes a JSON object.")
    return body


def _allowed(request: Request, token: str, use: str = "desk") -> Bearer:
    """The person who asks, from this server's own page, with a token for this project."""
    host = request.headers.get("host")
    names = st.get_option("server.allowedHosts")
    if names and not is_known_host(host, names):
        raise RefusedError(403, "This server is not known by that name.")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise RefusedError(403, "Only this server's own pages may use the desk.")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise RefusedError(403, "Only this server's own pages may use the desk.")
    holder = bearer(token, use=use)
    if holder is None or holder.project != request.path_params["project"]:
        raise RefusedError(401, "This page must be opened anew.")
    return holder


def _admitted(cookies: Mapping[str, str], holder: Bearer) -> None:
    """Check, where there is a log-in, that the sender is the person of the token and may open the project."""
    if not login.required():
        return
    person = login.of_cookies(cookies)
    if person is None:
        raise RefusedError(403, "You are not logged in any more: open this page anew.")
    if person.name != holder.person:
        raise RefusedError(403, f"This page is {holder.person}'s, and you are {person.name}: open it anew.")
    try:
        login.admit(holder.project, person)
    except InputError as error:
        raise RefusedError(403, _shut_by(holder.project, person) or str(error), shut=True) from error


def _shut_by(project: str, person: login.Person) -> str:
    """The person who took a project away from somebody at its page; "" where it is gone, or nobody's."""
    store = Store.open()
    record = store.summary(project)
    if record is None or not record.owner or not login.who_may(person, None, "use"):
        return ""
    owner = store.people.names().get(record.owner, "Its owner")
    return f"{owner} does not share this project with you any more."


OPERATIONS, OPERATIONS_AT_ONCE = 60.0, 400.0
"""A second and person, and what may come at once: what a browser kept while the server was away."""
REQUESTS, REQUESTS_AT_ONCE = 30.0, 120.0
WORKING = 16
"""Requests of a project that work at the same time: a slow one leaves threads to the others."""
WAITING = 200
"""Requests of a project that wait for that; further ones come later."""
OF_ONE = 6
"""Requests of one person that work or wait: a few tabs."""
_KEPT = 10_000  # people


class TooMuchError(Exception):
    """Come again after `seconds`."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = max(1, math.ceil(seconds))


class Limits:
    """Use of the limits by people and projects; asked by the requests of one event loop.

    Nothing is lost: whoever is told to wait keeps what they have done in their browser, and it is sent again.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._there: Counter[str] = Counter()
        self._theirs: Counter[tuple[str, str]] = Counter()

    def requests(self, person: str) -> None:
        """Count a request of a person.

        Raises:
            TooMuchError: they come too fast.
        """
        self._take("requests", person, 1, REQUESTS, REQUESTS_AT_ONCE)

    def operations(self, person: str, n: int) -> None:
        """Count operations of a person, all or none.

        Raises:
            TooMuchError: they come too fast.
        """
        if n:
            self._take("operations", person, n, OPERATIONS, OPERATIONS_AT_ONCE)

    def _take(self, kind: str, person: str, n: int, a_second: float, capacity: float) -> None:
        now = self._clock()
        left, before = self._buckets.get((kind, person), (capacity, now))
        left = min(capacity, left + (now - before) * a_second)
        missing = min(n, capacity) - left
        self._buckets[kind, person] = (left if missing > 0 else -missing), now
        self._buckets.move_to_end((kind, person))
        while len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
        if missing > 0:
            words = f"the server takes {a_second:.0f} {kind} a second of one person"
            raise TooMuchError(words, missing / a_second)

    @asynccontextmanager
    async def turn(self, project: str, person: str) -> AsyncIterator[None]:
        """A block that few requests of a project are in at a time, in the order in which they came.

        Raises:
            TooMuchError: too many wait already, of everybody or of this person.
        """
        if self._theirs[project, person] >= OF_ONE:
            raise TooMuchError(f"{OF_ONE} requests of yours are being answered already", 1.0)
        if self._there[project] >= WORKING + WAITING:
            raise TooMuchError("too many people ask for this project at the moment", 2.0)
        self._there[project] += 1
        self._theirs[project, person] += 1
        try:
            async with self._turns.setdefault(project, asyncio.Semaphore(WORKING)):
                yield
        finally:
            self._there[project] -= 1
            self._theirs[project, person] -= 1
            if not self._theirs[project, person]:
                del self._theirs[project, person]
            if not self._there[project]:
                del self._there[project], self._turns[project]


LIMITS = Limits()
