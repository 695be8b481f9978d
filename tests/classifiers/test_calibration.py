import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits

from tests.engine.problems import overlapping
from workbench.classifiers import Geometry, make_classifier
from workbench.classifiers import calibration as cal
from workbench.metrics import expected_calibration_error, negative_log_likelihood


def nll(F, codes, beta):
    z = beta * F
    return float((logsumexp(z, axis=1) - z[np.arange(len(codes)), codes]).mean())


def test_beta_is_the_maximum_of_the_posterior():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((300, 4))
    codes = np.array([rng.choice(4, p=p) for p in cal.softmax(F, 3.0)])
    found = cal.fit_beta(F, codes, np.log(1.5))
    grid = np.exp(np.linspace(-1, 3, 4001))
    loss = [300 * nll(F, codes, b) + 0.5 * ((np.log(b) - np.log(1.5)) / 0.5) ** 2 for b in grid]
    assert found == pytest.approx(grid[int(np.argmin(loss))], rel=2e-3)
    assert found == pytest.approx(3.0, rel=0.25)


def test_the_prior_keeps_separable_labels_from_certainty():
    F = np.array([[2.0, 0.0], [0.0, 2.0], [1.5, 0.0]])
    codes = np.array([0, 1, 0])
    assert 1.5 < cal.fit_beta(F, codes, np.log(1.5)) < 4.0
    assert cal.fit_beta(F, codes, np.log(1.5), spread=100.0) > 6.0


def test_prior_centre_falls_with_the_kernel_variance():
    assert np.exp(cal.prior_log_beta(10.0)) == pytest.approx(1.5)
    assert np.exp(cal.prior_log_beta(1.0)) == pytest.approx(1.5 * 10**0.4)


def test_softmax_rows_sum_to_one_even_far_out():
    p = cal.softmax(np.array([[1e6, 0.0, -1e6], [0.0, 0.0, 0.0]]), 5.0)
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    assert p[0] == pytest.approx([1, 0, 0]) and p[1] == pytest.approx(1 / 3)


@pytest.fixture(scope="module")
def left_out():
    """One-step leave-one-out means beside those of real refits, on overlapping classes."""
    X, codes = overlapping(90, 3, seed=2, spread=1.0)
    found = make_classifier("large-margin", n_mean=0, n_inducing=25, random_state=0).fit(X, codes)
    # of one kernel and one geometry: a model that chooses them would choose again in each refit
    held = {"geometry": found.geometry_, "kernel": found.kernel_, "n_mean": 0, "tol": 1e-9, "max_sweeps": 300}
    model = make_classifier("large-margin", **held).fit(X, codes)
    F = model.predictor_.mean(X)
    kept = {}
    original = cal.judge

    def spy(means, labels, rows, *more, **options):
        kept["F"] = means[np.argsort(rows)]
        return original(means, labels, rows, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cal, "judge", spy)
        model.fit(X, codes)
    exact = np.empty((30, 3))
    for n in range(30):
        rest = np.delete(np.arange(90), n)
        refit = make_classifier("large-margin", **held, calibration=None)
        exact[n] = refit.fit(X[rest], codes[rest]).predictor_.mean(X[n : n + 1])[0]
    return F[:30], kept["F"][:30], exact, codes[:30]


@pytest.mark.slow  # alone: the shortcut of leaving out against 30 refits
def test_leave_one_out_is_close_to_refits(left_out):
    F, quick, exact, codes = left_out
    rows = np.arange(30)
    moved = (exact - F)[rows, codes]
    guessed = (quick - F)[rows, codes]
    assert np.corrcoef(moved, guessed)[0, 1] > 0.9
    assert np.polyfit(guessed, moved, 1)[0] == pytest.approx(1.0, abs=0.3)
    # and it is what the fitted means are not: no more certain than the refits
    assert abs(nll(quick, codes, 1.5) - nll(exact, codes, 1.5)) < 0.5 * abs(
        nll(F, codes, 1.5) - nll(exact, codes, 1.5)
    )


@pytest.mark.slow  # alone: what the page calls honest is, on rows that no fit saw
def test_calibrated_probabilities_are_calibrated():
    X, codes = overlapping(1200, 3, seed=3, spread=1.2)
    for options in ({}, {"n_mean": 0}, {"calibration": "cross-validated"}):
        model = make_classifier("large-margin", random_state=0, **options).fit(X[:400], codes[:400])
        p = model.predict_proba(X[400:])
        assert expected_calibration_error(codes[400:], p) < 0.07
        best = min(nll(model.predictor_.mean(X[400:]), codes[400:], b) for b in np.linspace(0.1, 6, 60))
        assert negative_log_likelihood(codes[400:], p) < best + 0.02


def test_no_calibration_is_the_prior_centre():
    X, codes = overlapping(60, 3)
    assert make_classifier("large-margin", n_mean=0, calibration=None).fit(X, codes).beta_ == pytest.approx(
        1.5
    )


def test_with_few_labels_of_a_table_the_model_doubts_about_as_often_as_it_errs():
    """It said half of its error: a temperature from labels that had helped to make the fit."""
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, 420)
        X = rng.normal(size=(420, 8)) * np.linspace(1.0, 30.0, 8)  # columns of scales of their own
        X[:, 0] += 1.2 * codes
        model = make_classifier("large-margin", classes=[0, 1], random_state=0).fit(X[:20], codes[:20])
        p = model.predict_proba(X[20:])
        ratios.append((1.0 - p.max(axis=1)).mean() / (p.argmax(axis=1) != codes[20:]).mean())
        assert model.left_out_.beta == model.beta_  # what is read of rows left out has the same temperature
    assert 0.75 < np.mean(ratios) < 1.25


def test_a_pool_of_one_scale_keeps_its_temperature():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 30)
    X = 0.3 * rng.random((30, 4)) + 0.2 * codes[:, None]
    model = make_classifier("large-margin", classes=range(3), random_state=0, common_scale=True).fit(X, codes)
    assert model.beta_ == cal.fit_beta(model.left_out_.means, codes[model.left_out_.rows], np.log(1.5))


def test_labels_alone_in_their_classes_do_not_make_a_table_doubtful():
    """Left out one by one each of them was wrong, as its class was known no more."""
    codes = np.arange(8)
    means = 0.5 - np.eye(8)  # each class is the last one that a row without its label is taken for
    beta = cal.judge_table(means, codes, codes, np.log(1.5)).beta
    share = len(codes) / (len(codes) + cal.TABLE_LABELS)
    prior = 1.5 * cal.TABLE_CENTRE * share
    # labels that tell nothing are no reason to be modest: on tables it was right at 2.5 times as much
    assert 2.0 * prior < beta < 3.0 * prior
    # where half of the classes have no label yet, such rows tell how often those are met
    means = np.hstack([means, np.full((8, 8), -0.5)])
    assert cal.judge_table(means, codes, codes, np.log(1.5)).beta < 0.8 * beta


PEERS = (
    "logistic-softmax",
    pytest.param(
        "logistic-softmax-gibbs", marks=pytest.mark.slow
    ),  # alone: weights of draws; seconds a chain
    "svgp-softmax",
    "bayesian-svm",
    "bayesian-svm-batch",
    "gp-laplace",
)


@pytest.mark.parametrize("name", PEERS)
def test_rows_left_out_by_their_sites_are_close_to_refits(name):
    X, codes = overlapping(40, 3, seed=2, spread=1.0)
    shared = {"geometry": Geometry.of(X, 20, 0), "classes": range(3), "random_state": 0, "calibration": None}
    model = make_classifier(name, **shared).fit(X, codes)
    quick = model._value()._left_out(X, codes, np.arange(40))[:8]
    exact = np.empty((8, 3))
    for n in range(8):
        rest = np.delete(np.arange(40), n)
        exact[n] = make_classifier(name, **shared).fit(X[rest], codes[rest]).predict_proba(X[n : n + 1])[0]
    # nearer to the refits than what the fit says of rows that it saw
    assert np.abs(quick - exact).mean() < 0.75 * np.abs(model.predict_proba(X[:8]) - exact).mean()


@pytest.mark.parametrize("name", PEERS)
def test_a_likelihoods_own_probabilities_are_sharpened_where_they_doubt_too_much(name):
    """Of digits each doubted two to nine times as often as it erred."""
    X, y = load_digits(return_X_y=True)
    X, y, X_test, y_test = X[:100], y[:100], X[1300:], y[1300:]
    own, model = (
        make_classifier(name, random_state=0, calibration=how).fit(X, y) for how in (None, "leave-one-out")
    )
    before, after = own.predict_proba(X_test), model.predict_proba(X_test)
    assert own.power_ == 1.0 < model.power_
    assert (before.argmax(axis=1) == after.argmax(axis=1)).all()
    assert negative_log_likelihood(y_test, after) < negative_log_likelihood(y_test, before) - 0.05
    doubt, error = (1.0 - after.max(axis=1)).mean(), (after.argmax(axis=1) != y_test).mean()
    assert 0.6 < doubt / error < 1.6 < (1.0 - before.max(axis=1)).mean() / error
    state = model.get_state()
    again = make_classifier(name, random_state=0).set_state(state)
    assert again.power_ == model.power_
    del state["power_"]  # as of a fit that has only begun
    np.testing.assert_allclose(
        make_classifier(name, random_state=0).set_state(state).predict_proba(X_test[:9]),
        before[:9],
        atol=1e-12,
    )


def test_the_linear_machine_is_never_made_surer():
    """At 10 to 20 labels of 40 columns the rows left out look easy to it, and new rows are not."""
    X, y = load_digits(return_X_y=True)
    powers = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(1000)[:20]
        powers.append(make_classifier("bayesian-svm-linear", random_state=0).fit(X[rows], y[rows]).power_)
    assert max(powers) <= 1.0
