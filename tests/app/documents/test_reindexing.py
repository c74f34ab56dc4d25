"""app.documents.reindexing: a collection is read again while it is searched, and old citations keep their text."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.collections import CollectionRepository
from app.db.reindexing import ReindexingRepository
from app.documents.intake import Intake
from app.documents.passwords import Passwords
from app.documents.reindexing import Reindexer
from app.errors import Conflict, NotFound
from app.types import JobStatus, Principal, Role
from ingestion.errors import Malformed
from tests.app.db.samples import Library
from tests.app.jobs.bench import Bench, eventually
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.originals import path_of

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]


class Reading:
    """A bench and what reads its collection again."""

    def __init__(self, bench: Bench) -> None:
        library, files = bench.library, bench.files
        collections = CollectionRepository(library.database)
        intake = Intake(
            documents=library.documents,
            collections=collections,
            files=files,
            passwords=Passwords(),
            wake=bench.worker.wake,
            indexes=bench.indexes,
        )
        self.bench = bench
        self.principal = Principal(library.tenant_id, "u1", "k1", Role.MEMBER)
        self.reindexer = Reindexer(
            reindexings=ReindexingRepository(library.database),
            collections=collections,
            jobs=bench.jobs,
            intake=intake,
            wake=bench.worker.wake,
        )


@pytest.fixture
def reading(database, tmp_path: Path) -> Iterator[Reading]:
    bench = Bench(Library(database), tmp_path)
    bench.worker.start()
    yield Reading(bench)
    bench.extractor.gate.set()
    bench.worker.stop()


def test_every_indexed_document_gets_a_version_of_the_same_bytes(reading: Reading) -> None:
    bench = reading.bench
    documents = [bench.until(bench.upload(f"Report {number} of the keeper."), "indexed") for number in range(3)]
    before = bench.vectors()

    begun = reading.reindexer.begin(documents[0].collection_id, principal=reading.principal)
    eventually(lambda: reading.reindexer.get(begun.id, principal=reading.principal).finished_at is not None)

    ended = reading.reindexer.get(begun.id, principal=reading.principal)
    assert (ended.status, dict(ended.jobs)) == (JobStatus.DONE, {JobStatus.DONE: 3})
    for document in documents:
        now = bench.library.get(document.id)
        assert (now.version, now.live_version, now.sha256, now.status) == (2, 2, document.sha256, "indexed")
        assert path_of(bench.files, document.id, 2) == path_of(bench.files, document.id, 1), "one original"
    assert len(bench.vectors()) == len(before)
    bench.assert_consistent()


def test_the_version_there_is_stays_searched_until_the_swap_and_when_the_new_one_fails(reading: Reading) -> None:
    bench = reading.bench
    document = bench.until(bench.upload("The keeper counted ships."), "indexed")
    seen = bench.chunks.visible_keys().tolist()
    bench.extractor.gate.clear()

    begun = reading.reindexer.begin(document.collection_id, principal=reading.principal)
    assert begun.status == JobStatus.RUNNING
    assert bench.chunks.visible_keys().tolist() == seen
    bench.extractor.error = Malformed("The file breaks off in the middle.")
    bench.extractor.gate.set()
    eventually(lambda: reading.reindexer.get(begun.id, principal=reading.principal).finished_at is not None)

    assert reading.reindexer.get(begun.id, principal=reading.principal).status == JobStatus.FAILED
    assert bench.chunks.visible_keys().tolist() == seen
    assert bench.library.get(document.id).live_version == 1


def test_what_is_left_of_it_is_cancelled_and_the_documents_are_as_before(reading: Reading) -> None:
    bench = reading.bench
    documents = [bench.until(bench.upload(f"Report {number}."), "indexed") for number in range(3)]
    bench.extractor.gate.clear()
    begun = reading.reindexer.begin(documents[0].collection_id, principal=reading.principal)

    cancelled = reading.reindexer.cancel(begun.id, principal=reading.principal)
    bench.extractor.gate.set()

    assert (cancelled.status, dict(cancelled.jobs)) == (JobStatus.CANCELLED, {JobStatus.CANCELLED: 3})
    for document in documents:
        now = bench.library.get(document.id)
        assert (now.version, now.live_version, now.status) == (1, 1, "indexed")
        assert bench.files.original_of(document.id, 2) is None
        assert path_of(bench.files, document.id, 1).exists(), "it is shared"
    with pytest.raises(Conflict):
        reading.reindexer.cancel(begun.id, principal=reading.principal)
    bench.assert_consistent()


def test_an_empty_collection_is_done_at_once(reading: Reading) -> None:
    library = reading.bench.library
    empty = CollectionRepository(library.database).create(library.tenant_id, "empty", metadata={})

    begun = reading.reindexer.begin(empty.id, principal=reading.principal)

    assert (begun.status, dict(begun.jobs)) == (JobStatus.DONE, {})


def test_it_is_there_for_its_own_tenant_and_collections_only(reading: Reading) -> None:
    document = reading.bench.until(reading.bench.upload("The keeper counted ships."), "indexed")
    begun = reading.reindexer.begin(document.collection_id, principal=reading.principal)
    tenant = reading.principal.tenant_id

    for stranger in (
        Principal("rival", "u1", "k1", Role.ADMIN),
        Principal(tenant, "u1", "k1", Role.MEMBER, collections=("col_other",)),
    ):
        with pytest.raises(NotFound):
            reading.reindexer.get(begun.id, principal=stranger)
        with pytest.raises(NotFound):
            reading.reindexer.cancel(begun.id, principal=stranger)
        with pytest.raises(NotFound):
            reading.reindexer.begin(document.collection_id, principal=stranger)


def test_an_original_that_is_gone_fails_its_own_job_alone(reading: Reading) -> None:
    bench = reading.bench
    lost, kept = (bench.until(bench.upload(text), "indexed") for text in ("Lost report.", "Kept report."))
    path_of(bench.files, lost.id, 1).unlink()

    begun = reading.reindexer.begin(kept.collection_id, principal=reading.principal)
    eventually(lambda: reading.reindexer.get(begun.id, principal=reading.principal).finished_at is not None)

    assert dict(reading.reindexer.get(begun.id, principal=reading.principal).jobs) == {
        JobStatus.DONE: 1,
        JobStatus.FAILED: 1,
    }
    assert bench.library.get(lost.id).error_code == "malformed"
