"""Every GP family is one GPflow model on request, and takes any GPflow kernel."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from workbench.classifiers import make_classifier

SMALL = {"n_inducing": 12}
FAMILIES = {
    "bayesian-svm": SMALL,
    "bayesian-svm-batch": {},
    "bayesian-svm-linear": {},
    "logistic-softmax": SMALL,
    "logistic-softmax-gibbs": {"n_samples": 40, "burn_in": 10},
    "svgp-softmax": SMALL,
    "svgp-heaviside": SMALL | {"max_iter": 5},
    "svgp-robust-max": SMALL | {"max_iter": 5},
    "wasserstein": SMALL | {"min_steps": 20, "epochs": 2},
    "large-margin": SMALL,
}


def blobs(n, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    return 2.0 * np.eye(3, 2)[codes] + 0.6 * rng.standard_normal((n, 2)), codes


# those that compile long: svgp-softmax is of the same class, and test_wasserstein.py checks its latents
LONG = ("svgp-heaviside", "svgp-robust-max", "wasserstein")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in FAMILIES]
)
def test_the_gpflow_model_has_the_predictors_latents(name):
    X, codes = blobs(45)
    T, _ = blobs(20, seed=1)
    model = make_classifier(name, random_state=0, **FAMILIES[name]).fit(X, codes)
    found = model.gpflow_model_
    assert isinstance(found, gpflow.models.GPModel)
    assert model.gpflow_model_ is found
    latent = model.predict_latent(T)
    mean, variance = found.predict_f(tf.constant(model.geometry_.transform(T)))
    # a network's features are float32; without inducing points the jitter is felt
    tol = {"wasserstein": 1e-5, "bayesian-svm-batch": 1e-6, "bayesian-svm-linear": 1e-5}.get(name, 1e-8)
    np.testing.assert_allclose(mean, latent.mean, atol=tol)
    np.testing.assert_allclose(variance, latent.variance, atol=tol)
    if not name.startswith("bayesian-svm"):  # one-vs-rest columns are problems of their own there
        p, _ = found.predict_y(tf.constant(model.geometry_.transform(T)))
        same = p.numpy().argmax(axis=1) == model.predict_proba(T).argmax(axis=1)
        assert same.mean() > 0.9


@pytest.mark.slow  # alone: a kernel that is not ours, in every family
@pytest.mark.parametrize("name", ["bayesian-svm", "logistic-softmax", "svgp-softmax", "bayesian-svm-batch"])
def test_any_gpflow_kernel_will_do(name):
    X, codes = blobs(45)
    kernel = gpflow.kernels.RationalQuadratic(3.0, 0.8)
    model = make_classifier(name, random_state=0, kernel=kernel, **FAMILIES[name]).fit(X, codes)
    assert model.score(X, codes) > 0.8
    T, _ = blobs(10, seed=1)
    mean, _ = model.gpflow_model_.predict_f(tf.constant(model.geometry_.transform(T)))
    np.testing.assert_allclose(mean, model.predict_latent(T).mean, atol=1e-6)


@pytest.mark.slow  # alone: each named kernel's gradient in each family
@pytest.mark.parametrize("name", ["svgp-softmax", "svgp-robust-max", "logistic-softmax", "bayesian-svm"])
@pytest.mark.parametrize("kernel", ["matern32", "squared-exponential"])
def test_learning_any_named_kernel_raises_the_objective(name, kernel):
    X, codes = blobs(45)
    options = {k: v for k, v in FAMILIES[name].items() if k != "max_iter"} | {
        "kernel": kernel,
        "random_state": 0,
    }
    fixed = make_classifier(name, **options).fit(X, codes)
    learned = make_classifier(name, hyperparameters="learned", **options).fit(X, codes)
    assert learned.objective_ > fixed.objective_ + 0.5
    assert learned.kernel_trace_.shape[1] == 2


@pytest.mark.slow  # alone: inducing points that move, and their state
def test_inducing_points_are_learned_by_natural_gradients_too():
    X, codes = blobs(45)
    options = {"n_inducing": 4, "random_state": 0}
    learned = make_classifier("svgp-softmax", hyperparameters="learned", **options).fit(X, codes)
    moved = make_classifier("svgp-softmax", hyperparameters="learned-with-inducing", **options).fit(X, codes)
    assert not np.array_equal(moved.inducing_, learned.inducing_)
    assert moved.objective_ > learned.objective_
    again = make_classifier("svgp-softmax", hyperparameters="learned-with-inducing", **options)
    again.set_state(moved.get_state())
    np.testing.assert_array_equal(again.predict_proba(X), moved.predict_proba(X))
