"""Documents that no answer cites, or none since a date, with what they cost to keep."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.paging import cut, decode_cursor
from app.db.tables.documents import document, document_version
from app.db.tables.ledger import answer_citation
from app.errors import InvalidRequest
from app.usage.rollups.buckets import LATEST

MOST_DOCUMENTS = 1000
"""The maximum number of documents on a page."""

_MICRO = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedQuery:
    """A request for one page of a tenant's searchable documents that are not cited since `since`, Unix seconds.

    `since` None lists those that were never cited. Documents come oldest first; `page` is the `next_page` of the page
    before.
    """

    tenant_id: str
    since: int | None = None
    limit: int = 100
    page: str | None = None


def unused_documents(connection: sa.Connection, query: UnusedQuery, *, as_of: int) -> dict[str, object]:
    """One page of documents, as a body of the API.

    Raises:
        InvalidRequest: The date or page is not valid; `param` names it.
    """
    if query.since is not None and not 0 <= query.since <= LATEST:
        raise InvalidRequest("since must be Unix seconds.", param="since")
    cited = answer_citation.c
    last = (
        sa.select(sa.func.max(cited.cited_at))
        .where(cited.tenant_id == query.tenant_id, cited.document_id == document.c.id)
        .correlate(document)
        .scalar_subquery()
    )
    live = sa.and_(
        document_version.c.document_id == document.c.id, document_version.c.version == document.c.live_version
    )
    found = (
        sa.select(
            document.c.id,
            document.c.collection_id,
            document.c.created_at,
            *(document_version.c[name] for name in ("filename", "bytes", "page_count", "chunk_count")),
            document_version.c.embedding_tokens,
            last.label("last_cited"),
        )
        .join(document_version, live)
        .where(document.c.tenant_id == query.tenant_id)
        .subquery()
    )
    unused: sa.ColumnElement[bool] = found.c.last_cited.is_(None)
    if query.since is not None:
        unused = sa.or_(unused, found.c.last_cited < query.since * _MICRO)
    order = found.c.created_at, found.c.id
    statement = sa.select(found).where(unused).order_by(*order).limit(query.limit + 1)
    if query.page is not None:
        try:
            place = decode_cursor(query.page, float, str)
        except InvalidRequest as error:
            raise InvalidRequest("page must be the next_page of this list.", param="page") from error
        statement = statement.where(sa.tuple_(*order) > sa.tuple_(*place))
    rows = connection.execute(statement).all()
    shown, next_page = cut(rows, query.limit, lambda row: (row.created_at, row.id))
    return {
        "object": "page",
        "data": [
            {
                "object": "overview.unused_document",
                "document_id": row.id,
                "name": row.filename,
                "collection_id": row.collection_id,
                "created_at": int(row.created_at),
                "age_days": max(0, as_of - int(row.created_at)) // 86_400,
                "bytes": row.bytes,
                "num_pages": row.page_count,
                "num_chunks": row.chunk_count,
                "embedding_tokens": row.embedding_tokens,
                "last_cited_at": None if row.last_cited is None else row.last_cited // _MICRO,
            }
            for row in shown
        ],
        "has_more": next_page is not None,
        "next_page": next_page,
        "as_of": as_of,
    }
