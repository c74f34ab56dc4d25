"""The vector index in use: loaded or rebuilt at start, kept in step with SQL, retrained as it grows, saved."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from app.db.chunks import ChunkRepository
from app.telemetry.logs import logger
from retrieval.device_copy import Transfer, gpu_transfer
from retrieval.device_index import DeviceIndex
from retrieval.errors import IndexCorrupt
from retrieval.flat_index import FlatIndex
from retrieval.index_file import FaissIndex, IndexPlan, load, quarantine, save
from retrieval.inverted_index import SAMPLE_PER_LIST, InvertedIndex
from retrieval.ports import Keys, VectorIndex, Vectors
from retrieval.types import EmbedderInfo

IndexDevice = Literal["cpu", "cuda"]

_FEW_CHANGES = 64  # writes made during a training that are repeated while other writers wait
_CLOSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Change:
    """A write to repeat on the index being built: `vectors` of new keys, `None` where they went."""

    keys: Keys
    vectors: Vectors | None


class LiveVectorIndex:
    """A FAISS index that mirrors the visible chunks. SQL is the truth: whatever differs is mended at start.

    When the plan asks for another kind of index, a thread builds it from SQL beside the one in use,
    repeats the writes made meanwhile, and puts it in place; searches and writes go on all the time.
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
        """Open the index saved in `folder` and mend it, or build it from SQL.

        With a `transfer` a copy on its device answers searches; what is saved is the index in memory.
        """
        self._folder = folder
        self._embedder = embedder
        self._generation = generation
        self._chunks = chunks
        self._plan = plan or IndexPlan()
        self._transfer = transfer
        self._changes = threading.Lock()  # guards what follows and orders the writes
        self._saving = threading.Lock()
        self._dirty = False
        self._closing = False
        self._failed = False  # a training failed: not again before the next start
        self._missed: list[_Change] | None = None  # writes since the training began; None when none runs
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
        """Inverted lists of the index in use, 0 when it is flat."""
        return self._index.lists

    def current(self) -> VectorIndex:
        """The index to search; ask again for every search, another may have taken its place."""
        return self._served

    def reconcile(self) -> None:
        """Take in what SQL has and drop what it has not; writes wait meanwhile."""
        with self._changes:
            changes = self._differences(self._served)
            for change in changes:
                self._take(change)

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add the vectors of chunks that were just committed, rounded as SQL keeps them.

        So an index that grew and one that was built from SQL give the same scores.
        """
        self._change(_Change(keys.copy(), vectors.astype(np.float16).astype(np.float32)))

    def forget(self, keys: Keys) -> None:
        """Drop the vectors of chunks that are gone."""
        if len(keys):
            self._change(_Change(keys.copy(), None))
            self._chunks.forget(keys)

    def save_if_changed(self) -> bool:
        """Write the index to disk when it differs from the saved one. Searches go on; writes wait for the copy only."""
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
        """Wait for the training in progress, if any, and for those it leads to."""
        while (training := self._training) is not None and training.is_alive():
            training.join()

    def close(self) -> None:
        """Give up a training in progress and save what changed."""
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
        """What makes `index` hold the visible chunks and no others."""
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
        """A new index of the `wanted` chunks, by so many threads (None: all there are).

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
        """What answers searches over `index` and is written to in its stead."""
        if self._transfer is None:
            return index
        return DeviceIndex(index, transfer=self._transfer, report=_report)

    def _exact(self, keys: Keys) -> tuple[Keys, Vectors]:
        return self._chunks.vectors(keys.tolist(), generation=self._generation)

    def _train_if_outgrown(self) -> None:
        """Start a training when the plan asks for another kind of index; the caller holds `_changes`."""
        now = self._index.lists
        lists = self._plan.lists(len(self._index), now=now)
        if lists == now or self._missed is not None or self._failed or self._closing:
            return
        self._missed = []
        self._training = threading.Thread(target=self._train, args=(lists,), name="footnote-index", daemon=True)
        self._training.start()

    def _train(self, lists: int) -> None:
        try:
            # SQL is read after `_missed` exists: a write is in what is read, in what was missed, or in both
            index = self._build(self._chunks.visible_keys(), lists=lists, threads=1)  # the other cores serve
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
        except Exception as error:  # noqa: BLE001 - the index in use goes on serving; the next start tries again
            logger().error("index.training", error=type(error).__name__, exc_info=error)
            with self._changes:
                self._failed = True
                self._missed = None

    def _take_missed(self) -> list[_Change]:
        with self._changes:
            missed, self._missed = self._missed or [], []
            return missed


def index_folder(data_dir: Path, generation: int) -> Path:
    """Where the index of a generation is saved; that of the first has the name from when there was only one."""
    return data_dir / ("index" if generation == 1 else f"index-{generation}")


def transfer_to(device: IndexDevice) -> Transfer | None:
    """How an index gets onto `device`; None where it stays in memory.

    Raises:
        IndexDeviceUnavailable: There is no such device, or this FAISS cannot use it.
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
    """The process is shutting down; the index in use is as good as it was."""
