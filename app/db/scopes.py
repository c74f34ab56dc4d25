"""What a caller may see, as conditions on `document` and `chunk`."""

import sqlalchemy as sa

from app.db.filters import compile_filter
from app.db.tables.documents import chunk, document
from retrieval.types import Scope


def documents_in(scope: Scope, *, dialect: str) -> list[sa.ColumnElement[bool]]:
    """The documents in scope, visible or not."""
    conditions: list[sa.ColumnElement[bool]] = [document.c.tenant_id == scope.tenant_id]
    if scope.collection_ids is not None:
        conditions.append(document.c.collection_id.in_(scope.collection_ids))
    if scope.document_ids is not None:
        conditions.append(document.c.id.in_(scope.document_ids))
    if scope.filter is not None:
        conditions.append(compile_filter(scope.filter, dialect=dialect))
    return conditions


def is_live() -> sa.ColumnElement[bool]:
    """A chunk is visible when it belongs to the live version of its document."""
    return sa.and_(chunk.c.document_id == document.c.id, chunk.c.version == document.c.live_version)
