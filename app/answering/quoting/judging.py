"""What the judge of candidates reads of each: its text, the sentence before it, and what stands above its passage."""

from collections.abc import Sequence

from app.answering.quoting.candidates import Candidate, above
from retrieval.judge_layout import JudgedText
from retrieval.units import units_of


def judged_texts(candidates: Sequence[Candidate]) -> list[JudgedText]:
    """The candidates as the judge reads them, in their order."""
    return [
        JudgedText(" — ".join(above(one.source.chunk_at(one.core))), _sentence_before(one), one.text)
        for one in candidates
    ]


def _sentence_before(candidate: Candidate) -> str:
    """The last sentence of the source that ends before a candidate; empty where it is the first."""
    chunk = candidate.source.hit.chunk
    start = candidate.span.start_char - chunk.start_char
    cores = [unit.core for unit in units_of(chunk.text) if unit.core.end_char <= start]
    return chunk.text[cores[-1].start_char : cores[-1].end_char] if cores else ""
