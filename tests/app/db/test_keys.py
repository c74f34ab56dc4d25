"""An API key's secret is valid until it is revoked or expires, and is stored nowhere."""

import pytest
import sqlalchemy as sa

from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.tables.documents import metadata
from app.errors import Conflict, InvalidRequest, NotFound
from app.types import Principal, Role


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(database: Database, clock: Clock) -> KeyRepository:
    return KeyRepository(database, clock=clock)


def test_a_secret_says_who_is_asking(keys: KeyRepository) -> None:
    key, secret = keys.create(tenant_id="t1", user_id="u1", name="laptop", role=Role.READER, collections=("col_1",))

    assert secret.startswith("fn_")
    assert len(secret) > 40
    assert secret.startswith(key.prefix)
    assert keys.authenticate(secret) == Principal("t1", "u1", key.id, Role.READER, ("col_1",))


def test_no_limit_is_not_an_empty_limit(keys: KeyRepository) -> None:
    _, free = keys.create(user_id="u1", name="a", role=Role.MEMBER)
    _, bound = keys.create(user_id="u1", name="b", role=Role.MEMBER, collections=())

    found = [keys.authenticate(secret) for secret in (free, bound)]

    assert [each and each.collections for each in found] == [None, ()]


@pytest.mark.parametrize("secret", ["", "fn_", "fn_unknown", "' OR 1=1 --", "\0", "\udcff", "x" * 100_000])
def test_an_unknown_secret_authenticates_nobody(keys: KeyRepository, secret: str) -> None:
    keys.create(user_id="u1", name="a", role=Role.ADMIN)

    assert keys.authenticate(secret) is None


def test_a_prefix_alone_opens_nothing(keys: KeyRepository) -> None:
    key, secret = keys.create(user_id="u1", name="a", role=Role.ADMIN)

    assert keys.authenticate(key.prefix) is None
    assert keys.authenticate(secret[:-1]) is None
    assert keys.authenticate(secret + "x") is None


def test_an_expired_key_opens_nothing_until_it_is_extended(keys: KeyRepository, clock: Clock) -> None:
    key, secret = keys.create(user_id="u1", name="a", role=Role.ADMIN, expires_at=2000.0)
    clock.now = 1999.9
    before = keys.authenticate(secret)
    clock.now = 2000.0

    assert before is not None
    assert keys.authenticate(secret) is None
    keys.update(key.id, tenant_id="default", expires_at=None)
    assert keys.authenticate(secret) is not None


def test_a_revoked_key_opens_nothing_and_stays_on_the_list(keys: KeyRepository, clock: Clock) -> None:
    key, secret = keys.create(user_id="u1", name="a", role=Role.ADMIN)

    revoked = keys.revoke(key.id, tenant_id="default")
    clock.now += 5

    assert keys.authenticate(secret) is None
    assert revoked.revoked_at == 1000.0
    assert keys.revoke(key.id, tenant_id="default") == revoked
    assert keys.list(tenant_id="default") == (revoked,)


def test_a_change_of_role_counts_at_once(keys: KeyRepository) -> None:
    key, secret = keys.create(user_id="u1", name="a", role=Role.ADMIN, collections=("c",))

    changed = keys.update(key.id, tenant_id="default", name="b", role=Role.READER, collections=None)

    assert (changed.name, changed.role, changed.collections) == ("b", Role.READER, None)
    found = keys.authenticate(secret)
    assert found is not None
    assert (found.role, found.collections) == (Role.READER, None)
    assert keys.update(key.id, tenant_id="default") == keys.get(key.id, tenant_id="default") == changed


def test_another_tenants_keys_do_not_exist(keys: KeyRepository) -> None:
    key, secret = keys.create(tenant_id="t1", user_id="u1", name="a", role=Role.ADMIN)

    for call in (keys.get, keys.update, keys.revoke):
        with pytest.raises(NotFound):
            call(key.id, tenant_id="t2")
    assert keys.list(tenant_id="t2") == ()
    assert keys.authenticate(secret) is not None


def test_a_known_secret_can_be_set_once_and_must_be_long(keys: KeyRepository) -> None:
    secret = "a-secret-the-operator-chose"
    key, shown = keys.create(user_id="u1", name="a", role=Role.ADMIN, secret=secret)

    assert shown == secret
    assert keys.authenticate(secret) is not None
    with pytest.raises(Conflict):
        keys.create(user_id="u2", name="b", role=Role.ADMIN, secret=secret)
    with pytest.raises(InvalidRequest):
        keys.create(user_id="u2", name="b", role=Role.ADMIN, secret="short")
    assert keys.list(tenant_id="default") == (key,)


def test_no_table_holds_the_secret(database: Database, keys: KeyRepository) -> None:
    _, secret = keys.create(user_id="u1", name="a", role=Role.ADMIN)

    with database.read() as connection:
        tables = [connection.execute(sa.select(table)).all() for table in metadata.tables.values()]
    everything = [str(tuple(row)) for rows in tables for row in rows]
    assert everything
    assert not [row for row in everything if secret in row or secret[9:] in row]


def test_every_created_secret_is_different(keys: KeyRepository) -> None:
    assert len({keys.create(user_id="u1", name="a", role=Role.READER)[1] for _ in range(20)}) == 20
