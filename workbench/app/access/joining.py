"""Ways for others to a page of this server: its address in the network, and a QR code of it."""

import socket
from functools import lru_cache
from urllib.parse import urlencode

import streamlit as st

from workbench.app.access import login
from workbench.errors import install_command

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
    if only_here():
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


def only_here() -> bool:
    """True if other machines cannot reach this server."""
    return str(st.get_option("server.address") or "") in login.LOOPBACK


def network_address() -> str:
    """This machine's address in its network; 127.0.0.1 where it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # an address of no network: only the route is looked up
            probe.connect(("10.255.255.255", 1))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
