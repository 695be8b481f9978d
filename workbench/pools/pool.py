"""Pool to be labelled: its items as they are shown, and its test split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.notebooks import item_html, item_words, pool_html, pool_words
from workbench.reading import valid_text

Kind = Literal["table", "image", "text"]


@dataclass(frozen=True, eq=False)
class Held:
    """The file that a pool of objects was made of; opening it with `options` gives the same pool.

    Attributes:
        stem: what it is called, without an ending.
        ending: of its format.
        data: its bytes.
        options: of `load_pool`, but for the uses of columns that nobody said.
    """

    stem: str
    ending: str
    data: bytes
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """Look of one item to a person.

    Attributes:
        kind: what to draw.
        row: column name -> value, for tables.
        image: [H, W] or [H, W, 3] uint8, for images.
        text: the text itself, for texts.
    """

    kind: Kind
    row: Mapping[str, Any] | None = None
    image: Array | None = None
    text: str | None = None

    def __repr__(self) -> str:
        return item_words(self)

    def _repr_html_(self) -> str:
        return item_html(self)


@runtime_checkable
class Items(Protocol):
    """Shows item i; knows the source's ids."""

    @property
    def ids(self) -> Sequence[str]:
        """[N] ids as the source gave them (row numbers where it gave none)."""

    def __len__(self) -> int: ...

    def show(self, index: int) -> Shown:
        """Item `index` as a person sees it."""


@runtime_checkable
class FeatureMap(Protocol):
    """Turns raw rows into features; replayable on new rows; saved with every project and model."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""

    def transform(self, rows: Any) -> Array:
        """Raw rows (a DataFrame or [N, D] array) to features [N, D].

        Raises:
            InputError: rows that lack a column or hold what the map cannot read.
        """

    def to_json(self) -> dict[str, Any]:
        """A JSON document from which `workbench.pools.feature_map_from_json` rebuilds the map."""


@dataclass(frozen=True)
class TestSplit:
    """Items that are kept for measuring; a function of (pool, seed) alone, never of the policy.

    Attributes:
        seed: the seed it was drawn with.
        fraction: share of items in the test part.
        train: [n] indices that may be asked about, ascending.
        test: [N - n] indices that are only ever measured on, ascending.
        given: whether the source itself says which items are for testing; such a split stays.
    """

    __test__ = False  # keeps pytest from collecting a class called Test*

    seed: int
    fraction: float
    train: Ints
    test: Ints
    given: bool = False


@dataclass(frozen=True, eq=False)
class Pool:
    """A pool of items to label.

    Attributes:
        name: shown to people and written to bundles.
        kind: "table", "image" or "text".
        features: [N, D] finite; an array, a memory map or a Parquet-backed view.
        classes: what the source said, in a fixed order; a project's classes are a fold of its events.
        truth: [N] int codes into `classes`, -1 unknown, or None. Only oracles and metrics may look.
        items: how to show item i.
        feature_map: from raw rows to `features`.
        fingerprints: [N] uint64, one per item.
        test: the test split, or None when every item may be asked about.
        title: one line for people.
        description: a sentence or two for people.
        plane: True when features are two coordinates worth drawing as they are.
        common_scale: True when all features share one unit (pixels): one scale for all of them.
        notes: what was done to the source on the way (rows left out, cells filled in), for people.
        uses: what each column of a table is used for, as the option `columns` takes it; None of others.
        reading: how the file of a table was read (`workbench.pools.tables.options.READING`).
        held: the file that a project keeps, of a pool made of what Python held; None of files and names.
        grouping: finds the copies among the items; None where every item stands for itself.
    """

    name: str
    kind: Kind
    features: Array
    classes: tuple[str, ...]
    truth: Ints | None
    items: Items
    feature_map: FeatureMap
    fingerprints: Array
    test: TestSplit | None = None
    title: str = ""
    description: str = ""
    plane: bool = False
    common_scale: bool = False
    notes: tuple[str, ...] = ()
    uses: Mapping[str, Mapping[str, str]] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    held: Held | None = None
    grouping: Callable[[Pool], Ints] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(valid_text(name) for name in self.classes))

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def __repr__(self) -> str:
        return f"<{pool_words(self)}>"

    def _repr_html_(self) -> str:
        return pool_html(self)

    @property
    def n_features(self) -> int:
        """D, the number of features."""
        return int(self.features.shape[1])

    @property
    def trainable(self) -> Ints:
        """[n] indices that may be asked about: all of them, or the split's training part."""
        return np.arange(len(self)) if self.test is None else self.test.train

    @cached_property
    def image_shape(self) -> tuple[int, ...] | None:
        """(H, W) or (H, W, 3) when the features are the pixels of images of one size, else None."""
        if self.kind != "image" or len(self) == 0 or not getattr(self.feature_map, "shows_pixels", True):
            return None  # shapes, or a network's features
        image = self.items.show(0).image
        if image is None or image.size != self.n_features:
            return None
        return tuple(int(size) for size in image.shape)

    @property
    def id_column(self) -> str:
        """The column of a table that holds the items' ids; "" where they have none of their own."""
        return self._column_used_as("id")

    @property
    def text_column(self) -> str:
        """The column of a table that holds the items' texts; "text" where no table says one."""
        return self._column_used_as("text") or "text"

    def _column_used_as(self, use: str) -> str:
        return next((name for name, settings in (self.uses or {}).items() if settings["use"] == use), "")

    @property
    def has_truth(self) -> bool:
        """True if any item's class is known to the source."""
        return self.truth is not None and bool((self.truth >= 0).any())

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits over the items' fingerprints, the feature names, the classes and the truth."""
        digest = sha256(np.ascontiguousarray(self.fingerprints).tobytes())
        digest.update("\x1f".join(self.feature_map.columns).encode())
        digest.update("\x1e".join(self.classes).encode())
        if self.truth is not None:  # an oracle that answers otherwise is another pool
            digest.update(np.ascontiguousarray(self.truth, dtype="<i8").tobytes())
        return digest.hexdigest()[:32]

    @cached_property
    def groups(self) -> Ints:
        """[N] the lowest item of each one's group of copies, itself where it has none."""
        return np.arange(len(self)) if self.grouping is None else self.grouping(self)

    def with_features(
        self, feature_map: FeatureMap, features: Array, note: str, fingerprints: Array | None = None
    ) -> Pool:
        """The same items with other features, which share one scale.

        Args:
            feature_map: that made them.
            features: [N, D].
            note: on them, for people.
            fingerprints: [N] that tell the features too; None keeps those of the items.
        """
        return replace(
            self,
            features=features,
            feature_map=feature_map,
            fingerprints=self.fingerprints if fingerprints is None else fingerprints,
            plane=False,
            common_scale=True,
            notes=(*self.notes, note),
        )

    def split(self, seed: int, fraction: float = 0.2) -> Pool:
        """The same pool with a stratified test split.

        Args:
            seed: of the split; the same (pool, seed, fraction) gives the same split.
            fraction: share of items in the test part, in (0, 1).

        Returns:
            A pool whose `test` is set; copies stay together. Classes with a single member stay in
            training; items whose class is not known are never measured on where others' are; without truth
            the split is uniform. A split given by the source is kept as it is.

        Raises:
            InputError: no seed, a fraction outside (0, 1), or too few items to split.
        """
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"The seed of a split is a whole number from 0; got {seed!r}.")
        if not 0.0 < fraction < 1.0:
            raise InputError(f"The test fraction must lie between 0 and 1; got {fraction}.")
        if self.test is not None and self.test.given:
            return self
        n = len(self)
        if n < 2:
            raise InputError(f"Pool {self.name!r} has {n} item(s); a test split needs at least 2.")
        rng = np.random.default_rng([seed, 0x7E57])
        codes = np.asarray(self.truth) if self.truth is not None and self.has_truth else np.zeros(n, np.int64)
        candidates = np.flatnonzero(codes >= 0)
        test: list[Ints] = []
        for code in np.unique(codes[candidates]):
            members = rng.permutation(np.flatnonzero(codes == code))
            # at least one member of every class stays where it can be asked about
            take = min(round(fraction * len(members)), len(members) - 1)
            test.append(members[:take])
        selection = np.sort(np.concatenate(test))
        if selection.size == 0:
            selection = np.sort(rng.permutation(candidates)[: max(1, round(fraction * len(candidates)))])
        mask = np.ones(n, dtype=bool)
        mask[selection] = False
        # a group goes where its first item was drawn, which keeps the share of groups
        first, trained_codes = self.groups, codes[mask]
        mask = mask[first]
        for code in np.setdiff1d(trained_codes, codes[mask]):
            mask |= np.isin(first, first[codes == code])
        return replace(self, test=TestSplit(seed, fraction, np.flatnonzero(mask), np.flatnonzero(~mask)))


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
class ItemsWithIds:
    """Items that are known by their ids, as those of every kind are.

    Attributes:
        ids: [N] ids.
    """

    ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class RowItems(ItemsWithIds):
    """Rows of a table.

    Attributes:
        cells: column name -> [N] values, in the order people should see them.
    """

    cells: Mapping[str, Any]

    def show(self, index: int) -> Shown:
        """Row `index` as column name -> plain value."""
        return Shown("table", row={name: plain(column[index]) for name, column in self.cells.items()})


@dataclass(frozen=True)
class ArrayItems(ItemsWithIds):
    """Rows of a numeric array, without a copy of it.

    Attributes:
        values: [N, D].
        names: [D] of the columns.
    """

    values: Array
    names: tuple[str, ...]

    def show(self, index: int) -> Shown:
        """Row `index` as column name -> number."""
        row = [plain(value) for value in np.asarray(self.values[index])]
        return Shown("table", row=dict(zip(self.names, row, strict=True)))


@dataclass(frozen=True)
class ImageItems(ItemsWithIds):
    """Images held as an array.

    Attributes:
        images: [N, H, W] or [N, H, W, 3]; uint8, or numbers from 0 to `white`.
        white: the value shown as white.
    """

    images: Array
    white: float = 255.0

    def show(self, index: int) -> Shown:
        """Image `index`, uint8."""
        image = np.asarray(self.images[index])
        if image.dtype != np.uint8 or self.white != 255.0:
            image = np.clip(np.rint(image * (255.0 / self.white)), 0, 255).astype(np.uint8)
        return Shown("image", image=image)


@dataclass(frozen=True)
class TextItems(ItemsWithIds):
    """Texts.

    Attributes:
        texts: [N].
        cells: column name -> [N] values, of a table that has more than the text.
        beside: those of the columns that are shown with it.
    """

    texts: Sequence[str]
    cells: Mapping[str, Any] | None = None
    beside: tuple[str, ...] = ()

    def show(self, index: int) -> Shown:
        """Text `index`, with what stands beside it."""
        row = {name: plain((self.cells or {})[name][index]) for name in self.beside} or None
        return Shown("text", text=str(self.texts[index]), row=row)
