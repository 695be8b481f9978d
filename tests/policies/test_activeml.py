"""scikit-activeml: the same numbers where both have them, and strategies traded both ways."""

import builtins
import sys

import numpy as np
import pytest

pytest.importorskip("skactiveml", reason="scikit-activeml is an optional extra")

from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import CoreSet, GreedyBALD, MonteCarloEER, UncertaintySampling, uncertainty_scores
from sklearn.linear_model import LogisticRegression

from tests.policies.helpers import belief, rng
from workbench.classifiers import make_classifier
from workbench.errors import InputError
from workbench.policies import query, utilities
from workbench.policies.activeml import BeliefClassifier, WorkbenchStrategy, from_activeml
from workbench.registry import CodeName

SHARED = {"entropy": "entropy", "least-confident": "least_confident", "margin": "margin_sampling"}
THEIRS = ["RandomSampling", "UncertaintySampling", "CoreSet", "TypiClust", "Badge", "QueryByCommittee"]


@pytest.mark.parametrize(("ours", "theirs"), SHARED.items())
def test_utilities_agree_on_shared_probabilities(ours: str, theirs: str) -> None:
    b = belief(latent=None)
    expected = uncertainty_scores(b.probabilities, method=theirs)
    got = utilities(ours, b, rng())
    if ours == "margin":
        got = got + 1  # theirs is one minus the gap
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [("entropy", "entropy"), ("least-confident", "least_confident")])
def test_the_same_item_is_asked(ours: str, theirs: str) -> None:
    b = belief(latent=None)
    strategy = from_activeml(UncertaintySampling(method=theirs))
    assert np.array_equal(query(strategy, b, 1, rng()).indices, query(ours, b, 1, rng()).indices)


@pytest.mark.parametrize("name", THEIRS)
def test_their_strategies_work_in_our_loop_by_name(name: str) -> None:
    b = belief()
    answer = query(CodeName(f"workbench.policies.activeml:{name}"), b, 4, rng())
    assert len(set(answer.indices.tolist())) == 4
    assert not np.isin(answer.indices, b.labelled).any()
    again = query(CodeName(f"workbench.policies.activeml:{name}"), b, 4, rng())
    assert np.array_equal(answer.indices, again.indices)


def test_core_sets_agree() -> None:
    b = belief()
    assert np.array_equal(
        query(from_activeml(CoreSet()), b, 5, rng()).indices, query("core-set", b, 5, rng()).indices
    )


def test_draws_of_probabilities_have_the_moments_of_the_latents() -> None:
    b = belief(n=20)
    X = np.ascontiguousarray(b.features)
    drawn = BeliefClassifier(b, np.arange(20), X, random_state=0).sample_proba(X, 4_000)
    gaps = np.log(drawn[..., 0] / drawn[..., 1]) / b.temperature
    mean, variance = b.latent.mean, b.latent.variance
    np.testing.assert_allclose(gaps.mean(axis=0), mean[:, 0] - mean[:, 1], atol=0.15)
    np.testing.assert_allclose(gaps.std(axis=0), np.sqrt(variance[:, 0] + variance[:, 1]), rtol=0.06)


def test_their_committee_is_drawn_from_our_latents() -> None:
    b = belief(n=80, n_labelled=8, spread=0.2)
    ranks = (-utilities("bald", b, rng())).argsort().argsort()
    chosen = query(from_activeml(GreedyBALD()), b, 1, rng()).indices[0]
    assert ranks[chosen] < 20


def test_items_set_aside_are_hidden_from_theirs() -> None:
    b = belief(labelled=np.arange(20), labels=np.r_[np.arange(10) % 4, np.full(10, -1)])
    assert query(CodeName("workbench.policies.activeml:CoreSet"), b, 30, rng()).indices.min() >= 20


def test_our_policy_is_a_strategy_of_theirs() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 3))
    y = np.full(120, np.nan)
    y[:15] = np.arange(15) % 3
    clf = SklearnClassifier(LogisticRegression(), classes=[0, 1, 2])
    strategy = WorkbenchStrategy("entropy", random_state=0)
    indices, values = strategy.query(X, y, clf, batch_size=4, return_utilities=True)
    assert len(set(indices.tolist())) == 4 and indices.min() >= 15
    assert values.shape == (4, 120) and np.isnan(values[:, :15]).all()
    assert np.isnan(values[1:, indices[0]]).all()
    reference = UncertaintySampling(method="entropy", random_state=0).query(X, y, clf)
    assert strategy.query(X, y, clf).tolist() == reference.tolist()
    only = strategy.query(X, y, clf, candidates=np.array([30, 40, 50]), batch_size=2)
    assert set(only.tolist()) <= {30, 40, 50}


def test_our_classifier_serves_it_with_latents_and_text_labels() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(90, 3))
    y = np.full(90, "?", dtype="<U3")
    y[:12] = np.where(X[:12, 0] > 0, "cat", "dog")
    model = make_classifier("large-margin", classes=["cat", "dog", "owl"], n_inducing=8, random_state=0)
    strategy = WorkbenchStrategy("variation-ratio", missing_label="?", random_state=0)
    first = strategy.query(X, y, model, batch_size=3)
    assert len(first) == 3 and first.min() >= 12
    fitted = model.fit(X[:12], y[:12])
    again = WorkbenchStrategy("variation-ratio", missing_label="?", random_state=0)
    assert np.array_equal(again.query(X, y, fitted, fit_clf=False, batch_size=3), first)
    refused = WorkbenchStrategy("variation-ratio", missing_label="?", random_state=0)
    with pytest.raises(InputError, match="needs latent functions"):
        refused.query(X, y, LogisticRegression())


def test_strategies_that_refit_get_a_classifier_of_their_own() -> None:
    b = belief(n=25, n_labelled=8)
    with pytest.raises(InputError, match="classifier="):
        query(from_activeml(MonteCarloEER()), b, 1, rng())
    clf = SklearnClassifier(LogisticRegression(), classes=list(range(4)))
    answer = query(from_activeml(MonteCarloEER(), classifier=clf), b, 1, rng())
    assert answer.indices[0] not in b.labelled


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoSuchStrategy", "nothing called"),
        ("ExpectedModelChangeMaximization", "regression"),
        ("Quire", "needs options"),
        ("DiscriminativeAL", "give `classifier`"),
        ("ProbabilisticAL", "frequencies"),
    ],
)
def test_what_cannot_be_served_is_said(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        query(CodeName(f"workbench.policies.activeml:{name}"), belief(), 1, rng())


def test_a_belief_knows_its_items_only() -> None:
    b = belief()
    clothes = BeliefClassifier(b, np.arange(300), b.features)
    np.testing.assert_array_equal(clothes.predict_proba(b.features[[7, 3]]), b.probabilities[[7, 3]])
    with pytest.raises(InputError, match="not in the pool"):
        clothes.predict_proba(b.features[:1] + 1)
    with pytest.raises(InputError, match="refits"):
        clothes.fit(b.features, np.zeros(300))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.startswith("skactiveml"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "workbench.policies.activeml")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match="activeml"):
        query(CodeName("workbench.policies.activeml:CoreSet"), belief(), 1, rng())
