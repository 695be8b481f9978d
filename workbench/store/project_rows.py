"""Rows of the table of projects: written from records, and read as what records are made of."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.reading import valid_text
from workbench.store.database import tables
from workbench.store.events import now
from workbench.store.fold import fold
from workbench.store.log import insert_events
from workbench.store.pool_files import found_here
from workbench.store.records import ACCESS, NewQuestion, ProjectRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection


def insert_project(connection: Connection, record: ProjectRecord, item_ids: Sequence[str]) -> None:
    """The row of a project, without its questions."""
    values = {
        "id": record.family,
        "name": valid_text(record.name),
        "pool": dict(record.pool),
        "fingerprints": np.asarray(record.fingerprints, dtype="<u8").tobytes(),
        "feature_map": dict(record.feature_map),
        "item_ids": pack_ids(item_ids),
        "last_event": 0,
        "changed": record.changed,
        "n_labelled": {},
        "owner": record.owner or None,
        "access": record.access,
    }
    connection.execute(tables().projects.insert().values(**values))


def insert_question(
    connection: Connection, project_id: str, question_id: str, new: NewQuestion, position: int
) -> None:
    """A question of a project with its first events, which are numbered after the last one of the project.

    Args:
        connection: of a transaction that alone may add to the project.
        project_id: of the project.
        question_id: of the question.
        new: the question.
        position: its place among the project's.
    """
    values = {
        "id": question_id,
        "project": project_id,
        "name": valid_text(new.name),
        "kind": new.kind,
        "position": position,
        "aside": int(new.aside),
        "settings": dict(new.settings),
        "created": new.created or now(),
    }
    connection.execute(tables().questions.insert().values(**values))
    insert_events(connection, project_id, question_id, new.events, fold(new.events).n_labelled)


def joined(*more: Any) -> Any:
    """Questions with what all of their project share."""
    from sqlalchemy import select

    p, q = (t := tables()).projects.c, t.questions.c
    shared = (p.name, p.pool, p.changed, p.n_labelled, p.owner, p.access, p.members)
    own_columns = (q.id, q.settings, q.created, q.kind, q.position, q.aside)
    labels = (q.project.label("family"), q.name.label("question"))
    return select(*shared, *own_columns, *labels, *more).join_from(t.questions, t.projects)


def pack_ids(ids: Sequence[str]) -> bytes:
    """Ids as compressed JSON; plain row numbers as their count."""
    texts = [str(i) for i in ids]
    numbers = all(text == str(i) for i, text in enumerate(texts))
    document = {"rows": len(texts)} if numbers else texts
    return zlib.compress(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def unpack_ids(packed: bytes) -> list[str]:
    """[N] the ids that `pack_ids` was given."""
    document = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
    return [str(i) for i in range(document["rows"])] if isinstance(document, dict) else document


def summary_of(row: Any) -> dict[str, Any]:
    """The fields that a `ProjectSummary` and a `ProjectRecord` share, of a row of `joined`."""
    names = ("id", "name", "settings", "created", "family", "question", "kind", "position")
    of_row = {name: getattr(row, name) for name in names}
    counted = {"n_labelled": row.n_labelled.get(row.id), "aside": bool(row.aside)}
    return {**of_row, **counted, "pool": found_here(row.pool), **_shown_to(row)}


def _shown_to(row: Any) -> dict[str, Any]:
    members = tuple(str(key) for key in row.members or ())
    return {
        "changed": row.changed,
        "owner": row.owner or "",
        # what a newer version may have written opens nothing
        "access": row.access if row.access in ACCESS else "private",
        "members": members,
    }
