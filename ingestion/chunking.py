"""Splits canonical text into passages that the embedder reads whole.

Passages keep to sections (what stands under one heading) and to the token limit by the embedder's
own tokenizer. Inside a section they end at the largest boundary that fits: paragraph, sentence,
word, character (semantic-text-splitter, after Unicode UAX #29).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from semantic_text_splitter import TextSplitter
from tokenizers import Tokenizer

from ingestion.sections import join_tiny, sections
from ingestion.types import Extraction, Page, Passage

_PREFIX_TOKENS = 64  # most tokens of an embedding text that its headings take, and at most a quarter of it
_STEP = 8  # room for headings is taken in steps of so many tokens: one splitter each, and building one takes 0.1 s
_WINDOW_CHARS = 16_384  # the splitter sees no more at once, which keeps it linear on hostile text
_CHARS_PER_TOKEN = 16  # most characters of a passage per token: to WordPiece a "word" of 10 MB is one unknown token
_BATCH = 256


class Chunker:
    """Cuts an extraction into passages of at most `max_tokens` tokens, headings and special tokens included.

    Neighbouring passages of a section share up to `overlap` tokens of whole sentences or words, so
    that what stands at a boundary is found with what surrounds it.
    """

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int = 256, overlap: int = 32) -> None:
        """`tokenizer` is the embedder's; its padding and truncation are ignored.

        Raises:
            ValueError: The limits leave too little room for text.
        """
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())  # our own copy: the next lines change it
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
        self._splitters: dict[int, TextSplitter] = {}

    def chunk(self, extraction: Extraction) -> list[Passage]:
        """The passages, in order; together they cover every character that is not white space."""
        text = extraction.text
        cut = join_tiny(
            sections(extraction),
            text,
            count_tokens=self._count,
            tiny=self._max_tokens // 4,
            most=self._max_tokens - self._prefix_tokens,
        )
        pages = _PageNumbers(extraction.pages)
        passages: list[Passage] = []
        for section in cut:
            prefix, room = self._prefix(section.heading_path)
            spans = self._split(text, section.start_char, section.end_char, room)
            for start, end, tokens in _without_contained(self._fitted(text, spans, prefix)):
                passages.append(
                    Passage(
                        ordinal=len(passages),
                        start_char=start,
                        end_char=end,
                        page_start=pages.at(start),
                        page_end=pages.at(end - 1),
                        heading_path=section.heading_path,
                        text=text[start:end],
                        embedding_text=prefix + text[start:end],
                        token_count=tokens,
                    )
                )
        return passages

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text).ids)

    def _prefix(self, heading_path: Sequence[str]) -> tuple[str, int]:
        """What stands before a passage when it is embedded, and the tokens that leaves for the passage.

        A path that is too long loses its outer headings first; a single heading that is too long is left out.
        """
        for outer in range(len(heading_path)):
            prefix = " > ".join(heading_path[outer:]) + "\n"
            # The most a prefix of so many characters is worth counting: hostile headings may be megabytes long.
            if len(prefix) <= self._prefix_tokens * _CHARS_PER_TOKEN:
                taken = self._count(prefix) - self._special_tokens
                if taken <= self._prefix_tokens:
                    return prefix, self._max_tokens - -(-taken // _STEP) * _STEP
        return "", self._max_tokens

    def _split(self, text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
        """Spans of at most `room` tokens that cover `text[start:end]`, without the white space around them."""
        splitter = self._splitters.get(room)
        if splitter is None:
            overlap = min(self._overlap, room // 3)
            # It overshoots by the special tokens where a chunk is trimmed (seen with 0.33.1).
            capacity = room - self._special_tokens
            splitter = TextSplitter.from_huggingface_tokenizer(self._tokenizer, capacity, overlap=overlap)
            self._splitters[room] = splitter
        for window_start, window_end in _windows(text, start, end, _WINDOW_CHARS):
            for at, piece in splitter.chunk_indices(text[window_start:window_end]):
                first = window_start + at
                yield from _windows(text, first, first + len(piece), self._max_tokens * _CHARS_PER_TOKEN)

    def _fitted(self, text: str, spans: Iterator[tuple[int, int]], prefix: str) -> Iterator[tuple[int, int, int]]:
        """The spans with their exact token counts; one that is too long after all is halved until it fits.

        Tokens need not add up across a join: some tokenizers read a passage differently after its headings.
        """
        for batch in _batches(spans):
            encodings = self._tokenizer.encode_batch([prefix + text[start:end] for start, end in batch])
            for (start, end), encoding in zip(batch, encodings, strict=True):
                tokens = len(encoding.ids)
                if tokens <= self._max_tokens:
                    yield start, end, tokens
                else:
                    assert end - start > 1, "one character and its headings fit into max_tokens"
                    halves = _windows(text, start, end, -(-(end - start) // 2))
                    yield from self._fitted(text, halves, prefix)


class _PageNumbers:
    """Looks up the page of a character."""

    def __init__(self, pages: Sequence[Page]) -> None:
        # An empty page starts where the next one does and has no character: the last that starts there has it.
        self._starts = [page.start_char for page in pages]
        self._numbers = [page.number for page in pages]

    def at(self, char: int) -> int | None:
        """The page that character `char` stands on, `None` where there are no pages."""
        index = bisect_right(self._starts, char) - 1
        return self._numbers[index] if index >= 0 else None


def _windows(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut `[start, end)` into pieces of at most `size` characters, each trimmed; blank ones are left out.

    A cut falls after the last paragraph, line or word that ends in the second half of a piece,
    and anywhere where none does.
    """
    while start < end:
        stop = min(end, start + size)
        if stop < end:
            for boundary in ("\n\n", "\n", " "):
                found = text.rfind(boundary, start + size // 2, stop)
                if found > start:
                    stop = found + len(boundary)
                    break
        piece = text[start:stop]
        content = piece.strip()
        if content:
            first = start + len(piece) - len(piece.lstrip())
            yield first, first + len(content)
        start = stop


def _without_contained(spans: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The spans that do not lie inside another: starts and ends rise, and nothing is covered less."""
    kept: list[tuple[int, int, int]] = []
    for span in spans:
        while kept and span[0] <= kept[-1][0] and kept[-1][1] <= span[1]:
            kept.pop()
        if not kept or span[1] > kept[-1][1]:
            kept.append(span)
    return kept


def _batches(spans: Iterator[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    batch: list[tuple[int, int]] = []
    for span in spans:
        batch.append(span)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
