"""Stored data: events (append-only) and their fold, rounds, runs, projects.

Importing this package does not import SQLAlchemy; `Store.open` does.
"""

from workbench.store.events import Event, FileVote
from workbench.store.fold import EventFold, fold
from workbench.store.project_state import Ask, Check, Instructions, ProjectState, Vote
from workbench.store.records import (
    LABEL,
    ONE_CLASS,
    QUESTION_KINDS,
    YES_NO,
    NewQuestion,
    ProjectRecord,
    ProjectSummary,
    RoundRecord,
    RunRecord,
    StudyRecord,
    WholeProject,
)
from workbench.store.store import Store
from workbench.writing import workbench_home

__all__ = [
    "LABEL",
    "ONE_CLASS",
    "QUESTION_KINDS",
    "YES_NO",
    "Ask",
    "Check",
    "Event",
    "EventFold",
    "FileVote",
    "Instructions",
    "NewQuestion",
    "ProjectRecord",
    "ProjectState",
    "ProjectSummary",
    "RoundRecord",
    "RunRecord",
    "Store",
    "StudyRecord",
    "Vote",
    "WholeProject",
    "fold",
    "workbench_home",
]
