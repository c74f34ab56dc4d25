"""Several extractors as one: a slow file holds up its own, and the others go on."""

from collections.abc import Sequence
from pathlib import Path
from queue import LifoQueue
from typing import Protocol

from ingestion.ports import Extractor
from ingestion.types import Extraction


class ClosableExtractor(Extractor, Protocol):
    """An extractor that holds something, such as a process."""

    def close(self) -> None:
        """Let go of it."""
        ...


class ExtractorPool:
    """An `Extractor` over some that take one file at a time; as many files are read at once."""

    def __init__(self, extractors: Sequence[ClosableExtractor]) -> None:
        assert extractors, "somebody has to read"
        self._all = tuple(extractors)
        # the one that was used last is used first: with little to do, one process runs and the others end
        self._free: LifoQueue[ClosableExtractor] = LifoQueue()
        for extractor in self._all:
            self._free.put(extractor)

    def __len__(self) -> int:
        """How many files are read at once."""
        return len(self._all)

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """As `ports.Extractor` says; waits for a free one.

        Raises:
            IngestionError: The reason, as the subclass and its message.
        """
        extractor = self._free.get()
        try:
            return extractor.extract(path, filename=filename, password=password)
        finally:
            self._free.put(extractor)

    def close(self) -> None:
        """Close all of them."""
        for extractor in self._all:
            extractor.close()
