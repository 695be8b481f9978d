"""What a page will show, drawn from made numbers and greyed: for places that are still empty."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures import theme
from workbench.figures.adversarial import strength_curves
from workbench.figures.curves import Saving, learning_curve, summarise

WORDS = "This is an example"


def comparison(height: int = 300) -> go.Figure:
    """Two policies' learning curves on made numbers, and the labels that one saves."""
    rng = np.random.default_rng(0)
    at = [float(n) for n in range(10, 101, 5)]
    made = []
    for name, speed, baseline in (("Random", 38.0, True), ("A policy that chooses", 22.0, False)):
        runs = [
            (at, [0.04 + 0.6 * float(np.exp(-n / speed) + 0.02 * rng.standard_normal()) for n in at])
            for _ in range(10)
        ]
        made.append(summarise(name, runs, baseline=baseline))
    end = float(made[0].mean[-1])
    reached = at[int(np.argmax(made[1].mean <= end))]
    fig = learning_curve(made, height=height, saving=Saving(end, reached, 100.0, "labels saved"))
    return greyed(fig)


def attack(height: int = 300) -> go.Figure:
    """Accuracy and doubt against the strength of an attack, on made numbers."""
    strength = np.linspace(0, 0.3, 7)
    accuracy = {
        "An attack": 0.96 * np.exp(-((strength / 0.12) ** 2)),
        "Random changes": 0.96 - 0.2 * strength,
    }
    doubt = {"An attack": 0.05 + 0.5 * (1 - np.exp(-strength / 0.1)), "Random changes": 0.05 + 0.3 * strength}
    fig = strength_curves(
        strength, accuracy, doubt, score="doubt", controls=["Random changes"], height=height
    )
    return greyed(fig)


def greyed(fig: go.Figure) -> go.Figure:
    """A figure faded, with the words that it is an example across it.

    Args:
        fig: is changed.
    """
    fig.update_traces(opacity=0.35, hoverinfo="skip", hovertemplate=None)
    fig.add_annotation(
        text=WORDS, x=0.5, y=0.55, xref="paper", yref="paper", showarrow=False, textangle=-8,
        font={"size": 26, "color": theme.NEUTRAL}, opacity=0.8,
    )  # fmt: skip
    return fig
