"""Feature maps as JSON documents: the fields of a map, checked by their types when it is rebuilt."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter

from workbench.arrays import Floats, pack, unpack

Packed = Annotated[Floats, PlainValidator(unpack), PlainSerializer(pack)]
"""An array; in documents base64 of little-endian float32."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
Sign = Annotated[str, Field(pattern=r"^[.,]?$")]
"""The decimal sign of numbers written as text, "" for none."""
_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)


class SavedMap:
    """A dataclass that is saved as a JSON document: a feature map, or an entry of one.

    Attributes:
        kind: what its documents are called.
    """

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON document."""
        return {"kind": self.kind, **_adapter(type(self)).dump_python(self, mode="json")}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Rebuild from `to_json`.

        Raises:
            ValueError: fields of other types, or that do not fit each other.
        """
        saved: Self = _adapter(cls).validate_python(document)
        saved.check()
        return saved

    def check(self) -> None:
        """Refuse fields that do not fit each other; those that are maps look at their own."""
        for value in vars(self).values():
            if isinstance(value, SavedMap):
                value.check()
