"""A job is run by one worker at a time and its result appears whole, or not at all."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.contents import ContentRepository
from app.db.jobs import MAX_CRASHES
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector
from app.errors import NotFound
from app.types import DocumentStatus, JobStatus
from ingestion.types import Stage
from retrieval.types import Scope
from tests.app.db.samples import EMBEDDER, Library, extraction_of, vectors_of


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def test_nothing_to_claim_is_none(library: Library) -> None:
    assert library.jobs.claim("boot-1") is None


def test_the_oldest_job_is_claimed_first_and_once(library: Library) -> None:
    first, second = library.upload("one"), library.upload("two")

    claimed = [library.jobs.claim("boot-1") for _ in range(3)]

    assert [each and each[0].document_id for each in claimed] == [first.id, second.id, None]
    assert claimed[0] is not None
    job, found = claimed[0]
    assert (job.status, job.attempts, found.status) == (JobStatus.RUNNING, 1, DocumentStatus.EXTRACTING)
    assert found.attempts == 1


def test_many_claimers_share_the_queue_without_overlap(library: Library) -> None:
    uploaded = [library.upload(f"content {number}").id for number in range(12)]
    start = threading.Barrier(6)

    def claim_all(_: int) -> list[str]:
        start.wait()
        mine = []
        while claimed := library.jobs.claim("boot-1"):
            mine.append(claimed[0].document_id)
        return mine

    with ThreadPoolExecutor(6) as pool:
        claimed = [each for mine in pool.map(claim_all, range(6)) for each in mine]

    assert sorted(claimed) == sorted(uploaded)


def test_progress_shows_on_the_document(library: Library) -> None:
    created, job = library.upload(), library.claim()

    assert library.jobs.progress(job, Stage.EMBEDDING, done=3, total=8)
    found = library.get(created.id)
    assert (found.status, found.done, found.total) == (DocumentStatus.EMBEDDING, 3, 8)


def test_a_commit_makes_text_chunks_and_vectors_visible_together(library: Library) -> None:
    created, job = library.upload(filename="a.md"), library.claim()
    extraction, passages = extraction_of(["Grüße 😀 one", "two"], title="Title")

    result = library.jobs.commit(
        job,
        extraction=extraction,
        passages=passages,
        vectors=vectors_of(2),
        generation=library.generation,
        embedding_tokens=17,
    )

    found = library.get(created.id)
    assert result.written
    assert (result.removed_keys.tolist(), result.originals) == ([], ())
    assert (found.status, found.live_version, found.media_type) == (DocumentStatus.INDEXED, 1, "text/plain")
    assert (found.pages, found.chunks, found.tokens, found.embedding_tokens) == (1, 2, 6, 17)
    assert (found.embedding_model, found.embedding_dim, found.embedding_generation) == (
        EMBEDDER.model,
        EMBEDDER.dim,
        library.generation,
    )
    assert library.jobs.get(job.id, tenant_id="t1").status == JobStatus.DONE
    chunks = ChunkRepository(library.database)
    keys, vectors = chunks.vectors(result.new_keys.tolist(), generation=library.generation)
    assert keys.tolist() == result.new_keys.tolist() == chunks.visible_keys().tolist()
    assert np.array_equal(vectors, vectors_of(2))
    content = ContentRepository(library.database)
    assert content.text(created.id, tenant_id="t1") == extraction.text
    assert content.title(created.id, tenant_id="t1") == "Title"
    assert content.structure(created.id, tenant_id="t1") == (extraction.pages, extraction.blocks)


def test_a_new_version_swaps_out_the_old_chunks_and_keeps_its_text(library: Library) -> None:
    created = library.index("old words", external_id="x")
    chunks = ChunkRepository(library.database)
    old_keys = chunks.visible_keys()
    library.upload("new", external_id="x")

    result = library.commit(library.claim(), ["new words", "more"])

    content = ContentRepository(library.database)
    assert result.removed_keys.tolist() == old_keys.tolist()
    assert chunks.visible_keys().tolist() == result.new_keys.tolist()
    assert not set(old_keys) & set(result.new_keys), "a key is never used twice"
    assert result.originals == ()
    assert content.text(created.id, tenant_id="t1") == "new words\n\nmore"
    assert content.text(created.id, tenant_id="t1", version=1) == "old words"


def test_replace_drops_the_older_versions_at_the_swap(library: Library) -> None:
    created = library.index("old words", original="obj_old")
    library.documents.add_version(
        created.id,
        tenant_id="t1",
        original="obj_new",
        filename="a",
        size=1,
        sha256="0" * 64,
        replace=True,
        user_id="u",
        key_id="k",
    )
    content = ContentRepository(library.database)
    assert content.text(created.id, tenant_id="t1", version=1) == "old words", "until then it is there"

    result = library.commit(library.claim(), ["new words"])

    assert result.originals == ("obj_old",)
    with pytest.raises(NotFound):
        content.text(created.id, tenant_id="t1", version=1)


def test_a_document_deleted_while_it_is_ingested_stays_deleted(library: Library) -> None:
    created, job = library.upload(), library.claim()
    library.documents.delete(created.id, tenant_id="t1")

    result = library.commit(job, ["words"])

    assert not result.written
    assert result.new_keys.tolist() == []
    assert not library.jobs.progress(job, Stage.EMBEDDING, done=1, total=1)
    assert not library.jobs.fail(job, code="x", detail="x")
    assert library.jobs.get(job.id, tenant_id="t1").status == JobStatus.CANCELLED
    with library.database.read() as connection:
        for table in (chunk, chunk_vector):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0


def test_deletions_and_commits_at_the_same_moment_leave_no_orphans(library: Library) -> None:
    for number in range(6):
        created, job = library.upload(f"content {number}"), library.claim()
        start = threading.Barrier(2)

        def delete(document_id: str = created.id, start: threading.Barrier = start) -> int:
            start.wait()
            return len(library.documents.delete(document_id, tenant_id="t1").keys)

        with ThreadPoolExecutor(1) as pool:
            deletion = pool.submit(delete)
            start.wait()
            result = library.commit(job, ["words", "more"])
        assert deletion.result() == len(result.new_keys), "what was written was removed"

    assert ChunkRepository(library.database).visible_keys().tolist() == []
    with library.database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(chunk)).scalar() == 0


def test_a_version_overtaken_while_it_is_ingested_is_cancelled(library: Library) -> None:
    library.upload("first", external_id="x")
    overtaken = library.claim()
    newest = library.upload("second", external_id="x")

    assert not library.jobs.progress(overtaken, Stage.CHUNKING, done=0, total=1)
    assert not library.commit(overtaken, ["first words"]).written
    assert library.get(newest.id).status == DocumentStatus.QUEUED
    library.commit(library.claim(), ["second words"])

    assert library.get(newest.id).live_version == 2


def test_a_commit_that_fails_writes_nothing(library: Library) -> None:
    first = library.index("old words", external_id="x")
    library.upload("new", external_id="x")
    job = library.claim()
    extraction, passages = extraction_of(["new words"])

    with pytest.raises(sa.exc.IntegrityError):
        library.jobs.commit(
            job,
            extraction=extraction,
            passages=[*passages, passages[0]],  # the same place twice
            vectors=vectors_of(2),
            generation=library.generation,
            embedding_tokens=4,
        )

    chunks = ChunkRepository(library.database)
    assert [each.text for each in chunks.chunks(chunks.visible_keys().tolist(), scope=Scope("t1")).values()] == [
        "old words"
    ]
    assert [key for key, _ in chunks.search_text("new old", scope=Scope("t1"), k=9)] == chunks.visible_keys().tolist()
    assert library.get(first.id).live_version == 1
    assert library.jobs.get(job.id, tenant_id="t1").status == JobStatus.RUNNING
    assert library.commit(job, ["new words"]).written


def test_a_failure_is_shown_and_the_version_before_stays(library: Library) -> None:
    created = library.index("old words", external_id="x")
    library.upload("new", external_id="x")
    job = library.claim()

    assert library.jobs.fail(job, code="encrypted", detail="The file needs a password.")

    found = library.get(created.id)
    assert (found.status, found.live_version, found.chunks) == (DocumentStatus.FAILED, 1, 1)
    assert (found.error_code, found.error_detail) == ("encrypted", "The file needs a password.")
    failed = library.jobs.get(job.id, tenant_id="t1")
    assert (failed.status, failed.error_code) == (JobStatus.FAILED, "encrypted")


def test_jobs_of_a_dead_process_are_queued_again_and_then_given_up(library: Library) -> None:
    created = library.upload()
    for attempt in range(1, MAX_CRASHES + 1):
        claimed = library.jobs.claim(f"boot-{attempt}")
        assert claimed is not None
        assert claimed[0].attempts == attempt
        assert library.jobs.requeue_orphans(f"boot-{attempt}") == 0, "a process is no orphan to itself"
        assert library.jobs.requeue_orphans(f"boot-{attempt + 1}") == 1

    assert library.jobs.claim("boot-9") is None
    found = library.get(created.id)
    assert (found.status, found.error_code) == (DocumentStatus.FAILED, "gave-up")


def test_a_job_of_another_tenant_is_not_found(library: Library) -> None:
    created = library.upload()

    with pytest.raises(NotFound):
        library.jobs.get(created.job_id, tenant_id="t2")
