"""A project's labels as a table in memory or as a file in its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.exchange.bundles import may_be_written
from workbench.exchange.labels import write_labels
from workbench.exchange.models import save_model_of
from workbench.exchange.projects import write_project_bundle
from workbench.exchange.rows import LabelRows, StoredLabels
from workbench.store.store import files_in_use
from workbench.writing import chosen_file

if TYPE_CHECKING:
    import pandas as pd

    from workbench.sessions.session import Session
    from workbench.store import Store

BUNDLE = "bundle"
MODEL = "model"
PREDICTOR = "predictor"


def label_frame(session: Session | StoredLabels, what: str = "labels") -> pd.DataFrame:
    """The rows of an export as a DataFrame, indexed by item.

    Args:
        session: of the project.
        what: "labels", "everything" or "predictions".

    Raises:
        InputError: as `LabelRows`.
    """
    import pandas as pd

    with session.log.snapshot():
        rows = LabelRows(session, what, typed=True)
    return pd.DataFrame(list(rows), columns=rows.columns).set_index("item")


def export_to(
    session: Session | StoredLabels,
    format: str,
    path: Path,
    what: str = "labels",
    *,
    replace: bool = False,
    store: Store | None = None,
) -> int:
    """Write an export in its place, whole or not at all.

    Args:
        session: of the project; a bundle needs one with its pool.
        format: a key of `FORMATS`, "bundle", "model", or "predictor": the model as a folder that needs NumPy
            alone.
        path: of the file or folder; folders above it are made.
        what: a key of `SCOPES`.
        replace: write over another file that is there; a file of a project's pool is never written.
        store: whose projects' files are kept; the session's unless given.

    Returns:
        How many rows; of a folder, labels.

    Raises:
        InputError: as `write_labels`, `write_predictor` and `chosen_file`; a folder that holds something, or
            cannot be written.
    """
    if format in (BUNDLE, MODEL, PREDICTOR):
        if isinstance(session, StoredLabels):
            raise InputError(f"A {format} is made with the pool, and the pool is not at hand.")
        try:
            _write_folder(session, format, path, replace)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
        model = None if format == BUNDLE else session.model
        return session.state.n_labelled if model is None else model.n_labelled
    store = getattr(session, "store", None) if store is None else store
    with chosen_file(path, protected=() if store is None else files_in_use(store), replace=replace) as file:
        return write_labels(file, session, format, what)


def _write_folder(session: Session, format: str, path: Path, replace: bool) -> None:
    if format == MODEL:
        save_model_of(session, path, replace=replace)
    elif format == PREDICTOR:
        from workbench.exchange.predictor import predictor_of, write_predictor

        write_predictor(path, predictor_of(session))
    elif may_be_written(path):
        write_project_bundle(path, session)
    else:
        raise InputError(f"{path} is there already; choose another folder.")
