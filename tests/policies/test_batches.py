"""Batches: worth asking about and unlike each other."""

import tracemalloc
from inspect import signature

import numpy as np
import pytest

from tests.policies.helpers import belief, rng
from workbench.classifiers.latent import Latent
from workbench.policies import POLICIES, query, utilities
from workbench.policies import batches as module
from workbench.policies.batches import _greedy_determinant, posterior_factors

SELECTORS = [name for name in POLICIES if POLICIES[name].kind == "selector"]
DIVERSE = [name for name in SELECTORS if name != "top"]


def clumped(**changes: object):
    """Five clumps of near duplicates; the items of clump 0 are the most uncertain."""
    generator = np.random.default_rng(0)
    clump = np.repeat(np.arange(5), 40)
    X = 10 * np.eye(5)[clump] + 0.01 * generator.normal(size=(200, 5))
    gap = 0.1 + 0.02 * clump + 0.001 * generator.random(200)
    mean = np.column_stack([gap, -gap, np.full(200, -2.0)])
    phi = np.exp(-0.5 * ((X[:, None] - 10 * np.eye(5)) ** 2).sum(axis=2) / 4)
    p = np.exp(mean) / np.exp(mean).sum(axis=1, keepdims=True)
    given = {
        "n": 200,
        "C": 3,
        "n_labelled": 0,
        "features": X,
        "latent": Latent(mean, np.ones_like(mean)),
        "probabilities": p,
        "inducing_projection": lambda rows: phi[rows],
    }
    return belief(**(given | changes)), clump


@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("name", [name for name in DIVERSE if name != "core-set-latent"])
def test_diverse_batches_leave_the_clump(name: str, project: bool) -> None:
    b, clump = clumped(**({} if project else {"inducing_projection": None}))
    answer = query("margin", b, 5, rng(), selector=name)
    held = len(set(clump[answer.indices].tolist()))
    if POLICIES[name].few:  # the 50 best are the clump of 40 and some of the next
        assert held == 2
    elif name == "batch-bald":  # draws: it may take a clump twice
        assert held >= 3
    else:
        assert held == 5


def test_plain_top_stays_in_the_clump() -> None:
    b, clump = clumped()
    assert set(clump[query("margin", b, 5, rng(), selector="top").indices].tolist()) == {0}


def test_k_means_takes_the_best_of_each_cluster_best_first() -> None:
    b, _ = clumped()
    answer = query("margin", b, 5, rng(), selector="k-means")
    values = utilities("margin", b, rng())
    assert values[answer.indices[0]] == values.max()
    assert np.all(np.diff(values[answer.indices]) <= 0)
    assert set(answer.indices.tolist()) <= set(np.argsort(-values)[:50].tolist())


@pytest.mark.parametrize("name", SELECTORS)
def test_duplicates_are_no_trouble(name: str) -> None:
    b = belief(n=60, features=np.ones((60, 3)), project=False)
    answer = query("margin", b, 8, rng(), selector=name)
    assert len(set(answer.indices.tolist())) == 8


@pytest.mark.parametrize("name", SELECTORS)
def test_works_without_any_label(name: str) -> None:
    b = belief(n_labelled=0)
    assert len(query("margin", b, 6, rng(), selector=name).indices) == 6


def test_core_set_is_farthest_first() -> None:
    b = belief(n=80, n_labelled=4)
    chosen = query("core-set", b, 5, rng()).indices
    X = b.features
    held = list(b.labelled)
    for index in chosen:
        distance = ((X[:, None] - X[held]) ** 2).sum(axis=2).min(axis=1)
        assert index == distance.argmax()
        held.append(index)


def test_core_set_of_latents_measures_latent_means() -> None:
    b = belief(n=80, n_labelled=4)
    means = b.latent.mean  # type: ignore[union-attr]
    distance = ((means[:, None] - means[b.labelled]) ** 2).sum(axis=2).min(axis=1)
    assert query("core-set-latent", b, 1, rng()).indices[0] == distance.argmax()


def test_items_set_aside_are_no_centres() -> None:
    """Skipped, leased and test items have no label: the core-set does not count them as covered."""
    b = belief(n=80, n_labelled=4)
    aside = belief(n=80, labelled=np.append(b.labelled, 70), labels=np.append(b.labels, -1))
    aside_chosen = query("core-set", aside, 5, rng()).indices
    assert 70 not in aside_chosen
    expected = [i for i in query("core-set", b, 6, rng()).indices if i != 70][:1]
    assert aside_chosen[0] == expected[0]


def test_greedy_determinant_matches_explicit_matrices() -> None:
    generator = np.random.default_rng(1)
    A, r = generator.normal(size=(30, 4)), generator.uniform(0.1, 1, size=30)
    K = A @ A.T + np.diag(r)
    noise = module._NOISE * K.diagonal().max()
    chosen = [0]
    while len(chosen) < 6:
        inner = K[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
        left = K.diagonal() - np.einsum("ni,in->n", K[:, chosen], np.linalg.solve(inner, K[chosen]))
        left[chosen] = -np.inf
        chosen.append(int(left.argmax()))
    assert _greedy_determinant(A, r, 6) == chosen


def testposterior_factors_shrink_what_was_labelled() -> None:
    b = belief(n_labelled=40)
    rows = np.concatenate([b.labelled[:5], b.askable[:100]])
    known, _ = posterior_factors(b, rows)
    prior, _ = posterior_factors(belief(labelled=np.empty(0, int), labels=np.empty(0, int)), rows)
    shrink = (known**2).sum(axis=1) / (prior**2).sum(axis=1)
    assert np.all(shrink <= 1 + 1e-12)
    assert shrink[:5].mean() < shrink[5:].mean()


def test_posterior_factors_are_those_of_the_explicit_inverse() -> None:
    # a label of every class counts, the first one's too
    b = belief(labelled=np.arange(6), labels=np.array([0, 0, 1, 2, 3, -1]))
    rows = b.askable[:20]
    A, r = posterior_factors(b, rows)
    phi = b.inducing_projection(np.concatenate([rows, b.labelled[:5]]))
    prior = (phi**2).sum(axis=1).max()
    here, known = phi[:20], phi[20:]
    noise = signature(posterior_factors).parameters["noise"].default
    explicit = here @ np.linalg.inv(np.eye(phi.shape[1]) + known.T @ known / (noise * prior)) @ here.T
    assert np.allclose(A @ A.T, explicit, atol=1e-10)
    assert r == pytest.approx(np.maximum(prior - (here**2).sum(axis=1), 1e-6 * prior))


def test_determinantal_takes_the_most_probable_items_of_its_process() -> None:
    b = belief(n=60)
    values = utilities("margin", b, rng())
    rows = b.askable[np.argsort(-values[b.askable])]
    A, r = posterior_factors(b, rows)
    K = A @ A.T + np.diag(r)
    deviations = np.sqrt(K.diagonal())
    u = values[rows]
    q = 0.05 + 0.95 * (u - u[-1]) / (u[0] - u[-1])
    L = q[:, None] * K / np.outer(deviations, deviations) * q
    chosen = [0]
    while len(chosen) < 45:
        rest = [i for i in range(len(rows)) if i not in chosen]
        gains = [np.linalg.slogdet(L[np.ix_([*chosen, i], [*chosen, i])])[1] for i in rest]
        chosen.append(rest[int(np.argmax(gains))])
    assert query("margin", b, 45, rng(), selector="determinantal").indices.tolist() == rows[chosen].tolist()


def test_a_determinantal_batch_is_as_large_as_asked_for() -> None:
    """It chooses among a thousand candidates, or as many more as a large batch needs."""
    b = belief(n=1_100)
    assert len(set(query("margin", b, 1_050, rng(), selector="determinantal").indices.tolist())) == 1_050


def test_covariance_starts_with_the_best_and_then_avoids_its_neighbours() -> None:
    b, clump = clumped()
    answer = query("margin", b, 2, rng(), selector="covariance").indices
    values = utilities("margin", b, rng())
    assert answer[0] == values.argmax() and clump[answer[1]] != clump[answer[0]]


def test_batch_bald_of_one_item_is_bald() -> None:
    b = belief(n=60, n_labelled=0)
    firsts = [int(query("batch-bald", b, 1, rng(seed)).indices[0]) for seed in range(15)]
    values = np.mean([utilities("bald", b, rng(seed)) for seed in range(20)], axis=0)
    ranks = [int((values > values[i]).sum()) for i in firsts]
    assert np.median(ranks) <= 3


def test_batch_bald_gains_are_joint_information() -> None:
    """Two copies of the most informative item tell little more than one: the copy is not taken."""
    b = belief(n=40, n_labelled=0, spread=0.1)
    mean, variance = (a.copy() for a in b.latent)  # type: ignore[union-attr]
    variance[:] = 4.0
    variance[:10] = 8.0  # ten copies of one item
    mean[:10] = 0.0
    X = b.features.copy()
    X[:10] = X[0]
    phi = 3.0 * np.eye(40)
    phi[:10] = phi[0]
    b = belief(
        n=40, n_labelled=0, features=X, latent=Latent(mean, variance), inducing_projection=lambda r: phi[r]
    )
    chosen = query("batch-bald", b, 3, rng()).indices
    assert (chosen < 10).sum() == 1


def test_badge_prefers_large_gradients() -> None:
    p = np.full((100, 4), [0.97, 0.01, 0.01, 0.01])
    p[40] = 0.25
    b = belief(n=100, probabilities=p, n_labelled=0, inducing_projection=lambda rows: np.ones((len(rows), 3)))
    assert query("badge", b, 1, rng()).indices[0] == 40


@pytest.mark.parametrize("name", ["core-set", "badge", "core-set-latent"])
def test_selectors_with_a_criterion_of_their_own_say_so(name: str) -> None:
    answer = query("margin", belief(), 3, rng(), selector=name)
    assert any("margin is not used" in warning for warning in answer.warnings)
    assert query(name, belief(), 3, rng()).warnings == ()


@pytest.mark.parametrize("name", DIVERSE)
def test_memory_grows_with_items_not_with_their_pairs(name: str) -> None:
    b = belief(n=20_000, D=16, C=5, n_labelled=20)
    query("margin", belief(), 10, rng(), selector=name)  # imports
    tracemalloc.start()
    query("margin", b, 10, rng(), selector=name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # one 20,000 x 20,000 matrix would take 3.2 GB
