"""The vector index in use: loaded or rebuilt at start, kept in step with SQL, saved when quiet."""

import threading
from pathlib import Path

import numpy as np

from app.db.chunks import ChunkRepository
from app.telemetry import logger
from retrieval.errors import IndexCorrupt
from retrieval.faiss_index import FaissIndex
from retrieval.index_file import load, quarantine, save
from retrieval.ports import Keys, VectorIndex, Vectors
from retrieval.types import EmbedderInfo


class LiveIndex:
    """A FAISS index that mirrors the visible chunks. SQL is the truth: whatever differs is mended at start."""

    def __init__(self, folder: Path, *, embedder: EmbedderInfo, generation: int, chunks: ChunkRepository) -> None:
        self._folder = folder
        self._embedder = embedder
        self._generation = generation
        self._chunks = chunks
        self._changes = threading.Lock()
        self._dirty = False
        self._index: FaissIndex = self._open()

    def __len__(self) -> int:
        return len(self._index)

    @property
    def generation(self) -> int:
        """The embedder generation of the vectors."""
        return self._generation

    def current(self) -> VectorIndex:
        """The index to search."""
        return self._index

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add the vectors of chunks that were just committed."""
        with self._changes:
            self._index.add(keys, vectors)
            self._dirty = True

    def forget(self, keys: Keys) -> None:
        """Drop the vectors of chunks that are gone."""
        if len(keys):
            with self._changes:
                self._index.remove(keys)
                self._dirty = True

    def save_if_changed(self) -> bool:
        """Write the index to disk when it differs from the saved one."""
        with self._changes:
            if not self._dirty:
                return False
            save(self._index, self._folder, embedder=self._embedder, generation=self._generation)
            self._dirty = False
            return True

    def _open(self) -> FaissIndex:
        index = self._load()
        if index is None:
            index = FaissIndex(self._embedder.dim)
        wanted = self._chunks.visible_keys()
        held = index.keys()
        surplus = np.setdiff1d(held, wanted, assume_unique=True)
        missing = np.setdiff1d(wanted, held, assume_unique=True)
        if len(surplus):
            index.remove(surplus)
        for start in range(0, len(missing), 10_000):
            keys = missing[start : start + 10_000]
            found, vectors = self._chunks.vectors(keys.tolist(), generation=self._generation)
            index.add(found, vectors)
        if len(surplus) or len(missing):
            logger().info("index.reconciled", added=len(missing), removed=len(surplus))
            self._dirty = True
        return index

    def _load(self) -> FaissIndex | None:
        if not self._folder.exists():
            return None
        try:
            return load(self._folder, embedder=self._embedder, generation=self._generation)
        except IndexCorrupt as error:
            quarantine(self._folder)
            logger().warning("index.quarantined", reason=str(error))
            return None
