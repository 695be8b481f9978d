"""scikit-learn's classifiers behind our contract."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tests.classifiers.problems import split
from workbench.classifiers import Geometry, make_classifier
from workbench.classifiers.baselines import LaplaceGPClassifier
from workbench.errors import InputError
from workbench.metrics import error_rate

NAMES = ("svm-platt", "logistic-regression", "gp-laplace")


def test_they_are_scikit_learns():
    a, b, ya, _ = split(load_wine)
    scaler = StandardScaler().fit(a)
    A, B = scaler.transform(a), scaler.transform(b)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    theirs = {
        "svm-platt": CalibratedClassifierCV(SVC(C=5), cv=folds, ensemble=False),
        "logistic-regression": LogisticRegression(max_iter=1000),
    }
    for name, model in theirs.items():
        ours = make_classifier(name, random_state=0).fit(a, ya)
        np.testing.assert_allclose(ours.predict_proba(b), model.fit(A, ya).predict_proba(B), atol=1e-8)
    geometry = Geometry.of(a, 5, 0)
    kernel = ConstantKernel(10.0) * RBF(0.6 * geometry.length_scale)
    laplace = GaussianProcessClassifier(kernel, optimizer=None).fit(geometry.transform(a), ya)
    ours = make_classifier("gp-laplace", geometry=geometry, calibration=None).fit(a, ya)
    np.testing.assert_allclose(
        ours.predict_proba(b), laplace.predict_proba(geometry.transform(b)), atol=1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_geometry_sets_the_scale(name):
    a, b, ya, _ = split(load_wine)
    geometry = Geometry.of(np.concatenate([a, b]), 5, 0)
    scaled_by_pool = make_classifier(name, geometry=geometry, random_state=0).fit(a[:20], ya[:20])
    by_labels = make_classifier(name, random_state=0).fit(a[:20], ya[:20])
    assert np.abs(scaled_by_pool.predict_proba(b) - by_labels.predict_proba(b)).max() > 1e-4
    with pytest.raises(InputError, match="13 features and X has 4"):
        X, y = load_iris(return_X_y=True)
        make_classifier(name, geometry=geometry).fit(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_few_labels_and_classes_without_any(name):
    a, b, ya, yb = split(load_iris)
    first = [int(np.flatnonzero(ya == c)[0]) for c in range(3)]
    one_each = make_classifier(name, random_state=0).fit(a[first], ya[first])
    assert error_rate(yb, one_each.predict_proba(b)) < 0.4
    uneven = first + np.flatnonzero(ya == 1)[1:7].tolist()
    assert (
        error_rate(yb, make_classifier(name, random_state=0).fit(a[uneven], ya[uneven]).predict_proba(b))
        < 0.55
    )
    some = ya != 1
    model = make_classifier(name, classes=[0, 1, 2], random_state=0).fit(a[some], ya[some])
    p = model.predict_proba(b)
    np.testing.assert_allclose(p[:, 1], 1 / (some.sum() + 3))
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    single = make_classifier(name, classes=[0, 1, 2]).fit(a[ya == 2], ya[ya == 2])
    assert (single.predict(b) == 2).all()
    assert (single.predict_proba(b) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_that_nobody_gave_is_saved(name):
    a, b, ya, _ = split(load_iris)
    words = np.array(["one", "two", "three"])[ya]
    for geometry in (None, Geometry.of(a, 5, 0)):
        model = make_classifier(name, geometry=geometry).fit(a, words)
        copy = make_classifier(name).set_state(model.get_state())
        np.testing.assert_array_equal(copy.predict_proba(b), model.predict_proba(b))
        np.testing.assert_array_equal(copy.predict(b), model.predict(b))


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_reports_once(name):
    a, _, ya, _ = split(load_iris)
    seen = []
    make_classifier(name).fit(a, ya, callback=lambda f, o: seen.append((f, o)))
    assert len(seen) == 1
    assert seen[0][0] == 1.0


def test_laplace_learns_hyperparameters_and_refuses_too_many_rows(monkeypatch):
    a, _, ya, _ = split(load_iris)
    fixed = LaplaceGPClassifier(random_state=0).fit(a, ya)
    learned = LaplaceGPClassifier(hyperparameters="learned", random_state=0).fit(a, ya)
    assert learned.objective_ > fixed.objective_
    monkeypatch.setattr("workbench.classifiers.baselines.MAX_LAPLACE_ROWS", 50)
    with pytest.raises(InputError, match="at most 50 labels"):
        LaplaceGPClassifier().fit(a, ya)
