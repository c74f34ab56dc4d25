"""The ports of indexes: what is derived from SQL must follow it, by moments (docs/adr/0100).

Apart from `app.documents.ports`, since these need numpy, which a command without a server should not import.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import sqlalchemy as sa

from retrieval.ports import DenseIndex, Keys, LexicalIndex, Vectors
from retrieval.types import EmbedderInfo

Look: TypeAlias = Callable[[], tuple[Keys, Keys]]
"""The keys that an index lacks now, and those that it holds in surplus."""

_SECOND_LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRows:
    """The chunks of one version of a document, in order.

    `keys` is `(n,)` int64, taken before the commit: rows that are staged and not committed have keys that no chunk
    gets. `vectors` is `(n, dim)` float32, `texts` has n texts.
    """

    keys: Keys
    vectors: Vectors
    tenant_id: str
    collection_id: str
    document_id: str
    version: int
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Differences:
    """How many visible chunks an index lacked, and how many of its keys belonged to none."""

    missing: int = 0
    surplus: int = 0

    def plus(self, other: "Differences") -> "Differences":
        """The sums of both."""
        return Differences(self.missing + other.missing, self.surplus + other.surplus)


class RemovesChunks(Protocol):
    """What is told of deleted chunks: the indexes."""

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        """Inside the transaction in which chunks were deleted, or replaced by those of a new version."""
        ...

    def forget(self, keys: Keys) -> None:
        """After a commit that deleted chunks: they are not found from here on. Unknown keys are ignored."""
        ...


class Repairable(Protocol):
    """What can be compared with SQL, and made equal to it."""

    def repair(self, *, only_tell: bool = False, pause: Callable[[float], None] = time.sleep) -> Differences:
        """Compare with SQL, both ways, and repair the differences unless `only_tell`; returns what was found.

        A commit reaches SQL first and an index a moment later. So a difference counts only when a second comparison
        finds it again, after a `pause` of some seconds. Writes and searches go on meanwhile.

        Raises:
            StoreUnavailable: The database or the store cannot be read.
        """
        ...


class DerivedIndex(Repairable, RemovesChunks, Protocol):
    """An index that is derived from SQL and follows it, told of each change at these moments.

    SQL is the truth. A store that is in the same database changes inside of the transaction, another one around it.
    If the process dies between two moments, `repair` makes the index equal to SQL again. Safe to call from several
    threads.
    """

    def stage(self, rows: Sequence[IndexRows]) -> None:
        """Before the commit, outside of transactions: it may use a network. What is staged must not be found yet.

        Raises:
            StoreUnavailable: The commit must not follow.
        """
        ...

    def write_in(self, connection: sa.Connection, rows: IndexRows) -> None:
        """Inside the transaction that makes the chunks visible."""
        ...

    def publish(self, rows: Sequence[IndexRows]) -> None:
        """After the commit: the chunks are found from here on. Keys that are there already are replaced."""
        ...

    def rest(self) -> None:
        """Between jobs: what can wait is done, such as saving."""
        ...

    def close(self) -> None:
        """Save and let go of what is open."""
        ...


class VectorStore(DerivedIndex, DenseIndex, Protocol):
    """Where the vectors of one generation are searched. It stores them as float16 holds them, as SQL does."""

    @property
    def generation(self) -> int:
        """The embedder generation of the vectors."""
        ...

    def __len__(self) -> int: ...

    def reconcile(self) -> None:
        """Make it equal to SQL now, while its writes wait: before it is put into use."""
        ...


class WordStore(DerivedIndex, LexicalIndex, Protocol):
    """Where words are searched. It needs neither the vectors of rows nor a generation."""

    @property
    def serving(self) -> str:
        """Which engine answers now."""
        ...


class VectorStores(Protocol):
    """Opens and drops the store of each generation."""

    def open(self, generation: int, embedder: EmbedderInfo) -> VectorStore:
        """The store of a generation, equal to SQL as it was a moment ago.

        Raises:
            IndexDeviceUnavailable: The device that the settings name is not there, or cannot be used.
        """
        ...

    def drop(self, generation: int) -> None:
        """Delete the store of a generation; none is no error."""
        ...


def seen_twice(look: Look, pause: Callable[[float], None]) -> tuple[Keys, Keys]:
    """The keys missing and in surplus at two looks, for a `repair` of what is outside of the database."""
    missing, surplus = look()
    if len(missing) or len(surplus):
        pause(_SECOND_LOOK_SECONDS)
        missing_still, surplus_still = look()
        missing, surplus = np.intersect1d(missing, missing_still), np.intersect1d(surplus, surplus_still)
    return missing, surplus
