"""Figures as files: HTML that needs no network, PNG and SVG where a browser can draw them."""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import Future
from html import unescape
from importlib.util import find_spec
from threading import Thread
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from workbench.csv_writing import csv_text
from workbench.errors import InputError, install_command
from workbench.figures.theme import for_export

SCRIPT = "plotly.min.js"
"""Name of Plotly's script beside figures that share it."""
WIDTH = 900
SECONDS = 60
"""A browser may take so long to start, and as long again for each picture."""


def script() -> str:
    """Plotly's script, to lie beside figures that were made with `shared=True`."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text


def html(fig: go.Figure, name: str, *, shared: bool = False) -> str:
    """A page that shows a figure offline.

    Args:
        fig: any of our figures.
        name: of the file; becomes the id of the figure in the page.
        shared: whether the page finds Plotly (5 MB) as `SCRIPT` beside it instead of within it.

    Returns:
        The page; the same text for the same figure and name.
    """
    page: str = for_export(fig).to_html(
        include_plotlyjs="directory" if shared else True, full_html=True, div_id=re.sub(r"\W", "-", name)
    )
    return page


def numbers(fig: go.Figure) -> str:
    """The numbers of a figure as CSV: a row a point or a cell, with the name of its line.

    Args:
        fig: any of our figures; images and the tint of bands are left out.

    Returns:
        The text; a name that a spreadsheet would take for a formula begins with a quote.
    """
    rows: list[tuple[Any, ...]] = []
    for trace in fig.data:
        start = (trace.xaxis or "x", unescape(trace.name or ""))
        if trace.type in ("heatmap", "contour"):
            for y, row in zip(trace.y, trace.z, strict=True):
                rows += [(*start, x, y, value) for x, value in zip(trace.x, row, strict=True)]
        elif trace.type != "image" and not ("fill" in trace and trace.fill):
            coloured = "color" in trace.marker and np.ndim(trace.marker.color) == 1
            values = trace.marker.color if coloured else [""] * len(trace.x)
            rows += [(*start, *point) for point in zip(trace.x, trace.y, values, strict=True)]
    return csv_text(("panel", "name", "x", "y", "value"), rows)


def why_no_images() -> str:
    """Why a figure cannot become a PNG or SVG here, in a sentence; empty where it can."""
    if find_spec("kaleido") is None:
        return f"PNG and SVG need the package kaleido: {install_command('kaleido')}"
    from choreographer.browsers.chromium import Chromium

    if Chromium.find_browser(skip_local=False) is None:
        return "PNG and SVG are drawn by Chrome or Chromium, and none was found on this machine."
    return ""


def image(fig: go.Figure, kind: Literal["png", "svg"]) -> bytes:
    """One figure as a picture: see `images`."""
    return images([fig], kind)[0]


def images(figures: Sequence[go.Figure], kind: Literal["png", "svg"]) -> list[bytes]:
    """Figures as pictures, all drawn by one browser; its start takes seconds.

    Args:
        figures: any of ours.
        kind: of file.

    Returns:
        The bytes of each file, on white; twice as many pixels as on screen for a PNG.

    Raises:
        InputError: there is nothing to draw them with, or the browser failed or did not end.
    """
    if reason := why_no_images():
        raise InputError(reason)
    limit = SECONDS * (1 + len(figures))
    pictures: Future[list[bytes]] = Future()

    def draw() -> None:
        try:
            pictures.set_result(asyncio.run(asyncio.wait_for(_drawn(figures, kind), limit)))
        except BaseException as error:  # it goes to whoever waits
            pictures.set_exception(error)

    # a thread of its own, since an event loop may run in this one; a browser that hangs holds up nobody's end
    Thread(target=draw, daemon=True).start()
    try:
        return pictures.result(limit + SECONDS)
    except TimeoutError as error:
        raise InputError(f"The browser drew no picture in {limit} seconds. Try it again.") from error
    except Exception as error:
        # kaleido and the browser behind it fail in many kinds
        raise InputError(f"The browser could not draw this figure: {error}") from error


async def _drawn(figures: Sequence[go.Figure], kind: str) -> list[bytes]:
    import kaleido

    pictures = []
    # without MathJax, which kaleido would fetch from the network
    async with kaleido.Kaleido(n=1, mathjax=False) as browser:
        for figure in map(for_export, figures):
            options = {
                "format": kind,
                "width": figure.layout.width or WIDTH,
                "height": figure.layout.height or 450,
                "scale": 2,
            }
            pictures.append(await browser.calc_fig(figure, opts=options))
    return pictures
