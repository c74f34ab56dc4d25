"""The documents that were sent with one question: searched and read in memory, and gone with the answer.

Its database answers the repositories of stored documents (`app.db.passing_documents`); its vectors are compared one by
one.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from app.db.chunks import ChunkRepository
from app.db.passing_documents import PassingDocument, write_passing
from app.db.session import Database
from ingestion.normalise import normalise, origins
from ingestion.pipeline import ReadyVersion
from retrieval.ports import Vectors
from retrieval.types import Scope, Span


@dataclass(frozen=True, slots=True)
class SentDocument:
    """A document as it was sent with a question: a text, the texts of blocks, or the bytes of a PDF.

    `field` is its place in the request.
    """

    content: str | tuple[str, ...] | bytes
    title: str | None = None
    field: str = "messages"


@dataclass(frozen=True, slots=True)
class SentPlace:
    """Where a passage is in what was sent; `chars`, `pages` or `blocks` is given, by the kind of the document.

    Attributes:
        document: Its number among the documents of the request, from 0.
        title: As it was sent.
        text: What the place holds: exactly the characters of a text, the passage of a PDF, or all texts of the blocks.
        chars: Characters of the text.
        pages: Pages from 1, the second one past the last.
        blocks: Blocks from 0, the second one past the last.
    """

    document: int
    title: str | None
    text: str
    chars: Span | None = None
    pages: Span | None = None
    blocks: Span | None = None


class InlineLibrary:
    """The documents of one question. Used by one thread at a time.

    Example:
        >>> library = InlineLibrary(sent, ready, tenant_id="acme", dim=384)
        >>> library.chunks.search_text("notice period", scope=library.scope, k=8)
        >>> library.place("inline-0", Span(10, 42), pages=None)
    """

    def __init__(
        self, sent: Sequence[SentDocument], ready: Sequence[ReadyVersion], *, tenant_id: str, dim: int
    ) -> None:
        """`ready` are the documents as they were read, in the order of `sent`; vectors have `dim` numbers."""
        from retrieval.flat_index import FlatIndex

        self._sent = tuple(sent)
        self._texts = [each.extraction.text for each in ready]
        self._numbers = {f"inline-{number}": number for number in range(len(sent))}
        self._vectors = FlatIndex(dim)
        self._keys = write_passing(
            database := Database.in_memory(),
            [
                PassingDocument(document_id, called(each, number), version.extraction, version.passages)
                for (document_id, number), each, version in zip(self._numbers.items(), sent, ready, strict=True)
            ],
            tenant_id=tenant_id,
        )
        self.database = database
        self.chunks = ChunkRepository(database)
        self.scope = Scope(tenant_id=tenant_id, document_ids=tuple(self._numbers))
        self.passages = tuple(text for version in ready for block in version.blocks for text in block.texts)
        """The texts to embed, in order."""
        self.tokens = sum(version.tokens for version in ready)
        """The tokens that the embedder reads of them."""

    @property
    def embedded(self) -> bool:
        """Whether its vectors are there."""
        return len(self._vectors) > 0

    def add(self, vectors: Vectors) -> None:
        """Take the `(n, dim)` unit vectors of its passages."""
        self._vectors.add(self._keys, vectors)

    def search_vector(self, vector: Vectors, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """See `retrieval.ports.DenseIndex`; every vector in scope is compared."""
        return self._vectors.search(vector, k=k, allowed=self.chunks.keys_in(scope))

    def number(self, document_id: str) -> int:
        """The number of a document among those that were sent, from 0."""
        return self._numbers[document_id]

    def place(self, document_id: str, passage: Span, *, pages: tuple[int, int] | None) -> SentPlace:
        """Where a passage of a document is in what was sent.

        Args:
            document_id: The id that it has here.
            passage: Characters of its canonical text.
            pages: The first and the last of its pages, where it has any.
        """
        number = self._numbers[document_id]
        sent, text = self._sent[number], self._texts[number]
        match sent.content:
            case str(original):
                chars = place_in_text(original, text, passage)
                return SentPlace(number, sent.title, original[chars.start_char : chars.end_char], chars=chars)
            case bytes():
                first, last = pages or (1, 1)
                cited = text[passage.start_char : passage.end_char]
                return SentPlace(number, sent.title, cited, pages=Span(first, last + 1))
            case blocks:
                held = blocks_at(blocks, passage)
                return SentPlace(number, sent.title, "".join(blocks[held.start_char : held.end_char]), blocks=held)


def called(sent: SentDocument, number: int) -> str:
    """What a document is called: its title, else its number from 1."""
    return sent.title or f"Document {number + 1}"


def place_in_text(original: str, canonical: str, passage: Span) -> Span:
    """The characters of a text that a passage of its canonical text was made from."""
    if original == canonical:
        return passage
    at = origins(original, canonical)
    return Span(at[passage.start_char], _end(original, at[passage.end_char - 1]))


def _end(original: str, last: int) -> int:
    """One past the last character, which may be a line end of two."""
    return last + (2 if original.startswith("\r\n", last) else 1)


def blocks_at(blocks: Sequence[str], passage: Span) -> Span:
    """The numbers of the blocks that hold the passage: as `extraction_of` puts them together."""
    numbers, starts, at = [], [], 0
    for number, block in enumerate(blocks):
        text = normalise(block)
        if text.strip():
            numbers.append(number)
            starts.append(at)
            at += len(text) + len("\n\n")
    first = bisect_right(starts, passage.start_char) - 1
    last = bisect_right(starts, passage.end_char - 1) - 1
    return Span(numbers[first], numbers[last] + 1)
