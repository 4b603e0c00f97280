"""Tables, processes, events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "tables",
        sa.Column("topic", sa.String, primary_key=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("desired", sa.String, nullable=False),
        sa.Column("sync_request", sa.String),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "table_status",
        sa.Column("topic", sa.String, primary_key=True),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    op.create_table(
        "processes",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("wanted", sa.Boolean, nullable=False),
        sa.Column("instance", sa.String),
        sa.Column("pid", sa.Integer),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("beat_at", sa.Float, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("subject", sa.String, nullable=False, index=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("message", sa.String, nullable=False),
    )
