"""Revision 0021: the tenant of earlier kept answers is unknown, so their bodies are forgotten."""

import pytest
import sqlalchemy as sa

from app.db.idempotency import IdempotencyRepository, KeptAnswer
from app.db.migration import downgrade, upgrade
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.documents import idempotent_request
from app.errors import AnswerNotKept

ANSWER = KeptAnswer(status=200, media_type="application/json", body=b'{"text":"secret"}')


def test_answers_from_before_are_forgotten_and_their_requests_do_not_run_again(migrated_database: Database) -> None:
    requests = IdempotencyRepository(migrated_database, OwnProcess.alone("boot-1"))
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)

    downgrade(migrated_database, "0020")
    upgrade(migrated_database)

    with migrated_database.read() as connection:
        assert connection.execute(sa.select(idempotent_request.c.body)).scalars().all() == [None]
    with pytest.raises(AnswerNotKept):
        requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.claim("r2", tenant_id="t1", fingerprint="a")
    requests.keep("r2", ANSWER)
    assert requests.claim("r2", tenant_id="t1", fingerprint="a") == ANSWER
