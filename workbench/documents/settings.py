"""Settings of a model as arguments of functions: names, types, defaults, limits and help are written once."""

import re
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar, get_type_hints

from pydantic.fields import FieldInfo

F = TypeVar("F", bound=Callable[..., Any])


def settings_of(schema: type) -> dict[str, FieldInfo]:
    """Fields of a model of settings.

    Args:
        schema: a model of pydantic, or a dataclass whose types have their limits.

    Returns:
        Name -> the field: its type, default, limits and title; its description is what the docstring says.
    """
    texts: dict[str, str] = {}
    for base in reversed(schema.__mro__):
        entries = re.split(r"\n {4}(\w+): ", cleandoc(base.__doc__ or ""))
        texts |= zip(entries[1::2], (" ".join(text.split()) for text in entries[2::2]), strict=True)
    if is_dataclass(schema):
        hints = get_type_hints(schema, include_extras=True)
        infos = {
            f.name: FieldInfo.from_annotated_attribute(
                hints[f.name], ... if f.default is MISSING else f.default
            )
            for f in fields(schema)
        }
    else:
        infos = dict(schema.model_fields)  # type: ignore[attr-defined]
    for name, info in infos.items():
        info.description = texts.get(name, "")
    return infos


def limit_of(setting: FieldInfo, *signs: str) -> Any:
    """The first limit of a setting among `ge`, `gt`, `le` and `lt`, or None."""
    limits = (getattr(entry, sign, None) for sign in signs for entry in setting.metadata)
    return next((limit for limit in limits if limit is not None), None)


def with_settings(
    schema: type, kind: Callable[[FieldInfo], Any] = lambda setting: setting.annotation
) -> Callable[[F], F]:
    """Give a function that takes `**settings` those of a model as its last arguments.

    Args:
        schema: as in `settings_of`.
        kind: the annotation of a setting as an argument; None leaves it out.

    Returns:
        A decorator: the signature has the settings that the function does not name itself, and `settings:` in
        the docstring becomes a line for each.
    """

    def change(function: F) -> F:
        own = signature(function)
        parameters = [each for each in own.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
        lines = []
        for name, setting in settings_of(schema).items():
            annotation = None if name in own.parameters else kind(setting)
            if annotation is not None:
                default = setting.get_default(call_default_factory=True)
                parameters.append(
                    Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
                )
                lines.append(f"{name}: {setting.description}\n")
        vars(function)["__signature__"] = own.replace(parameters=parameters)
        text = function.__doc__ or ""
        function.__doc__ = re.sub(
            r"( +)settings: .*\n", lambda m: "".join(m[1] + line for line in lines), text
        )
        return function

    return change
