import itertools
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from benchmarks.cards import image_card, scatter_card
from benchmarks.lessons import small
from workbench.figures import theme
from workbench.figures.adversarial import score_histograms
from workbench.figures.curves import learning_curve, learning_curves, measured, sparkline, summarise
from workbench.figures.maps import Regions, class_probabilities, pool_map, thinned
from workbench.figures.parts import magnified, sheet, tile
from workbench.figures.ranks import critical_difference_diagram
from workbench.figures.reliability import confidence_histogram, reliability_diagram
from workbench.metrics import ReliabilityTable, share_interval

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB seen with a missing cone
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    to_cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return to_lab @ np.cbrt(np.clip(to_cones @ np.clip(rgb, 0, 1), 0, None))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_class_colours_stay_apart_for_every_eye(deficiency: str) -> None:
    seen = {c: oklab(DEFICIENCIES[deficiency] @ linear(c)) for c in theme.CATEGORICAL}
    worst = min((np.linalg.norm(seen[a] - seen[b]), a, b) for a, b in itertools.combinations(seen, 2))
    first = min(
        (np.linalg.norm(seen[a] - seen[b]), a, b) for a, b in itertools.combinations(theme.CATEGORICAL[:5], 2)
    )
    # 0.02 is about what can just be told apart
    assert worst[0] > 0.06, worst
    assert first[0] > 0.1, first


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_colours_of_an_order_darken_for_every_eye_and_are_those_of_no_class(deficiency: str) -> None:
    stops = [oklab(DEFICIENCIES[deficiency] @ linear(colour)) for _, colour in theme.ORDER]
    light = [stop[0] for stop in stops]
    assert all(a - b > 0.1 for a, b in itertools.pairwise(light)), light
    classes = [oklab(DEFICIENCIES[deficiency] @ linear(c)) for c in theme.CATEGORICAL[:3]]
    assert min(np.linalg.norm(a - b) for a in stops for b in classes) > 0.04


@pytest.mark.parametrize("ground", ["#FFFFFF", "#12161C"])
def test_class_colours_stand_out_from_the_page(ground: str) -> None:
    weights = np.array([0.2126, 0.7152, 0.0722])

    def contrast(colour: str) -> float:
        light, dark = sorted((weights @ linear(colour), weights @ linear(ground)), reverse=True)
        return float((light + 0.05) / (dark + 0.05))

    assert min(contrast(c) for c in theme.CATEGORICAL) > 2.0


def test_no_two_of_forty_classes_look_alike() -> None:
    looks = {(theme.class_colour(c), theme.class_symbol(c)) for c in range(40)}
    assert len(looks) == 40


def test_the_band_is_the_t_interval_over_seeds() -> None:
    values = [0.30, 0.20, 0.25]
    curve = summarise("vr", [([10, 11], [v, v / 2]) for v in values])
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert curve.labels.tolist() == [10, 11]
    assert curve.mean[0] == pytest.approx(0.25)
    assert (curve.low[0], curve.high[0]) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_unfinished_runs_count_as_far_as_they_got() -> None:
    curve = summarise("vr", [([1, 2], [0.4, 0.2]), ([1, 2], [0.3, 0.4]), ([1], [0.2]), ([], [])])
    assert curve.runs.tolist() == [3, 2]
    assert curve.mean.tolist() == pytest.approx([0.3, 0.3])
    assert np.isfinite(curve.low[0]) and np.isnan(curve.low[1])


def test_missing_values_are_left_out_of_a_curve() -> None:
    curve = summarise("vr", [([1, 2, 3], [0.4, None, float("nan")])])
    assert curve.labels.tolist() == [1]


def test_a_curve_of_one_fit_counts_whole_labels() -> None:
    marks = [("one model", 20.0), ("another model", 21.0)]
    marked = learning_curve([summarise("you", [([12, 40], [0.2, 0.1])])], marks=marks)
    assert len({note.yshift for note in marked.layout.annotations}) == 2, "words over each other"
    one = learning_curve([summarise("you", [([12], [0.2])])])
    assert one.layout.xaxis.dtick == 1 and tuple(one.layout.xaxis.range) == (11.5, 12.5)
    assert learning_curve([summarise("you", [([2, 40], [0.2, 0.1])])]).layout.xaxis.dtick is None


def test_the_learning_curve_draws_the_baseline_first_and_names_n() -> None:
    ours = summarise("variation-ratio", [([1, 2], [0.4, 0.2]), ([1, 2], [0.5, 0.3]), ([1, 2], [0.45, 0.25])])
    random = summarise("random", [([1, 2], [0.5, 0.4])], baseline=True)
    fig = learning_curve([ours, random])
    named = [t for t in fig.data if t.showlegend is not False]
    assert [t.name for t in named] == ["random", "variation-ratio · n = 3"]
    assert named[0].line.color == theme.NEUTRAL
    assert named[1].y.tolist() == pytest.approx([0.45, 0.25])
    band = next(t for t in fig.data if t.fill == "toself")
    assert min(band.y) >= 0
    # a few points would be marked along its edges
    assert band.mode == "lines"


def test_side_by_side_a_name_has_one_look_and_one_entry() -> None:
    runs = [([1, 2], [0.4, 0.2]), ([1, 2], [0.5, 0.3]), ([1, 2], [0.45, 0.25])]
    ours, other = summarise("vr", runs), summarise("margin", runs)
    random = summarise("random", runs[:1], baseline=True)
    fig = learning_curves([("digits", [ours, random]), ("a <b>", [other, ours, random]), ("c", [])], across=2)
    named = [t for t in fig.data if t.showlegend is not False]
    assert [t.name for t in named] == ["random", "vr", "margin"]
    lines = [t for t in fig.data if t.fill != "toself"]
    assert len(lines) == 5
    assert len({t.line.color for t in lines if t.name == "vr"}) == 1
    assert {t.line.color for t in lines if t.name == "random"} == {theme.NEUTRAL}
    assert lines[0].xaxis != lines[-1].xaxis
    words = [a.text for a in fig.layout.annotations]
    assert words == ["digits · n = 3", "a &lt;b&gt; · n = 3", "c"]
    assert "No round" in learning_curves([("c", [])]).layout.annotations[0].text


NAN = float("nan")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: learning_curves([]), "No round has finished yet"),
        (lambda: learning_curve([measured("m", [3, 4], [NAN, 0.2], [20, 20])]), "m"),
        (lambda: learning_curve([measured("m", [3], [NAN], [20])]), "No round"),
        (lambda: score_histograms([0.1, NAN, np.inf], [0.3, 0.4], 0.2, score="s"), "n = 1"),
        (lambda: score_histograms([NAN], [np.inf], 0.2, score="s"), "No image to score"),
        (lambda: critical_difference_diagram(["a", "gone", "b"], [1.0, NAN, 2.0], 0.5), "b 2.00"),
        (lambda: small(theme.figure().add_scatter(x=[NAN], y=[NAN])), "<rect"),
        (lambda: scatter_card(np.array([[NAN, 1.0], [0.0, 1.0]]), np.array([0, 1])), "<circle"),
        (lambda: scatter_card(np.empty((0, 2)), np.empty(0)) + image_card([]), "<svg"),
    ],
)
def test_what_is_missing_or_no_number_is_left_out_of_every_figure(draw: Any, words: str) -> None:
    fig = draw()
    text = fig if isinstance(fig, str) else fig.to_json()
    assert words in text and "nan" not in text.lower() and "gone" not in text


def test_a_wide_band_does_not_flatten_the_lines() -> None:
    wild = summarise("vr", [([1, 2], [0.1, 0.2]), ([1, 2], [0.9, 0.3]), ([1, 2], [0.2, 0.25])])
    assert wild.high[0] > 1.2
    assert learning_curve([wild]).layout.yaxis.range[1] <= 1.6 * wild.mean.max()


def test_a_curve_without_points_says_so() -> None:
    fig = learning_curve([summarise("vr", [])])
    assert not fig.data and "No round" in fig.layout.annotations[0].text


def test_bars_put_the_most_probable_class_first_and_sum_the_rest() -> None:
    p = np.array([0.02, 0.45, 0.1, 0.2, 0.05, 0.03, 0.15])
    bar = class_probabilities(p, list("abcdefg")).data[0]
    assert list(bar.customdata) == ["b", "d", "g", "c", "e", "2 others"]
    assert bar.x[-1] == pytest.approx(0.05)
    assert sum(bar.x) == pytest.approx(1.0)
    # beside the bar, with room beside the longest: within a bar ink of one theme is not read
    long = class_probabilities(np.array([0.99, 0.01]), list("ab"))
    assert bar.textposition == long.data[0].textposition == "outside" and long.layout.xaxis.range[1] > 1.3


def test_names_too_long_to_stand_beside_their_bars_stand_above_them() -> None:
    names = ["card_payment_not_recognised", "card_payment_fee_charged", "ok"]
    fig = class_probabilities(np.array([0.5, 0.3, 0.2]), names)
    above = [note.text for note in fig.layout.annotations]
    assert above == list(fig.data[0].customdata) and len(set(above)) == 3
    assert not class_probabilities(np.array([0.5, 0.5]), ["yes", "no"]).layout.annotations


def test_bars_keep_one_left_over_class_by_name() -> None:
    bar = class_probabilities(np.array([0.4, 0.2, 0.15, 0.1, 0.08, 0.07]), list("abcdef")).data[0]
    assert list(bar.customdata) == list("abcdef")


def test_bars_escape_a_class_called_script_and_survive_twins() -> None:
    bar = class_probabilities(np.array([0.6, 0.4]), ["<script>", "<script>"]).data[0]
    assert list(bar.customdata) == ["&lt;script&gt;"] * 2
    assert list(bar.y) == [0, 1]


def test_bars_without_probabilities_say_so() -> None:
    assert not class_probabilities(np.array([np.nan, np.nan]), ["a", "b"]).data


def map_arrays(n: int = 30):
    rng = np.random.default_rng(0)
    labels = np.full(n, -1)
    labels[:4] = [0, 1, 1, 2]
    return rng.normal(size=(n, 2)), rng.random(n), labels


def test_the_map_marks_labelled_items_by_class_and_colours_the_rest() -> None:
    points, values, labels = map_arrays()
    fig = pool_map(
        points,
        values=values,
        measure="Variation ratio",
        classes=["a", "b", "c"],
        labels=labels,
        asked=[7],
        next_item=9,
    )
    by_name = {t.name: t for t in fig.data}
    assert len(by_name["not labelled"].x) == 26
    np.testing.assert_allclose(by_name["not labelled"].marker.color, values[4:])
    assert [row[0] for row in by_name["b"].customdata] == [1, 2]
    assert by_name["a"].marker.symbol != by_name["b"].marker.symbol
    assert by_name["asked now"].customdata[0][0] == 7
    assert by_name["next question"].customdata[0][0] == 9 and by_name["next question"].marker.symbol == "star"


def test_a_class_is_named_among_its_items_and_none_looks_like_the_next_question() -> None:
    points, _, labels = map_arrays()
    labels[:12] = np.repeat([0, 1, 2], [6, 5, 1])
    points[:6] = [[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5], [0.5, 9]]
    fig = pool_map(points, classes=["a", "b", "c"], labels=labels, next_item=20)
    at = {one.text: (one.x, one.y) for one in fig.layout.annotations}
    assert at["<b>a</b>"] == (0.5, 0.5) and "<b>b</b>" in at and "<b>c</b>" not in at
    assert "star" not in {theme.class_symbol(code) for code in range(40)}


def test_names_of_classes_that_lie_together_stand_above_each_other() -> None:
    points = np.zeros((20, 2))
    points[15:] = [[9, 9], [9, 8], [8, 9], [9, 9], [9, 9]]
    labels = np.repeat([0, 1, 2, 3], 5)
    fig = pool_map(points, classes=["a", "b", "c", "far"], labels=labels)
    shifts = {note.text: note.yshift for note in fig.layout.annotations}
    assert len({shifts[f"<b>{name}</b>"] for name in "abc"}) == 3
    assert shifts["<b>far</b>"] == shifts["<b>a</b>"]


def test_a_name_stands_over_no_other_that_was_moved() -> None:
    # of a row of three the outer two have room beside each other, and so has the one above
    middles = np.array([[0.0, 0.0], [0.1, 0.0], [0.2, 0.0], [0.1, 0.05], [1.0, 1.0]])
    points, labels = np.repeat(middles, 3, axis=0), np.repeat(np.arange(5), 3)
    fig = pool_map(points, classes=list("abcde"), labels=labels, height=620)
    names = [note for note in fig.layout.annotations if note.text in {f"<b>{name}</b>" for name in "abcde"}]
    heights = [500 * note.y + note.yshift for note in names]
    for i, j in itertools.combinations(range(5), 2):
        assert abs(names[i].x - names[j].x) >= 0.16 or abs(heights[i] - heights[j]) >= 19


def test_every_point_of_the_map_carries_its_item() -> None:
    points, values, labels = map_arrays()
    fig = pool_map(points, values=values, classes=list("abc"), labels=labels)
    items = sorted(int(row[0]) for trace in fig.data for row in trace.customdata)
    assert items == list(range(30))


def test_the_map_s_hover_has_the_details_and_a_selection_can_be_taken_back() -> None:
    points, values, labels = map_arrays()
    details = [f"row {i}" for i in range(30)]
    fig = pool_map(points, values=values, labels=labels, classes="abc", details=details, revision=3)
    assert all(row[4] == f"row {row[0]}" for t in fig.data for row in t.customdata)
    assert "customdata[4]" in fig.data[0].hovertemplate and fig.layout.selectionrevision == 3
    # what is not selected keeps its strength
    assert all(t.unselected.marker.opacity == (t.marker.opacity or 1) for t in fig.data)
    assert fig.layout.margin.t >= 70, "the tool bar has a place of its own above the legend"


def test_the_map_draws_regions_under_the_points() -> None:
    points, _, labels = map_arrays()
    grid = np.linspace(-1, 1, 4)
    regions = Regions(grid, grid, np.arange(16).reshape(4, 4) % 3, np.full((4, 4), 0.7))
    fig = pool_map(points, classes=["a", "b", "<i>"], labels=labels, regions=regions)
    assert fig.data[0].type == "heatmap"
    assert fig.data[0].customdata[0, 2, 0] == "&lt;i&gt;"


def test_a_small_share_is_not_said_to_be_none() -> None:
    points = np.random.default_rng(0).normal(size=(3, 2))
    fig = pool_map(points, values=np.array([0.0, 0.004, 0.012]), measure="Doubt", share=True)
    (drawn,) = fig.data
    assert [row[2] for row in drawn.customdata] == ["0 %", "<1 %", "1 %"]
    assert drawn.marker.colorbar.tickformat == ".3~%"
    # where the largest doubt is 1 %, it has not the colour of a large one
    assert (drawn.marker.cmin, drawn.marker.cmax) == (0.0, 0.25)


def test_a_curve_without_an_error_ends_at_its_interval() -> None:
    fig = learning_curve([measured("error", [10, 20], [0.0, 0.0], [20, 40])], measure="Error")
    assert 0.15 < fig.layout.yaxis.range[1] < 0.2, "16 % of 20 items, not 100 %"


def test_a_map_of_constant_or_missing_measures_is_drawn() -> None:
    points, _, _ = map_arrays()
    for values in (np.zeros(30), np.full(30, np.nan)):
        fig = pool_map(points, values=values, measure="Entropy")
        assert fig.data[0].marker.cmax > fig.data[0].marker.cmin


def test_big_maps_are_thinned_keep_labelled_items_and_say_so() -> None:
    n = 50_000
    labels = np.full(n, -1)
    labels[12_345] = 0
    fig = pool_map(np.zeros((n, 2)), labels=labels, classes=["a"])
    drawn = sum(len(t.x) for t in fig.data)
    assert drawn <= theme.THIN_FROM + 1
    assert [int(r[0]) for r in fig.data[-1].customdata] == [12_345]
    assert any("of 50,000 items drawn" in a.text for a in fig.layout.annotations)
    assert {t.type for t in fig.data} == {"scattergl"}
    assert thinned(10, np.array([3])).tolist() == list(range(10))


def test_a_map_of_200_classes_marks_what_is_labelled_and_names_none() -> None:
    points, labels = np.random.default_rng(0).normal(size=(400, 2)), np.repeat(np.arange(200), 2)
    classes = [f"species {i}" for i in range(200)]
    fig = pool_map(points, classes=classes, labels=labels)
    # one kind of mark for all: 200 of them would stand in the map's place and could not be told apart
    assert [t.name for t in fig.data if t.showlegend is not False] == ["labelled, of 200 classes"]
    assert len(fig.data) == 1 and fig.data[0].customdata[3][3] == "species 1"
    assert "point at an item for its class" in fig.layout.annotations[0].text
    few = pool_map(points, classes=classes, labels=np.where(labels < 10, labels, -1))
    assert few.layout.showlegend and sum(t.showlegend is not False for t in few.data) == 10


def test_a_constant_measure_has_a_bar_around_its_value() -> None:
    marker = pool_map(np.zeros((5, 2)), values=np.full(5, 0.5), measure="m", classes=("a",)).data[0].marker
    assert (marker.cmin, marker.cmax) == (0.45, 0.55)


def test_an_empty_map_says_so() -> None:
    assert not pool_map(np.zeros((0, 2))).data


BINS = ReliabilityTable(
    np.array([0, 1, 2]) / 3,
    np.array([1, 2, 3]) / 3,
    np.array([3, 0, 32]),
    np.array([7, 0, 8]),
    np.array([0.2, np.nan, 0.9]),
    0.76,
)


NONE = np.zeros(3, dtype=int)


def test_the_reliability_diagram_leaves_empty_bins_out_and_prints_n() -> None:
    fig = reliability_diagram(BINS)
    assert list(fig.data[1].x) == [0.2, 0.9]
    assert "n = 50" in fig.layout.xaxis.title.text
    assert not reliability_diagram(replace(BINS, right=NONE, wrong=NONE)).data
    assert fig.layout.xaxis.range[1] == 1.04, "the largest circle is drawn whole"


def test_no_line_leads_to_a_bin_of_a_few_items() -> None:
    fig = reliability_diagram(replace(BINS, right=np.array([1, 0, 32]), wrong=np.array([3, 0, 8])))
    assert list(fig.data[1].x) == [0.9] and list(fig.data[2].x) == [0.2]
    assert fig.data[2].mode == "markers", "one item of one says nothing"
    alone = reliability_diagram(replace(BINS, right=np.array([1, 0, 2]), wrong=np.array([3, 0, 1])))
    assert list(alone.data[1].x) == [0.2, 0.9], "where all are few, all are drawn"


def test_reliability_bars_end_where_the_interval_does() -> None:
    fig = reliability_diagram(BINS, event="<b>")
    bars = fig.data[1].error_y
    ends = [share_interval(3, 10), share_interval(32, 40)]
    assert np.allclose(bars.array, [end.high - end.value for end in ends])
    assert np.allclose(bars.arrayminus, [end.value - end.low for end in ends])
    assert reliability_diagram(BINS, bars=False).data[1].error_y.array is None
    assert fig.layout.yaxis.title.text == "Share that is &lt;b&gt;"


def test_the_confidence_histogram_stacks_right_and_wrong() -> None:
    ends = np.array([0.0, 0.5, 1.0])
    sure = np.array([0.4, 0.95])
    bins = ReliabilityTable(ends[:-1], ends[1:], np.array([1, 7]), np.array([2, 1]), sure, 0.9)
    fig = confidence_histogram(bins)
    assert [list(bar.y) for bar in fig.data] == [[1, 7], [2, 1]] and fig.layout.barmode == "stack"
    assert sorted(shape.x0 for shape in fig.layout.shapes) == [8 / 11, 0.9]
    words = " ".join(a.text for a in fig.layout.annotations)
    assert "72.7 %" in words and "90 %" in words
    assert not confidence_histogram(replace(BINS, right=NONE, wrong=NONE)).data


def test_a_sparkline_needs_two_points_and_falls_when_the_error_falls() -> None:
    assert sparkline([]) is None and sparkline([0.3]) is None and sparkline([0.3, float("nan")]) is None
    svg = sparkline([0.4, 0.2, 0.1], width=100, height=20)
    assert svg is not None
    line = ElementTree.fromstring(svg).find("{http://www.w3.org/2000/svg}polyline")
    assert line is not None
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights == sorted(heights)
    assert sparkline([0.0, 0.0]) is not None


def test_a_sparkline_of_a_long_project_keeps_its_peaks_and_stays_short() -> None:
    values = np.full(10_000, 0.2)
    values[[0, 1, 4321, 9999]] = 0.5, 0.9, 1.0, 0.1
    svg = sparkline(values.tolist(), width=100, height=20)
    assert svg is not None and len(svg) < 10_000
    line = ElementTree.fromstring(svg).find("{http://www.w3.org/2000/svg}polyline")
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert points[0][1] == 15 - 10 * 0.5 and points[-1][1] == 15 - 10 * 0.1
    assert min(points, key=lambda point: point[1]) == pytest.approx((5 + 90 * 0.4321, 5), abs=0.1)


def test_an_image_is_magnified_in_sharp_pixels() -> None:
    image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    sharp = magnified(image, 10)
    assert sharp.shape == (8, 12) and (sharp[::4, ::4] == image).all()
    assert magnified(np.zeros((4, 4, 3), np.uint8), 3).shape == (4, 4, 3)


def test_tiles_keep_the_brightness_and_follow_a_ramp() -> None:
    assert (tile(np.full((5, 5), 90, np.uint8), 50) == 90).all()
    ramp = np.tile(np.linspace(0, 200, 6).astype(np.uint8), (4, 1))
    big = tile(ramp, 60)[30, :, 0].astype(int)
    assert (np.diff(big[15:45]) >= 0).all()
    at = np.arange(25, 35)
    np.testing.assert_allclose(big[25:35], np.interp(at, np.arange(6) * 10 + 4.5, ramp[0]), atol=1)


def test_images_of_any_sizes_and_modes_share_a_sheet_of_tiles() -> None:
    wide, grey = np.full((20, 60, 3), 9, np.uint8), np.full((4, 4), 200, np.uint8)
    clear = np.full((9, 90, 4), 7, np.uint8)
    tiles = [tile(wide, 30), tile(grey, 30), tile(clear, 30)]
    assert (tiles[0][12, 15] == 9).all() and (tiles[0][2, 15] == 128).all() and (tiles[1] == 200).all()
    assert (tiles[2][15, 15] == 7).all(), "transparency is left out"
    assert (tile(np.full((2, 500), 250, np.uint8), 30) == 250).any(axis=0).all(), "a thin one is there"
    assert sheet(tiles, 2).shape == (61, 61, 3)


def test_sheets_put_images_side_by_side() -> None:
    out = sheet([np.full((2, 2), v, np.uint8) for v in (10, 20, 30)], columns=2)
    assert out.shape == (5, 5)
    assert (out[0, 0], out[0, 3], out[3, 0], out[3, 3], out[2, 2]) == (10, 20, 30, 255, 255)
    with pytest.raises(ValueError, match="one shape"):
        sheet([np.zeros((2, 2)), np.zeros((3, 3))], 2)


def test_a_figure_for_a_file_has_its_own_ground() -> None:
    fig = learning_curve([summarise("vr", [([1, 2], [0.4, 0.2])])])
    assert fig.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert theme.for_export(fig).layout.paper_bgcolor == "#FFFFFF"
    assert theme.for_export(fig).layout.font.color == "#1C2530"


def test_a_small_picture_has_the_shapes_of_every_panel_and_no_words():
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    fig = make_subplots(1, 3, subplot_titles=("a", "b", "c"))
    fig.add_trace(go.Bar(x=[1, 2, 3], y=[1, 0, 2], marker_color="#112233"), 1, 1)
    fig.add_trace(go.Scatter(x=[1, 2, None], y=[1, 2, 3], mode="lines+markers", line_color="#445566"), 1, 2)
    scale = [[0, "#000000"], [1, "#ffffff"]]
    fig.add_trace(go.Heatmap(x=[0, 1], y=[0, 1], z=[[0, 1], [1, 0]], colorscale=scale), 1, 3)
    svg = small(fig)
    assert svg.count('fill="#112233"') == 2, "a bar of no height is not drawn"
    assert svg.count("<polyline") == 1 and svg.count("<circle") == 2 and svg.count("<image") == 1
    assert svg.count('fill="none" stroke="') == 3 + 1 and "<text" not in svg and "nan" not in svg
