"""The loop: ask, tell, fit, score; people and oracles alike; what a page needs computed about it.

Importing this package imports neither SQLAlchemy nor a model.
"""

from workbench.sessions.drawing import ArrayOracle
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.learner import Learner
from workbench.sessions.measure import Evaluation
from workbench.sessions.operations import Operation
from workbench.sessions.rounds import Round, labelled_at
from workbench.sessions.session import Session
from workbench.sessions.simulate import Checkpoint, simulate
from workbench.sessions.spec import RunSpec
from workbench.store import Ask, Event, ProjectState

__all__ = [
    "ArrayOracle",
    "Ask",
    "Checkpoint",
    "Evaluation",
    "Event",
    "FittedModel",
    "Learner",
    "Operation",
    "ProjectState",
    "Round",
    "RunSpec",
    "Session",
    "labelled_at",
    "simulate",
]
