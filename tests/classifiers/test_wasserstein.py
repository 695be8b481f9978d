"""WassersteinClassifier: an estimator that learns, keeps its state and predicts without TensorFlow."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from tests.classifiers.problems import split, three_gaussians
from workbench.classifiers import Geometry
from workbench.classifiers.network_predictor import NetworkPredictor
from workbench.classifiers.wasserstein import WassersteinClassifier
from workbench.engine import network_training
from workbench.errors import InputError
from workbench.metrics import error_rate, expected_calibration_error, negative_log_likelihood

QUICK = {"min_steps": 60, "epochs": 10, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    a, _, ya, _ = split(load_iris)
    return WassersteinClassifier(random_state=0).fit(a, ya)


@pytest.mark.slow  # alone: the default learns, not only runs
def test_learns_digits():
    a, b, ya, yb = split(load_digits)
    model = WassersteinClassifier(random_state=0).fit(a, ya)
    p = model.predict_proba(b)
    assert error_rate(yb, p) < 0.05
    assert negative_log_likelihood(yb, p) < 0.25


@pytest.mark.slow  # alone: why the default is not the objective as printed
def test_weight_and_temper_cure_over_confidence_on_overlapping_classes():
    X, y = three_gaussians(500, 0)
    T, t = three_gaussians(2000, 1)
    cured = WassersteinClassifier(random_state=0).fit(X, y).predict_proba(T)
    printed = WassersteinClassifier(weight=1.0, calibration=None, random_state=0).fit(X, y).predict_proba(T)
    assert error_rate(t, cured) < 0.43
    assert negative_log_likelihood(t, cured) < 0.95
    assert expected_calibration_error(t, cured) < 0.1
    # the objective as printed: variances collapse
    assert negative_log_likelihood(t, printed) > 1.3
    assert expected_calibration_error(t, printed) > 0.25


def test_latents_are_the_networks_and_the_kernels(fitted):
    a, b, _, _ = split(load_iris)
    latent = fitted.predict_latent(b)
    scaled = fitted.geometry_.transform(b)
    unit = np.zeros(4, np.float32), np.ones(4, np.float32)
    features = network_training.features_of("mlp", (4,), fitted.weights_, *unit, scaled)
    np.testing.assert_allclose(latent.mean, features @ fitted.kernel_ + fitted.bias_, atol=1e-4)
    phi = fitted.predictor_.project(b)
    S = fitted.root_ @ np.swapaxes(fitted.root_, 1, 2)
    r = fitted.variance_ - np.einsum("np,np->n", phi, phi)[:, None] + np.einsum("np,cpq,nq->nc", phi, S, phi)
    np.testing.assert_allclose(latent.variance, fitted.temper_ * np.maximum(r, 1e-9), atol=1e-9)
    assert len(a) > len(b)


def test_state_and_predictor_round_trips_are_exact(fitted):
    _, b, _, _ = split(load_iris)
    state = fitted.get_state()
    assert all(isinstance(v, np.ndarray) and v.dtype != object for v in state.values())
    copy = WassersteinClassifier(random_state=0).set_state(state)
    np.testing.assert_array_equal(copy.predict_proba(b), fitted.predict_proba(b))
    predictor = NetworkPredictor.from_arrays(fitted.predictor_.to_arrays())
    np.testing.assert_array_equal(predictor(b).mean, fitted.predict_latent(b).mean)
    np.testing.assert_array_equal(predictor(b).variance, fitted.predict_latent(b).variance)
    del state["weights_.0"]
    with pytest.raises(InputError, match=r"weights_\.0"):
        WassersteinClassifier().set_state(state)


def test_warm_start_continues_and_takes_in_new_classes():
    a, b, ya, yb = split(load_iris)
    geometry = Geometry.of(a, 30, 0)
    model = WassersteinClassifier(geometry=geometry, warm_start=True, **QUICK)
    cold = model.fit(a[:80], ya[:80]).objective_
    temper = model.temper_
    warm = model.fit(a[:80], ya[:80])
    assert warm.objective_ >= cold - 0.02 * abs(cold)
    assert warm.n_iter_ < 60
    assert warm.temper_ == temper  # its held-out rows are training rows now
    some = np.flatnonzero(ya[:60] != 2)
    model = WassersteinClassifier(geometry=geometry, warm_start=True, **QUICK).fit(a[some], ya[some])
    more = np.arange(70)
    model.fit(a[more], ya[more])
    assert model.predict_proba(b).shape == (len(b), 3)
    assert model.score(b, yb) > 0.8


def test_temper_is_chosen_again_once_labels_have_doubled():
    a, _, ya, _ = split(load_iris)
    model = WassersteinClassifier(warm_start=True, **QUICK).fit(a[:30], ya[:30])
    assert model.tempered_rows_ == 30
    model.fit(a[:50], ya[:50])
    assert model.tempered_rows_ == 30
    model.fit(a, ya)
    assert model.tempered_rows_ == len(a)


def test_few_labels_and_classes_without_any():
    a, b, ya, _ = split(load_iris)
    first = [int(np.flatnonzero(ya == c)[0]) for c in range(3)]
    model = WassersteinClassifier(**QUICK).fit(a[first], ya[first])
    assert model.temper_ == 1.0  # three rows hold nothing out
    assert np.isfinite(model.predict_proba(b)).all()
    some = ya != 1
    p = WassersteinClassifier(classes=[0, 1, 2], **QUICK).fit(a[some], ya[some]).predict_proba(b)
    assert p.shape == (len(b), 3)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)


def test_callback_sees_one_rising_fraction_and_stops():
    a, _, ya, _ = split(load_iris)
    seen = []
    WassersteinClassifier(**QUICK).fit(a, ya, callback=lambda f, o: seen.append(f))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert max(np.diff(seen)) < 0.25
    for stop in (seen[1], seen[-2]):  # in the first stage, in the second
        model = WassersteinClassifier(**QUICK).fit(a, ya, callback=lambda f, _, stop=stop: f >= stop)
        assert np.isfinite(model.predict_proba(a)).all()
    assert WassersteinClassifier(**QUICK).fit(a, ya, callback=lambda f, _: True).n_iter_ <= 10


@pytest.mark.slow  # alone: the distance as printed, and networks of pictures
def test_printed_distance_and_image_networks():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200]
    model = WassersteinClassifier(network="small", input_shape=(8, 8), **QUICK | {"epochs": 4}).fit(X, y)
    assert model.score(X, y) > 0.6
    copy = WassersteinClassifier(network="small", input_shape=(8, 8)).set_state(model.get_state())
    np.testing.assert_array_equal(copy.predict_proba(X[:20]), model.predict_proba(X[:20]))
    a, b, ya, yb = split(load_iris)
    printed = WassersteinClassifier(distance="printed", distance_rows=16, batch_size=32, **QUICK).fit(a, ya)
    assert printed.score(b, yb) > 0.8
    assert (
        printed.objective_
        != WassersteinClassifier(distance_rows=16, batch_size=32, **QUICK).fit(a, ya).objective_
    )


def test_the_order_of_rows_changes_nothing():
    """The rows held out for the temper and the batches were drawn by place: 0.7 in a probability."""
    X, y = three_gaussians(60, 0)
    T, _ = three_gaussians(50, 1)
    order = np.random.default_rng(1).permutation(60)
    first, other = (
        WassersteinClassifier(n_inducing=8, min_steps=40, epochs=2, random_state=0)
        .fit(X[rows], y[rows])
        .predict_proba(T)
        for rows in (np.arange(60), order)
    )
    np.testing.assert_allclose(first, other, atol=1e-6)
