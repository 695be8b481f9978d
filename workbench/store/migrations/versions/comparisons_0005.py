"""A comparison belongs to whoever started it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; older comparisons belong to nobody: without a project they stay open to everybody."""
    op.add_column("studies", sa.Column("owner", sa.String(255), nullable=True))


def downgrade() -> None:
    """Drop it again: a comparison without a project is open to everybody."""
    op.drop_column("studies", "owner")
