"""Queue of one annotator: items they are asked about, how long these are theirs, and what is left."""

import time
from collections.abc import Iterable, Sequence

from workbench.errors import InputError
from workbench.sessions.asking import LEASE_SECONDS
from workbench.sessions.asking_items import Candidate, ItemAsk, plan
from workbench.sessions.open_session import OpenSession
from workbench.sessions.operations import Acknowledgement, given_id
from workbench.sessions.part import Part
from workbench.store import Ask, Event
from workbench.store.database_errors import retried


class Queue(Part):
    """Questions to one annotator: `Session.queue`."""

    def items(self, k: int = 1, *, lease: float = LEASE_SECONDS) -> list[ItemAsk]:
        """Items to be looked at once, each with all of its open questions.

        Every question proposes what it would ask; of these comes first what is drawn to measure on, and
        then the item about which the models expect to be wrong most.

        Args:
            k: how many items.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            At most k items; fewer, or none, when little is left.
        """
        return self.of(self._session._asked(), k, lease)

    @retried
    def of(self, sessions: Sequence[OpenSession], k: int, lease: float) -> list[ItemAsk]:
        """The same of some questions alone; see `items`."""
        if k < 1:
            raise InputError(f"At least one item must be asked for; got k={k}.")
        # as they are called now: somebody may rename one until its asks are recorded
        names = [session.question_name for session in sessions]
        states = [session.state for session in sessions]
        prepared = [session._prepare(state) for session, state in zip(sessions, states, strict=True)]
        moment = time.time()

        def planned(*, new: bool) -> list[ItemAsk]:
            candidates = [
                Candidate(name, session._questions, session.state if new else state, fit)
                for name, session, state, fit in zip(names, sessions, states, prepared, strict=True)
            ]
            return plan(candidates, self._session.annotator, k, moment, new=new)

        # a reload asks for what it was shown: nothing to record
        asks = planned(new=False)
        if len(asks) == k and all(ask.expires > moment for item in asks for ask in item.asks.values()):
            return asks
        with self._session._project.log.together():
            asks = planned(new=True)
            leased: dict[str, dict[int, Ask]] = {}
            for name, session in zip(names, sessions, strict=True):
                own_asks = [item.asks[name] for item in asks if name in item.asks]
                with session._project.recording() as transaction:
                    own_asks = session._answers.lease(transaction, own_asks, moment, lease)
                leased[name] = {ask.item: ask for ask in own_asks}
        return [ItemAsk(item.item, {name: leased[name][item.item] for name in item.asks}) for item in asks]

    def confirm(
        self,
        ask_ids: Sequence[str],
        name: str,
        rejected: Sequence[str] = (),
        *,
        operation: str | None = None,
    ) -> Acknowledgement:
        """Label the items of a grid as one event, which one undo takes back.

        Args:
            ask_ids: questions from `predictions.grid` whose items are of the class.
            name: of the class.
            rejected: the questions whose items are not; these items stay open.
            operation: an id of the caller's, as in `Session.tell`.

        Returns:
            What became of it; items that somebody else answered or holds are left out and named.

        Raises:
            InputError: no such question or class.
        """
        return self._do("confirm", given_id(operation), label=name, asks=ask_ids, rejected=rejected)

    def still_open(self, ask_ids: Iterable[str]) -> list[str]:
        """Those of some questions whose answer would be taken: also second opinions and second looks.

        Args:
            ask_ids: of any questions; unknown ones are not open.
        """
        state, questions = self._session.state, self._session._questions
        return [i for i in ask_ids if i in state.asks and questions.is_open(state.asks[i], state)]

    @retried
    def reclaim(self, ask_ids: Iterable[str], *, first: bool = False) -> list[str]:
        """Take questions back that were given back, or ran out, while somebody still looks at them.

        They come first again, before what was asked meanwhile.

        Args:
            ask_ids: of questions of this annotator.
            first: put them first also where they were not given back and stand behind others.

        Returns:
            The ids that were taken back; ones that are answered, still held, unknown, somebody else's, or
            whose item somebody else is being asked about are not among them.
        """
        session = self._session
        asks, moment = list(dict.fromkeys(ask_ids)), time.time()
        state = session.state
        records = state.asks
        behind = first and session._answers.stands_behind(state, asks, moment)
        leases = (i in records and not records[i].released and records[i].expires > moment for i in asks)
        if not behind and all(leases):
            return []
        with session._project.recording() as transaction:
            return session._answers.reclaim(transaction, asks, moment, first=first)

    @retried
    def release(self, ask_ids: Iterable[str]) -> list[str]:
        """Give questions back unanswered, so that their items are free for anybody.

        Those of the evaluation set are kept: they were drawn at random and do not grow old.

        Args:
            ask_ids: of questions of this annotator.

        Returns:
            The ids that were given back; ones that are answered, unknown or somebody else's are not
            among them. An answer that comes for one all the same is taken while its item is free.
        """
        session = self._session
        with session._project.recording() as transaction:
            asks = transaction.state.asks
            records = [asks[i] for i in dict.fromkeys(ask_ids) if i in asks]
            ids = [
                a.id
                for a in records
                if a.annotator == session.annotator
                and a.role != "evaluation"
                and not a.released
                and session._questions.is_open(a, transaction.state)
            ]
            if ids:
                session._answers.add(transaction, Event.released(ids))
            return ids

    def twins(self, item: int) -> list[int]:
        """Copies of an item that wait for a label.

        Raises:
            InputError: there is no such item.
        """
        session = self._session
        return session._questions.open_twins(session.state, session._answers.checked(item))

    @property
    def n_left(self) -> int:
        """Number of items that could still be asked about."""
        return int(self._session._questions.open_items(self._session.state).sum())
