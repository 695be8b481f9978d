"""Settings of a new project. "Default" in a benchmark means these, and nothing else is called so."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple


class Default(NamedTuple):
    """Model, its options and policy of a new project.

    Attributes:
        classifier: name.
        options: of the model, as the session completes them.
        policy: name.
    """

    classifier: str
    options: dict[str, Any]
    policy: str


def default() -> Default:
    """Settings that `Session.create` gives a project that asks for nothing."""
    from workbench.sessions import Session
    from workbench.sessions.spec import with_choice

    given = inspect.signature(Session.create).parameters
    classifier = given["classifier"].default
    return Default(classifier, with_choice(classifier, {}), given["policy"].default)
