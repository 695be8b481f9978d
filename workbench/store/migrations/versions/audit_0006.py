"""Who opened, exported, shared and deleted what."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "audit",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("time", sa.String(40), nullable=False),
        sa.Column("person", sa.String(255), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("project", sa.String(32), nullable=True),
        sa.Column("called", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("octets", sa.BigInteger, nullable=True),
    )
    op.create_index("audit_of_project", "audit", ["project", "time"])
    op.create_index("audit_of_person", "audit", ["person", "what"])


def downgrade() -> None:
    """Drop it again."""
    op.drop_table("audit")
