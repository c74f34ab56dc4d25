"""Bills of tables: sums over the ledger's rows of every request that asked one of their cells, ended or not."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.tables.answer_tables import answer_table_request
from app.db.tables.ledger import usage_event

_SETTLED = usage_event.c.settled_at.is_not(None)


@dataclass(frozen=True, slots=True)
class TableBill:
    """The settled model calls of a row or a table.

    Attributes:
        read: Tokens that the models read.
        written: Tokens that they wrote.
        cost_pico: Pico-units of money of the calls that have a price; None where none has one.
        unpriced: The number of calls without a price.
    """

    read: int = 0
    written: int = 0
    cost_pico: int | None = None
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.read + self.written


_SUMS: tuple[sa.ColumnElement[Any], ...] = (
    sa.func.coalesce(sa.func.sum(usage_event.c.input_tokens), 0),
    sa.func.coalesce(sa.func.sum(usage_event.c.output_tokens), 0),
    sa.func.sum(usage_event.c.cost_pico),
    sa.func.coalesce(sa.func.sum(sa.case((usage_event.c.cost_pico.is_(None), 1), else_=0)), 0),
)


def bill_in(connection: sa.Connection, table_id: str) -> TableBill:
    """The bill of a whole table."""
    return _bill(connection.execute(_of(table_id, *_SUMS)).one())


def bills_of_rows(connection: sa.Connection, table_id: str, *, first: int, last: int) -> dict[int, TableBill]:
    """The bills of the rows from `first` to `last`, by their numbers; a row without calls is left out."""
    number = answer_table_request.c.row_no
    query = _of(table_id, number, *_SUMS).where(number.between(first, last)).group_by(number)
    return {row[0]: _bill(row[1:]) for row in connection.execute(query)}


def _of(table_id: str, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    calls = answer_table_request.join(usage_event, usage_event.c.request_id == answer_table_request.c.request_id)
    return sa.select(*columns).select_from(calls).where(answer_table_request.c.table_id == table_id, _SETTLED)


def _bill(sums: Any) -> TableBill:
    read, written, cost, unpriced = sums
    return TableBill(int(read), int(written), None if cost is None else int(cost), int(unpriced))
