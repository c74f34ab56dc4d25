"""Compresses ranked hits to a token budget: keeps whole chunks or their best sentences, with exact offsets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from retrieval.footnote_numbers import header_of, numbered
from retrieval.passages import Passage, passages
from retrieval.relevance import Worth, odds, overlap, term_weights
from retrieval.selection import Prices, ScoredSentence, choose, pieces
from retrieval.sentences import unit_spans
from retrieval.types import Context, Dropped, Hit, Source, Span
from retrieval.words import terms, word_spans

Order: TypeAlias = Callable[[Sequence[Source]], Sequence[int]]
"""Maps sources, best first and numbered in that order, to their indices in the order to be read."""


def edges_first(sources: Sequence[Source]) -> list[int]:
    """Best-first sources 1 2 3 4 5 as 1 3 5 4 2.

    Models attend least to the middle of a long prompt (Liu et al. 2023, arXiv:2307.03172).
    """
    return [*range(0, len(sources), 2), *reversed(range(1, len(sources), 2))]


def best_first(sources: Sequence[Source]) -> list[int]:
    """Best-first sources as they are, for people and for models that read a few of them."""
    return list(range(len(sources)))


ELLIPSIS = " … "
END = "\n"


@dataclass(frozen=True, slots=True)
class _Draft:
    """A source and the ranks of its hits, best first."""

    ranks: tuple[int, ...]
    source: Source

    def numbered(self, place: int, count: Callable[[str], int]) -> "_Draft":
        return replace(self, source=numbered(self.source, place, count_tokens=count))


def compress(
    hits: Sequence[Hit],
    *,
    query: str,
    budget: int,
    count_tokens: Callable[[str], int],
    order: Order = edges_first,
    worth: Worth = odds,
) -> Context:
    """Keeps the parts of `hits` that are most likely to answer `query` within `budget` tokens.

    Hits without new text are left out; those of one document version that overlap or touch
    become one source (`retrieval.passages`). If all of that fits, it is sent whole. Otherwise the
    sentences of all sources compete by how likely they are evidence (`retrieval.relevance`) and by
    their cost in tokens; the first of a source includes its header.

    A sentence is cut, at a word, only when none that shares a word with the query fits: a tiny
    budget still gives evidence. As tokens do not add up across a join, sentences are counted once to
    choose, and sources then as they are sent.

    Args:
        hits: Best first.
        query: The question, in the asker's words.
        budget: Most tokens of all headers and bodies together.
        count_tokens: The generator's own counter.
        order: How the sources are arranged before they are numbered from 1.
        worth: The measure by which the sentences are chosen.

    Returns:
        Sources in the order of reading; every hit that is not one of them is in `dropped`, best first.

    Raises:
        ValueError: `budget` is negative.
    """
    if budget < 0:
        raise ValueError(f"budget must be at least 0 tokens, got {budget}")
    counted: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in counted:
            counted[text] = count_tokens(text)
        return counted[text]

    heads = [count(header_of(1, hit.chunk)) for hit in hits]
    found = passages([(rank, hit) for rank, hit in enumerate(hits) if heads[rank] <= budget])
    writer = _Writer(found, budget=budget, count_tokens=count, order=order)
    drafts: _Drafts = ()
    if budget:
        whole = writer.drafts({number: [_trimmed(passage.text)] for number, passage in enumerate(found)})
        drafts = whole if whole is not None else _selected(writer, query=query, worth=worth)
    return Context(
        sources=tuple(draft.source for draft in drafts),
        dropped=_dropped(hits, found, drafts, too_wide={rank for rank, head in enumerate(heads) if head > budget}),
        tokens=sum(draft.source.tokens for draft in drafts),
        retrieved_tokens=sum(head + count(hit.chunk.text + END) for head, hit in zip(heads, hits, strict=True)),
    )


_Pieces: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]  # by passage, [start, end) in its text, in order, disjoint
_Drafts: TypeAlias = tuple[_Draft, ...]


class _Writer:
    """Builds sources from passages while they fit the budget."""

    def __init__(
        self, found: Sequence[Passage], *, budget: int, count_tokens: Callable[[str], int], order: Order
    ) -> None:
        self.found = found
        self.budget = budget
        self.count = count_tokens
        self._order = order

    def drafts(self, kept: _Pieces) -> "_Drafts | None":
        """The sources that hold `kept`, ordered and numbered, if their exact token count fits."""
        found = sorted((self._draft(self.found[number], spans) for number, spans in kept.items()), key=_best_rank)
        found = [draft.numbered(place, self.count) for place, draft in enumerate(found)]
        places = list(self._order([draft.source for draft in found]))
        assert sorted(places) == list(range(len(found))), "an order has every source once"
        drafts = tuple(found[place].numbered(number, self.count) for number, place in enumerate(places))
        return drafts if sum(draft.source.tokens for draft in drafts) <= self.budget else None

    def _draft(self, passage: Passage, spans: Sequence[tuple[int, int]]) -> _Draft:
        placed = tuple(Span(passage.start_char + start, passage.start_char + end) for start, end in spans)
        holders = passage.hits_at(placed)
        source = Source(
            number=0,
            hit=passage.hit(placed),
            spans=placed,
            header="",
            body=ELLIPSIS.join(passage.text[start:end] for start, end in spans) + END,
            tokens=0,
            compressed=list(spans) != [_trimmed(passage.text)],
            chunks=tuple(sorted((hit.chunk for _, hit in holders), key=lambda chunk: (chunk.start_char, chunk.key))),
        )
        return _Draft(tuple(rank for rank, _ in holders), source)


def _selected(writer: _Writer, *, query: str, worth: Worth) -> _Drafts:
    """The best sentences that fit, or a part of one if no whole sentence fits."""
    units = _units(writer, query=query, worth=worth)
    openings = [writer.count(header_of(1, passage.found[0][1].chunk)) + writer.count(END) for passage in writer.found]
    chosen = choose(units, budget=writer.budget, prices=Prices(openings, writer.count(ELLIPSIS)))
    about = [unit for unit in units if unit.matching] or units
    wanted = set(about)
    less = 1
    while any(unit in wanted for unit in chosen):
        drafts = writer.drafts(pieces(chosen))
        if drafts is not None:
            return drafts
        chosen = chosen[:-less]  # the joins cost more than their parts: drop the last choice
        less *= 2

    for unit in sorted(about, key=lambda unit: -unit.priority):
        drafts = writer.drafts(pieces([unit]))
        if drafts is not None:
            return drafts
    best = {unit.passage: unit for unit in sorted(about, key=lambda unit: unit.worth)}
    cuts = (_cut(writer, unit) for unit in sorted(best.values(), key=lambda unit: -unit.worth))
    return next((drafts for drafts in cuts if drafts is not None), ())


def _units(writer: _Writer, *, query: str, worth: Worth) -> list[ScoredSentence]:
    """The weighted sentences of all passages; headings only where there is nothing else."""
    spans = [unit_spans(passage.text) for passage in writer.found]
    texts = [
        [passage.text[start:end] for start, end in of_passage]
        for passage, of_passage in zip(writer.found, spans, strict=True)
    ]
    spoken = [[terms(text) for text in of_passage] for of_passage in texts]
    weights = term_weights(query, [frozenset[str]().union(*of_passage) for of_passage in spoken])
    total = sum(weights.values()) or 1.0
    scores = {rank: hit.scores.fused for passage in writer.found for rank, hit in passage.found}
    top = max(scores.values(), default=0.0)
    closeness = {rank: score / top if top > 0 else 1.0 for rank, score in scores.items()}
    units: list[ScoredSentence] = []
    headings: list[ScoredSentence] = []
    for number, passage in enumerate(writer.found):
        ranks = [passage.rank_at(start, end) for start, end in spans[number]]
        shares = [overlap(weights, of_unit) / total for of_unit in spoken[number]]
        best = dict.fromkeys(ranks, 0.0)
        for rank, share in zip(ranks, shares, strict=True):
            best[rank] = max(best[rank], share)
        for place, ((start, end), rank, share) in enumerate(zip(spans[number], ranks, shares, strict=True)):
            tokens = writer.count(texts[number][place])
            value = worth(rank=rank, closeness=closeness[rank], share=share, best_share=best[rank], tokens=tokens)
            kind = headings if _is_heading(texts[number][place], passage) else units
            kind.append(ScoredSentence(number, place, start, end, tokens, value, matching=share > 0))
    return units or headings


def _is_heading(text: str, passage: Passage) -> bool:
    """Whether a sentence is the heading that the source's header names anyway."""
    path = passage.found[0][1].chunk.heading_path
    return bool(path) and text.strip("# ").casefold() == path[-1].casefold()


def _cut(writer: _Writer, unit: ScoredSentence) -> _Drafts | None:
    """The longest beginning of a sentence, up to the end of a word, found by halving."""
    text = writer.found[unit.passage].text
    ends = [unit.start + end for _, end in word_spans(text[unit.start : unit.end])]
    best: _Drafts | None = None
    low, high = 0, len(ends)  # ends[:low] is known to fit
    while low < high:
        middle = (low + high) // 2
        drafts = writer.drafts({unit.passage: [(unit.start, ends[middle])]})
        if drafts is None:
            high = middle
        else:
            best, low = drafts, middle + 1
    return best


def _dropped(
    hits: Sequence[Hit], found: Sequence[Passage], drafts: Sequence[_Draft], *, too_wide: set[int]
) -> tuple[Dropped, ...]:
    """All hits that did not become a source, with the reason."""
    reasons: dict[int, Literal["budget", "duplicate", "merged"]] = dict.fromkeys(range(len(hits)), "duplicate")
    reasons |= dict.fromkeys(too_wide, "budget")
    for passage in found:
        reasons |= dict.fromkeys((rank for rank, _ in passage.found), "budget")
    for draft in drafts:
        reasons |= dict.fromkeys(draft.ranks[1:], "merged")
    presented = {draft.ranks[0] for draft in drafts}
    return tuple(Dropped(hits[rank].chunk.id, reason) for rank, reason in reasons.items() if rank not in presented)


def _best_rank(draft: _Draft) -> int:
    return draft.ranks[0]


def _trimmed(text: str) -> tuple[int, int]:
    return len(text) - len(text.lstrip()), len(text.rstrip())
