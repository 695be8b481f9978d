"""Options as data: one line makes a constructor, a check and scikit-learn's get_params."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from workbench.classifiers import CLASSIFIERS, make_classifier
from workbench.classifiers.base import BaseBayesianClassifier
from workbench.classifiers.options import estimator, fitted, option
from workbench.errors import InputError


@estimator
class Constant(BaseBayesianClassifier):
    solver: str = option("sweeps", choices=("sweeps", "adam", "both"))
    epochs: int | None = option(None, at_least=1, when={"solver": ("adam", "both")})
    tol: float = option(1e-4, above=0.0)
    share_: float = fitted()

    def _fit_codes(self, X, codes, callback):
        self.share_ = float(codes.mean())

    def _probabilities(self, X):
        return np.tile([1.0 - self.share_, self.share_], (len(X), 1))


X, Y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])


def test_an_option_is_a_keyword_a_parameter_and_a_default():
    assert Constant().get_params() == {
        "classes": None,
        "random_state": None,
        "solver": "sweeps",
        "epochs": None,
        "tol": 1e-4,
    }
    with pytest.raises(TypeError):
        Constant("adam")
    with pytest.raises(TypeError):
        Constant(share_=1.0)
    made = Constant(solver="adam", epochs=3)
    assert repr(made) == "Constant(epochs=3, solver='adam')"
    assert clone(made).get_params() == made.get_params()
    assert not hasattr(made, "share_") and made.fit(X, Y).share_ == pytest.approx(2 / 3)
    assert made != clone(made) and hash(made) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "newton"}, "solver must be one of 'sweeps', 'adam', 'both'; got 'newton'"),
        ({"solver": "adam", "epochs": 0}, "epochs must be at least 1; got 0"),
        ({"solver": "adam", "epochs": "many"}, "epochs must be a number; got 'many'"),
        ({"epochs": 3}, r"epochs=3 does nothing with solver='sweeps': it is for solver 'adam' or 'both'"),
        ({"tol": 0.0}, r"tol must be positive; got 0\.0"),
        ({"tol": float("nan")}, "tol must be positive; got nan"),
        ({"tol": None}, "tol must be a number; got None"),
    ],
)
def test_what_an_option_may_not_be_is_refused_by_fit(options, message):
    with pytest.raises(InputError, match=message):
        Constant(**options).fit(X, Y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_option_of_a_registered_classifier_has_a_name_and_a_default(name):
    parameters = inspect.signature(CLASSIFIERS[name].load()).parameters.values()
    assert {"classes", "random_state"} <= {p.name for p in parameters}
    assert all(p.default is not p.empty for p in parameters)


@pytest.mark.parametrize(
    ("value", "column", "message"),
    [
        (np.nan, "b", r"NaN \(a missing value\) in row 1, column 'b'"),
        (np.inf, "a", "inf .*row 1, column 'a'"),
    ],
)
def test_features_that_are_not_finite_are_refused_by_place(value, column, message):
    import pandas as pd

    table = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 2.0]})
    model = make_classifier("logistic-regression").fit(table, Y)
    table.loc[1, column] = value
    for call in (lambda: model.predict(table), lambda: clone(model).fit(table, Y)):
        with pytest.raises(InputError, match=message):
            call()
    huge = np.full((4, 3), np.finfo(np.float32).max, dtype=np.float32)
    assert len(make_classifier("logistic-regression").fit(X, Y).predict(huge[:, :2])) == 4
