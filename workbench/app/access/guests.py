"""People without an account at one project, where there is a log-in and its owner lets them in by a link.

The link and a guest's cookie are signed and name the project and what its settings say of guests; no guest is
let in any more once the owner ends it, and another link begins when they allow it again.
"""

from __future__ import annotations

import secrets
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

from workbench.app.access import login, passes
from workbench.app.serving import limits
from workbench.app.serving.frontend import below_base
from workbench.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from workbench.store import ProjectSummary

PATH = "/join"
LONGEST = 40  # letters of a name
_MOST = 4_000  # bytes of a form


def allowed(record: ProjectSummary) -> bool:
    """Whether the owner of a project lets in people without an account."""
    from workbench.store import Store

    return bool(Store.open().guests_of(record.id))


def allow(record: ProjectSummary, on: bool) -> None:
    """Let people without an account in, by a link that is new each time, or end it.

    Args:
        record: a project that the person may change.
        on: whether they may come.
    """
    from workbench.store import Store

    Store.open().let_guests_in(record.id, secrets.token_hex(8) if on else "")


def link(record: ProjectSummary) -> dict[str, str]:
    """What stands in the address by which guests join.

    Args:
        record: a project that lets them in.
    """
    from workbench.store import Store

    return {"k": passes.signed([record.id, Store.open().guests_of(record.id)])}


# --------------------------------------------------------------------------- joining


def routes() -> list[Any]:
    """Starlette routes for `st.App(routes=...)`."""
    from starlette.routing import Route

    return [Route(PATH, _join, methods=["GET", "POST"])]


async def _join(request: Request) -> Response:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse, RedirectResponse

    code, name = str(request.query_params.get("k", "")), ""
    if request.method == "POST":
        octets = b""
        async for part in request.stream():
            octets += part
            if len(octets) > _MOST:
                return HTMLResponse(_page("That is more than a name."), 413)
        form = parse_qs(octets.decode("utf-8", "replace"))
        code, name = form.get("k", [""])[0], " ".join(form.get("name", [""])[0].split())[:LONGEST]
    try:
        called, made = await run_in_threadpool(_guest, code, name)
    except limits.TooMuchError as error:
        return HTMLResponse(_page("Many people join just now. Try again in a moment."), 429, _later(error))
    except InputError as error:
        return HTMLResponse(_page(str(error)), 403)
    if made is None:
        # the form says where it comes from, which this server wants to know of whatever is posted
        return HTMLResponse(_page("", called, code), headers={"referrer-policy": "same-origin"})
    # where the desk is, from here: a server may lie below a path of its own
    base = request.url.path[: -len(below_base(request.url.path))]
    answer = RedirectResponse(f"{base}/label?project={quote(made[0])}", 303)
    answer.set_cookie(
        passes.COOKIE,
        made[1],
        max_age=86_400 * passes.DAYS,
        path=f"{base}/",
        httponly=True,
        samesite="lax",
        secure=login.is_encrypted(),
    )
    return answer


def _later(error: limits.TooMuchError) -> dict[str, str]:
    return {"retry-after": str(error.seconds)}


def _guest(code: str, name: str) -> tuple[str, tuple[str, str] | None]:
    """What the project is called, and, once there is a name, its id and the guest's cookie.

    Raises:
        InputError: the link is of no use, or of none any more.
    """
    from workbench.store import Store

    found = passes.read(code, 2) if login.required() else None
    store = Store.open()
    record = None if found is None else store.summary(found[0])
    if found is None or record is None or not found[1] or store.guests_of(record.id) != found[1]:
        raise InputError("This link is cut short or of no use any more. Ask for another one.")
    if not name:
        return record.name, None
    limits.LIMITS.requests(f"guests of {record.id}")
    key = f"{login.GUEST}{record.id} {secrets.token_hex(8)}"
    known = store.known_as(key, f"{name} (guest)", secrets.token_hex(2))
    return record.name, (record.id, passes.cookie([*found, key, known]))


def _page(problem: str, called: str = "", code: str = "") -> str:
    """The page that asks for a name, or says why nobody joins by this link."""
    asked = (
        f"<h1>{escape(called)}</h1>"
        "<p>You are asked to help label. Your answers carry the name that you give.</p>"
        '<form method="post"><label for="name">Your first name</label>'
        f'<input id="name" name="name" required maxlength="{LONGEST}" autocomplete="given-name" autofocus>'
        f'<input type="hidden" name="k" value="{escape(code)}"><button>Join</button></form>'
    )
    said = f"<h1>Nobody can join by this link</h1><p>{escape(problem)}</p>"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Join · Workbench</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><style>'
        ":root { color-scheme: light dark } body { font: 1.0625rem/1.5 system-ui, sans-serif; margin: 0 auto;"
        " padding: 12vh 1.25rem 2rem; max-width: 24rem } h1 { font-size: 1.5rem; overflow-wrap: anywhere }"
        " label { display: block; font-weight: 600; margin: 1.5rem 0 .375rem } input, button { font: inherit;"
        " box-sizing: border-box; width: 100%; min-height: 2.75rem; padding: 0 .75rem; border-radius: .5rem;"
        " border: 1px solid light-dark(#6b7280, #9ca3af) } button { margin-top: 1rem; border: 0;"
        " background: #2f6fd0; color: #fff; cursor: pointer } :focus-visible { outline: 3px solid #7fb0ff;"
        " outline-offset: 2px }</style></head><body><main>"
        f"{said if problem else asked}</main></body></html>"
    )
