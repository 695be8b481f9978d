"""One step ahead in closed form is what conditioning on the answer says."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from tests.policies.helpers import belief, rng
from workbench.classifiers import make_classifier
from workbench.classifiers.latent import Latent
from workbench.policies import Belief, lookahead, query, utilities
from workbench.policies.belief import belief_of
from workbench.policies.lookahead import look_ahead

P, C = 5, 3


def linear(n: int = 40, seed: int = 0) -> tuple[Belief, np.ndarray, np.ndarray, np.ndarray]:
    """Latents f_c(x) = phi_x . w_c with w_c ~ N(m_c, S_c): belief, phi [n, P], m [P, C] and S [C, P, P]."""
    g = np.random.default_rng(seed)
    phi = g.normal(size=(n, P)) / 2
    m = g.normal(size=(P, C)) / 2
    R = np.tril(g.normal(size=(C, P, P))) / 2
    S = R.transpose(0, 2, 1) @ R
    made = Belief(
        features=phi,
        labelled=np.arange(4),
        labels=np.array([0, 1, 2, -1]),
        n_classes=C,
        latent=Latent(phi @ m, np.einsum("np,cpq,nq->nc", phi, S, phi)),
        covariance=lambda a, b: np.einsum("np,cpq,mq->cnm", phi[a], S, phi[b]),
    )
    return made, phi, m, S


def answered(
    phi: np.ndarray, m: np.ndarray, S: np.ndarray, x: int, y: int
) -> tuple[float, np.ndarray, np.ndarray]:
    """Probability of an answer about x, and mean [C P] and covariance of all weights given it.

    By quadrature over the gap of the two leading classes of x; the rest is a Gaussian given the gap.
    """
    order = np.argsort(-(phi[x] @ m))
    e = np.zeros(C)
    e[order[0]], e[order[1]] = 1.0, -1.0
    direction = np.kron(e, phi[x])  # gap = direction . w
    mean, cov = m.T.ravel(), np.zeros((C * P, C * P))
    for c in range(C):
        cov[c * P : (c + 1) * P, c * P : (c + 1) * P] = S[c]
    g, v = direction @ mean, direction @ cov @ direction
    grid = g + np.sqrt(v) * np.linspace(-9, 9, 4001)
    weight = norm.pdf(grid, g, np.sqrt(v)) * norm.cdf(y * grid)
    chance = weight.sum() * (grid[1] - grid[0])
    weight /= weight.sum()
    first = weight @ grid
    second = weight @ (grid - first) ** 2
    gain = cov @ direction / v
    return float(chance), mean + gain * (first - g), cov + np.outer(gain, gain) * (second - v)


def test_the_closed_form_is_the_moments_given_the_answer() -> None:
    b, phi, m, S = linear()
    rows, targets = np.array([5, 9, 17]), np.arange(4, 40)
    seen = look_ahead(b, rows, targets)
    for i, x in enumerate(rows):
        for k, y in enumerate((1, -1)):
            chance, mean, cov = answered(phi, m, S, x, y)
            assert seen.chance[k, i] == pytest.approx(chance, abs=1e-6)
            for j, t in enumerate(targets):
                order = np.argsort(-(phi[t] @ m))
                e = np.zeros(C)
                e[order[0]], e[order[1]] = 1.0, -1.0
                direction = np.kron(e, phi[t])
                expected = norm.cdf(direction @ mean / np.sqrt(direction @ cov @ direction + 1))
                assert seen.after[k, i, j] == pytest.approx(expected, abs=1e-6)


def test_the_utilities_are_expectations_over_the_answers() -> None:
    b, phi, m, S = linear()
    targets = b.askable  # fewer than a hundred: all of them
    reduction, information = (
        utilities(name, b, rng()) for name in ("expected-error-reduction", "epig")
    )  # of all askable items: there are fewer than fifty
    for x in (4, 11, 30):
        after = np.zeros((2, len(targets)))
        p = np.zeros(2)
        for k, y in enumerate((1, -1)):
            p[k], mean, cov = answered(phi, m, S, x, y)
            W, blocks = mean.reshape(C, P), cov
            for j, t in enumerate(targets):
                order = np.argsort(-(phi[t] @ m))
                e = np.zeros(C)
                e[order[0]], e[order[1]] = 1.0, -1.0
                d = np.kron(e, phi[t])
                after[k, j] = norm.cdf(d @ W.ravel() / np.sqrt(d @ blocks @ d + 1))
        mean0, var0 = b.latent  # type: ignore[misc]
        order = np.argsort(-mean0[targets], axis=1)[:, :2]
        gap = np.take_along_axis(mean0[targets], order, 1) @ [1, -1]
        spread = np.take_along_axis(var0[targets], order, 1).sum(axis=1)
        now = norm.cdf(-gap / np.sqrt(spread + 1)).mean()
        drop = now - p @ np.minimum(after, 1 - after).mean(axis=1)
        assert reduction[x] == pytest.approx(drop, abs=1e-6)
        q = p @ after
        entropy = lambda r: -(r * np.log(r) + (1 - r) * np.log(1 - r))  # noqa: E731
        assert information[x] == pytest.approx((entropy(q) - p @ entropy(after)).mean(), abs=1e-6)
        assert information[x] > 0


@pytest.mark.parametrize("name", ["expected-error-reduction", "epig"])
def test_the_closest_come_first_and_the_others_follow_by_margin(name: str) -> None:
    b = belief(n=400)
    values, close = utilities(name, b, rng()), utilities("margin", b, rng())
    allowed = b.askable
    shortlist = allowed[np.argsort(-close[allowed])[:50]]
    others = np.setdiff1d(allowed, shortlist)
    assert values[shortlist].min() > values[others].max()
    assert np.array_equal(others[np.argsort(-values[others])], others[np.argsort(-close[others])])
    assert set(query(name, b, 10, rng()).indices.tolist()) <= set(shortlist.tolist())


def test_a_large_pool_is_judged_on_a_hundred_items_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[np.ndarray] = []
    kept = lookahead.look_ahead
    monkeypatch.setattr(lookahead, "look_ahead", lambda b, c, t: judged.append(t) or kept(b, c, t))
    b = belief(n=400)
    utilities("epig", b, rng())
    assert len(set(judged[0].tolist())) == 100 and set(judged[0].tolist()) <= set(b.askable.tolist())


@pytest.mark.parametrize(
    "classifier",
    ["large-margin", pytest.param("bayesian-svm", marks=pytest.mark.slow)],  # alone: one latent of two
)
def test_a_fitted_model_gives_its_covariances(classifier: str) -> None:
    g = np.random.default_rng(0)
    X = g.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int) if classifier == "bayesian-svm" else np.digitize(X[:, 0], [-0.5, 0.5])
    model = make_classifier(classifier, n_inducing=12, random_state=0).fit(X[:30], y[:30])
    b = belief_of(model, X, labelled=np.arange(30), labels=y[:30])
    assert b.covariance is not None
    every = np.arange(80)
    cov = b.covariance(every, every)
    latent: Any = b.latent
    np.testing.assert_allclose(cov[:, every, every].T, latent.variance, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cov, cov.transpose(0, 2, 1), rtol=1e-4, atol=1e-5)
    assert np.linalg.eigvalsh(cov[0]).min() > -1e-3
    values = utilities("expected-error-reduction", b, rng())
    assert values[30 + np.argmax(values[30:])] > 0


def test_margin_in_deviations_is_how_often_the_second_beats_the_first() -> None:
    b = belief(n=6, n_labelled=0)
    mean, variance = b.latent  # type: ignore[misc]
    top = np.argsort(-mean, axis=1)[:, :2]
    draws = mean + np.sqrt(variance) * rng(0).standard_normal((200_000, 6, 4))
    wins = np.take_along_axis(draws, top[None, :, 1:], 2) > np.take_along_axis(draws, top[None, :, :1], 2)
    np.testing.assert_allclose(
        utilities("margin-in-deviations", b, rng()), wins.mean(axis=(0, 2)), atol=0.005
    )
    sure = belief(latent=Latent(np.zeros((5, 3)), np.zeros((5, 3))), n=5, n_labelled=0, n_classes=3)
    np.testing.assert_array_equal(utilities("margin-in-deviations", sure, rng()), 0.5)


def test_a_single_class_leads_itself() -> None:
    alone = belief(latent=Latent(np.ones((5, 1)), np.ones((5, 1))), n=5, n_labelled=0, n_classes=1)
    np.testing.assert_array_equal(utilities("margin-in-deviations", alone, rng()), 0.5)
