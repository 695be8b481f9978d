"""Each family on real data: how often it errs, and how sure it is of it."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from tests.classifiers.problems import split
from workbench.classifiers import make_classifier
from workbench.classifiers.bayesian_svm import ECMSVMClassifier
from workbench.metrics import error_rate, negative_log_likelihood

DATA = {"cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
BAYESIAN_SVMS = ("bayesian-svm", "bayesian-svm-linear", "bayesian-svm-batch", "ecm-svm")
SVGPS = ("svgp-softmax", "svgp-robust-max", "svgp-heaviside")
OTHERS = ("wasserstein", "svm-platt", "logistic-regression", "gp-laplace")
# the most errors and the largest mean loss, nats
LEARNT = [
    *((name, "cancer", 0.08, 0.35) for name in BAYESIAN_SVMS),
    *((name, "wine", 0.07, 0.35) for name in BAYESIAN_SVMS),
    *((name, data, 0.07, 0.25) for name in SVGPS for data in ("iris", "wine")),
    *((name, data, 0.09, 0.3) for name in OTHERS for data in ("iris", "wine")),
]


@pytest.mark.parametrize(("name", "data", "error", "loss"), LEARNT)
def test_it_learns_real_data(name, data, error, loss):
    X, X_test, y, y_test = split(DATA[data])
    model = ECMSVMClassifier(random_state=0) if name == "ecm-svm" else make_classifier(name, random_state=0)
    p = model.fit(X, y).predict_proba(X_test)
    assert error_rate(y_test, p) <= error
    assert negative_log_likelihood(y_test, p) < loss
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
