"""Studies get a table; until now the app wrote what a comparison is, as JSON, into each of its runs."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_runs = sa.table("runs", sa.column("study", sa.Text), sa.column("project"), sa.column("created"))


def upgrade() -> None:
    """Create the table, and move there what runs carry."""
    studies = op.create_table(
        "studies",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("workers", sa.Integer, nullable=False),
        sa.Column("project", sa.String(32), nullable=True),
        sa.Column("created", sa.String(40), nullable=False),
    )
    op.create_index("runs_of_study", "runs", ["study"])
    connection = op.get_bind()
    columns = (_runs.c.study, sa.func.min(_runs.c.project), sa.func.min(_runs.c.created))
    query = sa.select(*columns).where(_runs.c.study.like("{%")).group_by(_runs.c.study)
    moved: set[str] = set()
    for text, project, created in connection.execute(query).all():
        try:
            document = json.loads(text)
            key, spec = str(document["id"]), dict(document["spec"])
            workers = int(document.get("workers", 1))
        except (ValueError, KeyError, TypeError):
            continue  # a name that somebody began with a brace
        if key not in moved:
            row = {"id": key, "spec": spec, "workers": workers, "project": project, "created": created}
            connection.execute(studies.insert().values(row))
            moved.add(key)
        connection.execute(_runs.update().where(_runs.c.study == text).values(study=key))


def downgrade() -> None:
    """Write the studies into their runs again, and drop the table."""
    connection = op.get_bind()
    studies = sa.table(
        "studies", sa.column("id", sa.String), sa.column("spec", sa.JSON), sa.column("workers", sa.Integer)
    )
    for row in connection.execute(sa.select(studies)).all():
        text = json.dumps({"id": row.id, "spec": row.spec, "workers": row.workers}, sort_keys=True)
        connection.execute(_runs.update().where(_runs.c.study == row.id).values(study=text))
    op.drop_index("runs_of_study", "runs")
    op.drop_table("studies")
