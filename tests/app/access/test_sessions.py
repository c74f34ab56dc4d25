"""A session has its key's access and ends with its key."""

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tables.access import access_session
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.errors import Conflict
from app.types import OPENID, Principal, Role

ADMIN = Principal("default", "root", "key_0", Role.ADMIN)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Access:
    """Every repository of access over one database and clock."""

    def __init__(self, database: Database) -> None:
        self.clock = Clock()
        self.changes = 0
        self.keys = KeyRepository(database, on_change=self._changed, clock=self.clock)
        self.sessions = SessionRepository(database, hours=1, on_change=self._changed, clock=self.clock)
        self.tenants = TenantRepository(database, on_change=self._changed, clock=self.clock)
        self.users = UserRepository(database, on_change=self._changed, clock=self.clock)
        self.record = AuditLog(database).recording(ADMIN, "test")
        self.key, self.secret = self.keys.create(tenant_id="t1", user_id="ada", name="k", role=Role.MEMBER)

    def _changed(self) -> None:
        self.changes += 1

    def principal(self) -> Principal:
        found = self.keys.authenticate(self.secret)
        assert found is not None
        return found

    def sign_in(self) -> str:
        return self.sessions.open(self.principal(), with_key=True)[1]


@pytest.fixture
def access(database: Database) -> Access:
    return Access(database)


def test_a_session_is_its_keys_principal_and_its_secret_is_nowhere(access, database):
    cookie = access.sign_in()

    assert access.sessions.authenticate(cookie) == access.principal()
    with database.read() as connection:
        rows = connection.execute(sa.select(access_session)).all()
    assert cookie not in str(rows)


def revoke_the_key(access):
    access.keys.revoke(access.key.id, tenant_id="t1")


def let_the_key_expire(access):
    access.keys.update(access.key.id, tenant_id="t1", expires_at=access.clock.now + 10)
    access.clock.now += 10


def disable_the_user(access):
    access.users.update("ada", tenant_id="t1", disabled=True, record=access.record)


def remove_the_user(access):
    access.users.remove("ada", tenant_id="t1", record=access.record)


def disable_the_tenant(access):
    access.tenants.update("t1", disabled=True, record=access.record)


ENDINGS = [revoke_the_key, let_the_key_expire, disable_the_user, remove_the_user, disable_the_tenant]


@pytest.mark.parametrize("end", ENDINGS)
def test_e10_what_ends_a_key_ends_its_sessions_and_is_told(access, end):
    cookie, before = access.sign_in(), access.changes

    end(access)

    assert access.sessions.authenticate(cookie) is None
    assert access.keys.authenticate(access.secret) is None
    assert access.changes > before


@pytest.mark.parametrize("whose", ["users", "tenants"])
def test_who_is_enabled_again_is_let_in_again(access, whose):
    if whose == "users":
        for disabled in (True, False):
            access.users.update("ada", tenant_id="t1", disabled=disabled, record=access.record)
    else:
        for disabled in (True, False):
            access.tenants.update("t1", disabled=disabled, record=access.record)

    assert access.keys.authenticate(access.secret) is not None


def test_a_removed_users_keys_stay_revoked(access):
    remove_the_user(access)
    access.users.update("ada", tenant_id="t1", disabled=False, record=access.record)

    assert access.keys.authenticate(access.secret) is None


def test_another_tenants_user_of_the_same_id_is_somebody_else(access):
    _, secret = access.keys.create(tenant_id="t2", user_id="ada", name="k", role=Role.MEMBER)

    remove_the_user(access)

    assert access.keys.authenticate(secret) is not None


def test_a_session_ends_in_time_and_is_removed_at_the_next_sign_in(access, database):
    cookie = access.sign_in()
    access.clock.now += 3600

    assert access.sessions.find(cookie) is None
    access.sign_in()
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(access_session)).scalar_one() == 1


def test_signing_out_ends_one_session(access):
    first, second = access.sign_in(), access.sign_in()

    access.sessions.end(first)

    assert access.sessions.authenticate(first) is None
    assert access.sessions.authenticate(second) is not None


def test_a_session_follows_its_keys_role(access):
    cookie = access.sign_in()

    access.keys.update(access.key.id, tenant_id="t1", role=Role.READER, collections=("col_1",))

    assert access.sessions.authenticate(cookie) == Principal("t1", "ada", access.key.id, Role.READER, ("col_1",))


def test_a_session_without_a_key_has_its_own_role(access):
    user = access.users.identified(issuer="https://id.example", subject="s", tenant_id="t1", name="Ada")
    again = access.users.identified(issuer="https://id.example", subject="s", tenant_id="t1", name="Other")
    other = access.users.identified(issuer="https://id.example", subject="s2", tenant_id="t1", name="Ada")
    _, cookie = access.sessions.open(Principal("t1", user.id, "", Role.READER), with_key=False)

    assert (again, other.id != user.id) == (user, True)
    assert access.sessions.authenticate(cookie) == Principal("t1", user.id, OPENID, Role.READER)
    access.users.update(user.id, tenant_id="t1", disabled=True, record=access.record)
    assert access.sessions.authenticate(cookie) is None


def test_e10_both_secrets_of_a_rotated_key_work_until_the_overlap_is_over(access):
    cookie, old = access.sign_in(), access.secret
    rotated, new = access.keys.rotate(access.key.id, tenant_id="t1", overlap_s=60)

    found = [access.keys.authenticate(secret) for secret in (old, new)]
    assert found[0] == found[1] == Principal("t1", "ada", access.key.id, Role.MEMBER)
    assert (rotated.previous_prefix, rotated.previous_expires_at) == (access.key.prefix, 1060.0)
    access.clock.now += 60
    assert access.keys.authenticate(old) is None
    assert access.sessions.authenticate(cookie) is None  # it may have been opened by whoever found the old secret
    assert access.keys.authenticate(new) is not None


def test_a_second_rotation_ends_the_oldest_secret(access):
    oldest = access.secret
    _, middle = access.keys.rotate(access.key.id, tenant_id="t1", overlap_s=600)
    _, newest = access.keys.rotate(access.key.id, tenant_id="t1", overlap_s=600)

    assert [access.keys.authenticate(secret) is not None for secret in (oldest, middle, newest)] == [False, True, True]


@pytest.mark.parametrize("end", [revoke_the_key, let_the_key_expire])
def test_a_key_that_has_ended_is_not_rotated(access, end):
    end(access)

    with pytest.raises(Conflict):
        access.keys.rotate(access.key.id, tenant_id="t1", overlap_s=0)


def test_an_overlap_is_no_longer_than_the_key(access):
    access.keys.update(access.key.id, tenant_id="t1", expires_at=1010.0)
    _, new = access.keys.rotate(access.key.id, tenant_id="t1", overlap_s=60)
    access.clock.now = 1010.0

    assert [access.keys.authenticate(secret) for secret in (access.secret, new)] == [None, None]


def test_the_first_tenant_cannot_be_disabled(access):
    access.keys.create(user_id="root", name="k", role=Role.ADMIN)

    with pytest.raises(Conflict):
        access.tenants.update("default", disabled=True, record=access.record)


def test_lists_go_on_where_they_stopped(access):
    for number in range(5):
        access.users.create(f"u{number}", tenant_id="t1", name="", record=access.record)
        access.tenants.create(f"n{number}", name="", record=access.record)
    users, tenants = list[str](), list[str]()
    for found, page in (
        (users, lambda at: access.users.list(tenant_id="t1", limit=2, cursor=at)),
        (tenants, lambda at: access.tenants.list(limit=2, cursor=at)),
    ):
        cursor = None
        while True:
            items, cursor = page(cursor)
            found += [item.id for item in items]
            if cursor is None:
                break

    assert users == ["ada", "u0", "u1", "u2", "u3", "u4"]
    assert tenants == ["n0", "n1", "n2", "n3", "n4", "t1"]
