"""app.admission.quota_rows stores administrators' limits, on SQLite and PostgreSQL."""

import pytest

from app.admission.quota_rows import QuotaRepository
from app.admission.quotas import UNLIMITED, Quota
from app.db.audit import AuditLog
from app.db.keys import KeyRepository
from app.db.session import Database
from app.errors import NotFound
from app.types import Principal, Role
from tests.app.usage.samples import Clock

ADMIN = Principal("t1", "u1", "k1", Role.ADMIN)


def test_what_was_set_last_holds_and_each_tenant_sees_its_own(database: Database) -> None:
    changes: list[int] = []
    quotas = QuotaRepository(database, AuditLog(database), on_change=lambda: changes.append(1), clock=Clock(5.0))
    keys = KeyRepository(database)
    mine, _ = keys.create(tenant_id="t1", user_id="u1", name="a", role=Role.READER)
    theirs, _ = keys.create(tenant_id="t2", user_id="u2", name="b", role=Role.READER)
    assert quotas.get("key", mine.id, tenant_id="t1") is None

    quotas.put(ADMIN, "key", mine.id, UNLIMITED, tenant_id="t1")
    made = quotas.put(ADMIN, "key", mine.id, Quota(requests_per_minute=7, tokens_per_minute=10**12), tenant_id="t1")
    quotas.put(ADMIN, "tenant", "t2", Quota(concurrent_requests=1), tenant_id="t2")
    assert quotas.get("key", mine.id, tenant_id="t1") == made
    assert quotas.list(tenant_id="t1") == (made,)
    assert {found.scope_id for found in quotas.all()} == {mine.id, "t2"}
    with pytest.raises(NotFound):
        quotas.put(ADMIN, "key", theirs.id, UNLIMITED, tenant_id="t1")
    with pytest.raises(NotFound):
        quotas.get("tenant", "t2", tenant_id="t1")

    quotas.delete(ADMIN, "key", mine.id, tenant_id="t1")
    quotas.delete(ADMIN, "key", mine.id, tenant_id="t1")
    assert quotas.list(tenant_id="t1") == ()
    assert len(changes) == 5
