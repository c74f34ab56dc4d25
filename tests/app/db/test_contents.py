"""Canonical text is served by code points, by version, to those who may see the document."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.contents import ContentRepository
from app.db.paging import encode_cursor
from app.db.session import Database
from app.errors import InvalidRequest, NotFound
from retrieval.types import Span
from tests.app.db.samples import Library

TEXT = "Grüße 😀, 人工知能 e\u0301!"


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, 30), end=st.one_of(st.none(), st.integers(0, 30)))
def test_a_slice_is_the_slice_of_the_whole(database: Database, start: int, end: int | None) -> None:
    library = Library(database)
    created = library.upload("always the same")
    if created.live_version is None:
        library.commit(library.claim(), [TEXT])

    text = ContentRepository(database).text(created.id, tenant_id="t1", start=start, end=end)

    assert text == TEXT[start:end]


def test_every_chunk_is_its_slice_of_the_text(database: Database) -> None:
    created = Library(database).index(TEXT, "two", TEXT)
    contents = ContentRepository(database)
    chunks, _ = contents.chunks(created.id, tenant_id="t1", limit=9)

    assert [chunk.ordinal for chunk in chunks] == [0, 1, 2]
    for chunk in chunks:
        assert chunk.text == contents.text(created.id, tenant_id="t1", start=chunk.start_char, end=chunk.end_char)


def test_chunks_come_in_pages(database: Database) -> None:
    created = Library(database).index(*"abcde")
    contents = ContentRepository(database)
    first, cursor = contents.chunks(created.id, tenant_id="t1", limit=3)
    second, end = contents.chunks(created.id, tenant_id="t1", limit=3, cursor=cursor)

    assert "".join(chunk.text for chunk in (*first, *second)) == "abcde"
    assert (cursor is None, end) == (False, None)
    assert contents.chunks(created.id, tenant_id="t1", limit=5)[1] is None, "a full last page is the last"
    for foreign in ("WzFlNDAwXQ", "WyIxIl0", "W3RydWVd", "WzEsMl0", encode_cursor(10**30)):
        with pytest.raises(InvalidRequest):
            contents.chunks(created.id, tenant_id="t1", limit=3, cursor=foreign)


def test_what_is_not_indexed_or_not_ones_own_is_not_found(database: Database) -> None:
    library = Library(database)
    waiting, indexed = library.upload("waiting"), None
    contents = ContentRepository(database)
    with pytest.raises(NotFound):
        contents.text(waiting.id, tenant_id="t1")
    assert contents.chunks(waiting.id, tenant_id="t1", limit=1) == ((), None)
    library.commit(library.claim(), ["words"])
    indexed = waiting.id

    assert contents.text(indexed, tenant_id="t1", version=1) == "words"
    for version in (0, 2, -1):
        with pytest.raises(NotFound):
            contents.text(indexed, tenant_id="t1", version=version)
    for who in ({"tenant_id": "t2"}, {"tenant_id": "t1", "collections": ("col_other",)}):
        for call in (contents.text, contents.title, contents.structure):
            with pytest.raises(NotFound):
                call(indexed, **who)
        with pytest.raises(NotFound):
            contents.chunks(indexed, limit=1, **who)


def test_chunks_over_spans_are_those_that_hold_a_character_of_them(database: Database) -> None:
    created = Library(database).index("aaaa", "bbbb", "cccc")
    contents = ContentRepository(database)

    def over(*spans: Span, tenant_id: str = "t1", version: int = 1) -> list[str]:
        found = contents.chunks_over(created.id, spans, tenant_id=tenant_id, version=version)
        return [chunk.text for chunk in found]

    assert over(Span(0, 4)) == ["aaaa"]
    assert over(Span(4, 6)) == [], "between two chunks"
    assert over(Span(3, 7)) == ["aaaa", "bbbb"]
    assert over(Span(12, 13), Span(0, 1)) == ["aaaa", "cccc"]
    assert over() == over(Span(0, 4), tenant_id="t2") == over(Span(0, 4), version=2) == []
