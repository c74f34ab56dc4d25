"""Requests with an idempotency key: claimed before their work starts, and their responses, kept for a day.

A crash between the effect of a request and its response must not let a retry repeat the effect. So a transaction that
would otherwise happen twice also notes in the claim that the request has had its effect (`note_effect`).
"""

from collections.abc import Set
from contextvars import ContextVar
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.documents import idempotent_request, tenant
from app.errors import AnswerNotKept, IdempotencyKeyReused, RequestRunning

KEPT_SECONDS = 24 * 3600.0
"""How long a response is kept; after that its key begins a new request."""

_DONE = 200  # status of a request that has had its effect and failed after it: its response is not kept
_SWEPT = 1000  # expired rows removed in one transaction, at most
_APPLIED = 102  # status of a request that has had its effect and has no response yet; HTTP's "Processing"
_RACES = 5  # attempts after a lost race for the primary key, before it is an error


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A stored response, which is repeated byte for byte."""

    status: int
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Claimed:
    """The request that this context works on; `running` has the ids of those that its process has not ended."""

    id: str
    boot_id: str
    running: Set[str]


_claimed: ContextVar[_Claimed | None] = ContextVar("footnote_claimed_request", default=None)


def note_effect(connection: sa.Connection) -> None:
    """Note, as the last step of a transaction, that the current request has its effect by it and must not run again.

    For effects that a second run would repeat: a row with a new id, a new secret, a turn. Without a claimed request in
    this context it does nothing. If the process ends before the response is stored, a retry gets `AnswerNotKept`.

    Raises:
        RequestRunning: Another process took the request over and works on it: roll this transaction back.
    """
    claimed, table = _claimed.get(), idempotent_request
    if claimed is None:
        return
    mine = table.c.id == claimed.id, table.c.boot_id == claimed.boot_id, table.c.status.is_(None)
    if connection.execute(sa.update(table).where(*mine).values(status=_APPLIED)).rowcount:
        return
    holder = connection.execute(sa.select(table.c.boot_id).where(table.c.id == claimed.id)).scalar()
    # no row: this process released it, or another that took it over did
    lost = claimed.id in claimed.running if holder is None else holder != claimed.boot_id
    if lost:
        raise RequestRunning("Another server process works on the request with this Idempotency-Key.")


class IdempotencyRepository:
    """Claims and responses of requests. `request_id` identifies a caller's key on a route, `fingerprint` its payload.

    Example:
        >>> if (kept := requests.claim(request_id, fingerprint=digest)) is None:
        ...     requests.keep(request_id, KeptAnswer(201, "application/json", body))
    """

    def __init__(self, database: Database, own: OwnProcess) -> None:
        """Claims of processes that are gone are free for `own`."""
        self._database = database
        self._own = own
        self._running: set[str] = set()  # claimed by this process: they do not expire, whatever the clock says

    def claim(self, request_id: str, *, tenant_id: str, fingerprint: str) -> KeptAnswer | None:
        """The stored response, or None: the caller has claimed the request and must `keep` or `release` it.

        Raises:
            IdempotencyKeyReused: The key came with another payload before.
            RequestRunning: The request is being worked on.
            AnswerNotKept: It succeeded, but its response held a secret, the tenant deleted something since, or the
                process ended before the response was stored.
        """
        for _ in range(_RACES - 1):
            try:
                return self._claim(request_id, tenant_id, fingerprint)
            except exc.IntegrityError:
                continue  # PostgreSQL: another request claimed it first; the retry finds its row
        return self._claim(request_id, tenant_id, fingerprint)

    def enter(self, request_id: str) -> None:
        """Let `note_effect` concern this claimed request, in the calling context and in copies of it."""
        _claimed.set(_Claimed(request_id, self._own.boot_id, self._running))

    def _claim(self, request_id: str, tenant_id: str, fingerprint: str) -> KeptAnswer | None:
        table, now = idempotent_request, self._own.clock()
        mine = {"tenant_id": tenant_id, "fingerprint": fingerprint, "boot_id": self._own.boot_id, "created_at": now}
        with self._database.write() as connection:
            # waits for a deletion that runs: what it deletes cannot be read under this claim
            connection.execute(sa.select(tenant.c.id).where(tenant.c.id == tenant_id).with_for_update(read=True))
            query = sa.select(table).where(table.c.id == request_id).with_for_update()
            found = connection.execute(query).one_or_none()
            if found is None:
                connection.execute(sa.insert(table).values(id=request_id, **mine))
                self._running.add(request_id)
                return None
            works = found.status in {None, _APPLIED} and self._works(connection, request_id, found.boot_id)
            expired = found.created_at <= now - KEPT_SECONDS and request_id not in self._running
            if (found.status is None and not works) or expired:
                fresh = {**mine, "status": None, "media_type": None, "body": None, "forgotten": False}
                connection.execute(sa.update(table).where(table.c.id == request_id).values(**fresh))
                self._running.add(request_id)
                return None
        if found.fingerprint != fingerprint:
            raise IdempotencyKeyReused("This Idempotency-Key came with another payload before; use a new one.")
        if works:
            raise RequestRunning("A request with this Idempotency-Key is still running.")
        if found.body is None:
            raise AnswerNotKept(
                "This request succeeded before and was not repeated. Its answer is not kept: it held a secret, "
                "something was deleted since, or the server stopped before it was stored. "
                "To run the request again, send it with a new Idempotency-Key."
            )
        return KeptAnswer(status=found.status, media_type=found.media_type, body=bytes(found.body))

    def _works(self, connection: sa.Connection, request_id: str, boot_id: str) -> bool:
        """Whether the process that claimed a locked request lives; asked once the lock is held, as of then."""
        if boot_id == self._own.boot_id:
            return True
        theirs = sa.select(sa.not_(self._own.gone(idempotent_request.c.boot_id)))
        return bool(connection.execute(theirs.where(idempotent_request.c.id == request_id)).scalar_one())

    def keep(self, request_id: str, answer: KeptAnswer, *, secret: bool = False) -> None:
        """Store the response; with `secret`, or when it is forgotten already, only the fact that there was one."""
        table = idempotent_request
        unless_forgotten = sa.case((table.c.forgotten, sa.null()), else_=sa.literal(answer.body, sa.LargeBinary))
        self._running.discard(request_id)
        with self._database.write() as connection:
            connection.execute(
                sa.update(table)
                .where(table.c.id == request_id, table.c.boot_id == self._own.boot_id)
                .values(status=answer.status, media_type=answer.media_type, body=None if secret else unless_forgotten)
            )

    def release(self, request_id: str) -> None:
        """Release a claim after a failure, so that the request can be sent again, unless it has had its effect."""
        table = idempotent_request
        mine = table.c.id == request_id, table.c.boot_id == self._own.boot_id
        self._running.discard(request_id)
        with self._database.write() as connection:
            connection.execute(sa.delete(table).where(*mine, table.c.status.is_(None)))
            connection.execute(sa.update(table).where(*mine, table.c.status == _APPLIED).values(status=_DONE))

    def sweep(self) -> int:
        """Delete all expired rows; returns their number. A claim of an expired key does not need this."""
        table, before, swept = idempotent_request, self._own.clock() - KEPT_SECONDS, 0
        # rows that a claim has locked are left to the next sweep
        idle = table.c.id.not_in(tuple(self._running))
        expired = sa.select(table.c.id).where(table.c.created_at <= before, idle).limit(_SWEPT)
        while True:
            with self._database.write() as connection:
                ids = connection.execute(expired.with_for_update(skip_locked=True)).scalars().all()
                if ids:
                    connection.execute(sa.delete(table).where(table.c.id.in_(ids)))
            swept += len(ids)
            if len(ids) < _SWEPT:
                return swept


def forget_answers(connection: sa.Connection, tenant_id: str) -> None:
    """Forget the kept answers of a tenant, and those that its running requests will have: the last step of a deletion.

    Any of them may hold the deleted text, because an answer does not name what was read for it. A forgotten request
    still does not run again: `claim` raises `AnswerNotKept` for a day.
    """
    table = idempotent_request
    # a claim that is not visible here yet begins its work after this transaction has ended
    lock = sa.select(tenant.c.id).where(tenant.c.id == tenant_id).with_for_update(key_share=True)
    connection.execute(lock)
    remembered = table.c.tenant_id == tenant_id, table.c.forgotten.is_(False)
    in_order = sa.select(table.c.id).where(*remembered).order_by(table.c.id).with_for_update()
    ids = connection.execute(in_order).scalars().all()
    if ids:
        connection.execute(sa.update(table).where(*remembered).values(body=None, forgotten=True))
