"""Originals as they were placed before revision 0029, to which a downgrade can go back."""

import sqlalchemy as sa

from app.db.session import Database


def name_as_before(database: Database) -> None:
    """Name every version's original by its document and version."""
    with database.write() as connection:
        connection.execute(sa.text("UPDATE document_version SET object = document_id || '/' || version"))
