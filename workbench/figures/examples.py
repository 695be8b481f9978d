"""Previews of a page's figures for places that are still empty: drawn beforehand by `make lessons`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

FILE = Path(__file__).with_name("examples.json")
WORDS = "This is an example"


@cache
def _figures() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return figures


def example(name: str) -> go.Figure:
    """An example of a figure, on made numbers and greyed.

    Args:
        name: "comparison", "attack", "error", "doubt", "reliability", "answers", "wrong_labels", or "class"
            for a comparison of random questions with a class's.
    """
    return go.Figure(_figures()[name])
