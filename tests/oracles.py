"""Rounds with an oracle in the person's place."""

from collections.abc import Callable

from workbench.sessions import Round, Session


def step(session: Session, oracle: Callable[[int], str], k: int = 1) -> Round | None:
    """Ask, tell and refit; None where there are not two classes yet or nothing is left to ask."""
    asks = session.ask(k)
    for ask in asks:
        session.tell(ask.id, oracle(ask.item))
    return session.refit() if asks else None
