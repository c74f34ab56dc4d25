"""Chunks are visible to their own tenant, within the scope, while their version is live."""

import time

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.scopes import is_live
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version
from app.db.vectors import VectorRepository
from retrieval.types import Chunk, Scope
from tests.app.db.samples import Library, vectors_of


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def test_a_chunk_says_where_it_is_from(library: Library) -> None:
    created = library.index("one", "two words", filename="a.md", external_id="x")
    chunks = ChunkRepository(library.database)
    first, second = chunks.keys_in(Scope("t1")).tolist()

    assert chunks.chunks([second], scope=Scope("t1")) == {
        second: Chunk(
            key=second,
            id=f"{created.id}.1.1",
            document_id=created.id,
            version=1,
            collection_id=library.collection_id,
            filename="a.md",
            external_id="x",
            ordinal=1,
            text="two words",
            start_char=5,
            end_char=14,
            page_start=1,
            page_end=1,
            heading_path=("Part",),
            token_count=3,
            title="a",
        )
    }
    assert first < second
    assert chunks.headed_texts([second, 999]) == {second: ("Part", "two words")}


def test_scope_is_applied_to_every_question(library: Library) -> None:
    other = library.collections.create("t1", "other").id
    here = library.index("shared words here")
    there = library.index("shared words there", collection_id=other)
    stranger = Library(library.database, tenant_id="t2").index("shared words elsewhere")
    chunks = ChunkRepository(library.database)
    everything = chunks.visible_keys().tolist()

    def seen(scope: Scope) -> set[str]:
        by_scan = chunks.keys_in(scope).tolist()
        by_words = sorted(key for key, _ in chunks.search_text("shared", scope=scope, k=99))
        by_key = chunks.chunks(everything, scope=scope)
        assert by_scan == by_words == sorted(by_key)
        return {each.document_id for each in by_key.values()}

    assert seen(Scope("t1")) == {here.id, there.id}
    assert seen(Scope("t2")) == {stranger.id}
    assert seen(Scope("t3")) == set()
    assert seen(Scope("t1", collection_ids=(other,))) == {there.id}
    assert seen(Scope("t1", document_ids=(here.id, stranger.id))) == {here.id}
    assert seen(Scope("t1", collection_ids=(other,), document_ids=(here.id,))) == set()
    assert seen(Scope("t1", collection_ids=())) == set()
    assert seen(Scope("t1", document_ids=())) == set()
    assert len(everything) == 3


def test_a_document_that_waits_or_failed_shows_no_chunks(library: Library) -> None:
    library.upload("waiting")
    chunks = ChunkRepository(library.database)

    assert chunks.visible_keys().tolist() == []
    assert chunks.keys_in(Scope("t1")).dtype == np.int64


def test_a_chunk_of_a_version_that_is_not_live_is_nowhere(library: Library) -> None:
    library.index("live words", external_id="x")
    library.upload("next", external_id="x")
    with library.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO chunk (key, document_id, version, ordinal, start_char, end_char, page_start, page_end, "
            "token_count, heading_path, heading, text) SELECT 99 AS key, document_id, 2, ordinal, start_char, "
            "end_char, page_start, page_end, token_count, heading_path, heading, 'staged words' FROM chunk"
        )
        connection.exec_driver_sql("INSERT INTO chunk_vector SELECT 99, generation, vector FROM chunk_vector")
    chunks = ChunkRepository(library.database)

    assert chunks.chunks([99], scope=Scope("t1")) == {}
    assert chunks.search_text("staged", scope=Scope("t1"), k=9) == []
    assert [99 in keys for keys, _ in chunks.iter_vectors(generation=library.generation)] == [False]
    assert 99 not in chunks.visible_keys()


def test_unknown_keys_are_left_out(library: Library) -> None:
    library.index("words")
    chunks = ChunkRepository(library.database)

    assert chunks.chunks([999, -1], scope=Scope("t1")) == {}
    assert chunks.chunks([], scope=Scope("t1")) == {}
    keys, vectors = chunks.vectors([999], generation=library.generation)
    assert (keys.shape, vectors.shape) == ((0,), (0, 0))


def test_vectors_come_in_batches_that_make_the_whole(library: Library) -> None:
    library.index(*(f"passage {number}" for number in range(7)))
    gone = library.index("gone")
    library.documents.delete(gone.id, tenant_id="t1")
    chunks = ChunkRepository(library.database)

    batches = list(chunks.iter_vectors(generation=library.generation, batch=3))

    assert [len(keys) for keys, _ in batches] == [3, 3, 1]
    assert np.concatenate([keys for keys, _ in batches]).tolist() == chunks.visible_keys().tolist()
    vectors = np.concatenate([vectors for _, vectors in batches])
    assert np.array_equal(vectors, vectors_of(7))
    assert vectors.dtype == np.float32
    assert list(chunks.iter_vectors(generation=library.generation + 1)) == []


def test_keys_are_those_of_the_live_versions_chunks(library: Library) -> None:
    library.index("one", "two", external_id="x")
    library.index()
    library.index("three")
    library.upload("next", external_id="x")
    library.commit(library.claim(), ["four", "five", "six"])
    library.documents.delete(library.index("seven", "eight").id, tenant_id="t1")
    library.upload("waiting")
    every_live_chunk = sa.select(chunk.c.key).join(document, is_live()).order_by(chunk.c.key)

    with library.database.read() as connection:
        expected = list(connection.execute(every_live_chunk).scalars())

    chunks = ChunkRepository(library.database)
    assert len(expected) == 4
    assert chunks.visible_keys().tolist() == chunks.keys_in(Scope("t1")).tolist() == expected


def test_keys_of_fifty_thousand_chunks_are_there_in_a_moment(sqlite_database: Database) -> None:
    library = Library(sqlite_database)
    for number in range(500):
        library.upload(f"content {number}")
    with sqlite_database.write() as connection:
        connection.exec_driver_sql("UPDATE document SET live_version = 1")
        connection.exec_driver_sql("UPDATE document_version SET first_key = rowid * 100, chunk_count = 100")
    chunks = ChunkRepository(sqlite_database)

    def timed() -> float:
        began = time.perf_counter()
        assert len(chunks.keys_in(Scope("t1"))) == 50_000
        return time.perf_counter() - began

    assert min(timed() for _ in range(5)) < 0.05


def test_a_chunk_inside_a_table_has_its_header_everywhere(library: Library) -> None:
    library.index("prose", "Ann | 40")
    chunks = ChunkRepository(library.database)

    found = chunks.chunks(chunks.visible_keys().tolist(), scope=Scope("t1"))
    missing = VectorRepository(library.database).missing(library.generation + 1, after=-1, limit=9)

    assert {each.text: each.table_header for each in found.values()} == {"prose": "", "Ann | 40": "name | age"}
    assert {each.text: each.table_header for each in missing} == {"prose": "", "Ann | 40": "name | age"}


def test_a_chunk_has_its_documents_title_and_else_the_words_of_the_files_name(library: Library) -> None:
    named = library.index("one", filename="a.pdf")
    library.index("two", filename="annual_report-2022.pdf")
    with library.database.write() as connection:
        mine = document_version.c.document_id == named.id
        connection.execute(sa.update(document_version).where(mine).values(title="The Keeper of Lights"))
    chunks = ChunkRepository(library.database)

    found = chunks.chunks(chunks.visible_keys().tolist(), scope=Scope("t1"))

    assert {each.text: each.title for each in found.values()} == {
        "one": "The Keeper of Lights",
        "two": "annual report 2022",
    }
