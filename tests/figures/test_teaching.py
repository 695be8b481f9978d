"""Numbers behind the teaching figures."""

import numpy as np
import plotly.graph_objects as go
import pytest

from workbench.figures import maps, parts, teaching, theme
from workbench.figures.parts import enlarge
from workbench.figures.records import CalibrationReport, Scores, SweepCurve, TradeCurve
from workbench.metrics import reliability_table


def words(fig: go.Figure) -> str:
    titles = [axis.title.text or "" for axis in fig.select_xaxes()]
    return " ".join([*(a.text or "" for a in fig.layout.annotations), *titles])


def report(n: int = 200) -> CalibrationReport:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), n)
    y = rng.integers(0, 3, n)
    return CalibrationReport("Model", n, Scores(0.4, 1.5, 0.123), reliability_table(y, p))


def test_noise_curves_draw_means_and_ranges_and_say_what_is_missing() -> None:
    noise = np.array([0.1, 0.5])
    values = np.array([[0.1, 0.3], [0.3, 0.5]])
    fig = teaching.noise_curves(
        [
            SweepCurve("bayes", "Exact", noise, values, values, values),
            SweepCurve("softmax", "Softmax", noise, values, values, values),
        ],
        mark=0.5,
        expected=6,
        n=2000,
    )
    assert len(fig.data) == 6
    assert list(fig.data[0].y) == pytest.approx([0.2, 0.4])
    assert list(fig.data[0].error_y.array) == pytest.approx([0.1, 0.1])
    assert fig.data[0].line.color == theme.NEUTRAL and fig.data[3].line.color == theme.class_colour(0)
    assert "n = 2,000" in words(fig) and "2 of 6 curves" in words(fig) and "2 draws" in words(fig)
    assert len(fig.layout.shapes) == 3, "the mark is in each panel"


@pytest.mark.parametrize(
    "fig",
    [
        teaching.noise_curves([]),
        teaching.calibration_panels([]),
        teaching.probability_maps({}, np.empty(0), np.empty(0)),
        teaching.value_maps({}, np.empty(0), np.empty(0)),
        teaching.asked_maps({}, np.empty((0, 2)), np.empty(0, dtype=np.int64)),
        teaching.class_bands(np.empty(0), np.empty((0, 2)), np.empty((0, 2)), np.empty((0, 2))),
        teaching.agreement({}),
        teaching.trade_offs([]),
    ],
)
def test_without_data_a_figure_says_so(fig: go.Figure) -> None:
    assert not fig.data and len(words(fig)) > 8


def test_calibration_panels_show_shares_that_add_up_and_prints_n() -> None:
    fig = teaching.calibration_panels([report(), report(50)])
    bars = [t for t in fig.data if isinstance(t, go.Bar)]
    assert sum(bars[0].y) + sum(bars[1].y) == pytest.approx(1)
    assert "n = 200" in words(fig) and "n = 50" in words(fig) and "ECE 0.123" in words(fig)


def test_a_blend_is_pure_where_sure_in_the_colours_asked_for() -> None:
    assert teaching.blend(np.eye(3), teaching.PRIMARIES).tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert teaching.blend(np.array([0.5, 0.25, 0.25]), teaching.PRIMARIES).tolist() == [128, 64, 64]
    four = teaching.blend(np.eye(4))
    assert "#{:02X}{:02X}{:02X}".format(*four[1]) == theme.CATEGORICAL[1]
    with pytest.raises(ValueError, match="11 classes"):
        teaching.blend(np.full((2, 11), 1 / 11))


def test_more_than_ten_classes_have_no_colour_map_and_it_says_why() -> None:
    x = np.arange(2.0)
    fig = teaching.probability_maps({"": np.full((2, 2, 11), 1 / 11)}, x, x)
    assert not fig.data and "11 classes" in words(fig)


def test_a_blend_lies_under_the_points_and_stands_upright() -> None:
    x = np.linspace(0, 1, 3)
    image = teaching.blend_image(x, x + 5, np.tile(np.eye(3), (3, 1, 1)))
    fig = maps.pool_map(np.array([[0.5, 5.5], [0.2, 5.1]]), values=np.array([0.1, 0.2]))
    fig = maps.with_blend(fig, image, x, x + 5)
    assert isinstance(fig.data[0], go.Image)
    low, high = fig.layout.yaxis.range
    assert (low, high) == (5, 6) and fig.data[0].y0 == 5 and fig.data[0].dy == pytest.approx(0.5)
    fig = maps.with_inducing(fig, np.array([[0.0, 5.0]]))
    assert "1" in fig.data[-1].name


@pytest.mark.parametrize(
    "titles", [["One", "Two"], ["Variation ratio: which class leads?", "Entropy: what will the label be?"]]
)
@pytest.mark.parametrize("scale", [1.0, 1.3, 2.0])
def test_a_legend_stands_above_the_titles_and_below_the_tool_bar(titles: list[str], scale: float) -> None:
    fig = parts.panels(titles, height=430)
    if scale > 1:
        enlarge(fig, scale)
    lines = max(title.text.count("<br>") + 1 for title in fig.layout.annotations)
    assert lines == 1 + (len(titles[0]) > 20)
    top = fig.layout.margin.t
    # pixels from the panels' upper edge to the legend's lower one, and from there to the figure's
    bottom = (fig.layout.legend.y - 1) * parts.plot_height(430, top)
    assert bottom >= 1.25 * lines * fig.layout.annotations[0].font.size
    assert top - bottom >= 30 + 1.2 * (fig.layout.legend.font.size or 12)


def test_a_scale_below_the_panels_gives_way_to_larger_type() -> None:
    """Two lines of an axis stand above it: what they grow by, it moves down."""
    for scale in (1.3, 2.0):
        fig = parts.panels(["One", "Two"], height=430)
        bar = {"orientation": "h", "y": -0.3, "yanchor": "top"}
        fig.add_heatmap(z=[[0, 1]], colorbar=bar)
        fig.add_heatmap(z=[[0, 1]], colorbar={"y": 0.5})
        tall = parts.plot_height(430, fig.layout.margin.t)
        enlarge(fig, scale)
        assert (-0.3 - fig.data[0].colorbar.y) * tall >= 2 * 1.2 * 12 * (scale - 1)
        assert fig.data[1].colorbar.y == 0.5


def test_a_legend_of_several_rows_has_the_room_and_a_short_one_is_left() -> None:
    for names, grows in ((["A", "B"], False), ([f"a likelihood of some length {i}" for i in range(8)], True)):
        fig = parts.panels(["One", "Two"], height=430)
        for name in names:
            fig.add_scatter(x=[0], y=[0], name=name)
        before = fig.layout.height - fig.layout.margin.t
        gap = (fig.layout.legend.y - 1) * parts.plot_height(430, fig.layout.margin.t)
        parts.clear_of_tools(fig)
        height, top = fig.layout.height, fig.layout.margin.t
        # the panels keep their size and the legend its place above them
        assert height - top == before and (height > 430) == grows
        assert (fig.layout.legend.y - 1) * parts.plot_height(height, top) == pytest.approx(gap)
        assert top - gap >= 30 + (40 if grows else 14)


def test_two_maps_share_axes_scale_and_ids() -> None:
    points = np.arange(12.0).reshape(6, 2)
    labels = np.array([0, -1, 1, -1, -1, -1])
    one, two = (
        maps.pool_map(points, values=np.linspace(0, top, 6), labels=labels, classes="ab", value_range=(0, 1))
        for top in (0.5, 1.0)
    )
    fig = maps.side_by_side(one, two, ("before", "after"))
    assert fig.layout.xaxis2.matches == "x" or fig.layout.xaxis.matches == "x2"
    coloured = [t for t in fig.data if t.marker.colorscale]
    assert [t.marker.cmax for t in coloured] == [1, 1]
    assert coloured[0].marker.showscale is False and coloured[1].marker.showscale is not False
    assert {int(row[0]) for t in fig.data for row in t.customdata} == set(range(6))
    assert sum(bool(t.showlegend) for t in fig.data) == 2, "a class is named once"


def test_two_maps_of_two_scales_have_a_bar_each_below_its_own_map() -> None:
    points = np.arange(12.0).reshape(6, 2)
    one, two = (maps.pool_map(points, values=np.linspace(0, top, 6), measure="m") for top in (0.5, 3.0))
    fig = maps.side_by_side(one, two, ("m", "other"), one_scale=False)
    bars = [t.marker.colorbar for t in fig.data if t.marker.colorscale]
    assert len(bars) == 2 and all(t.marker.showscale is not False for t in fig.data)
    for bar, (low, high) in zip(bars, (fig.layout.xaxis.domain, fig.layout.xaxis2.domain), strict=True):
        assert bar.orientation == "h" and bar.y < 0 and bar.yanchor == "top"
        assert low <= bar.x - bar.len / 2 and bar.x + bar.len / 2 <= high


def test_two_maps_say_what_their_axes_are_once() -> None:
    points = np.arange(12.0).reshape(6, 2)
    one = maps.pool_map(points, axes=("width < 3", "height"))
    fig = maps.side_by_side(one, one, ("before", "after"))
    said = [a.text for a in fig.layout.annotations]
    assert said.count("width &lt; 3") == 1, said
    assert not fig.layout.xaxis.title.text and not fig.layout.xaxis2.title.text
    assert fig.layout.yaxis.title.text == "height" and not fig.layout.yaxis2.title.text
    # the words keep their room in a file, too
    assert theme.for_export(fig).layout.margin.b >= fig.layout.margin.b >= 40


def test_bands_hold_the_mean_and_two_deviations() -> None:
    grid = np.linspace(0, 1, 5)
    mean = np.column_stack([grid, -grid])
    fig = teaching.class_bands(grid, mean, np.full((5, 2), 4.0), np.full((5, 2), 0.5), mark=0.3)
    band = fig.data[0]
    assert max(band.y) == pytest.approx(1 + 1.96 * 2) and min(band.y) == pytest.approx(-1.96 * 2)
    assert list(fig.data[1].y) == pytest.approx(grid)


def test_asked_items_keep_their_order() -> None:
    points = np.arange(20.0).reshape(10, 2)
    fig = teaching.asked_maps({"VR": (np.array([0]), np.array([7, 3]))}, points, np.arange(10) % 2)
    asked = next(t for t in fig.data if t.name == "asked")
    assert list(asked.x) == [14, 6] and list(asked.marker.color) == [1, 2]
    assert "n = 10 items, 2 questions" in words(fig)
    bar = asked.marker.colorbar
    assert list(zip(bar.tickvals, bar.ticktext, strict=True)) == [(1, "first"), (2, "last")]


def test_agreement_has_a_row_an_approximation_and_prints_the_mean_distance() -> None:
    pair = (np.array([0.0, 1.0]), np.array([0.1, 0.7]))
    fig = teaching.agreement({"plain": {"p": pair, "mean": pair}, "joint": {"p": pair, "mean": pair}})
    assert "n = 2" in words(fig) and "0.2" in words(fig)
    assert [axis.title.text for axis in fig.select_yaxes(col=1)] == ["plain", "joint"]
    assert len(fig.data) == 8 and list(fig.data[3].y) == [0.1, 0.7]


def test_trade_offs_show_four_measures_of_each_kind_as_far_as_fitted() -> None:
    at = np.array([5.0, 10.0])
    fig = teaching.trade_offs(
        [
            TradeCurve("shared", at, at / 100, at, at / 50, at * 2, n=120),
            TradeCurve("own", at[:1], at[:1], at[:1], at[:1], at[:1], n=120),
        ],
    )
    assert [list(t.y) for t in fig.data[:4]] == [[0.05, 0.1], [5, 10], [0.1, 0.2], [10, 20]]
    assert [len(t.x) for t in fig.data[4:]] == [1] * 4
    assert fig.layout.xaxis.type == "log"
    assert "n = 120 test items" in words(fig)


def test_a_tally_stacks_equal_guesses_beside_the_answer() -> None:
    fig = teaching.guess_tally([50, 50, 90], 97.2, unit="%")
    assert list(fig.data[0].y) == [1, 2, 1] and list(fig.data[0].customdata) == [50, 50, 90]
    assert fig.layout.shapes[0].x0 == 97.2 and "97.2" in fig.layout.annotations[0].text
    assert not teaching.guess_tally([], 1.0).data
