"""The kept projection of a pool against going back to the features."""

import pickle
from typing import Any

import numpy as np
import pytest

from workbench.policies import query
from workbench.policies.variation import variation_ratio
from workbench.pools import load_pool
from workbench.sessions import fitted_model as latents_module
from workbench.sessions.learner import Learner


def fitted(n: int, classifier: str = "large-margin", pool_name: str = "overlapping", **options: Any) -> Any:
    pool = load_pool(pool_name, **({"n_items": 3000} if pool_name == "overlapping" else {}))
    assert pool.truth is not None
    items = np.random.default_rng(0).permutation(len(pool))[:n]
    learner = Learner(pool, classifier, options, seed=0)
    return learner, learner.fit(items, pool.truth[items], number=0), items


@pytest.mark.parametrize(
    ("n", "classifier", "pool", "options"),
    [
        (60, "large-margin", "overlapping", {}),
        (400, "large-margin", "overlapping", {}),  # the mean has its wide basis
        (60, "large-margin", "overlapping", {"kernel": "matern32"}),
        (60, "bayesian-svm", "breast-cancer", {}),  # one latent, two columns
        (60, "logistic-softmax", "wine", {}),
        pytest.param(  # alone: in single precision, with a large variance
            *(60, "logistic-softmax", "wine", {"dtype": "float32", "variance": 1000.0}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_it_says_what_the_classifier_says(
    n: int, classifier: str, pool: str, options: dict[str, Any]
) -> None:
    learner, model, _ = fitted(n, classifier, pool, **options)
    expected = model.estimator.predict_latent(model.pool.features)
    scale = float(np.max(expected.variance))
    assert learner.latents.of(model.estimator) is not None and model.latent.mean.dtype == np.float32
    assert np.abs(model.latent.variance - expected.variance).max() < 2e-5 * scale
    assert np.abs(model.latent.mean - expected.mean).max() < 2e-5 * max(1.0, np.abs(expected.mean).max())


def test_the_projection_is_made_once_and_again_when_the_kernel_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, model, items = fitted(60)
    made = []
    from workbench.classifiers.predictor import Predictor

    original = Predictor.projected

    def counted(self: Any, X: Any) -> Any:
        made.append(1)
        return original(self, X)

    monkeypatch.setattr(Predictor, "projected", counted)
    assert model.latent is not None
    second = learner.fit(items[:50], model.codes[:50], number=1, previous=model.state)
    assert second.latent is not None and len(made) == 1
    learner.options["length_scale_factor"] = 2.0
    third = learner.fit(items, model.codes, number=2)
    expected = third.estimator.predict_latent(learner.pool.features)
    assert np.abs(third.latent.mean - expected.mean).max() < 1e-3 and len(made) == 2


def test_a_pool_too_big_to_keep_goes_back_to_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latents_module, "CACHED_BYTES", 1000)
    learner, model, _ = fitted(60)
    assert learner.latents.of(model.estimator) is None
    assert model.latent.mean.dtype == np.float64


def test_what_would_be_too_big_in_float64_is_kept_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, model, _ = fitted(60)
    P, B = len(model.estimator.predictor_.whitener), len(model.estimator.predictor_.points)
    n = len(learner.pool)
    monkeypatch.setattr(latents_module, "CACHED_BYTES", n * 4 * (P + (B if B > P else 0)))
    kept = latents_module.PoolLatents(learner.pool.features).of(model.estimator)
    assert kept is not None
    expected = model.estimator.predict_latent(learner.pool.features)
    assert np.abs(kept.mean - expected.mean).max() < 1e-3


def test_the_cached_projection_does_not_travel() -> None:
    learner, model, _ = fitted(60)
    assert model.latent is not None
    again = pickle.loads(pickle.dumps(learner.latents))
    assert again._cached is None and np.array_equal(again.features, learner.pool.features)


@pytest.mark.parametrize("k", [1, 20])
@pytest.mark.parametrize("n", [20, 100, 300])
def test_asking_gives_what_computing_everything_gives(n: int, k: int) -> None:
    _, model, items = fitted(n)
    asked = query("variation-ratio", model.belief(), k, np.random.default_rng(0), "top")
    values = variation_ratio(*model.estimator.predict_latent(model.pool.features))
    values[items] = -1.0
    best = np.sort(values)[::-1][:k]
    assert not set(asked.indices) & set(items.tolist())
    assert np.abs(np.sort(values[asked.indices])[::-1] - best).max() < 1e-5
