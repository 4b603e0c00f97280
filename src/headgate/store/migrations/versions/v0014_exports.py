"""Scheduled exports and their runs."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "exports",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("desired", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        # Up to when times of its schedule have become runs, or were left out.
        sa.Column("scheduled_until", sa.Float, nullable=False),
    )
    op.create_table(
        "export_runs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("export", sa.String, nullable=False, index=True),
        # What made it: a time of the schedule, or a request. Of several servers one makes the run.
        sa.Column("slot", sa.String, nullable=False),
        sa.Column("period_start", sa.Float, nullable=False),
        sa.Column("period_end", sa.Float, nullable=False),
        # How many runs were about the same time before.
        sa.Column("repeat", sa.Integer, nullable=False),
        # As the export was when the run was made.
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("retry_at", sa.Float, nullable=False),
        # The process that runs it, until when it need not be heard of.
        sa.Column("owner", sa.String),
        sa.Column("leased_until", sa.Float, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("started_at", sa.Float),
        sa.Column("ended_at", sa.Float),
        sa.UniqueConstraint("export", "slot", name="export_runs_slot"),
    )
