"""Keyword search in the database, over text and headings of visible chunks, and the input of the Tantivy index.

Both rank by BM25 (Robertson and Zaragoza 2009) with stemming, heavier headings, and document frequencies of the
tenant's collections.
SQLite: FTS5; a second, trigram index finds scripts without spaces and parts of identifiers.
PostgreSQL: `app.db.word_ranking` over the table `chunk_words`, by the terms of the Tantivy index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import sqlalchemy as sa

from app.db import chunk_words, fts5
from app.db.dialect import kind_of
from app.db.scopes import NEXT_KEY, ScopeKeys, documents_in, is_live
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version
from app.db.word_ranking import WordRanking
from app.telemetry.logs import logger
from retrieval.key_set import KeySet
from retrieval.tantivy_fields import LexicalEntry
from retrieval.terms import is_unspaced, pieces, words
from retrieval.types import Scope

_MAX_PARTS = 32  # each is searched in all text in scope
_Found = list[tuple[int, float]]


class DatabaseWords:
    """The keyword search of a database. Safe to call from several threads.

    Example:
        >>> DatabaseWords(database, scopes=ScopeKeys(database)).search("notice period", scope=Scope("acme"), k=10)
    """

    def __init__(self, database: Database, *, scopes: ScopeKeys) -> None:
        """Create it; `scopes` has the visible chunks of a scope."""
        self._database = database
        self._scopes = scopes
        self._ranking = None if database.kind == "sqlite" else WordRanking()

    def search(self, query: str, *, scope: Scope, k: int) -> _Found:
        """At most `k` (key, score) best first, ties by key, scope applied inside. Any text is a valid query."""
        with self._database.read() as connection:
            if self._ranking is not None:
                return self._ranking.search(connection, query, scope=scope, k=k)
            keys = self._scopes.of_in(connection, replace(scope, document_ids=None, filter=None))
            return search_text(connection, query, scope=scope, k=k, keys=keys)

    def forget(self) -> None:
        """Count again how many chunks there are: some were deleted."""
        if self._ranking is not None:
            self._ranking.forget()


def search_text(connection: sa.Connection, query: str, *, scope: Scope, k: int, keys: KeySet | None = None) -> _Found:
    """At most `k` (key, score) of visible chunks in SQLite, in scope, that hold a term of `query`, best first.

    Any text is a valid query; one without a letter or digit finds nothing. Ties are ordered by key. `keys` are the
    visible chunks of the scope's collections, regardless of its documents and filter; they are read when not given.
    """
    assert k >= 0, "a number of results"
    terms = words(query)
    if not terms or k == 0:
        return []
    if not any(is_unspaced(term) for term in terms) and (
        found := fts5.rank(connection, terms, table="chunk_fts", scope=scope, keys=keys, k=k)
    ):
        return found
    if trigrams := pieces(terms, size=3):
        return fts5.rank(connection, trigrams, table="chunk_trigram", scope=scope, keys=keys, k=k)
    # two characters are a word in Chinese, but too short for the trigram index
    return _contained(connection, pieces(terms, size=2)[:_MAX_PARTS], scope, k)


def _contained(connection: sa.Connection, parts: list[str], scope: Scope, k: int) -> _Found:
    """Score by the number of `parts` that a chunk contains. Reads all text in scope."""
    if not parts:
        return []
    text = sa.func.lower(chunk.c.heading + " " + chunk.c.text)
    held = (sa.case((sa.func.instr(text, part) > 0, 1), else_=0) for part in parts)
    score = sum(held, sa.literal(0)).label("score")
    scored = sa.select(chunk.c.key, score).join(document, is_live()).where(*documents_in(scope, connection)).subquery()
    found = sa.select(scored).where(scored.c.score > 0).order_by(scored.c.score.desc(), scored.c.key).limit(k)
    return [(int(key), float(count)) for key, count in connection.execute(found)]


def keep_words(connection: sa.Connection, keys: Sequence[int]) -> None:
    """Write the words of chunks that were just inserted; SQLite's triggers did."""
    if kind_of(connection) == "postgresql":
        chunk_words.write_words(connection, keys)


def full_text_defects(connection: sa.Connection) -> int:
    """Count chunks without their words, and words without a chunk."""
    return fts5.defects(connection) if kind_of(connection) == "sqlite" else chunk_words.lacking(connection)


def rebuild_full_text(database: Database) -> None:
    """Rebuild SQLite's full-text tables from `chunk`; writers wait meanwhile. PostgreSQL's is completed."""
    if database.kind == "sqlite":
        with database.write() as connection:
            fts5.rebuild(connection)
    complete_words(database)


def complete_words(database: Database) -> None:
    """Write the words that chunks lack after an upgrade or in a restored backup; SQLite's triggers leave none out."""
    if database.kind == "postgresql" and (added := chunk_words.fill(database)):
        logger().info("words.completed", chunks=added)


_AT_ONCE = 500  # keys in one statement

_ENTRIES = (
    sa.select(chunk.c.key, document.c.tenant_id, document.c.collection_id, chunk.c.heading, chunk.c.text)
    .select_from(chunk)
    .join(document, is_live())
    .order_by(chunk.c.key)
)


class LexicalEntryRepository:
    """Reads the visible chunks of all tenants as entries of a Tantivy index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def large(self) -> int:
        """Visible chunks from which on the Tantivy index is better than the database's own search."""
        return 50_000 if self._database.kind == "sqlite" else 1

    def count(self) -> int:
        """The number of visible chunks."""
        live = sa.and_(
            document_version.c.document_id == document.c.id, document_version.c.version == document.c.live_version
        )
        query = sa.select(sa.func.coalesce(sa.func.sum(document_version.c.chunk_count), 0)).join(document, live)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def next_key(self) -> int:
        """The key that the next new chunk will get."""
        with self._database.read() as connection:
            return int(connection.execute(NEXT_KEY).scalar_one())

    def entries(self, keys: Sequence[int]) -> Iterator[list[LexicalEntry]]:
        """The visible chunks among `keys`, in batches, each its own transaction."""
        for start in range(0, len(keys), _AT_ONCE):
            some = [int(key) for key in keys[start : start + _AT_ONCE]]
            with self._database.read() as connection:
                rows = connection.execute(_ENTRIES.where(chunk.c.key.in_(some))).all()
            yield [LexicalEntry(*row) for row in rows]
