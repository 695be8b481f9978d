"""The likelihoods on the toy: against MATH's table, and the sweep as it streams."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics.calibration import calibration_interval, reliability_table
from workbench.studies import calibration as c
from workbench.studies import lessons

# at sigma^2 = 0.5: error and negative log-likelihood above those of the exact posterior on the same draw
EXCESS = {
    "robust-max": (0.010, 1.871),
    "softmax": (0.003, 0.007),
    "heaviside": (0.003, 0.005),
    "logistic-softmax": (0.001, 0.002),
    "mean-field": (0.013, 0.086),
}
EXACT = (0.366, 0.814)  # of the generator itself, over two million points


@pytest.fixture(scope="module")
def exact() -> np.ndarray:
    return np.array([c.scores_of("bayes", 0.5, seed)[:2] for seed in range(5)]).mean(axis=0)


@pytest.mark.slow  # alone: the exact posterior's error over 10,000 points
def test_the_exact_posterior_at_half_comes_out_as_known(exact: np.ndarray) -> None:
    # 10,000 test points in all
    assert exact == pytest.approx(EXACT, abs=0.015)


@pytest.mark.slow  # alone: each likelihood's distance from it, over five seeds
@pytest.mark.parametrize("name", EXCESS)
def test_the_toy_at_half_comes_out_as_known(name: str, exact: np.ndarray) -> None:
    made = np.array([c.scores_of(name, 0.5, seed)[:2] for seed in range(5)]).mean(axis=0)
    error, nll = EXCESS[name]
    # the draw of the 500 training points remains
    assert made[0] - exact[0] == pytest.approx(error, abs=0.015)
    assert made[1] - exact[1] == pytest.approx(nll, abs=0.06 if nll < 1 else 0.2)


def test_the_oracle_is_calibrated_within_its_interval() -> None:
    y, p = c.probabilities("bayes", 0.5)
    found = calibration_interval(reliability_table(y, p, 15))
    assert found.low <= found.value <= found.high
    assert found.value < 0.04
    assert p.sum(axis=1) == pytest.approx(1)


@pytest.mark.slow  # alone: how sure the lesson's robust-max is
def test_robust_max_is_as_right_but_far_surer() -> None:
    robust, soft = c.scores_of("robust-max", 0.5, 0), c.scores_of("logistic-softmax", 0.5, 0)
    assert abs(robust.error - soft.error) < 0.03
    assert robust.nll > 2 * soft.nll
    assert robust.ece > 0.3 > 0.06 > soft.ece


def test_a_sweep_yields_each_curve_before_the_next_is_fitted() -> None:
    told: list[str] = []
    sweep = lessons.likelihoods(
        1, lambda fraction, words: told.append(words), ("bayes", "logistic-softmax"), (0.1, 1.0)
    )
    (first,) = next(sweep)
    assert first.name == "bayes" and len(told) == 2, "nothing of the second is done"
    assert first.error.shape == (1, 2) and first.error[0, 0] < first.error[0, 1]
    _, second = next(sweep)
    assert second.title == "Logistic-softmax, joint" and len(told) == 4
    assert (second.nll > first.nll - 0.02).all(), "nobody beats the exact rule by more than chance"


@pytest.mark.slow  # alone: the lesson's four inferences, and which comes near Gibbs
def test_gibbs_comes_first_and_the_joint_bound_gives_its_probabilities() -> None:
    told: list[str] = []
    inferences = lessons.gibbs(120, report=lambda fraction, words: told.append(words))
    (exact,) = next(inferences)
    assert exact.title == "Gibbs" and told == ["Gibbs"], "nothing else is begun"
    *_, (exact, plain, joint, mean_field) = inferences
    assert [one.title for one in (plain, joint, mean_field)] == list(c.INFERENCES.values())
    assert exact.probabilities.shape == joint.mean.shape == (36, 3)
    assert plain.distance(exact) < 0.02 and joint.distance(exact) < 0.02 < 0.1 < mean_field.distance(exact)
    assert max(one.error for one in (exact, plain, joint, mean_field)) < 0.1
    columns = joint.against(exact)
    assert columns["p"][0] is exact.probabilities and columns["variance of f"][1] is joint.variance


@pytest.mark.slow  # alone: the lesson's curves, fit by fit
def test_trade_offs_grow_fit_by_fit_and_measure_what_they_say() -> None:
    told: list[str] = []
    report = lambda fraction, words: told.append(words)  # noqa: E731
    seen = list(lessons.inducing_trade("iris", 0, report, (3, 20), 150))
    assert [[len(curve.points) for curve in curves] for curves in seen] == [[1], [2], [2, 1], [2, 2]]
    assert told[2] == "a kernel for each class, 3 inducing points"
    shared, own = seen[-1]
    assert shared.nll[1] < shared.nll[0] and own.nll[1] < own.nll[0]
    assert (shared.error <= 0.5).all()
    again = c.trade_fit("iris", 20, True, 150)
    assert again["nll"] == shared.nll[1] and again["ece"] == shared.ece[1]


def test_what_cannot_be_swept_is_said() -> None:
    with pytest.raises(InputError, match="no likelihood 'probit'"):
        next(lessons.likelihoods(1, names=("probit",)))
    with pytest.raises(InputError, match="training points"):
        c.toy(0.5, 0, 2)


def test_more_training_points_begin_with_the_fewer() -> None:
    few, many = c.toy(0.5, 0, 20), c.toy(0.5, 0)
    assert (many.X[:20] == few.X).all() and (many.X_test == few.X_test).all()


@pytest.mark.slow  # alone: the lesson's point: calibrated and useless
def test_the_collapsed_model_is_calibrated_and_useless() -> None:
    collapsed, sound, exact = lessons.useless(1.0)
    assert collapsed.scores.ece < 0.04
    assert collapsed.scores.error > sound.scores.error + 0.15
    assert collapsed.table.mean_confidence == pytest.approx(1 / 3, abs=0.01)
    assert exact.n == 2000


def test_argmax_frequency_is_surer_than_right() -> None:
    frequency, plain, tempered = lessons.argmax_frequency(0.5, 200)
    assert frequency.table.mean_confidence - frequency.table.mean_accuracy > 0.15
    assert plain.table.mean_confidence < plain.table.mean_accuracy
    assert tempered.scores.nll < min(frequency.scores.nll, plain.scores.nll)


def test_inducing_points_help_until_they_do_not() -> None:
    few, enough = lessons.inducing_points(4), lessons.inducing_points(64)
    assert few.error > 0.4 and enough.error < 0.1
    assert few.centres.shape == (4, 2)
    low, high = enough.X.min(axis=0) - 0.1, enough.X.max(axis=0) + 0.1
    assert ((enough.centres >= low) & (enough.centres <= high)).all(), "in raw units"
    assert enough.probabilities.sum(axis=2) == pytest.approx(1)


def test_labels_take_away_one_doubt_and_leave_the_other() -> None:
    few, many = lessons.two_measures(20, 0.5), lessons.two_measures(500, 0.5)
    assert many.variation_ratio.mean() < 0.6 * few.variation_ratio.mean()
    assert many.entropy.mean() > few.entropy.mean()


def test_the_hard_rule_falls_and_the_tempered_rule_arrives() -> None:
    made = lessons.rivals(3, sweeps=20)
    assert (np.diff(made.hard) < -1).sum() >= 3, "it cycles"
    assert made.tempered[-1] > made.hard.max()
    assert made.hard[0] == pytest.approx(made.tempered[0]), "both start at the prior"
    two = lessons.rivals(2, sweeps=20)
    assert (np.diff(two.hard) > -1e-6).all() and (two.switched == 0).all(), "one rival: it climbs"
    with pytest.raises(InputError, match="two classes"):
        lessons.rivals(1)


def test_a_policy_and_random_start_alike() -> None:
    made = lessons.looked("margin", 0, budget=5)
    assert set(made.asked) == {"margin", "random"}
    assert all(len(items) == 5 and not set(items) & set(made.initial) for items in made.asked.values())
    assert made.error["margin"][0] == made.error["random"][0]
