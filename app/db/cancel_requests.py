"""Requests to cancel an answer that another process writes: a row, which that process looks for while answers run."""

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.presence import Gone, OwnProcess
from app.db.session import Database
from app.db.tables.ledger import answer_outcome, api_request, cancel_request

_NEW = insert_or_ignore(cancel_request)


class CancelRequestRepository:
    """The cancellations that processes on one database ask each other for.

    Example:
        >>> if (asker := cancels.asker("req_1", tenant_id="acme")) is not None:
        ...     cancels.ask("req_1")
        >>> cancels.take()  # in the process where it runs
        ('req_1',)
    """

    def __init__(self, database: Database, own: OwnProcess) -> None:
        self._database = database
        self._own = own

    def asker(self, request_id: str, *, tenant_id: str) -> tuple[str, str] | None:
        """The user and the key that asked what another living process still answers; None where none does.

        A request is known once it has called a model.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        ended = sa.exists().where(answer_outcome.c.request_id == api_request.c.request_id)
        running = sa.select(api_request).where(
            api_request.c.request_id == request_id,
            api_request.c.tenant_id == tenant_id,
            api_request.c.boot_id != self._own.boot_id,
            sa.not_(self._own.gone(api_request.c.boot_id)),
            sa.not_(ended),
        )
        with self._database.read() as connection:
            row = connection.execute(running).one_or_none()
        return None if row is None else (row.user_id, row.api_key_id)

    def ask(self, request_id: str) -> None:
        """Ask the process where a request runs to cancel it. Idempotent.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written.
        """
        where = sa.select(api_request.c.boot_id).where(api_request.c.request_id == request_id).scalar_subquery()
        with self._database.write() as connection:
            connection.execute(_NEW.on(connection).values(request_id=request_id, boot_id=where))

    def take(self) -> tuple[str, ...]:
        """The requests that this process is to cancel, each once.

        Raises:
            StoreUnavailable, StorageFull: They can be taken later.
        """
        mine = cancel_request.c.boot_id == self._own.boot_id
        with self._database.read() as connection:
            if connection.execute(sa.select(cancel_request.c.request_id).where(mine).limit(1)).first() is None:
                return ()
        with self._database.write() as connection:
            taken = sa.delete(cancel_request).where(mine).returning(cancel_request.c.request_id)
            return tuple(connection.execute(taken).scalars())


def forget_cancels_in(connection: sa.Connection, gone: Gone) -> None:
    """Delete what processes were asked that are gone, in the caller's transaction."""
    theirs = sa.select(cancel_request.c.request_id).where(gone(cancel_request.c.boot_id))
    locked = theirs.with_for_update(skip_locked=True)
    connection.execute(sa.delete(cancel_request).where(cancel_request.c.request_id.in_(locked)))
