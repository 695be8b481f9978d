"""Policies: from what a model believes about a pool to the items worth asking about."""

from workbench.classifiers.argmax import argmax_probabilities
from workbench.policies.belief import Belief
from workbench.policies.registry import POLICIES, PolicyEntry
from workbench.policies.selection import query, utilities
from workbench.policies.variation import top_variation_ratio, variation_ratio

__all__ = [
    "POLICIES",
    "Belief",
    "PolicyEntry",
    "argmax_probabilities",
    "query",
    "top_variation_ratio",
    "utilities",
    "variation_ratio",
]
