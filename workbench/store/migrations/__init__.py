"""Alembic migrations, shipped inside the package and applied when a store is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection, Engine

# The newest file under versions/; a test asserts that Alembic agrees.
HEAD = "0016"


def upgrade(engine: Engine) -> None:
    """Bring the database to `HEAD`; safe when two processes do it at once.

    Raises:
        InputError: an older or a newer version of the program wrote it; it is left as it is.
    """
    with engine.connect() as connection:
        if _revision(connection) == HEAD:
            return
    with engine.connect() as plain:
        connection = plain.execution_options(workbench_write=True)
        with connection.begin():
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7710234)")
            if _revision(connection) != HEAD:
                _migrate(connection)


def config() -> Config:
    """Alembic's configuration for these migrations."""
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent))
    return configuration


def _revision(connection: Connection) -> str | None:
    from sqlalchemy import inspect, text

    if not inspect(connection).has_table("alembic_version"):
        return None
    value = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if value is None else str(value)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    from workbench.errors import InputError

    settings = config()
    present = _revision(connection)
    if present is not None:
        try:
            ScriptDirectory.from_config(settings).get_revision(present)
        except CommandError as error:
            raise InputError(
                f"The database is at version {present}, which this version of Workbench does not know. "
                "Use the version of Workbench that wrote it, or point WORKBENCH_HOME at another folder."
            ) from error
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")
