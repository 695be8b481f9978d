"""Questions that a desk asks about each item: one is the case of one; checks filter what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.app.access import current
from workbench.app.desk import cards
from workbench.app.desk.keys import COMMANDS, MAX_BUTTONS, class_keys, keys_for
from workbench.app.desk.operations import EVERY, MOST_CARDS
from workbench.app.words import acts
from workbench.errors import InputError
from workbench.sessions import Session
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.finish_state import FinishState
from workbench.sessions.questions import YES
from workbench.store import YES_NO, Ask
from workbench.store.fold_items import vote_of

MOST_GRIDS = 24
"""Grids to choose from."""
FEW_KEYS = 9
"""Keys of a question with more classes than there are keys: the switches have the others."""
_BY_MODEL = ("policy", "uniform", "cold-start", "together")
"""Roles of questions that a newer model would choose anew."""


@dataclass(frozen=True)
class Given:
    """Reply to what a browser holds and wants.

    Attributes:
        asks: items, in their order, with the questions that are open about each.
        gone: of the browser's, those that need no answer any more.
        released: of the browser's, those given back for better ones.
        known: of the browser's, those that stay.
        checks: what the checks of frozen labels say, where these are asked for.
    """

    asks: Sequence[ItemAsk]
    gone: Sequence[str]
    released: Sequence[str]
    known: Sequence[str]
    checks: FinishState | None


@dataclass(frozen=True)
class Desk:
    """Questions that one person is asked about each item.

    Attributes:
        session: of the person.
        sessions: of the questions, in their order.
        checking: whether only frozen labels are asked about, blind and in their order.
        on: whether checks go on although it is decided.
    """

    session: Session
    sessions: Sequence[Session]
    checking: bool = False
    on: bool = False

    @classmethod
    def of(cls, session: Session, body: Mapping[str, Any]) -> Desk:
        """The desk that sent a request.

        Args:
            session: of the person.
            body: of the request; mode "every" is of all questions, "check" of frozen labels, and otherwise it
                is of the session's question.
        """
        mode = body.get("mode")
        sessions = session.questions.sessions() if mode == EVERY and len(session.questions) > 1 else [session]
        return cls(session, sessions, mode == cards.CHECK_MODE, bool(body.get("on")))

    @property
    def number(self) -> int | None:
        """A number that grows with every fit of any question; None before the first, and for checks."""
        models = [session.model for session in self.sessions]
        numbers = [model.number + 1 for model in models if model is not None]
        return sum(numbers) - 1 if numbers and not self.checking else None

    # --- what is asked ------------------------------------------------------------------------

    def exchange(self, have: Sequence[str], want: int, screen: str, *, turned: bool, newer: bool) -> Given:
        """Give back what is old, and ask for what is wanted.

        Args:
            have: names of the browser's items, each the id of its first question.
            want: how many items more.
            screen: the one that is shown.
            turned: whether the browser turned to it since its last request.
            newer: whether its items were chosen by older models.
        """
        checks = self.session.checks.state() if self.checking else None
        open_ids = {ask for session in self.sessions for ask in session.queue.still_open(have)}
        known = [ask for ask in have if ask in open_ids]
        if not self.checking:
            if screen in known:
                self._reclaim(screen, first=turned)
            if newer:
                self._give_back(known, screen)
        n = min(len(known) + want, 2 * MOST_CARDS)
        asks = self._next(n, checks) if n else []
        names = {ask.item: first_of(ask) for ask in asks}
        # also what the person wanted others before, and an item that has another first question by now
        released = [
            ask.id
            for ask in self._records(known)
            if ask.id != screen and (ask.released or names.get(ask.item, ask.id) != ask.id)
        ]
        gone = [ask for ask in have if ask not in open_ids]
        return Given(asks, gone, released, [ask for ask in known if ask not in released], checks)

    def _next(self, n: int, checks: FinishState | None) -> list[ItemAsk]:
        if len(self.sessions) > 1:
            return self.session.queue.items(n)
        session = self.session
        asks = cards.check_cards(session, checks, n, self.on) if self.checking else session.ask(n)
        return [ItemAsk(ask.item, {session.question_name: ask}) for ask in asks]

    def _records(self, ask_ids: Iterable[str]) -> list[Ask]:
        states = [session.state for session in self.sessions]
        return [state.asks[ask] for ask in ask_ids for state in states if ask in state.asks]

    def _reclaim(self, screen: str, *, first: bool) -> None:
        """Take the item on screen back, given back or put behind others while the browser turned to it.

        A reload shows it all the same.
        """
        shown = self._records([screen])[0]
        for session in self.sessions:
            asks, own_asks = session.state.asks, [screen]
            if screen not in asks:
                ids = asks if shown.released else session.state.waiting.get(session.annotator, ())
                own = shown.item, session.annotator
                own_asks = [i for i in ids if (asks[i].item, asks[i].annotator) == own]
            session.queue.reclaim(own_asks[-1:], first=first)

    def _give_back(self, known: Sequence[str], screen: str) -> None:
        """Give back what older models chose, but for the item on screen; of a new page, for the first one."""
        waiting = []
        for session in self.sessions:
            state = session.state
            ids = [i for i in state.waiting.get(session.annotator, ()) if not state.asks[i].released]
            waiting += [(session, state.asks[i]) for i in session.queue.still_open(ids)]
        shown = next((ask.item for _, ask in waiting if ask.id == screen or not known), -1)
        numbers = {
            session.id: -1 if (model := session.model) is None else model.number for session in self.sessions
        }
        old = {
            ask.item
            for session, ask in waiting
            if ask.id in known or (not known and ask.role in _BY_MODEL and ask.round != numbers[session.id])
        } - {shown}
        for session in self.sessions:
            session.queue.release([ask.id for of, ask in waiting if of is session and ask.item in old])

    # --- what is shown ------------------------------------------------------------------------

    def asked(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """The questions with their keys, and the commands' keys.

        Switches have keys of their own; of questions with classes one is answered at a time, so they share
        the first ones. A key stays while another question is put aside. With more switches than keys they
        are searched by typing.
        """
        if len(self.sessions) == 1:
            classes, commands = class_keys(self.session)
            return [_about(self.session) | {"classes": classes}], commands
        by_id = {question.id: question for question in self.sessions}
        every = [question.id for question in self.session.questions.every]
        n_keys, switches = _in_need([by_id.get(id_) or self.session.question(id_) for id_ in every])
        if n_keys + len(switches) > MAX_BUTTONS:
            n_keys, switches = _in_need(self.sessions)
        places = [f"class number {place}" for place in range(n_keys)]
        all_keys = keys_for([*places, *(f"switch {name}" for name in switches)])
        # where switches are searched by typing, letters are words
        of_classes = list(all_keys.classes[:n_keys] or keys_for(places).classes[:FEW_KEYS])
        of_switches = dict(zip(switches, all_keys.classes[n_keys:], strict=False))
        documents = []
        for question in self.sessions:
            about = _about(question)
            if question.project.kind == YES_NO:
                about["key"] = of_switches.get(question.question_name, "")
            else:
                classes, _ = class_keys(question)
                keys = [*of_classes, *[""] * len(classes)][: len(classes)]
                about["classes"] = [entry | {"key": key} for entry, key in zip(classes, keys, strict=True)]
            documents.append(about)
        commands = all_keys.commands if all_keys.classes else {**COMMANDS, **all_keys.commands}
        return documents, dict(commands)

    def numbers(self, number: int | None, checks: FinishState | None) -> dict[str, Any]:
        """The numbers of a reply, over all questions, with the `number` of its items and what checks say."""
        states = [session.state for session in self.sessions]
        models = [model for session in self.sessions if (model := session.model) is not None]
        about: dict[str, Any] = {
            "labelled": len({item for state in states for item in state.codes}),
            "total": int(self.session.pool.trainable.size),
            "left": max((session.queue.n_left for session in self.sessions), default=0),
            "skipped": max((len(state.skipped) for state in states), default=0),
            "unsure": max((len(state.unsure) for state in states), default=0),
            **acts.steps(self.session),
            "model": number,
            "learned": max((model.n_labelled for model in models), default=0),
            "fitting": any(_fitting(session) for session in self.sessions),
        }
        if not self.checking:
            return about
        figures = cards.check_figures(checks)
        of_checks: dict[str, Any] = {
            "left": figures.get("unchecked", 0),
            "learned": 0,
            "fitting": False,
            "check": figures,
        }
        return about | of_checks

    def history(self, n: int, picture: str) -> list[dict[str, Any]]:
        """The items that the person decided about last, newest first, with `said` of each question.

        Args:
            n: how many items, at most.
            picture: address of pictures, with {item} in it.
        """
        items = []
        for item in self._decided(n):
            about = self.stands(item, own=True) | {
                "open": False,
                "face": cards.face(self.session.pool, item, picture),
            }
            skipped = [question.question_name for question in self.sessions if item in question.state.skipped]
            items.append(about | {"questions": [{"name": name} for name in about["said"] or skipped]})
        return items

    def stands(self, item: int, *, own: bool = False) -> dict[str, Any]:
        """Decision about an item: the person's own where they have one, else that of all.

        `said` is the class of each question that is answered, or None for unsure; with `own`, of several
        questions those alone that the person answered: no other can be amended.
        """
        answers: dict[str, str | None] = {}
        for session in self.sessions:
            state = session.state
            vote = vote_of(state.votes.get(item, {}), session.annotator)
            if vote is not None:
                answers[session.question_name] = state.class_name(vote.key)
            elif item in state.labels and not (own and len(self.sessions) > 1):
                answers[session.question_name] = state.labels[item]
            elif item in state.unsure:
                answers[session.question_name] = None
        about = acts.stands(self.session.state, item) | {"id": str(self.session.pool.items.ids[item])}
        if len(self.sessions) > 1:
            is_skipped = any(item in session.state.skipped for session in self.sessions)
            about["kind"] = "answers" if answers else "skip" if is_skipped else ""
        elif answers and (name := next(iter(answers.values()))):
            about["class"] = name
        return about | {"said": answers}

    def askable(self) -> set[int]:
        """Items about which a question is open."""
        return {
            item
            for session in self.sessions
            for item in set(session.pool.trainable.tolist()) - session.state.answered
        }

    def _decided(self, n: int) -> list[int]:
        """The items that the person decided about last, newest first, that still have a decision."""
        times: dict[int, str] = {}
        for session in self.sessions:
            answered, n_items = session.state.answered, 0
            for event in reversed(session.log.events):
                is_own = event.annotator == session.annotator and event.kind in ("label", "skip", "unsure")
                if not is_own or event.item is None or event.item not in answered:
                    continue
                n_items += event.item not in times
                times[event.item] = max(event.time, times.get(event.item, event.time))
                if n_items == n:
                    break
        return sorted(times, key=lambda item: times[item], reverse=True)[:n]

    def grid(self, question: object = None, name: object = None) -> tuple[Session, str, dict[str, Any]]:
        """Question and class of a grid.

        Yes of a switch comes before no, and what the models are surest of first.

        Args:
            question: the name of the one that is wanted; None for the first.
            name: the class of it that is wanted.

        Returns:
            The session of the question, the class, and what the reply says of them: question, switch (whether
            it is answered by yes or no) and others: what there could be instead, each with question, class
            and n.

        Raises:
            InputError: no question has a model, or none has an item left.
        """
        groups, why = [], "There is no question."
        for session in self.sessions:
            try:
                groups += [(session, group) for group in session.predictions.classes()]
            except InputError as error:
                why = str(error)
        if not groups:
            raise InputError(why)

        def order(entry: tuple[Session, Any]) -> tuple[bool, float]:
            session, group = entry
            return session.project.kind == YES_NO and group.name != YES, -group.sure

        groups.sort(key=order)
        matches = [
            entry for entry in groups if entry[1].name == name and question in (None, entry[0].question_name)
        ]
        of, group = (matches or groups)[0]
        alternatives = [
            {"question": session.question_name, "class": group.name, "n": group.n_items}
            for session, group in groups[:MOST_GRIDS]
        ]
        is_switch = of.project.kind == YES_NO
        return of, group.name, {"question": of.question_name, "switch": is_switch, "others": alternatives}


def first_of(ask: ItemAsk) -> str:
    """Name of the item's questions in a browser: the id of the first."""
    return next(iter(ask.asks.values())).id


def words(session: Session) -> str:
    """Header above an item with all questions."""
    return f"{len(session.questions)} questions about this {_CALLED[session.pool.kind]}"


_CALLED = {"image": "picture", "text": "text", "table": "row"}


def _about(session: Session) -> dict[str, Any]:
    return {
        "name": session.question_name,
        "kind": session.project.kind,
        "words": str(session.settings.get("question") or ""),
    }


def _in_need(sessions: Sequence[Session]) -> tuple[int, list[str]]:
    """Number of keys that the classes of these questions share, and the switches, which have one each."""
    counts = [len(session.classes) for session in sessions if session.project.kind != YES_NO]
    n_keys = max((n if n <= MAX_BUTTONS else FEW_KEYS for n in counts), default=0)
    return n_keys, [session.question_name for session in sessions if session.project.kind == YES_NO]


def _fitting(session: Session) -> bool:
    """True if a model that knows more is on its way."""
    return session.stale and current.fit_comes(session)


OF_KIND = {
    "image": "What does this picture show?",
    "text": "Which class does this text belong to?",
    "table": "Which class does this row belong to?",
}
LONGEST = 30  # characters of a column's name that reads well in a question


def question(session: Session) -> str:
    """Question about each item: the project's words, else its pool's, else made from its target.

    Args:
        session: of the project.
    """
    return str(session.settings.get("question") or "") or usual(session)


def usual(session: Session) -> str:
    """The question that a project comes with; of several the one with the session's name."""
    from workbench.pools import POOLS

    if len(session.questions.every) > 1:
        name = " ".join(session.question_name.split())
        return f"{name}: yes or no?" if session.project.kind == YES_NO else f"Which {name} is this?"

    pool = session.project.pool
    name = str(pool["name"])
    if name in POOLS and POOLS[name].question:
        return POOLS[name].question
    options = pool.get("options") or {}
    columns = dict(options.get("columns") or {})
    of_class = next((column for column, use in columns.items() if use.get("use") == "class"), "")
    target = " ".join(str(options.get("target") or of_class).replace("_", " ").split())
    plain = target.lower() in ("", "label", "class", "target", "y")
    if not plain and len(target) <= LONGEST and session.pool.kind != "image":
        return f"Which {target} is this?"
    return OF_KIND[session.pool.kind]
