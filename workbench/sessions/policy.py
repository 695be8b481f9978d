"""Policies that a classifier can serve, and the one that asks in a project now."""

from typing import Any

from workbench.classifiers import CLASSIFIERS
from workbench.errors import InputError
from workbench.policies import POLICIES
from workbench.policies.default_policy import EffectivePolicy, effective_policy
from workbench.sessions.fitted_model import FittedModel


def asking_policy(model: FittedModel, policy: Any) -> EffectivePolicy:
    """The policy that asks in a project now; it may look for a class that nobody has seen yet.

    Args:
        model: the published one.
        policy: the project's.
    """
    if model.mean is not None:
        return EffectivePolicy(policy)  # with a guess a class is predicted before anybody has seen it
    return effective_policy(policy, model.classes, model.codes, has_latent=model.has_latent)


def check_policy(policy: Any, classifier: Any) -> None:
    """Refuse a policy the classifier cannot serve, before anything is fitted.

    Raises:
        InputError: no such policy, or one that needs latents the classifier lacks.
    """
    if not isinstance(policy, str) or not isinstance(classifier, str):
        return
    from workbench.policies.registry import find

    entry, _ = find(policy)
    model = CLASSIFIERS.get(classifier)
    if entry is not None and model is not None and "latent" in entry.needs and not model.has_latent:
        can = [e.name for e in POLICIES.values() if "latent" not in e.needs and e.kind == entry.kind]
        raise InputError(
            f"{policy} needs latent functions with uncertainty, and {classifier} gives class probabilities "
            f"only. Use {', '.join(can)}; or a Bayesian model such as large-margin."
        )
