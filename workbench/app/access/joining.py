"""Others on this server: its address and a QR code of it, who labels now, first names of browsers."""

from __future__ import annotations

import socket
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.access import current, login
from workbench.app.words.text import plural, verbatim
from workbench.errors import install_command

if TYPE_CHECKING:
    from workbench.sessions import Session

ROOM, CLASS = "room", "class"
"""In the address: the project that a class labels together, and that this browser is one of the class's."""
NO_CODE = f"The QR code needs the package segno: {install_command('segno')}, then start the app again."


def is_guest() -> bool:
    """True if this page was opened by the code of a room: it shows a desk, and no way to anything else."""
    return bool(st.query_params.get(ROOM)) and st.query_params.get(CLASS) == "1"


def base_address() -> str:
    """The address of this page for students: that of this machine in its network, instead of 127.0.0.1."""
    base = (st.context.url or "").partition("?")[0]
    for host in ("//127.0.0.1", "//localhost"):
        if host in base:
            return base.replace(host, f"//{network_address()}")
    return base


def join(query: dict[str, str], *, page: str = "") -> None:
    """Way of a class to this page: a QR code, the address behind it, and how to serve it.

    Args:
        query: of the address.
        page: another one than this.
    """
    base = base_address()
    if page:
        base = f"{base.rpartition('/')[0]}/{page}"
    address = f"{base}?{urlencode(query)}"
    picture = qr_code(address)
    if picture:
        st.image(picture, width=260, alt=f"QR code of {address}")
    st.code(address, language=None, wrap_lines=True)
    if not picture:
        st.caption(NO_CODE)
    if str(st.get_option("server.address") or "") in login.LOOPBACK:  # other machines cannot reach it
        st.caption(
            "This server answers this machine alone. For a class, stop it and start it with "
            "`workbench app --address 0.0.0.0 --share`, in a network you trust: the address is all that is "
            "needed to get in."
        )


@lru_cache(64)
def qr_code(text: str) -> str:
    """A QR code as SVG; "" without the package that draws it."""
    try:
        import segno
    except ImportError:
        return ""
    svg: str = segno.make(text, error="m", micro=False).svg_inline(
        scale=8, border=3, dark="#000", light="#fff"
    )
    return svg


def network_address() -> str:
    """This machine's address in its network; 127.0.0.1 where it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # an address of no network: only the route is looked up
            probe.connect(("10.255.255.255", 1))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


@st.fragment(run_every=5.0)
def presence_table(shared: Session) -> None:
    """People who are there and their speed; looks again by itself."""
    import pandas as pd

    from workbench.sessions.people import LATELY, people_of

    with shared.log.snapshot():
        people, moment = people_of(shared.state, shared.log.events), datetime.now(UTC)
    if not people:
        return
    n_active = sum(person.last is not None and moment - person.last <= LATELY for person in people)
    st.caption(f"{plural(n_active, 'person', 'people')} answered in the last ten minutes")
    rows = [
        {
            "Person": person.name,
            "Labels": person.labels,
            "A minute": person.a_minute or None,
            "Last answer": person.last,
        }
        for person in people
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="people-now",
        alt="Each person's labels, pace and last answer",
        placeholder="",
        column_config={
            "A minute": st.column_config.NumberColumn(format="%.1f", help="Over the last ten minutes."),
            "Last answer": st.column_config.DatetimeColumn(format="distance"),
        },
    )


def invite(shared: Session) -> None:
    """A QR code and the address of the desk, where whoever opens it gives a name and labels."""
    with st.expander("Others join", icon=":material/qr_code_2:", key="invite"):
        if login.required():
            st.markdown(
                f"Whoever has logged in and may open **{verbatim(shared.project.name, 80)}** joins by this "
                "address; *Share* on Data says who may."
            )
        else:
            st.markdown("Whoever opens this gives a name on the page and is asked about items of their own.")
        join({current.PARAMETER: shared.id}, page="label")


_SEATED = "seated"
_NAME = "first-name"
_LONGEST = 12 * 3600.0  # seconds that a browser counts after it came

_LOCK = threading.Lock()
_SEATS: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
"""(project, name) -> browsers without a name of their own that sit there, and when they came."""


def is_name_wanted(session: Session) -> bool:
    """True if it is open who sits here: a browser without a name, where another one sits or labelled as that.

    A browser whose name was not asked for goes on as it began: what it labels itself is no other's.

    Args:
        session: of whoever sits here, under the name they would have.
    """
    if login.required() or current.is_named() or st.session_state.get(_SEATED) == session.id:
        return False
    # only what was done at a desk tells of a browser
    if any(event.operation and event.annotator == session.annotator for event in session.log.events):
        return True
    if another_sits(session.id, session.annotator, _browser(), time.monotonic()):
        return True
    st.session_state[_SEATED] = session.id
    return False


def another_sits(project: str, name: str, browser: tuple[str, str], now: float) -> bool:
    """True if another browser sits at a project under a name; if none does, this one does from now on.

    Args:
        project: its id.
        name: that both would label under.
        browser: what it tells of itself.
        now: seconds.
    """
    with _LOCK:
        seats = _SEATS.setdefault((project, name), {})
        for seat in [seat for seat, came in seats.items() if now - came > _LONGEST]:
            del seats[seat]
        if seats and browser not in seats:
            return True
        seats[browser] = now
        return False


def _browser() -> tuple[str, str]:
    """The address of a browser and its own name: two that are alike in both are taken for one."""
    return str(st.context.ip_address or ""), str(st.context.headers.get("User-Agent", ""))


def ask_for_name(session: Session) -> None:
    """The question, in the place of the desk."""
    name = verbatim(session.annotator, 30)
    with st.container(border=True, key="who-are-you"):
        st.markdown("## Who are you?")
        st.markdown(
            f"Somebody labels here as **{name}**, in another browser. Under a name of your own, your answers "
            "are yours: Undo takes back your last one, and agreement can be told."
        )
        with (
            st.form("first-name-form", border=False),
            st.container(horizontal=True, vertical_alignment="bottom", key="first-name-line"),
        ):
            st.text_input("Your first name", key=_NAME, max_chars=80, width=280)
            st.form_submit_button("Start labelling", type="primary", on_click=_take_name)
        st.button(
            f"I am {name}",
            key="same-person",
            type="tertiary",
            on_click=current.call_me,
            args=(session.annotator,),
        )


def _take_name() -> None:
    name = str(st.session_state[_NAME]).strip()
    if name:
        current.call_me(name)
