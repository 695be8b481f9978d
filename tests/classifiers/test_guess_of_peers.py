"""A guess as the prior mean of the large-margin model's peers."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from tests.classifiers.test_guess import PEERS, C, column, problem
from workbench.classifiers import make_classifier, protocols
from workbench.classifiers.calibration import LeftOut
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.guess_weights import weigh
from workbench.errors import InputError


def made(name, X, **options):
    return make_classifier(name, classes=range(C), geometry=Geometry.of(X, 32, 0), random_state=0, **options)


SOME = [name if name.startswith("log") else pytest.param(name, marks=pytest.mark.slow) for name in PEERS]


@pytest.mark.parametrize("name", SOME)
def test_a_good_column_helps_and_one_at_random_is_dropped(name):
    X, codes = problem(spread=1.3)
    few, rest = slice(None, 40), slice(100, None)

    def wrong(G):
        model = made(name, X).fit(X[few], codes[few], mean=G[few])
        return model, (model.predict(X[rest], mean=G[rest]) != codes[rest]).mean()

    without = (made(name, X).fit(X[few], codes[few]).predict(X[rest]) != codes[rest]).mean()
    good, error = wrong(column(codes, 0.8))
    assert good.mean_weights_[0] > 0 and error < 0.8 * without
    poor, error = wrong(column(codes, 1 / C, 1))
    assert poor.mean_weights_[0] < 0.5 * good.mean_weights_[0] and error < without + 0.05


def test_a_guess_that_is_worse_than_the_model_does_not_rule_it():
    """With the temperature held, its weight ran to the end of the grid and the model did nothing."""
    from sklearn.datasets import load_digits

    from workbench.guesses import standardised

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    column = np.where(rng.random(len(y)) < 0.7, y, rng.integers(0, 10, len(y)))
    G = standardised(np.eye(10)[column])
    few, rest = slice(None, 100), slice(1000, None)
    model = make_classifier("logistic-softmax", classes=range(10), random_state=0)
    without = (model.fit(X[few], y[few]).predict(X[rest]) != y[rest]).mean()
    guided = model.fit(X[few], y[few], mean=G[few])
    assert (guided.predict(X[rest], mean=G[rest]) != y[rest]).mean() < without


def test_a_weight_at_which_more_is_wrong_is_not_taken():
    n = 40
    rows = np.arange(n)

    def judge(weights):
        gain = float(weights[0]) > 0
        wrong = (rows < 20 * gain).astype(float)
        return LeftOut(rows, np.zeros((n, 2)), 1.0, np.full(n, gain - 2.0), np.zeros(n), wrong)

    assert weigh(judge, np.array([1.0]), 1.0, 0.0) == pytest.approx([0.0])


@pytest.mark.parametrize("name", SOME)
def test_from_no_labels_the_guess_is_the_prediction_and_state_holds_it(name):
    X, codes = problem(200)
    G = column(codes, 0.8)
    model = made(name, X).fit(X[:0], [], mean=G[:0])
    np.testing.assert_array_equal(model.predict(X, mean=G), G.argmax(axis=1))
    model.fit(X[:30], codes[:30], mean=G[:30])
    assert model.mean_weighed_ == 30
    for other in (clone(model).set_state(model.get_state()), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(other.predict_proba(X, mean=G), model.predict_proba(X, mean=G), atol=1e-10)
        assert other.mean_weighed_ == 30
    plain = made(name, X).fit(X[:30], codes[:30])
    again = model.fit(X[:30], codes[:30])  # the guess is taken away
    assert not hasattr(again, "mean_weights_")
    np.testing.assert_allclose(again.predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("name", SOME)
def test_a_class_without_labels_can_be_foretold(name):
    X, codes = problem(200, spread=0.4)
    G = column(codes, 1.0)
    known = np.flatnonzero(codes != 2)[:30]
    model = made(name, X).fit(X[known], codes[known], mean=G[known])
    of_it = codes == 2
    plain = made(name, X).fit(X[known], codes[known])
    without = (plain.predict(X[of_it]) == 2).mean()
    share = (model.predict(X[of_it], mean=G[of_it]) == 2).mean()
    # robust-max is nearly always sure of what it has seen (Galy-Fajou et al. 2019): a new class gets little
    assert without < 0.1 and share > without + (0.0 if "robust" in name else 0.3)


@pytest.mark.parametrize(
    "name",
    ["svgp-softmax", pytest.param("logistic-softmax", marks=pytest.mark.slow)],  # another likelihood
)
def test_the_fit_is_that_of_a_gpflow_model_with_the_mean_as_its_mean_function(name):
    import gpflow
    import tensorflow as tf

    from workbench.engine.gpflow_models import FunctionMean

    X, codes = problem(60)
    G = column(codes, 0.7)
    options = {"prior_mean": 0.0, "bound": "plain"} if name == "logistic-softmax" else {}
    model = made(name, X, tol=1e-8, **options).fit(X, codes, mean=G)
    offset = np.tensordot(model.mean_weights_, G[None], axes=1)
    assert model.mean_weights_[0] > 0
    peer = model.gpflow_model_
    rows = model.geometry_.transform(X)
    peer.mean_function = FunctionMean(lambda _: tf.constant(offset))
    mean, variance = (part.numpy() for part in peer.predict_f(tf.constant(rows)))
    latent = model.predict_latent(X, mean=G)
    np.testing.assert_allclose(latent.mean, mean, atol=1e-5)
    np.testing.assert_allclose(latent.variance, variance, atol=1e-5)
    # at the optimum the bound with this mean function is level in q_mu
    with tf.GradientTape() as tape:
        bound = peer.elbo((tf.constant(rows), tf.constant(codes[:, None])))
    slope = tape.gradient(bound, peer.q_mu.unconstrained_variable)
    assert np.abs(slope.numpy()).max() < 2e-2
    assert isinstance(peer, gpflow.models.SVGP)


def test_anybodys_gpflow_model_keeps_its_mean_function():
    import gpflow
    import tensorflow as tf

    from workbench.engine.gpflow_models import FunctionMean
    from workbench.engine.likelihoods import Softmax
    from workbench.engine.natural_gradient import NaturalGradientAscent

    X, codes = problem(80)
    offset = column(codes, 0.7)

    def model(mean_function):
        return gpflow.models.SVGP(
            gpflow.kernels.SquaredExponential(),
            Softmax(C),
            X[:10].copy(),
            mean_function=mean_function,
            num_latent_gps=C,
            whiten=True,
        )

    data = tf.constant(X), tf.constant(codes[:, None])
    shifted = model(FunctionMean(lambda _: tf.constant(offset)))
    before = float(shifted.elbo(data))
    fit = NaturalGradientAscent().maximize(shifted, data)
    assert fit.objective == pytest.approx(float(shifted.elbo(data)), rel=1e-6) and fit.objective > before
    constant = model(gpflow.functions.Constant(np.full(C, 0.0)))
    zero = model(None)
    for one in (constant, zero):
        NaturalGradientAscent().maximize(one, data)
    np.testing.assert_allclose(constant.q_mu.numpy(), zero.q_mu.numpy(), atol=1e-8)


def test_minibatches_know_the_guess():
    X, codes = problem(spread=1.3)
    G = column(codes, 0.9)
    model = made("logistic-softmax", X, batch_size=16, epochs=10).fit(X[:64], codes[:64], mean=G[:64])
    assert (model.predict(X[100:], mean=G[100:]) == codes[100:]).mean() > 0.8


def test_options_under_which_a_guess_cannot_be_weighed_are_refused():
    X, codes = problem(40)
    for options in ({"hyperparameters": "learned"}, {"optimizer": "adam"}):
        model = made("svgp-softmax", X, **options)
        assert not protocols.supports_mean(model)
        with pytest.raises(InputError, match="cannot start from a guess"):
            model.fit(X, codes, mean=column(codes, 0.8))
