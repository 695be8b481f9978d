"""Projects: what they are, and whom they belong to."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.npy_files import arrays_to_bytes
from workbench.reading import cut, valid_text
from workbench.store.database import tables
from workbench.store.database_errors import retried
from workbench.store.events import Event, now
from workbench.store.fold import fold
from workbench.store.log import Log, all_events, insert_events
from workbench.store.pool_files import found_here
from workbench.store.records import (
    ACCESS,
    LABEL,
    ONE_CLASS,
    NewQuestion,
    ProjectRecord,
    ProjectSummary,
    WholeProject,
)
from workbench.store.runs import insert_round, round_state_of, rounds_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

OWN = ("archived",)
"""Settings of a project that no copy of it takes over."""


class Projects(Log):
    """Projects with their events and rounds."""

    @retried
    def create_project(
        self,
        name: str,
        pool: Mapping[str, Any],
        settings: Mapping[str, Any],
        fingerprints: Array,
        feature_map: Mapping[str, Any],
        events: Sequence[Event] = (),
        item_ids: Sequence[str] | None = None,
        owner: str = "",
        question: str = LABEL,
        kind: str = ONE_CLASS,
        others: Sequence[NewQuestion] = (),
    ) -> ProjectRecord:
        """Store a new project with its first events.

        Args:
            name: what people call it.
            pool: how to load the pool again.
            settings: JSON.
            fingerprints: [N] uint64 of the items.
            feature_map: JSON document.
            events: recorded in the same transaction.
            item_ids: [N] the source's ids, so that labels can be exported without the pool; numbers unless
                given.
            owner: key of the person it belongs to; it is private then, and open without one.
            question: name of its first question.
            kind: of that, one of `QUESTION_KINDS`.
            others: further questions over the same pool.

        Returns:
            The project with its new id.
        """
        moment = now()
        record = ProjectRecord(
            secrets.token_hex(6),
            name,
            dict(pool),
            dict(settings),
            moment,
            n_labelled=fold(events).n_labelled,
            changed=moment,
            owner=owner,
            access="private" if owner else "open",
            fingerprints=np.asarray(fingerprints, dtype=np.uint64),
            feature_map=dict(feature_map),
            question=question,
            kind=kind,
        )
        ids = [str(i) for i in range(len(record.fingerprints))] if item_ids is None else item_ids
        first = NewQuestion(question, kind, settings, events, moment)
        with self._write() as connection:
            insert_project(connection, record, ids)
            for place, new_question in enumerate((first, *others)):
                insert_question(
                    connection, record.id, secrets.token_hex(6) if place else record.id, new_question, place
                )
        return record

    @retried
    def add_question(self, project_id: str, new: NewQuestion) -> str:
        """Ask one more question about the items of a project.

        Args:
            project_id: of any of its questions.
            new: the question.

        Returns:
            The question's id.

        Raises:
            InputError: no such project, or a question of this name is there.
        """
        from sqlalchemy import select

        c = tables().questions.c
        with self._write() as connection:
            family = self._family_of(connection, project_id)
            self._locked(connection, family)
            rows = connection.execute(select(c.name, c.position).where(c.project == family)).all()
            if new.name in {row.name for row in rows}:
                raise InputError(f"There is a question {new.name!r} already; give another name.")
            question_id = secrets.token_hex(6)
            insert_question(connection, family, question_id, new, max(row.position for row in rows) + 1)
        return question_id

    def questions(self, project_id: str) -> list[ProjectSummary]:
        """The questions of a project in their order, also those put aside.

        Args:
            project_id: id of any of them.
        """
        from sqlalchemy import select

        c = tables().questions.c
        family = select(c.project).where(c.id == project_id).scalar_subquery()
        summaries = self._summaries(c.project == family)
        return sorted(summaries, key=lambda summary: summary.position)

    @retried
    def change_question(
        self, question_id: str, *, name: str | None = None, aside: bool | None = None
    ) -> None:
        """Rename a question, or put it aside; nothing of it is lost.

        Raises:
            InputError: another question of the project has the name, or none would be left to ask.
        """
        from sqlalchemy import func, select
        from sqlalchemy.exc import IntegrityError

        t = tables()
        c = t.questions.c
        values: dict[str, Any] = {} if name is None else {"name": valid_text(name)}
        values |= {} if aside is None else {"aside": int(aside)}
        try:
            with self._write() as connection:
                family = self._family_of(connection, question_id)
                self._locked(connection, family)  # two who put the last two aside come one after the other
                connection.execute(t.questions.update().where(c.id == question_id).values(**values))
                query = select(func.count()).where(c.project == family, c.aside == 0)
                if not connection.execute(query).scalar_one():
                    raise InputError("It is the last question that is asked; add another one first.")
        except IntegrityError as error:
            raise InputError(f"There is a question {name!r} already; give another name.") from error

    def _family_of(self, connection: Connection, project_id: str) -> str:
        """The id that a project is known by, of any of its questions.

        Raises:
            InputError: there is none with this id.
        """
        from sqlalchemy import select

        c = tables().questions.c
        family = connection.execute(select(c.project).where(c.id == project_id)).scalar_one_or_none()
        if family is None:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        return str(family)

    @retried
    def project(self, project_id: str) -> ProjectRecord:
        """One project, by its first question, or one of its questions.

        Raises:
            InputError: there is none with this id.
        """
        with self._read() as connection:
            return self._record(connection, project_id)

    def _record(self, connection: Connection, project_id: str) -> ProjectRecord:
        p, q = (t := tables()).projects.c, t.questions.c
        query = joined(p.fingerprints, p.feature_map).where(q.id == project_id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        fingerprints = np.frombuffer(row.fingerprints, dtype="<u8").astype(np.uint64)
        return ProjectRecord(
            **summary_of(row),
            fingerprints=fingerprints,
            feature_map=row.feature_map,
        )

    def named(self, project: str, question: str | None = None) -> ProjectSummary:
        """The project with this id, or the only one with this name, by its first question that is asked.

        Args:
            project: an id, also of a question, or a name.
            question: name of one of its questions, to have that one.

        Raises:
            InputError: there is none, or several are called so; says which there are.
        """
        summary = self._named(project)
        if question is None and summary.id != summary.family:
            return summary
        questions = self.questions(summary.id)
        matches = [q for q in questions if q.question == question or (question is None and not q.aside)]
        if not matches:
            raise InputError(
                f"There is no question {question!r} in {summary.name!r}. There are: "
                f"{', '.join(q.question for q in questions)}."
            )
        return matches[0]

    def _named(self, project: str) -> ProjectSummary:
        summary = self.summary(project)
        if summary is not None:
            return summary
        every = self._summaries()
        matches = [p for p in every if p.name == project]
        if not matches:
            listing = ", ".join(f"{p.name} ({p.id})" for p in every[:8]) or "none yet"
            raise InputError(f"There is no project {project!r}. There are: {listing}.")
        if len(matches) > 1:
            ids = ", ".join(p.id for p in matches)
            raise InputError(f"{len(matches)} projects are called {project!r}; give the id: {ids}.")
        return matches[0]

    def projects(self) -> list[ProjectSummary]:
        """All projects, newest first, each by its first question, without what grows with their pools."""
        return self._summaries()

    def summary(self, project_id: str) -> ProjectSummary | None:
        """A project or question without what grows with its pool; None where there is none with this id."""
        summaries = self._summaries(tables().questions.c.id == project_id)
        return summaries[0] if summaries else None

    def _summaries(self, which: Any = None) -> list[ProjectSummary]:
        """Those questions that `which` chooses; the first of each project unless given."""
        from sqlalchemy import func

        p, q = (t := tables()).projects.c, t.questions.c
        octets = func.length(p.fingerprints).label("octets")
        query = joined(octets).where(q.id == q.project if which is None else which)
        rows = self._rows(query.order_by(q.created.desc(), q.id))
        return [ProjectSummary(**summary_of(row), n_items=int(row.octets) // 8) for row in rows]

    def n_answers(self, project_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Items with a label, over all questions that are asked, and how many questions these are.

        Args:
            project_ids: of some projects; one query serves all of them.

        Returns:
            Id of the project -> both numbers.
        """
        counts = dict.fromkeys(project_ids, (0, 0))
        for summary in self._summaries(tables().questions.c.aside == 0):
            if summary.family in counts:
                n, questions = counts[summary.family]
                counts[summary.family] = n + self.n_labelled(summary), questions + 1
        return counts

    def n_labelled(self, project: ProjectSummary) -> int:
        """Items with a label: as the list says, else counted."""
        return fold(self.events(project.id)).n_labelled if project.n_labelled is None else project.n_labelled

    def item_ids(self, project_id: str) -> list[str]:
        """[N] the source's ids of a project's items.

        Raises:
            InputError: there is no such project.
        """
        from sqlalchemy import select

        t = tables()
        ids = select(t.projects.c.item_ids).join_from(t.questions, t.projects)
        rows = self._rows(ids.where(t.questions.c.id == project_id))
        if not rows:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        return unpack_ids(rows[0].item_ids)

    @retried
    def update_project(
        self,
        project_id: str,
        *,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        fingerprints: Array | None = None,
        pool: Mapping[str, Any] | None = None,
        item_ids: Sequence[str] | None = None,
    ) -> None:
        """Change what is given, leave the rest; all but the settings is of the project's questions alike."""
        from sqlalchemy import select

        t = tables()
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = valid_text(name)
        if pool is not None:
            values["pool"] = dict(pool)
        if fingerprints is not None:
            values["fingerprints"] = np.asarray(fingerprints, dtype="<u8").tobytes()
        if item_ids is not None:
            values["item_ids"] = pack_ids(item_ids)
        p, q = t.projects, t.questions
        with self._write() as connection:
            family = self._family_of(connection, project_id)
            if values:
                connection.execute(p.update().where(p.c.id == family).values(**values))
            if settings is not None:
                of_question = q.c.id == project_id
                query = select(q.c.settings).where(of_question).with_for_update()
                own_values = {**connection.execute(query).scalar_one(), **settings}
                connection.execute(q.update().where(of_question).values(settings=own_values))

    @retried
    def delete_project(self, project_id: str) -> None:
        """Remove a project with the events and rounds of all its questions.

        Args:
            project_id: of any of them.
        """
        from sqlalchemy import select

        t = tables()
        q = t.questions.c
        with self._write() as connection:
            family = connection.execute(select(q.project).where(q.id == project_id)).scalar_one_or_none()
            # first the lock of `recording`: an event that is being added is waited for, and goes too
            p = t.projects.c
            connection.execute(select(p.id).where(p.id == family).with_for_update())
            ids = list(connection.execute(select(q.id).where(q.project == family)).scalars())
            connection.execute(t.rounds.delete().where(t.rounds.c.owner.in_(ids)))
            for of in (t.program_keys, t.events, t.questions):
                connection.execute(of.delete().where(of.c.project == family))
            connection.execute(t.projects.delete().where(p.id == family))

    @retried
    def share_project(self, project_id: str, owner: str, access: str, members: Sequence[str] = ()) -> None:
        """Say whom a project belongs to and who may open it.

        Args:
            project_id: the project.
            owner: key of a person; "" only for an open project.
            access: one of `ACCESS`.
            members: keys of the people a shared project is shared with.

        Raises:
            InputError: no such project, no such access, or one that would let nobody in.
        """
        if access not in ACCESS:
            raise InputError(f"A project is {', '.join(ACCESS[:-1])} or {ACCESS[-1]}; got {cut(access)}.")
        if not owner and access != "open":
            raise InputError("A project that belongs to nobody can only be open.")
        t = tables()
        values = {"owner": owner or None, "access": access, "members": sorted(set(members) - {owner})}
        with self._write() as connection:
            family = self._family_of(connection, project_id)
            connection.execute(t.projects.update().where(t.projects.c.id == family).values(values))

    @retried
    def whole_project(self, project_id: str) -> WholeProject:
        """All that is stored of a project with all its questions, as of one moment.

        Args:
            project_id: of any of its questions.

        Raises:
            InputError: there is none with this id.
        """
        from sqlalchemy import select

        p, q = (t := tables()).projects.c, t.questions.c
        with self._snapshot() as connection:
            family = self._family_of(connection, project_id)
            ids = select(q.id).where(q.project == family).order_by(q.position)
            events = all_events(connection, (t.events.c.project == family,))
            first, *siblings = [
                WholeProject(
                    self._record(connection, question_id),
                    tuple(e for e in events if (e.question or family) == question_id),
                    tuple(rounds_of(connection, question_id)),
                    round_state_of(connection, question_id),
                )
                for question_id in connection.execute(ids).scalars()
            ]
            packed = connection.execute(select(p.item_ids).where(p.id == family)).scalar_one()
        return replace(first, item_ids=tuple(unpack_ids(packed)), others=tuple(siblings))

    @retried
    def restore_project(self, whole: WholeProject, owner: str = "") -> ProjectRecord:
        """Store a project that was recorded elsewhere, or under another id: all of it, in one transaction.

        Args:
            whole: the project; its record gets a new id, and its events keep number, time and person.
            owner: key of the person it belongs to; it is private then, and open without one.

        Returns:
            The project with its new id.

        Raises:
            InputError: its events are not numbered from 1 without a gap.
        """
        settings = {key: value for key, value in whole.record.settings.items() if key not in OWN}
        every = (replace(whole, record=replace(whole.record, settings=settings)), *whole.others)
        numbers = list(merge(*([event.id for event in part.events] for part in every)))
        if numbers != list(range(1, len(numbers) + 1)):
            raise InputError("The events of a project are numbered from 1 without a gap; these are not.")
        record = replace(
            every[0].record,
            id=(family := secrets.token_hex(6)),
            family=family,
            position=0,
            owner=owner,
            access="private" if owner else "open",
            members=(),
            n_labelled=fold(whole.events).n_labelled,
            changed=whole.record.created,
        )
        with self._write() as connection:
            insert_project(connection, record, whole.item_ids)
            for place, part in enumerate(every):
                id_, of = secrets.token_hex(6) if place else family, part.record
                new = NewQuestion(of.question, of.kind, of.settings, part.events, of.created, of.aside)
                insert_question(connection, family, id_, new, place)
                state_of, state = part.state or (-1, {})
                for stored in part.rounds:
                    blob = arrays_to_bytes(state) if stored.number == state_of else None
                    insert_round(connection, id_, stored.number, stored.record, blob)
        return record

    def duplicate_project(self, project_id: str, name: str, owner: str = "") -> ProjectRecord:
        """A second project with the same history, which goes its own way from here on.

        Raises:
            InputError: there is none with this id.
        """
        project = self.whole_project(project_id)
        copy = replace(project.record, name=name, created=now())
        return self.restore_project(replace(project, record=copy), owner)

    def archive_project(self, project_id: str, on: bool = True) -> None:
        """Put a project aside, by any of its questions, or take it back into the list."""
        self.update_project(self.project(project_id).family, settings={"archived": on})


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
    names = ("id", "name", "settings", "created", "changed", "family", "question", "kind", "position")
    of_row = {name: getattr(row, name) for name in names}
    return of_row | {
        "n_labelled": row.n_labelled.get(row.id),
        "aside": bool(row.aside),
        "pool": found_here(row.pool),
        "owner": row.owner or "",
        # what a newer version may have written opens nothing
        "access": row.access if row.access in ACCESS else "private",
        "members": tuple(map(str, row.members or ())),
    }
