"""Projects of several questions, for the tests about them."""

import numpy as np

from workbench.sessions import Session

TOPIC = ("topic", ["refund", "delivery", "other"])


def points(n=60):
    return np.random.default_rng(0).normal(size=(n, 2))


def begun(store, questions=(TOPIC, "fraud"), **more):
    given = {"name": "mail", "classifier": "logistic-regression", "policy": "margin", "early_share": 0.0}
    shares = {"evaluation_share": 0.0, "uniform_share": 0.0}
    return Session.create(
        points(), questions=questions, store=store, annotator="ann", **given | shares | more
    )
