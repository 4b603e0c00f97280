"""An index of the snapshots of tables, so that a page of them takes as long as the page."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "snapshot_indexes",
        sa.Column("topic", sa.String, primary_key=True),
        # The table's metadata as the index has it: at another location it is another.
        sa.Column("metadata_location", sa.String, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
    )
    op.create_table(
        "snapshots",
        sa.Column("topic", sa.String, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True),
        sa.Column("snapshot_id", sa.String, primary_key=True),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("entry", sa.JSON, nullable=False),
    )
