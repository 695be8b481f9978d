import numpy as np
import pytest

from workbench.figures import adversarial as figures
from workbench.figures import theme

STRENGTHS = np.array([0.0, 0.1, 0.2])


def test_strength_curves_show_both_panels_and_the_control_in_grey():
    accuracy = {"FGSM": [1.0, 0.5, 0.1], "Random signs": [1.0, 1.0, 0.9], "Softmax": [1.0, 0.4, 0.2]}
    suspicion = {"FGSM": [0.1, 0.4, 0.5], "Random signs": [0.1, 0.2, 0.3]}
    fig = figures.strength_curves(
        STRENGTHS, accuracy, suspicion, score="Variation ratio", controls=("Random signs",)
    )
    assert [t.name for t in fig.data if t.showlegend] == ["Random signs", "FGSM", "Softmax"]
    assert [t.xaxis for t in fig.data].count("x2") == 2
    grey = [t for t in fig.data if t.line.color == theme.NEUTRAL]
    assert {t.name for t in grey} == {"Random signs"}
    assert fig.layout.annotations[1].text == "Mean variation ratio"
    assert "BALD" in figures.strength_curves(STRENGTHS, accuracy, {}, score="BALD").layout.annotations[1].text


def test_detection_curves_have_a_panel_for_each_attack_with_the_guess():
    areas = {
        "FGSM": {"VR": np.array([0.5, 0.8, 0.9]), "Entropy": np.array([0.5, 0.7, 0.8])},
        "Nothing": {"VR": np.full(3, np.nan)},
    }
    fig = figures.detection_curves(STRENGTHS, areas)
    assert [t.name for t in fig.data if t.name] == ["VR", "Entropy"]
    guess = [t for t in fig.data if not t.name]
    assert len(guess) == 1 and list(guess[0].y) == [0.5, 0.5]
    assert (
        "No attack"
        in figures.detection_curves(STRENGTHS, {"Nothing": areas["Nothing"]}).layout.annotations[0].text
    )


def test_roc_marks_what_is_found_within_the_rate():
    curve = np.array([0.0, 0.04, 0.06, 1.0]), np.array([0.0, 0.6, 0.9, 1.0])
    fig = figures.roc_curves({"FGSM": curve}, areas={"FGSM": 0.9})
    mark = next(t for t in fig.data if t.mode == "markers")
    assert (mark.x[0], mark.y[0]) == (0.04, 0.6)
    assert any("0.900" in (t.name or "") for t in fig.data)


@pytest.mark.parametrize("constant", [False, True])
def test_histograms_are_shares_and_keep_the_threshold_in_view(constant):
    rng = np.random.default_rng(0)
    clean, attacked = (np.zeros(50), np.zeros(20)) if constant else (rng.random(50), 1 + rng.random(20))
    fig = figures.score_histograms(clean, attacked, 99.0, score="VR")
    assert [sum(t.y) for t in fig.data] == pytest.approx([1, 1])
    line = fig.layout.shapes[0]
    assert line.showlegend and line.name == "flagged from here" and not fig.layout.annotations
    assert line.x0 <= max(2.0, float(attacked.max()))
    assert (
        "No image"
        in figures.score_histograms(clean[:0], attacked[:0], 0.0, score="VR").layout.annotations[0].text
    )


def test_latent_bars_mark_the_truth_and_escape_names():
    fig = figures.latent_bars(
        (np.array([1.0, 0.0]), np.array([0.5, 1.0])),
        (np.array([0.0, 1.0]), np.array([0.5, 1.0])),
        ["<b>x</b>", "y"],
        truth=1,
    )
    assert list(fig.layout.xaxis.ticktext) == ["&lt;b&gt;x&lt;/b&gt;", "y ★"]
    assert list(fig.data[0].error_y.array) == [1.0, 2.0]


def test_perturbations_are_grey_where_nothing_changed():
    clean = np.array([[0.5, 0.2], [0.9, 0.5]])
    attacked = clean + np.array([[0.1, -0.1], [0.0, 0.05]])
    image = figures.perturbation_image(clean, attacked, 0.1)
    assert image.dtype == np.uint8
    assert image.tolist() == [[255, 0], [128, 191]]
    assert (figures.perturbation_image(clean, clean, 0.0) == 128).all()
