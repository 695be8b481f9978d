"""Projects of a server's home, made and read past its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.driving import Server, own_home
from workbench.sessions import Session
from workbench.store import Store


@contextmanager
def store_of(server: Server) -> Iterator[Store]:
    """The database of a server's home; within the block the home is this process's, too."""
    with own_home(server.home):
        store = Store.open()
        try:
            yield store
        finally:
            store.close()


def answered(server: Server, pool: str, n: int, *, fit: bool = True, **settings: Any) -> str:
    """The id of a new project with n true labels of every class; the server fits where this does not."""
    with store_of(server) as store:
        session = Session.create(pool, store=store, annotator="root", early_share=0.0, **settings)
        truth = session.pool.truth
        assert truth is not None
        items = session.pool.trainable
        for item in items[:: items.size // n][:n].tolist():
            session.items.label(item, session.classes[int(truth[item])])
        if fit:
            session.refit()
        return session.id
