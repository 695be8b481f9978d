"""Numbers as features: rows of a table of numbers, and pixels of images in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from workbench.arrays import Array, first_not_finite
from workbench.errors import InputError
from workbench.pools.features.saved_map import Finite, Positive, SavedMap


@dataclass(frozen=True)
class IndexedRows:
    """Rows of a sparse file: a column is known by its index, and one that no row names is zero.

    Attributes:
        values: [N, D].
        first: index of the first column, 0 or 1.
    """

    values: Array
    first: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, by their indices."""
        return tuple(f"x{i + self.first}" for i in range(self.values.shape[1]))

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, D)."""
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values if dtype is None else self.values.astype(dtype)

    def aligned(self, names: tuple[str, ...]) -> Array:
        """[N, D] with the columns of a model.

        Raises:
            InputError: a row has a value at an index that the model does not know.
        """
        if not set(names) & set(self.names):
            return self.values  # a model of other names: by position
        place = {name: i for i, name in enumerate(names)}
        out = np.zeros((len(self.values), len(names)))
        for i, name in enumerate(self.names):
            if name in place:
                out[:, place[name]] = self.values[:, i]
            elif self.values[:, i].any():
                row = int(np.flatnonzero(self.values[:, i])[0])
                raise InputError(
                    f"Row {row + 1} has a value at the index {name[1:]}; the model knows "
                    f"{names[0][1:]} to {names[-1][1:]}."
                )
        return out


@dataclass(frozen=True)
class NumberMap(SavedMap):
    """Numeric rows, times one factor.

    Attributes:
        names: of the D columns.
        factor: features = rows * factor (1/16 for the digits' pixels).
    """

    names: tuple[str, ...]
    factor: Finite = 1.0
    kind: ClassVar[str] = "numbers"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        return self.names

    def transform(self, rows: Any) -> Array:
        """Rows to features.

        Args:
            rows: [N, D] numbers, [N, H, W] images with H * W = D, or a DataFrame with the columns
                by name (others are left alone).

        Returns:
            [N, D] float64.

        Raises:
            InputError: a missing column, a wrong width, or a value that is not a finite number.
        """
        if isinstance(rows, IndexedRows):
            rows = rows.aligned(self.names)
        if hasattr(rows, "columns") and hasattr(rows, "to_numpy"):
            from workbench.pools.features.table import NumberColumn, TableFeatureMap

            # texts of a CSV too, with messages that name row and column
            table_map = TableFeatureMap(tuple(NumberColumn(name) for name in self.names))
            return table_map.transform(rows) * self.factor
        try:
            values = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"These rows must be numbers: {error}") from error
        if values.ndim < 2:
            raise InputError(f"Rows must be a table [N, {len(self.names)}]; got shape {list(values.shape)}.")
        values = values.reshape(values.shape[0], -1)
        if values.shape[1] != len(self.names):
            raise InputError(f"These rows have {values.shape[1]} columns; the model knows {len(self.names)}.")
        check_finite(values, self.names)
        return values * self.factor


def check_finite(values: Array, names: tuple[str, ...]) -> None:
    """Refuse NaN and infinities, naming the first.

    Args:
        values: [N, D].
        names: [D] of the columns.

    Raises:
        InputError: with row and column.
    """
    if values.dtype.kind in "iub":
        return
    step = max(1, 4_000_000 // max(1, values.shape[1]))
    for start in range(0, len(values), step):  # a memory map is never held whole
        sound = np.isfinite(values[start : start + step])
        if not sound.all():
            row, column = (int(i[0]) for i in np.nonzero(~sound))
            raise InputError(
                f"Row {start + row + 1}, column {names[column]!r} holds {values[start + row, column]}, "
                'which is not a finite number. Leave such rows out (missing="drop") or fill them in '
                '(missing="impute").'
            )


MAX_IMAGE_FEATURES = 5_000_000
"""Most pixels x colours of one image whose pixels are features."""


@dataclass(frozen=True)
class ImageFeatureMap(SavedMap):
    """Images to pixels in [0, 1].

    Attributes:
        shape: (H, W) for grey or (H, W, 3) for colour.
        white: the value of white in raw images; 255 for 8 bits.
        resized: whether the pool's images were brought to that size; files are brought to it, too.
        mode: "grey" or "colour" that they were brought to; None keeps what each is.
        brightest: value of files of more than eight bits a pixel that is white; None takes each file's own.
    """

    shape: tuple[int, ...]
    white: Positive = 255.0
    resized: bool = False
    mode: Annotated[str, Field(pattern=r"^(grey|colour)$")] | None = None
    brightest: Positive | None = None
    kind: ClassVar[str] = "image"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        if len(self.shape) == 2:
            return tuple(f"pixel_{i}_{j}" for i in range(self.shape[0]) for j in range(self.shape[1]))
        return tuple(
            f"pixel_{i}_{j}_{colour}"
            for i in range(self.shape[0])
            for j in range(self.shape[1])
            for colour in ("red", "green", "blue")
        )

    def transform(self, rows: Any) -> Array:
        """Images to features.

        Args:
            rows: [N, H, W(, 3)] images, or the same laid flat [N, D], in the pool's range of values; or
                images of files (`pools.images.photos.Photos`), brought to size and mode as the pool's.

        Returns:
            [N, D] float32.

        Raises:
            InputError: images of another size or mode.
        """
        if hasattr(rows, "brought"):
            height, width = self.shape[:2]
            shape = (height, width) if self.resized else None
            rows = rows.brought(shape=shape, mode=self.mode, brightest=self.brightest)
        images = np.asarray(rows)
        size = int(np.prod(self.shape))
        if images.ndim < 2 or (images.shape[1:] != self.shape and images.shape[1:] != (size,)):
            raise InputError(
                f"These images are {size_text(images.shape[1:])}; the pool's are {size_text(self.shape)}. "
                "Resize them, or turn them to grey or colour alike."
            )
        if images.dtype.kind not in "fiub":
            raise InputError(f"Images must be numbers; got {images.dtype}.")
        out = np.empty((len(images), size), dtype=np.float32)
        step = max(1, 8_000_000 // size)
        for start in range(0, len(images), step):
            part = images[start : start + step].reshape(-1, size)
            pixels = out[start : start + step]
            np.divide(part, np.float32(self.white), out=pixels, dtype=np.float32, casting="same_kind")
            if part.dtype.kind == "f" and (row := first_not_finite(pixels)) is not None:
                raise InputError(f"Image {start + row + 1} has pixels that are not finite numbers.")
        return out

    def check(self) -> None:
        """Refuse a shape that no image has."""
        size = int(np.prod(self.shape, dtype=object))
        if len(self.shape) not in (2, 3) or not 0 < size <= MAX_IMAGE_FEATURES:
            raise ValueError(f"images of shape {list(self.shape)[:4]}")


def size_text(shape: Sequence[int]) -> str:
    """The shape of one image for people: "28 x 28 grey"."""
    if len(shape) < 2:
        return f"{list(shape)} numbers"
    return f"{shape[0]} x {shape[1]} {'colour' if len(shape) == 3 else 'grey'}"
