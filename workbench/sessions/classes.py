"""The classes of a project as people change them, and labels that bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.sessions.file_votes import file_vote
from workbench.sessions.several import Several
from workbench.store import Event, FileVote


class Classes(Several):
    """Adding, renaming, merging, removing and describing classes; importing labels."""

    def add_class(self, name: str) -> Event:
        """Add a class.

        Raises:
            InputError: an empty name, or one that exists.
        """
        return self._event("class-add", label=name)

    def rename_class(self, name: str, new: str) -> Event:
        """Give a class another name; its labels follow.

        Raises:
            InputError: no class is called so (any more), the new name is empty, or exists.
        """
        return self._event("class-rename", label=name, text=new)

    def merge_class(self, name: str, into: str) -> Event:
        """Count one class's labels as another's; the first disappears."""
        return self._event("class-merge", label=name, text=into)

    def remove_class(self, name: str) -> Event:
        """Take away a class that nobody needs; it is back with the first label that names it.

        Raises:
            InputError: there is none, labels name it, the pool knows items of it, or one class would be left.
        """
        return self._event("class-remove", label=name)

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
        about = {"guidance": guidance, "shortcut": shortcut, "colour": colour}
        return self._event(
            "class-describe", label=name, value={key: v for key, v in about.items() if v is not None}
        )

    def order_classes(self, names: Sequence[str]) -> Event:
        """Show the classes in this order; those not named follow. Codes and models stay as they are.

        Raises:
            InputError: a class that there is not.
        """
        return self._event("class-order", value=tuple(names))

    def import_labels(
        self,
        labels: Iterable[tuple[int, str] | FileVote],
        source: str,
        *,
        corrects: bool = False,
        operation: str | None = None,
    ) -> Event | None:
        """Take in labels made elsewhere, as one event that one undo takes back.

        What an item is labelled already says nothing new: of one's own export nothing is recorded, and who
        gave a label, when and why stays known. The file is a rater of its own, `file SOURCE`, and a person in
        it `file SOURCE / PERSON`; where votes of an item differ and none is final, it is undecided. Who
        labels an item after the file has the last word.

        Args:
            labels: (item, class name) pairs, or votes of persons; classes not there yet are added.
            source: where they come from, for the record.
            corrects: the file decides where an item has another label, whatever people said.
            operation: of imports into several questions, which one undo takes back; `made_id`.

        Returns:
            The event; None where all of the labels are there already.

        Raises:
            InputError: no such item. One of the test split is labelled and never learnt from.
        """
        votes, labels_now = [file_vote(row, source) for row in labels], self.state.labels
        if corrects:
            final = [vote.final or (not vote.person and vote.item in labels_now) for vote in votes]
            votes = [vote._replace(final=last) for vote, last in zip(votes, final, strict=True)]
        return self._do("import", operation or "", text=source, value=votes).event
