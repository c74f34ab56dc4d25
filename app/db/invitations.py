"""Invitations: links that let one person in, once. The token is in the link; the database holds only its SHA-256.

An invitation for a new person creates a user when it is accepted. One for a user that exists is a sign-in link. Both
create a key and a session of it, in one transaction (docs/adr/0077).
"""

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.audit import Record
from app.db.idempotency import note_effect
from app.db.keys import insert_key, new_secret
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.sessions import Session, SessionRepository
from app.db.tables.access import invitation
from app.db.tables.documents import app_user, tenant
from app.db.users import User, insert_user
from app.db.values import digest_of, require_text
from app.errors import Conflict, InvitationNotValid, NotFound
from app.ids import new_id
from app.types import ApiKey, Principal, Role

MOST_OPEN = 1_000
"""Invitations of a tenant that may be open at once."""

_KEPT_S = 30 * 86_400  # for which an expired invitation is listed
_KEY_NAME = "browser"

_inviter, _invited = app_user.alias("inviter"), app_user.alias("invited")
_of_inviter = sa.and_(_inviter.c.tenant_id == invitation.c.tenant_id, _inviter.c.id == invitation.c.created_by)
_of_invited = sa.and_(_invited.c.tenant_id == invitation.c.tenant_id, _invited.c.id == invitation.c.for_user_id)
_joined = (
    sa.select(
        invitation,
        tenant.c.name.label("tenant_name"),
        tenant.c.disabled_at.label("tenant_disabled_at"),
        _inviter.c.name.label("inviter_name"),
        _inviter.c.disabled_at.label("inviter_disabled_at"),
        _invited.c.disabled_at.label("invited_disabled_at"),
    )
    .join_from(invitation, tenant, tenant.c.id == invitation.c.tenant_id)
    .join(_inviter, _of_inviter, isouter=True)  # an administrator who lives in one process has no row
    .join(_invited, _of_invited, isouter=True)
)


class Mail(StrEnum):
    """Whether an invitation was mailed: no mail was asked for or configured, a server took it, or none did."""

    OFF = "off"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation without its token. Times are Unix seconds.

    `for_user_id` is the user of a sign-in link, None where a new person is invited. `user_id` is the user who accepted
    it. `budget` are the terms of a budget for the new key, as they were requested.
    """

    id: str
    tenant_id: str
    tenant_name: str
    for_user_id: str | None
    name: str
    email: str
    role: Role
    collections: tuple[str, ...] | None
    budget: Mapping[str, Any] | None
    mail: Mail
    created_by: str
    created_by_key: str
    inviter_name: str
    created_at: float
    expires_at: float
    revoked_at: float | None
    accepted_at: float | None
    user_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation:
    """The values with which an invitation is created; the fields are those of `Invitation`."""

    for_user_id: str | None = None
    name: str
    email: str = ""
    role: Role
    collections: tuple[str, ...] | None = None
    budget: Mapping[str, Any] | None = None
    lifetime_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedInvitation:
    """An accepted invitation: the new key with its secret, and a session of it with its own."""

    invitation: Invitation
    key: ApiKey
    key_secret: str
    session: Session
    session_secret: str


Settle: TypeAlias = Callable[[sa.Connection, Invitation, ApiKey], None]
"""Completes an acceptance inside its transaction: the audit entry, and a budget of the new key."""


class InvitationRepository:
    """Invitations of all tenants.

    Example:
        >>> made, token = invitations.create(admin, NewInvitation(name="Ada", role=Role.MEMBER, lifetime_s=3600))
        >>> invitations.accept(token, settle=lambda connection, invited, key: None).key.user_name
        'Ada'
    """

    def __init__(
        self, database: Database, sessions: SessionRepository, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._clock = clock

    def now(self) -> float:
        """Unix seconds by the clock that decides whether an invitation has expired."""
        return self._clock()

    def create(
        self, principal: Principal, new: NewInvitation, *, record: Record | None = None
    ) -> tuple[Invitation, str]:
        """Create an invitation of the principal's tenant; returns it and its token, which cannot be shown again.

        `record` writes the audit entry in the same transaction. Deletes those that expired a month ago.

        Raises:
            InvalidRequest: A text that cannot be stored.
            NotFound: No such user of this tenant.
            Conflict: The user is disabled, or too many invitations are open.
        """
        for param, text in (("name", new.name), ("email", new.email)):
            require_text(text, param=param)
        token, now, made_id = secrets.token_urlsafe(32), self._clock(), new_id("inv")
        of_tenant = invitation.c.tenant_id == principal.tenant_id
        with self._database.write() as connection:
            connection.execute(sa.delete(invitation).where(of_tenant, invitation.c.expires_at <= now - _KEPT_S))
            count = sa.select(sa.func.count()).select_from(invitation).where(of_tenant, *_open(now))
            if connection.execute(count).scalar_one() >= MOST_OPEN:
                raise Conflict(f"{MOST_OPEN:,} invitations are open, the most of a tenant. Revoke some first.")
            if new.for_user_id is not None:
                _require_enabled(connection, new.for_user_id, principal.tenant_id)
            connection.execute(
                sa.insert(invitation).values(
                    id=made_id,
                    tenant_id=principal.tenant_id,
                    token_sha256=digest_of(token),
                    for_user_id=new.for_user_id,
                    name=new.name,
                    email=new.email,
                    role=new.role,
                    collections=None if new.collections is None else [*new.collections],
                    budget=None if new.budget is None else dict(new.budget),
                    created_by=principal.user_id,
                    created_by_key=principal.key_id,
                    created_at=now,
                    expires_at=now + new.lifetime_s,
                )
            )
            made = _find(connection, made_id, principal.tenant_id)
            if record is not None:
                record(connection, made_id, shown(made))
            note_effect(connection)
        return made, token

    def list(
        self, *, tenant_id: str, only_open: bool, limit: int, cursor: str | None = None
    ) -> tuple[tuple[Invitation, ...], str | None]:
        """At most `limit` invitations of the tenant, newest first, and the cursor of the next page.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        query = _joined.where(invitation.c.tenant_id == tenant_id)
        if only_open:
            query = query.where(*_open(self._clock()))
        place = sa.tuple_(invitation.c.created_at, invitation.c.id)
        if cursor is not None:
            query = query.where(place < sa.tuple_(*decode_cursor(cursor, float, str)))
        query = query.order_by(invitation.c.created_at.desc(), invitation.c.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(_to_invitation(row) for row in connection.execute(query))
        return cut(found, limit, lambda item: (item.created_at, item.id))

    def get(self, invitation_id: str, *, tenant_id: str) -> Invitation:
        """The invitation.

        Raises:
            NotFound: No such invitation of this tenant.
        """
        with self._database.read() as connection:
            return _find(connection, invitation_id, tenant_id)

    def set_mail(self, invitation_id: str, mail: Mail, *, tenant_id: str) -> Invitation:
        """Store whether the invitation was mailed.

        Raises:
            NotFound: No such invitation of this tenant.
        """
        with self._database.write() as connection:
            connection.execute(sa.update(invitation).where(*_is(invitation_id, tenant_id)).values(mail=mail))
            return _find(connection, invitation_id, tenant_id)

    def revoke(self, invitation_id: str, *, tenant_id: str, record: Record) -> Invitation:
        """Take an open invitation back; `record` writes the audit entry. Idempotent, also for an expired one.

        Raises:
            NotFound: No such invitation of this tenant.
            Conflict: It was accepted.
        """
        with self._database.write() as connection:
            connection.execute(sa.select(invitation.c.id).where(*_is(invitation_id, tenant_id)).with_for_update())
            before = _find(connection, invitation_id, tenant_id)
            if before.accepted_at is not None:
                raise Conflict("This invitation was accepted. Disable the person, or revoke their key.")
            if before.revoked_at is None:
                values = {"revoked_at": self._clock()}
                connection.execute(sa.update(invitation).where(*_is(invitation_id, tenant_id)).values(**values))
                record(connection, invitation_id, shown(before))
            return _find(connection, invitation_id, tenant_id)

    def find(self, token: str) -> Invitation:
        """The open invitation with this token.

        Raises:
            InvitationNotValid: It is unknown, used, revoked or expired, or its tenant or a user of it is disabled.
        """
        with self._database.read() as connection:
            return self._valid(connection, token)

    def accept(self, token: str, *, settle: Settle) -> AcceptedInvitation:
        """Use an invitation: creates its user (unless it is for one), a key and a session, all or nothing.

        Raises:
            InvitationNotValid: As `find`; also for the second of two simultaneous acceptances.
        """
        key_secret, now = new_secret(), self._clock()
        with self._database.write() as connection:
            # locked: the second of two simultaneous acceptances waits, and then sees that it was used
            mine = invitation.c.token_sha256 == digest_of(token)
            connection.execute(sa.select(invitation.c.id).where(mine).with_for_update())
            found = self._valid(connection, token)
            user_id = found.for_user_id
            if user_id is None:
                user_id = new_id("user")
                person = User(id=user_id, tenant_id=found.tenant_id, name=found.name, created_at=now, disabled_at=None)
                insert_user(connection, person)
            key = insert_key(
                connection,
                key_secret,
                tenant_id=found.tenant_id,
                user_id=user_id,
                name=_KEY_NAME,
                role=found.role,
                collections=found.collections,
                expires_at=None,
                now=now,
            )
            used = {"accepted_at": now, "user_id": user_id, "key_id": key.id}
            connection.execute(sa.update(invitation).where(mine).values(**used))
            principal = Principal(found.tenant_id, user_id, key.id, key.role, key.collections)
            session_secret = self._sessions.open_in(connection, principal, with_key=True)
            settle(connection, found, key)
        session = self._sessions.find(session_secret)
        if session is None:  # ended between the two transactions
            raise InvitationNotValid
        return AcceptedInvitation(
            invitation=found, key=key, key_secret=key_secret, session=session, session_secret=session_secret
        )

    def _valid(self, connection: sa.Connection, token: str) -> Invitation:
        """As `find`, in the caller's transaction. Runs one query in every case."""
        digest, now = digest_of(token), self._clock()
        row = connection.execute(_joined.where(invitation.c.token_sha256 == digest)).one_or_none()
        if row is None or not hmac.compare_digest(row.token_sha256, digest):
            raise InvitationNotValid
        ends = (row.accepted_at, row.revoked_at, row.tenant_disabled_at, row.inviter_disabled_at)
        if row.expires_at <= now or any(end is not None for end in (*ends, row.invited_disabled_at)):
            raise InvitationNotValid
        return _to_invitation(row)


def shown(item: Invitation) -> dict[str, Any]:
    """The fields of an invitation for the audit log."""
    return {
        "name": item.name,
        "role": item.role,
        "collections": None if item.collections is None else [*item.collections],
        "user_id": item.for_user_id,
        "expires_at": item.expires_at,
    }


def _open(now: float) -> tuple[sa.ColumnElement[bool], ...]:
    return invitation.c.accepted_at.is_(None), invitation.c.revoked_at.is_(None), invitation.c.expires_at > now


def _is(invitation_id: str, tenant_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return invitation.c.id == invitation_id, invitation.c.tenant_id == tenant_id


def _find(connection: sa.Connection, invitation_id: str, tenant_id: str) -> Invitation:
    row = connection.execute(_joined.where(*_is(invitation_id, tenant_id))).one_or_none()
    if row is None:
        raise NotFound("There is no such invitation.")
    return _to_invitation(row)


def _require_enabled(connection: sa.Connection, user_id: str, tenant_id: str) -> None:
    query = sa.select(app_user.c.disabled_at).where(app_user.c.id == user_id, app_user.c.tenant_id == tenant_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such user.")
    if row.disabled_at is not None:
        raise Conflict("This user is disabled; enable it first.")


def _to_invitation(row: sa.Row[Any]) -> Invitation:
    return Invitation(
        id=row.id,
        tenant_id=row.tenant_id,
        tenant_name=row.tenant_name,
        for_user_id=row.for_user_id,
        name=row.name,
        email=row.email,
        role=Role(row.role),
        collections=None if row.collections is None else tuple(row.collections),
        budget=row.budget,
        mail=Mail(row.mail),
        created_by=row.created_by,
        created_by_key=row.created_by_key,
        inviter_name=row.inviter_name or row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        accepted_at=row.accepted_at,
        user_id=row.user_id,
    )
