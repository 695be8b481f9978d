"""The questions over one pool, each its own log and model, and the one way in of what a person does."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar

from workbench.errors import InputError, StorageError
from workbench.pools.pool import Pool
from workbench.reading import listed
from workbench.sessions.answering import CLOSING, Answers
from workbench.sessions.asking import Ask
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.family import Family, Parts
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.operations import (
    SKIPPED,
    Acknowledgement,
    Operation,
    checked,
    given_id,
    made_id,
    provenance,
    taken_id,
)
from workbench.sessions.project import Transaction
from workbench.sessions.published import Published
from workbench.sessions.questions import NO, YES, unknown_question
from workbench.sessions.rounds import Round
from workbench.sessions.taxonomy import name_of, new_name
from workbench.store import YES_NO, Event, ProjectRecord, ProjectState, ProjectSummary, Store
from workbench.store.events import SOURCE
from workbench.store.retry import retried

T = TypeVar("T")
_REMARKS = ("flag", "note")
# operations that are about other questions than the session's, too
_OF_ALL = ("skip", "answers", "amend")


class Several:
    """A project as one annotator has it open; a session is of one of its questions.

    Attributes:
        annotator: whose events this session records.
        fits: the models of the question: that of each round, and what it was made with.
    """

    def __init__(self, store: Store, project: ProjectRecord, pool: Pool, annotator: str) -> None:
        self._family = Family(store, project, pool)
        self._take(self._family.first, annotator)

    def as_annotator(self, annotator: str) -> Self:
        """The session of somebody else on the same open project: pool, events and fits are shared."""
        return self._on(Parts(self._project, self._questions, self.fits), annotator)

    def _on(self, parts: Parts, annotator: str) -> Self:
        """A session of a question of this project."""
        session = object.__new__(type(self))
        session._family = self._family
        session._take(parts, annotator)
        return session

    def _take(self, parts: Parts, annotator: str) -> None:
        self.annotator = _person(annotator)
        self._project, self._questions, self.fits = parts
        self._answers = Answers(self._project, self._questions, self.fits, self.annotator)

    # --- what is known ------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The project's id."""
        return self._project.id

    @property
    def store(self) -> Store:
        """The database."""
        return self._project.store

    @property
    def project(self) -> ProjectRecord:
        """As stored: id, name, pool reference, settings it began with."""
        return self._project.record

    @property
    def pool(self) -> Pool:
        """With its test split where there is one."""
        return self._project.pool

    @property
    def settings(self) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; what they name is not yet trusted."""
        return self._project.settings()

    @property
    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other sessions."""
        return self._project.state()

    @property
    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        return self._project.rounds()

    @property
    def model(self) -> FittedModel | None:
        """The last published fit, or None before the first."""
        published = self.fits.published()
        return None if published is None else published.model

    @property
    def stale(self) -> bool:
        """True if a refit would see labels, classes or settings that the published model has not seen."""
        return self.fits.is_stale()

    def _add(self, transaction: Transaction, event: Event) -> Event:
        return self._answers.add(transaction, event)

    @property
    def question_name(self) -> str:
        """Name of the question that this session is of."""
        return self._summary.question

    def question(self, name: str) -> Self:
        """The session of a question of this project: its own answers, model, rounds and figures.

        Args:
            name: of the question, or its id.

        Raises:
            InputError: there is none; says which there are.
        """
        for is_fresh in (False, True):
            ids = [
                summary.id
                for summary in self._family.listed(now=is_fresh)
                if name in (summary.question, summary.id)
            ]
            if ids:
                return self._on(self._family.parts(ids[0]), self.annotator)
        raise unknown_question(name, [summary.question for summary in self._family.listed()])

    def _asked(self) -> list[Self]:
        """The sessions of the questions that are asked, in their order."""
        every = self._family.listed()
        return [
            self._on(self._family.parts(summary.id), self.annotator) for summary in every if not summary.aside
        ]

    # --- asking -------------------------------------------------------------------------------

    def _prepare(self, state: ProjectState) -> Published | None:
        """The published fit; what takes a while is made, while nobody waits for it in a transaction."""
        published = self.fits.published(state)
        if published is None or len(state.trained_classes) < 2:
            self._questions.cold_items()  # k-means
        return published

    # --- answers ------------------------------------------------------------------------------

    def tell(
        self,
        ask: ItemAsk | Ask | str,
        event: Event | str | Mapping[str, Any],
        *,
        operation: str | None = None,
    ) -> bool:
        """Answer a question, or several about one item at once; durable before it returns.

        Args:
            ask: from `ask` or `queue.items`, or the id of a question.
            event: as of one question: a class name, or an event; or of several: name of a question -> class,
                True or False of a yes / no question, None for "cannot tell", or an event. To an item of
                `queue.items` also `Event.skip()`, `Event.flag(...)` and `Event.note(...)`, about it.
            operation: an id of the caller's: told again it is True, and nothing is repeated.

        Returns:
            True when all of it was recorded, or is what stands already. False when a question was answered
            before, or somebody else was asked: what is said of the others is recorded all the same.

        Raises:
            InputError: no such question or class, or an event that answers nothing.
        """
        operation_id = given_id(operation)
        if isinstance(event, Mapping):
            return self._tell_each(ask, event, operation_id)
        if not isinstance(ask, ItemAsk):
            return self._tell_one(ask, event, operation_id)
        if isinstance(event, Event) and event.kind in _REMARKS:
            return self._remark(ask.item, event, operation_id)
        if not (isinstance(event, Event) and event.kind == "skip") and len(ask.asks) > 1:
            raise InputError(
                "This item has several questions: answer with the name of each, as "
                f'tell(item, {{"{next(iter(ask.asks))}": ...}}).'
            )
        return self._tell_each(ask, dict.fromkeys(ask.asks, event), operation_id)

    def _tell_one(self, ask: Ask | str, event: Event | str, operation: str) -> bool:
        ask_id = ask.id if isinstance(ask, Ask) else ask
        if isinstance(event, str):
            event = Event.label(event)
        if not isinstance(ask_id, str) or not isinstance(event, Event):
            raise InputError(
                'A question is answered with the name of a class: tell(question, "pos"), where question is '
                "one of those that ask gave."
            )
        if event.kind in _REMARKS:
            return self._remark(self._answers.asked(self.state, ask_id).item, event, operation)
        if event.kind not in CLOSING:
            raise InputError(f"A question cannot be answered with {event.kind!r}; use the session's method.")
        more = dict(event.payload)
        label, item = str(more.pop("class", "")), int(more.pop("item", -1))
        acknowledgement = self._do(
            event.kind, operation, ask=ask_id, label=label, item=item, seen=False, more=more
        )
        return acknowledgement.status == "saved"

    def _remark(self, item: int, event: Event, operation: str) -> bool:
        own_fields = ("on", "reason", "text", "item")
        more = {key: value for key, value in event.payload.items() if key not in own_fields}
        on, text = event.payload.get("on", True), event.payload.get("reason", event.payload.get("text", ""))
        return self._do(event.kind, operation, item=item, on=on, text=text, more=more).status == "saved"

    def _tell_each(self, ask: ItemAsk | Ask | str, answers: Mapping[str, Any], operation: str) -> bool:
        if not answers:
            raise InputError("No question is answered.")
        if isinstance(ask, ItemAsk):
            item, asks = ask.item, tuple(one.id for one in ask.asks.values())
        else:
            asks = (ask.id if isinstance(ask, Ask) else ask,)
            item = self._answers.asked(self.state, asks[0]).item
        also = [self.question(str(name)) for name in answers]
        by_question = dict(zip([one.question_name for one in also], answers.values(), strict=True))
        if len(by_question) < len(answers):
            raise InputError(f"A question is answered twice, by its name and by its id: {listed(answers)}.")
        acknowledgement = self._do(
            "answers", operation, also, item=item, answers=by_question, asks=asks, seen=False
        )
        return acknowledgement.status == "saved" and not acknowledgement.why

    def _as_event(self, value: Any, *, new: bool = False) -> Event:
        """Answer of somebody to this question; with `new`, of a class that there may not be yet."""
        if value is None:
            return Event.unsure()
        if isinstance(value, bool):
            if self.project.kind != YES_NO:
                raise InputError(
                    f"{self.question_name!r} has classes: {', '.join(self.state.classes)}; got {value}."
                )
            value = YES if value else NO
        if isinstance(value, str):
            if new and self.project.kind == YES_NO:
                raise InputError(f"{self.question_name!r} is answered by {YES} or {NO}: it gets no class.")
            return Event.label(new_name(self.state, value) if new else name_of(self.state, value))
        if isinstance(value, Event) and value.kind in CLOSING:
            provenance({key: of for key, of in value.payload.items() if key not in ("item", "class")})
            if value.kind != "label":
                return value
            fields = {"class": name_of(self.state, str(value.payload["class"]))}
            return replace(value, payload={**value.payload, **fields})
        raise InputError(
            f"{self.question_name!r} is answered with the name of a class, None or an event; got {value!r}."
        )

    # --- acts, each one operation -------------------------------------------------------------

    def _event(self, kind: str, **fields: Any) -> Event:
        """Do one operation; the event that records it."""
        recorded = self._do(kind, **fields).event
        assert recorded is not None
        return recorded

    @retried
    def _do(
        self, kind: str, operation: str = "", also: Sequence[Self] = (), **fields: Any
    ) -> Acknowledgement:
        """Do one operation, under an id made for it unless it has one.

        Args:
            kind: of the operation.
            operation: its id.
            also: sessions of questions that it may be about beside those that are asked.
            fields: further fields of the operation.

        Raises:
            InputError: it is refused.
        """
        request = Operation(operation or made_id(), kind, **fields)
        # of many questions those that have no part in it are left alone: each costs a look into its log
        with self._writing(*also, alone=kind not in _OF_ALL) as sessions:
            acknowledgement = self._operate(request, sessions[1:])
        if acknowledgement.status == "refused":
            raise InputError(acknowledgement.why)
        return acknowledgement

    # --- transactions -------------------------------------------------------------------------

    def _others(self) -> list[Self]:
        """The sessions of the questions that are asked beside this one."""
        if len(self._family.listed()) < 2:
            return []
        return [session for session in self._asked() if session.id != self.id]

    @contextmanager
    def _writing(self, *also: Self, alone: bool = False) -> Iterator[list[Self]]:
        """One transaction over the questions that are asked, of which nothing counts where the block raises.

        Args:
            also: sessions of questions that may be put aside.
            alone: of this question only.

        Yields:
            This session and those of the other questions: of them it stays, whatever is added meanwhile.
        """
        other_sessions = [] if alone else self._others()
        log = self._project.log
        with log.together(), log.whole():  # who come at once share a transaction
            yield list({session.id: session for session in (self, *other_sessions, *also)}.values())

    @retried
    def apply(self, operations: Sequence[Operation]) -> list[Acknowledgement]:
        """Carry out what an annotator did, in one transaction; durable before it returns.

        A skip, a flag and a note are about the item, whichever question is open; an undo takes back in all
        questions what was said at once.

        Args:
            operations: in the order in which they were done.

        Returns:
            One acknowledgement each, in the same order. One that fails leaves the others as they are.
        """
        refused = [self._checked(operation) for operation in operations]
        with self._writing() as sessions:
            return [
                why or self._operate(operation, sessions[1:])
                for operation, why in zip(operations, refused, strict=True)
            ]

    @staticmethod
    def _checked(operation: Operation) -> Acknowledgement | None:
        """That an operation is refused, where it is none of a client's."""
        try:
            checked(operation)
        except InputError as error:
            if not isinstance(operation, Operation):
                raise
            return Acknowledgement(operation.id, "refused", str(error))
        return None

    def _operate(self, operation: Operation, others: Sequence[Self]) -> Acknowledgement:
        """Do an operation; `others` are the sessions of the other questions."""
        try:
            with self._project.log.whole():
                return self._done(operation, others)
        except StorageError:
            raise
        except InputError as error:
            return Acknowledgement(operation.id, "refused", str(error))

    def _done(self, operation: Operation, others: Sequence[Self]) -> Acknowledgement:
        every = {session.question_name: session for session in (self, *others)}
        if operation.kind in ("answers", "amend"):
            return self._answer_row(operation, every)
        if (name := operation.question or self.question_name) != self.question_name:
            if name not in every:
                raise unknown_question(name, list(every))
            return every[name]._done(operation, [one for one in every.values() if one is not every[name]])
        if operation.kind in ("undo", "redo"):
            return self._step(operation)
        recorded = self._project.log.recorded(operation.id)
        # an import is recorded with several questions under one id
        if recorded and self.id not in recorded and operation.kind != "import":
            raise InputError(taken_id(operation.id))
        state = self.state
        if operation.kind == "skip" and operation.ask in state.asks:
            operation = replace(operation, value=self._aside(state.asks[operation.ask].item, others))
        elif operation.kind == "want":
            open_items, waiting = set[int](), list[str]()
            for session in every.values() if operation.every else (self,):
                state, questions = session.state, session._questions
                open_items.update(questions.askable(state, measured=True).tolist())
                asks = questions.waiting(state, self.annotator)
                waiting += [ask.id for ask in asks if ask.role != "evaluation"]
            counted = [session._project.begun for session in every.values()]
            operation = replace(operation, value=(open_items, waiting, counted))
        with self._project.recording() as transaction:
            return self._answers.operate(transaction, operation)

    def _aside(self, item: int, sessions: Iterable[Self]) -> tuple[list[str], list[int]]:
        """Asks that a skip of an item closes, and the first events of the questions in which it counts."""
        asks, questions = [], []
        for session in sessions:
            ask_id = session._answers.to_skip(session.state, item)
            if ask_id is not None:
                questions.append(session._project.begun)
                asks += [ask_id] if ask_id else []
        return asks, questions

    def _answer_row(self, operation: Operation, every: Mapping[str, Self]) -> Acknowledgement:
        """Answers to several questions about one item, or that it is set aside, as one operation.

        Those that are open are stored; of the others it is said which they are, where something else stands.
        """
        recorded = self._project.log.recorded(operation.id)
        if not recorded:
            with self._project.log.whole():
                left_out = self._row(operation, every)
        elif {(event.annotator, event.item) for event in recorded.values()} == {
            (self.annotator, operation.item)
        }:
            answers = {every[name]: value for name, value in operation.answers.items() if name in every}
            left_out = [
                session.question_name
                for session, answer in answers.items()
                if session.id not in recorded and not session._stands(operation.item, answer)
            ]
        else:
            raise InputError(taken_id(operation.id))
        if not left_out:
            return Acknowledgement(operation.id, "saved")
        names = ", ".join(map(repr, left_out))
        why = f"{names}: answered for this item, or somebody else is being asked."
        if self._project.log.recorded(operation.id):
            return Acknowledgement(operation.id, "saved", f"Saved without {why}")
        return Acknowledgement(operation.id, "conflict", why)

    def _stands(self, item: int, answer: Any) -> bool:
        """Tell whether what an answer to this question says of an item stands about it already."""
        try:
            return self._answers.stands(self.state, item, self._as_event(answer))
        except InputError:  # its class is gone since
            return False

    def _row(self, operation: Operation, every: Mapping[str, Self]) -> list[str]:
        """Do what an operation says of a row; names of the questions that are left out."""
        item = self._answers.checked(operation.item)
        unknown = [name for name in operation.answers if name not in every]
        if unknown:
            raise unknown_question(unknown[0], list(every))
        # all of it is looked at before anything is written
        fresh = {
            n for n in operation.adds if n in every and operation.answers.get(n) not in every[n].state.classes
        }
        answers = [
            (every[name], every[name]._as_event(value, new=name in fresh))
            for name, value in operation.answers.items()
        ]
        aside = [session for session, event in answers if event.kind == "skip"]
        if operation.kind == "amend":
            self._amend(item, answers, operation, fresh)
            return []
        asks, questions = self._aside(item, every.values() if operation.text == SKIPPED else aside)
        if questions:
            skip = Event.skip(item, asks=asks, questions=questions, **operation.more)
            with self._project.recording() as transaction:
                self._answers.record(transaction, [skip], operation.id)
        left_out = [
            session.question_name
            for session in aside
            if session._project.begun not in questions and item not in session.state.skipped
        ]
        for session, event in answers:
            if event.kind == "skip":
                continue
            event = replace(event, payload={**event.payload, **operation.more})
            ask_id = next((ask for ask in operation.asks if ask in session.state.asks), "")
            if ask_id and session.state.asks[ask_id].item != item:
                about = session.state.asks[ask_id].item
                raise InputError(f"The question is about item {about}, and the answer about item {item}.")
            with session._project.recording() as transaction:
                recorded = session._answers.answer(
                    transaction,
                    item,
                    event,
                    ask_id,
                    operation.id,
                    seen=operation.seen,
                    new=session.question_name in fresh,
                )
            if not recorded and not session._answers.stands(session.state, item, event):
                left_out.append(session.question_name)
        return left_out

    def _amend(
        self, item: int, answers: Sequence[tuple[Self, Event]], operation: Operation, fresh: Container[str]
    ) -> None:
        """Answer several questions about an item again that this annotator answered before."""
        for session, event in answers:
            if event.kind == "skip":
                raise InputError(
                    "An answer is amended to a class, or to None; it cannot be skipped any more."
                )
            state = session.state
            has_answered = self.annotator in state.votes.get(item, {})
            if not has_answered and item not in state.skipped and item not in state.unsure:
                raise InputError(f"There is no answer of yours to {session.question_name!r} about this item.")
        for session, event in answers:
            label, new = str(event.payload.get("class", "")), session.question_name in fresh
            with session._project.recording() as transaction:
                events = session._answers.correction(
                    transaction.state, replace(operation, label=label, new=new)
                )
                session._answers.record(transaction, events, operation.id, operation.more)

    def undo(self, of: int | None = None) -> Event | None:
        """Take back the annotator's own last event, in all questions where it was said of several.

        Args:
            of: id of the event to take back, in whichever question; nothing happens when that is not of
                their last act any more, so that an undo sent twice takes one.

        Returns:
            What was taken back, or None.
        """
        if of is None:
            return self._do("undo").about
        states = self._project.log.states().values()
        tops = (state.undoable.get(self.annotator) for state in states)
        act = next((top.act for top in tops if top is not None and top.id == of), None)
        return None if act is None else self._do("undo", takes=act).about

    def redo(self) -> Event | None:
        """Put back what the annotator's last undo took; returns it, or None when there is nothing."""
        return self._do("redo").about

    def _last_acts(self) -> tuple[Event | None, Event | None]:
        """Events that an undo takes back and that a redo puts back, of any question."""
        states, annotator = self._project.log.states().values(), self.annotator
        # whatever was done since ends a redo, in whichever question, also where it is taken back by now
        newest = max((state.newest.get(annotator, 0) for state in states), default=0)
        acts = [state.undoable[annotator] for state in states if annotator in state.undoable]
        undone = {
            undo: state.redoable[annotator]
            for state in states
            if (undo := state.undone_by.get(annotator, 0)) > newest
        }
        last = max(acts, key=lambda event: event.id, default=None)
        return last, undone[max(undone)] if undone else None

    def _step(self, operation: Operation) -> Acknowledgement:
        """Take the annotator's last act back, or put it back, in all questions that it is of."""
        log, undo = self._project.log, operation.kind == "undo"
        # this question first: its event is what is told
        states = dict(sorted(log.states().items(), key=lambda pair: pair[0] != self.id))
        for question in sorted(log.recorded(operation.id), key=lambda id_: id_ != self.id):
            with log.recording(question) as transaction:
                return self._answers.operate(transaction, operation)
        last = self._last_acts()[not undo]
        if last is None:
            return Acknowledgement(operation.id, "conflict", f"There is nothing to {operation.kind}.")
        if operation.takes and last.act != operation.takes:
            names = {summary.id: summary.question for summary in self._family.listed(now=True)}
            since = "since" if last.question in (None, self.id) else f"in {names[last.question]!r} since"
            why = f"You did something else {since}: {operation.kind} that first."
            return Acknowledgement(operation.id, "conflict", why)
        tops = [(state.undoable if undo else state.redoable).get(self.annotator) for state in states.values()]
        # what is about items is the last of all questions that it counts in
        of_act = list({top.id: top for top in tops if top is not None and top.act == last.act}.values())
        events = []
        for top in of_act:
            with log.recording(top.question or self.id) as transaction:
                about = {name: top.payload[name] for name in ("questions",) if name in top.payload}
                step = replace(Event(operation.kind, {"of": top.id, **about}), question=top.question)
                events.append(self._answers.record(transaction, [step], operation.id, operation.more))
        return Acknowledgement(operation.id, "saved", about=of_act[0], event=events[0])

    @property
    def _summary(self) -> ProjectSummary:
        return next(summary for summary in self._family.listed() if summary.id == self.id)


class Part:
    """Methods of a session about one matter.

    Args:
        session: of the annotator.
    """

    def __init__(self, session: Several) -> None:
        self._session = session


class Names(tuple[str, ...]):
    """Names of one moment, with methods of a session about them; in another process they are names alone."""

    _session: Any

    def __new__(cls, names: Iterable[str], session: Several | None = None) -> Self:
        """Those of a session."""
        self = super().__new__(cls, names)
        self._session = session
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def _person(name: str) -> str:
    """The name of somebody who labels.

    Raises:
        InputError: an empty one, or that of the pool's own labels.
    """
    cleaned = name.strip()
    if not cleaned:
        raise InputError("An annotator needs a name.")
    if cleaned == SOURCE:
        raise InputError(f"{SOURCE} is the name of what the pool brings; choose another one.")
    return cleaned
