"""Documents that are sent with a question: read, searched and cited in memory."""

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db.contents import ContentRepository
from app.db.fts5 import SCHEMA
from app.db.session import Database
from app.documents.inline_library import InlineLibrary, SentDocument, blocks_at, place_in_text
from app.documents.inline_reader import InlineLimits, InlineReader
from app.errors import InvalidRequest, TooLarge
from ingestion.chunking import Chunker
from ingestion.extraction import LocalExtractor
from ingestion.normalise import normalise
from ingestion.pipeline import Pipeline
from ingestion.readers.text import extraction_of
from ingestion.types import ExtractionLimits
from retrieval.types import Scope, Span
from tests.databases import migrated_file, sqlite_database
from tests.ingestion.pdf_file import pdf_bytes
from tests.ingestion.small_tokenizer import word_piece
from tests.ingestion.texts import hostile_text
from tests.retrieval.fakes import HashingEmbedder

__all__ = ["migrated_file", "sqlite_database"]

EMBEDDER = HashingEmbedder(max_tokens=64)
CHUNKER = Chunker(word_piece(), max_tokens=64, overlap=8)


def reader(documents: int = 3, chars: int = 10_000, pages: int = 2) -> InlineReader:
    extractor = LocalExtractor(ExtractionLimits(pages=pages, text_chars=chars))
    pipeline = Pipeline(extractor, CHUNKER, EMBEDDER)
    return InlineReader(pipeline, limits=InlineLimits(documents, chars, pages), dim=EMBEDDER.info.dim)


def read(*contents: str | tuple[str, ...] | bytes) -> InlineLibrary:
    return reader().read([SentDocument(content) for content in contents], tenant_id="acme")


def text_of(library: InlineLibrary, document_id: str) -> str:
    return ContentRepository(library.database).text(document_id, tenant_id="acme")


@settings(deadline=None, max_examples=50)
@given(text=hostile_text.filter(lambda text: bool(normalise(text).strip())), data=st.data())
def test_offsets_lead_back_to_exactly_what_was_sent(text: str, data: st.DataObject) -> None:
    canonical = extraction_of([text], ExtractionLimits()).text
    start = data.draw(st.integers(0, len(canonical) - 1))
    end = data.draw(st.integers(start + 1, len(canonical)))

    chars = place_in_text(text, canonical, Span(start, end))

    plain = str.maketrans("", "", "\u200c\u200d" + "".join(map(chr, range(0xFE00, 0xFE10))))  # kept where they shape
    cited = normalise(text[chars.start_char : chars.end_char])
    assert cited.translate(plain) == canonical[start:end].translate(plain)


@settings(deadline=None, max_examples=50)
@given(
    blocks=st.lists(hostile_text, min_size=1, max_size=5)
    .filter(lambda texts: any(normalise(text).strip() for text in texts))
    .map(tuple),
    data=st.data(),
)
def test_cited_blocks_are_those_with_the_passage(blocks: tuple[str, ...], data: st.DataObject) -> None:
    canonical = extraction_of(blocks, ExtractionLimits()).text
    owners: list[int | None] = []
    for number, text in enumerate(map(normalise, blocks)):
        owners += [number] * len(text) + [None, None] if text.strip() or len(blocks) == 1 else []
    owned = [at for at, owner in enumerate(owners[: len(canonical)]) if owner is not None]
    start = data.draw(st.sampled_from(owned))
    end = data.draw(st.sampled_from([at for at in owned if at >= start])) + 1

    found = blocks_at(blocks, Span(start, end))

    assert (found.start_char, found.end_char - 1) == (owners[start], owners[end - 1])


def test_a_place_has_what_its_offsets_cut_out() -> None:
    text = "\u00adThe keeper\r\ncounted forty ships."
    library = read(text, ("Bread.", "", "Flour."))
    canonical = text_of(library, "inline-0")

    at = canonical.index("keeper")
    place = library.place("inline-0", Span(at, len(canonical)), pages=None)
    assert place.chars is not None
    assert place.text == text[place.chars.start_char : place.chars.end_char] == "keeper\r\ncounted forty ships."
    at = text_of(library, "inline-1").index("Flour")
    place = library.place("inline-1", Span(at, at + 1), pages=None)
    assert (place.document, place.blocks, place.text) == (1, Span(2, 3), "Flour.")


def test_its_passages_are_found_by_words_and_by_vectors_and_belong_to_its_tenant_alone() -> None:
    library = read("The keeper counted forty ships.", "Bread is baked from flour.")
    library.add(EMBEDDER.embed_documents(library.passages))
    vector = EMBEDDER.embed_query("bread from flour")

    assert library.embedded
    assert [key for key, _ in library.chunks.search_text("ships", scope=library.scope, k=5)] == [1]
    assert [key for key, _ in library.search_vector(vector, scope=library.scope, k=5)] == [2, 1]
    [chunk] = library.chunks.chunks([2], scope=library.scope).values()
    assert (chunk.document_id, chunk.filename, chunk.text) == ("inline-1", "Document 2", "Bread is baked from flour.")
    assert library.search_vector(vector, scope=Scope("another"), k=5) == []
    assert library.chunks.search_text("ships", scope=Scope("another"), k=5) == []


def test_two_libraries_know_nothing_of_each_other() -> None:
    ships, bread = read("The keeper counted forty ships."), read("Bread is baked from flour.")

    assert ships.chunks.search_text("bread", scope=ships.scope, k=5) == []
    assert bread.chunks.search_text("bread", scope=bread.scope, k=5) != []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([SentDocument("A.")] * 4, "FOOTNOTE_INLINE_DOCUMENTS"),
        ([SentDocument("A harbour. " * 600)] * 2, "FOOTNOTE_INLINE_CHARS"),
        ([SentDocument("A harbour. " * 1000)], "10,000 characters"),
        ([SentDocument(("A harbour. " * 500, "A harbour. " * 500))], "10,000 characters"),
        ([SentDocument("\u200b" * 20_001)], "FOOTNOTE_INLINE_CHARS"),
        ([SentDocument(pdf_bytes([["One."], ["Two."], ["Three."]]))], "Document 1: The document has more than 2 pages"),
    ],
)
def test_too_much_is_refused_by_its_limit(sent: list[SentDocument], said: str) -> None:
    with pytest.raises(TooLarge, match=said):
        reader().read(sent, tenant_id="acme")


def test_what_cannot_be_read_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequest, match="Document 2") as refused:
        reader().read([SentDocument("A."), SentDocument(" ", field="messages.0.content.1.source")], tenant_id="acme")

    assert refused.value.param == "messages.0.content.1.source"


def test_the_full_text_tables_are_those_of_the_migrations(sqlite_database: Database) -> None:
    made = sa.text("SELECT sql FROM sqlite_master WHERE name IN ('chunk_fts', 'chunk_trigram') ORDER BY name")
    with sqlite_database.read() as connection:
        assert tuple(connection.execute(made).scalars()) == SCHEMA
