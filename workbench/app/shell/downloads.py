"""Files to take away: buttons whose file is made when it is asked for, and a figure's menu of them."""

import asyncio
import logging
import mimetypes
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import IO, Any, Literal
from urllib.parse import quote
from weakref import WeakValueDictionary, ref

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from workbench.app.access import current, login
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import widgets
from workbench.app.shell.background_files import Making, not_made
from workbench.errors import Cancelled, InputError
from workbench.figures import export

BASE = "/api/download"
MINUTES = 60  # after the page was drawn last
_STATE = "downloads-offered"
_BLOCK = 1 << 20

# Colours come from the text around it, so that both themes are met.
_STYLE = """<style>
.wb-download { display: inline-flex; align-items: center; justify-content: center; gap: .375rem;
  min-height: 2.5rem; padding: .25rem .75rem; box-sizing: border-box; border-radius: .5rem;
  border: 1px solid transparent; font-size: .875rem; line-height: 1.6; font-weight: 400;
  white-space: nowrap; cursor: pointer; user-select: none; }
.wb-download, .wb-download:link, .wb-download:visited { color: inherit !important;
  text-decoration: none !important; }
.wb-download.secondary { border-color: color-mix(in srgb, currentColor 20%, transparent); }
.wb-download.tertiary { padding-inline: 0; }
.wb-download.stretch { width: 100%; }
.wb-download[href].secondary:hover { background: color-mix(in srgb, currentColor 6%, transparent); }
.wb-download[href].tertiary:hover { opacity: .75; }
.wb-download[aria-disabled] { opacity: .4; cursor: not-allowed; }
.wb-download .icon { font-family: "Material Symbols Rounded"; font-size: 1.125rem; line-height: 1; }
</style>"""

log = logging.getLogger(__name__)
Make = Callable[[], bytes] | Making
"""Gives the content of a file; or says what process beside the server writes it."""


class _Held:
    """A file that was made, open and without a name on disk, so that it is gone when it is closed.

    It may be sent several times, and at once.

    Args:
        file: open.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._lock = file, threading.Lock()
        self.size = os.fstat(file.fileno()).st_size

    def __del__(self) -> None:
        self._file.close()

    def blocks(self) -> Iterator[bytes]:
        """The file, a piece at a time."""
        at = 0
        while block := self._at(at):
            at += len(block)
            yield block

    def _at(self, place: int) -> bytes:
        with self._lock:
            self._file.seek(place)
            return self._file.read(_BLOCK)


@dataclass(eq=False)
class _Offer:
    """Content of one button of one browser's tab; it lives as long as that tab's session.

    With a log-in it is for whom the page was drawn, while they may open the project that it was about. A file
    that takes long is made first (`held`) and then fetched.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    file: tuple[Make, str] | None = None
    held: tuple[Making, _Held] | None = None
    is_fetched: bool = False
    person: str = ""
    project: str | None = None
    drawn: float = 0.0
    taken: Callable[[login.Person | None], object] | None = None


_offers: WeakValueDictionary[str, _Offer] = WeakValueDictionary()


def button(
    label: str,
    make: Make,
    name: str,
    key: str,
    *,
    icon: str = "download",
    kind: Literal["secondary", "tertiary"] = "secondary",
    disabled: bool = False,
    help: str | None = None,
    width: Literal["content", "stretch"] = "content",
    taken: Callable[[login.Person | None], object] | None = None,
) -> None:
    """A button that downloads a file which is made when it is pressed.

    `st.download_button` gives such a file a new address at every redraw and forgets the one that the
    browser still shows, so that a press while the page redraws fails. Here the address belongs to the
    button and the tab: it stays the same through every redraw. Streamlit's link button would open a
    window that stays empty while the file is made; this is a link of the page, in its buttons' clothes.

    Args:
        label: of the button.
        make: gives the file's content; called once a press, in a thread of the server. A `Making` is written
            by a process beside the server and lies on disk until it is sent, so that a large one takes no
            memory; a long one is made at the press of a button, with a bar, and then fetched.
        name: of the file; its ending says what it is.
        key: of the button; unique on the page.
        icon: name of a Material symbol beside the label; "" for none.
        kind: how much it stands out.
        disabled: there is nothing to download now.
        help: shown when the pointer rests on it.
        width: "stretch" fills what it stands in.
        taken: called with who took the file, once it is made; for the record.
    """
    offers: dict[str, _Offer] = st.session_state.setdefault(_STATE, {})
    offer = offers.get(key)
    if offer is None:
        offer = offers[key] = _Offer()
        _offers[offer.token] = offer
    offer.file = None if disabled else (make, name)
    offer.taken = taken
    offer.drawn = time.monotonic()
    if login.required():
        offer.person, offer.project = login.key_of_page(), current.project_id()
    if isinstance(make, Making) and make.is_long and not disabled:
        if not _is_there(offer, make, label, key, icon, help):
            return
        assert offer.held is not None
        label = f"{label}, {in_bytes(offer.held[1].size)}"
    content = f'<span class="icon" aria-hidden="true">{escape(icon)}</span>' if icon else ""
    content += escape(label)
    where = 'aria-disabled="true" role="link"' if disabled else f'href=".{BASE}/{offer.token}" download'
    tooltip = f' title="{escape(help)}"' if help else ""
    with st.container(key=key, width=width):
        st.html(f'{_STYLE}<a class="wb-download {kind} {width}" {where}{tooltip}>{content}</a>', width=width)


def _is_there(offer: _Offer, make: Making, label: str, key: str, icon: str, help: str | None) -> bool:
    """True if a file that takes long is made; else its button or its progress is shown."""
    if offer.held is not None and (offer.is_fetched or offer.held[0] != make):
        offer.held = None
    if offer.held is not None:
        return True
    owner = "files" if make.session is None else make.session.id
    kind = f"file-{offer.token}-{make.arguments!r}"
    job = manager().get(owner, kind)
    if job is not None and job.status == "done":
        manager().forget(job)  # it was fetched
        job = None
    if job is None:
        st.button(
            label,
            key=f"{key}-make",
            icon=f":material/{icon}:" if icon else None,
            help=help,
            on_click=_begin,
            args=(offer, make, owner, kind),
        )
    else:
        widgets.job_panel(job, f"{key}-job", height=72, again=True)
    return False


def _begin(offer: _Offer, make: Making, owner: str, kind: str) -> None:
    """Have a file made for a tab, as long as that is there."""
    offer_ref = ref(offer)
    offer.is_fetched = False

    def work(job: Job) -> None:
        file = _Held(make.made(job))
        live_offer = offer_ref()
        if live_offer is not None:
            live_offer.held = make, file

    manager().submit(owner, kind, work, title=make.title, lane="file", limit=DAY)


def in_bytes(size: int) -> str:
    """The size of a file for people."""
    return f"{size / 1e6:,.{int(size < 1e8)}f} MB"


def routes() -> list[Any]:
    """Starlette routes for `st.App(routes=...)`."""
    return [Route(BASE + "/{token}", _download, methods=["GET"])]


_GONE = "This file is offered no more: open the page anew and press again."


def _admitted(offer: _Offer, cookies: Mapping[str, str]) -> login.Person | None:
    """The person who takes a file: with a log-in the one it was offered to, who may still open the project.

    Raises:
        InputError: anybody else.
    """
    if not login.required():
        return None
    person = login.of_cookies(cookies)
    if person is None or person.key != offer.person:
        raise login.NotYoursError("The file was offered to somebody else.")
    if offer.project is not None:
        login.admit(offer.project, person)
    return person


async def _download(request: Request) -> Response:
    offer = _offers.get(request.path_params["token"])
    file = None if offer is None else offer.file
    if offer is None or file is None or time.monotonic() - offer.drawn > 60 * MINUTES:
        return _failure(_GONE, "file")
    make, name = file
    try:
        person = await run_in_threadpool(_admitted, offer, dict(request.cookies))
    except InputError:
        # neither whose it was nor what it was called
        return _failure(_GONE, "file")
    try:
        content = (
            await _made_beside(make, offer, request)
            if isinstance(make, Making)
            else await run_in_threadpool(make)
        )
        if offer.taken is not None:
            await run_in_threadpool(offer.taken, person)
    except InputError as error:
        return _failure(str(error), name)
    except Cancelled:
        return _failure("It was cancelled.", name)
    except OSError as error:
        log.exception("The file %s could not be made.", name)
        return _failure(not_made(error), name)
    except Exception:
        log.exception("The file %s could not be made.", name)
        return _failure("The file could not be made; the server's log says why.", name)
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name)}",
        "cache-control": "no-store",
    }
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if isinstance(content, bytes):
        return Response(content, media_type=kind, headers=headers)
    headers["content-length"] = str(content.size)
    return StreamingResponse(content.blocks(), media_type=kind, headers=headers)


async def _made_beside(make: Making, offer: _Offer, request: Request) -> _Held:
    """The file: the one that was made before, or one that is made now while the browser waits.

    Raises:
        InputError: it cannot be made.
        Cancelled: the browser went away.
        RuntimeError: a fault of ours, with where it was.
    """
    if offer.held is not None and offer.held[0] == make:
        offer.is_fetched = True
        return offer.held[1]
    owner = "files" if make.session is None else make.session.id
    job = make.begin(owner, f"file-{secrets.token_urlsafe(8)}")
    pause = 0.01
    while job.active:
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.25)
        if await request.is_disconnected():
            job.cancel()
    manager().forget(job)
    if job.status == "cancelled":
        raise Cancelled(job.title)
    if job.status == "failed":
        raise RuntimeError(job.details) if job.details else InputError(job.error)
    return _Held(job.result)


def _failure(words: str, name: str) -> Response:
    """A text in the file's place that says why it is not there.

    A browser shows nothing of an answer that says it failed but "Failed" beside the file's name.
    """
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(f'{name} was not made.txt')}",
        "cache-control": "no-store",
    }
    return PlainTextResponse(f"{words}\n", headers=headers)


def figure(fig: Any, key: str, alt: str, stem: str) -> None:
    """A figure with a text for those who cannot see it, and below it the menu that offers it."""
    widgets.figure(fig, key, alt)
    figure_downloads(fig, stem, f"save-{key}")


def figure_downloads(fig: Any, stem: str, key: str) -> None:
    """A menu that offers a figure as HTML, and as PNG and SVG where a browser can draw them.

    Nothing is drawn until a file is asked for, so a rerun costs no more than the menu.

    Args:
        fig: the Plotly figure, as shown.
        stem: of the file's name.
        key: of the menu; unique on the page.
    """
    with st.popover("Save figure", icon=":material/download:", type="tertiary", key=key):
        offer = partial(_offered, stem, key)
        offer("Interactive page (HTML)", "html", lambda: export.html(fig, stem).encode())
        offer("Numbers (CSV)", "csv", lambda: export.numbers(fig).encode())
        reason = export.why_no_images()
        if reason:
            st.caption(reason)
            return
        offer("Picture (PNG)", "png", partial(export.image, fig, "png"))
        offer("Drawing (SVG)", "svg", partial(export.image, fig, "svg"))


def _offered(stem: str, key: str, label: str, ending: str, make: Callable[[], bytes]) -> None:
    button(
        label,
        make,
        f"{stem}.{ending}",
        f"{key}-{ending}",
        icon="",
        width="stretch",
    )
