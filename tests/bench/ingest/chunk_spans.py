"""Measures whether gold spans survive chunking: the share that lies inside one chunk, and inside two adjacent ones.

Usage: `python -m tests.bench.ingest.chunk_spans FOLDER --tokenizer FILE [--max-tokens N] [--overlap N]`, FOLDER
holding `corpus.jsonl` and `spans.jsonl` with character offsets, FILE being the embedder's `tokenizer.json`.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer

from ingestion.chunking import Chunker
from ingestion.extraction import LocalExtractor
from ingestion.normalise import normalise
from ingestion.types import ChunkDraft, Extraction


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many gold spans there are, and how many lie inside one chunk, or inside two that follow one another."""

    spans: int
    in_one: int
    in_two: int
    chunks: int


def coverage(folder: Path, chunker: Chunker) -> Coverage:
    """The figures of a data set under a chunker.

    Raises:
        ValueError: A gold span is not in its document.
    """
    chunked: dict[str, tuple[Extraction, list[ChunkDraft]]] = {}
    for row in _rows(folder / "corpus.jsonl"):
        extraction = _extraction(row["text"])
        chunked[row["_id"]] = (extraction, chunker.chunk(extraction))
    spans = in_one = in_two = 0
    for row in _rows(folder / "spans.jsonl"):
        extraction, passages = chunked[row["corpus_id"]]
        start, end = _located(extraction.text, row)
        spans += 1
        one = any(p.start_char <= start and end <= p.end_char for p in passages)
        in_one += one
        in_two += one or any(a.start_char <= start and end <= b.end_char for a, b in pairwise(passages))
    return Coverage(spans, in_one, in_two, sum(len(passages) for _, passages in chunked.values()))


def _extraction(text: str) -> Extraction:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "document"
        path.write_text(text)
        return LocalExtractor().extract(path, filename="document.txt")


def _located(text: str, row: dict[str, str]) -> tuple[int, int]:
    """The span's offsets in the canonical text, which lacks the invisible characters of the original."""
    gold, start = normalise(row["text"]).strip(), int(row["start"])
    at = text.find(gold, max(0, start - 1000))
    if at < 0:
        raise ValueError(f"the span of {row['query_id']} is not in {row['corpus_id']}")
    return at, at + len(gold)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return [json.loads(line) for line in lines]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--overlap", type=int, default=32)
    given = parser.parse_args(arguments)
    tokenizer = Tokenizer.from_file(str(given.tokenizer))
    found = coverage(given.folder, Chunker(tokenizer, max_tokens=given.max_tokens, overlap=given.overlap))
    print(f"{found.spans} gold spans, {found.chunks} chunks of at most {given.max_tokens} tokens")
    print(f"inside one chunk {found.in_one / found.spans:.4f}, inside two adjacent {found.in_two / found.spans:.4f}")


if __name__ == "__main__":
    main()
