"""Alembic's entry: the caller hands over an open connection."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
context.run_migrations()
