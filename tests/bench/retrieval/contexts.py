"""Compression with one of its parts left out: what the part is worth.

Put together here from the product's own stations, so that nothing in the product has a switch for it.
`whole_hits` leaves nothing out; the ablation checks that it writes what `compress` writes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from retrieval.compress import _selected, _trimmed, _Writer, edges_first
from retrieval.passages import Passage, _merged, passages
from retrieval.relevance import odds
from retrieval.types import Context, Hit


class Part(Protocol):
    """Makes a context as `retrieval.compress.compress` does, but for one thing."""

    def __call__(
        self, hits: Sequence[Hit], *, query: str, budget: int, count_tokens: Callable[[str], int]
    ) -> Context: ...


def whole_hits(hits: Sequence[Hit], *, query: str, budget: int, count_tokens: Callable[[str], int]) -> Context:
    """Every part at work."""
    return _context(passages(_ranked(hits)), query=query, budget=budget, count_tokens=count_tokens)


def copies_kept(hits: Sequence[Hit], *, query: str, budget: int, count_tokens: Callable[[str], int]) -> Context:
    """Hits that say what a better one says compete too; what overlaps or touches is still one passage."""
    some = [(rank, hit) for rank, hit in _ranked(hits) if hit.chunk.text.strip()]
    found = sorted(_merged(some), key=lambda passage: passage.found[0][0])
    return _context(found, query=query, budget=budget, count_tokens=count_tokens)


def not_merged(hits: Sequence[Hit], *, query: str, budget: int, count_tokens: Callable[[str], int]) -> Context:
    """Every chunk is a source of its own, its overlap with the next included."""
    found = sorted((one for passage in passages(_ranked(hits)) for one in passage.found), key=lambda one: one[0])
    alone = [Passage(hit.chunk.text, hit.chunk.start_char, ((rank, hit),)) for rank, hit in found]
    return _context(alone, query=query, budget=budget, count_tokens=count_tokens)


def dropped_whole(hits: Sequence[Hit], *, query: str, budget: int, count_tokens: Callable[[str], int]) -> Context:
    """No sentence is chosen: passages go in whole, best first, and one that does not fit is passed over."""
    found = passages(_ranked(hits))
    writer = _Writer(found, budget=budget, count_tokens=count_tokens, order=edges_first)
    kept: dict[int, list[tuple[int, int]]] = {}
    for number, passage in enumerate(found):
        more = {**kept, number: [_trimmed(passage.text)]}
        if writer.drafts(more) is not None:
            kept = more
    return _written(writer, kept)


PARTS: dict[str, Part] = {"copies kept": copies_kept, "not merged": not_merged, "dropped whole": dropped_whole}


def _ranked(hits: Sequence[Hit]) -> list[tuple[int, Hit]]:
    return list(enumerate(hits))


def _context(found: Sequence[Passage], *, query: str, budget: int, count_tokens: Callable[[str], int]) -> Context:
    writer = _Writer(found, budget=budget, count_tokens=count_tokens, order=edges_first)
    whole = {number: [_trimmed(passage.text)] for number, passage in enumerate(found)}
    drafts = writer.drafts(whole)
    if drafts is None:
        drafts = _selected(writer, query=query, worth=odds)
    sources = tuple(draft.source for draft in drafts)
    return Context(sources=sources, dropped=(), tokens=sum(source.tokens for source in sources))


def _written(writer: _Writer, kept: dict[int, list[tuple[int, int]]]) -> Context:
    drafts = writer.drafts(kept)
    assert drafts is not None, "what is kept was seen to fit"
    sources = tuple(draft.source for draft in drafts)
    return Context(sources=sources, dropped=(), tokens=sum(source.tokens for source in sources))
