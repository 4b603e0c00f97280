"""Statements: what is wanted of them, and where they stand."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "statements",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("script", sa.String, nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("settled", sa.JSON, nullable=False),
        sa.Column("desired", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
