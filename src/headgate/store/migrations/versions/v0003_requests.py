"""Requests to the engine about a table, topics that no pattern may enable, and a stamp of each change."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("topic", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("result", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_index("requests_of_topic", "requests", ["topic", "state"])
    op.create_table("declined_topics", sa.Column("topic", sa.String, primary_key=True))
    op.add_column("tables", sa.Column("origin", sa.String, nullable=False, server_default="request"))
    op.add_column("tables", sa.Column("stamp", sa.String, nullable=False, server_default=""))
