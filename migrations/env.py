"""Runs the migrations on the connection `app.db.migration` hands over, inside its transaction."""

import sqlalchemy as sa
from alembic import context

from app.db.migration import is_mapped
from app.db.tables import metadata

connection = context.config.attributes["connection"]
assert isinstance(connection, sa.Connection), "migrations are run through app.db.migration"

context.configure(
    connection=connection,
    target_metadata=metadata,
    include_object=is_mapped,
    render_as_batch=True,  # SQLite cannot alter most of a table in place
)
with context.begin_transaction():
    context.run_migrations()
