"""Projects have an owner and may be private or shared; people who log in are known."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table; older projects belong to nobody and stay open to everybody."""
    op.create_table(
        "people",
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("seen", sa.String(40), nullable=False),
    )
    op.add_column("projects", sa.Column("owner", sa.String(255), nullable=True))
    op.add_column(
        "projects", sa.Column("access", sa.String(16), nullable=False, server_default=sa.text("'open'"))
    )
    op.add_column("projects", sa.Column("members", sa.JSON, nullable=True))


def downgrade() -> None:
    """Drop them again: everything is open."""
    for name in ("members", "access", "owner"):
        op.drop_column("projects", name)
    op.drop_table("people")
