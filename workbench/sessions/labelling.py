"""Asking: the items that one annotator is shown, and how long they are theirs."""

from __future__ import annotations

import time
from collections.abc import Iterable

from workbench.errors import InputError
from workbench.sessions.asking import LEASE_SECONDS, Ask
from workbench.sessions.opened import LEAST_PRECISION
from workbench.sessions.several import Several
from workbench.sessions.taxonomy import key_of
from workbench.store import Event
from workbench.store.retry import retried


class Labelling(Several):
    """Questions, grids of one class, and questions taken back."""

    @retried
    def ask(self, k: int = 1, *, lease: float = LEASE_SECONDS) -> list[Ask]:
        """Questions for this annotator, best first.

        Items whose answer they took back come first, then questions of theirs that are still open (so
        a reload or a second tab shows the same item), then items that were set aside and asked for
        anew, then new ones. Never waits for a fit.

        Args:
            k: how many.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            At most k asks, recorded; fewer, or none, when little is left.
        """
        if k < 1:
            raise InputError(f"At least one item must be asked for; got k={k}.")
        state = self.state
        published = self._prepare(state)
        moment = time.time()
        # A reload asks for what it was shown: nothing to record.
        leased_items = self._questions.leased(state, moment, self.annotator)
        asks = self._questions.standing(state, self.annotator, leased_items)[:k]
        if len(asks) == k and all(a.expires > moment for a in asks):
            return asks
        with self._project.recording() as transaction:
            state = transaction.state
            leased_items = self._questions.leased(state, moment, self.annotator)
            asks = self._questions.standing(state, self.annotator, leased_items)[:k]
            if len(asks) < k:
                exclusions = leased_items | {a.item for a in asks}
                asks += self._questions.fresh(state, self.annotator, k - len(asks), exclusions, published)
            return self._answers.lease(transaction, asks, moment, lease)

    @retried
    def ask_grid(self, name: str, k: int = 24, *, lease: float = LEASE_SECONDS) -> list[Ask]:
        """The surest items that the model takes for one class, to be confirmed together; doubtful ones first.

        Args:
            name: of the class.
            k: how many, at most.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            Asks with the role "grid", recorded; for `confirm`.

        Raises:
            InputError: no such class, no model that knows it yet, or one that is too often wrong about it.
        """
        published = self.fits.published()
        if published is None:
            raise InputError("There is no model yet: label items of two classes first.")
        precision = self.precision_of(name)
        if not precision.bears:
            raise InputError(
                f"{precision.words(name)} Many are confirmed at once where {LEAST_PRECISION:.0%} or more are."
            )
        moment = time.time()
        with self._project.recording() as transaction:
            state = transaction.state
            key = key_of(state, name)
            if key not in published.keys:
                raise InputError(f"The model does not know class {name!r} yet; it does after the next fit.")
            exclusions = self._questions.leased(state, moment, self.annotator)
            exclusions |= {a.item for a in self._questions.waiting(state, self.annotator)}
            code = published.keys.index(key)
            waiting = (state.asks[i] for i in state.waiting.get(self.annotator, ()))
            before = [a.id for a in waiting if a.role == "grid" and not a.released]
            if before:  # an earlier grid that was left; what is confirmed in it all the same is taken
                self._add(transaction, Event.released(before))
            asks = self._questions.grid(state, k, exclusions, published, code)
            return self._answers.lease(transaction, asks, moment, lease)

    def still_open(self, ask_ids: Iterable[str]) -> list[str]:
        """Those of some questions whose answer would be taken: also second opinions and second looks.

        Args:
            ask_ids: of any questions; unknown ones are not open.
        """
        state = self.state
        return [i for i in ask_ids if i in state.asks and self._questions.is_open(state.asks[i], state)]

    @retried
    def reclaim(
        self, ask_ids: Iterable[str], *, lease: float = LEASE_SECONDS, first: bool = False
    ) -> list[str]:
        """Take questions back that were given back, or ran out, while somebody still looks at them.

        They come first again, before what was asked meanwhile.

        Args:
            ask_ids: of questions of this annotator.
            lease: seconds during which nobody else is asked about the items.
            first: put them first also where they were not given back and stand behind others.

        Returns:
            The ids that were taken back; ones that are answered, still held, unknown, somebody else's, or
            whose item somebody else is being asked about are not among them.
        """
        asks, moment = list(dict.fromkeys(ask_ids)), time.time()
        state = self.state
        records = state.asks
        behind = first and self._answers.stands_behind(state, asks, moment)
        leases = (i in records and not records[i].released and records[i].expires > moment for i in asks)
        if not behind and all(leases):
            return []
        with self._project.recording() as transaction:
            return self._answers.reclaim(transaction, asks, moment, lease, first=first)

    def open_twins(self, item: int) -> list[int]:
        """Copies of an item that wait for a label."""
        return self._questions.open_twins(self.state, item)
