"""The words of each chunk as numbers, on PostgreSQL: the table `chunk_words`, written in the transaction of its chunks.

The table is derived from `chunk` and has its rows deleted by its foreign key. It is not in the metadata, since SQLite
has FTS5 instead. What a row holds is made by `retrieval.numbered_terms`.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.session import Database
from app.db.tables.documents import chunk, document
from retrieval.numbered_terms import numbered
from retrieval.tantivy_fields import LexicalEntry

_AT_ONCE = 500  # chunks in one statement, and in one transaction of `fill`

chunk_words = sa.Table(
    "chunk_words",
    sa.MetaData(),
    sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("collection_id", sa.Text, nullable=False),
    sa.Column("words", sa.Integer, nullable=False),  # the lengths of both fields, in terms
    sa.Column("parts", sa.Integer, nullable=False),
    sa.Column("numbers", sa.ARRAY(sa.BigInteger), nullable=False),
)
"""Indexed by `numbers` (GIN), and by tenant and collection with both lengths."""

_ENTRIES = (
    sa.select(chunk.c.key, document.c.tenant_id, document.c.collection_id, chunk.c.heading, chunk.c.text)
    .join(document, document.c.id == chunk.c.document_id)
    .order_by(chunk.c.key)
)
_OF_KEYS = _ENTRIES.where(chunk.c.key.in_(sa.bindparam("keys", expanding=True)))
_LACKING = ~sa.exists().where(chunk_words.c.key == chunk.c.key).correlate(chunk)
_NEXT = (
    # a deletion waits until the row is written, which it then deletes
    _ENTRIES.where(_LACKING, chunk.c.key > sa.bindparam("after"))
    .limit(_AT_ONCE)
    .with_for_update(read=True, key_share=True, of=chunk)
)
_INSERT = insert_or_ignore(chunk_words)
_COUNT_LACKING = sa.select(sa.func.count()).select_from(chunk).where(_LACKING)


def write_words(connection: sa.Connection, keys: Sequence[int]) -> None:
    """Insert the rows of chunks that were just inserted in this transaction."""
    for start in range(0, len(keys), _AT_ONCE):
        found = connection.execute(_OF_KEYS, {"keys": keys[start : start + _AT_ONCE]})
        _insert(connection, [LexicalEntry(*row) for row in found])


def fill(database: Database) -> int:
    """Insert the rows that are missing, some hundred chunks a transaction; returns their number.

    Several processes may fill at a time: a row that another one has just inserted is left as it is.
    """
    after, added = -1, 0
    while True:
        with database.write() as connection:
            entries = [LexicalEntry(*row) for row in connection.execute(_NEXT, {"after": after})]
            _insert(connection, entries)
        if not entries:
            return added
        after, added = entries[-1].key, added + len(entries)


def lacking(connection: sa.Connection) -> int:
    """The number of chunks without a row. A row without a chunk cannot be."""
    return int(connection.execute(_COUNT_LACKING).scalar_one())


def _insert(connection: sa.Connection, entries: Sequence[LexicalEntry]) -> None:
    if entries:
        connection.execute(_INSERT.on(connection), [_row(entry) for entry in entries])


def _row(entry: LexicalEntry) -> dict[str, object]:
    terms = numbered(entry)
    return {
        "key": entry.key,
        "tenant_id": entry.tenant_id,
        "collection_id": entry.collection_id,
        "words": terms.words,
        "parts": terms.parts,
        "numbers": terms.numbers,
    }
