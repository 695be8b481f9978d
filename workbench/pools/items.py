"""Items as they are shown: rows of a table, images, texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.pools.pool import Shown


class RowNumbers(Sequence[str]):
    """Ids "0", "1", ... of items whose source gave none, without holding them.

    Args:
        n: how many.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [str(i) for i in range(*index.indices(self.n))]
        if not -self.n <= index < self.n:
            raise IndexError(index)
        return str(int(index) % self.n)


class IdsAt(Sequence[str]):
    """Ids of some items, looked up when asked for: messages want one of many thousands.

    Args:
        ids: of all items.
        rows: [m] items.
    """

    def __init__(self, ids: Sequence[str], rows: Ints) -> None:
        self._ids, self._rows = ids, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._ids[int(row)] for row in self._rows[place]]
        return self._ids[int(self._rows[place])]


def plain(value: Any) -> Any:
    """A cell as a plain Python value: NumPy scalars unwrapped, blanks as None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and np.isnan(value)) or str(value) in ("<NA>", "NaT"):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


@dataclass(frozen=True)
class RowItems:
    """Rows of a table.

    Attributes:
        ids: [N] ids.
        cells: column name -> [N] values, in the order people should see them.
    """

    ids: Sequence[str]
    cells: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.ids)

    def show(self, index: int) -> Shown:
        """Row `index` as column name -> plain value."""
        return Shown("table", row={name: plain(column[index]) for name, column in self.cells.items()})


@dataclass(frozen=True)
class ArrayItems:
    """Rows of a numeric array, without a copy of it.

    Attributes:
        ids: [N] ids.
        values: [N, D].
        names: [D] of the columns.
    """

    ids: Sequence[str]
    values: Array
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def show(self, index: int) -> Shown:
        """Row `index` as column name -> number."""
        row = [plain(value) for value in np.asarray(self.values[index])]
        return Shown("table", row=dict(zip(self.names, row, strict=True)))


@dataclass(frozen=True)
class ImageItems:
    """Images held as an array.

    Attributes:
        ids: [N] ids.
        images: [N, H, W] or [N, H, W, 3]; uint8, or numbers from 0 to `white`.
        white: the value shown as white.
    """

    ids: Sequence[str]
    images: Array
    white: float = 255.0

    def __len__(self) -> int:
        return len(self.ids)

    def show(self, index: int) -> Shown:
        """Image `index`, uint8."""
        image = np.asarray(self.images[index])
        if image.dtype != np.uint8 or self.white != 255.0:
            image = np.clip(np.rint(image * (255.0 / self.white)), 0, 255).astype(np.uint8)
        return Shown("image", image=image)


@dataclass(frozen=True)
class TextItems:
    """Texts.

    Attributes:
        ids: [N] ids.
        texts: [N].
        cells: column name -> [N] values, of a table that has more than the text.
        beside: those of the columns that are shown with it.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    cells: Mapping[str, Any] | None = None
    beside: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def show(self, index: int) -> Shown:
        """Text `index`, with what stands beside it."""
        row = {name: plain((self.cells or {})[name][index]) for name in self.beside} or None
        return Shown("text", text=str(self.texts[index]), row=row)
