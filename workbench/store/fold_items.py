"""State of one item, and the vote of it that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from workbench.store.events import SOURCE, Event, FileVote
from workbench.store.project_state import REVIEW, Check, Note, Vote

IMPORTED = "imported"
FILE = "file "
"""Beginning of the name of a rater that is a file."""
PERSON = " / "
"""Separator between the name of a file and that of a person in it."""
_SECOND = "second"


def person_of(rater: str) -> str:
    """Name of the person who a rater is: of one whom a file names, the name there; of any other their own."""
    return rater.partition(PERSON)[2] or rater if rater.startswith(FILE) else rater


def names_one_person(rater: str, other: str) -> bool:
    """True if one of two raters is a person of a file who labels here by that name, and the other is they."""
    return rater != other and (person_of(rater) == other or person_of(other) == rater)


def vote_of(votes: Mapping[str, Vote], person: str) -> Vote | None:
    """Vote of a person about an item: the one given here, else one of a file that names them."""
    of_files = (vote for rater, vote in votes.items() if person_of(rater) == person)
    return votes.get(person) or next(of_files, None)


class ItemFold:
    """Sum of the standing events about one item; `since` is where its present label began.

    Args:
        before: what the events added up to until one of them was taken back, or put back.
    """

    __slots__ = (
        "checks",
        "firsts",
        "flag",
        "notes",
        "requeued",
        "seconds",
        "since",
        "skipped",
        "unsure",
        "votes",
    )

    def __init__(self, before: ItemFold | None = None) -> None:
        # (checks, annotator) -> event of their first answer, also of one that is taken back
        self.firsts: dict[tuple[int, str], int] | None = None if before is None else before.firsts
        self.seconds: dict[str, int] | None = None  # annotator -> event of their last second look
        self.votes: dict[str, Vote] = {}
        self.checks: dict[str, Check] = {}
        self.skipped = self.unsure = self.requeued = False
        self.flag: str | None = None
        self.notes: tuple[Note, ...] = ()
        self.since = -1

    def vote(self, place: int, key: str, event: Event, role: str, final: bool) -> None:
        """Vote of a person, or of a file, for a class, in the place of the one before."""
        who, time, is_older = event.annotator, event.time, False
        if event.kind == IMPORTED:
            # the place of a label within its event is in the low half of its place in the order
            label = FileVote(*event.payload["labels"][place & 0xFFFFFFFF])
            rater = who if who == SOURCE else f"{FILE}{event.payload.get('source', '')}"
            who, time, final = label.person or rater, label.time or time, label.final
            is_older = not label.time
        if not self.votes:
            self.since = place
        same_person = [vote for vote in self.votes.values() if names_one_person(vote.annotator, who)]
        before = self.votes.get(who) or next(iter(same_person), None)
        again = role == _SECOND and not event.payload.get("corrected")
        first = "" if before is None else before.key if again else before.first
        own_key = "" if before is None or not (final or role == REVIEW) else before.by_themselves
        if final and event.kind == IMPORTED:
            own_key = key  # the truth of a file is what its person said
        vote = Vote(key, who, event.id, time, role, final, first, own_key)
        self.votes = {**self.votes, who: vote}  # a new one: states hold the one before
        for other in same_person:  # a person has one vote, their newest; a file tells of what was before
            older = vote if is_older or (event.kind == IMPORTED and other.time >= time) else other
            self.votes.pop(older.annotator, None)
            if older.final:  # it still decides, and says nothing more of what they meant
                self.votes[older.annotator] = replace(older, own="")
        self.skipped = self.unsure = self.requeued = False

    def apply(self, place: int, event: Event, key: str | None) -> None:
        """One more event at this place in the order; `key` is the class it gives the item, if any."""
        payload = event.payload
        kind = event.kind
        role = str(payload.get("role", ""))
        # whoever has a label of the item skips nothing but a second look at it
        if (
            event.annotator in self.votes
            if kind == "skip"
            else role == _SECOND and not payload.get("corrected")
        ):
            self.seconds = {**(self.seconds or {}), event.annotator: event.id}
        if "check" in payload and kind in ("label", "unsure"):
            started, self.firsts = int(payload["check"]), self.firsts or {}
            first = self.firsts.setdefault((started, event.annotator), event.id)
            answer = Check(started, key or "", event.annotator, event.id, event.time, first)
            self.checks = {**self.checks, event.annotator: answer}
        if key is not None:
            final = kind == "resolved" or payload.get("final", False)
            self.vote(place, key, event, kind if kind in (IMPORTED, "resolved") else role, bool(final))
        elif kind == "cleared":
            self.votes = {}
            self.skipped = self.unsure = self.requeued = False
        elif kind == "skip":
            if not self.votes:
                self.skipped, self.requeued = True, False
        elif kind == "unsure":
            self.votes = {who: vote for who, vote in self.votes.items() if person_of(who) != event.annotator}
            if not self.votes:
                self.skipped, self.unsure, self.requeued = False, True, False
        elif kind == "requeued":
            if not self.votes and (self.skipped or self.unsure):
                self.skipped, self.unsure, self.requeued = False, False, True
        elif kind == "flag":
            self.flag = str(payload["reason"]) if payload["on"] else None
        elif kind == "note":
            self.notes = (*self.notes, Note(str(payload["text"]), event.annotator, event.time))


def standing_vote(votes: Sequence[Vote], root: Callable[[str], str]) -> tuple[Vote, bool]:
    """The vote that counts among one item's, and whether the votes tie.

    A final vote counts, the latest of them; else the latest of the majority. What a file says by itself, or
    decides, gives way to people who label the item after it. Where people differ within a file, the file
    decides nothing: its votes tie until somebody does.

    Args:
        votes: of one item, at least one.
        root: gives the class that a class was merged into, or itself.
    """
    if len(votes) == 1:
        return votes[0], False
    votes = votes_since(votes)
    final = max((vote for vote in votes if vote.final), key=lambda v: v.event, default=None)
    if final is not None:
        return final, False
    counts = Counter(root(vote.key) for vote in votes).most_common(2)
    of_files = {(vote.event, root(vote.key)) for vote in votes if vote.role == IMPORTED}
    torn = len(of_files) > len({event for event, _ in of_files})
    tie = torn or (len(counts) == 2 and counts[0][1] == counts[1][1])
    best = votes if tie else [vote for vote in votes if root(vote.key) == counts[0][0]]
    return max(best, key=lambda v: v.event), tie


def votes_since(votes: Sequence[Vote]) -> Sequence[Vote]:
    """Votes without those that people came after: what a file says by itself, and all up to what it decided.

    Args:
        votes: of one item.
    """
    if not any(vote.role == IMPORTED for vote in votes):
        return votes
    last = max((vote.event for vote in votes if vote.role != IMPORTED), default=0)
    final = max((vote for vote in votes if vote.final), key=lambda v: v.event, default=None)
    if final is not None:
        if final.role != IMPORTED or last < final.event:
            return votes
        votes = [vote for vote in votes if vote.event > final.event]
    return [vote for vote in votes if vote.event >= last or not _is_of_file(vote)]


def _is_of_file(vote: Vote) -> bool:
    """True if a file says it by itself: no person is named who gave it."""
    return vote.role == IMPORTED and vote.annotator.startswith(FILE) and PERSON not in vote.annotator


def digest(item: int, votes: Mapping[str, Vote]) -> int:
    """A number that another set of votes about the item, or another item, has by chance alone.

    It is the same in every process. Those of several items add up to one of them all.

    Args:
        item: index into the pool.
        votes: annotator -> standing vote.
    """
    total = 0
    # of several decisions the last one counts, votes of one file may tie, and people come after a file
    ordered = any(vote.final or vote.role == IMPORTED for vote in votes.values())
    for vote in votes.values():
        at = vote.event if ordered else 0
        numbers = (_number(vote.annotator), _number(vote.key), _number(vote.by_themselves))
        total += hash((item, at, vote.final, *numbers))  # of integers, which no process salts
    return total


@lru_cache(maxsize=4096)
def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big")
