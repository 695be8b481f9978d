"""Other ways of training the large-margin GP, and its fits as GPflow models."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from tests.engine.problems import overlapping, projected
from workbench.classifiers import make_classifier
from workbench.engine import large_margin as lm
from workbench.engine import large_margin_training as training
from workbench.engine.gaussian import q_sqrt_of
from workbench.engine.gpflow_models import as_svgp
from workbench.engine.kernels import StationaryKernel
from workbench.engine.large_margin_state import Data
from workbench.engine.likelihoods import LargeMargin
from workbench.engine.natural_gradient import NaturalGradientAscent


@pytest.fixture(scope="module")
def blobs():
    return overlapping(150, 3, seed=1, spread=0.8)


def model_of(fit, kernel, basis):
    """A fit as GPflow's model."""
    q = fit.posterior
    return as_svgp(LargeMargin(3), kernel, basis, q.mean, q_sqrt_of(q.root))


def test_the_gpflow_model_has_the_solvers_objective_and_its_optimum(blobs):
    X, codes = blobs
    phi, residual, kernel, basis = projected(X)
    fit = lm.fit(Data.of(phi, residual, codes, 3))
    data = X, codes[:, None].astype(np.float64)
    model = model_of(fit, kernel, basis)
    assert float(model.elbo(data)) == pytest.approx(fit.trace[-1], rel=1e-8)
    again = NaturalGradientAscent().maximize(model_of(fit, kernel, basis), data)
    assert fit.trace[-1] <= again.objective < fit.trace[-1] + 1e-2 * abs(fit.trace[-1])


def test_its_objective_has_gradients_in_kernel_and_inducing_points(blobs):
    X, codes = blobs
    phi, residual, kernel, basis = projected(X, 8, name="matern52")
    model = model_of(lm.fit(Data.of(phi, residual, codes, 3), sweeps=3), kernel, basis)
    with tf.GradientTape() as tape:
        loss = model.training_loss((X, codes[:, None]))
    slopes = tape.gradient(loss, model.trainable_variables)
    assert len(slopes) == 5
    for slope in slopes:
        assert slope is not None and np.isfinite(slope.numpy()).all()


@pytest.mark.parametrize("n", [40, 300])  # without and with the wide mean
@pytest.mark.parametrize("kernel", ["squared-exponential", "matern32", "object"])
def test_predict_f_equals_the_predictor(n, kernel):
    X, codes = overlapping(n, 3, seed=4, dims=4)
    given = gpflow.kernels.RationalQuadratic(variance=4.0) if kernel == "object" else kernel
    model = make_classifier("large-margin", n_inducing=20, n_mean=40, kernel=given, random_state=0)
    model.fit(X, codes)
    new = np.random.default_rng(0).standard_normal((500, 4)) * 3
    latent = model.predict_latent(new)
    mean, variance = model.gpflow_model_.predict_f(model.geometry_.transform(new))
    assert latent.mean == pytest.approx(mean.numpy(), abs=1e-10)
    assert latent.variance == pytest.approx(variance.numpy(), abs=1e-10)
    probabilities, _ = model.gpflow_model_.predict_y(model.geometry_.transform(new))
    assert model.predict_proba(new) == pytest.approx(probabilities.numpy(), abs=1e-9)


def test_inducing_points_at_the_data_leave_nothing_open():
    X, codes = overlapping(30, 3, seed=6)
    Phi, kt, kernel, basis = projected(X, 30)
    assert kt.max() < 1e-4
    fit = lm.fit(Data.of(Phi, kt, codes, 3), sweeps=100)
    model = model_of(fit, kernel, basis)
    # the full GP's posterior: K_xX K^-1 f at the same f
    f = Phi @ fit.posterior.mean
    new = X[:5] + 0.1
    expected = kernel(new, X) @ np.linalg.solve(kernel(X, X) + basis.jitter * np.eye(30), f)
    assert model.predict_f(new)[0].numpy() == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow  # alone: another way to the same optimum
def test_adam_reaches_the_hard_objective_of_the_sweeps(blobs):
    X, codes = blobs
    Phi, kt, _, _ = projected(X, 12)
    closed = lm.fit(Data.of(Phi, kt, codes, 3), rivals=1)
    seen = []
    adam = training.fit_adam(
        Data.of(Phi, kt, codes, 3),
        learning_rate=1e-2,
        batch_size=50,
        epochs=150,
        callback=lambda fraction, value: seen.append(fraction) and None,
    )
    look = lm.fit(Data.of(Phi, kt, codes, 3), start=adam.posterior, rivals=1, sweeps=0)
    assert look.trace[-1] == pytest.approx(closed.trace[-1], rel=0.05)
    assert adam.trace[-1] > adam.trace[0]
    assert seen[-1] == 1.0 and len(seen) == 150


def test_adam_stops_when_told(blobs):
    X, codes = blobs
    Phi, kt, _, _ = projected(X, 12)
    fit = training.fit_adam(Data.of(Phi, kt, codes, 3), epochs=50, callback=lambda *_: True)
    assert fit.stopped and len(fit.trace) == 1


@pytest.mark.slow  # alone: gradients of every kernel against differences
@pytest.mark.parametrize("name", ["squared-exponential", "exponential", "matern32", "matern52"])
def test_kernel_gradients_are_those_of_the_objective(blobs, name):
    X, codes = blobs
    kernel = StationaryKernel(name, 1.3, 2.0)
    _, _, _, basis = projected(X, 12, 1.3, 2.0, name)
    run = training._kernel_gradient("float64", name)
    moved = np.random.default_rng(0).normal(size=(len(X), 3))  # the prior means of rows
    q = lm.fit(Data.of(*projected(X, 12, 1.3, 2.0, name)[:2], codes, 3), sweeps=3).posterior

    def value(at):
        out = run(
            X,
            basis.points,
            codes.astype(np.int32),
            moved,
            q.mean,
            q.root,
            at[:-1],
            at[-1],
            1e-6,
            0.1,
            np.int32(2),
        )
        return float(out[0]), np.append(out[1].numpy(), float(out[2]))

    at = np.log([kernel.length_scale, kernel.variance])
    _, slope = value(at)
    for i in range(2):
        e = 1e-5 * np.eye(2)[i]
        assert (value(at + e)[0] - value(at - e)[0]) / 2e-5 == pytest.approx(slope[i], rel=1e-4)


def test_learning_the_kernel_raises_the_objective(blobs):
    X, codes = blobs
    plain = make_classifier("large-margin", n_mean=0, n_inducing=15, random_state=0).fit(X, codes)
    for options in (
        {"hyperparameters": "type-II"},
        {"hyperparameters": "map"},
        {"hyperparameters": "map", "ard": True},
    ):
        learnt = make_classifier("large-margin", n_mean=0, n_inducing=15, random_state=0, **options).fit(
            X, codes
        )
        assert learnt.objective_ > plain.objective_
        assert np.size(learnt.kernel_.length_scale) == (2 if options.get("ard") else 1)
    bound = StationaryKernel("squared-exponential", 1.0, 2.0)
    q = lm.fit(Data.of(*projected(X, 12)[:2], codes, 3)).posterior
    free = training.learn_kernel(X, X[:12], codes, q, bound)
    held = training.learn_kernel(X, X[:12], codes, q, bound, prior_spread=0.01)
    assert abs(np.log(held.length_scale)) < abs(np.log(free.length_scale))
