"""A claim is fenced: who lost a job changes nothing of it any more (docs/adr/0098). Two boots work on one database."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.db.checkpoints import Checkpoint
from app.db.document_rows import ClaimedJob
from app.db.jobs import MAX_CRASHES, JobRepository
from app.db.publishing import Version
from app.db.session import Database
from app.db.tables.documents import chunk, document, embedding_checkpoint, job
from app.jobs.claim_queue import ClaimQueue
from app.types import DocumentStatus, JobStatus
from ingestion.types import Stage
from tests.app.db.samples import Library, extraction_of, new_document, vectors_of


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def version_of(library: Library, claimed: ClaimedJob, text: str = "words") -> Version:
    """The result of a job, for which it takes its key where it still runs."""
    library.jobs.take_keys({claimed: 1})
    extraction, passages = extraction_of([text])
    return Version(
        job=claimed,
        extraction=extraction,
        passages=passages,
        vectors=vectors_of(1),
        generation=library.generation,
        embedding_tokens=2,
    )


def block(library: Library, first: int = 0) -> Checkpoint:
    return Checkpoint(
        first_ordinal=first,
        digest="d",
        generation=library.generation,
        event_id="e",
        tokens=2,
        vectors=vectors_of(1),
    )


def claimed_by(jobs: JobRepository, boot_id: str) -> ClaimedJob:
    claimed = jobs.claim(boot_id)
    assert claimed is not None
    return claimed[0]


def take_over(library: Library, boot_id: str = "boot-2") -> tuple[JobRepository, ClaimedJob]:
    """Another process starts, queues again what the others run, and claims it."""
    jobs = JobRepository(library.database)
    assert jobs.requeue_orphans(boot_id) == 1
    return jobs, claimed_by(jobs, boot_id)


def written(library: Library, table: sa.Table) -> int:
    with library.database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


ACTS: dict[str, Callable[[Library, ClaimedJob], bool]] = {
    "progress": lambda library, mine: library.jobs.progress(mine, Stage.EMBEDDING, done=7, total=9),
    "keep": lambda library, mine: library.jobs.keep(mine, block(library), total=9),
    "commit": lambda library, mine: library.jobs.commit_all([version_of(library, mine)])[0].written,
    "fail": lambda library, mine: library.jobs.fail(mine, code="malformed", detail="It is damaged."),
    "postpone": lambda library, mine: library.jobs.postpone(mine, seconds=60, code="c", detail="d"),
    "release": lambda library, mine: library.jobs.release(mine),
    "runs": lambda library, mine: library.jobs.runs(mine),
}


@pytest.mark.parametrize("act", ACTS)
def test_a14_who_lost_a_job_changes_nothing_of_it(library: Library, act: str) -> None:
    created, mine = library.upload(), library.claim()
    jobs, theirs = take_over(library)
    assert jobs.progress(theirs, Stage.CHUNKING, done=1, total=4)

    assert not ACTS[act](library, mine)

    found = library.get(created.id)
    assert (found.status, found.done, found.total) == (DocumentStatus.CHUNKING, 1, 4)
    assert jobs.get(mine.id, tenant_id="t1").status == JobStatus.RUNNING
    assert (written(library, chunk), written(library, embedding_checkpoint)) == (0, 0)
    assert library.jobs.is_lost(mine)
    assert not jobs.is_lost(theirs)
    assert jobs.commit_all([version_of(library, theirs, "theirs")])[0].written, "the owner's result is not thrown away"


@pytest.mark.parametrize("act", ACTS)
def test_a_claim_does_what_it_says_while_it_is_held(library: Library, act: str) -> None:
    library.upload()

    assert ACTS[act](library, library.claim())


@pytest.mark.parametrize("act", ACTS)
def test_a_process_that_claims_its_job_again_has_not_the_claim_before(library: Library, act: str) -> None:
    """As when an outcome is written a second time, since its answer was lost."""
    library.upload()
    before = library.claim()
    library.jobs.release(before)
    after = library.claim()

    assert not ACTS[act](library, before)
    assert (after.boot_id, after.attempts) == (before.boot_id, before.attempts), "release gave the attempt back"
    assert after.claim > before.claim
    assert library.jobs.commit_all([version_of(library, after)])[0].written


def test_a14_of_two_claims_of_a_job_in_one_transaction_the_later_is_written(library: Library) -> None:
    created = library.upload()
    before = library.claim()
    library.jobs.release(before)
    after = library.claim()

    results = library.jobs.commit_all([version_of(library, before, "before"), version_of(library, after, "after")])

    assert [result.written for result in results] == [False, True]
    assert library.get(created.id).chunks == written(library, chunk) == 1


def test_a_claim_only_rises(library: Library) -> None:
    library.upload()
    claims = [library.claim()]
    library.jobs.release(claims[-1])
    claims.append(library.claim())
    library.jobs.postpone(claims[-1], seconds=-1, code="c", detail="d")
    claims.append(library.claim())
    claims.append(take_over(library)[1])

    numbers = [each.claim for each in claims]
    assert numbers == sorted(set(numbers))


def test_a_claim_that_the_database_forgot_is_not_handed_out_again(library: Library) -> None:
    """A claim is not flushed: PostgreSQL may lose it in a crash that the claiming process survives."""
    library.upload()
    forgotten = library.claim()
    with library.database.write() as connection:
        as_before = {"status": JobStatus.QUEUED, "boot_id": None, "claim": forgotten.claim - 1}
        connection.execute(sa.update(job).values(**as_before))

    assert not library.jobs.progress(forgotten, Stage.CHUNKING, done=1, total=1)
    again = library.claim()

    assert not library.jobs.commit_all([version_of(library, forgotten)])[0].written
    assert library.jobs.commit_all([version_of(library, again)])[0].written


def test_a_job_cancelled_under_its_claim_is_not_lost(library: Library) -> None:
    library.upload()
    mine = library.claim()
    library.jobs.cancel(mine.id, tenant_id="t1")

    assert not library.jobs.is_lost(mine)


def test_what_is_written_with_an_outcome_knows_whether_the_job_is_lost_and_comes_before_it_changes(
    library: Library,
) -> None:
    library.upload()
    mine = library.claim()
    seen: list[str] = []

    def look(connection: sa.Connection) -> None:
        seen.append(connection.execute(sa.select(job.c.status)).scalar_one())

    library.jobs.fail(mine, code="c", detail="d", also=look)
    library.jobs.fail(mine, code="c", detail="d", also=look)

    assert seen == ["running", "failed"]


def test_evictions_of_a_long_job_that_goes_on_are_no_poison(library: Library) -> None:
    created = library.upload()
    for number in range(2 * MAX_CRASHES):
        mine = claimed_by(library.jobs, f"boot-{number}")
        assert library.jobs.keep(mine, block(library, first=number), total=99)
        assert library.jobs.requeue_orphans(f"boot-{number + 1}") == 1
        assert library.get(created.id).status == DocumentStatus.QUEUED

    for number in range(MAX_CRASHES):  # and from here on none is kept
        assert library.get(created.id).status == DocumentStatus.QUEUED, number
        claimed_by(library.jobs, f"stuck-{number}")
        library.jobs.requeue_orphans(f"stuck-{number + 1}")
    assert library.get(created.id).error_code == "gave-up"


def test_a_block_that_an_attempt_before_kept_counts_as_progress_once(library: Library) -> None:
    library.upload()
    mine = library.claim()
    library.jobs.keep(mine, block(library), total=9)
    library.jobs.release(mine)
    crashes = []
    for number in range(3):
        claimed_by(library.jobs, f"boot-{number}")
        library.jobs.requeue_orphans(f"boot-{number + 1}")
        with library.database.read() as connection:
            crashes.append(connection.execute(sa.select(job.c.crashes)).scalar_one())

    assert crashes == [0, 1, 2]


def test_a_job_that_waited_beside_the_one_that_was_read_is_not_blamed_and_is_claimed_alone_afterwards(
    library: Library,
) -> None:
    documents = [library.upload(f"content {number}") for number in range(3)]
    assert len(library.jobs.claim_several("boot-1", most=3, most_bytes=10**9)) == 3
    assert library.jobs.requeue_orphans("boot-2") == 3

    with library.database.read() as connection:
        rows = connection.execute(sa.select(job.c.document_id, job.c.crashes)).all()
    crashes = {row.document_id: row.crashes for row in rows}
    assert [crashes[each.id] for each in documents] == [1, 0, 0]
    beside = new_document(library.collection_id, "of another person, whose turn it is")
    library.documents.create(beside, user_id="u2", key_id="k2")
    for _ in range(4):
        assert len(library.jobs.claim_several("boot-2", most=3, most_bytes=10**9)) == 1
    assert library.jobs.queued() == 0


def test_a_document_that_kills_its_process_is_given_up_wherever_it_was_claimed(library: Library) -> None:
    library.upload("first")
    poison = library.upload("poison")
    boot = 0
    while library.get(poison.id).status != DocumentStatus.FAILED:
        claimed = library.jobs.claim_several(f"boot-{boot}", most=3, most_bytes=10**9)
        for mine, found in claimed:
            if found.id == poison.id:
                break  # the process dies
            assert library.jobs.commit_all([version_of(library, mine)])[0].written
        boot += 1
        library.jobs.requeue_orphans(f"boot-{boot}")
        assert boot <= MAX_CRASHES + 1

    assert library.get(poison.id).error_code == "gave-up"


def test_a_worker_holds_few_jobs_that_it_has_not_begun(library: Library) -> None:
    for number in range(20):
        library.upload(f"content {number}")
    queue = ClaimQueue(library.jobs, "boot-1", parsers=2)

    assert queue.take() is not None

    assert library.jobs.queued() == 20 - 1 - 2 * 2
    assert len(queue.close()) == 4


def test_a_job_whose_document_is_locked_is_passed_over_for_the_next_of_the_same_person(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(postgres_database)
    documents = [library.upload(f"content {number}") for number in range(4)]
    monkeypatch.setattr("app.db.jobs.time.sleep", lambda _: pytest.fail("it waited"))
    with postgres_database.write() as connection:
        ids = [each.id for each in documents[:3]]
        connection.execute(sa.select(document.c.id).where(document.c.id.in_(ids)).with_for_update())
        assert library.claim().document_id == documents[3].id


def test_when_all_that_wait_are_locked_the_claim_tries_again_within_milliseconds(postgres_database: Database) -> None:
    library = Library(postgres_database)
    created = library.upload()
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with postgres_database.write() as connection:
            connection.execute(sa.select(document.c.id).with_for_update())
            locked.set()
            release.wait(30)

    with ThreadPoolExecutor(2) as pool:
        holding = pool.submit(hold)
        assert locked.wait(30)
        claiming = pool.submit(library.jobs.claim, "boot-1")
        time.sleep(0.1)
        assert not claiming.done(), "it does not give up while a job waits"
        release.set()
        claimed = claiming.result()
        holding.result()

    assert claimed is not None
    assert claimed[1].id == created.id


def test_a_claim_gives_up_after_half_a_second_and_waits_for_no_job_that_is_not_due(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(postgres_database)
    library.upload()
    slept: list[float] = []
    monkeypatch.setattr("app.db.jobs.time.sleep", slept.append)
    with postgres_database.write() as connection:
        connection.execute(sa.select(document.c.id).with_for_update())
        assert library.jobs.claim("boot-1") is None
    assert all(0.01 <= seconds <= 0.05 for seconds in slept)
    assert 0 < sum(slept) <= 0.8

    library.jobs.postpone(library.claim(), seconds=60, code="c", detail="d")
    slept.clear()
    assert library.jobs.claim("boot-1") is None
    assert slept == []


def test_four_claimers_at_once_all_get_a_job_of_the_same_person(postgres_database: Database) -> None:
    library = Library(postgres_database)
    for number in range(40):
        library.upload(f"content {number}")
    start = threading.Barrier(4)

    def claim(number: int) -> list[str]:
        jobs = JobRepository(postgres_database)
        start.wait()
        return [each.id for each, _ in jobs.claim_several(f"boot-{number}", most=3, most_bytes=10**9)]

    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            shares = list(pool.map(claim, range(4)))
        assert all(shares)
        assert len({each for share in shares for each in share}) == sum(map(len, shares))
