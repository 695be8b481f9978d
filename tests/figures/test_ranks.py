"""Figures of ranks, pairs and times: their data as numbers."""

import numpy as np
import pytest

from workbench.figures import theme
from workbench.figures.ranks import (
    critical_difference_diagram,
    line_panels,
    pairwise_scatter,
    ratio_strip,
    series,
    time_curves,
)
from workbench.metrics import cliques, rank_methods


def test_bars_join_what_is_not_told_apart_and_nothing_twice() -> None:
    assert cliques([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert cliques([4.0, 1.0, 1.5, 2.4], 1.0) == [(0, 1), (1, 2)]
    assert cliques([1.0, 1.1, 1.2], 5.0) == [(0, 2)]
    assert cliques([1.0, 3.0], 1.0) == [] and cliques([1.0, 1.0], float("nan")) == []
    rng = np.random.default_rng(0)
    ranking = rank_methods(rng.random((12, 6)) + np.arange(6) * 0.1, list("abcdef"))
    expected = [
        tuple(ranking.names[i] for i in np.argsort(ranking.mean_ranks)[a : b + 1])
        for a, b in cliques(ranking.mean_ranks, ranking.critical_difference)
    ]
    assert expected == list(ranking.groups)


def test_the_diagram_names_every_method_at_its_rank() -> None:
    fig = critical_difference_diagram(["<b>x", "y", "z"], [2.5, 1.0, 2.5], 0.4)
    named = {t.text.strip(): t.x[0] for t in fig.data if t.mode == "markers+text"}
    assert named == {"&lt;b&gt;x 2.50": 2.5, "y 1.00": 1.0, "z 2.50": 2.5}
    bars = [tuple(t.x) for t in fig.data if t.line.width == 6]
    assert bars == [pytest.approx((2.47, 2.53))]
    assert "0.40" in fig.layout.annotations[0].text
    plain = critical_difference_diagram(["x", "y"], [1.2, 1.8], float("nan"))
    assert not plain.layout.annotations and not [t for t in plain.data if t.line.width == 6]
    assert critical_difference_diagram([], [], 1.0).layout.annotations[0].text == "Nothing to rank yet"


def test_points_lie_where_the_values_are() -> None:
    fig = pairwise_scatter(np.array([0.5, 0.9]), np.array([0.6, 0.8]), ["a", "b"], x="SVM", y="LMGP")
    points = fig.data[1]
    assert list(points.x) == [0.5, 0.9] and list(points.y) == [0.6, 0.8] and list(points.text) == ["a", "b"]
    assert fig.data[0].x == fig.data[0].y
    strip = ratio_strip({"slow": np.array([2.0, 4.0, 8.0])}, ["a", "b", "c"])
    assert strip.data[1].x == (4.0,) and strip.layout.xaxis.type == "log"
    curves = time_curves({"m": (np.array([1.0, 2.0]), np.array([0.4, 0.3]))}, y="Error")
    assert list(curves.data[0].y) == [0.4, 0.3]
    lines = series(
        {"a": (np.array([1, 2]), np.array([3.0, 4.0]))},
        x="x",
        y="y",
        marks={"here": 1.5},
        heights={"all": 0.2},
    )
    assert lines.layout.shapes[0].x0 == 1.5 and lines.layout.shapes[1].y0 == 0.2


def test_the_baseline_of_a_series_is_grey() -> None:
    at = np.arange(3)
    fig = series({"a": (at, np.ones(3)), "random": (at, np.full(3, 2.0))}, x="x", y="y", baseline="random")
    assert fig.data[1].line.dash == "dot" and fig.data[0].line.color != fig.data[1].line.color


def test_panels_share_an_axis_and_bands_are_two_sided() -> None:
    grid = np.linspace(-1, 1, 5)
    p = np.full((5, 2), 0.5)
    fig = line_panels(grid, np.array([0.0, 1.0]), np.array([0, 1]), p, p, 2 * p, p)
    band = next(t for t in fig.data if t.fill == "toself")
    assert max(band.y) == pytest.approx(0.5 + 1.96) and min(band.y) == pytest.approx(0.5 - 1.96)
    assert len(fig.data) == 10


def test_a_method_has_one_colour_whatever_its_rank_and_whether_the_reference_is_drawn() -> None:
    ranked = critical_difference_diagram(["reference", "other"], np.array([2.0, 1.0]), 0.5)
    marks = {t.text.split()[0]: t.marker.color for t in ranked.data if t.mode == "markers+text"}
    [strip, _] = ratio_strip({"other": np.array([2.0])}, ["a"]).data
    assert marks == {"reference": theme.class_colour(0), "other": theme.class_colour(1)}
    assert strip.marker.color == theme.translucent(theme.class_colour(1), 0.5)
