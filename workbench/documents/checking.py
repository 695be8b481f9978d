"""A document is checked by its schema; what is wrong is said in one sentence."""

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TypeVar, get_type_hints

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from workbench.documents.fields import Closed
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
        model: D = _adapter(schema).validate_python(document)
    except (ValidationError, RecursionError) as error:
        raise InputError(f"{what} {wrong}: {_said(error, schema, part)}. {advice}".rstrip()) from error
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


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with Python's own numbers in the place of NumPy's, which no schema and no database takes."""
    return {name: v.item() if isinstance(v, np.generic) else v for name, v in settings.items()}


@cache
def _model_of(schema: type) -> type[BaseModel]:
    """Schema of the settings of a dataclass; none of them has to be there."""
    hints = get_type_hints(schema, include_extras=True)
    kinds: dict[str, Any] = {f.name: (hints[f.name], None) for f in fields(schema)}
    return create_model(schema.__name__, __base__=Closed, **kinds)


@cache
def _adapter(schema: type[BaseModel]) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _said(error: ValidationError | RecursionError, schema: type[BaseModel], part: str) -> str:
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
    return f"{cut(where, 80)} is {cut(first['input'])}: {message}"
