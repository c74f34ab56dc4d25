"""app.db.checkpoints: finished blocks of embeddings stay until their job ends, bit for bit."""

from collections.abc import Callable

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.checkpoints import Checkpoint
from app.db.session import Database
from app.db.tables.documents import embedding_checkpoint
from app.types import Job
from tests.app.db.samples import Library


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def block(first: int, *, generation: int = 1, digest: str = "d", tokens: int = 5) -> Checkpoint:
    rows = np.random.default_rng(first).standard_normal((3, 4)).astype(np.float32)
    return Checkpoint(
        first_ordinal=first, digest=digest, generation=generation, event_id="e1", tokens=tokens, vectors=rows
    )


def kept(library: Library) -> int:
    with library.database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(embedding_checkpoint)).scalar_one())


def test_blocks_come_back_as_they_were_and_only_to_their_generation(library: Library) -> None:
    created = library.upload()
    job = library.claim()
    for each in (block(0), block(3), block(6, generation=2)):
        assert library.jobs.keep(job, each, total=9)

    found = library.jobs.checkpoints(job.id, generation=1)

    assert sorted(found) == [0, 3]
    assert found[3].vectors.dtype == np.float32
    assert found[3].vectors.tobytes() == block(3).vectors.tobytes()
    assert (found[3].digest, found[3].tokens, found[3].event_id) == ("d", 5, "e1")
    assert (library.get(created.id).done, library.get(created.id).total) == (9, 9)


def test_a_block_kept_again_takes_the_place_of_the_first(library: Library) -> None:
    library.upload()
    job = library.claim()
    library.jobs.keep(job, block(0, digest="old"), total=3)
    library.jobs.keep(job, block(0, digest="new"), total=3)

    assert [each.digest for each in library.jobs.checkpoints(job.id, generation=1).values()] == ["new"]


def test_blocks_outlive_a_release_a_delay_and_a_crash(library: Library) -> None:
    library.upload()
    job = library.claim()
    library.jobs.keep(job, block(0), total=3)

    library.jobs.release(job)
    library.jobs.postpone(library.claim(), seconds=-1, code="c", detail="d")
    library.claim()
    library.jobs.requeue_orphans("boot-2")

    assert list(library.jobs.checkpoints(job.id, generation=1)) == [0]


@pytest.mark.parametrize(
    "end",
    [
        lambda library, job: library.commit(job, ["words"]),
        lambda library, job: library.jobs.fail(job, code="c", detail="d"),
        lambda library, job: library.jobs.cancel(job.id, tenant_id="t1"),
        lambda library, job: library.documents.delete(job.document_id, tenant_id="t1"),
        lambda library, job: library.upload("new bytes", external_id="x"),
    ],
    ids=["commit", "fail", "cancel", "delete", "new version"],
)
def test_blocks_go_when_the_job_ends(library: Library, end: Callable[[Library, Job], object]) -> None:
    library.upload(external_id="x")
    job = library.claim()
    library.jobs.keep(job, block(0), total=3)
    assert kept(library) == 1

    end(library, job)

    assert kept(library) == 0
    assert not library.jobs.keep(job, block(0), total=3), "nothing is kept for a job that does not run"
    assert kept(library) == 0
