"""Every format of labels in and out, run bundles, saved models."""

from workbench.exchange.answers import format_of
from workbench.exchange.bundles import (
    BundleFolder,
    labelled_items,
    may_be_written,
    read_bundle,
    write_run_bundle,
    write_zip,
    zipped,
)
from workbench.exchange.imports import (
    ImportPlan,
    PredictionPlan,
    import_labels,
    plan_import,
    plan_predictions,
)
from workbench.exchange.labels import FORMATS, export_labels, write_labels
from workbench.exchange.models import SavedModel, load_model, save_model
from workbench.exchange.predictions import predictions_of, read_predictions
from workbench.exchange.projects import (
    is_project_bundle,
    open_bundle,
    wanted_by,
    write_project_bundle,
)
from workbench.exchange.rows import CARRIED_BY, SCOPES, StoredLabels, label_table

__all__ = [
    "CARRIED_BY",
    "FORMATS",
    "SCOPES",
    "BundleFolder",
    "ImportPlan",
    "PredictionPlan",
    "SavedModel",
    "StoredLabels",
    "export_labels",
    "format_of",
    "import_labels",
    "is_project_bundle",
    "label_table",
    "labelled_items",
    "load_model",
    "may_be_written",
    "open_bundle",
    "plan_import",
    "plan_predictions",
    "predictions_of",
    "read_bundle",
    "read_predictions",
    "save_model",
    "wanted_by",
    "write_labels",
    "write_project_bundle",
    "write_run_bundle",
    "write_zip",
    "zipped",
]
