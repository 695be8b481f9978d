"""Shared parts of the trials of sessions: a classifier that takes no time, children that can be killed."""

from __future__ import annotations

import os
import secrets
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Constant:
    """A classifier that learns nothing, so that what is tried is everything but the fit."""

    def __init__(self, classes: Any = None, random_state: Any = None) -> None:
        self.classes, self.random_state = classes, random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options."""
        return {"classes": self.classes, "random_state": self.random_state}

    def set_params(self, **params: Any) -> Constant:
        """Set options."""
        self.__dict__.update(params)
        return self

    def fit(self, X: Any, y: Any) -> Constant:
        """Learn nothing."""
        self.classes_ = np.asarray(self.classes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """The same for every row but for a ripple, so that a policy has an order."""
        p = np.full((len(X), len(self.classes_)), 1.0)
        p[:, 0] += np.arange(len(X)) / len(X)
        return p / p.sum(axis=1, keepdims=True)

    def get_state(self) -> dict[str, Any]:
        """Only the classes."""
        return {"classes": np.asarray(self.classes_)}

    def set_state(self, state: Any) -> Constant:
        """The way back."""
        self.classes_ = np.asarray(state["classes"])
        return self


CONSTANT = f"{__name__}:Constant"


@contextmanager
def database(kind: str, folder: str) -> Iterator[str]:
    """URL of a new database: a file of SQLite in a folder, or a schema of the server of the tests."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/trial.sqlite"
        return
    import psycopg

    server = os.environ["WORKBENCH_TEST_POSTGRESQL"]
    schema = f"trial{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {schema}")
    try:
        yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"DROP SCHEMA {schema} CASCADE")


class Child:
    """A copy of this process that does something and writes lines about it.

    This process must have no database open when it is made.

    Args:
        work: called with a function that writes a line; its exceptions end the child with status 1.
    """

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)

            def say(line: str) -> None:
                os.write(writing, f"{line}\n".encode())

            status = 1
            try:
                work(say)
                status = 0
            except BaseException:
                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(status)
        os.close(writing)
        self.lines = os.fdopen(reading, encoding="utf-8")

    def end(self) -> tuple[list[str], int]:
        """The lines not read yet and the exit status, when it has ended."""
        left = self.lines.read().splitlines()
        self.lines.close()
        _, status = os.waitpid(self.pid, 0)
        return left, os.waitstatus_to_exitcode(status)
