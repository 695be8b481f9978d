"""Constructor options as data: a class says each option once, with its default and what it may be.

    @estimator
    class MyClassifier(BaseBayesianClassifier):
        solver: str = option("sweeps", choices=("sweeps", "adam"))
        tol: float = option(1e-4, above=0.0)
        epochs: int | None = option(None, at_least=1, when={"solver": ("adam",)})
        mean_: Floats = fitted()

makes `MyClassifier(*, classes=None, random_state=None, solver="sweeps", ...)`, which only stores, as
scikit-learn wants it; `fit` then calls `check_options`.
"""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from workbench.errors import InputError

T = TypeVar("T")


class _Rule(NamedTuple):
    choices: tuple[Any, ...] | None
    at_least: float | None
    above: float | None
    when: Mapping[str, tuple[Any, ...]]
    optional: bool


def option(
    default: Any,
    *,
    choices: tuple[Any, ...] | None = None,
    at_least: float | None = None,
    above: float | None = None,
    when: Mapping[str, tuple[Any, ...]] | None = None,
    optional: bool = False,
) -> Any:
    """A constructor option.

    Args:
        default: its value unless given; None as a default is always allowed.
        choices: all values it may have; None for any.
        at_least: the smallest number it may be.
        above: numbers must be larger than this.
        when: other options and the values of theirs for which this one does anything: given
            otherwise, it is refused instead of ignored.
        optional: it may be None although its default is not.
    """
    rule = _Rule(choices, at_least, above, when or {}, optional or default is None)
    return dataclasses.field(default=default, metadata={"rule": rule})


def fitted() -> Any:
    """An attribute that `fit` sets: declared for readers, no option."""
    return dataclasses.field(init=False)


def estimator(cls: type[T]) -> type[T]:
    """Give a class a keyword-only constructor of its options and those of its bases."""
    return dataclasses.dataclass(kw_only=True, eq=False, repr=False)(cls)


@cache
def _rules(cls: Any) -> tuple[tuple[str, Any, _Rule], ...]:
    if not dataclasses.is_dataclass(cls):
        return ()
    rules = ((f.name, f.default, f.metadata.get("rule")) for f in dataclasses.fields(cls) if f.init)
    return tuple((name, default, rule) for name, default, rule in rules if rule is not None)


def check_options(estimator: Any) -> None:
    """Refuse options that are out of range, or that do nothing beside the others.

    Args:
        estimator: of a class made by `estimator`.

    Raises:
        InputError: names the option, what it may be, and what it is.
    """
    cls: Any = type(estimator)
    for name, default, rule in _rules(cls):
        value = getattr(estimator, name)
        if value is None and rule.optional:
            continue
        _check_value(name, value, rule)
        for setting, values in rule.when.items():
            present = getattr(estimator, setting)
            if present not in values and value != default:
                raise InputError(
                    f"{name}={value!r} does nothing with {setting}={present!r}: it is for {setting} "
                    f"{' or '.join(map(repr, values))}. Leave it out, or set {setting}."
                )


def _check_value(name: str, value: Any, rule: _Rule) -> None:
    if rule.choices is not None and value not in rule.choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, rule.choices))}; got {value!r}.")
    if rule.at_least is None and rule.above is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{name} must be a number; got {value!r}.")
    if rule.at_least is not None and not value >= rule.at_least:
        raise InputError(f"{name} must be at least {rule.at_least:g}; got {value!r}.")
    if rule.above is not None and not value > rule.above:
        bound = "positive" if rule.above == 0 else f"above {rule.above:g}"
        raise InputError(f"{name} must be {bound}; got {value!r}.")
