import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from workbench.attacks import DETECTORS, measure
from workbench.attacks.robustness import (
    confusion_at,
    detectors_for,
    score,
    threshold_at,
)
from workbench.errors import Cancelled, InputError
from workbench.metrics import area_under_roc, roc_curve
from workbench.policies import variation_ratio

few = st.lists(st.integers(0, 5), min_size=1, max_size=30)


@given(few, few)
def test_area_is_scikit_learns(clean, attacked):
    truth = [0] * len(clean) + [1] * len(attacked)
    expected = roc_auc_score(truth, clean + attacked)
    assert area_under_roc(np.array(clean), np.array(attacked)) == pytest.approx(expected, abs=1e-12)


def test_area_of_the_same_scores_is_one_half_exactly():
    scores = np.random.default_rng(0).random(1001)
    assert area_under_roc(scores, scores) == 0.5


@given(few, st.floats(0, 1))
def test_thresholds_keep_false_alarms_at_the_rate(clean, rate):
    clean = np.array(clean, float)
    threshold = threshold_at(clean, rate)
    flagged = (clean >= threshold).mean()
    assert flagged <= rate + 1e-12
    # nothing lower would do: the next score down is one too many
    lower = clean[clean < threshold]
    if lower.size:
        assert (clean >= lower.max()).mean() > rate


def test_confusion_counts_both_kinds():
    table = confusion_at(np.array([0.1, 0.2, 0.9]), np.array([0.2, 0.8]), 0.2)
    assert table == (2, 1, 2, 0)


def test_roc_passes_through_the_corners():
    curve = roc_curve(np.array([0.1, 0.4]), np.array([0.3, 0.9]))
    assert (curve.false_positive[0], curve.true_positive[0]) == (0, 0)
    assert (curve.false_positive[-1], curve.true_positive[-1]) == (1, 1)


def test_scores_are_the_policies_utilities(pixels_model, digits):
    X = digits[2]
    result = score(pixels_model, X, tuple(DETECTORS))
    latent, p = pixels_model.predict_latent(X), pixels_model.predict_proba(X)
    np.testing.assert_array_equal(result.suspicion[0], variation_ratio(*latent))
    rows = dict(zip(DETECTORS, result.suspicion, strict=True))
    np.testing.assert_allclose(rows["least-confident"], 1 - p.max(axis=1))
    np.testing.assert_allclose(rows["variance"], latent.variance.mean(axis=1))
    np.testing.assert_allclose(rows["entropy"], -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1), atol=1e-12)
    assert (result.codes == p.argmax(axis=1)).all()


def test_a_model_without_latents_feeds_fewer_detectors(softmax_net, digits):
    assert detectors_for(softmax_net) == ("margin", "entropy", "least-confident")
    assert score(softmax_net, digits[2], detectors_for(softmax_net)).suspicion.shape == (3, len(digits[2]))
    with pytest.raises(InputError, match="latent"):
        score(softmax_net, digits[2], ("variation-ratio",))


@pytest.fixture(scope="module")
def measured(net, softmax_net, digits):
    return measure(
        net,
        digits[2],
        digits[3],
        strengths=(0.0, 0.1, 0.3),
        attacks=("fgsm", "noise", "transfer"),
        steps=5,
        softmax=softmax_net,
    )


def test_strength_zero_is_no_attack_and_no_detection(measured, net, digits):
    assert (measured.auc()[:, 0] == 0.5).all()
    assert (measured.accuracy[:, 0] == net.score(*digits[2:])).all()
    assert np.isnan(measured.auc(successful_only=True)[:, 0]).all()
    assert measured.softmax_accuracy[0] > 0.9 > measured.softmax_accuracy[2]


def test_detection_finds_plain_fgsm(measured):
    a, s = measured.row("fgsm", 0.29)
    k = measured.detectors.index("variation-ratio")
    assert measured.auc()[a, s, k] > 0.8
    assert measured.mean_scores[a, s, k] > 2 * measured.clean_scores[k].mean()
    chosen = measured.successful[a, s]
    expected = area_under_roc(measured.clean_scores[k], measured.scores[a, s, k][chosen])
    assert measured.auc(successful_only=True)[a, s, k] == expected
    assert (
        chosen.sum()
        == ((measured.clean_codes == measured.truth) & (measured.codes[a, s] != measured.truth)).sum()
    )


def test_table_has_a_row_for_each_attack_strength_and_detector(measured):
    table = measured.table()
    assert len(table) == 3 * 3 * len(DETECTORS) + 3
    row = table[(table.attack == "fgsm") & (table.strength == 0.1) & (table.detector == "entropy")].iloc[0]
    assert row.accuracy == measured.accuracy[0, 1]
    assert row.successful == measured.successful[0, 1].sum()
    assert measured.settings["versions"]["numpy"] == np.__version__
    with pytest.raises(InputError, match="was not measured"):
        measured.row("pgd", 0.1)


def test_same_seed_same_measurements(measured, net, softmax_net, digits):
    again = measure(
        net,
        digits[2],
        digits[3],
        strengths=(0.0, 0.1, 0.3),
        attacks=("fgsm", "noise", "transfer"),
        steps=5,
        softmax=softmax_net,
    )
    np.testing.assert_allclose(again.scores, measured.scores, atol=1e-6)


def test_without_labels_the_clean_predictions_are_the_truth(pixels_model, digits):
    result = measure(pixels_model, digits[2], strengths=(0.1,), attacks=("fgsm",))
    assert not result.truth_known
    assert (result.truth == result.clean_codes).all()


def test_measuring_reports_and_can_be_cancelled(pixels_model, digits):
    told = []

    def report(fraction, what):
        told.append((fraction, what))
        if len(told) == 3:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        measure(pixels_model, digits[2], digits[3], attacks=("fgsm",), report=report)
    assert [f for f, _ in told] == sorted(f for f, _ in told) and "FGSM" in told[-1][1]


def test_no_attack_chosen_says_so(pixels_model, digits):
    with pytest.raises(InputError, match="at least one attack"):
        measure(pixels_model, digits[2], attacks=())


@pytest.mark.parametrize(
    ("attacks", "loss"), [(("noise", "transfer"), "objective"), (("noise", "adaptive-pgd"), None)]
)
def test_a_loss_that_an_attack_cannot_raise_is_refused_before_anything_is_computed(
    attacks, loss, softmax_net, digits
):
    reports = []
    with pytest.raises(InputError, match="cross-entropy or hinge"):
        measure(
            softmax_net,
            digits[2][:20],
            digits[3][:20],
            attacks=attacks,
            loss=loss,
            softmax=softmax_net,
            report=lambda *progress: reports.append(progress),
        )
    assert not reports


def test_the_network_that_is_compared_keeps_its_own_loss(pixels_model, softmax_net, digits):
    X, y = digits[2][:20], digits[3][:20]
    objective, cross_entropy = (
        measure(pixels_model, X, y, strengths=(0.1,), attacks=("fgsm",), loss=loss, softmax=softmax_net)
        for loss in ("objective", None)
    )
    assert (objective.softmax_accuracy == cross_entropy.softmax_accuracy).all()
    assert (objective.scores != cross_entropy.scores).any()
