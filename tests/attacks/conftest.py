"""Fitted models on the digits, shared by the tests of attacks."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from workbench.classifiers import Geometry, make_classifier


@pytest.fixture(scope="session")
def digits():
    bunch = load_digits()
    X, y = bunch.images.reshape(-1, 64) / 16.0, bunch.target
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[300:700]], y[order[300:700]], X[order[:150]], y[order[:150]]


@pytest.fixture(scope="session")
def geometry(digits):
    return Geometry.of(digits[0], 48, 0, common_scale=True)


@pytest.fixture(scope="session")
def pixels_model(digits, geometry):
    return make_classifier("large-margin", geometry=geometry, n_mean=0).fit(*digits[:2])


@pytest.fixture(scope="session")
def net(digits):
    options = {
        "input_shape": (8, 8),
        "pretrain_epochs": 8,
        "joint_epochs": 4,
        "min_steps": 50,
        "n_inducing": 32,
    }
    return make_classifier("large-margin-net", random_state=0, **options).fit(*digits[:2])


@pytest.fixture(scope="session")
def softmax_net(digits):
    return make_classifier(
        "softmax-net", input_shape=(8, 8), epochs=12, learning_rate=3e-3, min_steps=50, random_state=0
    ).fit(*digits[:2])


@pytest.fixture(scope="session")
def wasserstein(digits, geometry):
    options = {"network": "small", "input_shape": (8, 8), "epochs": 8, "min_steps": 50}
    return make_classifier("wasserstein", geometry=geometry, random_state=0, **options).fit(*digits[:2])
