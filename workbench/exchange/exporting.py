"""A project's labels as a table in memory or as a file in its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.exchange.bundles import may_be_written
from workbench.exchange.labels import write_labels
from workbench.exchange.projects import write_project_bundle
from workbench.exchange.rows import LabelRows, StoredLabels
from workbench.writing import whole_file

if TYPE_CHECKING:
    import pandas as pd

    from workbench.sessions.session import Session

BUNDLE = "bundle"
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

    rows = LabelRows(session, what, typed=True)
    return pd.DataFrame(list(rows), columns=rows.columns).set_index("item")


def export_to(session: Session | StoredLabels, format: str, path: Path, what: str = "labels") -> int:
    """Write an export in its place, whole or not at all.

    Args:
        session: of the project; a bundle needs one with its pool.
        format: a key of `FORMATS`, "bundle", or "predictor": the model as a folder that needs NumPy alone.
        path: of the file or folder; folders above it are made.
        what: a key of `SCOPES`.

    Returns:
        How many rows; of a bundle or a predictor, labels.

    Raises:
        InputError: as `write_labels` and `write_predictor`; a place that cannot be written; a
            folder where something is already.
    """
    if format == BUNDLE:
        if not may_be_written(path):
            raise InputError(f"{path} is there already; choose another folder.")
        if isinstance(session, StoredLabels):
            raise InputError("A bundle holds the pool, and the pool is not at hand.")
        write_project_bundle(path, session)
        return session.state.n_labelled
    if format == PREDICTOR:
        if isinstance(session, StoredLabels):
            raise InputError("A predictor needs the pool's features, and the pool is not at hand.")
        from workbench.exchange.predictor import write_predictor_of

        write_predictor_of(session, path)
        return session.model.n_labelled if session.model is not None else 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            return write_labels(file, session, format, what)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
