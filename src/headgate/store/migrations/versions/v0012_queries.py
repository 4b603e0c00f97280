"""Which queries were asked, by whom, of which snapshots, and what they cost."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "queries",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("sql", sa.Text, nullable=False),
        # A client id or the name of a key, and what its owner is called.
        sa.Column("owner", sa.String, nullable=False, index=True),
        sa.Column("principal", sa.String, nullable=False),
        # The query driver that runs it.
        sa.Column("instance", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("tables", sa.JSON, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False, index=True),
        sa.Column("ended_at", sa.Float),
    )
