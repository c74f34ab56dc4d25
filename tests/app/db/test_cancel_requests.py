"""app.db.cancel_requests: only what another living process answers can be cancelled there, once."""

import sqlalchemy as sa

from app.db.cancel_requests import CancelRequestRepository, forget_cancels_in
from app.db.presence import OwnProcess, not_living
from app.db.session import Database
from app.db.tables.ledger import answer_outcome, cancel_request, process
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import reservation


def of(database: Database, boot_id: str) -> CancelRequestRepository:
    return CancelRequestRepository(database, OwnProcess(boot_id, not_living))


def living(database: Database, boot_id: str) -> None:
    row = {"boot_id": boot_id, "role": "all", "version": "1", "host": "h", "started_at": 0.0, "beat": 1}
    with database.write() as connection:
        connection.execute(sa.insert(process).values(**row))


def test_it_is_cancelled_once_where_it_runs_and_nowhere_else(database: Database) -> None:
    living(database, "boot_1")
    Ledger(database, "boot_1").reserve(reservation("req_1:1"))
    here, there = of(database, "boot_1"), of(database, "boot_2")

    assert there.asker("req_1", tenant_id="t1") == ("u1", "k1")
    assert there.asker("req_1", tenant_id="t2") is None
    assert here.asker("req_1", tenant_id="t1") is None, "it would be known to run here"
    there.ask("req_1")
    there.ask("req_1")

    assert there.take() == ()
    assert here.take() == ("req_1",)
    assert here.take() == ()


def test_what_has_ended_or_whose_process_died_cannot_be_cancelled(database: Database) -> None:
    living(database, "boot_1")
    Ledger(database, "boot_1").reserve(reservation("req_1:1"))
    Ledger(database, "boot_0").reserve(reservation("req_2:1"))
    ended = {"request_id": "req_1", "tenant_id": "t1", "endpoint": "ask", "result": "cancelled", "ended_at": 1}
    there = of(database, "boot_2")
    there.ask("req_1")
    there.ask("req_2")
    with database.write() as connection:
        connection.execute(sa.insert(answer_outcome).values(**ended))
        forget_cancels_in(connection, not_living)
        left = list(connection.execute(sa.select(cancel_request.c.request_id)).scalars())

    assert there.asker("req_1", tenant_id="t1") is None
    assert there.asker("req_2", tenant_id="t1") is None
    assert left == ["req_1"]
