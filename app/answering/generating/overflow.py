"""Finds the sentences that a context leaves out for lack of room, and adds summaries of them to it.

A summarised source keeps the character offsets of all text that was summarised. So its citations open the original and
are verified against it; only the text in the prompt is shorter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from retrieval.compress import ELLIPSIS, END, Order
from retrieval.footnote_numbers import header_of, numbered
from retrieval.passages import Passage, passages
from retrieval.sentences import unit_spans
from retrieval.types import Chunk, Context, Dropped, Hit, Source, Span
from retrieval.words import word_spans


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Sentences of a passage that no source shows.

    `spans` are document offsets in order, `text` is their text, joined by ellipses; `source` shows
    the rest of the passage, and is None where the passage was dropped altogether.
    """

    passage: Passage
    spans: tuple[Span, ...]
    text: str
    source: Source | None

    @property
    def chunk(self) -> Chunk:
        """The passage's best chunk: it names the source."""
        return self.passage.found[0][1].chunk

    @property
    def opening(self) -> str:
        """The text around a summary: a header and an end, or the ellipsis that adds it to its source."""
        return ELLIPSIS if self.source is not None else header_of(1, self.chunk) + END


def left_out(
    hits: Sequence[Hit], context: Context, *, budget: int, most_tokens: int, count_tokens: Callable[[str], int]
) -> list[LeftOut]:
    """The text of `hits` that `context`, their compression to `budget`, does not show, without duplicates.

    Dropped passages come first, then the rest of compressed ones, each best first. Of a passage the first sentences
    are taken that have at most `most_tokens` tokens together, each counted alone.
    """
    shown = {(_version(source.hit.chunk), source.hit.chunk.start_char): source for source in context.sources}
    found = passages([(rank, hit) for rank, hit in enumerate(hits) if count_tokens(header_of(1, hit.chunk)) <= budget])
    rest = []
    for passage in found:
        source = shown.get((_version(passage.found[0][1].chunk), passage.start_char))
        spans = _unshown(passage, source, most_tokens=most_tokens, count_tokens=count_tokens)
        if spans:
            text = ELLIPSIS.join(_slice(passage, span) for span in spans)
            rest.append(LeftOut(passage, spans, text, source))
    return sorted(rest, key=lambda item: item.source is not None)  # stable: still best first


def with_summaries(
    hits: Sequence[Hit],
    context: Context,
    summaries: Sequence[tuple[LeftOut, str]],
    *,
    budget: int,
    count_tokens: Callable[[str], int],
    order: Order,
) -> tuple[Context, tuple[str, ...]]:
    """`context` with as many summaries as fit into `budget`, in the given order; the rest is left out as before.

    Args:
        hits: The hits, best first.
        context: Their compression, within `budget`.
        summaries: Text that was left out, each with its summary.
        budget: Most tokens of all headers and bodies together.
        count_tokens: Counts tokens of the language model.
        order: How the sources are arranged before they are numbered from 1.

    Returns:
        The context, and the chunk ids of its sources with a summary, in the order of reading.
    """
    ranks = {hit.chunk.id: rank for rank, hit in reversed(list(enumerate(hits)))}
    for number in range(len(summaries), 0, -1):
        written = summaries[:number]
        replaced = {item.source.number for item, _ in written if item.source is not None}
        kept = [source for source in context.sources if source.number not in replaced]
        made = [source_of(item, summary) for item, summary in written]
        summarised = {source.hit.chunk.id for source in made}
        best_first = sorted([*kept, *made], key=lambda source: ranks[source.hit.chunk.id])
        ranked = [numbered(source, place, count_tokens=count_tokens) for place, source in enumerate(best_first)]
        places = order(ranked)
        sources = tuple(numbered(ranked[place], at, count_tokens=count_tokens) for at, place in enumerate(places))
        tokens = sum(source.tokens for source in sources)
        if tokens <= budget:
            dropped = _dropped(context, [item for item, _ in written], presented=summarised)
            fuller = replace(context, sources=sources, dropped=dropped, tokens=tokens)
            return fuller, tuple(source.hit.chunk.id for source in sources if source.hit.chunk.id in summarised)
    return context, ()


def _unshown(
    passage: Passage, source: Source | None, *, most_tokens: int, count_tokens: Callable[[str], int]
) -> tuple[Span, ...]:
    """The passage's sentences outside the source's spans, at most `most_tokens` tokens of them."""
    chosen: list[Span] = []
    for gap in _gaps(passage, source.spans if source is not None else ()):
        for start, end in unit_spans(_slice(passage, gap)):
            span = Span(gap.start_char + start, gap.start_char + end)
            if not word_spans(_slice(passage, span)):
                continue
            most_tokens -= count_tokens(_slice(passage, span)) + count_tokens(ELLIPSIS)
            if most_tokens < 0:
                return _joined(passage, chosen)
            chosen.append(span)
    return _joined(passage, chosen)


def _gaps(passage: Passage, spans: Sequence[Span]) -> list[Span]:
    """The parts of the passage before, between and after `spans`, which are in order and disjoint."""
    starts = [passage.start_char, *(span.end_char for span in spans)]
    ends = [*(span.start_char for span in spans), passage.start_char + len(passage.text)]
    return [Span(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _joined(passage: Passage, spans: Sequence[Span]) -> tuple[Span, ...]:
    """`spans` in document order; spans with only white space between them are joined."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start_char):
        if joined and not _slice(passage, Span(joined[-1].end_char, span.start_char)).strip():
            joined[-1] = Span(joined[-1].start_char, span.end_char)
        else:
            joined.append(span)
    return tuple(joined)


def source_of(item: LeftOut, summary: str) -> Source:
    """The source that shows `summary` behind the text of the passage shown so far; it has no number or header yet."""
    before = item.source
    spans = _joined(item.passage, [*(before.spans if before is not None else ()), *item.spans])
    holders = [hit.chunk for _, hit in item.passage.hits_at(spans)]
    shown = before.body.removesuffix(END) + ELLIPSIS if before is not None else ""
    return Source(
        number=0,
        hit=before.hit if before is not None else item.passage.hit(spans),
        spans=spans,
        header="",
        body=shown + summary + END,
        tokens=0,
        compressed=True,
        chunks=tuple(sorted(holders, key=lambda chunk: (chunk.start_char, chunk.key))),
    )


def _dropped(context: Context, items: Sequence[LeftOut], *, presented: set[str]) -> tuple[Dropped, ...]:
    """The dropped hits, where hits that are now part of a summarised source count as merged."""
    read = {hit.chunk.id for item in items for _, hit in item.passage.hits_at(item.spans)}
    return tuple(
        replace(item, reason="merged") if item.reason == "budget" and item.chunk_id in read else item
        for item in context.dropped
        if item.chunk_id not in presented
    )


def _slice(passage: Passage, span: Span) -> str:
    return passage.text[span.start_char - passage.start_char : span.end_char - passage.start_char]


def _version(chunk: Chunk) -> tuple[str, int]:
    return chunk.document_id, chunk.version
