"""GPflow likelihoods, each formula once: for our solvers and for anybody's `gpflow.models.SVGP`."""

from workbench.engine.likelihoods.base import SiteLikelihood, Sites
from workbench.engine.likelihoods.logistic_softmax import LogisticSoftmax
from workbench.engine.likelihoods.margin import BayesianSVM, LargeMargin
from workbench.engine.likelihoods.softmax import MultinomialProbit, RobustMax, Softmax

__all__ = [
    "BayesianSVM",
    "LargeMargin",
    "LogisticSoftmax",
    "MultinomialProbit",
    "RobustMax",
    "SiteLikelihood",
    "Sites",
    "Softmax",
]
