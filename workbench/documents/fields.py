"""Fields of documents: numbers, words and times within their limits; open and closed documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_ITEMS = 1 << 31


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
Names = Annotated[tuple[Name, ...], Field(max_length=10_000, strict=False)]
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
