"""Options that make no sense, of every family: refused by name before anything is fitted."""

import gpflow
import numpy as np
import pytest

from workbench.classifiers import Geometry, make_classifier
from workbench.classifiers.svgp import SVGPClassifier
from workbench.errors import InputError

MATERN = gpflow.kernels.Matern32()
REFUSED = {
    "large-margin": [
        ({"solver": "newton"}, "solver must be one of 'sweeps'"),
        ({"calibration": "platt"}, "calibration must be one of"),
        ({"hyperparameters": "yes"}, "hyperparameters must be one of"),
        ({"input_scaling": "pca"}, "input_scaling must be one of"),
        ({"inducing": "grid"}, "inducing must be one of"),
        ({"inducing": np.ones((3, 9))}, "array"),
        ({"kernel": "cubic"}, "Unknown kernel"),
        ({"variance": -1.0}, "variance must be positive"),
        ({"n_inducing": 0}, "n_inducing must be at least 1"),
        ({"rare_margin": -0.1}, "rare_margin must be at least 0"),
        ({"rivals": 0}, "rivals must be at least 1"),
        ({"ard": True}, "hyperparameters"),
        ({"dtype": "int8"}, "float64"),
        ({"solver": "natural-gradient", "learning_rate": 1.5}, r"natural gradients must lie in \(0, 1\]"),
        ({"solver": "natural-gradient", "learning_rate": 2.0}, r"natural gradients must lie in \(0, 1\]"),
        (
            {"solver": "natural-gradient", "learning_rate": float("inf")},
            r"natural gradients must lie in \(0, 1\]",
        ),
        ({"epochs": 5}, "does nothing with solver="),
        ({"batch_size": 32}, "does nothing with solver="),
        ({"solver": "adam", "max_sweeps": 3}, "does nothing with solver="),
    ],
    "bayesian-svm": [
        ({"hyperparameters": "guess"}, "hyperparameters"),
        ({"ard": True}, "ard"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"learning_rate": 2.0}, "learning_rate"),
        ({"variance": -1.0}, "variance"),
        ({"batch_size": 0}, "batch_size"),
        ({"inducing": "grid"}, "inducing"),
        ({"kernel": "cosine"}, "kernel"),
        ({"epochs": 3}, "epochs=3 does nothing in full sweeps"),
        ({"learning_rate": 0.1}, "does nothing in full sweeps"),
        ({"kernel": MATERN, "variance": 2.0}, r"variance=2\.0 does nothing"),
    ],
    "bayesian-svm-linear": [({"n_inducing": 3}, "It has:")],
    "bayesian-svm-batch": [({"variance": 0}, "variance")],
    "logistic-softmax": [
        ({"bound": "tight"}, "bound"),
        ({"prior_mean": "zero"}, "prior_mean"),
        ({"class_batch": 0}, "class_batch"),
        ({"bound": "plain", "batch_size": 10}, "plain"),
    ],
    "logistic-softmax-gibbs": [
        ({"n_samples": 0}, "n_samples"),
        ({"burn_in": -1}, "burn_in"),
        ({"prior_mean": "zero"}, "prior_mean"),
    ],
    "svgp": [
        ({"likelihood": "logit"}, "'softmax', 'robust-max', 'heaviside'"),
        ({"optimizer": "sgd"}, "'natural', 'adam', 'papers'"),
        ({"hyperparameters": "some"}, "'fixed', 'learned'"),
        ({"hyperparameters": "learned", "kernel": MATERN}, "named kernels"),
        ({"kernel": MATERN, "variance": 3.0}, "used as it is"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"batch_size": 10}, "batch_size=10 does nothing with optimizer='natural'"),
        ({"optimizer": "adam", "tol": 1e-3}, "tol=0.001 does nothing"),
        ({"likelihood": "robust-max", "n_nodes": 8}, "n_nodes=8 does nothing"),
        ({"epsilon": 0.1}, "epsilon=0.1 does nothing with likelihood='softmax'"),
        ({"n_nodes": 1}, "at least 2"),
        ({"epsilon": 1.5, "likelihood": "robust-max"}, "between 0 and 1"),
        ({"variance": 0.0}, "variance must be positive"),
    ],
    "wasserstein": [
        ({"distance": "other"}, "'exact', 'printed'"),
        ({"dtype": "float32"}, "dtype must be one of 'float64'"),
        ({"prior_mean": "log-classes"}, "prior_mean must be a number"),
        ({"calibration": "leave-one-out"}, "calibration must be one of 'validation'"),
        ({"epsilon": 1.0}, "between 0 and 1"),
        ({"calibration": None, "validation_fraction": 0.3}, "does nothing with calibration=None"),
        ({"epochs": 0}, "epochs must be positive"),
        ({"weight": -1.0}, "weight must be at least 0"),
        ({"input_shape": (3, 3)}, "4 numbers in all"),
        ({"network": "huge"}, "no network called 'huge'"),
    ],
    "large-margin-net": [
        ({"input_shape": (7, 7)}, "4 numbers in all; got .7, 7."),
        ({"input_shape": (2, 2, 1, 1)}, "height, width"),
        ({"input_shape": (2, 2), "network": "tiny"}, "no network"),
        ({"input_shape": (2, 2), "refit": "some"}, "refit"),
        ({"input_shape": (2, 2), "refit": "whole"}, "does nothing with warm_start=False"),
        ({"input_shape": (2, 2), "retrain_growth": 3.0}, "does nothing with warm_start=False"),
        ({"calibration": "platt"}, "calibration"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"geometry": Geometry.of(np.eye(5), 2, 0)}, "5 features"),
    ],
    "gp-laplace": [({"hyperparameters": "some"}, "fixed"), ({"variance": -1}, "variance")],
}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        pytest.param(name, options, message, id=f"{name}-{'-'.join(options)}-{number}")
        for name, rows in REFUSED.items()
        for number, (options, message) in enumerate(rows)
    ],
)
def test_options_that_make_no_sense_are_refused(name, options, message):
    codes = np.arange(30) % 3
    X = np.eye(3, 4)[codes] + 0.5 * np.random.default_rng(0).standard_normal((30, 4))
    with pytest.raises(InputError, match=message):
        (SVGPClassifier(**options) if name == "svgp" else make_classifier(name, **options)).fit(X, codes)
