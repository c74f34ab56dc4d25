"""Finds the document of which an upload is a duplicate, and says whether it gets a new version."""

from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from app.db.document_rows import DOCUMENTS, SHA256, lock_document
from app.db.tables.documents import document
from app.errors import Conflict, NotFound
from app.types import Document, NewDocument

OnDuplicate: TypeAlias = Literal["skip", "replace", "version", "error"]


def stays(existing: Document, new: NewDocument, on_duplicate: OnDuplicate | None) -> bool:
    """Whether a duplicate gets no new version.

    Raises:
        Conflict: It is refused.
    """
    if on_duplicate == "error":
        raise Conflict("The same document is there already.")
    return existing.sha256 == new.sha256 or on_duplicate == "skip"


def duplicates(new: NewDocument) -> sa.Select[Any]:
    """Selects the row of the document of which `new` is a duplicate."""
    query = DOCUMENTS.where(document.c.tenant_id == new.tenant_id, document.c.collection_id == new.collection_id)
    if new.external_id is not None:
        query = query.where(document.c.external_id == new.external_id)
    else:
        query = query.where(SHA256.in_([new.sha256]))
    return query.order_by(document.c.created_at, document.c.id).limit(1)


def find_duplicate(connection: sa.Connection, new: NewDocument) -> Document | None:
    """The document of which `new` is a duplicate, locked; None when there is none."""
    found = connection.execute(duplicates(new)).one_or_none()
    if found is None:
        return None
    try:
        return lock_document(connection, found.id, tenant_id=new.tenant_id, collections=None)
    except NotFound:
        return None  # deleted between the two statements
