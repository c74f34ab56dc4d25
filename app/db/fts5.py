"""BM25 ranking with SQLite's FTS5, with document frequencies of the tenant's collections and not of the whole table.

`bm25()` (Robertson and Zaragoza 2009) weighs a word by its document frequency in the whole table. With that weight, the
uploads of other tenants would change a tenant's ranking, and so leak information. Unless the scope is the whole
database, each word is therefore ranked alone, and its scores are multiplied by the ratio of both weights. The average
length of a chunk stays that of the whole table.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from app.db.scopes import documents_in, is_live
from app.db.tables.documents import chunk, collection, document
from retrieval.key_set import KeySet
from retrieval.terms import sqlite_idf
from retrieval.types import Scope

TABLES = ("chunk_fts", "chunk_trigram")
"""The FTS5 tables over `chunk`: of words and of trigrams."""

SCHEMA = (
    "CREATE VIRTUAL TABLE chunk_fts USING fts5(text, heading, content='chunk', content_rowid='key',"
    " tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE chunk_trigram USING fts5(text, heading, content='chunk', content_rowid='key',"
    " tokenize='trigram')",
)
"""Both tables as the migrations make them; triggers fill them there."""

_HEADING_WEIGHT = 4.0  # of a word in a heading, relative to the text: tuned on four sets of questions
_DEEPER, _SPARE = 4, 64  # ranks read for k results in scope, before all are read

# composed once: composing a statement takes longer than running it
_USED = sa.exists().where(document.c.collection_id == collection.c.id).correlate(collection)
_OTHER = collection.c.tenant_id != sa.bindparam("its_tenant")
_OTHERS = sa.select(sa.exists().where(_OTHER, _USED))
_NOT_ASKED = sa.select(
    sa.exists().where(_OTHER | collection.c.id.not_in(sa.bindparam("its_collections", expanding=True)), _USED)
)

_Found = list[tuple[int, float]]
_Keys = npt.NDArray[np.int64]
_Scores = npt.NDArray[np.float64]


def rank(
    connection: sa.Connection, terms: Sequence[str], *, table: str, scope: Scope, keys: KeySet | None, k: int
) -> _Found:
    """At most `k` (key, score) of visible chunks in scope that hold a term, best first, ties by key.

    Args:
        connection: To SQLite.
        terms: Of letters, digits and marks only: nothing to escape.
        table: `chunk_fts` or `chunk_trigram`.
        scope: Document frequencies are those of its collections; its documents and filter only select.
        keys: The visible chunks of the scope's collections; `None` means that they are read.
        k: At least 1.
    """
    if _is_everything(connection, scope):
        return _rank_all(connection, terms, table, scope, keys, k)
    whole = replace(scope, document_ids=None, filter=None)
    return _rank_some(connection, terms, table, scope, _keys(connection, whole) if keys is None else keys, k)


def _rank_all(
    connection: sa.Connection, terms: Sequence[str], table: str, scope: Scope, keys: KeySet | None, k: int
) -> _Found:
    """Rank with FTS5 first, then check scope: joining each match to its document costs as much as ranking it."""
    any_of = " OR ".join(f'"{term}"' for term in terms)
    by_keys = keys is not None and scope.document_ids is None and scope.filter is None
    # Nearly all chunks are visible, unless versions are being replaced, and the check costs nothing.
    depth = k + _SPARE if by_keys else _DEEPER * k + _SPARE
    best = connection.exec_driver_sql(
        f"SELECT rowid, bm25({table}, 1.0, {_HEADING_WEIGHT}) AS rank FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - our names
        " ORDER BY rank, rowid LIMIT ?",
        (any_of, depth),
    ).all()
    if by_keys:
        assert keys is not None, "checked above"
        inside = keys.contains(np.fromiter((row[0] for row in best), dtype=np.int64, count=len(best))).tolist()
        found = [row for row, shown in zip(best, inside, strict=True) if shown][:k]
    else:
        in_scope = _visible(connection, scope, [row[0] for row in best])
        found = [row for row in best if row[0] in in_scope][:k]
    if len(found) < k and len(best) == depth:
        index = sa.table(table, sa.column("rowid", sa.Integer), sa.column(table))
        match = index.c[table].op("MATCH", is_comparison=True)
        weights = (sa.literal(1.0), sa.literal(_HEADING_WEIGHT))  # text, heading
        worst_first = sa.func.bm25(sa.literal_column(table), *weights, type_=sa.Double).label("rank")
        ranked = sa.select(index.c.rowid, worst_first).where(match(any_of)).order_by(worst_first, index.c.rowid)
        every = ranked.join(chunk, chunk.c.key == index.c.rowid).join(document, is_live())
        found = list(connection.execute(every.where(*documents_in(scope, connection)).limit(k)))
    return [(int(key), -float(score)) for key, score in found]  # bm25() is negative; better matches are more negative


def _rank_some(
    connection: sa.Connection, terms: Sequence[str], table: str, scope: Scope, keys: KeySet, k: int
) -> _Found:
    rows = connection.exec_driver_sql(f"SELECT count(*) FROM {table}_docsize").scalar_one()  # noqa: S608 - our names
    found: list[_Keys] = []
    scores: list[_Scores] = []
    for term in terms:
        held, weight = _postings(connection, term, table)
        inside = keys.contains(held)
        if count := int(inside.sum()):
            boost = sqlite_idf(count, total=len(keys)) / sqlite_idf(len(held), total=rows)
            found.append(held[inside])
            scores.append(weight[inside] * boost)
    if not found:
        return []
    distinct, place = np.unique(np.concatenate(found), return_inverse=True)
    total = np.bincount(place, weights=np.concatenate(scores))
    order = np.argsort(-total, kind="stable")  # distinct keys ascend: ties are ordered by key

    depth = _DEEPER * k + _SPARE
    best = distinct[order[:depth]]
    in_scope = _visible(connection, scope, best.tolist())
    if len(in_scope) < k and len(order) > depth:
        within = _keys(connection, scope)
        order = order[within.contains(distinct[order])]
        in_scope = set(distinct[order].tolist())
    ranked = zip(distinct[order].tolist(), total[order].tolist(), strict=True)
    return [(key, score) for key, score in ranked if key in in_scope][:k]


def _postings(connection: sa.Connection, term: str, table: str) -> tuple[_Keys, _Scores]:
    """The rows that contain a term, `(n,)` ascending, and their scores by it alone, `(n,)` above 0."""
    rows = connection.exec_driver_sql(
        f"SELECT rowid, -bm25({table}, 1.0, {_HEADING_WEIGHT}) FROM {table} WHERE {table} MATCH ?",  # noqa: S608 - our names
        (f'"{term}"',),
    ).all()
    keys = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    return keys, np.fromiter((row[1] for row in rows), dtype=np.float64, count=len(rows))


def _is_everything(connection: sa.Connection, scope: Scope) -> bool:
    """Whether no collection out of scope has a document; a document's tenant is that of its collection."""
    asked = {"its_tenant": scope.tenant_id}
    if scope.collection_ids is None:
        return not connection.execute(_OTHERS, asked).scalar_one()
    return not connection.execute(_NOT_ASKED, asked | {"its_collections": list(scope.collection_ids)}).scalar_one()


def _visible(connection: sa.Connection, scope: Scope, keys: list[int]) -> set[int]:
    """The members of `keys` that are visible and in scope."""
    # EXISTS and not a join, which SQLite would start with all documents of the tenant
    shown = sa.exists().where(is_live(), *documents_in(scope, connection)).correlate(chunk)
    return set(connection.execute(sa.select(chunk.c.key).where(chunk.c.key.in_(keys), shown)).scalars())


def _keys(connection: sa.Connection, scope: Scope) -> KeySet:
    query = sa.select(chunk.c.key).join(document, is_live()).where(*documents_in(scope, connection))
    return KeySet(np.fromiter(connection.execute(query).scalars(), dtype=np.int64))


def defects(connection: sa.Connection) -> int:
    """Count chunks without a row in an FTS5 table, and rows without a chunk."""
    found = 0
    for table in TABLES:
        rows = sa.table(f"{table}_docsize", sa.column("id", sa.Integer))
        lost = sa.select(sa.func.count()).select_from(chunk).where(chunk.c.key.not_in(sa.select(rows.c.id)))
        surplus = sa.select(sa.func.count()).select_from(rows).where(rows.c.id.not_in(sa.select(chunk.c.key)))
        found += connection.execute(lost).scalar_one() + connection.execute(surplus).scalar_one()
    return found


def rebuild(connection: sa.Connection) -> None:
    """Rebuild both FTS5 tables from `chunk`; writers wait meanwhile (sqlite.org/fts5.html, section 6.10)."""
    for table in TABLES:
        connection.exec_driver_sql(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")  # noqa: S608 - our names
