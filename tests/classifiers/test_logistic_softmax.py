"""Logistic-softmax classifiers: bounds against Gibbs, prior mean, class subsets, GPflow, state."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split

from workbench.classifiers import Geometry, make_classifier
from workbench.classifiers.logistic_softmax import LogisticSoftmaxClassifier, LogisticSoftmaxGibbsClassifier


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)


def blobs(n_classes, n, seed=0, spread=0.45):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, 8))
    y = np.arange(n) % n_classes
    y_test = rng.integers(n_classes, size=500)
    noise = spread * rng.standard_normal((n, 8)), spread * rng.standard_normal((500, 8))
    return centres[y] + noise[0], centres[y_test] + noise[1], y, y_test


def nll(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()


@pytest.mark.slow  # alone: figure 5 of the paper: three bounds against Gibbs
def test_bounds_against_exact_samples_on_wine(wine):
    # Figure 5 of the paper: no inducing points, same fixed hyperparameters, Gibbs as the truth
    X, X_test, y, y_test = wine
    geometry = Geometry.of(X, len(X), 0)
    geometry = geometry._replace(inducing=geometry.transform(X))
    same = {"geometry": geometry, "length_scale_factor": 1.0, "variance": 1.0, "prior_mean": 0.0}
    same["calibration"] = None
    gibbs = LogisticSoftmaxGibbsClassifier(n_samples=600, burn_in=60, random_state=0, **same).fit(X, y)
    truth = gibbs.predict_proba(X_test)
    assert gibbs.diagnostics_.r_hat < 1.2 and gibbs.diagnostics_.effective_sample_size > 20
    gaps, models = {}, {}
    for bound in ("joint", "mean-field", "plain"):
        models[bound] = LogisticSoftmaxClassifier(bound=bound, **same).fit(X, y)
        gaps[bound] = np.abs(models[bound].predict_proba(X_test) - truth).mean()
    assert gaps["plain"] < gaps["joint"] < gaps["mean-field"]
    assert gaps["plain"] < 0.015 and gaps["joint"] < 0.03 and gaps["mean-field"] > 0.08
    values = [models[bound].objective_ for bound in ("mean-field", "joint", "plain")]
    assert values == sorted(values)
    # the paper: both slightly underestimate the variance
    exact = gibbs.predict_latent(X_test)
    assert models["joint"].predict_latent(X_test).variance.mean() < exact.variance.mean()
    assert models["plain"].predict_latent(X_test).mean == pytest.approx(exact.mean, abs=0.6)
    assert (gibbs.predict(X_test) == y_test).mean() > 0.9


@pytest.mark.slow  # alone: 30 classes: what the prior mean is for
def test_prior_mean_cures_under_confidence_at_many_classes():
    X, X_test, y, y_test = blobs(30, 600)
    geometry = Geometry.of(X, 64, 0)
    zero, fixed, learned = (
        LogisticSoftmaxClassifier(prior_mean=m, geometry=geometry, calibration=None).fit(X, y)
        for m in (0.0, "log-classes", "learned")
    )
    loss = [nll(model, X_test, y_test) for model in (zero, fixed, learned)]
    assert loss[0] - 0.15 > loss[1] > loss[2]
    assert fixed.prior_mean_ == pytest.approx(-np.log(30))
    assert learned.prior_mean_.std() > 0 and learned.objective_ > fixed.objective_


@pytest.mark.slow  # alone: 30 classes by subsets of them
def test_class_batch_learns_many_classes():
    X, X_test, y, y_test = blobs(30, 600)
    geometry = Geometry.of(X, 64, 0)
    model = LogisticSoftmaxClassifier(class_batch=10, epochs=15, geometry=geometry, random_state=0)
    model.fit(X, y)
    full = LogisticSoftmaxClassifier(geometry=geometry).fit(X, y)
    assert model.score(X_test, y_test) > full.score(X_test, y_test) - 0.03
    assert full.objective_ > model.objective_ > full.objective_ - 0.15 * abs(full.objective_)
    everything = clone(model).set_params(class_batch=30).fit(X, y)
    assert everything.objective_ == pytest.approx(full.objective_, rel=1e-9)


def test_gpflow_model_agrees(wine):
    X, X_test, y, _ = wine
    for bound in ("joint", "mean-field"):
        options = {"bound": bound, "prior_mean": "log-classes", "calibration": None}
        model = LogisticSoftmaxClassifier(**options, random_state=0).fit(X, y)
        gp = model.gpflow_model_
        mean, variance = (a.numpy() for a in gp.predict_f(model.geometry_.transform(X_test)))
        latent = model.predict_latent(X_test)
        assert mean == pytest.approx(latent.mean, abs=1e-10)
        assert variance == pytest.approx(latent.variance, abs=1e-10)
        assert float(gp.elbo((model.geometry_.transform(X), y[:, None]))) == pytest.approx(
            model.objective_, rel=1e-6
        )
        p, _ = gp.predict_y(model.geometry_.transform(X_test))
        assert p.numpy() == pytest.approx(model.predict_proba(X_test), abs=1e-6)


def test_learned_prior_mean_is_part_of_the_latent(wine):
    X, X_test, y, _ = wine
    model = LogisticSoftmaxClassifier(random_state=0).fit(X, y)
    far = 8.0 * np.sign(X_test[:1] - X.mean(axis=0))
    wide = model.geometry_._replace(clip=np.inf)
    nowhere = clone(model).set_params(geometry=wide).fit(X, y)
    assert nowhere.predict_latent(X.mean(axis=0) + 100 * far).mean[0] == pytest.approx(nowhere.prior_mean_)
    mean = model.gpflow_model_.predict_f(model.geometry_.transform(X_test))[0].numpy()
    assert mean == pytest.approx(model.predict_latent(X_test).mean, abs=1e-9)


@pytest.mark.slow  # alone: the kernel learnt in full, warm and by minibatches
def test_learning_the_kernel_raises_the_bound(wine):
    X, _, y, _ = wine
    fixed = LogisticSoftmaxClassifier(random_state=0).fit(X, y)
    learned = LogisticSoftmaxClassifier(random_state=0, hyperparameters="learned").fit(X, y)
    assert learned.objective_ > fixed.objective_ + 10
    warm = clone(learned).set_params(warm_start=True).fit(X, y)
    first = warm.n_iter_
    warm.fit(X, y)
    assert warm.objective_ >= learned.objective_ - 0.5 and warm.n_iter_ < first
    minibatch = LogisticSoftmaxClassifier(random_state=0, hyperparameters="learned", batch_size=40)
    assert minibatch.fit(X, y).objective_ > fixed.objective_


def test_warm_start_continues_and_follows_classes(wine):
    X, _, y, _ = wine
    names = np.array(["c", "a", "b"])[y]
    geometry = Geometry.of(X, 40, 0)
    model = LogisticSoftmaxClassifier(warm_start=True, geometry=geometry).fit(X, names)
    sweeps, value = model.n_iter_, model.objective_
    model.fit(X, names)
    assert model.n_iter_ < sweeps and model.objective_ >= value - 1e-9
    model.classes = ["a", "b", "c", "d"]  # one more, in another order
    model.fit(X, names)
    cold = clone(model).fit(X, names)
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-3)
    assert model.predict_proba(X)[:, 3].max() < 0.3


@pytest.mark.slow  # alone: a saved state that goes on, in both precisions
def test_state_and_float32(wine, tmp_path):
    X, X_test, y, _ = wine
    for options in ({}, {"dtype": "float32"}, {"hyperparameters": "learned", "ard": True}):
        model = LogisticSoftmaxClassifier(random_state=0, **options).fit(X, y)
        np.savez(tmp_path / "state.npz", **model.get_state())
        with np.load(tmp_path / "state.npz") as state:
            again = clone(model).set_state(dict(state))
        assert np.array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
        again.set_params(warm_start=True).fit(X, y)  # a warm start from a saved state
        assert again.objective_ >= model.objective_ - 1e-3 * abs(model.objective_)
    single = LogisticSoftmaxClassifier(random_state=0, dtype="float32").fit(X, y)
    double = LogisticSoftmaxClassifier(random_state=0).fit(X, y)
    assert single.predict_proba(X_test) == pytest.approx(double.predict_proba(X_test), abs=5e-3)


def test_callback_stops_every_kind_of_fit(wine):
    X, X_test, y, _ = wine
    for options in ({}, {"batch_size": 20}, {"hyperparameters": "learned"}, {"bound": "plain"}):
        seen = []
        model = LogisticSoftmaxClassifier(random_state=0, **options)
        model.fit(X, y, callback=lambda fraction, value: seen.append(fraction) or len(seen) == 2)  # noqa: B023
        assert len(seen) == 2 and 0 < seen[0] < seen[1] <= 1, options
        assert np.isfinite(model.predict_proba(X_test)).all()


# ------------------------------------------------------------------------------------ Gibbs


@pytest.fixture(scope="module")
def gibbs(wine):
    X, _, y, _ = wine
    return LogisticSoftmaxGibbsClassifier(n_samples=80, burn_in=30, random_state=0).fit(X[:60], y[:60])


def test_gibbs_predicts_and_reports_convergence(gibbs, wine):
    _, X_test, _, y_test = wine
    p = gibbs.predict_proba(X_test)
    assert p.sum(axis=1) == pytest.approx(1) and gibbs.score(X_test, y_test) > 0.9
    np.testing.assert_allclose(gibbs.predict_proba(X_test[3:5]), p[3:5], rtol=1e-9)
    d = gibbs.diagnostics_
    assert d.r_hat >= d.r_hat_by_item.max() and 0 < d.effective_sample_size <= d.effective_by_item.min()
    assert gibbs.samples_.shape == (80, 60, 3) and gibbs.n_iter_ == 70


def test_gibbs_latents_are_the_samples_moments(gibbs, wine):
    _, X_test, _, _ = wine
    latent = gibbs.predict_latent(X_test)
    phi = gibbs.predictor_.project(X_test)
    f = -np.log(3) + np.einsum("np,spc->snc", phi, gibbs.samples_)
    rest = 11.0 - (phi**2).sum(axis=1)  # variance 10, and 1 of the unknown prior mean
    assert latent.mean == pytest.approx(f.mean(axis=0), abs=1e-6)
    assert latent.variance == pytest.approx(f.var(axis=0) + np.maximum(rest, 0)[:, None], abs=1e-6)


def test_gibbs_state_seed_and_warm_start(gibbs, wine):
    X, X_test, y, _ = wine
    again = clone(gibbs).set_state(gibbs.get_state())
    assert np.array_equal(again.predict_proba(X_test), gibbs.predict_proba(X_test))
    assert again.diagnostics_.r_hat == gibbs.diagnostics_.r_hat
    same = clone(gibbs).fit(X[:60], y[:60])
    assert np.array_equal(same.samples_, gibbs.samples_)
    other = clone(gibbs).set_params(random_state=1).fit(X[:60], y[:60])
    assert other.predict_proba(X_test) == pytest.approx(gibbs.predict_proba(X_test), abs=0.25)
    warm = again.set_params(warm_start=True).fit(X[:61], y[:61])
    assert warm.n_iter_ < gibbs.n_iter_
    assert warm.predict_proba(X_test) == pytest.approx(gibbs.predict_proba(X_test), abs=0.25)


def test_gibbs_stops_on_request(wine):
    X, X_test, y, _ = wine
    model = LogisticSoftmaxGibbsClassifier(random_state=0)
    model.fit(X[:30], y[:30], callback=lambda fraction, value: fraction > 0.1)
    assert model.n_iter_ < 50
    assert model.predict_proba(X_test).sum(axis=1) == pytest.approx(1)


@pytest.mark.slow  # alone: what the slice moves are for
def test_slice_moves_help_chains_mix(wine):
    X, _, y, _ = wine
    options = {"n_samples": 300, "burn_in": 50, "random_state": 0}
    plain, helped = (
        LogisticSoftmaxGibbsClassifier(slice_moves=m, **options).fit(X, y).diagnostics_ for m in (0, 3)
    )
    assert helped.effective_sample_size > 2 * plain.effective_sample_size
    assert np.median(helped.effective_by_item) > 2 * np.median(plain.effective_by_item)
    assert helped.r_hat < plain.r_hat


@pytest.mark.slow  # alone: long chains of the sampler agree
def test_gibbs_chains_agree_on_wine(wine):
    X, _, y, _ = wine
    model = LogisticSoftmaxGibbsClassifier(n_samples=4000, burn_in=300, n_chains=4, random_state=0).fit(X, y)
    assert model.diagnostics_.r_hat < 1.05
    assert model.diagnostics_.effective_sample_size > 150


def test_class_batches_of_many_rows_are_shuffled():
    """Rows sorted by class, more than a block of them: the last step must not see the last classes alone."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 5000)
    X = 1.5 * np.random.default_rng(9).standard_normal((4, 2))[y] + 0.7 * rng.standard_normal((20_000, 2))
    options = {"class_batch": 2, "epochs": 3, "n_inducing": 8, "random_state": 0}
    order = rng.permutation(len(y))
    geometry = Geometry.of(X, 8, 0)
    by_class, mixed = (
        make_classifier("logistic-softmax", geometry=geometry, **options).fit(X[rows], y[rows])
        for rows in (np.arange(len(y)), order)
    )
    assert by_class.objective_ == pytest.approx(mixed.objective_, rel=0.05)


def test_a_fixed_prior_mean_is_the_options_after_a_warm_start():
    X, y = load_iris(return_X_y=True)
    geometry = Geometry.of(X, 16, 0)
    two = y < 2
    model = make_classifier("logistic-softmax", prior_mean="log-classes", warm_start=True, geometry=geometry)
    model.fit(X[two], y[two]).fit(X, y)
    cold = make_classifier("logistic-softmax", prior_mean="log-classes", geometry=geometry).fit(X, y)
    np.testing.assert_allclose(model.prior_mean_, cold.prior_mean_)
    np.testing.assert_allclose(model.predict_proba(X), cold.predict_proba(X), atol=5e-3)


@pytest.mark.parametrize(
    ("name", "options"),
    [("logistic-softmax", {}), ("logistic-softmax-gibbs", {"n_samples": 40, "burn_in": 20})],
)
def test_a_large_variance_gives_probabilities(name, options):
    """Protects against NaN where every sigma(f) of a draw underflows, and integrals of seconds an item."""
    rng = np.random.default_rng(0)
    codes = np.arange(20) % 3
    X = rng.normal(size=(20, 4)) + 3.0 * np.eye(4)[codes]
    model = make_classifier(name, variance=1e6, random_state=0, **options).fit(X, codes)
    p = model.predict_proba(X)
    assert np.isfinite(p).all() and p.sum(axis=1) == pytest.approx(1.0)
    assert np.mean(p.argmax(axis=1) == codes) > 0.9
