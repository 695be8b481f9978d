"""Feature maps as JSON documents: the fields of a map, checked by their types when it is rebuilt."""

from dataclasses import fields
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, PlainSerializer, PlainValidator, ValidationError

from workbench.arrays import Floats, pack, unpack
from workbench.documents.checking import adapter, said
from workbench.reading import cut

Packed = Annotated[Floats, PlainValidator(unpack), PlainSerializer(pack)]
"""An array; in documents base64 of little-endian float32."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
Sign = Annotated[str, Field(pattern=r"^[.,]?$")]
"""The decimal sign of numbers written as text, "" for none."""


class SavedMap:
    """A dataclass that is saved as a JSON document: a feature map, or an entry of one.

    Attributes:
        kind: what its documents are called.
    """

    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON document."""
        return {"kind": self.kind, **adapter(type(self)).dump_python(self, mode="json")}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Rebuild from `to_json`.

        Raises:
            ValueError: a field of another type, that is not there or not known, or fields that do not fit
                each other.
        """
        try:
            saved: Self = adapter(cls).validate_python(document)
        except ValidationError as error:
            raise ValueError(said(error, BaseModel)) from error
        saved._compare(document)
        saved.check()
        return saved

    def _compare(self, document: dict[str, Any]) -> None:
        """Refuse a document with other fields: a default would give other features without a word."""
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        for name in sorted(names ^ (document.keys() - {"kind"})):
            of_a_later_one = f"it has the field {cut(name)}, which this version does not know"
            raise ValueError(f"it lacks {cut(name)}" if name in names else of_a_later_one)
        for name, value in vars(self).items():
            if isinstance(value, SavedMap):
                value._compare(document[name])

    def check(self) -> None:
        """Refuse fields that do not fit each other; those that are maps look at their own."""
        for value in vars(self).values():
            if isinstance(value, SavedMap):
                value.check()
