"""Log-in with OpenID Connect: whether there is one, who sits at a browser, what they may open.

Streamlit does the protocol (`st.login`) and keeps a signed cookie; here is what the pages and the desk's
routes ask about it. Without a log-in everybody is the local person and everything is open to them.
"""

import fnmatch
import hashlib
import json
import logging
import os
import re
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from workbench.app.serving import streamlit_private
from workbench.app.serving.frontend import Layer, asks_for_page, below_base, from_root, headers_of, is_page
from workbench.app.words.text import verbatim
from workbench.errors import InputError, install_command
from workbench.reading import reason
from workbench.store import ProjectSummary, Store

CALLBACK = "/oauth2callback"
DENIED = "log-in"
"""In the address after a log-in that came to nothing; in the session's state, that it was said."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Addresses that this machine alone reaches."""
_NEEDED = ("client_id", "client_secret", "server_metadata_url")
LIMITS = {
    "projects": "how many projects one person may have",
    "uploads_mb": "how many megabytes one person may have uploaded",
}
_LOCKED = False
_KNOWN: dict[str, tuple[str, str]] = {}
Act = Literal["use", "open", "change"]
"""Acts of a person: use the server; open a project, and delete, share or set it up."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Person:
    """Somebody who logged in.

    Attributes:
        key: what they are known by: the provider and its subject, which never change hands.
        name: what their events carry.
        address: that the provider vouches for, in small letters; "" for none. The list of people names it.
    """

    key: str
    name: str
    address: str = field(default="", compare=False)

    @property
    def account(self) -> str:
        """A short name of the key, for what their browser keeps."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:12]


# --------------------------------------------------------------------------- the file of secrets


def file_of(path: Path | None) -> Path | None:
    """The file of secrets that has a log-in in it; None where there is none.

    Args:
        path: named by a person; else where Streamlit looks (`.streamlit/secrets.toml`, here or at home).

    Raises:
        InputError: a file that cannot be used for a log-in.
    """
    if path is not None:
        check(path)
        return path
    for place in (Path.home() / ".streamlit" / "secrets.toml", Path.cwd() / ".streamlit" / "secrets.toml"):
        if place.is_file() and "auth" in _document(place):
            check(place)
            return place
    return None


def check(file: Path) -> None:
    """See that a file of secrets holds all that a log-in needs.

    Raises:
        InputError: what is missing, or who else may read it.
    """
    where = _where(file)
    _check_document(_document(file), where)
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise InputError(f"{where} holds secrets that others on this machine can read: chmod 600 {file}")
    if find_spec("authlib") is None or find_spec("httpx") is None:
        raise InputError(f"A log-in needs Authlib and httpx: {install_command('Authlib', 'httpx')}")


def _where(file: Path | str) -> str:
    return f"The log-in ({file}; workbench help teams)"


def _check_document(document: Mapping[str, Any], where: str) -> None:
    auth = document.get("auth")
    if not isinstance(auth, Mapping):
        raise InputError(f"{where} has no table [auth].")
    callback = str(auth.get("redirect_uri", ""))
    if (
        urlsplit(callback).scheme not in ("http", "https")
        or urlsplit(callback).path[-len(CALLBACK) :] != CALLBACK
    ):
        raise InputError(
            f"{where} needs redirect_uri, the app's address as people see it and {CALLBACK} "
            f"(https://label.example.org{CALLBACK})."
        )
    if len(str(auth.get("cookie_secret", ""))) < 32:
        raise InputError(
            f"{where} needs cookie_secret, at least 32 random characters: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    for name in providers(auth):
        section = auth if name == "default" and "default" not in auth else auth[name]
        missing = [key for key in _NEEDED if not str(section.get(key, ""))]
        if missing:
            raise InputError(f"{where} lacks {', '.join(missing)} for the provider {name}.")
    settings = document.get("workbench", {})
    people = settings.get("people", []) if isinstance(settings, Mapping) else None
    if not isinstance(people, list) or not all(isinstance(address, str) for address in people):
        raise InputError(
            f'{where}: [workbench] people is a list of addresses: ["ann@example.org", "*@example.org"].'
        )
    for name, meaning in LIMITS.items():
        quota = settings.get(name)
        if quota is not None and (isinstance(quota, bool) or not isinstance(quota, int) or quota < 1):
            raise InputError(f"{where}: [workbench] {name} is {meaning}: a whole number, at least 1.")


def lock(file: Path) -> None:
    """From here on this process lets in nobody who has not logged in, whatever becomes of the file."""
    global _LOCKED
    streamlit_private.set_option("secrets.files", [str(file)])
    _LOCKED = True
    _secrets()


def names_in(file: Path) -> list[str]:
    """The host that people reach the app by, as its log-in says."""
    host = urlsplit(str(_document(file)["auth"]["redirect_uri"])).hostname
    return [] if host is None else [host]


def providers(auth: Mapping[str, Any]) -> list[str]:
    """Names of the providers of a table [auth]; "default" for one without a name."""
    names = [name for name, value in auth.items() if isinstance(value, Mapping) and name != "client_kwargs"]
    return names or ["default"]


def _document(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except (OSError, ValueError) as error:
        raise InputError(f"The file of secrets {file} cannot be read: {reason(error)}.") from error


class _Settings:
    """The file of secrets as it was last read whole.

    A slip in it, half a save, a file that is moved away: what was read before stays, and so nobody is let in
    whom a whole file does not let in. A list of people that was there stays until another list is read.
    Streamlit, which reads the same file for the log-in itself, is given what stays, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamps: object = None
        self._held: dict[str, Any] = {}
        self._given = False

    def read(self) -> dict[str, Any]:
        """Secrets of this moment; {} where there are none. A look at the file's time a call."""
        files = tuple(str(file) for file in st.get_option("secrets.files") or ())
        stamps = tuple((file, _stamp(file)) for file in files)
        with self._lock:
            if stamps != self._stamps:
                self._take(files)
                self._stamps = stamps
            elif self._given and not streamlit_private.has_secrets():
                self._give()
            return self._held

    def _take(self, files: Sequence[str]) -> None:
        guarded = "auth" in self._held
        problem = ""
        document: dict[str, Any] = {}
        for file in files:
            try:
                document |= _document(Path(file)) if Path(file).suffix == ".toml" else {}
            except InputError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    problem = str(error)
        if guarded and not problem:
            try:
                _check_document(document, _where(files[-1]))
            except InputError as error:
                problem = str(error)
        if problem:
            _log.error("%s What was read before holds: nobody else is let in.", problem)
            # nothing whole was ever read: nobody can log in until it is
            self._held = self._held or {"auth": {}}
        else:
            before = self._held.get("workbench", {}).get("people") if guarded else None
            if before and not document.get("workbench", {}).get("people"):
                _log.warning(
                    'The log-in names no people any more: those named before stay. ["*"] is everybody.'
                )
                document = {**document, "workbench": {**document.get("workbench", {}), "people": before}}
            self._held = document
        if (problem and guarded) or self._given:
            self._give()

    def _give(self) -> None:
        secrets: dict[str, Any] = {
            name: self._held[name] for name in ("auth", "workbench") if name in self._held
        }
        streamlit_private.give_secrets(secrets)
        self._given = True


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


_SETTINGS = _Settings()


def _secrets() -> Mapping[str, Any]:
    return _SETTINGS.read()


def limit(name: str) -> int | None:
    """A limit for each person, as the file of the log-in has it; None where there is none.

    Args:
        name: one of `LIMITS`.
    """
    if not required():
        return None
    quota = _secrets().get("workbench", {}).get(name)
    return quota if isinstance(quota, int) and quota > 0 else None


# --------------------------------------------------------------------------- who it is


def required() -> bool:
    """True if people must log in."""
    # asked first: the file is looked at with every question
    return _secrets().get("auth") is not None or _LOCKED


def may_name_paths() -> bool:
    """True if whoever sits here may type a path of the server's machine.

    Only where nobody else can sit here: there is no log-in and the server listens on loopback alone.
    """
    return not required() and str(st.get_option("server.address") or "") in LOOPBACK


def of_page() -> Person | None:
    """The person who is logged in at this page; None for nobody, and without a log-in."""
    return person_of(st.user.to_dict()) if required() and hasattr(st, "user") else None


def key_of_page() -> str:
    """Key of who is logged in where the page's script runs for; "" for nobody."""
    person = of_page()
    return "" if person is None else person.key


def is_encrypted() -> bool:
    """True if people reach the app by https, as the log-in says."""
    return _origin().startswith("https:")


def of_cookies(cookies: Mapping[str, str]) -> Person | None:
    """The person who sent a request, by the cookie that the log-in gave them.

    Args:
        cookies: of the request.
    """
    signed = streamlit_private.signed_user(cookies)
    try:
        claims = json.loads(signed or b"null")
    except ValueError:
        return None
    is_valid = isinstance(claims, dict) and claims.get("origin") == _origin()
    return person_of(claims) if is_valid else None


def person_of(claims: Mapping[str, Any]) -> Person | None:
    """The person behind what a provider says; None for nobody, or somebody who is not on the list."""
    subject = str(claims.get("sub") or "")
    if claims.get("is_logged_in") is not True or not subject:
        return None
    key = f"{claims.get('iss') or claims.get('provider') or ''} {subject}"
    if len(key) > 200:
        key = hashlib.sha256(key.encode()).hexdigest()
    email = str(claims.get("email") or "")
    # an address that the provider itself does not vouch for is anybody's; some say so in words
    vouched = claims.get("email_verified") in (True, "true", None)
    person = Person(key, "", address=email.lower() if vouched else "")
    if not required() or not who_may(person, None, "use"):
        return None
    name, address = _KNOWN.get(key, ("", ""))
    if not name or address != person.address:
        full_name = str(claims.get("name") or claims.get("preferred_username") or email or subject)
        name = Store.open().people.known_as(key, full_name, email or subject, person.address)
        _KNOWN[key] = name, person.address
    return replace(person, name=name)


def of_key(key: str, name: str) -> Person | None:
    """The person whom a key of the API stands for; None for one that was made without a log-in.

    Args:
        key: what the log-in knows them by.
        name: what their events carry.
    """
    if not key:
        return None
    return Person(key, name, address=Store.open().people.address_of(key))


def _listed(address: str) -> bool:
    """True if [workbench] people names an address; without a list, whoever the provider knows."""
    if not _secrets().get("auth"):
        return False  # nothing whole was ever read
    patterns = _secrets().get("workbench", {}).get("people", [])
    if not patterns:
        return True
    return any(fnmatch.fnmatchcase(address, str(pattern).lower()) for pattern in patterns if address)


def _origin() -> str:
    auth = _secrets().get("auth") or {}
    parts = urlsplit(str(auth.get("redirect_uri", "")))
    return f"{parts.scheme}://{parts.netloc}"


# --------------------------------------------------------------------------- what they may open


class NotYoursError(InputError):
    """A project that is not there, or that the person may not open: which of the two is not said."""


def who_may(person: Person | None, project: ProjectSummary | str | None, act: Act) -> bool:
    """True if a person may do something: the one answer behind pages, desk, downloads and API.

    Args:
        person: who asks; None for nobody.
        project: as listed, or its id; None for the server itself.
        act: what they would do.
    """
    if not required():
        return True
    if person is None or not _listed(person.address):
        return False
    if project is None:
        return True
    record = Store.open().summary(project) if isinstance(project, str) else project
    if record is None or not record.lets_in(person.key):
        return False
    return act != "change" or record.owner in ("", person.key)


def admit(project: str, person: Person | None) -> None:
    """See that a person may open a project.

    Args:
        project: its id.
        person: who asks; None for nobody.

    Raises:
        NotYoursError: they may not, or there is none.
    """
    if who_may(person, project, "open"):
        return
    if person is not None and not who_may(person, None, "use"):
        raise NotYoursError(f"{person.name} may not use this server.")
    raise NotYoursError("There is no such project here, or it is not shared with you.")


def may_change(record: ProjectSummary) -> bool:
    """True if they may delete a project or say who else may open it: it is theirs, or nobody's."""
    return not required() or who_may(of_page(), record, "change")


# --------------------------------------------------------------------------- the page


class Entrance(Layer):
    """ASGI middleware: what is not a page (pictures, downloads, uploads, the desk) is for who is logged in.

    Pages come over the socket, and their script asks for the log-in itself. Programs show a key instead.
    """

    _INSIDE = ("/media/", "/_stcore/upload_file", "/_stcore/metrics", "/api/")
    _PROGRAMS = "/api/v1/"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, or answer 403."""
        # asked of sockets as well: what the log-in's file says is looked at before Streamlit reads a cookie
        guarded = scope["type"] in ("http", "websocket") and required()
        if not guarded or scope["type"] != "http" or not self._inside(str(scope.get("path", ""))):
            await self.app(scope, receive, send)
            return

        person = await run_in_threadpool(of_cookies, HTTPConnection(scope).cookies)
        if not who_may(person, None, "use"):
            answer = JSONResponse({"why": "You are not logged in any more: open this page anew."}, 403)
            await answer(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _inside(self, path: str) -> bool:
        below = below_base(path)
        return below.startswith(self._INSIDE) and not below.startswith(self._PROGRAMS)


def page() -> None:
    """Page for somebody who has not logged in."""
    auth = _secrets().get("auth") or {}
    with st.container(horizontal_alignment="center"), st.container(key="log-in", width=420):
        st.title("Workbench")
        if st.user.to_dict().get("is_logged_in"):
            account = str(st.user.to_dict().get("email") or st.user.to_dict().get("name") or "somebody")
            st.error(f"{verbatim(account, 80)} may not use this server.", icon=":material/lock:")
            if st.button("Log in as somebody else", key="log-out"):
                st.logout()
            return
        if not auth:
            st.error(
                "The file of the log-in cannot be read: nobody is let in until it can.",
                icon=":material/lock:",
            )
            return
        if st.query_params.pop(DENIED, None):
            st.session_state[DENIED] = True
        if st.session_state.get(DENIED):
            st.warning(
                "You are not logged in: the log-in was broken off, or refused by whoever keeps your account.",
                icon=":material/lock:",
            )
        st.markdown("Log in to see your projects and to label.")
        for name in providers(auth):
            words = "Log in" if name == "default" else f"Log in with {name.capitalize()}"
            if st.button(words, key=f"log-in-{name}", type="primary", icon=":material/login:"):
                st.login(None if name == "default" else name)


def side() -> None:
    """The name of the person who is logged in, and the way out; for the sidebar."""
    person = of_page()
    if person is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="who", gap="small"):
        st.markdown(f":material/person: {verbatim(person.name, 40)}", width="stretch")
        if st.button("Log out", key="log-out", type="tertiary"):
            st.logout()


COOKIE = "workbench-return"
_SECONDS = 900
_MOST = 1_000
_TARGET = re.compile(r"/[\w-]*(\?[\w=&%.~+*-]*)?", re.ASCII)
"""A page of this server, with what stands behind its path; nothing that leads to another one."""


class WayBack(Layer):
    """ASGI middleware: whoever asked for a page without a log-in comes to it after the log-in.

    Streamlit itself leads everybody to the first page, without the project.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on; the answer keeps the page in a cookie, or leads to the one that was kept."""
        changed = None
        if scope["type"] == "http" and scope["method"] == "GET" and required():
            path, query = below_base(str(scope["path"])), scope.get("query_string", b"").decode("latin-1")
            cookies = HTTPConnection(scope).cookies
            names = dict(parse_qsl(query))
            if path == CALLBACK and ("state" in names or "error" in names):
                changed = _led_back(cookies.get(COOKIE, ""), denied="error" in names)
            elif asks_for_page(scope) and is_page(path) and not await run_in_threadpool(of_cookies, cookies):
                changed = _kept(path, query)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start" and changed is not None:
                headers = headers_of(message)
                changed(message["status"], headers)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, sent)


def _kept(path: str, query: str) -> Callable[[int, MutableHeaders], None]:
    """Change of the headers of a page that is sent: the page's address in a cookie."""
    further = urlencode([(name, value) for name, value in parse_qsl(query) if name != DENIED])
    target = f"{path}?{further}" if further else path

    def changed(status: int, headers: MutableHeaders) -> None:
        if status == 200:
            headers.append("set-cookie", _cookie(target if target != "/" and len(target) <= _MOST else ""))

    return changed


def _led_back(page: str, *, denied: bool) -> Callable[[int, MutableHeaders], None]:
    """Change of the headers of the answer that ends a log-in: it leads to the page that was kept."""
    target = unquote(page)
    target = target if _TARGET.fullmatch(target) else "/"
    if denied:
        target += f"{'&' if '?' in target else '?'}{DENIED}=denied"

    def changed(status: int, headers: MutableHeaders) -> None:
        if status // 100 != 3:
            return
        headers["location"] = from_root(target)
        if not denied:
            headers.append("set-cookie", _cookie(""))

    return changed


def _cookie(target: str) -> str:
    """The cookie that keeps an address, or with "" lets go of it."""
    secure = "; Secure" if is_encrypted() else ""
    seconds = _SECONDS if target else 0
    words = f"{COOKIE}={quote(target, safe='')}; Max-Age={seconds}; Path={from_root('/')}"
    return f"{words}; HttpOnly; SameSite=Lax{secure}"
