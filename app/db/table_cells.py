"""Cells of tables: claims, which are fenced, and what asking one came to (docs/adr/0098, 0125)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.answer_tables import OPEN, CellState, Column, Told
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.answer_tables import answer_table, answer_table_cell, answer_table_request, answer_table_row
from app.ids import new_id

MOST_ATTEMPTS = 4
"""Times that a cell is asked which gets no answer."""

_CELL, _TABLE = answer_table_cell.c, answer_table.c
_DIED = "The server ended each time while this was asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedCell:
    """A cell that a process asks, under a number that rises with each claim.

    `attempts` are those that were begun and had no answer, this one included; `request_id` names it on the ledger.
    """

    table_id: str
    tenant_id: str
    user_id: str
    key_id: str
    column: Column
    length: Told
    document_id: str
    row: int
    column_no: int
    request_id: str
    attempts: int
    boot_id: str
    claim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFinding:
    """What asking a cell came to.

    Attributes:
        state: Of the cell from now on; `waiting` asks it again.
        answer: In JSON types, of a cell that is answered, unsure or refused.
        error: Why it failed, in one sentence.
        again_s: Seconds until it is asked again, of one that waits.
        counted: Whether this attempt counts as one without an answer.
        stops: Why the whole table is stopped; None where it is not.
        pauses: Why the whole table waits, for `again_s`; None where it does not.
    """

    state: CellState
    answer: Mapping[str, Any] | None = None
    error: str | None = None
    again_s: float = 0.0
    counted: bool = True
    stops: str | None = None
    pauses: str | None = None


class TableCells:
    """Hands out cells to one process each, table by table in turn, and stores what asking them came to.

    Example:
        >>> claimed = cells.claim()
        >>> cells.finish(claimed, CellFinding(state="answered", answer={"id": claimed.request_id, …}))
        True
    """

    def __init__(
        self,
        database: Database,
        own: OwnProcess,
        *,
        may_claim: Callable[[sa.Connection], bool] = lambda _: True,
    ) -> None:
        """`may_claim` says whether this process still lives, inside the transaction that claims."""
        self._database = database
        self._own = own
        self._may_claim = may_claim
        self._last = ""

    def claim(self) -> ClaimedCell | None:
        """Claim the next cell of the table whose turn it is; None where none is due.

        One that a gone process has claimed is free again, and so is one that this process claimed before: it asks one
        at a time, so that one has ended without a finding.

        Raises:
            StoreUnavailable, StorageFull: None was claimed.
        """
        running = sa.select(_TABLE.id).where(_TABLE.state == "running", _TABLE.due_at <= self._own.clock())
        with self._database.read() as connection:  # most looks find none, and writers wait for each other
            ids = connection.execute(running.order_by(_TABLE.id)).scalars().all()
        for table_id in (*(one for one in ids if one > self._last), *(one for one in ids if one <= self._last)):
            claimed = self._claim_of(table_id)
            if claimed is not None:
                self._last = table_id
                return claimed
        return None

    def holds(self, claimed: ClaimedCell) -> bool:
        """Whether the cell is still claimed; not where its table was deleted, or another process took it."""
        with self._database.read() as connection:
            return connection.execute(sa.select(_CELL.claim).where(*_held(claimed))).first() is not None

    def finish(self, claimed: ClaimedCell, finding: CellFinding) -> bool:
        """Store what asking a cell came to; False where its table was deleted, or another process took it.

        Then nothing is stored.

        Raises:
            StoreUnavailable, StorageFull: Nothing was stored; the cell is asked again.
        """
        now = self._own.clock()
        values: dict[str, Any] = {
            "state": finding.state,
            "boot_id": None,
            "due_at": now + (0.0 if finding.pauses else finding.again_s),
            "answer": None if finding.answer is None else dict(finding.answer),
            "error": finding.error,
        }
        if not finding.counted:
            values["attempts"] = sa.case((_CELL.attempts > 0, _CELL.attempts - 1), else_=0)
        table: dict[str, Any] = {"updated_at": now, "state_detail": finding.pauses or finding.stops}
        if finding.stops is not None:
            table["state"] = "stopped"
        if finding.pauses is not None:
            table["due_at"] = now + finding.again_s
        held = sa.exists().where(*_held(claimed))
        with self._database.write() as connection:
            # the table first, as whoever deletes it does
            its = _TABLE.id == claimed.table_id, _TABLE.state == "running", held
            connection.execute(sa.update(answer_table).where(*its).values(**table))
            return bool(
                connection.execute(sa.update(answer_table_cell).where(*_held(claimed)).values(**values)).rowcount
            )

    def _claim_of(self, table_id: str) -> ClaimedCell | None:
        unfinished = sa.select(_CELL.row_no).where(_CELL.table_id == table_id, _CELL.state.in_(OPEN)).limit(1)
        with self._database.read() as connection:
            done = connection.execute(unfinished).first() is None
            free = next(
                (query for query in self._free(table_id) if connection.execute(query).first() is not None), None
            )
            if not done and free is None:
                return None
        with self._database.write_unflushed() as connection:
            if not self._may_claim(connection):
                return None
            # the table first, as whoever deletes it does; that waits, and is not waited for
            running = sa.select(answer_table).where(_TABLE.id == table_id, _TABLE.state == "running")
            held = running.with_for_update(read=True, key_share=True, skip_locked=True)
            table = connection.execute(held).one_or_none()
            if table is None:
                return None
            if free is None:
                _finish_table(connection, table_id)
                return None
            while (row := connection.execute(free.with_for_update(skip_locked=True)).one_or_none()) is not None:
                if row.attempts < MOST_ATTEMPTS:
                    return self._taken(connection, table, row)
                failed = {"state": "failed", "boot_id": None, "error": _DIED}
                connection.execute(sa.update(answer_table_cell).where(*_at(row)).values(**failed))
        return None

    def _free(self, table_id: str) -> tuple[sa.Select[Any], ...]:
        """The next cell, in the order of an index: one that waits, else one that a process did not finish."""
        its = _CELL.table_id == table_id, _CELL.due_at <= self._own.clock(), self._own.free(_CELL.boot_id)
        order = _CELL.row_no, _CELL.column_no
        return tuple(
            sa.select(answer_table_cell).where(*its, _CELL.state == state).order_by(*order).limit(1) for state in OPEN
        )

    def _taken(self, connection: sa.Connection, table: sa.Row[Any], cell: sa.Row[Any]) -> ClaimedCell:
        its = answer_table_row.c
        of_row = sa.select(its.document_id).where(its.table_id == table.id, its.row_no == cell.row_no)
        document_id = connection.execute(of_row).scalar_one()
        request_id, attempts, claim = new_id("req"), cell.attempts + 1, cell.claim + 1
        taken = {"state": "asking", "boot_id": self._own.boot_id, "claim": claim, "attempts": attempts}
        connection.execute(sa.update(answer_table_cell).where(*_at(cell)).values(**taken))
        connection.execute(
            sa.insert(answer_table_request).values(
                request_id=request_id, table_id=cell.table_id, row_no=cell.row_no, column_no=cell.column_no
            )
        )
        column = table.questions[cell.column_no]
        return ClaimedCell(
            table_id=table.id,
            tenant_id=table.tenant_id,
            user_id=table.user_id,
            key_id=table.key_id,
            column=Column(column["name"], column["question"]),
            length=table.length,
            document_id=document_id,
            row=cell.row_no,
            column_no=cell.column_no,
            request_id=request_id,
            attempts=attempts,
            boot_id=self._own.boot_id,
            claim=claim,
        )


def _finish_table(connection: sa.Connection, table_id: str) -> None:
    ended = {"state": "finished", "state_detail": None}
    its = _TABLE.id == table_id, _TABLE.state == "running"
    left = sa.exists().where(_CELL.table_id == table_id, _CELL.state.in_(OPEN))
    connection.execute(sa.update(answer_table).where(*its, ~left).values(**ended))


def _at(cell: sa.Row[Any]) -> tuple[sa.ColumnElement[bool], ...]:
    return _CELL.table_id == cell.table_id, _CELL.row_no == cell.row_no, _CELL.column_no == cell.column_no


def _held(claimed: ClaimedCell) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        _CELL.table_id == claimed.table_id,
        _CELL.row_no == claimed.row,
        _CELL.column_no == claimed.column_no,
        _CELL.state == "asking",
        _CELL.boot_id == claimed.boot_id,
        _CELL.claim == claimed.claim,
    )
