"""Options of how a table is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from workbench.documents.checking import check_plain_options
from workbench.errors import InputError
from workbench.pools.features.vectors import IMAGE_FEATURES, PREFIX, is_vectors
from workbench.pools.formats.files import MAX_BYTES, check_choice
from workbench.pools.tables.uses import ColumnUse, uses_of
from workbench.reading import cut

MAX_TABLE_CELLS = 15_000_000
"""Most cells of a table: each takes about fifty bytes on its way to a feature."""
MAX_TABLE_COLUMNS = 10_000

_TRANSLATED = ("others", "empty", "texts", "numbered")
SHORT = ("target", "id_column", "text_column", "exclude", "missing", "text")
"""Options that say in few words what `columns` says of each column."""
READING = ("encoding", "delimiter", "quote", "header", "decimal", "ragged", "lines", "sheet")
"""Options of how a file is read, which hold for other files of a pool's rows as well."""
_TEXTS = {"one-hot": "category", "drop": "leave out"}
_CHOICES = {
    "ragged": ("error", "drop"),
    "missing": (None, "drop", "impute"),
    "text": (None, *_TEXTS),
    "duplicate_ids": ("error", "first"),
    "missing_files": ("error", "drop"),
    "corrupt": ("drop", "error"),
    "fetch": (False, True),
    "lines": (None, True, False),
    "decimal": (None, ".", ","),
    "header": (None, True, False, 2, 3, 4),
    "quote": (None, '"', "none", "backslash"),
}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of how a table is read.

    Attributes:
        name: of the pool; None takes the file's.
        columns: what columns are used for, by their names (`workbench.pools.tables.uses`); the others are
            guessed. Short forms: `target` and `text_column` name the column of the classes, and of the texts
            that alone are learnt from; `id_column` that of the ids (None numbers the rows), `exclude` those
            that are left out.
        others: "leave out" where columns that nobody named are left out, else "".
        empty: what empty cells become in columns that nobody named: "drop" leaves the row out, "usual" fills
            them in (`missing="impute"`); "" does too, and asks.
        texts: the use of columns of texts that nobody named (`text="one-hot"` or `"drop"`); "" guesses it.
        numbered: whether rows are numbered, and no column is guessed to hold their ids.
        strict: whether a table is refused where something was guessed that could be otherwise.
        features: None for the columns (or the texts) themselves; "embeddings:FILE[#column]" for vectors of
            one's own (see `workbench.pools.named_features`).
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
        duplicate_ids: ids met twice: "error" or keep the "first" of them.
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
    columns: Mapping[str, ColumnUse] = field(default_factory=dict)
    others: str = ""
    empty: str = ""
    texts: str = ""
    numbered: bool = False
    strict: bool = False
    features: str | None = None
    classes: tuple[str, ...] | None = None
    unlabelled: tuple[str, ...] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool | int | None = None
    decimal: str | None = None
    ragged: str = "error"
    duplicate_ids: str = "error"
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
    def reading(self) -> dict[str, Any]:
        """Those of `READING` that were said."""
        usual = TableOptions()
        settings = {name: getattr(self, name) for name in READING}
        return {name: value for name, value in settings.items() if value != getattr(usual, name)}

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
        known_names = [entry.name for entry in fields(cls) if entry.name not in _TRANSLATED] + [*SHORT]
        for name, value in options.items():
            if name not in known_names:
                raise InputError(f"Tables have no option {name!r}. They have: {', '.join(known_names)}.")
            check_choice(name, value, _CHOICES.get(name, (value,)))
        check_plain_options(cls, options, "The table")
        settings = {name: value for name, value in options.items() if name not in SHORT}
        features = settings.get("features")
        if features is not None and not is_vectors(features) and features not in IMAGE_FEATURES:
            raise InputError(
                f"features={cut(features)} is for images; a table takes its columns, or '{PREFIX}FILE' with "
                "vectors of your own."
            )
        for name in ("classes", "unlabelled"):
            if settings.get(name) is not None:
                names = settings[name]
                settings[name] = (names,) if isinstance(names, str) else tuple(map(str, names))
        out, ids = options.get("exclude") or (), options.get("id_column", "auto")
        short = {str(name): "leave out" for name in ((out,) if isinstance(out, str) else out)}
        roles = {"text": options.get("text_column"), "class": options.get("target")}
        roles["id"] = None if ids == "auto" else ids
        short |= {str(name): use for use, name in roles.items() if name is not None}
        # what is said column by column goes before the short forms, so that a way out leads on
        uses = {name: ColumnUse.of(name, use) for name, use in short.items()}
        uses |= {n: u for n, u in uses_of(settings.get("columns")).items() if n not in uses or not u.guessed}
        return cls(
            **{
                **settings,
                "columns": uses,
                "others": "leave out" if options.get("text_column") is not None else "",
                "empty": {"impute": "usual"}.get(str(options.get("missing")), options.get("missing") or ""),
                "texts": _TEXTS.get(str(options.get("text")), ""),
                "numbered": ids is None,
            }
        )
