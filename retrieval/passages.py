"""Turns hits into passages: drops repeated text and joins chunks that overlap or touch.

Chunks of a section share an overlap, so the best hits of a document often continue each other. As
one passage they cost one header, share no character, and their sentences are whole again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.memo import remembered
from retrieval.types import Chunk, Hit, Span
from retrieval.words import word_spans

# Resemblance of Broder 1997, "On the resemblance and containment of documents", over runs of three words.
_SHINGLE = 3
_NEARLY_ALL = 0.9
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one hit, or of several that overlap or touch.

    `text` is `[start_char, start_char + len(text))` of the document version; `found` are the hits as
    they came with their ranks (0 is best), best first.
    """

    text: str
    start_char: int
    found: tuple[tuple[int, Hit], ...]

    def rank_at(self, start: int, end: int) -> int:
        """Rank of the best hit with the most of `text[start:end]`: all of it, but where two chunks meet."""
        best = max(self.found, key=lambda found: (self._shared(found[1].chunk, start, end), -found[0]))
        return best[0]

    def hits_at(self, spans: Sequence[Span]) -> list[tuple[int, Hit]]:
        """The hits that hold some of `spans`, best first."""
        return [
            (rank, hit)
            for rank, hit in self.found
            if any(span.start_char < hit.chunk.end_char and hit.chunk.start_char < span.end_char for span in spans)
        ]

    def hit(self, spans: Sequence[Span]) -> Hit:
        """The best hit that holds some of `spans`, its chunk reaching over the whole passage."""
        best = self.hits_at(spans)[0][1]
        if len(self.found) == 1:
            return best
        chunks = [hit.chunk for _, hit in self.found]
        first_pages = [chunk.page_start for chunk in chunks if chunk.page_start is not None]
        last_pages = [chunk.page_end for chunk in chunks if chunk.page_end is not None]
        union = replace(
            best.chunk,
            text=self.text,
            start_char=self.start_char,
            end_char=self.start_char + len(self.text),
            page_start=min(first_pages, default=None),
            page_end=max(last_pages, default=None),
            token_count=sum(chunk.token_count for chunk in chunks),
            table_header=min(chunks, key=lambda chunk: chunk.start_char).table_header,
        )
        return replace(best, chunk=union)

    def _shared(self, chunk: Chunk, start: int, end: int) -> int:
        offset = chunk.start_char - self.start_char
        return min(end, offset + len(chunk.text)) - max(start, offset)


def passages(ranked: Sequence[tuple[int, Hit]]) -> list[Passage]:
    """Builds the passages of ranked hits, best first; a hit without new text is in none of them.

    That is a hit without text, one whose characters a single better hit of its document version
    holds, one with a better hit's words, and one that nearly has them: at least nine tenths of all
    runs of three words in both, and the same numbers in the same order, since "rose 3 %" and
    "rose 8 %" are two facts. Passages come in the order of their best hits.
    """
    kept: list[tuple[int, Hit]] = []
    prints: list[_Print] = []
    for rank, hit in ranked:
        own = _print_of(hit.chunk.text)
        said = any(_holds(better.chunk, hit.chunk) for _, better in kept) or any(map(own.repeats, prints))
        if own.words and not said:
            kept.append((rank, hit))
            prints.append(own)
    return sorted(_merged(kept), key=lambda passage: passage.found[0][0])


def _holds(outer: Chunk, inner: Chunk) -> bool:
    return (
        _version(outer) == _version(inner) and outer.start_char <= inner.start_char and inner.end_char <= outer.end_char
    )


def _version(chunk: Chunk) -> tuple[str, int]:
    return chunk.document_id, chunk.version


def _merged(kept: Sequence[tuple[int, Hit]]) -> list[Passage]:
    in_order = sorted(kept, key=lambda found: (_version(found[1].chunk), found[1].chunk.start_char, found[0]))
    merged: list[Passage] = []
    last: Chunk | None = None
    for rank, hit in in_order:
        chunk = hit.chunk
        if last is not None and _continues(merged[-1], last, chunk):
            passage = merged[-1]
            added = chunk.text[passage.start_char + len(passage.text) - chunk.start_char :]
            found = sorted([*passage.found, (rank, hit)], key=lambda found: found[0])
            merged[-1] = replace(passage, text=passage.text + added, found=tuple(found))
        else:
            merged.append(Passage(chunk.text, chunk.start_char, ((rank, hit),)))
        last = chunk
    return merged


def _continues(passage: Passage, last: Chunk, chunk: Chunk) -> bool:
    """Whether `chunk` shares a character with the passage before it, or follows at once under the same heading."""
    if _version(last) != _version(chunk):
        return False
    end = passage.start_char + len(passage.text)
    return chunk.start_char < end or (chunk.start_char == end and chunk.heading_path == last.heading_path)


@dataclass(frozen=True, slots=True)
class _Print:
    """The normalised form in which texts are compared."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]

    def repeats(self, other: "_Print") -> bool:
        if self.words == other.words:
            return True
        fewer, more = sorted((len(self.words), len(other.words)))
        if self.numbers != other.numbers or fewer < more / 2:  # a cheap test that excludes dissimilar texts
            return False
        own, others = self.shingles(), other.shingles()
        return bool(own) and len(own & others) >= _NEARLY_ALL * len(own | others)

    def shingles(self) -> set[tuple[str, ...]]:
        return set(zip(*(self.words[skipped:] for skipped in range(_SHINGLE)), strict=False))


@remembered
def _print_of(text: str) -> _Print:
    folded = text.casefold()
    return _Print(tuple(folded[start:end] for start, end in word_spans(folded)), tuple(_NUMBER.findall(folded)))
