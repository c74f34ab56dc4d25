"""Keyword search in the database, over text and headings of visible chunks, and the input of the Tantivy index.

SQLite: FTS5 ranks by BM25 (Robertson and Zaragoza 2009) with Porter stemming and weighted headings. Document
frequencies are those of the tenant's collections. A second, trigram index finds scripts without spaces and parts of
identifiers.
PostgreSQL: a tsvector is ranked by cover density (Clarke, Cormack and Tudhope 2000). It is not BM25, so scores are
comparable only within one search. Scripts without spaces are found by a scan of the text in scope.
"""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from app.db import fts5
from app.db.dialect import kind_of
from app.db.scopes import NEXT_KEY, documents_in, is_live
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version
from retrieval.key_set import KeySet
from retrieval.tantivy_fields import LexicalEntry
from retrieval.terms import is_unspaced, pieces, words
from retrieval.types import Scope

_MAX_PARTS = 32  # each is searched in all text in scope
_Found = list[tuple[int, float]]


def search_text(connection: sa.Connection, query: str, *, scope: Scope, k: int, keys: KeySet | None = None) -> _Found:
    """At most `k` (key, score) of visible chunks in scope that hold a term of `query`, best first, ties by key.

    Any text is a valid query; one without a letter or digit finds nothing. `keys` are the visible chunks of the scope's
    collections, regardless of its documents and filter; SQLite reads them when they are not given.
    """
    assert k >= 0, "a number of results"
    terms = words(query)
    if not terms or k == 0:
        return []
    on_sqlite, unspaced = kind_of(connection) == "sqlite", any(is_unspaced(term) for term in terms)
    if not unspaced:
        if not on_sqlite:
            return _tsvector(connection, terms, scope, k)
        if found := fts5.rank(connection, terms, table="chunk_fts", scope=scope, keys=keys, k=k):
            return found
    if on_sqlite and (trigrams := pieces(terms, size=3)):
        return fts5.rank(connection, trigrams, table="chunk_trigram", scope=scope, keys=keys, k=k)
    # two characters are a word in Chinese, but too short for the trigram index
    return _contained(connection, pieces(terms, size=2)[:_MAX_PARTS], scope, k)


def _tsvector(connection: sa.Connection, terms: list[str], scope: Scope, k: int) -> _Found:
    vector: sa.ColumnElement[str] = sa.literal_column("chunk.search_vector")
    any_of = sa.func.to_tsquery(sa.text("'simple'::regconfig"), " | ".join(f"'{term}'" for term in terms))
    score = sa.func.ts_rank_cd(vector, any_of, 1, type_=sa.Double).label("score")  # 1: by 1 + log(length)
    found = (
        sa.select(chunk.c.key, score)
        .join(document, is_live())
        .where(vector.op("@@", is_comparison=True)(any_of), *documents_in(scope, connection))
        .order_by(score.desc(), chunk.c.key)
        .limit(k)
    )
    return [(int(key), float(rank)) for key, rank in connection.execute(found)]


def _contained(connection: sa.Connection, parts: list[str], scope: Scope, k: int) -> _Found:
    """Score by the number of `parts` that a chunk contains. Reads all text in scope."""
    if not parts:
        return []
    text = sa.func.lower(chunk.c.heading + " " + chunk.c.text)
    place = sa.func.instr if kind_of(connection) == "sqlite" else sa.func.strpos
    score = sum((sa.case((place(text, part) > 0, 1), else_=0) for part in parts), sa.literal(0)).label("score")
    scored = sa.select(chunk.c.key, score).join(document, is_live()).where(*documents_in(scope, connection)).subquery()
    found = sa.select(scored).where(scored.c.score > 0).order_by(scored.c.score.desc(), scored.c.key).limit(k)
    return [(int(key), float(count)) for key, count in connection.execute(found)]


def ranks_by_bm25(database: Database) -> bool:
    """Whether `search_text` scores by BM25, as on SQLite; PostgreSQL's scores are comparable by rank only."""
    return database.kind == "sqlite"


def full_text_defects(connection: sa.Connection) -> int:
    """Count chunks without a full-text row, and full-text rows without a chunk.

    Always 0 on PostgreSQL, where the full-text index is a generated column of `chunk`.
    """
    return fts5.defects(connection) if kind_of(connection) == "sqlite" else 0


def rebuild_full_text(connection: sa.Connection) -> None:
    """Rebuild SQLite's full-text tables from `chunk`; PostgreSQL has none."""
    if kind_of(connection) == "sqlite":
        fts5.rebuild(connection)


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
