"""Changes the embedder without downtime: new vectors are built beside those in use, then replace them.

The vectors of one embedder are a generation. The models in use are one immutable object (`app.server.serving.Models`):
embedder, index and everything assembled around them. A request reads it once, so no request searches the vectors of
one model with the embedded question of another.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from app.db.audit import Record
from app.db.index_generations import IndexGeneration, IndexGenerationRepository, Standing
from app.db.vectors import VectorRepository
from app.documents.index_ports import VectorStore, VectorStores
from app.documents.reembedding import Reembedder, Target, TextOf
from app.errors import AppError, Conflict, StorageFull, StoreUnavailable
from app.server.serving import Building, Models, Serving
from app.telemetry.logs import logger
from retrieval.errors import RetrievalError
from retrieval.ports import Embedder

_RETRY_SECONDS = 5.0  # before a retry, where the database was locked or full
_WORKER_SECONDS = 0.1  # between two polls of the old worker
_PURGED_AT_ONCE = 2000
_CLOSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class EmbedderStack:
    """An embedder, and functions that build the parts that depend on it."""

    embedder: Embedder
    text_of: TextOf
    open_index: Callable[[int], VectorStore]
    """The index of a generation, built from SQL where it is not saved."""
    assemble: Callable[[VectorStore], Models]
    """The models around an index; the worker is not started yet."""


class EmbedderSwap:
    """A background thread that fills, swaps and deletes generations. `start` and `close` it once.

    Example:
        >>> swap.start(generations.prepare(embedder.info, source=settings.embedder))
        >>> swap.building
        Building(generation=2, done=4000, total=9000, error=None)
        >>> swap.confirm(2)
    """

    def __init__(
        self,
        *,
        generations: IndexGenerationRepository,
        vectors: VectorRepository,
        reembedder: Reembedder,
        serving: Serving,
        load: Callable[[IndexGeneration], EmbedderStack],
        stack: EmbedderStack,
        stores: VectorStores,
    ) -> None:
        """Take collaborators.

        Args:
            generations: The rows of generations.
            vectors: The stored vectors.
            reembedder: Embeds the chunks a generation lacks.
            serving: Holds the models in use; the swap installs the next ones there.
            load: Returns the stack of a generation's embedder; raises SetupError or RetrievalError where it cannot be
                loaded.
            stack: The stack in use.
            stores: Drops the index of a generation whose vectors are deleted.
        """
        self._generations = generations
        self._vectors = vectors
        self._reembedder = reembedder
        self._serving = serving
        self._load = load
        self._stack = stack
        self._stores = stores
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()  # guards the next three fields
        self._target: tuple[IndexGeneration, EmbedderStack | None] | None = None
        self._building: Building | None = None
        self._swapping = False
        self._thread = threading.Thread(target=self._run, name="footnote-embedder-swap", daemon=True)

    def start(self, standing: Standing) -> None:
        """Start the thread, with the generation to build that the start of the server found, if any."""
        if standing.rejected is not None:
            logger().warning("generation.rejected", generation=standing.rejected.id, model=standing.rejected.model)
        if standing.building is not None:
            self._target = (standing.building, None)
            self._building = Building(standing.building.id, 0, 0)
        self._thread.start()

    @property
    def building(self) -> Building | None:
        """Progress of the generation being built; None where none is."""
        return self._building

    @property
    def swapping(self) -> bool:
        """Whether ingestion pauses while one generation takes another's place."""
        return self._swapping

    @property
    def closing(self) -> bool:
        """Whether `close` was called."""
        return self._closing.is_set()

    def confirm(self, generation_id: int, *, record: Record | None = None) -> None:
        """Keep the generation in use, and delete earlier ones in the background.

        `record` is written to the audit log for each of them.

        Raises:
            NotFound, Conflict: It is not in use, or no earlier generation is kept.
        """
        for previous in self._generations.before(generation_id):
            self._generations.retire(previous.id, record=record)
        self._wake.set()

    def roll_back(self, generation_id: int, *, record: Record | None = None) -> IndexGeneration:
        """Return to the generation before the one in use; chunks added since are embedded for it first.

        `record` is written to the audit log in the same transaction.

        Raises:
            NotFound, Conflict: It is not in use, no earlier generation is kept, or another one is being built.
            SetupError, RetrievalError: The earlier embedder cannot be loaded; nothing has changed.
        """
        previous = self._generations.before(generation_id)[0]
        if self._building is not None:
            raise Conflict("Another generation is being built; wait for it, or set its embedder back.")
        stack = self._load(previous)
        with self._lock:
            target = self._generations.go_back(previous.id, record=record)
            self._target, self._building = (target, stack), Building(target.id, 0, 0)
        self._wake.set()
        return target

    def close(self) -> None:
        """Stop the thread; an unfinished generation is continued at the next start."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            self._retried(self._mend)
            while not self._closing.is_set():
                self._retried(self._build)
                self._retried(self._clear)
                self._wake.wait()
                self._wake.clear()
        except _Closing:
            return

    def _retried(self, work: Callable[[], None]) -> None:
        """Call `work`, and retry while the database is unavailable; others are logged and shown as `building.error`."""
        while True:
            self._check()
            try:
                work()
            except (StoreUnavailable, StorageFull) as error:
                logger().warning("generation.waiting", error=str(error))
                self._closing.wait(_RETRY_SECONDS)
                continue
            except _Closing:
                raise
            except Exception as error:  # noqa: BLE001 - the generation in use keeps serving; it is logged
                logger().error("generation.failed", error=type(error).__name__, exc_info=error)
                known = isinstance(error, AppError | RetrievalError)
                reason = str(error) if known else "Something went wrong on our side; the log has it."
                with self._lock:
                    if self._building is not None:
                        found = self._building
                        self._building = Building(found.generation, found.done, found.total, error=reason)
            return

    def _check(self) -> None:
        if self._closing.is_set():
            raise _Closing

    def _mend(self) -> None:
        """Embed chunks the generation in use lacks: an earlier process may have indexed them with another embedder."""
        models = self._serving.current()
        target = Target(models.index.generation, self._stack.embedder, self._stack.text_of)
        filled = self._reembedder.fill(target, before=self._check, after=lambda _: None)
        if filled:
            logger().warning("generation.mended", generation=target.generation, chunks=filled)
            models.index.reconcile()

    def _build(self) -> None:
        """Build the target generation, unless there is none or it failed; the next start tries again."""
        target, building = self._target, self._building
        if target is not None and building is not None and building.error is None:
            self._switch(*target)

    def _switch(self, generation: IndexGeneration, loaded: EmbedderStack | None) -> None:
        """Fill the generation, then swap. Ingestion pauses for the last short steps; searches never wait."""
        stack = loaded or self._load(generation)
        self._target = (generation, stack)  # not loaded again after a retry
        target = Target(generation.id, stack.embedder, stack.text_of)
        self._building = Building(generation.id, *self._reembedder.progress(generation.id))
        while self._fill(target):  # documents still arrive
            pass
        self._generations.ready(generation.id)
        index = stack.open_index(generation.id)
        self._serving.incoming = index  # deletions reach both indexes from now on
        old = self._serving.current()
        self._swapping = True
        try:
            old.worker.stop()
            while old.worker.alive():  # it may still store vectors of the old embedder
                self._check()
                self._closing.wait(_WORKER_SECONDS)
            self._check()
            self._fill(target)
            index.reconcile()
            models = stack.assemble(index)
            self._generations.activate(generation.id)
        except BaseException:
            self._serving.incoming = None
            index.close()
            if not self._closing.is_set():
                self._resume(old)
                self._swapping = False
            raise
        self._serving.install(models)
        self._serving.incoming = None
        models.worker.start()
        self._swapping = False
        logger().info("generation.swapped", generation=generation.id, before=old.index.generation)
        with self._lock:
            self._stack, self._target, self._building = stack, None, None
        old.index.close()  # saved for a rollback; requests that began before can still search it

    def _fill(self, target: Target) -> int:
        return self._reembedder.fill(target, before=self._check, after=self._advance)

    def _advance(self, count: int) -> None:
        found = self._building
        assert found is not None, "progress is counted only while building"
        self._building = Building(found.generation, found.done + count, max(found.total, found.done + count))

    def _resume(self, old: Models) -> None:
        """Ingest with the old embedder again, by a new worker: a stopped worker cannot be restarted."""
        models = self._stack.assemble(old.index)
        self._serving.install(models)
        models.worker.start()

    def _clear(self) -> None:
        """Delete the vectors and the index of retired generations, in small transactions."""
        for generation in self._generations.unpurged():
            last: int | None = -1
            while last is not None:
                self._check()
                last = self._vectors.purge(generation.id, after=last, limit=_PURGED_AT_ONCE)
            self._stores.drop(generation.id)
            self._generations.purged(generation.id)
            logger().info("generation.purged", generation=generation.id)


class _Closing(Exception):
    """The process is shutting down; the next start continues the work."""
