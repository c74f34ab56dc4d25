"""Which sentences of the sources are read once more behind the question.

A decoder reads the sources before it knows what is asked. Repeated behind the question, the
sentences that share most with it are read with the question in mind ("Just read twice", Arora et
al. 2024, arXiv:2407.05483), and what stands before the question stays the same for every question,
so its keys and values are reused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrieval.relevance import overlap, term_weights
from retrieval.sentences import unit_spans
from retrieval.types import Source, Span
from retrieval.words import terms


@dataclass(frozen=True, slots=True)
class Highlight:
    """Source `number`'s sentence at `span` of its document version, and the line that repeats it."""

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
    most: int = 2,
) -> tuple[Highlight, ...]:
    """The sentences that share most with `query`, the one that shares most last, next to the answer.

    Every word of the query weighs by its rarity among the sentences (`relevance.term_weights`); of
    equals the first one read wins. A sentence that shares nothing is no highlight, nor is one that
    does not fit what is left of `budget`. Where the sources have no more than `most` sentences
    there is nothing to point out.

    Args:
        sources: As they are presented.
        query: The question.
        budget: Most tokens of all lines together.
        count_tokens: The generator's own counter.
        most: Highest number of sentences.
    """
    found = [(source, span, _text(source, span)) for source in sources for span in _sentences(source)]
    if len(found) <= most:
        return ()
    spoken = [terms(text) for _, _, text in found]
    weights = term_weights(query, spoken)
    shares = [overlap(weights, of_sentence) for of_sentence in spoken]
    chosen: list[Highlight] = []
    for place in sorted(range(len(found)), key=lambda place: (-shares[place], place)):
        if len(chosen) == most or not shares[place]:
            break
        source, span, text = found[place]
        line = f"[{source.number}] {' '.join(text.split())}\n"
        tokens = count_tokens(line)
        if tokens <= budget:
            budget -= tokens
            chosen.append(Highlight(source.number, source.hit.chunk.document_id, span, line))
    return tuple(reversed(chosen))


def _sentences(source: Source) -> list[Span]:
    return [
        Span(kept.start_char + start, kept.start_char + end)
        for kept in source.spans
        for start, end in unit_spans(_text(source, kept))
    ]


def _text(source: Source, span: Span) -> str:
    chunk = source.hit.chunk
    return chunk.text[span.start_char - chunk.start_char : span.end_char - chunk.start_char]
