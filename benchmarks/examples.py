"""Previews of a page's figures, drawn from made numbers and greyed: `make lessons` stores them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures import theme
from workbench.figures.adversarial import strength_curves
from workbench.figures.curves import Saving, learning_curve, measured, summarise
from workbench.figures.finish import Cost, answers_needed
from workbench.figures.parts import FILE, WORDS
from workbench.figures.reliability import reliability_diagram
from workbench.metrics import ReliabilityTable
from workbench.writing import write_whole


def comparison(height: int = 300, names: tuple[str, str] = ("Random", "A policy that chooses")) -> go.Figure:
    """Two policies' learning curves on made numbers, and the labels that one saves.

    Args:
        height: in pixels.
        names: of random questions, and of what saves labels.

    Returns:
        The figure, greyed.
    """
    rng = np.random.default_rng(0)
    at = [float(n) for n in range(10, 101, 5)]
    curves = []
    for name, speed, baseline in ((names[0], 38.0, True), (names[1], 22.0, False)):
        runs = [
            (at, [0.04 + 0.6 * float(np.exp(-n / speed) + 0.02 * rng.standard_normal()) for n in at])
            for _ in range(10)
        ]
        curves.append(summarise(name, runs, baseline=baseline))
    end = float(curves[0].mean[-1])
    reached = at[int(np.argmax(curves[1].mean <= end))]
    fig = learning_curve(curves, height=height, saving=Saving(end, reached, 100.0, "labels saved"))
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


def error(height: int = 300) -> go.Figure:
    """The error of a project against its labels, on made numbers."""
    at = list(range(5, 81, 5))
    curve = measured("you and the machine", at, [0.03 + 0.6 * math.exp(-n / 20) for n in at], [300] * len(at))
    return greyed(learning_curve([curve], height=height))


def doubt(height: int = 380) -> go.Figure:
    """Items of three groups, those between them in doubt, on made numbers."""
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [2.6, 0.4], [1.2, 2.3]])
    points = np.concatenate([middle + 0.6 * rng.standard_normal((60, 2)) for middle in middles])
    near = -(((points[:, None] - middles) ** 2).sum(axis=2)) / 0.7
    p = np.exp(near - near.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    fig = theme.figure(
        height=height, legend=False, x_options={"visible": False}, y_options={"visible": False}
    )
    fig.add_trace(
        go.Scatter(
            x=points[:, 0],
            y=points[:, 1],
            mode="markers",
            showlegend=False,
            marker={"size": 9, "color": 1 - p.max(axis=1), "colorscale": theme.SEQUENTIAL},
        )
    )
    return greyed(fig).update_traces(opacity=0.7)


def reliability(height: int = 340) -> go.Figure:
    """Share of right predictions against confidence, on made numbers."""
    sure = np.array([0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97])
    count = np.array([6, 9, 14, 22, 35, 70, 160])
    right = np.array([2, 4, 8, 15, 28, 64, 157])
    edges = np.linspace(0.3, 1.0, 8)
    table = ReliabilityTable(
        edges[:-1], edges[1:], right, count - right, sure, float(count @ sure / count.sum())
    )
    return greyed(reliability_diagram(table, bars=False, height=height))


def answers(height: int = 300) -> go.Figure:
    """Answers against the error one can live with, on made numbers."""
    forecasts = ((0.01, 420), (0.03, 250), (0.05, 170), (0.1, 90), (0.2, 45))
    costs = [Cost(error, n, 0.8 * n, min(1.3 * n, 480), 480 - n) for error, n in forecasts]
    return greyed(answers_needed(costs, costs[2], 480, height=height))


def wrong_labels(height: int = 260) -> go.Figure:
    """The chance that each of some labels is right, on made numbers."""
    chance = [0.02, 0.05, 0.09, 0.2, 0.46, 0.71, 0.93]
    fig = theme.figure(
        x="Chance that the label is right",
        height=height,
        legend=False,
        x_options={"range": [0, 1], "tickformat": ".0%"},
        y_options={"autorange": "reversed", "tickvals": []},
    )
    bars = {"color": theme.CATEGORICAL[0], "cornerradius": 4}
    fig.add_trace(go.Bar(x=chance, orientation="h", marker=bars, showlegend=False))
    return greyed(fig)


def greyed(fig: go.Figure) -> go.Figure:
    """A figure faded, with the words that it is an example across it.

    Args:
        fig: is changed.
    """
    fig.update_traces(opacity=0.35, hoverinfo="skip", hovertemplate=None)
    fig.add_annotation(
        text=WORDS,
        x=0.5,
        y=0.55,
        xref="paper",
        yref="paper",
        showarrow=False,
        textangle=-8,
        font={"size": 26, "color": theme.NEUTRAL},
        opacity=0.8,
    )
    return fig


def figures() -> dict[str, go.Figure]:
    """Name -> figure, as pages ask for them."""
    makers = (comparison, attack, error, doubt, reliability, answers, wrong_labels)
    drawn = {make.__name__: make() for make in makers}
    return drawn | {"class": comparison(names=("random questions", "this class"))}


def stored(fig: go.Figure) -> dict[str, Any]:
    """A figure as JSON takes it, its arrays as lists."""
    return {"data": [trace.to_plotly_json() for trace in fig.data], "layout": fig.layout.to_plotly_json()}


if __name__ == "__main__":
    drawn = {name: stored(fig) for name, fig in figures().items()}
    write_whole(FILE, json.dumps(drawn, default=np.ndarray.tolist) + "\n")
