"""Rows of the table of projects: written from records, and read as what records are made of."""

from __future__ import annotations

import json
import secrets
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
    """A row; of a further question without what the first one holds for all."""
    first = record.id == record.family
    connection.execute(
        tables()
        .projects.insert()
        .values(
            id=record.id,
            family=record.family,
            question=valid_text(record.question),
            kind=record.kind,
            position=record.position,
            aside=int(record.aside),
            name=valid_text(record.name) if first else "",
            pool=dict(record.pool) if first else {},
            settings=dict(record.settings),
            fingerprints=np.asarray(record.fingerprints, dtype="<u8").tobytes() if first else b"",
            feature_map=dict(record.feature_map) if first else {},
            created=record.created,
            n_labelled=record.n_labelled,
            changed=record.changed,
            owner=record.owner or None,
            access=record.access,
            item_ids=pack_ids(item_ids) if first else None,
        )
    )


def insert_question(connection: Connection, family: str, new: NewQuestion, position: int) -> str:
    """A further question of a project with its first events; its id.

    Args:
        connection: of the transaction.
        family: id of the project's first question.
        new: the question.
        position: its place among the project's.
    """
    moment = now()
    record = ProjectRecord(
        secrets.token_hex(6),
        "",
        {},
        dict(new.settings),
        moment,
        n_labelled=fold(new.events).n_labelled,
        changed=moment,
        family=family,
        question=new.name,
        kind=new.kind,
        position=position,
    )
    insert_project(connection, record, ())
    insert_events(connection, record.id, new.events)
    return record.id


def own_and_head() -> tuple[Any, Any]:
    """The table twice: a question's row, and that of the first one of its project."""
    t = tables()
    return t.projects.alias("own"), t.projects.alias("head")


def joined(own: Any, head: Any, *more: Any) -> Any:
    """A question with what all of its project share."""
    from sqlalchemy import select

    o, h = own.c, head.c
    shared = (h.name, h.pool, h.owner, h.access, h.members)
    mine = (o.id, o.settings, o.created, o.n_labelled, o.changed)
    question = (o.family, o.question, o.kind, o.position, o.aside)
    return select(*shared, *mine, *question, *more).join_from(own, head, o.family == h.id)


def pack_ids(ids: Sequence[str]) -> bytes:
    """Ids as compressed JSON; plain row numbers as their count."""
    listed = [str(i) for i in ids]
    numbers = all(text == str(i) for i, text in enumerate(listed))
    document = {"rows": len(listed)} if numbers else listed
    return zlib.compress(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def unpack_ids(packed: bytes) -> list[str]:
    """[N] the ids that `pack_ids` was given."""
    document = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
    return [str(i) for i in range(document["rows"])] if isinstance(document, dict) else document


def summary_of(row: Any) -> dict[str, Any]:
    """The fields that a `ProjectSummary` and a `ProjectRecord` share, of a row of `joined`."""
    own = ("id", "name", "settings", "created", "n_labelled", "family", "question", "kind", "position")
    of_row = {name: getattr(row, name) for name in own}
    return {**of_row, "pool": found_here(row.pool), "aside": bool(row.aside), **_shown_to(row)}


def _shown_to(row: Any) -> dict[str, Any]:
    members = tuple(str(key) for key in row.members or ())
    return {
        "changed": row.changed or "",
        "owner": row.owner or "",
        # what a newer version may have written opens nothing
        "access": row.access if row.access in ACCESS else "private",
        "members": members,
    }
