"""Our own exports, opened again as tables: what they say about the labels is no property of the items."""

from typing import Any

import numpy as np

from workbench.pools.cells import read_texts
from workbench.pools.tables.uses import ColumnUse

COLUMNS = (
    *("label", "status", "person", "source", "round", "policy", "utility"),
    *("probabilities_when_asked", "probabilities_now", "confidence", "model", "seconds"),
    *("time", "changed_from", "note", "flag", "label_by_person", "consensus"),
    *("consensus_certainty", "model_labels", "guess", "guess_source", "guess_shown"),
    *("certificate", "instructions", "instructions_read", "copy_of", "set", "item"),
)
"""What an export says of each item, after its id and its own columns."""
TAKEN = "source_"
"""Before the names of an item's own columns that are called like one of ours."""
LABEL_STUDIO = ("annotation_id", "annotator", "created_at", "updated_at", "lead_time")
"""Columns of Label Studio's CSV and JSON-MIN about each annotation; the first is nobody else's."""
_NOBODYS = ("predicted", "certified", "undecided")
_SIGN = frozenset(("id", "label", "status", "person", "source", "set", "item", "model_labels"))


def is_exported(names: list[str]) -> bool:
    """True if a table with these columns is an export of ours."""
    return set(names) >= _SIGN


def is_label(status: Any) -> bool:
    """True if the label of a row of this status is people's: no model's, and none of several that tie."""
    return str(status) not in _NOBODYS


def is_of_ours(names: list[str]) -> bool:
    """True if a CSV with these columns, in this order, is one that we wrote and that is read again.

    An export of labels or of the answers to all questions, predictions, or the labels beside a certificate:
    in these a quote before a text that a spreadsheet would run is no part of the text.
    """
    return (
        is_exported(names)
        or (len(names) > 2 and (names[0], names[-1]) == ("id", "item"))
        or names[:3] == ["row", "prediction", "confidence"]
        or names == ["id", "label", "source"]
    )


def without_provenance(frame: Any, keep: set[str]) -> tuple[Any, dict[str, ColumnUse]]:
    """An export as the table of its items: ids, their own columns, and the labels that people gave.

    Args:
        frame: pandas DataFrame of an export.
        keep: columns that somebody named, which stay.

    Returns:
        The table, and the uses of its columns that are known.
    """
    lost_columns = [name for name in (*COLUMNS, f"{TAKEN}id") if name in frame and name not in keep]
    texts, _ = read_texts(frame["status"])
    peoples = np.array([is_label(status) for status in texts.tolist()], dtype=bool)
    label = frame["label"].astype("object").where(peoples, "")
    table = frame.assign(label=label).drop(columns=[name for name in lost_columns if name != "label"])
    uses = {"id": ColumnUse("id"), "label": ColumnUse("class")}
    labels, blank = read_texts(table["label"], blanks=("",))
    if len(set(labels[~blank].tolist())) < 2:
        uses["label"] = ColumnUse("leave out")  # too few to say what the classes are
    own_columns = [name for name in table.columns if name not in uses]
    if own_columns == ["text"]:
        uses["text"] = ColumnUse.of("text", "text")
    return table, uses
