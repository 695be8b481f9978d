"""What the events about one item add up to, and which of its votes counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from workbench.store.events import Event
from workbench.store.project_state import REVIEW, Check, Note, Vote

_SECOND = "second"


class ItemFold:
    """What the standing events about one item add up to; `since` is where its present label began."""

    __slots__ = ("checks", "flag", "notes", "requeued", "seconds", "since", "skipped", "unsure", "votes")

    def __init__(self) -> None:
        self.seconds: dict[str, int] | None = None  # annotator -> event of their last second look
        self.votes: dict[str, Vote] = {}
        self.checks: dict[str, Check] = {}
        self.skipped = self.unsure = self.requeued = False
        self.flag: str | None = None
        self.notes: tuple[Note, ...] = ()
        self.since = -1

    def vote(self, place: int, key: str, event: Event, role: str, final: bool) -> None:
        """A person's vote for a class, in the place of the one before."""
        if not self.votes:
            self.since = place
        before = self.votes.get(event.annotator)
        first = "" if before is None else before.key if role == _SECOND else before.first
        own = "" if before is None or not (final or role == REVIEW) else before.by_themselves
        vote = Vote(key, event.annotator, event.id, event.time, role, final, first, own)
        self.votes = {**self.votes, event.annotator: vote}  # a new one: states hold the one before
        self.skipped = self.unsure = self.requeued = False

    def apply(self, place: int, event: Event, key: str | None) -> None:
        """One more event at this place in the order; `key` is the class it gives the item, if any."""
        payload = event.payload
        kind = event.kind
        role = str(payload.get("role", ""))
        if role == _SECOND:
            self.seconds = {**(self.seconds or {}), event.annotator: event.id}
        if "check" in payload and kind in ("label", "unsure"):
            answer = Check(int(payload["check"]), key or "", event.annotator, event.id, event.time)
            self.checks = {**self.checks, event.annotator: answer}
        if key is not None:
            final = kind == "resolved" or payload.get("final", False)
            self.vote(place, key, event, kind if kind in ("imported", "resolved") else role, bool(final))
        elif kind == "cleared":
            self.votes = {}
            self.skipped = self.unsure = self.requeued = False
        elif kind == "skip":
            if not self.votes:
                self.skipped, self.requeued = True, False
        elif kind == "unsure":
            self.votes = {who: vote for who, vote in self.votes.items() if who != event.annotator}
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

    A final vote counts, the latest of them; else the latest of the majority.

    Args:
        votes: of one item, at least one.
        root: gives the class that a class was merged into, or itself.
    """
    if len(votes) == 1:
        return votes[0], False
    final = [vote for vote in votes if vote.final]
    if final:
        return max(final, key=lambda v: v.event), False
    counts = Counter(root(vote.key) for vote in votes).most_common(2)
    tie = len(counts) == 2 and counts[0][1] == counts[1][1]
    best = votes if tie else [vote for vote in votes if root(vote.key) == counts[0][0]]
    return max(best, key=lambda v: v.event), tie
