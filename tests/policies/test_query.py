"""From a belief to items: every policy and selector, by every way of naming one."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from tests.policies.helpers import belief, rng
from workbench.classifiers.calibration import softmax
from workbench.classifiers.latent import Latent
from workbench.errors import InputError
from workbench.policies import POLICIES, Belief, query, utilities, variation_ratio
from workbench.registry import CodeName

NAMES = list(POLICIES)
PLAIN = [name for name in NAMES if POLICIES[name].kind == "policy"]
SELECTORS = [name for name in NAMES if POLICIES[name].kind == "selector"]
# whose utilities belong to places in the pool: they draw numbers, or items to look at
DRAWING = {"random", "variation-ratio-mc", "expected-error-reduction", "epig"}


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("name", NAMES)
class TestEveryName:
    def test_gives_distinct_items_that_may_be_asked(self, name: str, k: int) -> None:
        b = belief()
        answer = query(name, b, k, rng())
        assert len(answer.indices) == k == len(set(answer.indices.tolist()))
        assert not np.isin(answer.indices, b.labelled).any()
        assert answer.utilities.shape == (len(b),)
        assert np.isnan(answer.utilities[b.labelled]).all()

    def test_repeats_with_the_same_rng(self, name: str, k: int) -> None:
        assert np.array_equal(
            query(name, belief(), k, rng()).indices, query(name, belief(), k, rng()).indices
        )

    def test_permuting_the_pool_permutes_the_answer(self, name: str, k: int) -> None:
        if name in DRAWING:
            pytest.skip("draws one number per place")
        order = np.random.default_rng(5).permutation(300)
        moved = query(name, belief(order=order), k, rng()).indices
        assert np.array_equal(order[moved], query(name, belief(), k, rng()).indices)

    def test_asks_for_all_that_is_left_and_says_so(self, name: str, k: int) -> None:
        b = belief(n=14, n_labelled=10)
        answer = query(name, b, 10 * k, rng())
        assert sorted(answer.indices.tolist()) == b.askable.tolist()
        assert any("only 4 are left" in warning for warning in answer.warnings)

    def test_says_when_nothing_is_left(self, name: str, k: int) -> None:
        with pytest.raises(InputError, match="All 10 items"):
            query(name, belief(n=10, n_labelled=10), k, rng())

    def test_leaves_the_belief_as_it_was(self, name: str, k: int) -> None:
        b = belief()
        held = [np.array(a) for a in (b.features, *b.latent, b.probabilities, b.labelled)]  # type: ignore[misc]
        query(name, b, k, rng())
        for before, after in zip(held, (b.features, *b.latent, b.probabilities, b.labelled), strict=True):  # type: ignore[misc]
            assert np.array_equal(before, after)
        assert b.utilities is None

    def test_takes_a_belief_in_float32(self, name: str, k: int) -> None:
        latent = Latent(*(a.astype(np.float32) for a in belief().latent))  # type: ignore[union-attr]
        b = belief(latent=latent, probabilities=belief().probabilities.astype(np.float32))
        assert len(query(name, b, k, rng()).indices) == k


@pytest.mark.parametrize("name", PLAIN)
def test_the_one_item_has_the_largest_utility(name: str) -> None:
    if name in DRAWING:
        pytest.skip("draws again")
    b = belief()
    every = utilities(name, b, rng())
    assert every.shape == (len(b),) and not np.isnan(every).any()
    allowed = np.where(np.isin(np.arange(len(b)), b.labelled), -np.inf, every)
    assert query(name, b, 1, rng()).indices[0] == allowed.argmax()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_without_latents_is_served_or_refused_in_words(name: str) -> None:
    b = belief(latent=None, project=False)
    if "latent" in POLICIES[name].needs:
        with pytest.raises(InputError, match="needs latent functions"):
            query(name, b, 3, rng())
    else:
        assert len(query(name, b, 3, rng()).indices) == 3


def test_utilities_are_what_they_say() -> None:
    b = belief()
    p, (mean, variance) = b.probabilities, b.latent  # type: ignore[misc]
    ranked = np.sort(mean, axis=1)
    soft = np.exp(mean) / np.exp(mean).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(utilities("entropy", b, rng()), scipy_entropy(p, axis=1))
    np.testing.assert_allclose(utilities("entropy-of-means", b, rng()), scipy_entropy(soft, axis=1))
    np.testing.assert_allclose(utilities("least-confident", b, rng()), 1 - p.max(axis=1))
    np.testing.assert_allclose(utilities("margin", b, rng()), ranked[:, -2] - ranked[:, -1])
    np.testing.assert_allclose(utilities("variance", b, rng()), variance.mean(axis=1))
    np.testing.assert_allclose(utilities("variation-ratio", b, rng()), variation_ratio(mean, variance))
    ranked = np.sort(p, axis=1)
    without = belief(latent=None)
    np.testing.assert_allclose(utilities("margin", without, rng()), ranked[:, -2] - ranked[:, -1])


def test_certain_probabilities_have_no_entropy() -> None:
    b = belief(n=3, n_labelled=0, probabilities=np.eye(4)[:3])
    np.testing.assert_array_equal(utilities("entropy", b, rng()), 0.0)


def test_bald_is_the_mutual_information() -> None:
    b = belief(n=4, n_labelled=0)
    mean, variance = b.latent  # type: ignore[misc]
    draws = mean[:, None] + np.sqrt(variance)[:, None] * rng(0).standard_normal((4, 100_000, 4))
    p = np.exp(b.temperature * draws)
    p /= p.sum(axis=2, keepdims=True)
    exact = scipy_entropy(p.mean(axis=1), axis=1) - scipy_entropy(p, axis=2).mean(axis=1)
    got = np.mean([utilities("bald", b, rng(s)) for s in range(30)], axis=0)
    np.testing.assert_allclose(got, exact, rtol=0.08)
    sure = belief(latent=Latent(mean, np.zeros_like(variance)), n=4, n_labelled=0)
    np.testing.assert_allclose(utilities("bald", sure, rng()), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("seed", "n", "means", "variances", "temperature"),
    [
        (11, 600, 1.0, (0.1, 2.0), 1.0),
        *(
            pytest.param(3, 1800, 1.5, (0.3, 3.0), temperature, marks=pytest.mark.slow)
            for temperature in (1.0, 1.3)
        ),
    ],
)
def test_two_seeds_agree_on_what_bald_asks_first(
    seed: int, n: int, means: float, variances: tuple[float, float], temperature: float
) -> None:
    g = np.random.default_rng(seed)
    latent = Latent(g.normal(0.0, means, (n, 10)), g.uniform(*variances, (n, 10)))
    b = belief(n=n, n_labelled=0, C=10, latent=latent)
    b.temperature = temperature
    values = [utilities("bald", b, rng(seed)) for seed in range(5)]
    tops = [np.argsort(-value)[:10] for value in values]
    shared = [len(np.intersect1d(a, c)) for i, a in enumerate(tops) for c in tops[i + 1 :]]
    assert np.mean(shared) >= 9.0, "128 random draws share six, classes out of order 8.8"
    mean, deviation = latent.mean[tops[0]], np.sqrt(latent.variance[tops[0]])
    p = softmax(b.temperature * (mean[:, None] + deviation[:, None] * rng(9).standard_normal((100_000, 10))))
    exact = scipy_entropy(p.mean(axis=1), axis=1) - scipy_entropy(p, axis=2).mean(axis=1)
    for value in values:
        np.testing.assert_allclose(value[tops[0]], exact, atol=0.012)
    assert (utilities("bald", b, rng(0)) == values[0]).all(), "the same for a seed"


def test_ties_are_broken_by_the_rng() -> None:
    b = belief(latent=Latent(np.zeros((300, 4)), np.ones((300, 4))))
    for name in ("variation-ratio", "margin", "variance"):
        assert len({int(query(name, b, 1, rng(seed)).indices[0]) for seed in range(30)}) > 10


def test_random_is_uniform_and_stays_so_in_batches() -> None:
    b = belief(n=25, n_labelled=5)
    counts = np.zeros(25)
    for seed in range(600):
        counts[query("random", b, 5, rng(seed)).indices] += 1
    assert counts[b.labelled].sum() == 0
    assert np.abs(counts[b.askable] / 600 - 0.25).max() < 0.09  # five standard errors


def test_a_batch_is_spread_by_default_and_plain_on_request() -> None:
    b = belief()
    spread = query("margin", b, 5, rng())
    plain = query("margin", b, 5, rng(), selector="top")
    every = np.where(np.isin(np.arange(300), b.labelled), -np.inf, utilities("margin", b, rng()))
    assert np.array_equal(plain.indices, np.argsort(-every)[:5])
    assert not np.array_equal(spread.indices, plain.indices)
    assert spread.warnings == () and "worse than random" in plain.warnings[0]
    assert query("margin", b, 1, rng(), selector="top").warnings == ()
    assert "worse than random" in query("margin", b, 2, rng(), selector="top").warnings[0]


@pytest.mark.parametrize("C", [2, 3, 10])
def test_the_range_of_a_utility_ends_where_all_classes_are_alike(C: int) -> None:
    alike = belief(
        n=3,
        C=C,
        n_labelled=0,
        latent=Latent(np.zeros((3, C)), np.ones((3, C))),
        probabilities=np.full((3, C), 1 / C),
    )
    for name in ("entropy", "entropy-of-means", "least-confident", "variation-ratio"):
        ends = POLICIES[name].range_for(C)
        assert ends is not None and ends[0] == 0.0
        np.testing.assert_allclose(utilities(name, alike, rng()), ends[1])


def test_what_says_nothing_about_an_item_detects_nothing() -> None:
    b = belief()
    drawn = utilities("random", b, rng(0))
    assert not np.array_equal(drawn, utilities("random", b, rng(1))) and not POLICIES["random"].detects
    assert POLICIES["variance"].detects and POLICIES["variation-ratio"].detects


def test_pruned_items_have_no_utility_and_the_asked_ones_do() -> None:
    answer = query("variation-ratio", belief(n=2000, spread=5.0), 1, rng())
    assert np.isfinite(answer.utilities[answer.indices]).all()
    assert np.nanmax(answer.utilities) == answer.utilities[answer.indices[0]]


def farthest(b: Belief, generator: np.random.Generator) -> np.ndarray:
    return np.asarray(np.abs(b.features).sum(axis=1), dtype=float)


def firsts(b: Belief, k: int, generator: np.random.Generator) -> np.ndarray:
    return b.askable[:k]


def test_a_function_is_a_policy() -> None:
    b = belief()
    expected = query(farthest, b, 1, rng()).indices
    assert np.array_equal(query(CodeName(f"{__name__}:farthest"), b, 1, rng()).indices, expected)
    assert np.array_equal(query(firsts, b, 3, rng()).indices, b.askable[:3])
    assert np.array_equal(query(CodeName(f"{__name__}:firsts"), b, 3, rng()).indices, b.askable[:3])
    assert np.array_equal(query("margin", b, 3, rng(), selector=firsts).indices, b.askable[:3])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("variation-ration", "Did you mean 'variation-ratio'"),
        (CodeName("no_such_package:thing"), "Cannot import"),
        (CodeName("numpy:no_such_thing"), "nothing called"),
        (CodeName("numpy:pi"), "not a function"),
        (3, "A policy is a name"),
        (lambda b, g: np.zeros(3), "one number per item"),
        (lambda b, g: np.array(["a"] * 300), "one number per item"),
        (lambda b, k, g: np.array([0]), "may not be asked"),
        (lambda b, k, g: np.array([50, 50]), "twice"),
        (lambda b, k, g: np.array([0.5]), "item numbers"),
        (lambda b, k, g: np.array([5000]), "may not be asked"),
    ],
)
def test_bad_policies_are_refused_in_words(policy: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        query(policy, belief(), 2, rng())  # type: ignore[arg-type]


def test_nan_from_a_policy_means_not_askable() -> None:
    def some(b: Belief, g: np.random.Generator) -> np.ndarray:
        values = np.full(len(b), np.nan)
        values[[20, 30]] = 1.0
        return values

    assert sorted(query(some, belief(), 5, rng(), selector="top").indices.tolist()) == [20, 30]


@pytest.mark.parametrize(
    "name", ["variation-ratio", "margin", "bald", "variance", "entropy", "least-confident"]
)
def test_nan_from_the_model_names_the_item(name: str) -> None:
    mean, variance = belief().latent  # type: ignore[misc]
    mean[123, 2] = np.nan
    p = belief().probabilities
    p[123] = np.nan
    b = belief(latent=Latent(mean, variance), probabilities=p, ids=[f"id-{i}" for i in range(300)])
    with pytest.raises(InputError, match=r"item 123 \(id 'id-123'\)"):
        query(name, b, 1, rng())
    with pytest.raises(InputError, match="item 123"):
        query(name, belief(latent=lambda: Latent(mean, variance), probabilities=lambda: p), 4, rng())


def test_a_negative_variance_names_the_item_of_the_pool() -> None:
    mean, variance = belief().latent  # type: ignore[misc]
    variance[123, 2] = -1.0
    with pytest.raises(InputError, match="item 123"):
        query("variation-ratio", belief(latent=Latent(mean, variance)), 1, rng())


def test_a_selector_is_no_policy_and_a_policy_no_selector() -> None:
    with pytest.raises(InputError, match="not a selector"):
        query("margin", belief(), 3, rng(), selector="entropy")
    with pytest.raises(InputError, match="selects batches"):
        utilities("k-means", belief(), rng())
    with pytest.raises(InputError, match="k=0"):
        query("margin", belief(), 0, rng())


def test_asking_imports_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from tests.policies.helpers import belief, rng\n"
        "from workbench.policies import query\n"
        "query('variation-ratio', belief(), 1, rng())\n"
        "print(sorted({'tensorflow', 'gpflow', 'sklearn', 'dask', 'pandas'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
