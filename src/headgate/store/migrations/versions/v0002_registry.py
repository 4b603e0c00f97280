"""The embedded schema registry: schemas, their versions by subject, settings, and the id counter."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    state = op.create_table(
        "registry_state",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        # Kept apart from the schemas: an id stays used when its schema is deleted for good.
        sa.Column("next_id", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
    )
    op.bulk_insert(state, [{"id": 1, "next_id": 1, "revision": 0}])
    op.create_table(
        "registry_schemas",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String, nullable=False, index=True),
        sa.Column("guid", sa.String, nullable=False, index=True),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("refers_to", sa.JSON, nullable=False),
        sa.Column("metadata", sa.JSON(none_as_null=True)),
        sa.Column("rule_set", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "registry_references",
        sa.Column("schema_id", sa.Integer, sa.ForeignKey("registry_schemas.id"), primary_key=True),
        sa.Column("subject", sa.String, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
    )
    op.create_index("ix_registry_references_target", "registry_references", ["subject", "version"])
    op.create_table(
        "registry_versions",
        sa.Column("subject", sa.String, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("schema_id", sa.Integer, sa.ForeignKey("registry_schemas.id"), nullable=False, index=True),
        sa.Column("deleted", sa.Boolean, nullable=False),
    )
    op.create_table(
        "registry_config",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("config", sa.JSON, nullable=False),
    )
    op.create_table(
        "registry_mode",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("mode", sa.String, nullable=False),
    )
