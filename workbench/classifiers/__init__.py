"""Classifiers with honest uncertainty, by name. Listing them imports no model."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.errors import InputError
from workbench.registry import Entry, Registry, load_own, plugins, signature_of, written_entries

if TYPE_CHECKING:
    from workbench.classifiers.base import BaseBayesianClassifier as BaseBayesianClassifier
    from workbench.classifiers.foreign import as_classifier as as_classifier
    from workbench.classifiers.large_margin import LargeMarginClassifier as LargeMarginClassifier
    from workbench.classifiers.predictor import Predictor as Predictor


@dataclass(frozen=True)
class ClassifierEntry(Entry):
    """One registered classifier.

    Attributes:
        source: where the model comes from.
        cost: what a fit costs, in words.
        has_latent: whether `predict_latent` works (variation ratio needs it).
        gradients: whether it is a function of pixels that an attacker can follow downhill.
        image_only: whether it needs images.
        binary_only: whether it refuses more than two classes.
        advice: of those to begin with: when to take it, in a line for people.
    """

    source: str = ""
    cost: str = ""
    has_latent: bool = True
    gradients: bool = False
    image_only: bool = False
    binary_only: bool = False
    advice: str = ""


_HERE = "workbench.classifiers"
ENTRY_POINT_GROUP = "workbench.classifiers"


def _described(name: str, target: str, thing: Any) -> ClassifierEntry:
    """The entry of another package's classifier that brings none."""
    text = (inspect.getdoc(thing) or "").partition("\n")[0] if thing is not None else ""
    return ClassifierEntry(
        name,
        target,
        name,
        text or f"A classifier of {target.partition('.')[0]}.",
        source=target,
        has_latent=hasattr(thing, "predict_latent"),
    )


CLASSIFIERS: Registry[ClassifierEntry] = Registry(
    "classifier",
    written_entries(Path(__file__).with_name("classifiers.toml"), ClassifierEntry),
    lambda: plugins(ENTRY_POINT_GROUP, _described),
)


def sees_pixels(name: str) -> bool:
    """True if a classifier learns its features from the pixels of images, so that it is given no others.

    Args:
        name: as for `make_classifier`.
    """
    return name in CLASSIFIERS and CLASSIFIERS[name].image_only


def title_of(name: str) -> str:
    """A classifier's title for people; one that has no entry is called as it was named."""
    entry = CLASSIFIERS.get(name)
    return name if entry is None else entry.title


def make_classifier(name: str, **options: Any) -> Any:
    """An unfitted classifier by name.

    Args:
        name: a name in `CLASSIFIERS`, or "package.module:Class" of your own.
        options: constructor options.

    Returns:
        The estimator; one of another package is wrapped by `as_classifier`.

    Raises:
        InputError: no such name, a name of code that came from a file, something that is no classifier,
            or an option the model does not have (the message lists those it has).
    """
    fixed: dict[str, Any] = {}
    if ":" in name:
        target = load_own(name, "classifier", "fit", "predict_proba")
    else:
        entry = CLASSIFIERS[name]
        fixed = dict(entry.options)
        target = entry.load()
    parameters = signature_of(target).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    option_names = [p for p in parameters if p not in fixed]
    unknown = [] if open_ended else [option for option in options if option not in option_names]
    if unknown:
        raise InputError(
            f"Classifier {name!r} has no option {unknown[0]!r}. It has: {', '.join(sorted(option_names))}."
        )
    classifier = target(**fixed, **options)
    if name in CLASSIFIERS.own:
        return classifier
    from workbench.classifiers.foreign import as_classifier

    return as_classifier(classifier)


_LAZY = {entry.target.partition(":")[2]: entry.target.partition(":")[0] for entry in CLASSIFIERS.own.values()}
_LAZY |= {
    "BaseBayesianClassifier": f"{_HERE}.base",
    "Predictor": f"{_HERE}.predictor",
    "as_classifier": f"{_HERE}.foreign",
}

# The estimators themselves are left out: a star import must not pull in scikit-learn.
__all__ = [
    "CLASSIFIERS",
    "ClassifierEntry",
    "Geometry",
    "Latent",
    "make_classifier",
    "sees_pixels",
    "title_of",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
