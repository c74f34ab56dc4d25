"""Chooses the sentences that are repeated after the question, and the sentences nearest to it.

A decoder reads the sources before the question. Repeated after the question, the
sentences that share most with it are read with attention to the question ("Just read twice", Arora et
al. 2024, arXiv:2407.05483), and the text before the question is the same for every question,
so its keys and values are reused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrieval.footnote_numbers import marker
from retrieval.relevance import overlap, term_weights
from retrieval.sentences import unit_spans
from retrieval.types import Chunk, Source, Span
from retrieval.words import terms


@dataclass(frozen=True, slots=True)
class Highlight:
    """The text of source `number` at `span` of its document version, and the line that repeats it."""

    number: int
    document_id: str
    span: Span
    line: str


def highlights(
    sources: Sequence[Source],
    *,
    query: str,
    budget: int,
    count_tokens: Callable[[str], int],
    first: Sequence[tuple[int, Span]] = (),
    most: int = 2,
) -> tuple[Highlight, ...]:
    """The sentences with the pointed spans, then those that share most with `query`; the best one last.

    The last one is thus next to the answer. A word of the query weighs by its rarity among the sentences
    (`relevance.term_weights`); of equals the first one read wins. A sentence that shares nothing is no
    highlight unless it is pointed at, nor is one that exceeds the rest of `budget`. Where the
    sources have no more than `most` sentences there are no highlights.

    Args:
        sources: As they are presented.
        query: The question.
        budget: Most tokens of all lines together.
        count_tokens: The generator's own counter.
        first: Source numbers and characters that may be the answer, likeliest first.
        most: Highest number of sentences.
    """
    found = [(source, span, source.hit.chunk.text_at(span)) for source in sources for span in _sentences(source)]
    if len(found) <= most:
        return ()
    spoken = [terms(text) for _, _, text in found]
    weights = term_weights(query, spoken)
    shares = [overlap(weights, of_sentence) for of_sentence in spoken]
    pointed = [
        place
        for number, answer in first
        for place, (source, span, _) in enumerate(found)
        if source.number == number and span.start_char <= answer.start_char < span.end_char
    ]
    by_words = sorted((place for place in range(len(found)) if shares[place]), key=lambda place: -shares[place])
    chosen: list[Highlight] = []
    for place in dict.fromkeys(pointed + by_words):
        if len(chosen) == most:
            break
        source, span, text = found[place]
        line = f"{marker(source.number)} {' '.join(text.split())}\n"
        tokens = count_tokens(line)
        if tokens <= budget:
            budget -= tokens
            chosen.append(Highlight(source.number, source.hit.chunk.document_id, span, line))
    return tuple(reversed(chosen))


def pointer_to(number: int, document_id: str, span: Span, text: str) -> Highlight:
    """Words of source `number` that may be the answer, to be read behind others in one line."""
    return Highlight(number, document_id, span, f" {' '.join(text.split())} {marker(number)}")


def _sentences(source: Source) -> list[Span]:
    return [
        Span(kept.start_char + start, kept.start_char + end)
        for kept in source.spans
        for start, end in unit_spans(source.hit.chunk.text_at(kept))
    ]


_AS_NEAR = 0.75  # share of the best sentence's weight that another needs to be marked too


def nearest_sentences(chunks: Sequence[Chunk], *, query: str, most: int = 2) -> tuple[tuple[Span, ...], ...]:
    """For each chunk the sentences that share most with `query`, in the order of reading.

    Every word of the query weighs by its rarity among the sentences of all chunks (`relevance.term_weights`); of
    equals the first one is taken. A chunk's heading is taken only where no other text shares a word, and where
    not even a heading does, a chunk found by its vector has none.

    Args:
        chunks: The passages.
        query: The search query.
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
    """Whether a sentence only repeats a heading of the chunk."""
    text = chunk.text[start:end].strip("# ").casefold()
    return any(text == heading.casefold() for heading in chunk.heading_path)
