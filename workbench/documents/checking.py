"""Fields and settings within their limits, and the check of a document by its schema."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache, partial
from inspect import Parameter, cleandoc, signature
from pathlib import PurePath
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from workbench.errors import InputError
from workbench.reading import cut, listed

D = TypeVar("D", bound=BaseModel)


def checked(
    schema: type[D],
    document: Any,
    what: str,
    advice: str = "",
    wrong: str = "is damaged",
    part: Literal["field", "setting"] = "field",
) -> D:
    """A document as its schema has it.

    Args:
        schema: one of this package.
        document: JSON, as parsed.
        what: for messages ("The bundle in runs/a: project.json").
        advice: what to do, a sentence.
        wrong: what is said of one of another shape.
        part: what its fields are called in messages.

    Returns:
        The same, typed; `document` itself stays what is stored.

    Raises:
        InputError: another shape; says which field, and what stands there.
    """
    try:
        model: D = adapter(schema).validate_python(document)
    except (ValidationError, RecursionError) as error:
        raise InputError(f"{what} {wrong}: {said(error, schema, part)}. {advice}".rstrip()) from error
    return model


def checked_settings(schema: type, settings: Mapping[str, Any], what: str, wrong: str) -> dict[str, Any]:
    """Check settings that a dataclass takes by the types of its fields; it says the rest when it is made.

    Args:
        schema: the dataclass.
        settings: name -> value, as parsed.
        what: as in `checked`.
        wrong: as in `checked`.

    Returns:
        The settings; lists are tuples where the field is one.

    Raises:
        InputError: a setting that there is not, or a value of another kind.
    """
    model = checked(_model_of(schema), plain(settings), what, wrong=wrong, part="setting")
    return {name: getattr(model, name) for name in settings}


def check_plain_options(target: Callable[..., Any], options: Mapping[str, Any], what: str) -> None:
    """Refuse values of another kind where a type says that an option is a number, a text, or true or false.

    Args:
        target: a function or a dataclass, whose types have their limits.
        options: name -> value, those of other types among them, which `target` checks itself.
        what: as in `checked`.

    Raises:
        InputError: such a value; says which kind it should be.
    """
    schema = _plain_model_of(target)
    values = {
        name: str(value) if isinstance(value, PurePath) else value  # the place of a file may be either
        for name, value in options.items()
        if name in schema.model_fields
    }
    checked(schema, plain(values), what, wrong="cannot be read so", part="setting")


@cache
def _plain_model_of(target: Callable[..., Any]) -> type[BaseModel]:
    """Schema of the options of a function or a dataclass that are a number, a text, or true or false."""
    function = target.func if isinstance(target, partial) else target
    limited = get_type_hints(function, include_extras=True)
    kinds: dict[str, Any] = {
        name: (limited[name], None)
        for name, kind in get_type_hints(function).items()
        if name != "return" and {*(get_args(kind) or (kind,))} <= {*_PLAIN_TYPES}
    }
    return create_model(function.__name__, __base__=Closed, **kinds)


_PLAIN_TYPES = (int, float, str, bool, NoneType)


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with Python's own numbers in the place of NumPy's, which no schema and no database takes."""
    import numpy as np  # not where a command only says what there is

    return {name: v.item() if isinstance(v, np.generic) else v for name, v in settings.items()}


@cache
def _model_of(schema: type) -> type[BaseModel]:
    """Schema of the settings of a dataclass; none of them has to be there."""
    hints = get_type_hints(schema, include_extras=True)
    kinds: dict[str, Any] = {f.name: (hints[f.name], None) for f in fields(schema)}
    for f in fields(schema):
        if f.default_factory is not MISSING:
            kinds[f.name] = hints[f.name], Field(default_factory=f.default_factory)
        elif f.default is not MISSING:
            kinds[f.name] = hints[f.name], f.default
    return create_model(schema.__name__, __base__=Closed, **kinds)


adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)
"""The adapter of a schema or a dataclass, made once."""


def said(error: ValidationError | RecursionError, schema: type[BaseModel], part: str = "field") -> str:
    """The first fault of a document in words.

    Args:
        error: that its schema raised.
        schema: whose fields are named where there is no such field.
        part: what fields are called.
    """
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the document"
    message = str(first["msg"]).removeprefix("Value error, ").replace("valid tuple", "valid list")
    message = message[:1].lower() + message[1:]
    if first["type"] == "extra_forbidden":
        names = schema.model_fields if len(first["loc"]) == 1 else {}
        close = [f" (did you mean {name!r}?)" for name in get_close_matches(where, names, 1)]
        known = f"; there are {listed(names, 30, False)}" if names else ""
        return f"there is no {part} {cut(where, 80)}{''.join(close)}{known}"
    if first["type"] == "missing":
        return f"{cut(where, 80)}: {message}"
    if isinstance(first["input"], str) and not first["input"]:
        return f"{cut(where, 80)} is empty"
    return f"{cut(where, 80)} is {cut(first['input'])}: {message}"


MOST_ITEMS = 1 << 31


def _is_listed(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"give a list, such as [{value!r}]")
    return value


def _is_time(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


def _is_plain(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """JSON all the way down, and not deeper than anybody writes it."""
    _check_plain(document, 0)
    return document


def _check_plain(value: Any, depth: int) -> None:
    if depth > 40:
        raise ValueError("it is nested too deeply")
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            _check_plain(part, depth + 1)
    elif isinstance(value, float) and value - value != 0:
        raise ValueError("a number is not finite")
    elif isinstance(value, int) and abs(value) >= 1 << 63:
        raise ValueError("a number has too many digits")
    elif not isinstance(value, str | float | int | None):
        raise ValueError("options are numbers, texts, true / false and lists of them")


Item = Annotated[int, Field(ge=0, lt=MOST_ITEMS)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
TestShare = Annotated[float, Field(gt=0.0, lt=1.0)]
Word = Annotated[str, Field(max_length=1_000)]
Name = Annotated[str, Field(min_length=1, max_length=2_000)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_is_listed), Field(max_length=10_000, strict=False)]
Identity = Annotated[str, Field(max_length=200)]  # a server keeps an index of them, whose rows are short
Long = Annotated[str, Field(max_length=1_000_000)]
Time = Annotated[str, Field(max_length=40), AfterValidator(_is_time)]
Options = Annotated[Mapping[str, Any], AfterValidator(_is_plain)]
Measure = float | None


class Document(BaseModel):
    """A document of which fields that are not named may hold any JSON."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, populate_by_name=True)


class Closed(Document, extra="forbid"):
    """A document that has no other fields."""


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
    model: type[BaseModel] = _model_of(schema) if is_dataclass(schema) else schema
    infos = dict(model.model_fields)
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
