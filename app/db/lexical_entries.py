"""What a keyword index beside the database is built from: visible chunks with their tenant and collection."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from app.db.scopes import is_live
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version, key_counter
from retrieval.tantivy_fields import LexicalEntry

_AT_ONCE = 500  # keys in one statement

_ENTRIES = (
    sa.select(chunk.c.key, document.c.tenant_id, document.c.collection_id, chunk.c.heading, chunk.c.text)
    .select_from(chunk)
    .join(document, is_live())
    .order_by(chunk.c.key)
)


class LexicalEntryRepository:
    """Reads visible chunks of all tenants, as a keyword index takes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        """How many chunks are visible."""
        live = sa.and_(
            document_version.c.document_id == document.c.id, document_version.c.version == document.c.live_version
        )
        query = sa.select(sa.func.coalesce(sa.func.sum(document_version.c.chunk_count), 0)).join(document, live)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def next_key(self) -> int:
        """The key the next new chunk will get: none from here on has been given."""
        query = sa.select(key_counter.c.next_key).where(key_counter.c.name == "chunk")
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def entries(self, keys: Sequence[int]) -> Iterator[list[LexicalEntry]]:
        """The visible chunks among `keys`, in batches, each its own transaction."""
        for start in range(0, len(keys), _AT_ONCE):
            some = [int(key) for key in keys[start : start + _AT_ONCE]]
            with self._database.read() as connection:
                rows = connection.execute(_ENTRIES.where(chunk.c.key.in_(some))).all()
            yield [LexicalEntry(*row) for row in rows]
