"""F5: with a clock that was put back, or forward, nobody waits for much longer and nothing lives for much longer."""

import time

import pytest
import sqlalchemy as sa

from app.api.exports import closed_second
from app.clock import SteadyClock
from app.db.audit import AuditLog
from app.db.collections import CollectionRepository
from app.db.documents import DocumentRepository
from app.db.idempotency import KEPT_SECONDS, IdempotencyRepository, KeptAnswer
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tables.documents import job
from app.db.tables.ledger import usage_event
from app.errors import BudgetExceeded
from app.types import Principal, Role, Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.ledger import Ledger
from tests.app.db.samples import new_document
from tests.app.test_clock import Machine
from tests.app.usage.samples import reservation
from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

HOUR, DAY = 3600.0, 86_400.0
ADMIN = Principal("t1", "u1", "k1", Role.ADMIN)
ANSWER = KeptAnswer(200, "application/json", b"{}")


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("jump", [-HOUR, -DAY])
def test_f5_a_budget_of_a_minute_has_room_again_within_two_minutes(
    database: Database, machine: Machine, jump: float
) -> None:
    ledger = Ledger(database, "b", machine.clock, observers=[Budgets()])
    budgets = BudgetRepository(database, AuditLog(database), clock=ledger.seconds)
    made = budgets.create(
        ADMIN,
        scope_type="tenant",
        scope_id="t1",
        unit="tokens",
        limit=150,
        period="minute",
        tz="UTC",
        enforcement="hard",
    )
    ledger.reserve(reservation("req_1:1"))
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=100))
    machine.wall.now += jump

    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(reservation("req_2:1"))
    assert refused.value.wait_s is not None
    assert 0 < refused.value.wait_s <= 60, "whoever waits is not told to wait for the clock"
    assert budgets.get(made.id, tenant_id="t1").window.settled == 120, "the use shown is that of the ledger's minute"
    machine.pass_by(2 * refused.value.wait_s)
    ledger.reserve(reservation("req_2:1"))


@pytest.mark.parametrize("jump", [-HOUR, DAY])
def test_f5_a_job_that_waits_is_taken_within_twice_its_time(database: Database, machine: Machine, jump: float) -> None:
    jobs, documents = JobRepository(database, clock=machine.clock), DocumentRepository(database, clock=machine.clock)
    collection = CollectionRepository(database).create("t1", "logs").id
    documents.create(new_document(collection), user_id="u", key_id="k")
    claimed = jobs.claim("boot")
    assert claimed is not None
    jobs.postpone(claimed[0], seconds=2.0, code="c", detail="d")
    machine.wall.now += jump

    machine.pass_by(4.0)
    again = jobs.claim("boot")

    assert again is not None
    assert jobs.fail(again[0], code="c", detail="d")
    with database.read() as connection:
        (row,) = connection.execute(sa.select(job)).all()
    assert row.created_at <= row.started_at <= row.finished_at


def test_f5_a_job_is_taken_by_a_server_whose_clock_is_behind_that_of_the_one_before(
    database: Database, machine: Machine
) -> None:
    collection = CollectionRepository(database).create("t1", "logs").id
    before = DocumentRepository(database, clock=machine.clock)
    for number in range(2):
        before.create(new_document(collection, f"text {number}"), user_id="u", key_id="k")
    JobRepository(database, clock=machine.clock).claim("boot-1")
    machine.wall.now -= DAY

    jobs = JobRepository(database, clock=SteadyClock(machine=machine.wall, monotonic=machine.ticks))
    assert jobs.requeue_orphans("boot-2") == 1
    for _ in range(2):
        claimed = jobs.claim("boot-2")
        assert claimed is not None
        jobs.fail(claimed[0], code="c", detail="d")
    with database.read() as connection:
        for row in connection.execute(sa.select(job)):
            assert row.created_at <= row.started_at <= row.finished_at


@pytest.mark.parametrize("jump", [-HOUR, DAY])
def test_f5_a_key_and_a_session_live_for_no_longer_than_the_clock_was_put_back(
    database: Database, machine: Machine, jump: float
) -> None:
    keys = KeyRepository(database, clock=machine.clock)
    sessions = SessionRepository(database, hours=1, clock=machine.clock)
    key, secret = keys.create(tenant_id="t1", user_id="u1", name="n", role=Role.READER, expires_at=keys.now() + HOUR)
    _, cookie = sessions.open(Principal("t1", "u1", key.id, Role.READER), with_key=True)
    machine.wall.now += jump

    machine.pass_by(HOUR + max(0.0, -jump) - 1)
    alive = keys.authenticate(secret) is not None
    machine.pass_by(1)

    assert keys.authenticate(secret) is None
    assert sessions.authenticate(cookie) is None
    assert alive is (jump < 0), "after a clock that was put forward they end early, never late"


def test_f5_a_key_made_after_a_clock_was_put_back_works_for_its_time(database: Database, machine: Machine) -> None:
    machine.wall.now -= HOUR
    keys = KeyRepository(database, clock=machine.clock)
    _, secret = keys.create(tenant_id="t1", user_id="u1", name="n", role=Role.READER, expires_at=keys.now() + 60)

    assert keys.authenticate(secret) is not None
    machine.pass_by(120)
    assert keys.authenticate(secret) is None


def test_f5_an_answer_is_kept_for_no_longer_than_the_clock_was_put_back(database: Database, machine: Machine) -> None:
    requests = IdempotencyRepository(database, OwnProcess.alone("b", clock=machine.clock))
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)
    machine.wall.now -= HOUR

    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER
    machine.pass_by(KEPT_SECONDS + HOUR)
    assert requests.claim("r1", tenant_id="t1", fingerprint="a") is None


def test_f5_a_call_left_open_by_a_clock_that_was_ahead_is_settled_when_it_was_accepted(
    database: Database, machine: Machine
) -> None:
    Ledger(database, "boot-1", machine.clock).reserve(reservation("req_1:1"))
    machine.wall.now -= DAY

    again = Ledger(database, "boot-2", SteadyClock(machine=machine.wall, monotonic=machine.ticks))
    assert again.recover() == 1

    with database.read() as connection:
        (row,) = connection.execute(sa.select(usage_event)).all()
    assert row.settled_at == row.accepted_at


def test_f5_an_export_does_not_wait_for_a_clock_that_was_a_day_ahead_for_a_moment(sqlite_database: Database) -> None:
    """The ledger's clock decides which second runs; one reading that is a day ahead moves both."""
    readings = [time.time() + DAY]
    ledger = Ledger(sqlite_database, "b", SteadyClock(machine=lambda: readings.pop() if readings else time.time()))
    began = time.monotonic()

    end = closed_second(ledger, 0, None)

    assert time.monotonic() - began < 30
    assert end * 1_000_000 <= ledger.moment()
