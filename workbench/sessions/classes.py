"""The classes of a project as people change them, and labels that bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from workbench.errors import InputError
from workbench.sessions.opened import Opened
from workbench.sessions.taxonomy import described, key_of, new_key, new_name, removable, renamed_meanwhile
from workbench.store import Event, FileVote, ProjectState
from workbench.store.retry import retried


class Classes(Opened):
    """Adding, renaming, merging, removing and describing classes; importing labels."""

    @retried
    def add_class(self, name: str) -> Event:
        """Add a class.

        Raises:
            InputError: an empty name, or one that exists.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            return self._add(transaction, Event.class_added(new_key(state, name), new_name(state, name)))

    @retried
    def rename_class(self, name: str, new: str) -> Event:
        """Give a class another name; its labels follow.

        Raises:
            InputError: no class is called so (any more), the new name is empty, or exists.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            renamed_meanwhile(state, name)
            return self._add(transaction, Event.class_renamed(key_of(state, name), new_name(state, new)))

    @retried
    def merge_class(self, name: str, into: str) -> Event:
        """Count one class's labels as another's; the first disappears."""
        with self._project.recording() as transaction:
            state = transaction.state
            key, target = key_of(state, name), key_of(state, into)
            if key == target:
                raise InputError(f"Class {name!r} cannot be merged into itself.")
            return self._add(transaction, Event.class_merged(key, target))

    @retried
    def remove_class(self, name: str) -> Event:
        """Take away a class that nobody needs; it is back with the first label that names it.

        Raises:
            InputError: there is none, labels name it, the pool knows items of it, or one class would be left.
        """
        with self._project.recording() as transaction:
            key = removable(transaction.state, name, self.pool)
            return self._add(transaction, Event.class_removed(key))

    @retried
    def describe_class(
        self,
        name: str,
        *,
        guidance: str | None = None,
        shortcut: str | None = None,
        colour: str | None = None,
    ) -> Event:
        """Say what belongs to a class, and how it is shown.

        Args:
            name: of the class.
            guidance: one line; "" takes it away, None leaves it.
            shortcut: the key that gives it, a letter or digit.
            colour: "#rrggbb".

        Raises:
            InputError: no such class, a line that is too long, or a key or colour that is none or taken.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            key = key_of(state, name)
            given = {"guidance": guidance, "shortcut": shortcut, "colour": colour}
            about = described(state, key, {k: v for k, v in given.items() if v is not None})
            return self._add(transaction, Event.class_described(key, **about))

    @retried
    def order_classes(self, names: Sequence[str]) -> Event:
        """Show the classes in this order; those not named follow. Codes and models stay as they are.

        Raises:
            InputError: a class that there is not.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            return self._add(transaction, Event.classes_ordered([key_of(state, name) for name in names]))

    @retried
    def import_labels(
        self,
        labels: Iterable[tuple[int, str] | FileVote],
        source: str,
        *,
        operation: str | None = None,
    ) -> Event | None:
        """Take in labels made elsewhere, as one event that one undo takes back.

        What an item is labelled already says nothing new: of one's own export nothing is recorded, and who
        gave a label, when and why stays known. A vote of a person in the file is one of `file SOURCE /
        PERSON`; where those of an item differ and none is final, the item is undecided.

        Args:
            labels: (item, class name) pairs, or votes of persons; classes not there yet are added.
            source: where they come from, for the record.
            operation: of imports into several questions, which one undo takes back; `made_id`.

        Returns:
            The event; None where all of the labels are there already.

        Raises:
            InputError: no such item. One of the test split is labelled and never learnt from.
        """
        votes = [_vote(row, self._answers.checked(row[0]), source) for row in labels]
        with self._project.recording() as transaction:
            state = transaction.state
            known = dict(zip(state.classes, state.keys, strict=True))
            for name in dict.fromkeys(vote.label for vote in votes):
                if name not in known:
                    known[name] = new_key(state, name)
                    self._add(transaction, Event.class_added(known[name], new_name(state, name)))
            keyed = [vote._replace(label=known[vote.label]) for vote in votes]
            new = {vote.item for vote in keyed if not _stands(vote, state)}
            if not new:
                return None
            taken = [vote if any(vote[2:]) else vote[:2] for vote in keyed if vote.item in new]
            event = Event.imported(taken, source)
            more = {} if operation is None else {"operation": operation}
            return self._add(transaction, replace(event, payload={**event.payload, **more}))


def _vote(row: tuple[int, str] | FileVote, item: int, source: str) -> FileVote:
    """A label of a file as a vote of the rater that the file, or a person in it, is."""
    vote = row if isinstance(row, FileVote) else FileVote(*row)
    person = f"file {source} / {vote.person}" if vote.person else ""
    return vote._replace(item=item, label=str(vote.label), person=person)


def _stands(vote: FileVote, state: ProjectState) -> bool:
    """Tell whether a file's vote is nothing new: it is there, or is nobody's and the item has its class."""
    if vote.person:
        standing = state.votes.get(vote.item, {}).get(vote.person)
        return standing is not None and (standing.key, standing.final) == (vote.label, vote.final)
    standing = state.standing.get(vote.item)
    return standing is not None and state.resolve(standing.key) == state.resolve(vote.label)
