"""Changes of documents, noted where a tenant watches for them, and the watches that they are in the scope of.

A change is noted in the transaction that makes it, so that no crash loses it (docs/adr/0122).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from app.db.filters import compile_filter
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.documents import api_key, document
from app.db.tables.watches import scope_change, watch
from app.ids import new_id
from retrieval.errors import InvalidFilter
from retrieval.filters import parse_filter

SETTLING_S = 2.0
"""Seconds from a change to the look at it: an index beside the database follows a commit, it is no part of it."""

_A_TURN = 500


def note_changes(connection: sa.Connection, document_ids: Collection[str], *, now: float) -> None:
    """Note that documents are published, deleted or get other metadata, where their tenants watch for changes.

    To be called while they are rows, in the transaction that changes them.
    """
    watched = sa.exists().where(watch.c.tenant_id == document.c.tenant_id, watch.c.on_change)
    ids = sorted(document_ids)
    for start in range(0, len(ids), _A_TURN):
        query = sa.select(document.c.id, document.c.tenant_id, document.c.collection_id).where(
            document.c.id.in_(ids[start : start + _A_TURN]), watched
        )
        rows = [
            {
                "id": new_id("change"),
                "tenant_id": row.tenant_id,
                "collection_id": row.collection_id,
                "document_id": row.id,
                "created_at": now,
            }
            for row in connection.execute(query)
        ]
        if rows:
            connection.execute(sa.insert(scope_change), rows)


class WatchChanges:
    """Makes the watches due whose scope changed.

    Example:
        >>> WatchChanges(database, own).spread()
        1
    """

    def __init__(self, database: Database, own: OwnProcess, *, least_s: int = 300) -> None:
        """Two looks at a watch are at least `least_s` seconds apart."""
        self._database = database
        self._own = own
        self._least_s = least_s

    def spread(self) -> int:
        """Make the watches due that the noted changes are in the scope of, and forget the changes; returns how many.

        Processes beside each other share the changes: what one looks at the others pass over.

        Raises:
            StoreUnavailable, StorageFull: The changes stay noted.
        """
        oldest = sa.select(scope_change).order_by(scope_change.c.created_at, scope_change.c.id).limit(_A_TURN)
        with self._database.read() as connection:  # most of the time there is none
            if connection.execute(oldest.limit(1)).first() is None:
                return 0
        now = self._own.clock()
        with self._database.write() as connection:
            changes = connection.execute(oldest.with_for_update(skip_locked=True)).all()
            by_tenant: dict[str, list[sa.Row[Any]]] = defaultdict(list)
            for change in changes:
                by_tenant[change.tenant_id].append(change)
            found = [
                row.id
                for tenant_id, theirs in sorted(by_tenant.items())
                for row in connection.execute(_watching(tenant_id))
                if _concerns(connection, row, theirs)
            ]
            soon = now + SETTLING_S
            earliest = sa.func.coalesce(watch.c.looked_at + self._least_s, 0.0)
            due = sa.case((earliest > soon, earliest), else_=soon)
            for watch_id in sorted(found):
                connection.execute(
                    sa.update(watch)
                    .where(watch.c.id == watch_id, watch.c.due_at.is_not(None))
                    .values(changed=True, due_at=sa.case((watch.c.due_at < due, watch.c.due_at), else_=due))
                )
            connection.execute(sa.delete(scope_change).where(scope_change.c.id.in_([change.id for change in changes])))
        return len(found)


def _watching(tenant_id: str) -> sa.Select[Any]:
    """The watches of a tenant that are looked at when their scope changes, with the collections of their keys."""
    return (
        sa.select(watch.c.id, watch.c.tenant_id, watch.c.scope, watch.c.presented, api_key.c.collections)
        .outerjoin(api_key, api_key.c.id == watch.c.key_id)
        .where(watch.c.tenant_id == tenant_id, watch.c.on_change, watch.c.due_at.is_not(None))
        .order_by(watch.c.id)
    )


def _concerns(connection: sa.Connection, row: sa.Row[Any], changes: Sequence[sa.Row[Any]]) -> bool:
    """Whether a change is of a document in a watch's scope, or of one whose passages its answer was made from."""
    scope: Mapping[str, Any] = row.scope
    collections = scope["collection_ids"] if scope["collection_ids"] is not None else row.collections
    documents = scope["document_ids"]
    ids = {
        change.document_id
        for change in changes
        if (collections is None or change.collection_id in collections)
        and (documents is None or change.document_id in documents)
    }
    if not ids or scope["filter"] is None or ids & {place[0] for place in row.presented or ()}:
        return bool(ids)
    try:
        parsed = parse_filter(scope["filter"])
    except InvalidFilter:
        return True
    if parsed is None:
        return True
    query = sa.select(document.c.id).where(
        document.c.tenant_id == row.tenant_id,
        document.c.id.in_(sorted(ids)),
        compile_filter(parsed, connection),
    )
    return connection.execute(query.limit(1)).first() is not None
