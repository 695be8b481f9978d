"""Projects know their item ids and how far they are; operations are stored once; states are found quickly."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_WITH_STATE = sa.text("state IS NOT NULL")


def upgrade() -> None:
    """Add the columns and indices; what they say of older projects is filled in as these are used."""
    op.add_column("projects", sa.Column("item_ids", sa.LargeBinary, nullable=True))
    op.add_column("projects", sa.Column("n_labelled", sa.Integer, nullable=True))
    op.add_column("projects", sa.Column("changed", sa.String(40), nullable=True))
    op.execute(
        "UPDATE projects SET changed = "
        "(SELECT MAX(events.time) FROM events WHERE events.project = projects.id)"
    )
    op.add_column("events", sa.Column("operation", sa.String(64), nullable=True))
    op.create_index("one_event_per_operation", "events", ["project", "operation"], unique=True)
    op.create_index(
        "rounds_with_state",
        "rounds",
        ["owner", "number"],
        sqlite_where=_WITH_STATE,
        postgresql_where=_WITH_STATE,
    )


def downgrade() -> None:
    """Drop them again."""
    op.drop_index("rounds_with_state", "rounds")
    op.drop_index("one_event_per_operation", "events")
    op.drop_column("events", "operation")
    for name in ("changed", "n_labelled", "item_ids"):
        op.drop_column("projects", name)
