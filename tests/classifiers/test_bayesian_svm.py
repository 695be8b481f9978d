"""Bayesian SVM classifiers: equivalences, options, GPflow, probabilities, state."""

import gpflow
import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split

from workbench.classifiers import Geometry, Latent
from workbench.classifiers.bayesian_svm import (
    BatchBayesianSVMClassifier,
    BayesianSVMClassifier,
    ECMSVMClassifier,
    LinearBayesianSVMClassifier,
    svm_probabilities,
)

ALL = [
    BayesianSVMClassifier,
    LinearBayesianSVMClassifier,
    BatchBayesianSVMClassifier,
    ECMSVMClassifier,
]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, y, train_size=200, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


def test_binary_probability_is_the_expected_probit():
    f, v = 0.8, 1.7
    p = svm_probabilities(Latent(np.array([[-f / 2, f / 2]]), np.full((1, 2), v / 2)), binary=True)
    z = np.random.default_rng(0).standard_normal(400_000)
    expected = ndtr(f + np.sqrt(v) * z).mean()
    assert p[0] == pytest.approx([1 - expected, expected], abs=1e-3)
    assert abs(ndtr(f / (1 + v)) - expected) > 0.05  # equation 13 as printed, without the root


def test_two_certain_opposite_functions_give_the_binary_probability():
    f = np.linspace(-2, 2, 5)
    mean = np.stack([-f, f], axis=1)
    p = svm_probabilities(Latent(mean, np.zeros_like(mean)), binary=False)
    assert p[:, 1] == pytest.approx(ndtr(f), abs=1e-9)


def test_variation_ratio_of_the_binary_latent_is_phi_of_its_distance(cancer):
    from workbench.classifiers.argmax import argmax_probabilities

    X, X_test, y, _ = cancer
    latent = BayesianSVMClassifier(random_state=0).fit(X, y).predict_latent(X_test)
    f, v = 2 * latent.mean[:, 1], 2 * latent.variance[:, 1]
    assert argmax_probabilities(*latent).min(axis=1) == pytest.approx(ndtr(-np.abs(f) / np.sqrt(v)), abs=1e-9)


def test_inducing_points_at_the_data_give_the_batch_model(wine):
    X, X_test, y, _ = wine
    geometry = Geometry.of(X, len(X), 0)
    geometry = geometry._replace(inducing=geometry.transform(X))
    sparse = BayesianSVMClassifier(geometry=geometry, tol=1e-10, max_sweeps=500).fit(X, y)
    batch = BatchBayesianSVMClassifier(geometry=geometry, tol=1e-10, max_sweeps=500).fit(X, y)
    assert sparse.objective_ == pytest.approx(batch.objective_, rel=1e-4)
    ours, theirs = sparse.predict_latent(X_test), batch.predict_latent(X_test)
    assert ours.mean == pytest.approx(theirs.mean, abs=2e-3)
    assert ours.variance == pytest.approx(theirs.variance, abs=2e-3)


def test_a_gp_with_a_linear_kernel_is_the_linear_model(cancer):

    X, X_test, y, _ = cancer
    kernel = gpflow.kernels.Linear(0.5) + gpflow.kernels.Constant(0.5)
    geometry = Geometry.of(X, 1, 0)
    gp = BatchBayesianSVMClassifier(kernel=kernel, geometry=geometry, tol=1e-12, max_sweeps=2000).fit(X, y)
    linear = LinearBayesianSVMClassifier(variance=0.5, geometry=geometry, tol=1e-12, max_sweeps=2000)
    linear.fit(X, y)
    # the GP's jitter is a nugget of 1e-6 times its variance, of about 15
    assert gp.objective_ == pytest.approx(linear.objective_, rel=1e-3)
    assert gp.predict_latent(X_test).mean == pytest.approx(linear.predict_latent(X_test).mean, abs=5e-3)
    assert gp.predict_latent(X_test).variance == pytest.approx(
        linear.predict_latent(X_test).variance, abs=5e-3
    )


def test_linear_weights_make_the_latent_mean(cancer):
    X, X_test, y, _ = cancer
    model = LinearBayesianSVMClassifier().fit(X, y)
    f = model.geometry_.transform(X_test) @ model.coef_[0] + model.intercept_[0]
    assert 2 * model.predict_latent(X_test).mean[:, 1] == pytest.approx(f, abs=1e-9)


@pytest.mark.parametrize("kind", [BayesianSVMClassifier, LinearBayesianSVMClassifier])
def test_gpflow_model_agrees(kind, cancer, wine):
    from workbench.classifiers.bayesian_svm import signs_of

    for X, X_test, y, _ in (cancer, wine):
        model = kind(random_state=0, calibration=None).fit(X, y)
        gp = model.gpflow_model_
        mean, variance = (a.numpy() for a in gp.predict_f(model.geometry_.transform(X_test)))
        latent = model.predict_latent(X_test)
        if len(model.classes_) == 2:
            assert mean[:, 0] / 2 == pytest.approx(latent.mean[:, 1], abs=1e-10)
            assert variance[:, 0] / 2 == pytest.approx(latent.variance[:, 1], abs=1e-10)
            p = gp.predict_y(model.geometry_.transform(X_test))[0].numpy()
            assert p[:, 0] == pytest.approx(model.predict_proba(X_test)[:, 1], abs=1e-9)
        else:
            assert mean == pytest.approx(latent.mean, abs=1e-10)
            assert variance == pytest.approx(latent.variance, abs=1e-10)
        data = (model.geometry_.transform(X), signs_of(y, len(model.classes_)))
        assert float(gp.elbo(data)) == pytest.approx(model.objective_, rel=1e-6)


def test_minibatches_learn_from_a_handful_of_labels(wine):
    X, X_test, y, y_test = wine
    few = np.concatenate([np.flatnonzero(y == c)[:4] for c in range(3)])
    model = BayesianSVMClassifier(random_state=0, batch_size=5, epochs=3).fit(X[few], y[few])
    assert model.score(X_test, y_test) > 0.7  # adaptive rates must not spend all steps on measuring
    whole = BayesianSVMClassifier(random_state=0, batch_size=500).fit(X, y)
    assert whole.objective_ == BayesianSVMClassifier(random_state=0).fit(X, y).objective_


@pytest.mark.slow  # alone: kernels learnt by both Bayesian SVMs, also a length a column
def test_learning_the_kernel_raises_the_objective_and_moves_the_length_scale(cancer):
    X, _, y, _ = cancer
    fixed = BayesianSVMClassifier(random_state=0).fit(X, y)
    learned = BayesianSVMClassifier(random_state=0, hyperparameters="learned").fit(X, y)
    assert learned.objective_ > fixed.objective_ + 20
    assert learned.length_scale_ > 1.5 * fixed.length_scale_  # at sparse P it drifts to long scales
    again = clone(learned).set_params(length_scale_factor=1.5, variance=5.0).fit(X, y)
    assert again.objective_ == pytest.approx(learned.objective_, abs=3)
    assert learned.kernel_trace_.shape[1] == 2 and len(learned.kernel_trace_) > 3
    each = BayesianSVMClassifier(random_state=0, hyperparameters="learned", ard=True).fit(X, y)
    assert each.length_scale_.shape == (X.shape[1],) and each.objective_ > learned.objective_
    linear = LinearBayesianSVMClassifier(variance=30.0)
    tuned = clone(linear).set_params(hyperparameters="learned").fit(X, y)
    assert tuned.objective_ > linear.fit(X, y).objective_ and tuned.variance_ < 15


@pytest.mark.parametrize("kind", ALL)
def test_warm_start_needs_fewer_sweeps_and_is_not_worse(kind, wine):
    X, _, y, _ = wine
    model = kind(random_state=0, warm_start=True, geometry=Geometry.of(X, 30, 0))
    cold = clone(model).fit(X[:61], y[:61])
    model.fit(X[:60], y[:60]).fit(X[:61], y[:61])
    assert model.n_iter_ <= cold.n_iter_
    assert model.objective_ >= cold.objective_ - 2e-3 * abs(cold.objective_)


def test_warm_start_survives_a_new_class(wine):
    X, _, y, _ = wine
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    for first in (1, 2):
        model = BayesianSVMClassifier(warm_start=True, geometry=Geometry.of(X, 30, 0))
        few = y < first + 1
        model.fit(X[few], y[few]).fit(X, y)
        cold = clone(model).fit(X, y)
        assert model.objective_ == pytest.approx(cold.objective_, rel=3e-3)


@pytest.mark.parametrize("kind", ALL)
def test_callback_stops_and_the_model_predicts(kind, wine):
    X, X_test, y, _ = wine
    seen = []
    model = kind(random_state=0)
    model.fit(X, y, callback=lambda fraction, value: seen.append((fraction, value)) or len(seen) >= 2)
    assert 2 <= len(seen) <= 4 and all(0 <= f <= 1 and np.isfinite(v) for f, v in seen)
    assert model.predict_proba(X_test).sum(axis=1) == pytest.approx(1)
    assert model.n_iter_ < kind(random_state=0).fit(X, y).n_iter_ + 1


def test_the_maximising_variant_is_saved_exactly_and_in_both_precisions(wine):
    """It is in no registry, so the contract does not try it."""
    X, X_test, y, _ = wine
    double, single = (ECMSVMClassifier(random_state=0, dtype=d).fit(X, y) for d in ("float64", "float32"))
    assert single.predict_latent(X_test).mean.dtype == np.float32
    assert single.predict_proba(X_test) == pytest.approx(double.predict_proba(X_test), abs=0.01)
    again = clone(double).set_state(double.get_state())
    assert np.array_equal(again.predict_proba(X_test), double.predict_proba(X_test))


def test_random_and_k_means_inducing_points_differ(wine):
    X, _, y, _ = wine
    centres = BayesianSVMClassifier(n_inducing=10, random_state=0).fit(X, y)
    subset = BayesianSVMClassifier(n_inducing=10, inducing="random", random_state=0).fit(X, y)
    rows = {row.tobytes() for row in subset.geometry_.transform(X)}
    assert all(row.tobytes() in rows for row in subset.geometry_.inducing)
    assert not any(row.tobytes() in rows for row in centres.geometry_.inducing)
    assert centres.objective_ > subset.objective_
