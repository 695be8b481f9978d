"""Models of every registered classifier, for the tests of what all of them have in common."""

import functools

import numpy as np
import pytest

from workbench.classifiers import CLASSIFIERS, make_classifier

NAMES = list(CLASSIFIERS)
# those that compile longest are held to the contract in .ci/run; their own files try them in make test, too
COMPILED = {
    "logistic-softmax-gibbs",
    "svgp-robust-max",
    "svgp-heaviside",
    "wasserstein",
    "softmax-net",
    "large-margin-net",
}
EACH = [pytest.param(name, marks=[pytest.mark.slow] if name in COMPILED else []) for name in NAMES]
# few iterations where a family is slow; everything else is as a user gets it
QUICK = {
    "logistic-softmax-gibbs": {"n_samples": 60, "burn_in": 30},
    "svgp-softmax": {"n_inducing": 16, "max_iter": 40},
    "svgp-robust-max": {"n_inducing": 16, "max_iter": 150},
    "svgp-heaviside": {"n_inducing": 16, "max_iter": 40},
    "wasserstein": {"n_inducing": 16, "min_steps": 80, "epochs": 5},
    "large-margin-net": {
        "n_inducing": 16,
        "min_steps": 40,
        "pretrain_epochs": 5,
        "joint_epochs": 2,
        "learning_rate": 3e-3,
    },
    "softmax-net": {"min_steps": 60, "epochs": 5, "learning_rate": 3e-3},
}
# one name of each family: the checks look at the estimator, which likelihoods share
CHECKED = [
    name
    for name, entry in CLASSIFIERS.items()
    if name == next(n for n, e in CLASSIFIERS.items() if e.target == entry.target)
]
# what the estimator alone answers for is asked of one that compiles long, not of each of its likelihoods
ESTIMATORS = [each for each in EACH if each.values[0] in CHECKED or each.values[0] not in COMPILED]


def make(name, **options):
    return make_classifier(name, **{"random_state": 0} | QUICK.get(name, {}) | options)


def blobs(n, seed=0, n_classes=3, dims=4, spread=0.7):
    rng = np.random.default_rng(seed)
    centres = 2.0 * np.random.default_rng(99).standard_normal((n_classes, dims))
    codes = np.arange(n) % n_classes
    return centres[codes] + spread * rng.standard_normal((n, dims)), codes


def check_probabilities(p, n_classes):
    assert p.shape[1] == n_classes
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)


def error(model, n=200, seed=7, transform=lambda X: X):
    X, codes = blobs(n, seed)
    p = model.predict_proba(transform(X))
    check_probabilities(p, len(model.classes_))
    return float((model.predict(transform(X)) != model.classes_[codes]).mean())


@functools.cache
def fit_of(name):
    """A model fitted on 90 rows; one fit shared by the tests that only look."""
    return make(name).fit(*blobs(90))
