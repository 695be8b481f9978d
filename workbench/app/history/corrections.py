"""Changes of items on the History page: another class, flags, notes, disagreements ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.app.words.text import plural
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import ProjectState, Session


def relabel(session: Session, items: Sequence[int], name: str) -> str:
    """Give items another class, in the name of whoever sits here; items that have it already are left.

    Returns:
        What was done, in a sentence.

    Raises:
        InputError: no such class, or an item of the test split; then nothing is changed.
    """
    decided = session.state.decided
    changing = [item for item in items if decided.get(item) != name]
    if not changing:
        return f"Nothing to change: all are {name} already."
    session.relabel(changing, name)
    return f"{plural(len(changing), 'item')} labelled {name}."


def relabel_each(session: Session, said: Mapping[int, str]) -> str:
    """Give each of some items a class of its own, one act for each class; items that have it are left.

    Args:
        session: of whoever decides.
        said: item -> class.

    Raises:
        InputError: nothing is to be changed.
    """
    if not said:
        raise InputError("The model says nothing else of these.")
    decided = session.state.decided
    said = {item: name for item, name in said.items() if decided.get(item) != name}
    if not said:  # a key that was pressed twice
        return "Nothing to change: they are labelled so already."
    by_class: dict[str, list[int]] = {}
    for item, name in said.items():
        by_class.setdefault(name, []).append(item)
    for name, items in by_class.items():
        session.relabel(items, name)
    if len(by_class) == 1:
        return f"{plural(len(said), 'item')} labelled {next(iter(by_class))}."
    return f"{plural(len(said), 'item')} labelled as the model says; Undo goes class by class."


def clear(session: Session, items: Sequence[int]) -> str:
    """Take away whatever was decided about items.

    Raises:
        InputError: nothing was.
    """
    n = len(session.clear(items).payload["items"])
    return f"The labels of {plural(n, 'item')} removed: they may be asked about again."


def whose(state: ProjectState, items: Iterable[int]) -> str:
    """People whose labels of items there are, in words; "" where there is none."""
    people = list(dict.fromkeys(person for item in items for person in state.votes.get(item, {})))
    return f"{', '.join(people[:-1])} and {people[-1]}" if len(people) > 1 else "".join(people)


def look_again(session: Session, n: int) -> str:
    """Have some labels of one's own asked about a second time.

    Raises:
        InputError: there is none.
    """
    n = len(session.look_again(n).payload["items"])
    return f"{plural(n, 'label')} of yours will be asked about again on Label."


def set_flag(session: Session, items: Sequence[int], on: bool) -> str:
    """Flag items, or clear their flags; those that are so already are left."""
    flagged = session.state.flagged
    changing = [item for item in items if (item in flagged) != on]
    if changing:
        session.flag(changing, on)
    return f"{plural(len(changing), 'item')} flagged." if on else f"{plural(len(changing), 'flag')} cleared."


def add_note(session: Session, items: Sequence[int], text: str) -> str:
    """Keep a remark about each of some items.

    Raises:
        InputError: an empty remark.
    """
    if not text.strip():
        raise InputError("A note needs some words.")
    session.note(items, text.strip())
    return f"Noted on {plural(len(items), 'item')}."


def ask_again(session: Session, items: Sequence[int]) -> str:
    """Have those of the items that were set aside asked about again."""
    n = len(session.ask_again(items))
    if not n:
        return "None of these was skipped or unsure."
    return f"{plural(n, 'item')} will be asked about again on Label."


def resolve(session: Session, items: Sequence[int], name: str) -> str:
    """End the disagreement about some items."""
    session.resolve(items, name)
    return f"{plural(len(items), 'disagreement')} decided: {name}."
