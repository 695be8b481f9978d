"""Run by Alembic: applies the migrations on the connection it is handed."""

from alembic import context

from workbench.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
