"""Tells all indexes of each change in SQL, at the moments they need and in the order they need."""

import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from app.documents.index_ports import DerivedIndex, Differences, IndexRows, VectorStore, WordStore
from retrieval.ports import Keys


class Indexes:
    """The vector store and the word store of one generation, which change together.

    An ingestion stages rows, commits them (`write_in`), forgets what they replace and publishes them; a deletion
    removes chunks inside its transaction (`remove_in`) and forgets them after it.

    Example:
        >>> indexes.stage([rows])
        >>> with database.write() as connection:
        ...     indexes.write_in(connection, rows, removed=keys_of_the_version_before)
        >>> indexes.forget(keys_of_the_version_before)
        >>> indexes.publish([rows])
    """

    def __init__(self, vectors: VectorStore, words: WordStore) -> None:
        self._vectors = vectors
        self._stores: tuple[DerivedIndex, ...] = (vectors, words)

    @property
    def generation(self) -> int:
        """The embedder generation of the vectors."""
        return self._vectors.generation

    def stage(self, rows: Sequence[IndexRows]) -> None:
        """Before the commit, outside of transactions.

        Raises:
            StoreUnavailable: A store cannot be reached; the commit must not follow.
        """
        for store in self._stores:
            store.stage(rows)

    def write_in(self, connection: sa.Connection, rows: IndexRows, *, removed: Keys) -> None:
        """Inside the transaction that makes a version visible: remove the keys it replaces, then write its rows."""
        self.remove_in(connection, removed)
        for store in self._stores:
            store.write_in(connection, rows)

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        """Inside a transaction that deleted chunks."""
        if len(keys):
            for store in self._stores:
                store.remove_in(connection, keys)

    def publish(self, rows: Sequence[IndexRows]) -> None:
        """After the commit: the chunks are found from here on."""
        for store in self._stores:
            store.publish(rows)

    def forget(self, keys: Keys) -> None:
        """After a commit that deleted chunks: they are not found from here on."""
        if len(keys):
            for store in self._stores:
                store.forget(keys)

    def repair(self, *, only_tell: bool = False, pause: Callable[[float], None] = time.sleep) -> Differences:
        """Compare every store with SQL, and repair it unless `only_tell`; returns the sum of what was found."""
        found = Differences()
        for store in self._stores:
            found = found.plus(store.repair(only_tell=only_tell, pause=pause))
        return found

    def rest(self) -> None:
        """Between jobs."""
        for store in self._stores:
            store.rest()
