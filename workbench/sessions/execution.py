"""Operations carried out, over all questions, each whole or not at all; responses as operations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from workbench.errors import InputError, StorageError
from workbench.reading import listed
from workbench.sessions.answering import CLOSING
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.open_session import OpenSession
from workbench.sessions.operations import SKIPPED, Acknowledgement, Operation, check_of_client, taken_id
from workbench.sessions.questions import unknown_question
from workbench.store import Ask, Event
from workbench.store.database_errors import retried

# operations that are about other questions than the session's, too
_OF_ALL = ("skip", "answers", "amend")


class Execution:
    """Operations of one annotator, and the transactions they are carried out in.

    Args:
        session: of the annotator.
    """

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self._log, self._answers, self._annotator = session._project.log, session._answers, session.annotator

    @retried
    def do(self, operation: Operation, also: Sequence[OpenSession] = ()) -> Acknowledgement:
        """Do one operation of the session's own.

        Args:
            operation: with an id.
            also: sessions of questions that it may be about beside those that are asked.

        Raises:
            InputError: it is refused.
        """
        # of many questions those that have no part in it are left alone: each costs a look into its log
        with self._writing(*also, alone=operation.kind not in _OF_ALL) as sessions:
            acknowledgement = self._operate(operation, sessions[1:])
        if acknowledgement.status == "refused":
            raise InputError(acknowledgement.why)
        return acknowledgement

    @retried
    def apply(self, operations: Sequence[Operation]) -> list[Acknowledgement]:
        """See `Session.apply`."""
        for operation in operations:
            if not isinstance(operation, Operation):
                raise InputError(f"What was done is said by an Operation; got {operation!r:.80}.")
        with self._writing() as sessions:
            return [self._operate(operation, sessions[1:], True) for operation in operations]

    @contextmanager
    def _writing(self, *also: OpenSession, alone: bool = False) -> Iterator[list[OpenSession]]:
        """One transaction over the questions that are asked, of which nothing counts where the block raises.

        Args:
            also: sessions of questions that may be put aside.
            alone: of this question only.

        Yields:
            This session and those of the other questions: of them it stays, whatever is added meanwhile.
        """
        sessions = (self._session, *([] if alone else self._session._others()), *also)
        with self._log.together(), self._log.whole():  # who come at once share a transaction
            yield list({session.id: session for session in sessions}.values())

    def _operate(
        self,
        operation: Operation,
        others: Sequence[OpenSession],
        is_client: bool = False,
    ) -> Acknowledgement:
        """Do an operation; `others` are the sessions of the other questions."""
        try:
            if is_client:
                check_of_client(operation)
            with self._log.whole():
                return self._done(operation, others)
        except StorageError:
            raise
        except InputError as error:
            return Acknowledgement(operation.id, "refused", str(error))

    def _done(self, operation: Operation, others: Sequence[OpenSession]) -> Acknowledgement:
        this = self._session
        every = {session.question_name: session for session in (this, *others)}
        if operation.kind in ("answers", "amend"):
            return self._answer_row(operation, every)
        if (name := operation.question or this.question_name) != this.question_name:
            if name not in every:
                raise unknown_question(name, list(every))
            other = every.pop(name)
            return Execution(other)._done(operation, list(every.values()))
        if operation.kind in ("undo", "redo"):
            return self._step(operation)
        recorded = self._log.recorded(operation.id)
        # an import is recorded with several questions under one id
        if recorded and this.id not in recorded and operation.kind != "import":
            raise InputError(taken_id(operation.id))
        state = this.state
        if operation.kind == "skip" and operation.ask in state.asks:
            operation = replace(operation, value=_aside(state.asks[operation.ask].item, others))
        elif operation.kind == "want":
            open_items, waiting = set[int](), list[str]()
            for session in every.values() if operation.every else (this,):
                state, questions = session.state, session._questions
                open_items.update(questions.askable(state, measured=True).tolist())
                asks = questions.waiting(state, self._annotator)
                waiting += [ask.id for ask in asks if ask.role != "evaluation"]
            counted = [session._project.begun for session in every.values()]
            operation = replace(operation, value=(open_items, waiting, counted))
        with this._project.recording() as transaction:
            return self._answers.operate(transaction, operation)

    def _answer_row(self, operation: Operation, every: Mapping[str, OpenSession]) -> Acknowledgement:
        """Answers to several questions about one item, or that it is set aside, as one operation.

        Those that are open are stored; of the others it is said which they are, where something else stands.
        """
        recorded = self._log.recorded(operation.id)
        if not recorded:
            left_out = self._row(operation, every)
        elif {(event.annotator, event.item) for event in recorded.values()} == {
            (self._annotator, operation.item)
        }:
            answers = {every[name]: value for name, value in operation.answers.items() if name in every}
            left_out = [
                session.question_name
                for session, answer in answers.items()
                if session.id not in recorded and not _stands(session, operation.item, answer)
            ]
        else:
            raise InputError(taken_id(operation.id))
        if not left_out:
            return Acknowledgement(operation.id, "saved")
        names = ", ".join(map(repr, left_out))
        why = f"{names}: answered for this item, or somebody else is being asked."
        if self._log.recorded(operation.id):
            return Acknowledgement(operation.id, "saved", f"Saved without {why}")
        return Acknowledgement(operation.id, "conflict", why)

    def _row(self, operation: Operation, every: Mapping[str, OpenSession]) -> list[str]:
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
            (every[name], every[name]._answers.event_of(value, new=name in fresh))
            for name, value in operation.answers.items()
        ]
        aside = [session for session, event in answers if event.kind == "skip"]
        if operation.kind == "amend":
            self._amend(answers, operation, fresh)
            return []
        asks, questions = _aside(item, every.values() if operation.text == SKIPPED else aside)
        if questions:
            skip = Event.skip(item, asks=asks, questions=questions, **operation.more)
            with self._session._project.recording() as transaction:
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
        self, answers: Sequence[tuple[OpenSession, Event]], operation: Operation, fresh: set[str]
    ) -> None:
        """Answer several questions about an item again that this annotator answered before."""
        for session, event in answers:
            if event.kind == "skip":
                raise InputError(
                    "An answer is amended to a class, or to None; it cannot be skipped any more."
                )
            label, new = str(event.payload.get("class", "")), session.question_name in fresh
            with session._project.recording() as transaction:
                events = session._answers.correction(
                    transaction.state, replace(operation, label=label, new=new)
                )
                session._answers.record(transaction, events, operation.id, operation.more)

    def last_acts(self) -> tuple[Event | None, Event | None]:
        """Events that an undo takes back and that a redo puts back, of any question."""
        states, annotator = self._log.states().values(), self._annotator
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
        log, undo, this = self._log, operation.kind == "undo", self._session
        # this question first: its event is what is told
        states = dict(sorted(log.states().items(), key=lambda pair: pair[0] != this.id))
        for question in sorted(log.recorded(operation.id), key=lambda id_: id_ != this.id):
            with log.recording(question) as transaction:
                return self._answers.operate(transaction, operation)
        last = self.last_acts()[not undo]
        if last is None:
            return Acknowledgement(operation.id, "conflict", f"There is nothing to {operation.kind}.")
        if operation.takes and last.act != operation.takes:
            names = {summary.id: summary.question for summary in this._family.listed(now=True)}
            since = "since" if last.question in (None, this.id) else f"in {names[last.question]!r} since"
            why = f"You did something else {since}: {operation.kind} that first."
            return Acknowledgement(operation.id, "conflict", why)
        tops = [
            (state.undoable if undo else state.redoable).get(self._annotator) for state in states.values()
        ]
        # what is about items is the last of all questions that it counts in
        of_act = list({top.id: top for top in tops if top is not None and top.act == last.act}.values())
        events = []
        for top in of_act:
            with log.recording(top.question or this.id) as transaction:
                about = {name: top.payload[name] for name in ("questions",) if name in top.payload}
                step = replace(Event(operation.kind, {"of": top.id, **about}), question=top.question)
                events.append(self._answers.record(transaction, [step], operation.id, operation.more))
        return Acknowledgement(operation.id, "saved", about=of_act[0], event=events[0])


def _stands(session: OpenSession, item: int, answer: Any) -> bool:
    """Tell whether what an answer to a question says of an item stands about it already."""
    try:
        return session._answers.stands(session.state, item, session._answers.event_of(answer))
    except InputError:  # its class is gone since
        return False


def _aside(item: int, sessions: Iterable[OpenSession]) -> tuple[list[str], list[int]]:
    """Asks that a skip of an item closes, and the first events of the questions in which it counts."""
    asks, questions = [], []
    for session in sessions:
        ask_id = session._answers.to_skip(session.state, item)
        if ask_id is not None:
            questions.append(session._project.begun)
            asks += [ask_id] if ask_id else []
    return asks, questions


_REMARKS = ("flag", "note")


def operation_of(
    session: OpenSession, ask: ItemAsk | Ask | str, response: Event | str | Mapping[str, Any], id_: str
) -> tuple[Operation, list[OpenSession]]:
    """Operation that says what `Session.tell` is told, and the sessions of the questions that it names.

    Args:
        session: of whoever answers.
        ask: what was asked, as `Session.tell` takes it.
        response: what is said of it, likewise.
        id_: of the operation.

    Raises:
        InputError: no such question or class, or a response that answers nothing.
    """
    if isinstance(response, Mapping):
        return _of_row(session, ask, response, id_)
    if not isinstance(ask, ItemAsk):
        return _of_one(session, ask, response, id_), []
    if isinstance(response, Event) and response.kind in _REMARKS:
        return _remark(ask.item, response, id_), []
    if not (isinstance(response, Event) and response.kind == "skip") and len(ask.asks) > 1:
        raise InputError(
            "This item has several questions: answer with the name of each, as "
            f'tell(item, {{"{next(iter(ask.asks))}": ...}}).'
        )
    return _of_row(session, ask, dict.fromkeys(ask.asks, response), id_)


def _of_one(session: OpenSession, ask: Ask | str, response: Event | str, id_: str) -> Operation:
    ask_id = ask.id if isinstance(ask, Ask) else ask
    event = Event.label(response) if isinstance(response, str) else response
    if not isinstance(ask_id, str) or not isinstance(event, Event):
        raise InputError(
            'A question is answered with the name of a class: tell(question, "pos"), where question is '
            "one of those that ask gave."
        )
    if event.kind in _REMARKS:
        return _remark(session._answers.asked(session.state, ask_id).item, event, id_)
    if event.kind not in CLOSING:
        raise InputError(f"A question cannot be answered with {event.kind!r}; use the session's method.")
    more = dict(event.payload)
    label, item = str(more.pop("class", "")), int(more.pop("item", -1))
    return Operation(id_, event.kind, ask=ask_id, label=label, item=item, seen=False, more=more)


def _remark(item: int, event: Event, id_: str) -> Operation:
    own_fields = ("on", "reason", "text", "item")
    more = {key: value for key, value in event.payload.items() if key not in own_fields}
    on, text = event.payload.get("on", True), event.payload.get("reason", event.payload.get("text", ""))
    return Operation(id_, event.kind, item=item, on=on, text=text, more=more)


def _of_row(
    session: OpenSession, ask: ItemAsk | Ask | str, answers: Mapping[str, Any], id_: str
) -> tuple[Operation, list[OpenSession]]:
    if not answers:
        raise InputError("No question is answered.")
    if isinstance(ask, ItemAsk):
        item, asks = ask.item, tuple(question.id for question in ask.asks.values())
    else:
        asks = (ask.id if isinstance(ask, Ask) else ask,)
        item = session._answers.asked(session.state, asks[0]).item
    questions = [session.question(str(name)) for name in answers]
    by_question = dict(zip([question.question_name for question in questions], answers.values(), strict=True))
    if len(by_question) < len(answers):
        raise InputError(f"A question is answered twice, by its name and by its id: {listed(answers)}.")
    return Operation(id_, "answers", item=item, answers=by_question, asks=asks, seen=False), questions
