"""Which sentences of passages are nearest to what was searched for, for people who read them."""

from collections.abc import Sequence

from retrieval.relevance import overlap, term_weights
from retrieval.sentences import unit_spans
from retrieval.types import Chunk, Span
from retrieval.words import terms

_AS_NEAR = 0.75  # of the nearest sentence's weight: what another must share to be marked too


def nearest_sentences(chunks: Sequence[Chunk], *, query: str, most: int = 2) -> tuple[tuple[Span, ...], ...]:
    """For each chunk the sentences that share most with `query`, in the order of reading.

    Every word of the query weighs by its rarity among the sentences of all chunks (`relevance.term_weights`); of
    equals the first one read is taken. A chunk's heading is taken only where nothing else shares a word, and where
    nothing does at all, a chunk found by its meaning has none.

    Args:
        chunks: The passages.
        query: What was searched for.
        most: Highest number of sentences of one chunk, at least 1.
    """
    units = [[(start, end, terms(chunk.text[start:end])) for start, end in unit_spans(chunk.text)] for chunk in chunks]
    weights = term_weights(query, [spoken for of_chunk in units for _, _, spoken in of_chunk])
    found = []
    for chunk, of_chunk in zip(chunks, units, strict=True):
        shares = {(start, end): overlap(weights, spoken) for start, end, spoken in of_chunk}
        about = {place: share for place, share in shares.items() if share > 0}
        about = {place: share for place, share in about.items() if not _is_heading(chunk, *place)} or about
        least = _AS_NEAR * max(about.values(), default=0.0)
        chosen = sorted((place for place in about if about[place] >= least), key=lambda place: -about[place])[:most]
        found.append(tuple(Span(chunk.start_char + start, chunk.start_char + end) for start, end in sorted(chosen)))
    return tuple(found)


def _is_heading(chunk: Chunk, start: int, end: int) -> bool:
    """Whether a sentence only repeats a heading that the chunk stands under."""
    text = chunk.text[start:end].strip("# ").casefold()
    return any(text == heading.casefold() for heading in chunk.heading_path)
