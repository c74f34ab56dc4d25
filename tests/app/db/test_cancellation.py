"""app.db.cancellation: a job that is taken back leaves the document as it was before, or failed."""

import pytest

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.errors import Conflict, NotFound
from app.types import DocumentStatus, JobStatus
from tests.app.db.samples import Library, new_document


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def cancel(library: Library, job_id: str) -> tuple[str, ...]:
    """The originals that must go."""
    job, removed = library.jobs.cancel(job_id, tenant_id="t1")
    assert (job.status, job.error_code) == (JobStatus.CANCELLED, "cancelled")
    return removed


def test_a_document_that_was_never_indexed_fails_as_cancelled_and_can_be_retried(library: Library) -> None:
    created = library.upload()

    assert cancel(library, created.job_id) == ()

    found = library.get(created.id)
    assert (found.status, found.error_code, found.live_version) == (DocumentStatus.FAILED, "cancelled", None)
    assert library.jobs.claim("boot-1") is None
    retried = library.documents.retry(created.id, tenant_id="t1", user_id="u", key_id="k")
    assert (retried.status, retried.error_code) == (DocumentStatus.QUEUED, None)


def test_a_new_version_that_is_cancelled_was_never_there(library: Library) -> None:
    before = library.index("old words", content="old", external_id="x", filename="old.txt")
    library.upload("new", external_id="x", filename="new.txt", original="obj_new")
    running = library.claim()

    removed = cancel(library, running.id)

    after = library.get(before.id)
    assert removed == ("obj_new",)
    assert (after.status, after.version, after.live_version) == (DocumentStatus.INDEXED, 1, 1)
    assert (after.filename, after.sha256, after.job_id, after.error_code) == (
        "old.txt",
        before.sha256,
        before.job_id,
        None,
    )
    assert not library.commit(running, ["new words"]).written
    assert len(ChunkRepository(library.database).visible_keys()) == 1
    again = library.upload("newer", external_id="x")
    assert (again.id, again.version) == (before.id, 2)


def test_content_identifies_the_document_again_once_its_new_version_is_cancelled(library: Library) -> None:
    before = library.index("old words", content="old")
    library.documents.add_version(
        before.id, tenant_id="t1", original="obj_2", filename="a", size=1, sha256="0" * 64, user_id="u", key_id="k"
    )
    cancel(library, library.claim().id)

    twin, created = library.documents.create(new_document(library.collection_id, "old"), user_id="u", key_id="k")

    assert (twin.id, created) == (before.id, False)


def test_only_a_job_that_waits_or_runs_is_cancelled_and_only_by_its_tenant(library: Library) -> None:
    done = library.index("words")
    waiting = library.upload("other")

    with pytest.raises(Conflict, match="this one is done"):
        cancel(library, done.job_id)
    with pytest.raises(NotFound):
        library.jobs.cancel(waiting.job_id, tenant_id="t2")
    cancel(library, waiting.job_id)
    with pytest.raises(Conflict, match="this one is cancelled"):
        cancel(library, waiting.job_id)
    library.documents.delete(done.id, tenant_id="t1")
    with pytest.raises(NotFound):
        cancel(library, done.job_id)


def test_jobs_are_listed_newest_first_page_by_page(library: Library) -> None:
    uploaded = [library.upload(f"content {number}") for number in range(5)]
    library.claim()

    first, cursor = library.jobs.list(tenant_id="t1", limit=3)
    rest, end = library.jobs.list(tenant_id="t1", limit=3, cursor=cursor)

    listed = [job.document_id for job in (*first, *rest)]
    assert sorted(listed) == sorted(document.id for document in uploaded)
    assert [job.created_at for job in (*first, *rest)] == sorted(
        (job.created_at for job in (*first, *rest)), reverse=True
    )
    assert end is None
    assert [job.document_id for job in library.jobs.list(tenant_id="t1", status=JobStatus.RUNNING, limit=9)[0]] == [
        uploaded[0].id
    ]
    assert len(library.jobs.list(tenant_id="t1", document_id=uploaded[3].id, limit=9)[0]) == 1
    assert library.jobs.list(tenant_id="t2", limit=9) == ((), None)
    assert library.jobs.list(tenant_id="t1", collections=(), limit=9) == ((), None)
