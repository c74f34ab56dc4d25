"""app.db.job_queue serves users in turns, however many jobs one of them has queued."""

import random
import shutil

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from app.db.job_queue import next_job
from app.db.jobs import JobRepository
from app.db.session import Database
from app.db.tables.documents import job
from tests.app.db.samples import Library, new_document
from tests.databases import migrated_file

__all__ = ["migrated_file"]


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def upload(library: Library, user: str) -> str:
    new = new_document(library.collection_id, f"{user} {random.random()}")
    return library.documents.create(new, user_id=user, key_id="k1")[0].job_id


def claim(library: Library) -> str | None:
    """Who is next."""
    claimed = library.jobs.claim("boot-1")
    return claimed[0].user_id if claimed else None


def test_people_take_turns_and_each_ones_jobs_are_in_order(library: Library) -> None:
    many = [upload(library, "ann") for _ in range(5)]
    upload(library, "bob")
    upload(library, "bob")

    claimed = [library.jobs.claim("boot-1") for _ in range(7)]

    assert [each and each[0].user_id for each in claimed] == ["ann", "bob", "ann", "bob", "ann", "ann", "ann"]
    assert [each[0].id for each in claimed if each and each[0].user_id == "ann"] == many


def test_several_claimed_together_are_as_so_many_claims(library: Library) -> None:
    for _ in range(4):
        upload(library, "ann")
    for _ in range(2):
        upload(library, "bob")

    together = library.jobs.claim_several("boot-1", most=4, most_bytes=1_000)
    by_size = library.jobs.claim_several("boot-1", most=4, most_bytes=1)

    assert [each.user_id for each, _ in together] == ["ann", "bob", "ann", "bob"]
    assert len(by_size) == 1, "nothing is claimed with a file that takes long"


def test_a_job_that_is_put_off_holds_up_nobody_and_waits_for_its_time(library: Library) -> None:
    clock = Clock()
    jobs = JobRepository(library.database, clock=clock)
    first, second = upload(library, "ann"), upload(library, "ann")
    clock.now = 2_000_000_000.0
    claimed = jobs.claim("boot-1")
    assert claimed is not None
    assert claimed[0].id == first
    assert jobs.postpone(claimed[0], seconds=60, code="store-unavailable", detail="It was locked.")

    waiting = jobs.get(first, tenant_id="t1")
    next_one = jobs.claim("boot-1")
    assert next_one is not None
    assert next_one[0].id == second
    assert jobs.claim("boot-1") is None
    assert (waiting.status, waiting.attempts, waiting.next_attempt_at) == ("queued", 1, clock.now + 60)
    assert (waiting.error_code, library.get(waiting.document_id).next_attempt_at) == (
        "store-unavailable",
        clock.now + 60,
    )

    clock.now += 60
    again = jobs.claim("boot-1")
    assert again is not None
    assert (again[0].id, again[0].attempts, again[0].error_code, again[0].next_attempt_at) == (first, 2, None, None)


@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_newcomers_first_job_waits_for_at_most_one_job_of_each_person(data, migrated_file, tmp_path_factory) -> None:
    path = shutil.copy(migrated_file, tmp_path_factory.mktemp("queue") / "footnote.db")
    database = Database.open(f"sqlite:///{path}")
    try:
        library = Library(database)
        people = st.sampled_from(["ann", "bob", "cyd", "dee"])
        waiting: list[str] = []
        for step in data.draw(st.lists(st.one_of(people, st.none()), max_size=30)):
            if step is None:
                claimed = claim(library)
                assert (claimed is None) == (not waiting)
                if claimed is not None:
                    waiting.remove(claimed)
            else:
                upload(library, step)
                waiting.append(step)
        upload(library, "newcomer")
        before = 0
        while claim(library) != "newcomer":
            before += 1
        assert before <= len(set(waiting))
    finally:
        database.close()


def test_the_cost_grows_with_the_people_who_wait_and_not_with_the_queue(sqlite_database: Database) -> None:
    query = next_job().params(now=1.0).compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    with sqlite_database.read() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}")]

    tables = ("job", "after", "found", "head", "served", "document")
    touched = [line for line in plan if line.split()[0] in {"SCAN", "SEARCH"} and line.split()[1] in tables]
    assert {line.split()[1] for line in touched} == set(tables)
    assert [line for line in touched if not line.startswith("SEARCH")] == [], plan
    jumps = [line.split("(", 1)[1] for line in touched if line.split()[1] == "after"]
    assert jumps == ["status=? AND tenant_id=? AND user_id>?)", "status=? AND tenant_id>?)"]


def test_the_index_orders_the_waiting_as_the_claim_wants_them(sqlite_database: Database) -> None:
    with sqlite_database.read() as connection:
        columns = [index["column_names"] for index in sa.inspect(connection).get_indexes(job.name)]

    assert ["status", "tenant_id", "user_id", "next_attempt_at", "id"] in columns
