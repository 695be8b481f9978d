"""Items of a pool and what an annotator does with those of their own choosing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.pools.neighbours.twins import Twins
from workbench.pools.pool import Shown
from workbench.registry import Entry
from workbench.sessions.answering import file_vote
from workbench.sessions.drawing import SECOND, generator
from workbench.sessions.part import Part
from workbench.store import Ask, Event, FileVote

if TYPE_CHECKING:
    import pandas as pd

# It stands a floor higher and is found by name, as a classifier or a policy is.
_TABLE = Entry("table", "workbench.exchange.exporting:label_frame", "Labels as a table")


class Items(Part):
    """Items of the project: `Session.items`."""

    def label(self, item: int | Sequence[int], name: str, *, role: str = "map") -> Event:
        """Label an item of one's own choosing, or several at once: all or none, as one event.

        Args:
            item: index into the pool, or several of them, such as the points of a lasso.
            name: of the class.
            role: how they were chosen: "map", or "review" for a label that is looked at again.

        Returns:
            The recorded event. An earlier label of this annotator is replaced.

        Raises:
            InputError: no items, no such item or class, or an item of the test split.
        """
        self._session.fits.published()  # taken up while nobody waits for it
        return self._event("choose", items=_listed(item), label=name, text=role)

    def relabel(self, items: Sequence[int], name: str) -> Event:
        """Decide the class of items in review, whatever was said before; one undo takes all back.

        Raises:
            InputError: no items, no such item or class.
        """
        return self._event("relabel", items=items, label=name)

    def clear(self, items: Sequence[int]) -> Event:
        """Take away whatever anybody decided about items, so that they may be asked about again.

        Raises:
            InputError: nothing is decided about any of them.
        """
        return self._event("clear", items=items)

    def resolve(self, item: int | Sequence[int], name: str) -> Event:
        """End a disagreement about an item, or about each of several at once."""
        return self._event("resolve", items=_listed(item), label=name)

    def flag(self, item: int | Sequence[int], on: bool = True, reason: str = "") -> Event:
        """Mark an item for attention, or (`on=False`) take the mark away; of several, as one event."""
        return self._event("flag", **_of_items(item), on=on, text=reason)

    def note(self, item: int | Sequence[int], text: str) -> Event:
        """Keep a remark about an item, or one about each of several."""
        return self._event("note", **_of_items(item), text=text)

    def want(self, items: Sequence[int], how: str = "") -> Event:
        """Be asked about these items before anything else, in their order.

        They are recorded as chosen by a person; those that are answered or kept to measure on are left out.

        Args:
            items: indices into the pool.
            how: they were found, for the record.

        Raises:
            InputError: none of them can be asked about.
        """
        return self._event("want", items=items, text=how)

    def look_again(self, n: int = 20, *, items: Sequence[int] | None = None) -> Event:
        """Be asked a second time about labels of one's own, without seeing them.

        How far the two agree is in `Vote.first` and `Vote.key`; the second counts from then on.

        Args:
            n: how many, drawn at random from those not looked at twice yet.
            items: which, instead.

        Raises:
            InputError: there is no such label.
        """
        session = self._session
        if items is None:
            state = session.state
            own_items = [
                item
                for item, votes in state.votes.items()
                if (vote := votes.get(session.annotator)) is not None and not (vote.first or vote.final)
            ]
            rng = generator(int(session.settings["seed"]), state.n_events, SECOND)
            items = rng.permutation(np.asarray(own_items, dtype=np.int64))[:n].tolist()
        return self._event("want", items=items, text="a second pass", second=True)

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
        it `file SOURCE / PERSON`, by the name of an earlier file where that has an answer of theirs of the
        same moment. Whom a file names and who labels here by that name is one person, whose newest answer
        counts. Where votes of an item differ and none is final, it is undecided. Who labels an item after the
        file has the last word.

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
        source = source.replace(" / ", "/")  # what follows " / " is a person
        names = self._session.store.people.names_by_address()
        votes = [file_vote(row, source, names) for row in labels]
        return self._do("import", operation or "", text=source, value=votes, decides=corrects).event

    def show(self, item: int | Ask) -> Shown:
        """Item as a person sees it, or that of a question.

        Raises:
            InputError: there is no such item.
        """
        index = item.item if isinstance(item, Ask) else item
        return self._session.pool.items.show(self._session._answers.checked(index))

    def to_pandas(self, *, predictions: bool = False, what: str = "everything") -> pd.DataFrame:
        """Every item with what is known of it, one row each, indexed by item.

        Args:
            predictions: items without a label have the model's, with status "predicted".
            what: "everything", or "labels" for the labelled items alone.

        Returns:
            The columns of an export (docs/label-your-data.md); "confidence" and "probabilities_now" are the
            present model's.

        Raises:
            InputError: predictions where there is no model yet.
        """
        table: pd.DataFrame = _TABLE.load()(self._session, "predictions" if predictions else what)
        return table

    @property
    def twins(self) -> Twins:
        """Items that are copies of each other; none where the project does not look for them."""
        return self._session._project.twins


def _listed(item: int | Sequence[int]) -> Sequence[int]:
    return [int(item)] if isinstance(item, int | np.integer) else item


def _of_items(item: int | Sequence[int]) -> dict[str, Any]:
    """Fields of an operation about an item, or about several."""
    return {"item": item} if isinstance(item, int | np.integer) else {"items": item}
