"""Parts of a session: small objects, each with the methods about one matter."""

from collections.abc import Iterable
from typing import Any, Self

from workbench.sessions.execution import Execution
from workbench.sessions.open_session import OpenSession
from workbench.sessions.operations import Acknowledgement, Operation, made_id
from workbench.store import Event


class Part:
    """Methods of a session about one matter.

    Args:
        session: of the annotator.
    """

    _session: Any

    def __init__(self, session: OpenSession) -> None:
        self._session = session

    def _do(self, kind: str, operation: str = "", **fields: Any) -> Acknowledgement:
        """Do one operation, under an id made for it unless it has one."""
        return Execution(self._session).do(Operation(operation or made_id(), kind, **fields))

    def _event(self, kind: str, **fields: Any) -> Event:
        """Do one operation; the event that records it."""
        recorded = self._do(kind, **fields).event
        assert recorded is not None
        return recorded


class Names(tuple[str, ...], Part):
    """Names of one moment, with methods of a session about them; in another process they are names alone."""

    def __new__(cls, names: Iterable[str], session: OpenSession | None = None) -> Self:
        """Those of a session."""
        self = super().__new__(cls, names)
        self._session = session
        return self

    def __init__(self, *_: Any) -> None:
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)
