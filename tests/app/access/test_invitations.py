"""An invitation lets one person in, once, in one transaction; on both databases."""

import threading

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.invitations import AcceptedInvitation, InvitationRepository, Mail, NewInvitation
from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tables.access import invitation
from app.db.tables.documents import api_key, app_user
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.errors import Conflict, InvalidRequest, InvitationNotValid, NotFound
from app.types import Principal, Role

ADMIN = Principal("t1", "root", "key_0", Role.ADMIN)
DAY = 86_400


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Access:
    """The repositories over one database and clock."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock()
        self.keys = KeyRepository(database, clock=self.clock)
        self.sessions = SessionRepository(database, hours=1, clock=self.clock)
        self.users = UserRepository(database, clock=self.clock)
        self.tenants = TenantRepository(database, clock=self.clock)
        self.invitations = InvitationRepository(database, self.sessions, clock=self.clock)
        self.record = AuditLog(database).recording(ADMIN, "test")
        self.keys.create(tenant_id="t1", user_id="root", name="k", role=Role.ADMIN)

    def invite(self, name: str = "Ada", **fields: object) -> tuple[str, str]:
        """Id and token of an invitation."""
        new = {"name": name, "role": Role.MEMBER, "lifetime_s": DAY} | fields
        made, token = self.invitations.create(ADMIN, NewInvitation(**new), record=self.record)  # type: ignore[arg-type]
        return made.id, token

    def accept(self, token: str) -> AcceptedInvitation:
        return self.invitations.accept(token, settle=lambda connection, found, key: None)

    def count(self, table: sa.Table) -> int:
        with self.database.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


@pytest.fixture
def access(database: Database) -> Access:
    return Access(database)


def test_an_accepted_invitation_is_a_person_a_key_and_a_session(access: Access) -> None:
    _, token = access.invite("Ada Lovelace", role=Role.READER, collections=("col_1",))

    accepted = access.accept(token)

    principal = access.keys.authenticate(accepted.key_secret)
    assert principal == access.sessions.authenticate(accepted.session_secret)
    assert principal is not None
    assert (principal.tenant_id, principal.role, principal.collections) == ("t1", Role.READER, ("col_1",))
    assert access.users.get(principal.user_id, tenant_id="t1").name == "Ada Lovelace"
    assert (accepted.key.user_name, accepted.session.user_name) == ("Ada Lovelace", "Ada Lovelace")


def test_the_token_is_nowhere_in_the_database(access: Access) -> None:
    _, token = access.invite()

    with access.database.read() as connection:
        assert token not in str(connection.execute(sa.select(invitation)).all())


def accept_it(access: Access, found: str, token: str) -> None:
    access.accept(token)


def revoke_it(access: Access, found: str, token: str) -> None:
    access.invitations.revoke(found, tenant_id="t1", record=access.record)


def let_it_expire(access: Access, found: str, token: str) -> None:
    access.clock.now += DAY


def disable_the_tenant(access: Access, found: str, token: str) -> None:
    access.tenants.update("t1", disabled=True, record=access.record)


def disable_the_inviter(access: Access, found: str, token: str) -> None:
    access.users.update("root", tenant_id="t1", disabled=True, record=access.record)


ENDINGS = [accept_it, revoke_it, let_it_expire, disable_the_tenant, disable_the_inviter]


@pytest.mark.parametrize("end", ENDINGS)
def test_whatever_ended_it_a_stranger_is_told_the_same(access: Access, end) -> None:
    found, token = access.invite()
    assert access.invitations.find(token).name == "Ada"
    end(access, found, token)
    people, keys = access.count(app_user), access.count(api_key)

    with pytest.raises(InvitationNotValid) as of_ended:
        access.accept(token)
    with pytest.raises(InvitationNotValid) as of_unknown:
        access.accept("no-such-token")
    with pytest.raises(InvitationNotValid):
        access.invitations.find(token)

    assert str(of_ended.value) == str(of_unknown.value)
    assert (access.count(app_user), access.count(api_key)) == (people, keys)


def test_of_simultaneous_acceptances_one_makes_one_person(access: Access) -> None:
    _, token = access.invite()
    people = access.count(app_user)
    gate, made, refused = threading.Barrier(4), [], []

    def accept() -> None:
        gate.wait()
        try:
            made.append(access.accept(token))
        except InvitationNotValid as error:
            refused.append(error)

    threads = [threading.Thread(target=accept) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(made), len(refused)) == (1, 3)
    assert access.count(app_user) == people + 1
    assert access.count(api_key) == 2


def test_an_acceptance_that_fails_half_way_leaves_the_invitation_open(access: Access) -> None:
    _, token = access.invite()
    people = access.count(app_user)

    def fail(connection: sa.Connection, found: object, key: object) -> None:
        raise Conflict("in the middle")

    with pytest.raises(Conflict):
        access.invitations.accept(token, settle=fail)

    assert access.count(app_user) == people
    assert access.accept(token).key.user_name == "Ada"


def test_a_sign_in_link_gives_a_user_another_key(access: Access) -> None:
    access.users.create("bob", tenant_id="t1", name="Bob", record=access.record)
    _, token = access.invite("Bob", for_user_id="bob")

    accepted = access.accept(token)

    assert accepted.key.user_id == "bob"
    assert access.count(app_user) == 2
    with pytest.raises(InvitationNotValid):
        access.accept(token)


def test_a_sign_in_link_ends_with_its_user(access: Access) -> None:
    access.users.create("bob", tenant_id="t1", name="Bob", record=access.record)
    _, token = access.invite("Bob", for_user_id="bob")
    access.users.update("bob", tenant_id="t1", disabled=True, record=access.record)

    with pytest.raises(InvitationNotValid):
        access.accept(token)
    with pytest.raises(Conflict):
        access.invite("Bob", for_user_id="bob")
    with pytest.raises(NotFound):
        access.invite("Eve", for_user_id="eve")


def test_revoking_twice_is_once_and_an_accepted_one_is_not_revoked(access: Access) -> None:
    found, _ = access.invite()
    used, used_token = access.invite()
    access.accept(used_token)

    first = access.invitations.revoke(found, tenant_id="t1", record=access.record)
    access.clock.now += 1
    assert access.invitations.revoke(found, tenant_id="t1", record=access.record) == first
    with pytest.raises(Conflict):
        access.invitations.revoke(used, tenant_id="t1", record=access.record)
    with pytest.raises(NotFound):
        access.invitations.revoke(found, tenant_id="t2", record=access.record)


def test_the_list_has_the_open_ones_newest_first_and_expired_ones_go_after_a_month(access: Access) -> None:
    ids = []
    for name in ("one", "two", "three"):
        ids.append(access.invite(name)[0])
        access.clock.now += 1
    access.invitations.revoke(ids[1], tenant_id="t1", record=access.record)

    first, following = access.invitations.list(tenant_id="t1", only_open=True, limit=1)
    rest, last = access.invitations.list(tenant_id="t1", only_open=True, limit=1, cursor=following)
    every, _ = access.invitations.list(tenant_id="t1", only_open=False, limit=9)

    assert ([one.id for one in (*first, *rest)], last) == ([ids[2], ids[0]], None)
    assert [one.id for one in every] == ids[::-1]
    assert access.invitations.list(tenant_id="t2", only_open=False, limit=9) == ((), None)
    access.clock.now += 32 * DAY
    kept, _ = access.invite("four")
    every, _ = access.invitations.list(tenant_id="t1", only_open=False, limit=9)
    assert [one.id for one in every] == [kept]


def test_whether_it_was_mailed_is_kept(access: Access) -> None:
    found, _ = access.invite(email="ada@example.org")

    assert access.invitations.get(found, tenant_id="t1").mail is Mail.OFF
    assert access.invitations.set_mail(found, Mail.FAILED, tenant_id="t1").mail is Mail.FAILED


def test_a_name_that_cannot_be_stored_is_refused(access: Access) -> None:
    with pytest.raises(InvalidRequest):
        access.invite("Ada\0")
