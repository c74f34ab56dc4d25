"""Requests with an idempotency key: claimed before their work starts, and their responses, kept for a day."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.session import Database
from app.db.tables.documents import idempotent_request
from app.errors import AnswerNotKept, IdempotencyKeyReused, RequestRunning

KEPT_SECONDS = 24 * 3600.0
"""How long a response is kept; after that its key begins a new request."""

_SWEPT = 100  # expired rows removed with each claim, at most
_RACES = 5  # attempts after a lost race for the primary key, before it is an error


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A stored response, which is repeated byte for byte."""

    status: int
    media_type: str
    body: bytes


class IdempotencyRepository:
    """Claims and responses of requests. `request_id` identifies a caller's key on a route, `fingerprint` its payload.

    Example:
        >>> if (kept := requests.claim(request_id, fingerprint=digest)) is None:
        ...     requests.keep(request_id, KeptAnswer(201, "application/json", body))
    """

    def __init__(self, database: Database, *, boot_id: str, clock: Callable[[], float] = time.time) -> None:
        """`boot_id` is the id of this process: claims of an earlier process are free again."""
        self._database = database
        self._boot_id = boot_id
        self._clock = clock

    def claim(self, request_id: str, *, fingerprint: str) -> KeptAnswer | None:
        """The stored response, or None: the caller has claimed the request and must `keep` or `release` it.

        Raises:
            IdempotencyKeyReused: The key came with another payload before.
            RequestRunning: The request is being worked on.
            AnswerNotKept: It succeeded, but its response held a secret.
        """
        for _ in range(_RACES - 1):
            try:
                return self._claim(request_id, fingerprint)
            except exc.IntegrityError:
                continue  # PostgreSQL: another request claimed it first; the retry finds its row
        return self._claim(request_id, fingerprint)

    def _claim(self, request_id: str, fingerprint: str) -> KeptAnswer | None:
        table, now = idempotent_request, self._clock()
        mine = {"fingerprint": fingerprint, "boot_id": self._boot_id, "created_at": now}
        with self._database.write() as connection:
            self._sweep(connection, before=now - KEPT_SECONDS)
            query = sa.select(table).where(table.c.id == request_id).with_for_update()
            found = connection.execute(query).one_or_none()
            if found is None:
                connection.execute(sa.insert(table).values(id=request_id, **mine))
                return None
            abandoned = found.status is None and found.boot_id != self._boot_id
            if abandoned or found.created_at <= now - KEPT_SECONDS:
                fresh = {**mine, "status": None, "media_type": None, "body": None}
                connection.execute(sa.update(table).where(table.c.id == request_id).values(**fresh))
                return None
        if found.fingerprint != fingerprint:
            raise IdempotencyKeyReused("This Idempotency-Key came with another payload before; use a new one.")
        if found.status is None:
            raise RequestRunning("A request with this Idempotency-Key is still running.")
        if found.body is None:
            raise AnswerNotKept(
                "This request succeeded before; its answer held a secret, which is shown once and never kept."
            )
        return KeptAnswer(status=found.status, media_type=found.media_type, body=bytes(found.body))

    def keep(self, request_id: str, answer: KeptAnswer, *, secret: bool = False) -> None:
        """Store the response; with `secret` only the fact that there was one."""
        table = idempotent_request
        with self._database.write() as connection:
            connection.execute(
                sa.update(table)
                .where(table.c.id == request_id, table.c.boot_id == self._boot_id)
                .values(status=answer.status, media_type=answer.media_type, body=None if secret else answer.body)
            )

    def release(self, request_id: str) -> None:
        """Release a claim after a failure, so that the request can be sent again."""
        table = idempotent_request
        with self._database.write() as connection:
            connection.execute(
                sa.delete(table).where(
                    table.c.id == request_id, table.c.boot_id == self._boot_id, table.c.status.is_(None)
                )
            )

    @staticmethod
    def _sweep(connection: sa.Connection, *, before: float) -> None:
        table = idempotent_request
        # rows locked by other claims are left to later ones, so that claims cannot deadlock
        expired = (
            sa.select(table.c.id)
            .where(table.c.created_at <= before)
            .order_by(table.c.created_at)
            .limit(_SWEPT)
            .with_for_update(skip_locked=True)
        )
        ids = connection.execute(expired).scalars().all()
        if ids:
            connection.execute(sa.delete(table).where(table.c.id.in_(ids)))
