"""Originals on disk that belong to no version of a document."""

from typing import Any

import sqlalchemy as sa

from app.db.tables.openai import unattached_file


def unattached_originals() -> sa.Select[Any]:
    """(document id, version, bytes, SHA-256) of the originals of files that are no document."""
    return sa.select(
        unattached_file.c.id.label("document_id"),
        sa.literal(0).label("version"),
        unattached_file.c.bytes,
        unattached_file.c.sha256,
    )
