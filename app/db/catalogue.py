"""The catalogue of a scope: how many documents it holds, their names, and their collections."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from app.db.scopes import documents_in
from app.db.session import Database
from app.db.tables.documents import collection, document, document_version
from app.types import DocumentStatus
from retrieval.types import Scope

_MARKS = " -_.'’–"  # between the words of a name


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document as a list names it: by its file, and by its title where it has one."""

    filename: str
    title: str | None


@dataclass(frozen=True, slots=True)
class Named:
    """A document that can be searched: its id, its live version, and what it is called."""

    id: str
    version: int
    filename: str
    title: str | None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The documents of a scope.

    Attributes:
        searchable: How many can be searched.
        waiting: How many have no version that can be searched, because they are being read or could not be.
        newest: The searchable ones, newest first, up to a limit.
        collections: The names of the collections that hold them, in alphabetical order.
    """

    searchable: int
    waiting: int
    newest: tuple[ListedDocument, ...]
    collections: tuple[str, ...]


class CatalogueRepository:
    """Catalogues of all tenants; the scope holds what the caller may read.

    Example:
        >>> CatalogueRepository(database).of(Scope(tenant_id="acme"), limit=10).searchable
        12
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, scope: Scope, *, limit: int) -> Catalogue:
        """The catalogue of a scope, with at most `limit` of its documents by name.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
        """
        live = document.c.live_version
        with self._database.read() as connection:
            inside = sa.and_(*documents_in(scope, connection), document.c.status != DocumentStatus.DELETING.value)
            searchable, all_documents = connection.execute(
                sa.select(sa.func.count(live), sa.func.count()).select_from(document).where(inside)
            ).one()
            newest = connection.execute(
                sa.select(document_version.c.filename, document_version.c.title)
                .select_from(document)
                .join(
                    document_version,
                    sa.and_(document_version.c.document_id == document.c.id, document_version.c.version == live),
                )
                .where(inside)
                .order_by(document.c.created_at.desc(), document.c.id.desc())
                .limit(limit)
            ).all()
            holding = sa.select(document.c.collection_id).where(inside, live.is_not(None))
            collections = connection.execute(
                sa.select(collection.c.name).where(collection.c.id.in_(holding)).order_by(collection.c.name)
            ).scalars()
            return Catalogue(
                searchable=searchable,
                waiting=all_documents - searchable,
                newest=tuple(ListedDocument(row.filename, row.title) for row in newest),
                collections=tuple(collections),
            )

    def named(
        self, scope: Scope, *, words: Collection[str] = (), ids: Collection[str] | None = None, limit: int
    ) -> tuple[Named, ...]:
        """At most `limit` searchable documents of a scope, those with most of the words first, then the newest.

        Args:
            scope: What the caller may read.
            words: Folded; each document has one at least in its title or in its file's name, where spaces and marks
                between words do not count ("10q" is in "10-Q"). None: every document.
            ids: Only these documents.
            limit: At least 1.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
        """
        table = document_version.c
        called: sa.ColumnElement[str] = sa.func.lower(sa.func.coalesce(table.title, "") + " " + table.filename)
        for mark in _MARKS:
            called = sa.func.replace(called, mark, "")
        held = [sa.case((called.contains(word, autoescape=True), 1), else_=0) for word in sorted(words)]
        score = sum(held, sa.literal(0))
        with self._database.read() as connection:
            inside = [*documents_in(scope, connection), document.c.status != DocumentStatus.DELETING.value]
            if ids is not None:
                inside.append(document.c.id.in_(sorted(ids)))
            if words:
                inside.append(score > 0)
            rows = connection.execute(
                sa.select(document.c.id, table.version, table.filename, table.title)
                .select_from(document)
                .join(
                    document_version,
                    sa.and_(table.document_id == document.c.id, table.version == document.c.live_version),
                )
                .where(*inside)
                .order_by(score.desc(), document.c.created_at.desc(), document.c.id.desc())
                .limit(limit)
            ).all()
        return tuple(Named(row.id, row.version, row.filename, row.title) for row in rows)
