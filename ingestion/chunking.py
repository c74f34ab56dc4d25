"""Splits canonical text into chunks that fit the embedder's input.

Passages stay within sections (the text under one heading) and the token limit by the embedder's
own tokenizer. Inside a section they end at the largest boundary that fits: paragraph, sentence,
line, word, character; in a table between rows where one fits. A passage that begins inside a table
is embedded with the table's caption and column names. The text is tokenised once to plan; where the
tokenizer may read a passage differently alone and after its headings, it is tokenised again as it
will be embedded.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tokenizers import Tokenizer

from ingestion.boundaries import first_start, last_end
from ingestion.sections import Section, join_tiny, sections
from ingestion.table_headers import TableHeaders
from ingestion.token_starts import MOST_WORD_CHARS, TokenStarts, windows
from ingestion.types import ChunkDraft, Extraction, PageRange

_PREFIX_TOKENS = 64  # most tokens of an embedding text that its headings take, and its table header; each at most 1/4
_CHARS_PER_TOKEN = 16  # most characters of a passage per token: to WordPiece a "word" of 10 MB is one unknown token
_JOIN_TOKENS = 2  # extra tokens of a passage after its headings, compared with the planned text
_BATCH = 256


@dataclass(frozen=True, slots=True)
class _Planned:
    """A span of text, its heading path, and the prefix that is embedded with it."""

    start: int
    end: int
    heading_path: tuple[str, ...]
    prefix: str
    prefix_tokens: int


class Chunker:
    """Cuts an extraction into passages of at most `max_tokens` tokens, headings and special tokens included.

    Neighbouring passages of a section share up to `overlap` tokens of whole sentences or words, so
    that text at a boundary is found with its context.
    """

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int, overlap: int) -> None:
        """`tokenizer` is the embedder's; its padding and truncation are ignored.

        Raises:
            ValueError: The limits leave too little room for text.
        """
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())  # a copy: the next lines change it
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if max_tokens < 32:
            raise ValueError(f"max_tokens must be at least 32, got {max_tokens}")
        if not 0 <= overlap <= max_tokens // 4:
            raise ValueError(f"overlap must be between 0 and a quarter of max_tokens, got {overlap}")
        self._special_tokens = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self._max_tokens = max_tokens
        self._overlap = overlap
        self._prefix_tokens = min(_PREFIX_TOKENS, max_tokens // 4)
        self._adds_up = _adds_up(self._tokenizer)

    def chunk(self, extraction: Extraction) -> list[ChunkDraft]:
        """The passages, in order; together they cover every character that is neither white space nor furniture.

        The neighbours of a passage are those with the ordinals before and after its own.
        """
        text = extraction.text
        starts = TokenStarts(self._tokenizer, text)
        cut = join_tiny(
            sections(extraction),
            count_tokens=starts.count,
            tiny=self._max_tokens // 4,
            most=self._max_tokens - self._prefix_tokens,
        )
        tables = TableHeaders(extraction)
        planned = (span for section in cut for span in self._planned(text, starts, section, tables))
        pages = _PageNumbers(extraction.pages)
        return [
            ChunkDraft(
                ordinal=ordinal,
                start_char=span.start,
                end_char=span.end,
                page_start=pages.at(span.start),
                page_end=pages.at(span.end - 1),
                heading_path=span.heading_path,
                text=text[span.start : span.end],
                embedding_text=self._above(span, tables)[0] + text[span.start : span.end],
                token_count=tokens,
                table_header=tables.at(span.start),
            )
            for ordinal, (span, tokens) in enumerate(_without_contained(self._fitted(text, starts, planned, tables)))
        ]

    def _planned(self, text: str, starts: TokenStarts, section: Section, tables: TableHeaders) -> Iterator[_Planned]:
        """The spans of a section, which leave room for table headers where a table may be cut."""
        prefix, taken = self._prefix(section.heading_path)
        spans = list(self._split(text, starts, tables, section.start_char, section.end_char, taken))
        cut = len(spans) > 1 or bool(tables.at(section.start_char))
        if cut and (headers := tables.within(section.start_char, section.end_char)):
            room = max(self._lines(header)[1] for header in headers)
            spans = list(self._split(text, starts, tables, section.start_char, section.end_char, taken + room))
        return (_Planned(start, end, section.heading_path, prefix, taken) for start, end in spans)

    def _above(self, span: _Planned, tables: TableHeaders) -> tuple[str, int]:
        """The prefix of a span with its table header, and the tokens of both."""
        lines, taken = self._lines(tables.at(span.start))
        return span.prefix + lines, span.prefix_tokens + taken

    def _lines(self, table_header: str) -> tuple[str, int]:
        """The last lines of a table header that fit, each with its line end, and their tokens."""
        lines = table_header.split("\n") if table_header else []
        for first in range(len(lines)):
            kept = "".join(f"{line}\n" for line in lines[first:])
            if len(kept) <= self._prefix_tokens * _CHARS_PER_TOKEN:
                taken = self._count(kept) - self._special_tokens
                if taken <= self._prefix_tokens:
                    return kept, taken
        return "", 0

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text).ids)

    def embedding_text(self, heading_path: Sequence[str], text: str, table_header: str = "") -> str:
        """The text to embed for a passage: as much of its heading path and of its table header as fits, then its text.

        Stored chunks are embedded anew by it: of a passage it is the `embedding_text`.
        """
        return self._prefix(heading_path)[0] + self._lines(table_header)[0] + text

    def _prefix(self, heading_path: Sequence[str]) -> tuple[str, int]:
        """The heading prefix of a passage's embedded text, and its tokens.

        A path that is too long loses its outer headings first; a single heading that is too long is left out.
        """
        for outer in range(len(heading_path)):
            prefix = " > ".join(heading_path[outer:]) + "\n"
            # Only this many characters of a prefix are counted: hostile headings may be megabytes long.
            if len(prefix) <= self._prefix_tokens * _CHARS_PER_TOKEN:
                taken = self._count(prefix) - self._special_tokens
                if taken <= self._prefix_tokens:
                    return prefix, taken
        return "", 0

    def _split(
        self, text: str, starts: TokenStarts, tables: TableHeaders, start: int, end: int, prefix_tokens: int
    ) -> Iterator[tuple[int, int]]:
        """Spans that cover `text[start:end]`, without the white space around them, and fit with their prefix."""
        room = self._max_tokens - self._special_tokens - prefix_tokens
        if not self._adds_up:
            room -= _JOIN_TOKENS
        for first, last in _cut(text, starts, tables, start, end, room=room, overlap=min(self._overlap, room // 3)):
            yield from windows(text, first, last, self._max_tokens * _CHARS_PER_TOKEN)

    def _fitted(
        self, text: str, starts: TokenStarts, planned: Iterable[_Planned], tables: TableHeaders
    ) -> Iterator[tuple[_Planned, int]]:
        """The spans with their exact token counts; one that is too long after all is halved until it fits."""
        planned = iter(planned)
        while batch := list(islice(planned, _BATCH)):
            unsure = [span for span in batch if not (self._adds_up and _stands_alone(text, span))]
            encodings = iter(
                self._tokenizer.encode_batch_fast(
                    [self._above(span, tables)[0] + text[span.start : span.end] for span in unsure]
                )
            )
            alone = {id(span) for span in unsure}
            for span in batch:
                if id(span) in alone:
                    tokens = len(next(encodings).ids)
                else:
                    taken = self._above(span, tables)[1]
                    tokens = self._special_tokens + taken + starts.count(span.start, span.end)
                if tokens <= self._max_tokens:
                    yield span, tokens
                else:
                    assert span.end - span.start > 1, "one character and its headings fit into max_tokens"
                    halves = windows(text, span.start, span.end, -(-(span.end - span.start) // 2))
                    parts = (replace(span, start=first, end=last) for first, last in halves)
                    yield from self._fitted(text, starts, parts, tables)


def _adds_up(tokenizer: Tokenizer) -> bool:
    """Whether the tokens of two texts are those of both with white space between, as BERT's are.

    BERT cleans character by character and splits at white space before it looks for word pieces.
    """
    parts = json.loads(tokenizer.to_str())
    kinds = [(parts.get(name) or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]


def _stands_alone(text: str, span: _Planned) -> bool:
    """Whether white space bounds the span, and no word in it is so long that planning cut it in two."""
    return (
        (span.start == 0 or text[span.start - 1].isspace())
        and (span.end == len(text) or text[span.end].isspace())
        and span.end - span.start <= MOST_WORD_CHARS
    )


class _PageNumbers:
    """Looks up the page of a character."""

    def __init__(self, pages: Sequence[PageRange]) -> None:
        # An empty page starts where the next one does and has no character: the last that starts there has it.
        self._starts = [page.start_char for page in pages]
        self._numbers = [page.number for page in pages]

    def at(self, char: int) -> int | None:
        """The page of character `char`, `None` where there are no pages."""
        index = bisect_right(self._starts, char) - 1
        return self._numbers[index] if index >= 0 else None


def _cut(
    text: str, starts: TokenStarts, tables: TableHeaders, start: int, end: int, *, room: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Cut `[start, end)` where the text allows it, each piece at least half full but the last.

    The rest for the last two pieces is divided evenly, so that no short piece remains.
    """
    last_token = starts.index(end)
    while True:
        while start < end and text[start].isspace():
            start += 1
        token = starts.index(start)
        left = last_token - token
        if left <= room:
            break
        most = min(room, left * 2 // 3)
        least = starts.char(token + most // 2)
        stop = last_end(text, least, starts.char(token + most))
        if (row := tables.row_around(stop)) and row.start_char > least:
            stop = start + len(text[start : row.start_char].rstrip())
        stop = max(stop, start + 1)  # one character can be many tokens
        yield start, stop
        shared = first_start(text, starts.char(starts.index(stop) - overlap), stop) if overlap else stop
        if row := tables.row_around(shared):
            shared = min(row.end_char, stop)
        start = shared if shared > start else stop
    if start < end:
        yield start, end


def _without_contained(spans: Iterable[tuple[_Planned, int]]) -> list[tuple[_Planned, int]]:
    """The spans that are not inside another: starts and ends increase, and coverage is the same."""
    kept: list[tuple[_Planned, int]] = []
    for span, tokens in spans:
        while kept and span.start <= kept[-1][0].start and kept[-1][0].end <= span.end:
            kept.pop()
        if not kept or span.end > kept[-1][0].end:
            kept.append((span, tokens))
    return kept
