import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from workbench.arrays import Cache
from workbench.classifiers import Geometry, networks
from workbench.classifiers.networks import LargeMarginNetClassifier, SoftmaxNetClassifier
from workbench.engine import network_training
from workbench.errors import InputError
from workbench.metrics import error_rate, negative_log_likelihood

QUICK = {"input_shape": (8, 8), "learning_rate": 3e-3, "min_steps": 40, "random_state": 0}
QUICK_NET = QUICK | {"pretrain_epochs": 6, "joint_epochs": 3, "n_inducing": 24}


@pytest.fixture(scope="module")
def digits():
    bunch = load_digits()
    X, y = bunch.images.reshape(-1, 64) / 16.0, bunch.target.astype(str)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[400:1200]], y[order[400:1200]], X[order[:400]], y[order[:400]]


@pytest.fixture(scope="module")
def net(digits):
    return LargeMarginNetClassifier(**QUICK_NET).fit(*digits[:2])


@pytest.fixture(scope="module")
def softmax_net(digits):
    return SoftmaxNetClassifier(epochs=10, **QUICK).fit(*digits[:2])


@pytest.mark.slow  # alone: both networks learn, not only run
@pytest.mark.parametrize("which", ["net", "softmax_net"])
def test_learns_digits(which, digits, request):
    model = request.getfixturevalue(which)
    p = model.predict_proba(digits[2])
    codes = digits[3].astype(int)
    assert error_rate(codes, p) < 0.06
    assert negative_log_likelihood(codes, p) < 0.3
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (model.predict(digits[2]) == model.classes_[p.argmax(axis=1)]).all()


@pytest.mark.slow  # alone: the joint training is an ascent
def test_training_together_raises_the_objective(net):
    trace = net.objective_trace_
    assert trace[-1] == net.objective_ > trace[0]
    assert net.n_iter_ >= 80


@pytest.mark.slow  # alone: the layers stay as they are between two labels
def test_a_labelling_round_refits_the_head_alone(digits):
    X, y = digits[:2]
    model = LargeMarginNetClassifier(warm_start=True, **QUICK_NET).fit(X[:300], y[:300])
    weights, before = model.weights_, model.predict_latent(digits[2])
    beta = model.beta_
    model.fit(X[:310], y[:310])
    assert model.beta_ == beta  # of rows the network never saw; the head alone would be too sure
    assert model.weights_ is weights and model.trained_rows_ == 300
    after = model.predict_latent(digits[2])
    assert np.abs(after.mean - before.mean).max() > 1e-3
    # the head is what a head of its own would be on these features
    features = model.network_features(X[:310]).astype(float)
    alone = clone(model.head_).fit(features, y[:310].astype(int))
    mean = alone.predict_latent(model.network_features(digits[2]).astype(float)).mean
    assert np.abs(mean - after.mean).mean() < 0.1 * np.abs(mean).mean()
    assert (mean.argmax(axis=1) == after.mean.argmax(axis=1)).mean() > 0.98
    model.fit(X[:600], y[:600])
    assert model.weights_ is not weights and model.trained_rows_ == 600
    weights = model.weights_
    model.set_params(refit="whole").fit(X[:610], y[:610])
    assert model.weights_ is not weights


def test_retraining_can_be_left_to_the_person(digits):
    X, y = digits[:2]
    model = LargeMarginNetClassifier(warm_start=True, retrain_growth=None, **QUICK_NET).fit(X[:50], y[:50])
    weights = model.weights_
    assert model.fit(X[:200], y[:200]).weights_ is weights


def test_a_saved_model_continues_as_the_living_one(digits):
    X, y = digits[:2]
    living = LargeMarginNetClassifier(warm_start=True, **QUICK_NET).fit(X[:60], y[:60])
    saved = clone(living).set_state(living.get_state())
    for rows in (62, 64):
        living.fit(X[:rows], y[:rows])
        saved.fit(X[:rows], y[:rows])
    assert (living.predict_proba(digits[2]) == saved.predict_proba(digits[2])).all()


@pytest.mark.slow  # alone: a network that gets a class more keeps its weights
def test_classes_may_be_known_first_and_new_ones_arrive(digits):
    X, y = digits[:2]
    rows = np.isin(y, ["0", "1", "2"])
    model = LargeMarginNetClassifier(classes=["0", "1", "2", "7"], warm_start=True, **QUICK_NET)
    model.fit(np.empty((0, 64)), [])
    assert (model.predict_proba(X[:3]) == 0.25).all()
    model.fit(X[rows], y[rows])
    assert model.predict_proba(X).shape[1] == 4
    weights = model.weights_
    model.set_params(classes=["0", "1", "2", "7", "8"]).fit(X[rows], y[rows])
    assert model.weights_ is weights
    assert model.predict_proba(X).shape[1] == 5
    assert model.score(X[rows], y[rows]) > 0.95


def test_a_handful_of_labels_is_enough_to_begin(digits):
    X, y = digits[:2]
    first = [int(np.flatnonzero(y == c)[0]) for c in np.unique(y)]
    geometry = Geometry.of(X, 24, 0, common_scale=True)
    model = LargeMarginNetClassifier(geometry=geometry, **QUICK_NET).fit(X[first], y[first])
    assert model.score(digits[2], digits[3]) > 0.4
    # inducing points come from the pool's centres too, not from ten labels alone
    assert len(model.head_.geometry_.inducing) == 24


def test_a_callback_stops_and_leaves_a_usable_model(digits):
    seen = []

    def stop(fraction, objective):
        seen.append((fraction, objective))
        return len(seen) >= 30

    model = LargeMarginNetClassifier(**QUICK_NET | {"min_steps": 200}).fit(*digits[:2], callback=stop)
    fractions = [f for f, _ in seen]
    assert len(seen) == 30 and fractions == sorted(fractions) and fractions[-1] < 0.9
    assert model.n_iter_ < 400
    assert model.score(digits[2], digits[3]) > 0.7


def test_temperature_is_set_on_labels_that_a_fit_did_not_see(digits, monkeypatch):
    X, y = digits[0][:200], digits[1][:200]
    rows_seen = []
    train = network_training.train_joint

    def spy(network, shape, weights, head, kernel, shift, scale, rows, *rest, **options):
        rows_seen.append(len(rows))
        return train(network, shape, weights, head, kernel, shift, scale, rows, *rest, **options)

    monkeypatch.setattr(network_training, "train_joint", spy)
    by_halves = LargeMarginNetClassifier(**QUICK_NET).fit(X, y)
    LargeMarginNetClassifier(calibration="leave-one-out", **QUICK_NET).fit(X, y)
    monkeypatch.setattr(networks, "HELD_OUT_FROM", 200)
    model = LargeMarginNetClassifier(**QUICK_NET).fit(X, y)
    assert rows_seen == [200, 100, 100, 200, 190]
    assert model.head_.n_rows_ == by_halves.head_.n_rows_ == 200 and min(model.beta_, by_halves.beta_) > 0


def test_features_are_computed_once_for_the_same_rows(digits, monkeypatch):
    X, y = digits[0][:200], digits[1][:200]
    model = LargeMarginNetClassifier(warm_start=True, **QUICK_NET).fit(X, y)
    monkeypatch.setattr(networks, "_FEATURES", Cache(1 << 24, np.size))
    calls = []
    compute = network_training.features_of
    monkeypatch.setattr(network_training, "features_of", lambda *a: calls.append(len(a[-1])) or compute(*a))
    model.predict(digits[2])
    model.fit(X[:198], y[:198]).predict(digits[2].copy())
    # a session restores a new estimator each round
    clone(model).set_state(model.get_state()).predict(digits[2])
    assert calls.count(400) == 1
    model.predict(digits[2] * 0.5)
    assert calls.count(400) == 2


def test_a_cache_lets_go_of_what_was_asked_for_longest_ago():
    cache = Cache(5, len)
    assert [cache.ask(word, lambda word=word: word) for word in ("aa", "bb", "aa", "cc")][2:] == ["aa", "cc"]
    assert list(cache) == ["aa", "cc"]
    assert cache.ask("aa", lambda: "never") == "aa"
    assert cache.ask("larger", lambda: "than its limit") and list(cache) == ["larger"]


def test_a_value_of_a_cache_is_there_for_other_threads_while_it_is_asked_for():
    cache, sizes = Cache(5), []

    class Key(str):
        def __hash__(self):
            sizes.append(len(cache))  # what a thread would see that looks now
            return hash(str(self))

    key = Key("a")
    cache.ask(key, lambda: 1)
    sizes.clear()
    assert cache.ask(key, lambda: 2) == 1 and set(sizes) == {1}


def test_a_value_that_another_thread_computed_meanwhile_is_the_last():
    cache = Cache(2)

    def compute():
        cache.ask("a", lambda: "theirs")
        cache.ask("b", lambda: "b")
        return "ours"

    assert cache.ask("a", compute) == "ours" and list(cache) == ["b", "a"]


def test_remembered_features_are_told_apart_by_more_than_a_checksum(net, digits, monkeypatch):
    monkeypatch.setattr(networks, "_FEATURES", Cache(1 << 24, np.size))
    for name in ("crc32", "adler32"):
        monkeypatch.setattr(f"zlib.{name}", lambda *_: 0)
    first, second = digits[2][:50], digits[2][50:100]
    assert np.abs(net.network_features(first) - net.network_features(second)).max() > 0.1


@pytest.mark.slow  # alone: a network for tables is chosen and learns
def test_rows_of_numbers_get_dense_layers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) * [1, 10, 100, 1000, 0] + 50
    y = np.where(X[:, 1] > 50, "up", "down")
    model = LargeMarginNetClassifier(min_steps=80, learning_rate=3e-3, random_state=0).fit(X, y)
    assert model.network_ == "mlp" and model.score(X, y) > 0.9


def test_there_are_no_features_without_labels():
    model = LargeMarginNetClassifier(classes=[0, 1]).fit(np.empty((0, 4)), [])
    with pytest.raises(InputError, match="labels"):
        model.network_features(np.zeros((2, 4)))


@pytest.mark.parametrize(
    "kind",
    [pytest.param(LargeMarginNetClassifier, marks=pytest.mark.slow), SoftmaxNetClassifier],  # the longer one
)
def test_labels_at_random_leave_a_network_in_doubt(kind):
    """Nothing can be learnt: probabilities are near chance, and the temperature changes no class."""
    rng = np.random.default_rng(3)
    X, y, T = rng.normal(size=(20, 200)), np.arange(20) % 2, rng.normal(size=(300, 200))
    model, plain = (kind(random_state=0, **options).fit(X, y) for options in ({}, {"calibration": None}))
    p = model.predict_proba(T)
    assert p.max(axis=1).mean() < 0.65
    assert negative_log_likelihood(rng.integers(2, size=300), p) < 0.8
    assert (model.predict(T) == plain.predict(T)).all()
    assert (clone(model).set_state(model.get_state()).predict_proba(T) == p).all()
    if kind is SoftmaxNetClassifier:
        assert model.kernel_.dtype == model.bias_.dtype == np.float32  # as attacks take the layer
        np.testing.assert_allclose(1 / (1 + np.exp(-model.decision_function(T))), p[:, 1], rtol=1e-6)


@pytest.mark.parametrize("kind", [LargeMarginNetClassifier, SoftmaxNetClassifier])
def test_two_labels_leave_a_network_the_prior_doubt(kind):
    X = np.random.default_rng(3).normal(size=(2, 8))
    model = kind(random_state=0, min_steps=60).fit(X, [0, 1])
    assert 0.5 < model.predict_proba(X).max() < 0.95


def test_progress_of_a_calibrated_fit_only_grows_and_a_stop_ends_every_part(digits):
    fractions = []
    model = SoftmaxNetClassifier(epochs=2, **QUICK)
    model.fit(digits[0][:60], digits[1][:60], callback=lambda at, _: fractions.append(at))
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    assert any(at <= 0.5 for at in fractions) and any(0.5 < at <= 0.75 for at in fractions)
    calls = []
    model.fit(digits[0][:60], digits[1][:60], callback=lambda at, _: calls.append(at) or True)
    assert len(calls) == 1 and np.isfinite(model.predict_proba(digits[2])).all()


@pytest.mark.parametrize("kind", [SoftmaxNetClassifier, LargeMarginNetClassifier])
def test_a_stop_within_the_halves_leaves_the_temperature_to_the_prior(digits, kind):
    X, y = digits[0][:60], digits[1][:60]
    options = QUICK | (
        {"epochs": 6} if kind is SoftmaxNetClassifier else {"joint_epochs": 0, "n_inducing": 8}
    )

    def scores(model):
        return model.decision_function(X) if kind is SoftmaxNetClassifier else model.beta_

    stopped = [
        scores(kind(**options).fit(X, y, callback=lambda at, _, end=end: at > end)) for end in (0.5, 0.8)
    ]
    np.testing.assert_allclose(*stopped)


@pytest.mark.parametrize("kind", [SoftmaxNetClassifier, LargeMarginNetClassifier])
def test_the_progress_of_a_fit_to_three_labels_ends_at_one(digits, kind):
    fractions = []
    kind(**QUICK).fit(digits[0][:3], ["a", "b", "b"], callback=lambda at, _: fractions.append(at))
    assert fractions[-1] == pytest.approx(1.0)
