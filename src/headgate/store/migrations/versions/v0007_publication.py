"""Outside catalogs that tables are published to, and where each table stands there."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "integrations",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("format", sa.String, nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("desired", sa.String, nullable=False),
        # Another with each request: the publisher sees that there is something new.
        sa.Column("stamp", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    op.create_table(
        "publications",
        sa.Column("integration", sa.String, primary_key=True),
        sa.Column("topic", sa.String, primary_key=True),
        # What the table is called there, taken before the entry is made; none where it is not published.
        sa.Column("outside_name", sa.String),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        sa.UniqueConstraint("integration", "outside_name", name="publications_outside_name"),
    )
