"""Deliveries to receivers outside that several processes may make: one process at a time takes each.

A delivery is a row of a table with the columns `delivery`, `attempts` and `claimed_by`. A process takes it before it
sends anything, in a transaction of its own, and notes afterwards what came of it. What it took stays its own while it
lives (`app.db.presence`): no clock ends that. Once it is gone the delivery is free, since nobody knows whether it sent.
"""

from typing import Any

import sqlalchemy as sa

from app.db.presence import may_claim, not_living
from app.db.session import Database


class Deliveries:
    """The deliveries of one table, taken for one process. Only one thread of a process may take them.

    A process that is alone on its database takes all without a statement.

    Example:
        >>> deliveries = Deliveries(database, budget_alert, claimant="boot_1")
        >>> if deliveries.take(budget_alert.c.budget_id == "b", attempts=0):
        ...     send()
        ...     deliveries.note(budget_alert.c.budget_id == "b", attempts=1, delivery="delivered")
    """

    def __init__(self, database: Database, table: sa.Table, *, claimant: str | None) -> None:
        """`claimant` is this process, of several that share the database; None if it is alone."""
        self._database = database
        self._table = table
        self._claimant = claimant

    def free(self) -> sa.ColumnElement[bool]:
        """The condition that no other living process has taken a delivery."""
        if self._claimant is None:
            return sa.true()
        holder = self._table.c.claimed_by
        # its own, too: it has one thread for them, which failed to note what came of it
        return sa.or_(holder.is_(None), holder == self._claimant, not_living(holder))

    def take(self, *which: sa.ColumnElement[bool], attempts: int) -> bool:
        """Take one delivery; False where another process has it, or tried since, or where this one was buried.

        Args:
            which: Says which, by its key.
            attempts: How often it had been tried when it was read.

        Raises:
            StoreUnavailable, StorageFull: Nobody has taken it.
        """
        if self._claimant is None:
            return True
        table = self._table
        as_read = table.c.delivery == "waiting", table.c.attempts == attempts
        # a process that was stopped while it took this row holds up nobody
        free = sa.select(table.c.attempts).where(*which, *as_read, self.free()).with_for_update(skip_locked=True)
        taking = sa.update(table).where(*which).values(claimed_by=self._claimant)
        with self._database.write() as connection:
            if not may_claim(self._claimant)(connection) or connection.execute(free).first() is None:
                return False
            connection.execute(taking)
        return True

    def note(self, *which: sa.ColumnElement[bool], **values: Any) -> bool:
        """Write what came of an attempt, and give the delivery back; False where another process has taken it since.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written.
        """
        holder = self._table.c.claimed_by
        mine = sa.true() if self._claimant is None else holder == self._claimant
        noting = sa.update(self._table).where(*which, mine).values(claimed_by=None, **values)
        with self._database.write() as connection:
            return connection.execute(noting).rowcount == 1
