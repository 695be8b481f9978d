"""The first tables: projects, events, runs, rounds."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "projects",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("pool", sa.JSON, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("fingerprints", sa.LargeBinary, nullable=False),
        sa.Column("feature_map", sa.JSON, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
    )
    op.create_table(
        "events",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
        ),
        sa.Column("project", sa.String(32), sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("time", sa.String(40), nullable=False),
        sa.Column("answers", sa.String(40), nullable=True),
        sa.UniqueConstraint("project", "answers", name="one_answer_per_ask"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_of_project", "events", ["project", "id"])
    op.create_table(
        "runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("project", sa.String(32), nullable=True),
        sa.Column("study", sa.Text, nullable=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("updated", sa.String(40), nullable=False),
    )
    op.create_table(
        "rounds",
        sa.Column("owner", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("record", sa.JSON, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=True),
        sa.Column("time", sa.String(40), nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for name in ("rounds", "runs", "events", "projects"):
        op.drop_table(name)
