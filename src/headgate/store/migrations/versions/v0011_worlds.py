"""Which world has made what."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "world_objects",
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("world", sa.String, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
