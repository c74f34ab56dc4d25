"""Vectors in FAISS, in this process: loaded or built at start, updated with SQL, retrained as they grow, saved."""

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.documents.index_ports import Differences, IndexRows, seen_twice
from app.telemetry.logs import logger
from retrieval.device_copy import Transfer, gpu_transfer
from retrieval.device_index import DeviceIndex
from retrieval.errors import IndexCorrupt
from retrieval.flat_index import FlatIndex
from retrieval.index_file import FaissIndex, IndexPlan, load, quarantine, save
from retrieval.inverted_index import SAMPLE_PER_LIST, InvertedIndex
from retrieval.ports import Keys, VectorIndex, Vectors
from retrieval.types import EmbedderInfo, Scope

IndexDevice = Literal["cpu", "cuda"]

_FEW_CHANGES = 64  # writes during a training; so few are repeated while other writers wait
_CLOSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Change:
    """A write to an index: vectors to add, or `None` to remove the keys."""

    keys: Keys
    vectors: Vectors | None


class FaissVectors:
    """Implements `VectorStore`: a FAISS index of all visible chunks. Differences from SQL are repaired at start.

    It follows commits after they were made (`publish`, `forget`); nothing of it is in the database. A search asks SQL
    for the keys in scope and searches among them alone.

    When the plan requires another kind of index, a thread builds it from SQL, repeats the writes since, and swaps
    it in. Searches and writes continue all the time.

    Example:
        >>> index = FaissVectors(folder, embedder=embedder.info, generation=1, chunks=chunks)
        >>> index.publish(rows)
        >>> hits = index.search_vector(query, scope=Scope(tenant_id="acme"), k=10)
    """

    def __init__(
        self,
        folder: Path,
        *,
        embedder: EmbedderInfo,
        generation: int,
        chunks: ChunkRepository,
        plan: IndexPlan | None = None,
        transfer: Transfer | None = None,
    ) -> None:
        """Load the index saved in `folder` and repair it, or build it from SQL.

        With a `transfer` a copy on its device answers searches; the index in memory is the one that is saved.
        """
        self._folder = folder
        self._embedder = embedder
        self._generation = generation
        self._chunks = chunks
        self._plan = plan or IndexPlan()
        self._transfer = transfer
        self._changes = threading.Lock()  # guards the fields below and orders the writes
        self._saving = threading.Lock()
        self._dirty = False
        self._closing = False
        self._failed = False  # a training failed; the next one is tried after a restart
        self._missed: list[_Change] | None = None  # writes since the training began; None when no training runs
        self._training: threading.Thread | None = None
        self._index: FaissIndex = self._open()
        self._served = self._place(self._index)
        with self._changes:
            self._train_if_outgrown()

    def __len__(self) -> int:
        return len(self._index)

    @property
    def generation(self) -> int:
        """The embedder generation of the vectors."""
        return self._generation

    @property
    def lists(self) -> int:
        """The number of inverted lists of the index in use; 0 when it is flat."""
        return self._index.lists

    @property
    def closing(self) -> bool:
        """Whether `close` was called."""
        return self._closing

    def current(self) -> VectorIndex:
        """The index to search. Call it for every search: the index may be swapped."""
        return self._served

    def search_vector(self, vector: Vectors, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, cosine) best first, ties by key ascending; only keys in scope are searched."""
        allowed = self._chunks.keys_in(scope)
        return self._served.search(vector, k=k, allowed=allowed) if len(allowed) else []

    def stage(self, rows: Sequence[IndexRows]) -> None:
        """Nothing: a write to memory cannot fail halfway, and the keys are given by the commit."""

    def write_in(self, connection: sa.Connection, rows: IndexRows) -> None:
        """Nothing: memory does not take part in a transaction."""

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        """Nothing, as above."""

    def publish(self, rows: Sequence[IndexRows]) -> None:
        """Add the vectors of versions that were just committed."""
        if rows:
            self.add(np.concatenate([each.keys for each in rows]), np.concatenate([each.vectors for each in rows]))

    def repair(self, *, only_tell: bool = False, pause: Callable[[float], None] = time.sleep) -> Differences:
        """Compare with SQL twice, and add and remove what both comparisons found, unless `only_tell`."""
        missing, surplus = seen_twice(self._look, pause)
        if not only_tell:
            self._mend(missing, surplus)
        return Differences(len(missing), len(surplus))

    def rest(self) -> None:
        """Save the index if it changed."""
        self.save_if_changed()

    def reconcile(self) -> None:
        """Add the chunks that SQL has and the index lacks, remove the others; writes wait meanwhile."""
        with self._changes:
            changes = self._differences(self._served)
            for change in changes:
                self._take(change)

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add the vectors of chunks that were just committed, rounded to float16 as in SQL.

        So an index that was updated and one that was built from SQL give the same scores.
        """
        self._change(_Change(keys.copy(), vectors.astype(np.float16).astype(np.float32)))

    def forget(self, keys: Keys) -> None:
        """Remove the vectors of deleted chunks."""
        if len(keys):
            self._change(_Change(keys.copy(), None))
            self._chunks.forget(keys)

    def save_if_changed(self) -> bool:
        """Save the index if it changed; returns whether it did. Searches continue; writes wait only for the copy."""
        with self._saving:
            with self._changes:
                if not self._dirty:
                    return False
                self._dirty = False
                index = self._index
            try:
                save(index, self._folder, embedder=self._embedder, generation=self._generation)
            except BaseException:
                with self._changes:
                    self._dirty = True
                raise
            return True

    def settle(self) -> None:
        """Wait for the training in progress, if any, and for those that follow it."""
        while (training := self._training) is not None and training.is_alive():
            training.join()

    def close(self) -> None:
        """Abort a training in progress and save the index if it changed."""
        self._closing = True
        training = self._training
        if training is not None:
            training.join(timeout=_CLOSE_SECONDS)
        self.save_if_changed()
        with self._changes:
            _release(self._served)

    def _change(self, change: _Change) -> None:
        with self._changes:
            self._take(change)

    def _take(self, change: _Change) -> None:
        """Make a change; the caller holds `_changes`."""
        _apply(change, self._served)
        self._dirty = True
        if self._missed is not None:
            self._missed.append(change)
        self._train_if_outgrown()

    def _open(self) -> FaissIndex:
        index = self._load()
        if index is None:
            wanted = self._chunks.visible_keys()
            index = self._build(wanted, lists=self._plan.lists(len(wanted)), threads=None)
            self._dirty = len(wanted) > 0
            return index
        changes = self._differences(index)
        for change in changes:
            _apply(change, index)
        self._dirty = bool(changes)
        return index

    def _differences(self, index: FaissIndex | DeviceIndex) -> list[_Change]:
        """The writes after which `index` holds exactly the visible chunks."""
        wanted = self._chunks.visible_keys()
        held = index.keys()
        surplus = np.setdiff1d(held, wanted, assume_unique=True)
        missing = np.setdiff1d(wanted, held, assume_unique=True)
        changes = [_Change(surplus, None)] if len(surplus) else []
        for keys, vectors in self._chunks.iter_vectors(generation=self._generation, keys=missing):
            changes.append(_Change(keys, vectors))
        if changes:
            logger().info("index.reconciled", added=len(missing), removed=len(surplus))
        return changes

    def _look(self) -> tuple[Keys, Keys]:
        held, wanted = self._served.keys(), self._chunks.visible_keys()
        absent = np.setdiff1d(wanted, held, assume_unique=True)
        found = [keys for keys, _ in self._chunks.iter_vectors(generation=self._generation, keys=absent)]
        missing = np.concatenate(found) if found else absent[:0]  # a chunk without a stored vector is another finding
        return missing, np.setdiff1d(held, wanted, assume_unique=True)

    def _mend(self, missing: Keys, surplus: Keys) -> None:
        self.forget(surplus)
        for keys, vectors in self._chunks.iter_vectors(generation=self._generation, keys=missing):
            self.add(keys, vectors)
        if len(missing):  # some may have been deleted while they were added
            self.forget(np.setdiff1d(missing, self._chunks.visible_keys(), assume_unique=True))

    def _load(self) -> FaissIndex | None:
        if not self._folder.exists():
            return None
        try:
            return load(self._folder, embedder=self._embedder, generation=self._generation, exact=self._exact)
        except IndexCorrupt as error:
            quarantine(self._folder)
            logger().warning("index.quarantined", reason=str(error))
            return None

    def _build(self, wanted: Keys, *, lists: int, threads: int | None) -> FaissIndex:
        """Build an index of the `wanted` chunks with `threads` threads (None: one per core).

        Raises:
            _Closing: `close` was called meanwhile.
        """
        index: FaissIndex
        if lists:
            count = min(len(wanted), SAMPLE_PER_LIST * lists)
            sampled = np.sort(np.random.default_rng(0).choice(wanted, count, replace=False))
            batches = list(self._chunks.iter_vectors(generation=self._generation, keys=sampled))
            sample = np.concatenate([vectors for _, vectors in batches])
            index = InvertedIndex.train(sample, lists=lists, exact=self._exact, threads=threads)
        else:
            index = FlatIndex(self._embedder.dim)
        for keys, vectors in self._chunks.iter_vectors(generation=self._generation, keys=wanted):
            if self._closing:
                raise _Closing
            if isinstance(index, InvertedIndex):
                index.add(keys, vectors, threads=threads)
            else:
                index.add(keys, vectors)
        logger().info("index.built", vectors=len(index), lists=lists)
        return index

    def _place(self, index: FaissIndex) -> FaissIndex | DeviceIndex:
        """The index that answers searches and takes writes: `index` itself, or its copy on the device."""
        if self._transfer is None:
            return index
        return DeviceIndex(index, transfer=self._transfer, report=_report)

    def _exact(self, keys: Keys) -> tuple[Keys, Vectors]:
        return self._chunks.vectors(keys.tolist(), generation=self._generation)

    def _train_if_outgrown(self) -> None:
        """Start a training when the plan requires another kind of index; the caller holds `_changes`."""
        now = self._index.lists
        lists = self._plan.lists(len(self._index), now=now)
        if lists == now or self._missed is not None or self._failed or self._closing:
            return
        self._missed = []
        self._training = threading.Thread(target=self._train, args=(lists,), name="footnote-index", daemon=True)
        self._training.start()

    def _train(self, lists: int) -> None:
        try:
            # SQL is read after `_missed` is set, so each write is in the rows read, in `_missed`, or in both
            index = self._build(self._chunks.visible_keys(), lists=lists, threads=1)  # the other cores answer searches
            while len(missed := self._take_missed()) > _FEW_CHANGES:
                for change in missed:
                    _apply(change, index)
            served = self._place(index)
            with self._changes:
                for change in (*missed, *(self._missed or ())):
                    _apply(change, served)
                self._index, old = index, self._served
                self._served = served
                _release(old)
                self._dirty = True
                self._missed = None
                self._train_if_outgrown()
        except _Closing:
            return
        except Exception as error:  # noqa: BLE001 - the index in use keeps answering; the next start tries again
            logger().error("index.training", error=type(error).__name__, exc_info=error)
            with self._changes:
                self._failed = True
                self._missed = None

    def _take_missed(self) -> list[_Change]:
        with self._changes:
            missed, self._missed = self._missed or [], []
            return missed


class FaissStores:
    """Implements `VectorStores`: one folder of the data dir for each generation.

    Example:
        >>> stores = FaissStores(data_dir, chunks=chunks, device="cpu")
        >>> store = stores.open(1, embedder.info)
    """

    def __init__(self, data_dir: Path, *, chunks: ChunkRepository, device: IndexDevice = "cpu") -> None:
        self._data_dir = data_dir
        self._chunks = chunks
        self._device: IndexDevice = device

    def open(self, generation: int, embedder: EmbedderInfo) -> FaissVectors:
        """The index of a generation, built from SQL where it is not saved.

        Raises:
            IndexDeviceUnavailable: The device does not exist, or this FAISS build cannot use it.
        """
        return FaissVectors(
            index_folder(self._data_dir, generation),
            embedder=embedder,
            generation=generation,
            chunks=self._chunks,
            transfer=transfer_to(self._device),
        )

    def drop(self, generation: int) -> None:
        """Delete a generation's folder, if there is one."""
        shutil.rmtree(index_folder(self._data_dir, generation), ignore_errors=True)


def index_folder(data_dir: Path, generation: int) -> Path:
    """The folder of a generation's index; `index` for the first generation, `index-N` for the others."""
    return data_dir / ("index" if generation == 1 else f"index-{generation}")


def transfer_to(device: IndexDevice) -> Transfer | None:
    """The transfer of an index to `device`; None for the CPU.

    Raises:
        IndexDeviceUnavailable: The device does not exist, or this FAISS build cannot use it.
    """
    return gpu_transfer() if device == "cuda" else None


def _report(error: Exception) -> None:
    logger().error("index.device", error=type(error).__name__, exc_info=error)


def _release(index: FaissIndex | DeviceIndex) -> None:
    if isinstance(index, DeviceIndex):
        index.close()


def _apply(change: _Change, index: FaissIndex | DeviceIndex) -> None:
    if change.vectors is None:
        index.remove(change.keys)
    else:
        index.add(change.keys, change.vectors)


class _Closing(Exception):
    """The process is shutting down; the training is aborted."""
