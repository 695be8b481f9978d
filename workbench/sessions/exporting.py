"""Outputs of a session in Python: tables, files, a model; and its look in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.pools.pool import Shown
from workbench.registry import Entry
from workbench.sessions.asking import Ask
from workbench.sessions.notebooks import session_html, session_words
from workbench.sessions.opened import Opened

if TYPE_CHECKING:
    import pandas as pd

# Formats stand a floor higher and are found by name, as a classifier or a policy is.
_TABLE = Entry("table", "workbench.exchange.exporting:label_frame", "Labels as a table")
_FILE = Entry("file", "workbench.exchange.exporting:export_to", "Labels as a file")
_MODEL = Entry("model", "workbench.exchange.models:save_model_of", "The model as a folder")
_SHOWN = ("label", "status", "person", "time")


class Exporting(Opened):
    """Labels as a table or a file, the model as a folder, one item to look at."""

    @property
    def labels(self) -> pd.DataFrame:
        """The labelled items: id, their own columns, label, status, person and time; indexed by item."""
        table = self.to_pandas(what="labels")
        columns = list(table.columns[: table.columns.get_loc("label")])
        return table[columns + list(_SHOWN)]

    def to_pandas(self, *, predictions: bool = False, what: str = "everything") -> pd.DataFrame:
        """Every item with what is known of it, one row each, indexed by item.

        Args:
            predictions: items without a label have the model's, with status "predicted".
            what: "everything", or "labels" for the labelled items alone.

        Returns:
            The columns of an export (docs/label-your-data.md); "confidence" and "probabilities_now" are the
            present model's.

        Raises:
            InputError: predictions where there is no model yet.
        """
        table: pd.DataFrame = _TABLE.load()(self, "predictions" if predictions else what)
        return table

    def export(self, format: str, path: str | Path, what: str = "labels", *, replace: bool = False) -> int:
        """Write the labels as a file, or the project as a bundle.

        Args:
            format: "csv", "parquet", "jsonl", "npz", "label-studio", "huggingface", "folders", "coco",
                "bundle", a folder with the project's whole history, or "predictor", the model as a folder
                that needs NumPy alone.
            path: of the file or folder; folders above it are made.
            what: "labels", "everything", "predictions" or "history".
            replace: write over another file that is there; a file of a project's pool is never written.

        Returns:
            How many rows were written; of a bundle or a predictor, labels.

        Raises:
            InputError: no such format, one that cannot hold this pool, or a place that cannot be written or
                where something is.
        """
        return int(_FILE.load()(self, format, Path(path), what, replace=replace))

    def save_model(self, folder: str | Path, *, replace: bool = False) -> Path:
        """Write the present model as a folder that `load_model` reads.

        Args:
            folder: new or empty, unless `replace`.
            replace: write over a model that is there; a file of a project's pool is never written.

        Raises:
            InputError: there is no model yet, or something is there.
        """
        place = Path(folder)
        _MODEL.load()(self, place, replace=replace)
        return place

    def show(self, item: int | Ask) -> Shown:
        """Item as a person sees it, or that of a question.

        Raises:
            InputError: there is no such item.
        """
        return self.pool.items.show(self._answers.checked(item.item if isinstance(item, Ask) else item))

    def __repr__(self) -> str:
        return f"<{session_words(self)}>"

    def _repr_html_(self) -> str:
        return session_html(self)
