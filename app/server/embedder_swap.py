"""From one embedder to another without downtime: a generation is built beside the one searched, then takes its place.

What answers requests is one immutable set of stations (`app.state.Models`): embedder, index and all that was made
around them. A request asks for it once, so none ever searches vectors of one model with a question of another.
"""

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.db.audit import Record
from app.db.generations import Generation, GenerationRepository, Standing
from app.db.vectors import VectorRepository
from app.documents.reembedding import Reembedder, Target, TextOf
from app.documents.vector_index import LiveVectorIndex
from app.errors import AppError, Conflict, StorageFull, StoreUnavailable
from app.server.serving import Building, Models, Serving
from app.telemetry.logs import logger
from retrieval.errors import RetrievalError
from retrieval.ports import Embedder

_RETRY_SECONDS = 5.0  # after a database that was locked or full
_WORKER_SECONDS = 0.1  # between two looks whether the old worker has ended
_PURGED_AT_ONCE = 2000
_CLOSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class EmbedderStack:
    """An embedder and how everything else is made around it."""

    embedder: Embedder
    text_of: TextOf
    open_index: Callable[[int], LiveVectorIndex]
    """The index of a generation, built from SQL where it is not saved."""
    assemble: Callable[[LiveVectorIndex], Models]
    """The stations, the worker not yet started."""


class EmbedderSwap:
    """One background thread that fills, swaps and clears away generations; `start` and `close` it once."""

    def __init__(
        self,
        *,
        generations: GenerationRepository,
        vectors: VectorRepository,
        reembedder: Reembedder,
        serving: Serving,
        load: Callable[[Generation], EmbedderStack],
        stack: EmbedderStack,
        folder_of: Callable[[int], Path],
    ) -> None:
        """Take charge of the stations that `serving` made and `stations.models` holds.

        Args:
            generations: What there is in SQL.
            vectors: Its vectors.
            reembedder: Fills a generation.
            stations: Are told what answers requests.
            load: The line of a generation's embedder; raises SetupError or RetrievalError where it is not there.
            serving: The line in use.
            folder_of: Where a generation's index is saved.
        """
        self._generations = generations
        self._vectors = vectors
        self._reembedder = reembedder
        self._serving = serving
        self._load = load
        self._stack = stack
        self._folder_of = folder_of
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()  # guards what follows
        self._target: tuple[Generation, EmbedderStack | None] | None = None
        self._building: Building | None = None
        self._rejected: Generation | None = None
        self._swapping = False
        self._thread = threading.Thread(target=self._run, name="footnote-embedder-swap", daemon=True)

    def start(self, standing: Standing) -> None:
        """Begin, with what the start found to be built."""
        self._rejected = standing.rejected
        if standing.rejected is not None:
            logger().warning("generation.rejected", generation=standing.rejected.id, model=standing.rejected.model)
        if standing.building is not None:
            self._target = (standing.building, None)
            self._building = Building(standing.building.id, 0, 0)
        self._thread.start()

    @property
    def building(self) -> Building | None:
        """How far the generation being built is; None where none is."""
        return self._building

    @property
    def swapping(self) -> bool:
        """Whether ingestion pauses while one generation takes another's place."""
        return self._swapping

    @property
    def rejected(self) -> Generation | None:
        """What the settings ask for and an administrator went back from."""
        return self._rejected

    def confirm(self, generation_id: int, *, record: Record | None = None) -> None:
        """Keep the generation in use for good: those from before it go, in the background, each by `record`.

        Raises:
            NotFound, Conflict: It is not in use, or nothing from before it is kept.
        """
        for previous in self._generations.before(generation_id):
            self._generations.retire(previous.id, record=record)
        self._wake.set()

    def roll_back(self, generation_id: int, *, record: Record | None = None) -> Generation:
        """Go back from the generation in use to the one before; what came since is embedded for it first.

        `record` writes the act down with it.

        Raises:
            NotFound, Conflict: It is not in use, nothing from before it is kept, or another is being built.
            SetupError, RetrievalError: The embedder from before is not there any more; nothing has changed.
        """
        previous = self._generations.before(generation_id)[0]
        if self._building is not None:
            raise Conflict("Another generation is being built; wait for it, or set its embedder back.")
        line = self._load(previous)
        with self._lock:
            target = self._generations.go_back(previous.id, record=record)
            self._target, self._building = (target, line), Building(target.id, 0, 0)
        self._wake.set()
        return target

    def close(self) -> None:
        """Stop; what is being built goes on at the next start."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            self._again(self._mend)
            while not self._closing.is_set():
                self._again(self._build)
                self._again(self._clear)
                self._wake.wait()
                self._wake.clear()
        except _Closing:
            return

    def _again(self, work: Callable[[], None]) -> None:
        """Do it, again and again while the database is away; what fails otherwise is logged and shown."""
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
            except Exception as error:  # noqa: BLE001 - what is searched goes on being searched; it is logged
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
        """Embed what the generation in use lacks: another process may have indexed it while it had another one."""
        models = self._serving.current()
        target = Target(models.index.generation, self._stack.embedder, self._stack.text_of)
        filled = self._reembedder.fill(target, before=self._check, after=lambda _: None)
        if filled:
            logger().warning("generation.mended", generation=target.generation, chunks=filled)
            models.index.reconcile()

    def _build(self) -> None:
        """What is to be built, unless there is nothing, or it failed before: then the next start tries again."""
        target, building = self._target, self._building
        if target is not None and building is not None and building.error is None:
            self._switch(*target)

    def _switch(self, generation: Generation, loaded: EmbedderStack | None) -> None:
        """Fill, then swap: the steps that ingestion waits for are short, and searches wait for none."""
        line = loaded or self._load(generation)
        self._target = (generation, line)  # not loaded again when the database was away
        target = Target(generation.id, line.embedder, line.text_of)
        self._building = Building(generation.id, *self._reembedder.progress(generation.id))
        while self._fill(target):  # documents went on arriving
            pass
        self._generations.ready(generation.id)
        index = line.open_index(generation.id)
        self._serving.incoming = index  # deletions reach both from here on
        old = self._serving.current()
        self._swapping = True
        try:
            old.worker.stop()
            while old.worker.alive():  # it may be in the middle of a document, whose vectors are the old embedder's
                self._check()
                self._closing.wait(_WORKER_SECONDS)
            self._check()
            self._fill(target)
            index.reconcile()
            models = line.assemble(index)
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
            self._stack, self._target, self._building, self._rejected = line, None, None, None
        old.index.close()  # saved for the way back; a request that began before can still search it

    def _fill(self, target: Target) -> int:
        return self._reembedder.fill(target, before=self._check, after=self._advance)

    def _advance(self, count: int) -> None:
        found = self._building
        assert found is not None, "only what is being built is filled"
        self._building = Building(found.generation, found.done + count, max(found.total, found.done + count))

    def _resume(self, old: Models) -> None:
        """Ingest with the old embedder again, by a new worker: one that was stopped starts no more."""
        models = self._stack.assemble(old.index)
        self._serving.install(models)
        models.worker.start()

    def _clear(self) -> None:
        """Delete the vectors and the index of what was let go, in small transactions."""
        for generation in self._generations.unpurged():
            last: int | None = -1
            while last is not None:
                self._check()
                last = self._vectors.purge(generation.id, after=last, limit=_PURGED_AT_ONCE)
            shutil.rmtree(self._folder_of(generation.id), ignore_errors=True)
            self._generations.purged(generation.id)
            logger().info("generation.purged", generation=generation.id)


class _Closing(Exception):
    """The process is shutting down; the next start goes on."""
