"""How a table is to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from workbench.errors import InputError
from workbench.pools.features.vectors import PREFIX, is_vectors
from workbench.pools.formats.files import MAX_BYTES
from workbench.pools.tables.uses import ColumnUse, uses_of
from workbench.reading import cut

MAX_TABLE_CELLS = 15_000_000
"""Most cells of a table: each takes about fifty bytes on its way to a feature."""
MAX_TABLE_COLUMNS = 10_000

_PICTURE_FEATURES = ("shapes", "pixels")
_INSTEAD = ("text_column", "exclude", "missing", "numeric_text", "text", "constant")
_CHOICES = {
    "ragged": ("error", "drop"),
    "missing": ("error", "drop", "impute"),
    "numeric_text": ("error", "missing", "text"),
    "text": ("error", "one-hot", "drop"),
    "constant": ("keep", "drop"),
    "duplicate_ids": ("error", "first"),
    "missing_files": ("error", "drop"),
    "corrupt": ("drop", "error"),
    "fetch": (False, True),
    "lines": (None, True, False),
    "text_features": ("topics", "pieces"),
    "decimal": (None, ".", ","),
    "header": (None, True, False, 2, 3, 4),
    "quote": (None, '"', "none", "backslash"),
}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is to be read; every default refuses rather than guesses.

    Attributes:
        name: of the pool; None takes the file's.
        target: column of the classes; None when people are to label. Empty cells there are unlabelled items.
        id_column: column of the items' ids; "auto" takes a column called id, uuid, ... when there is
            one; None numbers the rows.
        text_column: column of texts that are the items themselves; makes a pool of texts, and leaves every
            other column out.
        text_features: of such a pool: "topics" of its words, or "pieces", words beside pieces of words,
            which need fewer labels and serve texts without spaces (Chinese, Japanese, Thai) too.
        features: None for the columns (or the texts) themselves; "embeddings:FILE[#column]" for vectors of
            one's own (see `workbench.pools.vectors`).
        exclude: columns to leave out of the features (they are still shown).
        classes: names of the classes, in order; None takes those found in the target, sorted.
        unlabelled: names in the target that mean "no class"; None takes them as classes, and asks about NA,
            None, -, ? and the like.
        encoding: of a CSV that is not UTF-8.
        delimiter: of a CSV; None finds it, "none" takes each line as one cell.
        quote: of a CSV: '"' encloses cells, "none" is part of the texts, "backslash" stands before quotes
            inside a cell; None finds out.
        header: whether a CSV's first line (below a title) holds names, or of how many lines its head is with
            those that explain the names; None finds out, and asks where the first line reads like an item.
        decimal: "." or "," in numbers of a table of texts, with the other one between thousands; None takes
            points, and asks about columns that look otherwise.
        ragged: lines with too many or too few cells: "error" or "drop".
        missing: empty or infinite cells: "error", "drop" the row, or "impute" the column's median
            (for texts a category of its own).
        numeric_text: cells that are no number in a column of numbers: "error", take them as
            "missing", or take the whole column as "text".
        text: columns of texts: "error", "one-hot" or "drop".
        constant: columns with one value: "keep" or "drop".
        duplicate_ids: ids met twice: "error" or keep the "first" of them.
        columns: what each column is used for, in place of target, id_column, text_column, exclude, missing,
            numeric_text, text and constant: "auto", or a mapping of names to uses
            (`workbench.pools.tables.uses`); columns it does not name are guessed. None leaves it to the
            others.
        folder: of the files that a column of pictures names, or a zip; None looks beside the table.
        missing_files: pictures that are not there: "error", or "drop" the row.
        corrupt: pictures that cannot be decoded: "drop" leaves out the row, "error" refuses the table.
        fetch: whether pictures at web addresses may be fetched.
        lines: of a .txt: whether each line is an item; None looks.
        sheet: of a workbook; None takes the first that holds something.
        split: of a Hugging Face folder; None takes all.
        max_categories: most categories of a column for one-hot.
        max_classes: most classes of a target.
        max_bytes: most bytes read.
        max_cells: most rows x columns.
        max_columns: most columns.
    """

    name: str | None = None
    target: str | None = None
    id_column: str | None = "auto"
    text_column: str | None = None
    text_features: str = "topics"
    features: str | None = None
    exclude: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None
    unlabelled: tuple[str, ...] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool | int | None = None
    decimal: str | None = None
    ragged: str = "error"
    missing: str = "error"
    numeric_text: str = "error"
    text: str = "error"
    constant: str = "keep"
    duplicate_ids: str = "error"
    columns: Mapping[str, ColumnUse] | None = None
    folder: str | None = None
    missing_files: str = "error"
    corrupt: str = "drop"
    fetch: bool = False
    lines: bool | None = None
    sheet: str | None = None
    split: str | None = None
    max_categories: int = 100
    max_classes: int = 1000
    max_bytes: int = MAX_BYTES
    max_cells: int = MAX_TABLE_CELLS
    max_columns: int = MAX_TABLE_COLUMNS

    @property
    def says_columns(self) -> bool:
        """Whether anything but `columns` says what columns are used for."""
        return any(getattr(self, name) not in (None, "", (), "error", "keep") for name in _INSTEAD)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TableOptions:
        """Check option names and values.

        Args:
            options: keyword arguments as a person gave them.

        Returns:
            The options.

        Raises:
            InputError: an unknown option or value; says what there is.
        """
        known = [entry.name for entry in fields(cls)]
        for name, value in options.items():
            if name not in known:
                raise InputError(f"Tables have no option {name!r}. They have: {', '.join(known)}.")
            allowed = _CHOICES.get(name)
            if allowed is not None and value not in allowed:
                raise InputError(f"{name}={cut(value)} is not one of {', '.join(map(repr, allowed))}.")
        features = options.get("features")
        pictures = features in _PICTURE_FEATURES and options.get("columns") is not None
        if features is not None and not is_vectors(features) and not pictures:
            raise InputError(
                f"features={cut(features)} is for images; a table takes its columns, or '{PREFIX}FILE' with "
                "vectors of your own."
            )
        given = dict(options)
        for name in ("exclude", "unlabelled"):
            if isinstance(given.get(name), str):
                given[name] = (given[name],)
        for name in ("exclude", "classes", "unlabelled"):
            if given.get(name) is not None:
                given[name] = tuple(map(str, given[name]))
        if given.get("columns") is not None:
            instead = [name for name in _INSTEAD if options.get(name)]
            if instead:
                raise InputError(
                    f"columns= says what every column is used for; leave out {instead[0]}=, or say it there."
                )
            given["columns"] = uses_of(given["columns"])
            if given.get("target") is not None:
                given["columns"][str(given.pop("target"))] = ColumnUse("class")
            given.setdefault("text_features", "pieces")
        return cls(**given)
