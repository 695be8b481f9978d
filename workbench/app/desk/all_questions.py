"""The desk that asks all questions of a project about the item on screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.app.desk import cards
from workbench.app.desk.keys import COMMANDS, MAX_BUTTONS, keys_for
from workbench.app.desk.operations import EVERY
from workbench.app.words import acts
from workbench.errors import InputError
from workbench.sessions.questions import YES
from workbench.store import YES_NO

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.asking_items import ItemAsk
    from workbench.sessions.opened import Taken

MODE = EVERY
MOST_GRIDS = 24
"""Grids to choose from."""
FEW_KEYS = 9
"""Keys of a question with more classes than there are keys: the switches have the others."""
UNSURE = (0.2, 0.8)
"""Between these a switch is marked: the model does not know."""


def asked(session: Session) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The questions with their keys, and the commands' keys.

    Switches have keys of their own; of questions with classes one is answered at a time, so they share the
    first ones. A key stays while another question is put aside. With more switches than keys they are
    searched by typing.
    """
    sessions = session.asked()
    by_id = {question.id: question for question in sessions}
    n_keys, switches = _in_need(
        [by_id.get(question.id) or session.question(question.id) for question in session.every_question]
    )
    if n_keys + len(switches) > MAX_BUTTONS:
        n_keys, switches = _in_need(sessions)
    places = [f"class number {place}" for place in range(n_keys)]
    all_keys = keys_for([*places, *(f"switch {name}" for name in switches)])
    few = keys_for(places)
    of_classes = list((all_keys.classes or few.classes)[:n_keys])
    of_switches = dict(zip(switches, all_keys.classes[n_keys:], strict=False))
    documents = []
    for question in sessions:
        about: dict[str, Any] = {"name": question.question_name, "kind": question.question_kind}
        about["words"] = str(question.settings.get("question") or "")
        if question.question_kind == YES_NO:
            about["key"] = of_switches.get(question.question_name, "")
        else:
            names = question.state.shown_classes
            keys = [*of_classes, *[""] * len(names)][: len(names)]
            about["classes"] = [{"name": n, "key": k} for n, k in zip(names, keys, strict=True)]
        documents.append(about)
    commands = all_keys.commands if all_keys.classes else {**COMMANDS, **all_keys.commands}
    return documents, dict(commands)


def _in_need(sessions: Sequence[Session]) -> tuple[int, list[str]]:
    """Number of keys that the classes of these questions share, and the switches, which have one each."""
    counts = [len(session.classes) for session in sessions if session.question_kind != YES_NO]
    n_keys = max((n if n <= MAX_BUTTONS else FEW_KEYS for n in counts), default=0)
    return n_keys, [session.question_name for session in sessions if session.question_kind == YES_NO]


def card(sessions: Mapping[str, Session], ask: ItemAsk, picture: str) -> dict[str, Any]:
    """An item with its open questions and what each model says.

    Args:
        sessions: name of a question -> its session, of the person.
        ask: the item.
        picture: address of pictures, with {item} in it.
    """
    name = next((n for n, one in ask.asks.items() if one.role != "together"), next(iter(ask.asks)))
    document = cards.card(sessions[name], ask.asks[name], picture)
    for alone in ("guess", "guess_order", "near", "said", "differs", "early", "twins"):
        document.pop(alone, None)
    questions = []
    has_model = any(sessions[one].model is not None for one in ask.asks)
    for one, question_ask in ask.asks.items():
        about: dict[str, Any] = {"name": one}
        session = sessions[one]
        if session.model is not None and question_ask.role not in cards.BLIND:
            foretold = session.predict_item(ask.item)
            if session.question_kind == YES_NO:
                about["p"] = round(foretold.get(YES, 0.0), 3)
                about["unsure"] = UNSURE[0] < about["p"] < UNSURE[1]
            else:
                guess, p = max(foretold.items(), key=lambda pair: pair[1])
                about |= {"guess": guess, "p": round(p, 3), "unsure": p < UNSURE[1]}
        elif session.model is None and has_model:
            about["new"] = True  # beside others that stand at a guess it stands at none
        questions.append(about)
    return document | {"ask": first_of(ask), "questions": questions, "why": f"{name}: {document['why']}"}


def first_of(ask: ItemAsk) -> str:
    """Name of the item's questions in a browser: the id of the first."""
    return next(iter(ask.asks.values())).id


def model_number(sessions: Sequence[Session]) -> int | None:
    """A number that grows with every fit of any question; None before the first."""
    numbers = [session.model.number + 1 for session in sessions if session.model is not None]
    return sum(numbers) if numbers else None


def release_old(sessions: Sequence[Session], screen: str) -> None:
    """Give back what was chosen by older models, but for the item on screen."""
    screen_item = next(
        (session.state.asks[screen].item for session in sessions if screen in session.state.asks), -1
    )
    for session in sessions:
        state = session.state
        waiting = state.waiting.get(session.annotator, ())
        old = [i for i in waiting if state.asks[i].item != screen_item and not state.asks[i].released]
        roles = ("policy", "uniform", "cold-start", "together")
        session.release([i for i in old if state.asks[i].role in roles])


def reclaim(sessions: Sequence[Session], screen: str) -> None:
    """Take the item on screen back, where it was given back while the browser turned to it."""
    of = next((session.state for session in sessions if screen in session.state.asks), None)
    if of is None or not of.asks[screen].released:
        return
    item = of.asks[screen].item
    for session in sessions:
        own_asks = [
            ask
            for ask in session.state.asks.values()
            if (ask.item, ask.annotator) == (item, session.annotator)
        ]
        session.reclaim([ask.id for ask in own_asks[-1:] if ask.released])


def answered(sessions: Sequence[Session], ask_ids: Sequence[str]) -> list[str]:
    """Those items of a browser, called as `first_of` does, that need no answer any more."""
    still = {ask for session in sessions for ask in session.still_open(ask_ids)}
    return [ask for ask in ask_ids if ask not in still]


def history(session: Session, n: int, picture: str) -> dict[str, Any]:
    """The items a person decided about last, as `routes.look` gives a history, with `said` of each question.

    Args:
        session: of the person, of any question.
        n: how many items, at most.
        picture: address of pictures, with {item} in it.
    """
    sessions = session.asked()
    items = []
    for item, answers in earlier(sessions, session.annotator, n).items():
        about = {"item": item, "id": str(session.pool.items.ids[item]), "open": False, "said": answers}
        about |= {"kind": "answers" if answers else "skip", "flag": item in session.state.flagged}
        names = answers or [question.question_name for question in sessions if item in question.state.skipped]
        about["questions"] = [{"name": name} for name in names]
        items.append(about | {"face": cards.face(session.pool, item, picture)})
    return {"items": items, "open": [], "askable": 0, "total": len(items)}


def earlier(sessions: Sequence[Session], person: str, n: int) -> dict[int, dict[str, str | None]]:
    """The items that a person decided about last, newest first, with what they said of each question.

    Args:
        sessions: of the questions that are asked.
        person: whose answers.
        n: how many items, at most.

    Returns:
        Item -> name of a question -> class, or None for unsure; without those that were set aside.
    """
    times: dict[int, str] = {}
    for session in sessions:
        answered, n_items = session.state.answered, 0
        for event in reversed(session.events):
            is_own = event.annotator == person and event.kind in ("label", "skip", "unsure")
            if not is_own or event.item is None or event.item not in answered:
                continue
            n_items += event.item not in times
            times[event.item] = max(event.time, times.get(event.item, event.time))
            if n_items == n:
                break
    newest = sorted(times, key=lambda item: times[item], reverse=True)[:n]
    return {item: _said(sessions, person, item) for item in newest}


def standing(sessions: Sequence[Session], item: int) -> dict[str, str | None]:
    """Answers of an item in each question that is answered: a class, or None for unsure."""
    answers: dict[str, str | None] = {}
    for session in sessions:
        if item in session.state.labels:
            answers[session.question_name] = session.state.labels[item]
        elif item in session.state.unsure:
            answers[session.question_name] = None
    return answers


def askable(sessions: Sequence[Session]) -> set[int]:
    """Items about which a question is open."""
    return {
        item for session in sessions for item in set(session.pool.trainable.tolist()) - session.state.answered
    }


def _said(sessions: Sequence[Session], person: str, item: int) -> dict[str, str | None]:
    answers: dict[str, str | None] = {}
    for session in sessions:
        state = session.state
        vote = state.votes.get(item, {}).get(person)
        if vote is not None:
            answers[session.question_name] = state.class_names.get(state.resolve(vote.key))
        elif item in state.unsure:
            answers[session.question_name] = None
    return answers


def grid(
    sessions: Sequence[Session], question: object = None, name: object = None
) -> tuple[Session, str, dict[str, Any]]:
    """Question and class of a grid.

    Yes of a switch comes before no, and what the models are surest of first.

    Args:
        sessions: of the questions that are asked.
        question: the name of the one that is wanted; None for the first.
        name: the class of it that is wanted.

    Returns:
        The session of the question, the class, and what the reply says of them: question, switch (whether it
        is answered by yes or no) and others: what there could be instead, each with question, class and n.

    Raises:
        InputError: no question has a model, or none has an item left.
    """
    pairs, why = [], "There is no question."
    for session in sessions:
        try:
            pairs += [(session, group) for group in session.grid_classes()]
        except InputError as error:
            why = str(error)
    if not pairs:
        raise InputError(why)
    pairs.sort(key=lambda pair: (_is_no(*pair), -pair[1].sure))
    matches = [
        (session, group)
        for session, group in pairs
        if (session.question_name, group.name) == (question, name)
    ]
    of, first_group = (matches or pairs)[0]
    alternatives = [
        {"question": session.question_name, "class": group.name, "n": group.n_items}
        for session, group in pairs[:MOST_GRIDS]
    ]
    about = {"question": of.question_name, "switch": of.question_kind == YES_NO, "others": alternatives}
    return of, first_group.name, about


def _is_no(session: Session, group: Taken) -> bool:
    return session.question_kind == YES_NO and group.name != YES


def numbers(session: Session, sessions: Sequence[Session], fitting: bool) -> dict[str, Any]:
    """The numbers of a reply, over all questions."""
    states = [question.state for question in sessions]
    return {
        "labelled": len({item for state in states for item in state.codes}),
        "total": int(session.pool.trainable.size),
        "left": max((question.n_left for question in sessions), default=0),
        "skipped": max((len(state.skipped) for state in states), default=0),
        "unsure": max((len(state.unsure) for state in states), default=0),
        **acts.steps(session),
        "model": model_number(sessions),
        "learned": max(
            (question.model.n_labelled for question in sessions if question.model is not None), default=0
        ),
        "fitting": fitting,
    }


def words(session: Session) -> str:
    """Header above the item."""
    return f"{len(session.questions)} questions about this {_CALLED[session.pool.kind]}"


_CALLED = {"image": "picture", "text": "text", "table": "row"}
