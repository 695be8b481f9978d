"""What lasts: events (append-only) and their fold, rounds, runs, projects.

Importing this package does not import SQLAlchemy; `Store.open` does.
"""

from workbench.store.events import KINDS, Event
from workbench.store.fold import AskRecord, EventFold, Note, ProjectState, Vote, fold
from workbench.store.store import (
    ProjectRecord,
    ProjectSummary,
    RoundRecord,
    RunRecord,
    Store,
    StudyRecord,
    workbench_home,
)

__all__ = [
    "KINDS",
    "AskRecord",
    "Event",
    "EventFold",
    "Note",
    "ProjectRecord",
    "ProjectState",
    "ProjectSummary",
    "RoundRecord",
    "RunRecord",
    "Store",
    "StudyRecord",
    "Vote",
    "fold",
    "workbench_home",
]
