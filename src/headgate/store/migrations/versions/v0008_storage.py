"""Named storage integrations."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "storage_integrations",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("root", sa.String, nullable=False, unique=True),
        sa.Column("place", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
