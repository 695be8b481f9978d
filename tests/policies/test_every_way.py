"""A policy gives an item the same utility by whichever way it is asked: one object has what a model says."""

from typing import Any

import numpy as np
import pytest

from workbench.attacks import robustness
from workbench.classifiers import make_classifier
from workbench.classifiers.protocols import supports_latent, temperature_of
from workbench.errors import InputError
from workbench.policies import POLICIES, query, utilities
from workbench.policies.batches import k_means
from workbench.policies.belief import as_scored_model, belief_of
from workbench.policies.scan import score_pool
from workbench.pools import load_pool
from workbench.sessions.learner import Learner

# whose numbers are drawn anew for each chunk: there is nothing to compare
DRAWN = {"random", "variation-ratio-mc"}
ROWWISE = [
    name
    for name, entry in POLICIES.items()
    if entry.kind == "policy" and entry.rowwise and not entry.broken and name not in DRAWN
]
MODELS: dict[str, dict[str, Any]] = {
    "large-margin": {"choice": "fixed"},
    "logistic-softmax": {"n_inducing": 16},
    "logistic-regression": {},
}
# scoring is in single precision, and products of 7 rows round differently from those of 178
NEAR = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(scope="module")
def wine() -> Any:
    return load_pool("wine").split(0)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: pytest.FixtureRequest, wine: Any) -> Any:
    items = wine.trainable[::4]
    learner = Learner(wine, request.param, MODELS[request.param])
    return learner.fit(items, np.asarray(wine.truth)[items], number=0)


@pytest.mark.parametrize("policy", ROWWISE)
def test_a_rowwise_policy_says_the_same_by_every_way(policy: str, fitted: Any, wine: Any) -> None:
    estimator, X = fitted.estimator, np.asarray(wine.features)
    if "latent" in POLICIES[policy].needs and not supports_latent(estimator):
        with pytest.raises(InputError):
            score_pool(X, estimator, policy)
        return

    def drawn() -> np.random.Generator:
        return np.random.default_rng([0])  # as a scan of seed 0 draws

    asked = utilities(policy, belief_of(estimator, X), drawn())
    by_way = {
        "the app, whole pool": utilities(policy, fitted.belief(), drawn()),
        "the app, some rows": utilities(policy, fitted.belief_at(np.arange(len(X))), drawn()),
        "a worker": utilities(policy, belief_of(as_scored_model(estimator).ship().unpack(), X), drawn()),
    }
    if policy in robustness.DETECTORS:
        entry = robustness.DETECTORS[policy]
        by_way["detection"] = entry.load()(belief_of(estimator, X), drawn())
    if policy != "variation-ratio":  # whose scan computes the best alone
        for chunk in (7, 64, 10_000):
            scan = score_pool(X, estimator, policy, top=len(X), chunk_rows=chunk, threads=2)
            by_way[f"a scan, chunks of {chunk}"] = scan.utilities[np.argsort(scan.indices)]
    for way, values in by_way.items():
        np.testing.assert_allclose(values, asked, **NEAR, err_msg=way)
    # the best ones, without those that may not be asked: by a question, a scan, and spread over a batch
    closed = fitted.items
    belief = belief_of(estimator, X, labelled=closed, labels=fitted.codes)
    best = query(policy, belief, 5, drawn(), "top")
    scan = score_pool(X, estimator, policy, top=5, chunk_rows=50, exclude=closed)
    np.testing.assert_allclose(scan.utilities, best.utilities[best.indices], **NEAR)
    batch = k_means(belief.with_utilities(best.utilities), 3, drawn())
    found = score_pool(X, estimator, policy, top=len(X) - len(closed), exclude=closed)
    value = dict(zip(found.indices.tolist(), found.utilities, strict=True))
    np.testing.assert_allclose([value[i] for i in batch], asked[batch], **NEAR)


def test_the_temperature_is_the_models_own(fitted: Any, wine: Any) -> None:
    beta = temperature_of(fitted.estimator)
    model = as_scored_model(fitted.estimator)
    assert model.temperature == beta == model.ship().unpack().temperature
    assert belief_of(model, wine.features).temperature == (1.0 if beta is None else beta)
    with pytest.raises(InputError, match="its own temperature"):
        score_pool(wine.features, fitted.estimator, "margin", temperature=2.0)


def test_a_row_that_is_left_out_may_hold_anything(wine: Any) -> None:
    X = np.array(wine.features)
    model = make_classifier("logistic-regression", classes=np.arange(3)).fit(X, np.asarray(wine.truth))
    clean = score_pool(X, model, "entropy", exclude=[5], top=9)
    X[5] = np.nan
    for policy in ("entropy", "margin"):
        score_pool(X, model, policy, exclude=[5], top=9)
    assert np.array_equal(score_pool(X, model, "entropy", exclude=[5], top=9).indices, clean.indices)


class Nan:
    """A model that says nothing about its last row."""

    classes_ = np.arange(2)

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Nan":
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = np.full((len(X), 2), 0.5)
        p[X[:, 0] > 8] = np.nan
        return p


@pytest.mark.parametrize("policy", ["entropy", "margin", "least-confident"])
def test_a_model_that_says_nothing_is_refused_by_a_scan_as_by_a_question(policy: str) -> None:
    X = np.arange(10.0)[:, None]
    with pytest.raises(InputError, match="9"):
        score_pool(X, Nan(), policy)
    with pytest.raises(InputError, match="9"):
        query(policy, belief_of(Nan(), X), 1, np.random.default_rng(0))


def test_a_policy_that_leaves_too_few_says_so(wine: Any, fitted: Any) -> None:
    def two(belief: Any, rng: np.random.Generator) -> np.ndarray:
        return np.where(np.arange(len(belief)) < 2, 1.0, np.nan)

    belief = belief_of(fitted.estimator, np.asarray(wine.features))
    answer = query(two, belief, 5, np.random.default_rng(0), "top")
    assert len(answer.indices) == 2 and any("2 items" in warning for warning in answer.warnings)
    with pytest.raises(InputError, match="none of the"):
        query(lambda b, r: np.full(len(b), np.nan), belief, 1, np.random.default_rng(0))


@pytest.mark.parametrize("selector", ["covariance", "determinantal", "badge"])
def test_copies_are_no_obstacle_without_a_projection(selector: str) -> None:
    from workbench.policies import Belief

    for seed in range(20):
        draw = np.random.default_rng(seed)
        X = np.tile(draw.standard_normal(int(draw.integers(1, 8))) * 3, (60, 1))
        X[0] += 1
        belief = Belief(
            features=X,
            labelled=np.array([], int),
            labels=np.array([], int),
            n_classes=2,
            probabilities=np.full((60, 2), 0.5),
        )
        answer = query("margin", belief, 5, np.random.default_rng(0), selector)
        assert len(set(answer.indices.tolist())) == 5
