"""A document is checked by its schema; what is wrong is said in one sentence."""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from workbench.errors import InputError
from workbench.reading import cut

D = TypeVar("D", bound=BaseModel)


def checked(schema: type[D], document: Any, what: str, advice: str = "", wrong: str = "is damaged") -> D:
    """A document as its schema has it.

    Args:
        schema: one of this package.
        document: JSON, as parsed.
        what: for messages ("The bundle in runs/a: project.json").
        advice: what to do, a sentence.
        wrong: what is said of one of another shape.

    Returns:
        The same, typed; `document` itself stays what is stored.

    Raises:
        InputError: another shape; says which field, and what stands there.
    """
    try:
        model: D = _adapter(schema).validate_python(document)
    except (ValidationError, RecursionError) as error:
        raise InputError(f"{what} {wrong}: {_said(error)}. {advice}".rstrip()) from error
    return model


@cache
def _adapter(schema: type[BaseModel]) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _said(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the document"
    message = str(first["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if first["type"] in ("missing", "extra_forbidden"):
        return f"{cut(where, 80)}: {message}"
    return f"{cut(where, 80)} is {cut(first['input'])}: {message}"
