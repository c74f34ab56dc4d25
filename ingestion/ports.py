"""The port of ingestion: the extractor of files."""

from pathlib import Path
from typing import Protocol

from ingestion.types import Extraction


class Extractor(Protocol):
    """Reads a stored file. Implementations: in a killable child process (the product), in this process (its oracle)."""

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """Canonical text and structure of the file at `path`.

        `filename` is the name it was uploaded under; it only helps where bytes cannot decide
        (CSV, Markdown, source code), and must not contradict them. `password` opens an encrypted PDF
        or Office document, is ignored by any other, and is kept nowhere.

        Raises:
            IngestionError: The reason, as the subclass and its message.
        """
        ...
