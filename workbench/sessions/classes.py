"""The classes of a project as people change them, and labels that bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from workbench.errors import InputError
from workbench.sessions.opened import Opened
from workbench.sessions.taxonomy import described, key_of, new_key, new_name, removable, renamed_meanwhile
from workbench.store import Event
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
        self, labels: Iterable[tuple[int, str]], source: str, *, together: str = ""
    ) -> Event | None:
        """Take in labels made elsewhere, as one event that one undo takes back.

        What an item is labelled already says nothing new: of one's own export nothing is recorded, and who
        gave a label, when and why stays known.

        Args:
            labels: (item, class name) pairs; classes not there yet are added.
            source: where they come from, for the record.
            together: what imports into several questions have in common, which one undo takes back.

        Returns:
            The event; None where all of the labels are there already.

        Raises:
            InputError: no such item. One of the test split is labelled and never learnt from.
        """
        pairs = [(self._answers.checked(item), str(name)) for item, name in labels]
        with self._project.recording() as transaction:
            state = transaction.state
            known = dict(zip(state.classes, state.keys, strict=True))
            for name in dict.fromkeys(name for _, name in pairs):
                if name not in known:
                    known[name] = new_key(state, name)
                    self._add(transaction, Event.class_added(known[name], new_name(state, name)))
            there = state.codes
            code_of = {name: code for code, name in enumerate(state.classes)}
            new = [(i, name) for i, name in pairs if i not in there or there[i] != code_of.get(name)]
            if not new:
                return None
            event = Event.imported([(i, known[name]) for i, name in new], source)
            more = {"together": together} if together else {}
            return self._add(transaction, replace(event, payload={**event.payload, **more}))
