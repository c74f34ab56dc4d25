"""Collections: the named groups of a tenant's documents."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.audit import Record
from app.db.idempotency import forget_answers
from app.db.removal import FollowRemoval, Removal, remove_documents
from app.db.session import Database
from app.db.tables.documents import collection, document
from app.db.tenants import ensure_tenant
from app.db.values import KEEP, Keep, require_metadata, require_text
from app.errors import Conflict, NotFound
from app.ids import new_id
from app.types import Collection, Principal
from retrieval.filters import parse_filter
from retrieval.types import Metadata, Scope

DEFAULT_NAME = "default"

_counted = sa.select(
    collection,
    sa.select(sa.func.count())
    .where(document.c.collection_id == collection.c.id)
    .correlate(collection)
    .scalar_subquery()
    .label("documents"),
)


class CollectionRepository:
    """Collections of all tenants. `allowed` are the collections that a key may access; None means all.

    Example:
        >>> CollectionRepository(database).create("acme", "contracts").id
        'col_…'
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def create(
        self, tenant_id: str, name: str, *, metadata: Metadata | None = None, instructions: str = ""
    ) -> Collection:
        """A new, empty collection.

        Raises:
            Conflict: The tenant has one of this name.
            InvalidRequest: A name, metadata or instructions that cannot be stored.
        """
        require_text(name, param="name")
        require_text(instructions, param="instructions")
        require_metadata(metadata or {})
        try:
            with self._database.write() as connection:
                return self._insert(connection, tenant_id, name, metadata or {}, instructions)
        except exc.IntegrityError as error:
            raise Conflict("There is a collection of this name already.") from error

    def default(self, tenant_id: str) -> Collection:
        """The tenant's default collection, created at the first call."""
        named = _counted.where(collection.c.tenant_id == tenant_id, collection.c.name == DEFAULT_NAME)
        with self._database.read() as connection:
            row = connection.execute(named).one_or_none()
        if row is not None:
            return _to_collection(row)
        try:
            return self.create(tenant_id, DEFAULT_NAME)
        except Conflict:  # created by another caller in between
            with self._database.read() as connection:
                return _to_collection(connection.execute(named).one())

    def list(self, tenant_id: str, *, allowed: tuple[str, ...] | None = None) -> tuple[Collection, ...]:
        """The collections, oldest first."""
        query = _counted.where(collection.c.tenant_id == tenant_id)
        if allowed is not None:
            query = query.where(collection.c.id.in_(allowed))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(collection.c.created_at, collection.c.id))
            return tuple(_to_collection(row) for row in rows)

    def get(self, collection_id: str, *, tenant_id: str, allowed: tuple[str, ...] | None = None) -> Collection:
        """The collection.

        Raises:
            NotFound: No such collection.
        """
        with self._database.read() as connection:
            return _find(connection, collection_id, tenant_id, allowed)

    def instructions(self, scope: Scope) -> str:
        """The instructions of the one collection that a scope names; empty where it names none or several."""
        if scope.collection_ids is None or len(scope.collection_ids) != 1:
            return ""
        query = sa.select(collection.c.instructions).where(
            collection.c.id == scope.collection_ids[0], collection.c.tenant_id == scope.tenant_id
        )
        with self._database.read() as connection:
            return connection.execute(query).scalar() or ""

    def scope(
        self,
        principal: Principal,
        *,
        collection_ids: Sequence[str] | None,
        document_ids: Sequence[str] | None,
        raw_filter: object,
    ) -> Scope:
        """The scope of a search: what the principal may see, narrowed by the limits that are named.

        Raises:
            NotFound: A named collection does not exist for this principal.
            InvalidFilter: The filter is malformed.
        """
        for collection_id in collection_ids or ():
            self.get(collection_id, tenant_id=principal.tenant_id, allowed=principal.collections)
        allowed = collection_ids if collection_ids is not None else principal.collections
        return Scope(
            tenant_id=principal.tenant_id,
            collection_ids=tuple(allowed) if allowed is not None else None,
            document_ids=tuple(document_ids) if document_ids is not None else None,
            filter=parse_filter(raw_filter) if raw_filter is not None else None,
        )

    def update(
        self,
        collection_id: str,
        *,
        tenant_id: str,
        allowed: tuple[str, ...] | None = None,
        name: str | Keep = KEEP,
        metadata: Metadata | Keep = KEEP,
        instructions: str | Keep = KEEP,
    ) -> Collection:
        """Change the name, the metadata, the instructions, or several of them.

        Raises:
            NotFound: No such collection.
            Conflict: The tenant has another of this name.
            InvalidRequest: A name, metadata or instructions that cannot be stored.
        """
        changes: dict[str, Any] = {}
        if not isinstance(name, Keep):
            require_text(name, param="name")
            changes["name"] = name
        if not isinstance(metadata, Keep):
            require_metadata(metadata)
            changes["metadata"] = dict(metadata)
        if not isinstance(instructions, Keep):
            require_text(instructions, param="instructions")
            changes["instructions"] = instructions
        try:
            with self._database.write() as connection:
                found = _find(connection, collection_id, tenant_id, allowed)
                if not changes:
                    return found
                connection.execute(sa.update(collection).where(collection.c.id == collection_id).values(**changes))
                return _find(connection, collection_id, tenant_id, allowed)
        except exc.IntegrityError as error:
            raise Conflict("There is a collection of this name already.") from error

    def delete(
        self,
        collection_id: str,
        *,
        tenant_id: str,
        allowed: tuple[str, ...] | None = None,
        force: bool = False,
        record: Record | None = None,
        record_document: Record | None = None,
        follow: FollowRemoval | None = None,
    ) -> Removal:
        """Delete an empty collection, or with `force` one and all its documents, for good.

        `record` writes the audit entry of the collection in the same transaction, `record_document` that of each of
        its documents, and `follow` tells the indexes.

        Raises:
            NotFound: No such collection.
            Conflict: It holds documents, and `force` was not given.
        """
        with self._database.write() as connection:
            # locked: a concurrent upload waits, and then finds no collection
            connection.execute(sa.select(collection.c.id).where(collection.c.id == collection_id).with_for_update())
            found = _find(connection, collection_id, tenant_id, allowed)
            if found.documents and not force:
                raise Conflict(f"The collection holds {found.documents} documents; delete them first, or use force.")
            of_collection = sa.select(document.c.id).where(document.c.collection_id == collection_id).with_for_update()
            ids = connection.execute(of_collection.order_by(document.c.id)).scalars().all()
            removal = remove_documents(connection, ids, now=self._clock(), record=record_document, follow=follow)
            connection.execute(sa.delete(collection).where(collection.c.id == collection_id))
            if record is not None:
                record(connection, collection_id, {"name": found.name, "id": collection_id, "documents": len(ids)})
            forget_answers(connection, tenant_id)
            return removal

    def _insert(
        self, connection: sa.Connection, tenant_id: str, name: str, metadata: Metadata, instructions: str
    ) -> Collection:
        now, collection_id = self._clock(), new_id("col")
        ensure_tenant(connection, tenant_id, now=now)
        made = Collection(collection_id, tenant_id, name, metadata, now, documents=0, instructions=instructions)
        values = {"metadata": dict(metadata), "created_at": now, "instructions": instructions}
        connection.execute(sa.insert(collection).values(id=collection_id, tenant_id=tenant_id, name=name, **values))
        return made


def _find(connection: sa.Connection, collection_id: str, tenant_id: str, allowed: tuple[str, ...] | None) -> Collection:
    query = _counted.where(collection.c.id == collection_id, collection.c.tenant_id == tenant_id)
    if allowed is not None:
        query = query.where(collection.c.id.in_(allowed))
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such collection.")
    return _to_collection(row)


def _to_collection(row: sa.Row[Any]) -> Collection:
    return Collection(
        id=row.id,
        tenant_id=row.tenant_id,
        name=row.name,
        metadata=row.metadata,
        created_at=row.created_at,
        documents=row.documents,
        instructions=row.instructions,
    )
