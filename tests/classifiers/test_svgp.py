"""SVGPClassifier: against GPflow, as an estimator, and on data where the likelihoods differ."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits, load_iris

from tests.classifiers.problems import split, three_gaussians
from workbench.classifiers import Geometry, make_classifier
from workbench.classifiers.svgp import SVGPClassifier
from workbench.errors import InputError
from workbench.metrics import error_rate, expected_calibration_error, negative_log_likelihood

NAMES = ("svgp-softmax", "svgp-robust-max", "svgp-heaviside")


@pytest.fixture(scope="module")
def fitted():
    a, _, ya, _ = split(load_iris)
    return {name: make_classifier(name, random_state=0).fit(a, ya) for name in NAMES}


@pytest.mark.slow  # alone: digits within 25 steps
def test_learns_digits_quickly():
    a, b, ya, yb = split(load_digits)
    model = SVGPClassifier(random_state=0).fit(a, ya)
    assert model.score(b, yb) >= 0.96
    assert model.n_iter_ <= 25
    assert len(model.geometry_.inducing) == 128


@pytest.mark.parametrize("name", NAMES)
def test_calibration_on_overlapping_classes(name):
    # MATH of the toy mixture: an oracle has error 0.38 and NLL 0.84; robust-max cannot say "unsure"
    X, y = three_gaussians(500, 0)
    T, t = three_gaussians(2000, 1)
    p = (
        make_classifier(name, length_scale_factor=1.0, variance=1.0, random_state=0, calibration=None)
        .fit(X, y)
        .predict_proba(T)
    )
    assert error_rate(t, p) < 0.43
    nll, ece = negative_log_likelihood(t, p), expected_calibration_error(t, p)
    if name == "svgp-robust-max":
        assert nll > 1.8
        assert ece > 0.25
    else:
        assert nll < 0.92
        assert ece < 0.08


@pytest.mark.parametrize("name", NAMES)
def test_is_gpflows_model(fitted, name):
    a, b, ya, _ = split(load_iris)
    model = fitted[name]
    latent = model.predict_latent(b)
    mean, variance = model.gpflow_model_.predict_f(model.geometry_.transform(b))
    np.testing.assert_allclose(latent.mean, mean.numpy(), atol=1e-10)
    np.testing.assert_allclose(latent.variance, variance.numpy(), atol=1e-10)
    data = (model.geometry_.transform(a), ya[:, None])
    assert float(model.gpflow_model_.elbo(data)) == pytest.approx(model.objective_, rel=1e-8)


def test_probabilities_are_the_gpflow_models_and_sum_to_one():
    X, y = three_gaussians(60, 2)
    T, _ = three_gaussians(300, 3, noise=4.0)
    model = make_classifier("svgp-robust-max", random_state=0, calibration=None).fit(X, y)
    p = model.predict_proba(T)
    theirs = model.gpflow_model_.predict_y(model.geometry_.transform(T))[0].numpy()
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(p, theirs, atol=1e-3)
    # GPflow's own likelihood: quadrature per class leaves rows that miss 1
    latent = [tf.constant(part) for part in model.predict_latent(T)]
    own = gpflow.likelihoods.MultiClass(3, invlink=gpflow.likelihoods.RobustMax(3))
    raw = own.predict_mean_and_var(tf.zeros([len(T), 0], tf.float64), *latent)[0].numpy()
    assert np.abs(raw.sum(1) - 1).max() > 1e-6
    np.testing.assert_allclose(p, raw, atol=0.06)
    probit = make_classifier("svgp-heaviside", random_state=0, calibration=None).fit(X, y)
    theirs = probit.gpflow_model_.predict_y(probit.geometry_.transform(T))[0].numpy()
    np.testing.assert_allclose(probit.predict_proba(T), theirs, atol=0.02)
    soft = make_classifier("svgp-softmax", random_state=0, n_nodes=512, calibration=None).fit(X, y)
    theirs = soft.gpflow_model_.predict_y(soft.geometry_.transform(T[:250]))[0].numpy()
    np.testing.assert_allclose(soft.predict_proba(T[:250]), theirs, atol=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_state_round_trip_is_exact(fitted, name):
    _, b, _, _ = split(load_iris)
    model = fitted[name]
    state = model.get_state()
    assert all(isinstance(v, np.ndarray) and v.dtype != object for v in state.values())
    copy = make_classifier(name, random_state=0).set_state(state)
    np.testing.assert_array_equal(copy.predict_proba(b), model.predict_proba(b))
    assert float(copy.gpflow_model_.predict_f(copy.geometry_.transform(b))[0][0, 0]) == pytest.approx(
        model.predict_latent(b).mean[0, 0], abs=1e-10
    )
    del state["root_"]
    with pytest.raises(InputError, match="root_"):
        make_classifier(name).set_state(state)


def test_warm_start_continues_and_takes_in_new_classes():
    a, _, ya, _ = split(load_iris)
    geometry = Geometry.of(a, 30, 0)
    old = ya < 2
    model = SVGPClassifier(geometry=geometry, warm_start=True).fit(a[old], ya[old])
    model.fit(a, ya)
    cold = SVGPClassifier(geometry=geometry).fit(a, ya)
    assert model.objective_ >= cold.objective_ - 1e-3 * abs(cold.objective_)
    again = SVGPClassifier(geometry=geometry, warm_start=True).set_state(cold.get_state()).fit(a, ya)
    assert again.n_iter_ < cold.n_iter_
    assert again.objective_ >= cold.objective_ - 1e-9 * abs(cold.objective_)


@pytest.mark.slow  # alone: stopping in each of the three ways to train
def test_callback_stops_with_the_best_state(fitted):
    a, b, ya, _ = split(load_iris)
    seen = []
    model = SVGPClassifier(random_state=0).fit(
        a, ya, callback=lambda f, o: seen.append((f, o)) or len(seen) == 2
    )
    assert len(seen) == 2
    assert len(model.objective_trace_) == 3
    assert model.objective_ == seen[-1][1] < fitted["svgp-softmax"].objective_
    np.testing.assert_allclose(model.predict_proba(b).sum(1), 1, atol=1e-9)
    for options in ({"optimizer": "adam", "max_iter": 60}, {"hyperparameters": "learned"}):
        seen.clear()
        SVGPClassifier(random_state=0, **options).fit(
            a, ya, callback=lambda f, o: seen.append(f) or len(seen) == 2
        )
        assert len(seen) == 2
        assert 0 < seen[0] < seen[1] < 1


@pytest.mark.slow  # alone: Adam, a learnt kernel and moved points end where the default ends
def test_other_ways_to_train(fitted):
    a, b, ya, yb = split(load_iris)
    best = fitted["svgp-softmax"].objective_
    adam = SVGPClassifier(optimizer="adam", random_state=0).fit(a, ya)
    assert adam.objective_ == pytest.approx(best, rel=0.02)
    learned = SVGPClassifier(hyperparameters="learned", random_state=0).fit(a, ya)
    assert learned.objective_ >= best
    assert learned.length_scale_ != fitted["svgp-softmax"].length_scale_
    both = SVGPClassifier(
        optimizer="adam", hyperparameters="learned-with-inducing", max_iter=60, random_state=0
    ).fit(a, ya)
    assert not np.array_equal(both.inducing_, both.geometry_.inducing)
    assert both.score(b, yb) > 0.9
    data = (both.geometry_.transform(a), ya[:, None])
    assert float(both.gpflow_model_.elbo(data)) == pytest.approx(both.objective_, rel=1e-8)


@pytest.mark.slow  # alone: "papers" is Adam with the papers' steps
def test_the_papers_training_is_adam_in_small_steps():
    a, _, ya, _ = split(load_iris)
    model = SVGPClassifier(optimizer="papers", max_iter=30, batch_size=50, random_state=0).fit(a, ya)
    same = SVGPClassifier(
        optimizer="adam", learning_rate=5e-4, batch_size=50, max_iter=30, random_state=0
    ).fit(a, ya)
    np.testing.assert_array_equal(model.mean_, same.mean_)
    assert model.n_iter_ == 30
    # 60 steps of 5e-4 cannot have gone further than that
    assert 0 < np.abs(model.mean_).max() <= 60 * 5e-4 * 1.01


def test_kernels_by_name_and_by_object():
    a, b, ya, _ = split(load_iris)
    model = SVGPClassifier(kernel="matern32", random_state=0).fit(a, ya)
    given = gpflow.kernels.Matern32(variance=10.0, lengthscales=model.length_scale_)
    other = SVGPClassifier(kernel=given, random_state=0).fit(a, ya)
    np.testing.assert_allclose(other.predict_proba(b), model.predict_proba(b), atol=1e-6)
    for m in (model, other):
        mean, _ = m.gpflow_model_.predict_f(m.geometry_.transform(b))
        np.testing.assert_allclose(m.predict_latent(b).mean, mean.numpy(), atol=1e-10)


@pytest.mark.slow  # alone: a float32 fit that breaks down says so
def test_an_objective_that_is_no_number_is_an_error():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match=r"objective that is no number .*float64"):
        SVGPClassifier(likelihood="heaviside", variance=3000.0, dtype="float32").fit(X, y)
