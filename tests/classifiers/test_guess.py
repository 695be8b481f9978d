"""A guess as the prior mean: what it does from no labels on, and that labels outvote it."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from workbench.classifiers import CLASSIFIERS, make_classifier, protocols
from workbench.classifiers.calibration import LeftOut
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.guess_weights import weigh
from workbench.engine import large_margin, wide_mean
from workbench.engine.large_margin_state import Data
from workbench.errors import InputError

C = 4
PEERS = ("svgp-softmax", "svgp-robust-max", "svgp-heaviside", "logistic-softmax", "logistic-regression")


def problem(n=400, seed=0, spread=0.9):
    rng = np.random.default_rng(seed)
    codes = rng.integers(C, size=n)
    centres = 1.6 * np.random.default_rng(9).standard_normal((C, 3))
    return centres[codes] + spread * rng.standard_normal((n, 3)), codes


def column(codes, right, seed=1):
    """A guess that names the class of a share of the rows, another at random of the others."""
    rng = np.random.default_rng(seed)
    other = (codes + rng.integers(1, C, size=len(codes))) % C
    named = np.where(rng.random(len(codes)) < right, codes, other)
    G = np.eye(C)[named]
    return (G - G.mean(axis=1, keepdims=True)) / G.std()


def made(X, **options):
    return make_classifier(
        "large-margin", classes=range(C), geometry=Geometry.of(X, 32, 0), random_state=0, **options
    )


def objective(phi, residual, codes, M, roots, offset, tau):
    """The part of G that depends on M, straight from its formula."""
    F, rows = phi @ M + offset, np.arange(len(codes))
    V = np.stack([((phi @ root.T) ** 2).sum(axis=1) for root in roots], axis=1)
    d = 1 + F - F[rows, codes][:, None]
    g = d + np.sqrt(d * d + 2 * residual[:, None] + V + V[rows, codes][:, None])
    g[rows, codes] = -np.inf
    return -tau * logsumexp(g / tau, axis=1).sum() - 0.5 * (M * M).sum()


@pytest.mark.parametrize("rivals", [None, 2])
def test_the_fit_is_where_the_objective_with_the_mean_is_level(rivals, monkeypatch):
    rng = np.random.default_rng(0)
    phi, residual = rng.standard_normal((60, 5)) / 2, rng.random(60)
    codes, offset = rng.integers(C, size=60), rng.standard_normal((60, C))
    if rivals:
        monkeypatch.setattr(large_margin, "ALL_RIVALS", 0)  # the other solver, against every rival
    fit = large_margin.fit(
        Data.of(phi, residual, codes, C, offset), sweeps=300, tolerance=1e-12, rivals=rivals and C - 1
    )
    M, roots = fit.posterior.mean, fit.posterior.root
    for _ in range(10):
        step = rng.standard_normal(M.shape)
        slope = (
            objective(phi, residual, codes, M + 1e-5 * step, roots, offset, 0.1)
            - objective(phi, residual, codes, M - 1e-5 * step, roots, offset, 0.1)
        ) / 2e-5
        assert abs(slope) < 2e-2 * np.abs(step).sum()
    F = phi @ M + offset
    d = 1 + np.take_along_axis(F, fit.rivals, axis=1) - F[np.arange(60), codes][:, None]
    np.testing.assert_allclose(fit.margin, d, atol=1e-8)


def test_the_wide_mean_asks_the_same_margin():
    rng = np.random.default_rng(0)
    phi, codes, offset = (
        rng.standard_normal((80, 6)) / 2,
        rng.integers(C, size=80),
        rng.standard_normal((80, C)),
    )
    fit = large_margin.fit(Data.of(phi[:, :3].copy(), np.full(80, 0.1), codes, C, offset))
    wide = wide_mean.widen(phi, np.full(80, 0.1), codes, fit, 0.1, 0.5, offset=offset)
    F = phi @ wide.mean + offset
    d = 1 + np.take_along_axis(F, wide.rivals, axis=1) - F[np.arange(80), codes][:, None]
    np.testing.assert_allclose(wide.margin, d, atol=1e-4)


def test_from_no_labels_the_guess_is_the_prediction():
    X, codes = problem()
    G = column(codes, 0.8)
    model = made(X).fit(X[:0], [], mean=G[:0])
    p = model.predict_proba(X, mean=G)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == G.argmax(axis=1)).all() and 0.4 < p.max(axis=1).mean() < 0.999
    np.testing.assert_array_equal(model.predict(X, mean=G), G.argmax(axis=1))
    latent = model.predict_latent(X, mean=G)
    assert (latent.mean.argmax(axis=1) == G.argmax(axis=1)).all() and (latent.variance == 10).all()
    np.testing.assert_array_equal(model.predict_proba(X), 1 / C)
    again = clone(model).set_state(model.get_state())
    np.testing.assert_array_equal(again.predict_proba(X, mean=G), p)


@pytest.mark.parametrize("n", [8, 20, 60])
def test_a_good_column_helps_and_the_machine_is_soon_better_than_it(n):
    X, codes = problem(spread=1.3)
    G = column(codes, 0.8)
    with_guess = made(X).fit(X[:n], codes[:n], mean=G[:n])
    without = made(X).fit(X[:n], codes[:n])
    rest = slice(100, None)
    wrong = (with_guess.predict(X[rest], mean=G[rest]) != codes[rest]).mean()
    assert with_guess.mean_weights_[0] > 0
    assert wrong < 0.8 * (without.predict(X[rest]) != codes[rest]).mean()
    assert wrong < 0.2 or n < 20


def test_a_column_at_random_is_dropped():
    X, codes = problem()
    without = made(X, choice="fixed").fit(X[:100], codes[:100]).predict(X[100:])
    weights, errors = [], []
    for seed in range(5):
        G = column(codes, 0.25, seed)
        model = made(X, choice="fixed").fit(X[:100], codes[:100], mean=G[:100])
        weights.append(model.mean_weights_[0])
        errors.append((model.predict(X[100:], mean=G[100:]) != codes[100:]).mean())
    assert np.median(weights) <= 0.1
    assert np.mean(errors) <= (without != codes[100:]).mean() + 0.02


def test_of_two_guesses_the_good_one_counts():
    X, codes = problem(spread=1.3)
    G = np.stack([column(codes, 0.25, 3), column(codes, 0.9, 4)])
    model = made(X).fit(X[:60], codes[:60], mean=G[:, :60])
    assert model.mean_weights_[1] > 3 * model.mean_weights_[0]
    state = model.get_state()
    for other in (clone(model).set_state(state), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X, mean=G), model.predict_proba(X, mean=G))
    without = model.predict_proba(X)  # a guess that is missing counts nothing
    np.testing.assert_allclose(model.predict_proba(X, mean=0 * G), without, atol=1e-12)


def test_a_warm_start_with_a_guess_reaches_the_cold_fit():
    X, codes = problem()
    G = column(codes, 0.7)
    warm = made(X, warm_start=True, choice="fixed")
    for n in (20, 40, 41):
        warm.fit(X[:n], codes[:n], mean=G[:n])
    assert warm.mean_weighed_ == 40
    cold = made(X, choice="fixed", tol=1e-7).fit(X[:40], codes[:40], mean=G[:40])
    np.testing.assert_array_equal(cold.mean_weights_, warm.mean_weights_)
    assert warm._value()._inputs.sources is None, "guesses at rows are no part of the fit"
    plain = warm.fit(X[:41], codes[:41])  # the guess is taken away
    assert not hasattr(plain, "mean_weights_")
    fresh = made(X, choice="fixed").fit(X[:41], codes[:41])
    np.testing.assert_allclose(plain.predict_proba(X), fresh.predict_proba(X), atol=0.02)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "natural-gradient", "choice": "fixed", "epochs": 10},
        pytest.param(  # alone: another optimiser of the same objective
            {"solver": "adam", "choice": "fixed", "epochs": 30, "learning_rate": 0.05}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"hyperparameters": "map", "choice": "fixed"}, marks=pytest.mark.slow
        ),  # alone: a learnt kernel
        {"calibration": "cross-validated", "choice": "fixed", "dtype": "float32"},
    ],
)
def test_every_way_of_fitting_knows_the_guess(options):
    X, codes = problem(spread=1.3)
    G = column(codes, 0.9)
    model = made(X, **options).fit(X[:30], codes[:30], mean=G[:30])
    assert (model.predict(X[100:], mean=G[100:]) == codes[100:]).mean() > 0.8
    assert np.isfinite(model.objective_)


def test_what_is_no_guess_is_refused():
    X, codes = problem(50)
    G = column(codes, 0.8)
    model = made(X).fit(X, codes)
    with pytest.raises(InputError, match="fitted without a guess"):
        model.predict(X, mean=G)
    with pytest.raises(InputError, match=r"shape \[50, 4\] or \[J, 50, 4\]"):
        model.fit(X, codes, mean=G[:, :3])
    with pytest.raises(InputError, match="row of zeros"):
        model.fit(X, codes, mean=np.full_like(G, np.nan))
    with pytest.raises(InputError, match="knows 1 guesses and mean holds 2"):
        made(X).fit(X, codes, mean=G).predict(X, mean=np.stack([G, G]))


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_the_protocol_says_who_can(name):
    model = make_classifier(name)
    if protocols.supports_mean(model):
        assert name in ("large-margin", *PEERS)
        return
    assert name not in PEERS
    with pytest.raises(InputError, match="cannot start from a guess"):
        model.fit(np.zeros((2, 2)), [0, 1], mean=np.zeros((2, 2)))


def test_scores_that_differ_little_get_the_weight_they_need():
    """As likenesses of names do: what is foretold gains up to five times the prior weight."""
    unit, n = 0.14, 20

    def judge(weights):
        gain = 0.5 * np.log1p(min(float(weights[0]) / unit, 5.0))
        none = np.zeros(n, dtype=np.int64)
        return LeftOut(none, np.zeros((n, 2)), 1.0, np.full(n, gain - 2.0), np.zeros(n), np.zeros(n))

    assert weigh(judge, np.array([unit]), unit, 0.0) == pytest.approx([5.0 * unit])
