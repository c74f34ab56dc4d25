"""Follows documents until they change. One reader serves all watchers of a process, so that they cost little SQL."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio

from app.errors import AppError
from app.telemetry.logs import logger
from app.types import Document

DocumentKey: TypeAlias = tuple[str, str]
"""The tenant's id and the document's."""

_SHORTEST_S = 0.1  # between two reads
_LONGEST_S = 2.0  # between two reads of a document that does not change
_GROWTH = 1.2  # of the pause after each read without a change: it is a sixth of the time that nothing changed


class Documents(Protocol):
    """Port: reads several documents at once.

    Example:
        >>> documents.read_many([("acme", "doc_1"), ("acme", "doc_gone")]).keys()
        dict_keys([('acme', 'doc_1')])
    """

    def read_many(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, Document]:
        """The documents that exist."""
        ...


@dataclass(slots=True)
class _Watched:
    """One document and its watchers. `document` is None once it is deleted; `changed` is set at the next change."""

    document: Document | None
    due: float
    watchers: int = 0
    pause: float = _SHORTEST_S
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, document: Document | None) -> None:
        """Note what was read, and tell the watchers of a change."""
        if document == self.document:
            self.pause = min(self.pause * _GROWTH, _LONGEST_S)
            return
        self.document, self.pause = document, _SHORTEST_S
        self.changed.set()
        self.changed = asyncio.Event()


class Followed:
    """One watcher's view of a document."""

    def __init__(self, watched: _Watched, failed: "asyncio.Future[None]") -> None:
        self._watched = watched
        self._seen = watched.document
        self._failed = failed

    @property
    def document(self) -> Document | None:
        """The document as last returned by `changed`, or as it was at the beginning; None once it is deleted."""
        return self._seen

    async def changed(self, *, seconds: float) -> None:
        """Wait until the document has changed, at most for `seconds`.

        Raises:
            Exception: The documents cannot be read any more, by a fault of ours.
        """
        if self._watched.document is self._seen:
            change = asyncio.create_task(self._watched.changed.wait())
            either: set[asyncio.Future[Any]] = {change, self._failed}
            try:
                await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                change.cancel()
        if self._failed.done():
            self._failed.result()
        self._seen = self._watched.document


class DocumentWatch:
    """Follows documents for many watchers, with at most ten reads a second. Use it on the event loop alone.

    A read covers all documents that are due, in one SQL statement. A document is read again after 0.1 s, and less often
    the longer it does not change, down to every 2 s. While the database is unavailable, watchers wait.

    Example:
        >>> with watch.following(document) as followed:
        ...     await followed.changed(seconds=30)
        ...     followed.document.status
    """

    def __init__(
        self,
        documents: Documents,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` gives seconds and never goes back; `sleep` waits for seconds of it."""
        self._documents = documents
        self._clock = clock
        self._sleep = sleep
        self._watched: dict[DocumentKey, _Watched] = {}
        self._reading: asyncio.Task[None] | None = None
        self._failed: asyncio.Future[None] | None = None
        self._thread = anyio.CapacityLimiter(1)  # its own: requests that hold all threads do not stop it

    def __len__(self) -> int:
        """The number of documents that are followed."""
        return len(self._watched)

    @contextmanager
    def following(self, document: Document) -> Iterator[Followed]:
        """Follow a document, from its present state, until the block ends."""
        key = document.tenant_id, document.id
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _Watched(document, self._clock() + _SHORTEST_S)
        elif watched.document != document:
            watched.take(document)  # the caller has just read it
        if self._failed is None or self._reading is None or self._reading.done():
            self._failed = asyncio.get_running_loop().create_future()
            # A context of its own: it outlives the request that begins it.
            self._reading = asyncio.create_task(self._read(self._failed), context=Context())
        watched.watchers += 1
        try:
            yield Followed(watched, self._failed)
        finally:
            watched.watchers -= 1
            if not watched.watchers:
                del self._watched[key]

    async def _read(self, failed: "asyncio.Future[None]") -> None:
        """Read the documents that are due until none is followed."""
        try:
            while self._watched:
                await self._sleep(_SHORTEST_S)
                now = self._clock()
                if any(watched.due <= now for watched in self._watched.values()):
                    # with those that are due soon, so that few statements read many documents
                    soon = [key for key, watched in self._watched.items() if watched.due - watched.pause / 2 <= now]
                    await self._read_once(soon)
        except Exception as error:  # noqa: BLE001 - the watchers raise it
            failed.set_exception(error)
            failed.exception()  # retrieved, or asyncio logs it where no watcher is left

    async def _read_once(self, due: Sequence[DocumentKey]) -> None:
        try:
            found = await anyio.to_thread.run_sync(partial(self._documents.read_many, due), limiter=self._thread)
        except AppError as error:
            logger().warning("watch.unread", error=type(error).__name__)
            found = None
        now = self._clock()
        for key in due:
            watched = self._watched.get(key)
            if watched is None:
                continue  # nobody follows it any more
            if found is not None:
                watched.take(found.get(key))
            watched.due = now + (watched.pause if found is not None else _LONGEST_S)
