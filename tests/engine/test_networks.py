import keras
import numpy as np
import pytest
import tensorflow as tf

from workbench.classifiers.geometry import Geometry
from workbench.classifiers.predictor import Predictor
from workbench.engine import network_training, projection
from workbench.engine import networks as nn
from workbench.engine.fitting import minibatches
from workbench.engine.kernels import StationaryKernel
from workbench.errors import InputError
from workbench.registry import CodeName

SHAPE = (8, 8, 1)


def data(n=96, n_classes=3, seed=0):
    """Bright squares in one of `n_classes` places, with noise."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    images = rng.uniform(0, 0.3, size=(n, 8, 8))
    for image, code in zip(images, codes, strict=True):
        image[code * 2 : code * 2 + 3, code * 2 : code * 2 + 3] += 0.6
    return images.reshape(n, -1).astype(np.float32), codes


def head(P=7, d=64, C=3, seed=0):
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(C, P, P)) * 0.2) + 0.8 * np.eye(P)
    covariance = root @ root.transpose(0, 2, 1)
    points = np.asarray(nn.layer_norm(tf.constant(rng.normal(size=(P, d)))))
    return network_training.Head.of(points, rng.normal(size=(P, C)), covariance), covariance


def scaling():
    return np.full(64, 0.3, np.float32), np.full(64, 0.25, np.float32)


@pytest.mark.parametrize("name", ["mlp", "small", "middle"])
def test_weights_depend_on_the_seed_alone(name):
    shape = (64,) if name == "mlp" else SHAPE
    first, again, other = (nn.initial_weights(name, shape, seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    kernels = [i for i, w in enumerate(first) if w.ndim > 1]
    assert all((first[i] != other[i]).any() for i in kernels)


def test_the_papers_networks_have_the_papers_sizes():
    mnist = [w.shape for w in nn.initial_weights("papers-mnist", (28, 28, 1), 0) if w.ndim > 1]
    assert mnist == [(5, 5, 1, 32), (3, 3, 32, 64), (11 * 11 * 64, 1024), (1024, 100)]
    cifar = [w.shape for w in nn.initial_weights("papers-cifar10", (32, 32, 3), 0) if w.ndim > 1]
    assert cifar == [(3, 3, 3, 128), (3, 3, 128, 128), (3, 3, 128, 128), (6 * 6 * 128, 256), (256, 100)]


def test_features_are_normalised_and_the_same_wherever_a_row_stands():
    X, _ = data(300)
    weights = nn.initial_weights("small", SHAPE, 0)
    features = network_training.features_of("small", SHAPE, weights, *scaling(), X)
    assert features.shape == (300, 64)
    np.testing.assert_allclose(features.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(features.std(axis=1), 1, atol=1e-3)
    order = np.random.default_rng(0).permutation(300)
    shuffled = network_training.features_of("small", SHAPE, weights, *scaling(), X[order])
    # one rounding in float32: some processors' kernels treat a chunk's last rows otherwise
    np.testing.assert_allclose(shuffled, features[order], rtol=0, atol=5e-6)
    some = network_training.features_of("small", SHAPE, weights, *scaling(), X[17:19])
    np.testing.assert_allclose(some, features[17:19], rtol=0, atol=5e-6)


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 8, 3)])
def test_the_forward_pass_is_the_layers_own(shape):
    weights = nn.initial_weights("small", shape, 3)
    images = np.random.default_rng(0).random((4, *shape), dtype=np.float32)
    theirs, _ = nn.template("small", shape).stateless_call(list(weights), [], images)
    ours = nn.forward("small", shape, weights, images.reshape(4, -1))
    np.testing.assert_allclose(ours, nn.layer_norm(theirs), rtol=1e-5, atol=1e-5)


def test_a_silent_network_gives_zeros_not_noise():
    assert np.abs(np.asarray(nn.layer_norm(tf.zeros((2, 5))))).max() == 0


def test_a_head_holds_its_covariance():
    h, covariance = head()
    np.testing.assert_allclose(h.covariance, covariance, rtol=1e-12, atol=1e-14)


def test_head_moments_are_the_predictors():
    h, covariance = head()
    features = np.asarray(nn.layer_norm(tf.constant(np.random.default_rng(3).normal(size=(20, 64)))))
    length, variance = 9.0, 2.5
    mean, share, kt = (
        np.asarray(part) for part in network_training.head_moments(h, np.array([variance, length]), features)
    )
    kernel = StationaryKernel("squared-exponential", length, variance)
    # a basis with the jitter of training
    factor = np.linalg.cholesky(
        kernel(h.points, h.points) + network_training.JITTER * variance * np.eye(len(h.points))
    )
    basis = projection.Basis(h.points, factor, np.linalg.inv(factor).T, network_training.JITTER * variance)
    geometry = Geometry(np.zeros(64), np.ones(64), h.points, np.empty((0, 64)), length, np.inf)
    expected = Predictor.from_posterior(geometry, kernel, basis, h.mean, covariance)(features)
    np.testing.assert_allclose(mean, expected.mean, atol=1e-10)
    np.testing.assert_allclose(share + kt[:, None], expected.variance, atol=1e-10)


def test_margin_loss_is_the_formula():
    rng = np.random.default_rng(0)
    mean, share, kt = rng.normal(size=(6, 4)), rng.uniform(0.1, 1, size=(6, 4)), rng.uniform(size=6)
    codes, tau = rng.integers(4, size=6).astype(np.int32), 0.1
    expected = []
    for n, y in enumerate(codes):
        g = []
        for t in set(range(4)) - {int(y)}:
            d = 1 + mean[n, t] - mean[n, y]
            g.append(d + np.sqrt(d * d + 2 * kt[n] + share[n, t] + share[n, y]))
        expected.append(tau * np.log(np.exp(np.array(g) / tau).sum()))
    np.testing.assert_allclose(
        np.asarray(network_training.margin_loss(mean, share, kt, codes, np.float64(tau))), expected
    )


def test_head_kl_is_the_formula():
    h, covariance = head(P=4, C=2)
    expected = 0.5 * sum(
        np.trace(S) + m @ m - 4 - np.linalg.slogdet(S)[1] for S, m in zip(covariance, h.mean.T, strict=True)
    )
    assert float(network_training.head_kl(h)) == pytest.approx(expected, rel=1e-10)


def test_every_variable_of_network_and_head_moves_in_one_step():
    X, codes = data()
    weights = nn.initial_weights("small", SHAPE, 0)
    h, _ = head()
    after, moved, done = network_training.train_joint(
        "small",
        SHAPE,
        weights,
        h,
        (2.0, 10.0),
        *scaling(),
        X,
        codes,
        np.arange(32)[None].astype(np.int32),
        np.array([[1e-3, 1e-2]]),
        tau=0.1,
    )
    assert done.steps == 1
    for before, now in zip((*weights, *h), (*after, *moved), strict=True):
        assert (before != now).any()
    # above the diagonal a factor has nothing to learn
    assert (np.triu(moved.factor, 1) == np.triu(h.factor, 1)).all()


@pytest.mark.slow  # alone: other numbers of classes and rows compile nothing more
def test_training_lowers_the_loss_and_compiles_once():
    X, codes = data(200)
    rng = np.random.default_rng(0)
    weights = nn.initial_weights("small", SHAPE, 0)
    for C, n in ((3, 200), (4, 90)):
        layer = rng.normal(scale=0.1, size=(64, C)).astype(np.float32), np.zeros(C, np.float32)
        rows = minibatches(n, 32, 60, rng)
        rates = np.full(60, 2e-3)
        done = network_training.train_softmax(
            "small", SHAPE, (*weights, *layer), *scaling(), X[:n], codes[:n], rows, rates
        )
        assert done.trace[-1] < 0.5 * done.trace[0]
        h, _ = head(P=4 + C, C=C)
        joint = network_training.train_joint(
            "small",
            SHAPE,
            done.variables[:-2],
            h,
            (10.0, 11.0),
            *scaling(),
            X[:n],
            codes[:n],
            rows,
            np.stack([rates, 5 * rates], axis=1),
            tau=0.1,
        )[2]
        assert joint.trace[-1] < 0.8 * joint.trace[0]
        network_training.features_of("small", SHAPE, weights, *scaling(), X[:n])
    assert {
        name: function.experimental_get_tracing_count()
        for name, function in network_training.compiled("small", SHAPE)._asdict().items()
    } == {"features": 1, "softmax": 1, "joint": 1}


def test_a_report_can_stop_training():
    X, codes = data()
    weights = nn.initial_weights("mlp", (64,), 0)
    layer = np.zeros((64, 3), np.float32), np.zeros(3, np.float32)
    rows = minibatches(len(X), 16, 200, np.random.default_rng(0))
    seen = []

    def report(done, loss):
        seen.append(done)
        return done >= 8

    done = network_training.train_softmax(
        "mlp", (64,), (*weights, *layer), *scaling(), X, codes, rows, np.full(200, 1e-3), report
    )
    assert done.stopped and done.steps == seen[-1] < 20


def test_training_that_diverges_says_so():
    X, codes = data()
    weights = nn.initial_weights("mlp", (64,), 0)
    layer = np.full((64, 3), np.nan, np.float32), np.zeros(3, np.float32)
    rows = minibatches(len(X), 16, 2, np.random.default_rng(0))
    with pytest.raises(InputError, match="learning rate"):
        network_training.train_softmax(
            "mlp", (64,), (*weights, *layer), *scaling(), X, codes, rows, np.full(2, 1e-3)
        )


def test_minibatches_pass_over_every_row_once_before_any_twice():
    rows = minibatches(10, 4, 5, np.random.default_rng(0))
    assert rows.shape == (5, 4)
    assert sorted(rows.ravel()[:10].tolist()) == list(range(10)) == sorted(set(rows[:3].ravel().tolist()))
    assert minibatches(3, 4, 2, np.random.default_rng(0)).shape == (2, 3)


def own(seeds):
    return [keras.layers.Dense(5, kernel_initializer=keras.initializers.HeUniform(seed=next(seeds)))]


def dropout(seeds):
    return [keras.layers.Dense(5), keras.layers.BatchNormalization()]


def flat(seeds):
    return [keras.layers.Conv2D(4, 3)]


def test_a_network_of_ones_own():
    weights = nn.initial_weights(CodeName("tests.engine.test_networks:own"), (64,), 0)
    X, _ = data()
    shape = network_training.features_of(
        CodeName("tests.engine.test_networks:own"), (64,), weights, *scaling(), X
    ).shape
    assert shape == (len(X), 5)


@pytest.mark.parametrize(
    ("network", "shape", "words"),
    [
        ("tiny", SHAPE, "small"),
        (CodeName("tests.engine.test_networks:dropout"), (64,), "batch normalisation"),
        (CodeName("tests.engine.test_networks:flat"), SHAPE, "one vector"),
        ("papers-cifar10", SHAPE, "larger images"),
    ],
)
def test_networks_that_cannot_be(network, shape, words):
    with pytest.raises(InputError, match=words):
        nn.initial_weights(network, shape, 0)
