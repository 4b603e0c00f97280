"""Clients of the catalog and of the API, and the keys that sign their tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "credentials",
        sa.Column("client_id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        # The name while it is live: a revoked credential leaves it to another.
        sa.Column("live_name", sa.String, unique=True),
        sa.Column("secret_hash", sa.String, nullable=False),
        sa.Column("grants", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("revoked_at", sa.Float),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("secret", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
