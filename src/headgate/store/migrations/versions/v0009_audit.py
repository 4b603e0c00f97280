"""Who did what to which thing, when, from where, with which credential."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False, index=True),
        sa.Column("who", sa.String, nullable=False),
        # A client id or the name of a key, never what opens it.
        sa.Column("credential", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("door", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("things", sa.JSON, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
    )
