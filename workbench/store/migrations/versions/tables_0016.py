"""The tables, as they are before the first release: another schema is another number, and starts anew."""

from alembic import op

from workbench.store.schema import metadata

revision = "0016"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Drop the tables."""
    metadata.drop_all(op.get_bind())
