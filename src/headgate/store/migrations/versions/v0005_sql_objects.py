"""What SQL declares of tables, and views."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "sql_objects",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("said", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
