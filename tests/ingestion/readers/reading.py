"""Shortcuts to read a test's bytes and to show what came of them."""

from pathlib import Path

from ingestion.extraction import LocalExtractor
from ingestion.types import BlockKind, Extraction, ExtractionLimits


def read(folder: Path, filename: str, data: bytes | str, *, limits: ExtractionLimits | None = None) -> Extraction:
    """The extraction of a file with these bytes, uploaded under this name."""
    path = folder / "upload"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return LocalExtractor(limits).extract(path, filename=filename)


def blocks(extraction: Extraction) -> list[tuple[BlockKind, str]]:
    """Every block's kind and text."""
    return [(block.kind, extraction.text[block.start_char : block.end_char]) for block in extraction.blocks]


def paths(extraction: Extraction) -> list[tuple[str, ...]]:
    """Every block's heading path."""
    return [block.heading_path for block in extraction.blocks]
