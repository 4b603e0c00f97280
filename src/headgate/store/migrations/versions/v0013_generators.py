"""Generators of made-up data that run in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "generators",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("desired", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("rate", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
