"""Labels of a file as votes of the rater that the file, or a person in it, is."""

import operator
from collections.abc import Sequence

from workbench.errors import InputError
from workbench.sessions.taxonomy import new_key, new_name
from workbench.store import Event, FileVote, ProjectState


def file_vote(row: tuple[int, str] | FileVote, source: str) -> FileVote:
    """A label of a file as a vote.

    Args:
        row: (item, class name), or a vote of a person in the file.
        source: name of the file.

    Raises:
        InputError: it is neither.
    """
    try:
        vote = row if isinstance(row, FileVote) else FileVote(*row)
        person = f"file {source} / {vote.person}" if vote.person else ""
        return vote._replace(item=operator.index(vote.item), label=str(vote.label), person=person)
    except TypeError:
        raise InputError(
            f"A label to take in is (item, name of its class), or a FileVote; got {row!r:.80}."
        ) from None


def import_events(state: ProjectState, votes: Sequence[FileVote], source: str) -> list[Event]:
    """Events that take the votes of a file in: the classes that are new, then the votes that are news.

    Args:
        state: of the project.
        votes: as `file_vote` makes them, of items that there are.
        source: name of the file.

    Returns:
        The events; none where all of the labels are there already.
    """
    keys, added = dict(zip(state.classes, state.keys, strict=True)), []
    for name in dict.fromkeys(vote.label for vote in votes):
        if name not in keys:
            keys[name] = new_key(state, name, keys.values())
            added.append(Event.class_added(keys[name], new_name(state, name)))
    keyed = [vote._replace(label=keys[vote.label]) for vote in votes]
    new = {vote.item for vote in keyed if not _stands(vote, state, source)}
    rows = [vote if any(vote[2:]) else vote[:2] for vote in keyed if vote.item in new]
    return [*added, Event.imported(rows, source)] if rows else []


def _stands(vote: FileVote, state: ProjectState, source: str) -> bool:
    """Tell whether a file's vote is nothing new: it is there, or is the file's and the item has its class."""
    own = state.votes.get(vote.item, {}).get(vote.person or f"file {source}")
    is_there = own is not None and (own.key, own.final) == (vote.label, vote.final)
    if is_there and (vote.person or not vote.final):
        return True
    standing = state.standing.get(vote.item)
    if vote.person or standing is None or vote.item in state.undecided:
        return False
    return state.resolve(standing.key) == state.resolve(vote.label)
