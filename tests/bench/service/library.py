"""A collection of many chunks, written as ingestion writes it: of real paragraphs where there are any."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from app.server.state import State
from ingestion.types import Block, BlockKind, ChunkDraft, Extraction, MediaType, PageRange
from retrieval.ports import Embedder
from tests.app.db.samples import Library, generation_of
from tests.bench.retrieval.chunks import CHUNKS_A_DOCUMENT, Texts

Paragraph = tuple[str, str]
"""A title and a text."""


def fill(state: State, embedder: Embedder, paragraphs: Iterator[Paragraph], *, tenant_id: str) -> int:
    """Index the paragraphs, one a chunk and ten a document; how many chunks that made."""
    library, chunks = Library(state.database, tenant_id=tenant_id), 0
    generation = generation_of(state.database, embedder.info)
    number = 0
    while some := tuple(islice(paragraphs, CHUNKS_A_DOCUMENT)):
        number += 1
        library.upload(f"{number}", filename=f"{number}.txt")
        extraction, passages = _extraction(some)
        library.jobs.commit(
            library.claim(),
            extraction=extraction,
            passages=passages,
            vectors=embedder.embed_documents([passage.embedding_text for passage in passages]),
            generation=generation,
            embedding_tokens=sum(passage.token_count for passage in passages),
        )
        chunks += len(passages)
    return chunks


def paragraphs_of(folder: Path | None, count: int) -> Iterator[Paragraph]:
    """`count` paragraphs of the `*/corpus.jsonl` in a folder (lines with `title`, `text`); else generated."""
    return islice(_read(folder) if folder is not None else _generated(count), count)


def questions_of(folder: Path | None, count: int) -> list[str]:
    """Questions about them: of `*/queries.jsonl` (lines with `text`), or generated ones."""
    if folder is None:
        return Texts().questions(count)
    found = (json.loads(line)["text"] for path in sorted(folder.glob("*/queries.jsonl")) for line in path.open())
    every = list(found)
    return every[:: max(1, len(every) // count)][:count]


def _read(folder: Path) -> Iterator[Paragraph]:
    for path in sorted(folder.glob("*/corpus.jsonl")):
        for line in path.open(encoding="utf-8"):
            row = json.loads(line)
            if text := row["text"].strip()[:2000]:
                yield row.get("title", "") or path.parent.name, text


def _generated(count: int) -> Iterator[Paragraph]:
    for entry in Texts().entries(count):
        yield entry.heading, f"{entry.text.capitalize()}."


def _extraction(paragraphs: tuple[Paragraph, ...]) -> tuple[Extraction, list[ChunkDraft]]:
    passages: list[ChunkDraft] = []
    blocks: list[Block] = []
    start = 0
    for ordinal, (title, text) in enumerate(paragraphs):
        end = start + len(text)
        blocks.append(Block(BlockKind.PARAGRAPH, start, end, 1, (title,)))
        passages.append(
            ChunkDraft(
                ordinal=ordinal,
                start_char=start,
                end_char=end,
                page_start=1,
                page_end=1,
                heading_path=(title,),
                text=text,
                embedding_text=f"{title}\n{text}",
                token_count=len(text.split()) + 1,
            )
        )
        start = end + 2
    whole = "\n\n".join(text for _, text in paragraphs)
    return Extraction(MediaType.TEXT, None, whole, (PageRange(1, 0, len(whole)),), tuple(blocks)), passages
