"""app.db.jobs: chunk keys are taken before the commit, and what is remembered of keys stays true of every order."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.document_names import LEAST_CHUNKS, DocumentNames
from app.db.document_rows import ClaimedJob
from app.db.jobs import JobRepository
from app.db.publishing import Also, CommitResult, Version
from app.db.scopes import KeyMarks, ScopeKeys
from app.db.session import Database
from retrieval.types import Scope
from tests.app.db.samples import Library, extraction_of, vectors_of
from tests.databases import migrated_file, postgres_database, sqlite_database

__all__ = ["migrated_file", "postgres_database", "sqlite_database"]


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def claimed(library: Library, content: str, **upload: object) -> ClaimedJob:
    library.upload(content, **upload)  # type: ignore[arg-type]
    return library.claim()


def committed(library: Library, job: ClaimedJob, texts: list[str], *, also: Also | None = None) -> CommitResult:
    """Commit a job that has taken its keys."""
    extraction, passages = extraction_of(texts)
    version = Version(
        job=job,
        extraction=extraction,
        passages=passages,
        vectors=vectors_of(len(texts)),
        generation=library.generation,
        embedding_tokens=len(texts),
        also=also,
    )
    (result,) = library.jobs.commit_all([version])
    return result


def marks(library: Library) -> KeyMarks:
    with library.database.read() as connection:
        return KeyMarks.read(connection)


def test_keys_of_several_jobs_are_taken_together_and_each_has_a_run_of_its_own(library: Library) -> None:
    first, second, empty = (claimed(library, content) for content in ("one", "two", "three"))

    taken = library.jobs.take_keys({first: 3, empty: 0, second: 2})

    assert [taken[job].tolist() for job in (first, empty, second)] == [[1, 2, 3], [], [4, 5]]
    assert committed(library, second, ["a", "b"]).new_keys.tolist() == [4, 5]
    assert committed(library, empty, []).new_keys.tolist() == []
    assert committed(library, first, ["c", "d", "e"]).new_keys.tolist() == [1, 2, 3]
    assert ChunkRepository(library.database).visible_keys().tolist() == [1, 2, 3, 4, 5]


def test_no_two_workers_get_the_same_key(library: Library) -> None:
    jobs = [claimed(library, f"document {number}") for number in range(8)]
    repositories = JobRepository(library.database), JobRepository(library.database)
    start = threading.Barrier(8)

    def take(place: int) -> list[int]:
        start.wait(timeout=30)
        return [
            key for count in range(1, 9) for key in repositories[place % 2].take_keys({jobs[place]: count})[jobs[place]]
        ]

    with ThreadPoolExecutor(8) as pool:
        taken = [key for keys in pool.map(take, range(8)) for key in keys]

    assert sorted(taken) == list(range(1, 8 * 36 + 1))


def test_who_lost_its_job_gets_no_keys(library: Library) -> None:
    mine, other = claimed(library, "one"), claimed(library, "two")
    library.jobs.requeue_orphans("boot-2")
    theirs = library.jobs.claim("boot-2")
    assert theirs is not None

    assert library.jobs.take_keys({mine: 2, other: 2}) == {}
    assert library.jobs.take_keys({theirs[0]: 1})[theirs[0]].tolist() == [1]


def test_the_keys_of_a_commit_that_failed_are_no_chunks(library: Library) -> None:
    job = claimed(library, "one")
    lost = library.jobs.take_keys({job: 2})[job]

    def fail(connection: sa.Connection) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        committed(library, job, ["a", "b"], also=fail)
    kept = library.jobs.take_keys({job: 2})[job]
    result = committed(library, job, ["a", "b"])

    assert (lost.tolist(), kept.tolist()) == ([1, 2], [3, 4])
    assert result.new_keys.tolist() == ChunkRepository(library.database).visible_keys().tolist() == [3, 4]


def test_a_claim_does_not_get_the_keys_of_the_claim_before(library: Library) -> None:
    before = claimed(library, "one")
    library.jobs.take_keys({before: 2})
    library.jobs.release(before)
    after = library.claim()

    assert marks(library) == KeyMarks(given=3, taken=0, settled=3)
    with pytest.raises(AssertionError, match="taken before"):
        committed(library, after, ["a", "b"])


def test_commits_do_not_wait_for_each_other(postgres_database: Database) -> None:
    library = Library(postgres_database)
    slow, quick = claimed(library, "slow"), claimed(library, "quick")
    library.jobs.take_keys({slow: 1})
    written: list[CommitResult] = []

    def meanwhile() -> None:
        library.jobs.take_keys({quick: 1})
        written.append(committed(library, quick, ["quick"]))

    def wait(connection: sa.Connection) -> None:
        other = threading.Thread(target=meanwhile, daemon=True)
        other.start()
        other.join(timeout=60)

    assert committed(library, slow, ["slow"], also=wait).new_keys.tolist() == [1]
    assert [result.new_keys.tolist() for result in written] == [[2]], "it was committed inside of the other's time"


def test_a_scope_gets_the_lower_keys_that_are_committed_later(library: Library) -> None:
    chunks = ChunkRepository(library.database)
    early, late = claimed(library, "early"), claimed(library, "late")
    library.jobs.take_keys({early: 2})
    library.jobs.take_keys({late: 1})
    committed(library, late, ["late"])
    assert chunks.keys_in(Scope("t1")).tolist() == [3]
    assert chunks.keys_in(Scope("t1")) is chunks.keys_in(Scope("t1")), "nothing is read again meanwhile"

    committed(library, early, ["early", "bird"])

    assert chunks.keys_in(Scope("t1")).tolist() == [1, 2, 3]
    assert marks(library) == KeyMarks(given=4, taken=0, settled=4)


def test_a_name_is_known_that_is_committed_after_one_with_higher_keys(library: Library) -> None:
    names = DocumentNames(library.database)
    early = claimed(library, "early", filename="harbour-lease.txt")
    late = claimed(library, "late", filename="lamp-contract.txt")
    texts = [f"words {number}" for number in range(LEAST_CHUNKS)]
    library.jobs.take_keys({early: len(texts)})
    library.jobs.take_keys({late: len(texts)})
    committed(library, late, texts)
    assert names.named("What does the lamp contract say?", scope=Scope("t1"))
    assert not names.named("What does the harbour lease say?", scope=Scope("t1"))

    committed(library, early, texts)

    assert names.named("What does the harbour lease say?", scope=Scope("t1"))


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_of_takes_commits_and_failures_a_remembered_scope_is_what_sql_shows(
    library: Library, seed: int
) -> None:
    choose = random.Random(seed)
    remembered = ScopeKeys(library.database)
    waiting = [claimed(library, f"document {number}") for number in range(9)]
    took: list[ClaimedJob] = []

    def steps() -> Iterator[None]:
        while waiting or took:
            if waiting and (not took or choose.random() < 0.5):
                took.append(waiting.pop())
                library.jobs.take_keys({took[-1]: 2})
            else:
                job = took.pop(choose.randrange(len(took)))
                match choose.randrange(4):
                    case 0:
                        library.jobs.fail(job, code="malformed", detail="It is damaged.")
                    case 1:
                        library.jobs.take_keys({job: 2})  # again, as after a commit that failed
                        took.append(job)
                    case _:
                        committed(library, job, ["a", "b"])
            yield

    for _ in steps():
        if choose.random() < 0.7:  # some changes are seen together
            assert remembered.of(Scope("t1")) == ScopeKeys(library.database).of(Scope("t1"))
    assert remembered.of(Scope("t1")) == ScopeKeys(library.database).of(Scope("t1"))
